//! Go: `func`, `type`, `const` and `var`, grouped ones each by itself, and methods by receiver type.
//!
//! In a group that counts with `iota` or repeats values, a constant's place in the group is part of it.

mod shape;

use tree_sitter::Node;

use super::{Among, BindingRow, Binds, Grammar, Link, Names, Parts, Table, Trait};
use crate::{
    plan::{Above, Item, Plan, Tag, children_by_field},
    reference::{Import, Source},
    shape::{Habits, Uses},
    unit::{Order, Repeat},
};

/// Go's grammar.
pub(super) fn grammar() -> Grammar {
    table().into()
}

pub(super) fn table() -> Table {
    Table {
        language: tree_sitter_go::LANGUAGE.into(),
        kinds: KINDS,
        binds: BINDS,
        names: NAMES,
        order: Order::Counts,
        habits: Habits {
            fields_in_order: true,
            fields_may_be_left_out: true,
            structural: true,
            ..Habits::NONE
        },
        parts: PARTS,
        carve,
        note,
        is_exhaustive: |_, _| false,
    }
}

const KINDS: &[(Trait, &[&str])] = &[
    (Trait::COMMENT, &["comment"]),
    (Trait::ATOM, &["interpreted_string_literal", "raw_string_literal", "rune_literal"]),
    (Trait::FUNCTION, &["function_declaration", "method_declaration", "func_literal"]),
    (
        Trait::SCOPE,
        &[
            "function_declaration",
            "method_declaration",
            "func_literal",
            "block",
            "if_statement",
            "for_statement",
            "expression_switch_statement",
            "type_switch_statement",
            "select_statement",
            "expression_case",
            "default_case",
            "type_case",
            "communication_case",
            "type_spec",
            "type_alias",
        ],
    ),
    (Trait::IDENTIFIER, &["identifier", "type_identifier", "package_identifier"]),
    (Trait::TYPE_NAME, &["type_identifier"]),
    (Trait::MEMBER, &["field_identifier"]),
    (Trait::IMPORT, &["import_spec"]),
    (Trait::TYPE_ARGUMENTS, &["generic_type"]),
    (Trait::BUILDS, &["composite_literal"]),
    (Trait::CALLS, &["call_expression"]),
    (
        Trait::STATEMENT,
        &[
            "expression_statement",
            "return_statement",
            "short_var_declaration",
            "assignment_statement",
            "inc_statement",
            "dec_statement",
            "go_statement",
            "defer_statement",
            "send_statement",
            "break_statement",
            "continue_statement",
            "goto_statement",
            "fallthrough_statement",
            "var_spec",
            "const_spec",
            "type_spec",
            "type_alias",
            "field_declaration",
            "import_spec",
        ],
    ),
    (Trait::SEPARATOR, &[";"]),
    (
        Trait::KEEPS_SEPARATORS,
        &["for_clause", "if_statement", "expression_switch_statement", "type_switch_statement"],
    ),
];

const BINDS: &[BindingRow] = &[
    ("parameter_declaration", "name", Binds::After),
    ("variadic_parameter_declaration", "name", Binds::After),
    ("type_parameter_declaration", "name", Binds::Now),
    ("short_var_declaration", "left", Binds::After),
    ("var_spec", "name", Binds::After),
    ("const_spec", "name", Binds::After),
    ("range_clause", "left", Binds::After),
    ("type_switch_statement", "alias", Binds::Now),
    ("type_spec", "name", Binds::Outside),
];

const PARTS: Parts = Parts {
    lists: &[
        ("source_file", "*", Among::Steps),
        ("statement_list", "*", Among::Steps),
        ("expression_switch_statement", "", Among::Choices),
        ("type_switch_statement", "", Among::Choices),
        ("select_statement", "", Among::Choices),
        ("field_declaration_list", "*", Among::Members),
        ("interface_type", "*", Among::Members),
        ("literal_value", "*", Among::Members),
    ],
    lets: &["short_var_declaration", "var_spec", "const_spec", "type_spec"],
    assigns: &[("assignment_statement", "left"), ("inc_statement", ""), ("dec_statement", "")],
    several: &["expression_list"],
    lends: &[("unary_expression", "&", "operand")],
    runs: &["expression_statement"],
    jumps: &["return", "break", "continue", "goto"],
};

const NAMES: Names = Names {
    links: &[
        ("selector_expression", "field", Link::Member("operand")),
        ("qualified_type", "name", Link::Path("package")),
        ("generic_type", "type", Link::Wrap),
        ("literal_element", "", Link::Wrap),
        ("keyed_element", "key", Link::Field("composite_literal", "type")),
    ],
    uses: &[
        ("call_expression", "function", Uses::CALL),
        ("composite_literal", "type", Uses::CONSTRUCT),
    ],
    uses_inside: &[("type_elem", "*", Uses::EXTEND)],
    typed: &[
        ("parameter_declaration", "type", ""),
        ("var_spec", "type", "value"),
        ("short_var_declaration", "", "right"),
    ],
    around: &[
        ("pointer_type", ""),
        ("generic_type", "type"),
        ("expression_list", ""),
        ("unary_expression", "operand"),
        ("parenthesized_expression", ""),
        ("composite_literal", "type"),
        ("call_expression", "function"),
    ],
    own: &[],
    transparent: &[],
    values_apart: false,
    constructor: "",
};

const ABOVE: Above = Above { comments: &["comment"], attributes: &[] };

fn carve(plan: &mut Plan<'_>, root: Node<'_>) {
    plan.sweep(root, &ABOVE, |plan, node| match node.kind() {
        "import_declaration" => Some(imports(plan, node)),
        "function_declaration" => {
            let name = plan.field(node, "name").filter(|name| *name != "_")?;
            let shape = shape::function(plan, node);
            let fragment = plan.unit(node, Item::new(name, Repeat::Number, shape));
            plan.declares(node, "name");
            Some(fragment)
        }
        "method_declaration" => {
            let receiver = receiver(plan, node)?;
            let name = plan.field(node, "name")?;
            let item = Item::member(receiver, name, Repeat::Number, shape::function(plan, node));
            let fragment = plan.unit(node, item);
            plan.declares(node, "name");
            Some(fragment)
        }
        "type_declaration" | "const_declaration" | "var_declaration" => group(plan, node),
        _ => None,
    });
}

/// The specs of one `type`, `const` or `var` declaration. Answers the only one's fragment.
fn group(plan: &mut Plan<'_>, declaration: Node<'_>) -> Option<usize> {
    let keyword = match declaration.kind() {
        "type_declaration" => "type",
        "const_declaration" => "const",
        _ => "var",
    };
    plan.tag(declaration, Tag::Glue);
    let mut cursor = declaration.walk();
    let list = declaration.children(&mut cursor).find(|child| child.kind() == "var_spec_list");
    if let Some(list) = list {
        plan.tag(list, Tag::Glue);
    }
    let specs = list.unwrap_or(declaration);
    let grouped = list.is_some() || has_parenthesis(declaration);
    let counts = keyword == "const" && grouped && counts(plan, specs);
    let (mut place, mut only) = (0, None);
    plan.sweep(specs, &ABOVE, |plan, spec| {
        place += 1;
        let fragment = spec_unit(plan, spec);
        if let Some(fragment) = fragment {
            let prefix = if counts { format!("const {place}") } else { keyword.to_owned() };
            plan.prefix(fragment, &prefix, keyword);
            if counts {
                plan.value_depends_on(fragment, &prefix);
            }
        } else {
            // `_` declares nothing that has a name.
            plan.tag(spec, Tag::Unit(crate::plan::MODULE));
        }
        only = fragment;
        fragment
    });
    only.filter(|_| !grouped)
}

fn spec_unit(plan: &mut Plan<'_>, spec: Node<'_>) -> Option<usize> {
    let names = children_by_field(spec, "name");
    let names: Vec<_> = names.into_iter().filter(|name| plan.text(*name) != "_").collect();
    let (first, others) = names.split_first()?;
    let shape = match spec.kind() {
        "const_spec" | "var_spec" => shape::value(plan, spec),
        _ => shape::ty(plan, spec),
    };
    let fragment = plan.unit(spec, Item::new(plan.text(*first), Repeat::Number, shape));
    plan.tag(*first, Tag::Name);
    for other in others {
        plan.tag(*other, Tag::Name);
        let alias = plan.text(*other).to_owned();
        plan.alias(fragment, alias);
    }
    Some(fragment)
}

fn has_parenthesis(declaration: Node<'_>) -> bool {
    let mut cursor = declaration.walk();
    declaration.children(&mut cursor).any(|child| child.kind() == "(")
}

/// Whether constants of a group depend on their place: one repeats the value above, or uses `iota`.
fn counts(plan: &Plan<'_>, specs: Node<'_>) -> bool {
    let mut cursor = specs.walk();
    specs.named_children(&mut cursor).filter(|spec| spec.kind() == "const_spec").any(|spec| {
        let value = plan.field(spec, "value");
        value.is_none_or(|value| value.contains("iota"))
    })
}

fn receiver<'s>(plan: &Plan<'s>, method: Node<'_>) -> Option<&'s str> {
    let list = method.child_by_field_name("receiver")?;
    let mut node = list.named_child(0)?.child_by_field_name("type")?;
    loop {
        node = match node.kind() {
            "pointer_type" | "parenthesized_type" => node.named_child(0)?,
            "generic_type" => node.child_by_field_name("type")?,
            _ => return Some(plan.text(node)),
        };
    }
}

/// Each spec of an import declaration is an import; so order and grouping do not count.
fn imports(plan: &mut Plan<'_>, declaration: Node<'_>) -> usize {
    plan.tag(declaration, Tag::Glue);
    let mut first = None;
    let mut cursor = declaration.walk();
    let children: Vec<_> = declaration.named_children(&mut cursor).collect();
    for child in children {
        let mut specs = vec![child];
        if child.kind() == "import_spec_list" {
            let mut cursor = child.walk();
            specs = child.named_children(&mut cursor).collect();
            plan.tag(child, Tag::Glue);
        }
        for spec in specs.into_iter().filter(|spec| spec.kind() == "import_spec") {
            let fragment = plan.import(spec);
            first.get_or_insert(fragment);
        }
    }
    first.unwrap_or(crate::plan::MODULE)
}

/// Notes what an import spec binds.
fn note(plan: &mut Plan<'_>, spec: Node<'_>) {
    let path = plan.field(spec, "path").unwrap_or_default().trim_matches(['"', '`']);
    let source = Source::Package(path.into());
    match plan.field(spec, "name").or_else(|| package_name(path)) {
        Some(".") => plan.imports_mut().globs.push(source),
        Some("_") | None => {}
        Some(name) => {
            plan.imports_mut().names.insert(name.into(), Import { source, name: None });
        }
    }
}

/// The name a package most likely has: its path's last component that is not a version.
fn package_name(path: &str) -> Option<&str> {
    let is_version = |part: &&str| {
        part.strip_prefix('v')
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let last = path.rsplit('/').find(|part| !is_version(part))?;
    Some(last.split(".v").next().unwrap_or(last))
}
