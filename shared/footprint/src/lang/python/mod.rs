//! Python: `def`, `class` and `NAME = …` at the top level, functions of a class body as `Class::method`,
//! property setters and deleters as `Class::x@setter` and `Class::x@deleter`.
//!
//! A block's start and end count as tokens. Docstrings are documentation. Code under `if` or `try` at the top
//! level is code outside symbols.

mod imports;
mod shape;

use tree_sitter::Node;

use super::{Among, BindingRow, Binds, Grammar, Link, Names, Parts, Table, Trait};
use crate::{
    plan::{Above, Item, MODULE, Plan, Tag, children},
    shape::{Habits, Shape, Uses},
    unit::{Order, Repeat},
};

/// Python's grammar.
pub(super) fn grammar() -> Grammar {
    table().into()
}

pub(super) fn table() -> Table {
    Table {
        language: tree_sitter_python::LANGUAGE.into(),
        kinds: KINDS,
        binds: BINDS,
        names: NAMES,
        order: Order::Counts,
        habits: Habits { fields_in_order: true, ..Habits::NONE },
        parts: PARTS,
        carve,
        note: imports::note,
        is_exhaustive: |_, _| false,
    }
}

const KINDS: &[(Trait, &[&str])] = &[
    (Trait::COMMENT, &["comment"]),
    (Trait::ATOM, &["string_content"]),
    (Trait::FUNCTION, &["function_definition", "lambda"]),
    (
        Trait::SCOPE,
        &[
            "function_definition",
            "lambda",
            "class_definition",
            "list_comprehension",
            "set_comprehension",
            "dictionary_comprehension",
            "generator_expression",
        ],
    ),
    (Trait::IDENTIFIER, &["identifier"]),
    (Trait::IMPORT, &["import_statement", "import_from_statement"]),
    (Trait::TYPE_ARGUMENTS, &["type", "generic_type", "dotted_name"]),
    (Trait::CALLS, &["call"]),
    (Trait::BLOCK, &["block"]),
    (
        Trait::STATEMENT,
        &[
            "expression_statement",
            "return_statement",
            "raise_statement",
            "assert_statement",
            "delete_statement",
            "break_statement",
            "continue_statement",
            "pass_statement",
        ],
    ),
    (Trait::MENTIONS, &["type", "attribute", "subscript", "call"]),
    (Trait::SEPARATOR, &[";"]),
    (
        Trait::KEEPS_SEPARATORS,
        &["tuple", "tuple_pattern", "subscript", "expression_list", "pattern_list"],
    ),
];

const BINDS: &[BindingRow] = &[
    ("parameters", "*", Binds::Now),
    ("lambda_parameters", "*", Binds::Now),
    ("default_parameter", "value", Binds::Mentions),
    ("typed_default_parameter", "value", Binds::Mentions),
    ("typed_default_parameter", "type", Binds::Mentions),
    ("typed_parameter", "type", Binds::Mentions),
    ("assignment", "left", Binds::InBody),
    ("for_statement", "left", Binds::After),
    ("for_in_clause", "left", Binds::Now),
    ("as_pattern_target", "*", Binds::Now),
    ("named_expression", "name", Binds::After),
    ("keyword_argument", "name", Binds::Never),
    ("function_definition", "name", Binds::Outside),
    ("class_definition", "name", Binds::Outside),
];

const PARTS: Parts = Parts {
    lists: &[
        ("module", "*", Among::Steps),
        ("block", "alternative", Among::Choices),
        ("block", "*", Among::Steps),
        ("if_statement", "alternative", Among::Choices),
        ("dictionary", "*", Among::Members),
        ("list", "*", Among::Members),
        ("set", "*", Among::Members),
        ("parameters", "*", Among::Parameters),
    ],
    lets: &["function_definition", "class_definition"],
    assigns: &[
        ("assignment", "left"),
        ("augmented_assignment", "left"),
        ("for_statement", "left"),
        ("named_expression", "name"),
    ],
    several: &["pattern_list", "tuple_pattern", "list_pattern"],
    lends: &[],
    runs: &["expression_statement"],
    jumps: &["return", "break", "continue", "raise"],
};

const NAMES: Names = Names {
    links: &[
        ("attribute", "attribute", Link::Member("object")),
        ("generic_type", "", Link::Wrap),
        ("dotted_name", "", Link::Wrap),
    ],
    uses: &[
        ("call", "function", Uses::CALL),
        ("type", "", Uses::TYPE),
        ("decorator", "", Uses::CALL),
    ],
    uses_inside: &[
        ("class_definition", "superclasses", Uses::EXTEND),
        ("import_statement", "*", Uses::IMPORT),
        ("import_from_statement", "*", Uses::IMPORT),
    ],
    typed: &[
        ("typed_parameter", "type", ""),
        ("typed_default_parameter", "type", ""),
        ("assignment", "type", "right"),
    ],
    around: &[
        ("type", ""),
        ("generic_type", ""),
        ("dotted_name", ""),
        ("call", "function"),
        ("await", ""),
        ("parenthesized_expression", ""),
    ],
    own: &["self", "cls"],
    transparent: &[],
    values_apart: false,
    constructor: "__init__",
};

const ABOVE: Above = Above { comments: &["comment"], attributes: &[] };

fn carve(plan: &mut Plan<'_>, root: Node<'_>) {
    docstring(plan, root, MODULE);
    let mut classes = Vec::new();
    plan.sweep(root, &ABOVE, |plan, node| match node.kind() {
        "import_statement" | "import_from_statement" | "future_import_statement" => {
            Some(plan.import(node))
        }
        "expression_statement" => assignment(plan, node),
        "type_alias_statement" => {
            let left = node.child_by_field_name("left")?;
            let name = plan.text(left).split('[').next().unwrap_or_default().trim();
            Some(plan.unit(node, Item::new(name, Repeat::Number, Shape::default())))
        }
        _ => {
            let (fragment, definition) = definition(plan, node, None)?;
            if definition.kind() == "class_definition" {
                classes.push(definition);
            }
            Some(fragment)
        }
    });
    for class in classes {
        let (Some(name), Some(body)) =
            (plan.field(class, "name"), class.child_by_field_name("body"))
        else {
            continue;
        };
        plan.sweep(body, &ABOVE, |plan, node| {
            let is_class = undecorated(node).is_some_and(|node| node.kind() == "class_definition");
            if is_class { None } else { definition(plan, node, Some(name)).map(|made| made.0) }
        });
    }
}

/// `NAME = …` or `NAME: type = …`.
fn assignment(plan: &mut Plan<'_>, node: Node<'_>) -> Option<usize> {
    let assignment = node.named_child(0).filter(|child| child.kind() == "assignment")?;
    let left = assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")?;
    let name = plan.text(left);
    let shape = shape::value(plan, assignment);
    let fragment = plan.unit(node, Item::new(name, Repeat::Merge, shape));
    plan.tag(left, Tag::Name);
    Some(fragment)
}

/// A function or class, decorated or not, in a class or not.
fn definition<'t>(
    plan: &mut Plan<'_>,
    node: Node<'t>,
    class: Option<&str>,
) -> Option<(usize, Node<'t>)> {
    let definition = undecorated(node)?;
    let name = plan.field(definition, "name")?;
    let (suffix, repeat) = decoration(plan, node, name);
    let shape = match definition.kind() {
        "class_definition" => shape::class(plan, definition),
        _ => shape::function(plan, definition, class.is_some() && !is_static(plan, node)),
    };
    let mut item = match class {
        Some(class) => Item::member(class, name, repeat, shape),
        None => Item::new(name, repeat, shape),
    };
    item.unit.push_str(suffix);
    let fragment = plan.unit(node, item);
    plan.declares(definition, "name");
    let mut cursor = node.walk();
    for decorator in node.children(&mut cursor).filter(|child| child.kind() == "decorator") {
        plan.tag(decorator, Tag::Docs(fragment));
    }
    if let Some(body) = definition.child_by_field_name("body") {
        docstring(plan, body, fragment);
    }
    Some((fragment, definition))
}

/// Whether a method is not called on anything.
fn is_static(plan: &Plan<'_>, node: Node<'_>) -> bool {
    children(node).any(|child| {
        child.kind() == "decorator" && plan.text(child).trim_start_matches('@') == "staticmethod"
    })
}

fn undecorated(node: Node<'_>) -> Option<Node<'_>> {
    let node = match node.kind() {
        "decorated_definition" => node.child_by_field_name("definition")?,
        _ => node,
    };
    matches!(node.kind(), "function_definition" | "class_definition").then_some(node)
}

/// What decorators make of a name: the accessor they name it after, and whether it is an overload.
fn decoration(plan: &Plan<'_>, node: Node<'_>, name: &str) -> (&'static str, Repeat) {
    let mut cursor = node.walk();
    for decorator in node.children(&mut cursor).filter(|child| child.kind() == "decorator") {
        let text = plan.text(decorator).trim_start_matches('@').trim();
        match text.rsplit_once('.') {
            Some((of, "setter")) if of == name => return ("@setter", Repeat::Number),
            Some((of, "deleter")) if of == name => return ("@deleter", Repeat::Number),
            Some((_, "overload")) => return ("", Repeat::Merge),
            None if text == "overload" => return ("", Repeat::Merge),
            Some(_) | None => {}
        }
    }
    ("", Repeat::Number)
}

fn docstring(plan: &mut Plan<'_>, block: Node<'_>, fragment: usize) {
    let mut cursor = block.walk();
    let first = block.named_children(&mut cursor).find(|child| child.kind() != "comment");
    let string =
        first.filter(|node| node.kind() == "expression_statement" && node.named_child_count() == 1);
    if let Some(node) = string
        && node.named_child(0).is_some_and(|child| child.kind() == "string")
    {
        plan.tag(node, Tag::Docs(fragment));
    }
}
