//! TypeScript, TSX and JavaScript: functions, classes, interfaces, types, enums and declarators, exported or
//! not; methods of a class as `Class::method`, setters as `Class::x@set`.
//!
//! A default export without a name is the unit `default`. `export … from` is an import. Semicolons that only
//! end statements do not count; where statements end does.

mod imports;
mod shape;

use tree_sitter::Node;

use super::{Among, BindingRow, Binds, Grammar, Link, Names, Parts, Table, Trait};
use crate::{
    plan::{Above, Item, Plan, Role, Tag, children, one_line},
    shape::{Form, Habits, Uses},
    unit::{Order, Repeat},
};

/// The grammar of TypeScript.
pub(super) fn typescript() -> Grammar {
    table(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), KINDS).into()
}

/// The grammar of TSX, which also reads JavaScript.
pub(super) fn tsx() -> Grammar {
    table_tsx().into()
}

pub(super) fn table_tsx() -> Table {
    table(tree_sitter_typescript::LANGUAGE_TSX.into(), KINDS)
}

fn table(
    language: tree_sitter::Language,
    kinds: &'static [(Trait, &'static [&'static str])],
) -> Table {
    Table {
        language,
        kinds,
        binds: BINDS,
        names: NAMES,
        order: Order::Counts,
        habits: Habits { structural: true, variants_in_order: true, ..Habits::NONE },
        parts: PARTS,
        carve,
        note: imports::note,
        is_exhaustive: |_, _| false,
    }
}

const KINDS: &[(Trait, &[&str])] = &[
    (Trait::COMMENT, &["comment", "html_comment", "hash_bang_line"]),
    (Trait::ATOM, &["string", "regex"]),
    (
        Trait::FUNCTION,
        &[
            "function_declaration",
            "generator_function_declaration",
            "function_expression",
            "generator_function",
            "arrow_function",
            "method_definition",
        ],
    ),
    (
        Trait::SCOPE,
        &[
            "function_declaration",
            "generator_function_declaration",
            "function_expression",
            "generator_function",
            "arrow_function",
            "method_definition",
            "statement_block",
            "for_statement",
            "for_in_statement",
            "catch_clause",
            "class_declaration",
            "abstract_class_declaration",
            "class",
            "interface_declaration",
            "type_alias_declaration",
            "function_signature",
            "method_signature",
            "abstract_method_signature",
            "function_type",
        ],
    ),
    (
        Trait::IDENTIFIER,
        &[
            "identifier",
            "type_identifier",
            "shorthand_property_identifier",
            "shorthand_property_identifier_pattern",
        ],
    ),
    (Trait::TYPE_NAME, &["type_identifier"]),
    (Trait::MEMBER, &["property_identifier", "private_property_identifier"]),
    (Trait::ROOT, &["this"]),
    (Trait::TYPE_ARGUMENTS, &["generic_type"]),
    (Trait::IMPORT, &["import_statement", "export_statement", "variable_declarator"]),
    (Trait::BUILDS, &["new_expression"]),
    (Trait::CALLS, &["call_expression"]),
    (
        Trait::STATEMENT,
        &[
            "expression_statement",
            "return_statement",
            "throw_statement",
            "break_statement",
            "continue_statement",
            "lexical_declaration",
            "variable_declaration",
            "import_statement",
            "export_statement",
            "public_field_definition",
            "property_signature",
            "method_signature",
            "abstract_method_signature",
            "function_signature",
            "debugger_statement",
        ],
    ),
    (Trait::MENTIONS, &["type_annotation", "member_expression", "subscript_expression"]),
    (Trait::SEPARATOR, &[";"]),
    (Trait::KEEPS_SEPARATORS, &["for_statement"]),
    (Trait::PROSE, &["jsx_text"]),
];

const BINDS: &[BindingRow] = &[
    ("required_parameter", "pattern", Binds::After),
    ("optional_parameter", "pattern", Binds::After),
    ("arrow_function", "parameter", Binds::Now),
    ("variable_declarator", "name", Binds::After),
    ("catch_clause", "parameter", Binds::Now),
    ("for_in_statement", "left", Binds::After),
    ("function_declaration", "name", Binds::Outside),
    ("generator_function_declaration", "name", Binds::Outside),
    ("class_declaration", "name", Binds::Outside),
    ("type_parameter", "name", Binds::Now),
    ("assignment_pattern", "right", Binds::Mentions),
    ("object_assignment_pattern", "right", Binds::Mentions),
    ("pair_pattern", "key", Binds::Never),
    ("index_signature", "name", Binds::Never),
    ("mapped_type_clause", "name", Binds::Now),
];

const PARTS: Parts = Parts {
    lists: &[
        ("program", "*", Among::Steps),
        ("statement_block", "*", Among::Steps),
        ("switch_body", "*", Among::Choices),
        ("switch_case", "body", Among::Steps),
        ("switch_default", "body", Among::Steps),
        ("class_body", "*", Among::Members),
        ("interface_body", "*", Among::Members),
        ("object_type", "*", Among::Members),
        ("enum_body", "*", Among::Members),
        ("object", "*", Among::Members),
        ("array", "*", Among::Members),
        ("formal_parameters", "*", Among::Parameters),
    ],
    lets: &[
        "variable_declarator",
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
    ],
    assigns: &[
        ("assignment_expression", "left"),
        ("augmented_assignment_expression", "left"),
        ("update_expression", "argument"),
    ],
    several: &["array_pattern", "object_pattern"],
    lends: &[],
    runs: &["expression_statement"],
    jumps: &["return", "break", "continue", "throw"],
};

const NAMES: Names = Names {
    links: &[
        ("member_expression", "property", Link::Member("object")),
        ("nested_type_identifier", "name", Link::Path("module")),
        ("nested_identifier", "property", Link::Path("object")),
        ("generic_type", "name", Link::Wrap),
    ],
    uses: &[
        ("call_expression", "function", Uses::CALL),
        ("new_expression", "constructor", Uses::CONSTRUCT),
        ("jsx_opening_element", "name", Uses::CALL),
        ("jsx_self_closing_element", "name", Uses::CALL),
    ],
    uses_inside: &[
        ("class_heritage", "", Uses::EXTEND),
        ("extends_type_clause", "type", Uses::EXTEND),
        ("import_statement", "*", Uses::IMPORT),
        ("export_statement", "", Uses::IMPORT),
    ],
    typed: &[
        ("required_parameter", "type", ""),
        ("optional_parameter", "type", ""),
        ("variable_declarator", "type", "value"),
    ],
    around: &[
        ("type_annotation", ""),
        ("generic_type", "name"),
        ("parenthesized_expression", ""),
        ("await_expression", ""),
        ("non_null_expression", ""),
        ("as_expression", ""),
        ("new_expression", "constructor"),
        ("call_expression", "function"),
    ],
    own: &["this"],
    transparent: &[],
    values_apart: false,
    constructor: "constructor",
};

const ABOVE: Above = Above { comments: &["comment"], attributes: &["decorator"] };

fn carve(plan: &mut Plan<'_>, root: Node<'_>) {
    let mut classes = Vec::new();
    plan.sweep(root, &ABOVE, |plan, node| match node.kind() {
        "import_statement" => Some(plan.import(node)),
        "export_statement" if node.child_by_field_name("source").is_some() => {
            Some(plan.import(node))
        }
        _ => declaration(plan, node, &mut classes),
    });
    for (name, body) in classes {
        plan.sweep(body, &ABOVE, |plan, node| member(plan, node, &name));
    }
}

/// A declaration, under `export`, `declare` and `default` or not.
fn declaration<'t>(
    plan: &mut Plan<'_>,
    outer: Node<'t>,
    classes: &mut Vec<(String, Node<'t>)>,
) -> Option<usize> {
    let mut node = outer;
    while matches!(node.kind(), "export_statement" | "ambient_declaration" | "expression_statement")
    {
        let inner = node.child_by_field_name("declaration").or_else(|| {
            let value = node.child_by_field_name("value");
            value.or_else(|| node.named_child(0).filter(|_| node.kind() != "export_statement"))
        });
        let inner = inner?;
        let declares = inner.kind().ends_with("_declaration")
            || matches!(inner.kind(), "function_signature" | "internal_module" | "module");
        if !declares {
            return default_export(plan, outer, inner, classes);
        }
        node = inner;
    }
    match node.kind() {
        "lexical_declaration" | "variable_declaration" => return declarators(plan, outer, node),
        "function_declaration"
        | "generator_function_declaration"
        | "function_signature"
        | "class_declaration"
        | "abstract_class_declaration"
        | "interface_declaration"
        | "type_alias_declaration"
        | "enum_declaration"
        | "internal_module"
        | "module" => {}
        _ => return None,
    }
    let name = plan.field(node, "name").unwrap_or("default").trim_matches(['"', '\'']);
    let mut shape = shape::of(plan, node);
    shape.visibility = visibility(outer);
    let fragment = plan.unit(outer, Item::new(name, Repeat::Merge, shape));
    plan.declares(node, "name");
    if is_default(outer) {
        plan.is_default(fragment);
    }
    class_parts(plan, outer, node, fragment, name, classes);
    Some(fragment)
}

/// Decorators of a class are its documentation; its body's members are carved later.
fn class_parts<'t>(
    plan: &mut Plan<'_>,
    outer: Node<'t>,
    node: Node<'t>,
    fragment: usize,
    name: &str,
    classes: &mut Vec<(String, Node<'t>)>,
) {
    for of in [outer, node] {
        let mut cursor = of.walk();
        for decorator in of.children(&mut cursor).filter(|child| child.kind() == "decorator") {
            plan.tag(decorator, Tag::Docs(fragment));
        }
    }
    if let Some(body) = node.child_by_field_name("body").filter(|body| body.kind() == "class_body")
    {
        classes.push((name.to_owned(), body));
    }
}

/// `export default …` of something without a name. Other expressions are code outside symbols.
fn default_export<'t>(
    plan: &mut Plan<'_>,
    outer: Node<'t>,
    value: Node<'t>,
    classes: &mut Vec<(String, Node<'t>)>,
) -> Option<usize> {
    if outer.kind() != "export_statement" {
        return None;
    }
    let name = plan.field(value, "name").filter(|_| value.kind() == "class").unwrap_or("default");
    let mut shape = shape::of(plan, value);
    if shape.form == Form::Opaque {
        shape.value = plan.tokens(value);
    }
    let fragment = plan.unit(outer, Item::new(name, Repeat::Merge, shape));
    plan.is_default(fragment);
    class_parts(plan, outer, value, fragment, name, classes);
    Some(fragment)
}

/// Each declarator by itself; the keywords before it are part of each. Answers the first.
fn declarators(plan: &mut Plan<'_>, outer: Node<'_>, node: Node<'_>) -> Option<usize> {
    let mut cursor = node.walk();
    let declarators: Vec<_> = node
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "variable_declarator")
        .collect();
    let start = declarators.first()?.start_byte();
    let keywords = one_line(plan.source.get(outer.start_byte()..start).unwrap_or_default());
    let mut first = None;
    for declarator in declarators {
        let names = bound_names(declarator.child_by_field_name("name")?);
        let (name, others) = names.split_first()?;
        let mut shape = shape::of(plan, declarator);
        shape.visibility = visibility(outer);
        let fragment = plan.unit(declarator, Item::new(plan.text(*name), Repeat::Merge, shape));
        plan.prefix(fragment, &keywords, &keywords);
        plan.tag(*name, Tag::Name);
        for other in others {
            plan.tag(*other, Tag::Name);
            let alias = plan.text(*other).to_owned();
            plan.alias(fragment, alias);
        }
        first.get_or_insert(fragment);
    }
    for glue in [outer, node] {
        plan.tag(glue, Tag::Glue);
    }
    first
}

/// The identifiers that a pattern binds.
fn bound_names(pattern: Node<'_>) -> Vec<Node<'_>> {
    let mut names = Vec::new();
    super::work_off(pattern, |node, todo| match node.kind() {
        "identifier" | "shorthand_property_identifier_pattern" => names.push(node),
        "pair_pattern" => todo.extend(node.child_by_field_name("value")),
        "assignment_pattern" | "object_assignment_pattern" => {
            todo.extend(node.child_by_field_name("left"));
        }
        _ => {
            let mut cursor = node.walk();
            let children: Vec<_> = node.named_children(&mut cursor).collect();
            todo.extend(children.into_iter().rev());
        }
    });
    names
}

/// Whether a declaration is exported.
fn visibility(outer: Node<'_>) -> u8 {
    u8::from(outer.kind() == "export_statement") * 2
}

fn is_default(outer: Node<'_>) -> bool {
    outer.kind() == "export_statement" && children(outer).any(|child| child.kind() == "default")
}

/// Whether a value is a function.
fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression" | "generator_function")
}

fn member(plan: &mut Plan<'_>, node: Node<'_>, class: &str) -> Option<usize> {
    match node.kind() {
        "method_definition" | "method_signature" | "abstract_method_signature" => {}
        "public_field_definition" if node.child_by_field_name("value").is_some_and(is_function) => {
        }
        _ => return None,
    }
    let name = one_line(plan.field(node, "name")?);
    let mut cursor = node.walk();
    let is_setter = node.children(&mut cursor).any(|child| child.kind() == "set");
    let suffix = if is_setter { "@set" } else { "" };
    let function = node.child_by_field_name("value").unwrap_or(node);
    let mut item = Item::member(class, &name, Repeat::Merge, shape::of(plan, function));
    item.unit.push_str(suffix);
    if node.kind() == "abstract_method_signature" {
        item.role = Role::Required;
    }
    let fragment = plan.unit(node, item);
    let mut cursor = node.walk();
    for decorator in node.children(&mut cursor).filter(|child| child.kind() == "decorator") {
        plan.tag(decorator, Tag::Docs(fragment));
    }
    Some(fragment)
}
