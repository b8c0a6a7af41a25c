//! The shapes of Rust's items.

use tree_sitter::Node;

use crate::{
    plan::{Plan, children, named_children},
    shape::{Form, Member, Need, Param, Shape},
};

/// What an item says that its own lists do not.
const APART: &[&str] =
    &["visibility_modifier", "attribute_item", "line_comment", "block_comment", ";", ","];

/// The shape of an item, or of one part of it: an `impl` block's header.
pub(super) fn of(plan: &Plan<'_>, node: Node<'_>) -> Shape {
    let mut shape = Shape { visibility: visibility(plan, node), ..Shape::default() };
    match node.kind() {
        "function_item" | "function_signature_item" => function(plan, node, &mut shape),
        "struct_item" | "union_item" => record(plan, node, &mut shape),
        "enum_item" => variants(plan, node, &mut shape),
        "trait_item" => {
            shape.form = Form::Interface;
            shape.head = plan.tokens_but(node, &["name", "body"], APART);
        }
        "type_item" | "associated_type" => {
            shape.form = Form::Alias;
            shape.result = plan.tokens_of(node, "type");
            shape.head = plan.tokens_but(node, &["name", "type"], APART);
        }
        "const_item" | "static_item" => {
            shape.form = Form::Value;
            shape.result = plan.tokens_of(node, "type");
            shape.value = plan.tokens_of(node, "value");
            shape.head = plan.tokens_but(node, &["name", "type", "value"], APART);
        }
        "impl_item" => {
            shape.form = Form::Record;
            let header = plan.tokens_but(node, &["body"], APART);
            shape.members.push(Member { name: header, need: Need::Optional, ..Member::default() });
        }
        "macro_definition" => shape.value = plan.tokens_but(node, &["name"], APART),
        _ => {}
    }
    shape
}

/// From private to `pub`.
fn visibility(plan: &Plan<'_>, node: Node<'_>) -> u8 {
    let modifier = children(node).find(|child| child.kind() == "visibility_modifier");
    match modifier.map(|node| plan.tokens(node)).as_deref() {
        None | Some("pub ( self )") => 0,
        Some("pub") => 3,
        Some("pub ( crate )") => 2,
        Some(_) => 1,
    }
}

fn function(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    shape.form = Form::Function;
    shape.result = plan.tokens_of(node, "return_type");
    shape.head = plan.tokens_but(node, &["name", "parameters", "return_type", "body"], APART);
    let Some(list) = node.child_by_field_name("parameters") else { return };
    for parameter in named_children(list) {
        let ty = match parameter.kind() {
            "parameter" => plan.tokens_of(parameter, "type"),
            "self_parameter" | "variadic_parameter" => plan.tokens(parameter),
            _ => continue,
        };
        shape.params.push(Param { ty, ..Param::default() });
    }
}

fn record(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    shape.form = Form::Record;
    shape.head = plan.tokens_but(node, &["name", "body"], APART);
    let Some(body) = node.child_by_field_name("body") else { return };
    shape.members = fields(plan, body);
}

fn fields(plan: &Plan<'_>, body: Node<'_>) -> Vec<Member> {
    if body.kind() == "field_declaration_list" {
        let fields = named_children(body).filter(|child| child.kind() == "field_declaration");
        return fields
            .map(|field| Member {
                name: plan.field(field, "name").unwrap_or_default().into(),
                ty: plan.tokens_of(field, "type"),
                visibility: visibility(plan, field),
                ..Member::default()
            })
            .collect();
    }
    let mut members = Vec::new();
    let mut seen = 0;
    for child in named_children(body) {
        match child.kind() {
            "visibility_modifier" => seen = if &*plan.tokens(child) == "pub" { 3 } else { 1 },
            "attribute_item" | "line_comment" | "block_comment" => {}
            _ => {
                let name = members.len().to_string().into();
                let (ty, visibility) = (plan.tokens(child), std::mem::take(&mut seen));
                members.push(Member { name, ty, visibility, ..Member::default() });
            }
        }
    }
    members
}

fn variants(plan: &Plan<'_>, node: Node<'_>, shape: &mut Shape) {
    shape.form = Form::Variants;
    shape.head = plan.tokens_but(node, &["name", "body"], APART);
    let Some(body) = node.child_by_field_name("body") else { return };
    let variants = named_children(body).filter(|child| child.kind() == "enum_variant");
    shape.members = variants
        .map(|variant| Member {
            name: plan.field(variant, "name").unwrap_or_default().into(),
            ty: plan.tokens_but(variant, &["name"], APART),
            ..Member::default()
        })
        .collect();
}
