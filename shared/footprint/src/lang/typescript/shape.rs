//! The shapes of TypeScript's declarations, and of JavaScript's.

use tree_sitter::Node;

use crate::{
    plan::{Plan, children, named_children},
    shape::{Form, Member, Need, Param, Shape},
};

const APART: &[&str] = &["comment", "decorator", ";", ","];

/// Ends the head of what may have no types written.
const UNTYPED: &str = "?";

/// The shape of a declaration, without what stands around it: `export`.
pub(super) fn of(plan: &Plan<'_>, node: Node<'_>) -> Shape {
    let mut shape = Shape::default();
    match node.kind() {
        "function_declaration"
        | "generator_function_declaration"
        | "function_signature"
        | "function_expression"
        | "generator_function"
        | "arrow_function"
        | "method_definition"
        | "method_signature"
        | "abstract_method_signature" => function(plan, node, &mut shape),
        "class_declaration" | "abstract_class_declaration" | "class" => {
            shape.form = Form::Record;
            shape.head = plan.tokens_but(node, &["name", "body"], APART);
            shape.members = body(node).filter_map(|child| field(plan, child)).collect();
        }
        "interface_declaration" => {
            shape.form = Form::Interface;
            shape.head = plan.tokens_but(node, &["name", "body"], APART);
            shape.members = body(node).filter_map(|child| signature(plan, child)).collect();
        }
        "enum_declaration" => {
            shape.form = Form::Variants;
            shape.head = plan.tokens_but(node, &["name", "body"], APART);
            shape.members = body(node).filter_map(|child| variant(plan, child)).collect();
        }
        "type_alias_declaration" => {
            shape.head = plan.tokens_but(node, &["name", "value"], APART);
            alias(plan, node, &mut shape);
        }
        "variable_declarator" => declarator(plan, node, &mut shape),
        _ => {}
    }
    shape
}

fn body(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    node.child_by_field_name("body").into_iter().flat_map(named_children)
}

/// A class's `private` and `protected`, and names that begin with `#`.
fn visibility(plan: &Plan<'_>, node: Node<'_>) -> u8 {
    let modifier = children(node).find(|child| child.kind() == "accessibility_modifier");
    match modifier.map(|node| plan.text(node)) {
        Some("private") => 0,
        Some("protected") => 1,
        _ if plan.field(node, "name").is_some_and(|name| name.starts_with('#')) => 0,
        _ => 2,
    }
}

fn function(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    shape.form = Form::Function;
    shape.visibility = visibility(plan, node);
    shape.result = plan.tokens_of(node, "return_type");
    let apart = ["name", "parameters", "parameter", "return_type", "body"];
    let kinds = ["comment", "decorator", ";", "accessibility_modifier", "=>", "function"];
    shape.head = format!("{} {UNTYPED}", plan.tokens_but(node, &apart, &kinds)).into();
    if node.child_by_field_name("parameter").is_some() {
        shape.params.push(Param::default());
    }
    let list = node.child_by_field_name("parameters");
    shape
        .params
        .extend(list.into_iter().flat_map(named_children).filter_map(|c| parameter(plan, c)));
}

fn parameter(plan: &Plan<'_>, node: Node<'_>) -> Option<Param> {
    let pattern = node.child_by_field_name("pattern");
    let default = plan.tokens_of(node, "value");
    let need = match node.kind() {
        "required_parameter" if pattern.is_some_and(|p| p.kind() == "rest_pattern") => {
            Need::Variadic
        }
        "required_parameter" if default.is_empty() => Need::Required,
        "required_parameter" | "optional_parameter" => Need::Optional,
        _ => return None,
    };
    // A parameter that says how it is seen is a field of its class, too.
    let field = children(node).any(|child| child.kind() == "accessibility_modifier");
    let name = if field { pattern.map(|p| plan.text(p)).unwrap_or_default() } else { "" };
    Some(Param { name: name.into(), ty: plan.tokens_of(node, "type"), default, need })
}

fn is_optional(node: Node<'_>) -> Need {
    if children(node).any(|child| child.kind() == "?") { Need::Optional } else { Need::Required }
}

/// A field of a class. Functions among them are units of their own.
fn field(plan: &Plan<'_>, node: Node<'_>) -> Option<Member> {
    if node.kind() != "public_field_definition" {
        return None;
    }
    let is_function = |value: Node<'_>| super::is_function(value);
    if node.child_by_field_name("value").is_some_and(is_function) {
        return None;
    }
    // A class gives values to its own fields, so that nobody has to when one is added.
    Some(Member {
        name: plan.field(node, "name")?.into(),
        ty: plan.tokens_of(node, "type"),
        need: Need::Optional,
        visibility: visibility(plan, node),
    })
}

/// A member of an interface or of an object type.
fn signature(plan: &Plan<'_>, node: Node<'_>) -> Option<Member> {
    match node.kind() {
        "property_signature" | "method_signature" => Some(Member {
            name: plan.field(node, "name")?.into(),
            ty: plan.tokens_but(node, &["name"], APART),
            need: is_optional(node),
            visibility: 2,
        }),
        "call_signature" | "construct_signature" | "index_signature" => {
            Some(Member { name: plan.tokens(node), ..Member::default() })
        }
        _ => None,
    }
}

fn variant(plan: &Plan<'_>, node: Node<'_>) -> Option<Member> {
    match node.kind() {
        "enum_assignment" => Some(Member {
            name: plan.field(node, "name")?.into(),
            ty: plan.tokens_of(node, "value"),
            ..Member::default()
        }),
        "comment" => None,
        _ => Some(Member { name: plan.text(node).into(), ..Member::default() }),
    }
}

/// What stands for an object has its members; what stands for one of several has those.
fn alias(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    let Some(value) = node.child_by_field_name("value") else { return };
    if value.kind() == "object_type" {
        shape.form = Form::Interface;
        shape.members = named_children(value).filter_map(|c| signature(plan, c)).collect();
    } else {
        shape.form = Form::Alias;
        shape.result = plan.tokens(value);
    }
}

/// A constant that holds a function is that function.
fn declarator(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    let value = node.child_by_field_name("value");
    if let Some(function_value) = value.filter(|value| super::is_function(*value)) {
        function(plan, function_value, shape);
        return;
    }
    shape.form = Form::Value;
    shape.head = UNTYPED.into();
    shape.result = plan.tokens_of(node, "type");
    shape.value = plan.tokens_of(node, "value");
}
