//! The shapes of Python's definitions.

use tree_sitter::Node;

use crate::{
    plan::{Plan, named_children},
    shape::{Form, Member, Need, Param, Shape},
};

const APART: &[&str] = &["comment", ":", "->"];

/// Ends the head of what may have no types written.
const UNTYPED: &str = "?";

/// The shape of a function.
pub(super) fn function(plan: &Plan<'_>, node: Node<'_>, is_method: bool) -> Shape {
    let mut shape = Shape { form: Form::Function, ..Shape::default() };
    shape.visibility = visibility(plan.field(node, "name").unwrap_or_default());
    shape.result = plan.tokens_of(node, "return_type");
    let apart = ["name", "parameters", "return_type", "body"];
    shape.head = format!("{} {UNTYPED}", plan.tokens_but(node, &apart, APART)).into();
    let Some(list) = node.child_by_field_name("parameters") else { return shape };
    shape.params = named_children(list).filter_map(|child| parameter(plan, child)).collect();
    // Who calls a method does not write what it is called on.
    if let Some(first) = shape.params.first_mut().filter(|_| is_method) {
        first.name = "".into();
    }
    shape
}

fn parameter(plan: &Plan<'_>, node: Node<'_>) -> Option<Param> {
    let (mut name, mut need) = (plan.field(node, "name"), Need::Required);
    let inner = if node.kind() == "typed_parameter" { node.named_child(0)? } else { node };
    match inner.kind() {
        "identifier" => name = Some(plan.text(inner)),
        "list_splat_pattern" | "dictionary_splat_pattern" => {
            need = Need::Variadic;
            name = Some(if inner.kind() == "list_splat_pattern" { "*" } else { "**" });
        }
        // `*` and `/` alone say how the others may be given.
        "keyword_separator" | "positional_separator" => {
            need = Need::Optional;
            name = Some(plan.text(inner));
        }
        "default_parameter" | "typed_default_parameter" => need = Need::Optional,
        "comment" => return None,
        _ => name = name.or(Some(plan.text(inner))),
    }
    Some(Param {
        name: name.unwrap_or_default().into(),
        ty: plan.tokens_of(node, "type"),
        default: plan.tokens_of(node, "value"),
        need,
    })
}

/// The shape of a class: its bases, and what its body assigns.
pub(super) fn class(plan: &Plan<'_>, node: Node<'_>) -> Shape {
    let mut shape = Shape { form: Form::Record, ..Shape::default() };
    shape.visibility = visibility(plan.field(node, "name").unwrap_or_default());
    shape.head = plan.tokens_but(node, &["name", "body"], APART);
    let Some(body) = node.child_by_field_name("body") else { return shape };
    let assignments = named_children(body).filter(|child| child.kind() == "expression_statement");
    for statement in assignments {
        let Some(assignment) = statement.named_child(0).filter(|n| n.kind() == "assignment") else {
            continue;
        };
        let Some(left) = plan.field(assignment, "left") else { continue };
        let value = plan.tokens_of(assignment, "right");
        shape.members.push(Member {
            name: left.into(),
            ty: format!("{} = {value}", plan.tokens_of(assignment, "type")).into(),
            need: if value.is_empty() { Need::Required } else { Need::Optional },
            visibility: visibility(left),
        });
    }
    shape
}

/// The shape of `NAME = …`.
pub(super) fn value(plan: &Plan<'_>, assignment: Node<'_>) -> Shape {
    Shape {
        form: Form::Value,
        head: UNTYPED.into(),
        visibility: visibility(plan.field(assignment, "left").unwrap_or_default()),
        result: plan.tokens_of(assignment, "type"),
        value: plan.tokens_of(assignment, "right"),
        ..Shape::default()
    }
}

/// A leading underscore says that a name is not for others.
fn visibility(name: &str) -> u8 {
    let is_private = name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__"));
    u8::from(!is_private)
}
