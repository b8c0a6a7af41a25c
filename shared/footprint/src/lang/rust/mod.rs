//! Rust: every top-level item, methods as `Type::method`, trait impls as `Type::method@Trait<Args>`, items of
//! inline modules as `module::item`.
//!
//! An `impl` block's header joins its type, unless it is `impl Type` without bounds, which says nothing.

mod imports;
mod shape;

use tree_sitter::Node;

use super::{Among, BindingRow, Binds, Grammar, Link, Names, Parts, Table, Trait, work_off};
use crate::{
    plan::{Above, Item, MODULE, Plan, Role, Tag, named_children, one_line},
    shape::{Habits, Shape, Uses},
    unit::{Order, Repeat},
};

/// Rust's grammar.
pub(super) fn grammar() -> Grammar {
    table().into()
}

pub(super) fn table() -> Table {
    Table {
        language: tree_sitter_rust::LANGUAGE.into(),
        kinds: KINDS,
        binds: BINDS,
        names: NAMES,
        order: Order::Free,
        habits: Habits { exhaustive: true, ..Habits::NONE },
        parts: PARTS,
        carve,
        note: imports::note,
        is_exhaustive,
    }
}

const KINDS: &[(Trait, &[&str])] = &[
    (Trait::COMMENT, &["line_comment", "block_comment"]),
    (Trait::ATOM, &["string_literal", "raw_string_literal", "char_literal"]),
    (Trait::FUNCTION, &["function_item", "closure_expression"]),
    (
        Trait::SCOPE,
        &[
            "function_item",
            "function_signature_item",
            "closure_expression",
            "block",
            "match_arm",
            "if_expression",
            "while_expression",
            "for_expression",
            "impl_item",
            "struct_item",
            "enum_item",
            "union_item",
            "trait_item",
            "type_item",
            "associated_type",
        ],
    ),
    (Trait::IDENTIFIER, &["identifier", "type_identifier", "shorthand_field_identifier"]),
    (Trait::TYPE_NAME, &["type_identifier"]),
    (Trait::MEMBER, &["field_identifier"]),
    (Trait::ROOT, &["self", "crate", "super"]),
    (Trait::TYPE_ARGUMENTS, &["generic_type", "generic_function", "generic_type_with_turbofish"]),
    (Trait::IMPORT, &["use_declaration", "extern_crate_declaration"]),
    (Trait::BUILDS, &["struct_expression"]),
    (Trait::CALLS, &["call_expression"]),
    (Trait::ALTERNATIVES, &["match_block"]),
    (Trait::CASED, &["identifier"]),
    (Trait::SILENT, &["lifetime", "label", "attribute_item", "inner_attribute_item"]),
    (Trait::MENTIONS, &["scoped_identifier", "scoped_type_identifier", "generic_type"]),
    (Trait::TOKENS, &["token_tree"]),
    (Trait::KEEPS_SEPARATORS, &["token_tree", "tuple_expression", "tuple_pattern", "tuple_type"]),
];

const BINDS: &[BindingRow] = &[
    ("let_declaration", "pattern", Binds::After),
    ("let_condition", "pattern", Binds::After),
    ("parameter", "pattern", Binds::After),
    ("parameter", "type", Binds::Mentions),
    ("closure_parameters", "*", Binds::Now),
    ("for_expression", "pattern", Binds::After),
    ("match_pattern", "condition", Binds::Mentions),
    ("match_arm", "pattern", Binds::Now),
    ("struct_pattern", "type", Binds::Mentions),
    ("tuple_struct_pattern", "type", Binds::Mentions),
    ("enum_variant", "name", Binds::Never),
    ("type_parameter", "name", Binds::Now),
    ("const_parameter", "name", Binds::Now),
    ("function_item", "name", Binds::Outside),
    ("struct_item", "name", Binds::Outside),
    ("enum_item", "name", Binds::Outside),
    ("const_item", "name", Binds::Outside),
    ("static_item", "name", Binds::Outside),
];

const PARTS: Parts = Parts {
    lists: &[
        ("source_file", "*", Among::Steps),
        ("block", "", Among::Steps),
        ("match_block", "*", Among::Choices),
        ("field_declaration_list", "*", Among::Members),
        ("enum_variant_list", "*", Among::Members),
        ("declaration_list", "*", Among::Members),
        ("field_initializer_list", "*", Among::Members),
        ("array_expression", "", Among::Members),
        ("parameters", "*", Among::Parameters),
    ],
    lets: &["let_declaration", "function_item", "struct_item", "enum_item", "const_item"],
    assigns: &[("assignment_expression", "left"), ("compound_assignment_expr", "left")],
    several: &["tuple_expression"],
    lends: &[("reference_expression", "mutable_specifier", "value")],
    runs: &["expression_statement"],
    jumps: &["return", "break", "continue"],
};

const NAMES: Names = Names {
    links: &[
        ("scoped_identifier", "name", Link::Path("path")),
        ("scoped_type_identifier", "name", Link::Path("path")),
        ("field_expression", "field", Link::Member("value")),
        ("field_initializer", "field", Link::Field("struct_expression", "name")),
        ("shorthand_field_initializer", "", Link::Field("struct_expression", "name")),
        ("field_pattern", "name", Link::Field("struct_pattern", "type")),
        ("generic_function", "function", Link::Wrap),
        ("generic_type", "type", Link::Wrap),
        ("generic_type_with_turbofish", "type", Link::Wrap),
    ],
    uses: &[
        ("call_expression", "function", Uses::CALL),
        ("macro_invocation", "macro", Uses::CALL),
        ("struct_expression", "name", Uses::CONSTRUCT),
        ("impl_item", "trait", Uses::EXTEND),
    ],
    uses_inside: &[
        ("use_declaration", "argument", Uses::IMPORT),
        ("trait_item", "bounds", Uses::EXTEND),
        ("match_arm", "pattern", Uses::MATCH),
    ],
    typed: &[("parameter", "type", ""), ("let_declaration", "type", "value")],
    around: &[
        ("reference_type", "type"),
        ("generic_type", "type"),
        ("generic_type_with_turbofish", "type"),
        ("generic_function", "function"),
        ("dynamic_type", "trait"),
        ("abstract_type", "trait"),
        ("reference_expression", "value"),
        ("try_expression", ""),
        ("await_expression", ""),
        ("parenthesized_expression", ""),
        ("struct_expression", "name"),
        ("call_expression", "function"),
    ],
    own: &["self", "Self"],
    transparent: &["Box", "Rc", "Arc", "Cow", "Ref", "RefMut", "MutexGuard", "Pin"],
    values_apart: true,
    constructor: "",
};

/// Whether every alternative is named: no arm takes whatever is left.
fn is_exhaustive(plan: &Plan<'_>, block: Node<'_>) -> bool {
    let mut patterns = named_children(block).filter_map(|arm| arm.child_by_field_name("pattern"));
    patterns.all(|pattern| {
        let text = plan.text(pattern);
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        !is_name || text.starts_with(char::is_uppercase)
    })
}

const ABOVE: Above =
    Above { comments: &["line_comment", "block_comment"], attributes: &["attribute_item"] };

/// A list of items, and what they are in.
struct List<'t> {
    items: Node<'t>,
    /// The modules of the file that they are in, outermost first.
    inline: Vec<String>,
    within: Within,
}

impl List<'_> {
    /// What the names of units begin with: nothing, or `module::`.
    fn prefix(&self) -> String {
        self.inline.iter().fold(String::new(), |prefix, name| prefix + name + "::")
    }
}

enum Within {
    Module,
    /// The type's name, and `@Trait` for a trait's impl.
    Impl(String, String),
    Trait(String),
}

fn carve(plan: &mut Plan<'_>, root: Node<'_>) {
    let first = List { items: root, inline: Vec::new(), within: Within::Module };
    work_off(first, |list, todo| {
        if matches!(list.within, Within::Module) {
            inner_docs(plan, list.items);
        }
        plan.sweep(list.items, &ABOVE, |plan, node| match &list.within {
            Within::Module => item(plan, node, &list, todo),
            Within::Impl(ty, suffix) => member(plan, node, &list, ty, suffix),
            Within::Trait(name) => member(plan, node, &list, name, ""),
        });
    });
}

/// `//!` at the head of the file documents the code outside symbols.
fn inner_docs(plan: &mut Plan<'_>, root: Node<'_>) {
    let mut cursor = root.walk();
    for child in root.children(&mut cursor) {
        if !ABOVE.comments.contains(&child.kind()) {
            break;
        }
        if root.kind() == "source_file" && plan.text(child).starts_with("//!") {
            plan.tag(child, Tag::Docs(MODULE));
        }
    }
}

fn item<'t>(
    plan: &mut Plan<'_>,
    node: Node<'t>,
    list: &List<'t>,
    todo: &mut Vec<List<'t>>,
) -> Option<usize> {
    let inline = &list.inline;
    let repeat = match node.kind() {
        "use_declaration" | "extern_crate_declaration" => return Some(plan.import(node)),
        "impl_item" => return implementation(plan, node, list, todo),
        "foreign_mod_item" => {
            if let Some(items) = node.child_by_field_name("body") {
                todo.push(List { items, inline: inline.clone(), within: Within::Module });
            }
            return None;
        }
        "struct_item" | "enum_item" | "union_item" | "trait_item" | "type_item" => Repeat::Merge,
        "function_item"
        | "function_signature_item"
        | "const_item"
        | "static_item"
        | "mod_item"
        | "macro_definition" => Repeat::Number,
        _ => return None,
    };
    let name = plan.field(node, "name").filter(|name| *name != "_")?;
    let mut unit = Item::new(name, repeat, shape::of(plan, node));
    unit.unit = format!("{}{name}", list.prefix());
    unit.inline = inline.join("/");
    let fragment = plan.unit(node, unit);
    plan.declares(node, "name");
    if node.kind() == "mod_item" && inline.is_empty() {
        plan.imports.children.push(name.into());
    }
    if let Some(items) = node.child_by_field_name("body") {
        match node.kind() {
            "mod_item" => todo.push(List {
                items,
                inline: inline.iter().cloned().chain([name.to_owned()]).collect(),
                within: Within::Module,
            }),
            "trait_item" => todo.push(List {
                items,
                inline: inline.clone(),
                within: Within::Trait(name.to_owned()),
            }),
            _ => {}
        }
    }
    Some(fragment)
}

fn implementation<'t>(
    plan: &mut Plan<'_>,
    node: Node<'t>,
    list: &List<'t>,
    todo: &mut Vec<List<'t>>,
) -> Option<usize> {
    let name = type_name(plan, node.child_by_field_name("type")?);
    let implemented = node.child_by_field_name("trait");
    let says = implemented.is_some() || has_bounds(node);
    let shape = if says { shape::of(plan, node) } else { Shape::default() };
    let mut unit = Item::new(&name, Repeat::Merge, shape);
    unit.unit = format!("{}{name}", list.prefix());
    unit.inline = list.inline.join("/");
    let fragment = plan.unit(node, unit);
    let suffix = implemented.map(|node| format!("@{}", trait_name(plan, node)));
    let silent = !says;
    let mut cursor = node.walk();
    for child in node.children(&mut cursor).filter(|child| child.kind() != "declaration_list") {
        if silent {
            plan.tag(child, Tag::Glue);
        }
    }
    if let Some(items) = node.child_by_field_name("body") {
        let mut cursor = items.walk();
        for brace in items.children(&mut cursor).filter(|child| matches!(child.kind(), "{" | "}")) {
            plan.tag(brace, Tag::Glue);
        }
        let within = Within::Impl(name, suffix.unwrap_or_default());
        todo.push(List { items, inline: list.inline.clone(), within });
    }
    Some(fragment)
}

/// Whether an `impl` block's header says more than which type its functions belong to.
fn has_bounds(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| match child.kind() {
        "where_clause" | "unsafe" => true,
        "type_parameters" => {
            let mut cursor = child.walk();
            child.named_children(&mut cursor).any(|parameter| {
                parameter.child_by_field_name("bounds").is_some()
                    || parameter.kind() == "const_parameter"
            })
        }
        _ => false,
    })
}

fn member(
    plan: &mut Plan<'_>,
    node: Node<'_>,
    list: &List<'_>,
    ty: &str,
    suffix: &str,
) -> Option<usize> {
    let required = match node.kind() {
        "function_item" | "type_item" => false,
        "function_signature_item" | "associated_type" => true,
        "const_item" => node.child_by_field_name("value").is_none(),
        _ => return None,
    };
    let name = plan.field(node, "name").filter(|name| *name != "_")?;
    let mut unit = Item::member(ty, name, Repeat::Number, shape::of(plan, node));
    unit.unit = format!("{}{}{suffix}", list.prefix(), unit.unit);
    unit.inline = list.inline.join("/");
    if suffix.is_empty() && in_trait(node) {
        unit.role = if required { Role::Required } else { Role::Provided };
        unit.shape.visibility = 3;
    }
    let fragment = plan.unit(node, unit);
    plan.declares(node, "name");
    Some(fragment)
}

fn in_trait(node: Node<'_>) -> bool {
    node.parent().and_then(|list| list.parent()).is_some_and(|owner| owner.kind() == "trait_item")
}

/// The name by which a type is known, without arguments, path and reference.
fn type_name(plan: &Plan<'_>, mut node: Node<'_>) -> String {
    loop {
        let inner = match node.kind() {
            "generic_type" | "reference_type" | "pointer_type" => node.child_by_field_name("type"),
            "scoped_type_identifier" => node.child_by_field_name("name"),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => return one_line(plan.text(node)),
        }
    }
}

/// A trait's name without its path, with its arguments.
fn trait_name(plan: &Plan<'_>, node: Node<'_>) -> String {
    let arguments = node.child_by_field_name("type_arguments").filter(|arguments| {
        let mut cursor = arguments.walk();
        arguments.named_children(&mut cursor).any(|argument| argument.kind() != "lifetime")
    });
    let arguments = arguments.map(|arguments| one_line(plan.text(arguments)));
    type_name(plan, node) + &arguments.unwrap_or_default()
}
