//! The shapes of Go's declarations.

use tree_sitter::Node;

use crate::{
    plan::{Plan, children_by_field, named_children},
    shape::{Form, Member, Need, Param, Shape},
};

const APART: &[&str] = &["comment"];

/// The shape of a function or method.
pub(super) fn function(plan: &Plan<'_>, node: Node<'_>) -> Shape {
    let mut shape = Shape { form: Form::Function, ..Shape::default() };
    shape.visibility = visibility(plan.field(node, "name").unwrap_or_default());
    let apart = ["name", "receiver", "parameters", "result", "body"];
    shape.head = plan.tokens_but(node, &apart, APART);
    if let Some(receiver) = node.child_by_field_name("receiver") {
        let types = parameters(plan, receiver).into_iter().map(|param| param.ty);
        shape.head = types.fold(String::from(shape.head), |head, ty| head + " " + &ty).into();
    }
    let (params, result) = signature(plan, node);
    shape.params = params;
    shape.result = result;
    shape
}

/// Parameters and result of a function, a method or an interface's member.
fn signature(plan: &Plan<'_>, node: Node<'_>) -> (Vec<Param>, Box<str>) {
    let list = node.child_by_field_name("parameters");
    let params = list.map(|list| parameters(plan, list)).unwrap_or_default();
    let result = match node.child_by_field_name("result") {
        Some(list) if list.kind() == "parameter_list" => {
            let types: Vec<_> = parameters(plan, list).into_iter().map(|param| param.ty).collect();
            types.join(" , ").into()
        }
        Some(ty) => plan.tokens(ty),
        None => "".into(),
    };
    (params, result)
}

/// One parameter for each name; names do not count.
fn parameters(plan: &Plan<'_>, list: Node<'_>) -> Vec<Param> {
    let mut params = Vec::new();
    for declaration in named_children(list) {
        let need = match declaration.kind() {
            "parameter_declaration" => Need::Required,
            "variadic_parameter_declaration" => Need::Variadic,
            _ => continue,
        };
        let names = children_by_field(declaration, "name").len().max(1);
        let param = Param { ty: plan.tokens_of(declaration, "type"), need, ..Param::default() };
        params.extend(std::iter::repeat_n(param, names));
    }
    params
}

/// The shape of one spec of a `type` declaration.
pub(super) fn ty(plan: &Plan<'_>, spec: Node<'_>) -> Shape {
    let mut shape = Shape { form: Form::Alias, ..Shape::default() };
    shape.visibility = visibility(plan.field(spec, "name").unwrap_or_default());
    shape.head = plan.tokens_but(spec, &["name", "type"], APART);
    let Some(ty) = spec.child_by_field_name("type") else { return shape };
    match ty.kind() {
        "struct_type" => {
            shape.form = Form::Record;
            let lists = named_children(ty).filter(|c| c.kind() == "field_declaration_list");
            let fields = lists.flat_map(named_children);
            let fields = fields.filter(|child| child.kind() == "field_declaration");
            shape.members = fields.flat_map(|field| struct_field(plan, field)).collect();
        }
        "interface_type" => {
            shape.form = Form::Interface;
            shape.members = named_children(ty).filter_map(|child| element(plan, child)).collect();
        }
        _ => shape.result = plan.tokens(ty),
    }
    shape
}

/// One member for each name of a field; an embedded type is named by itself.
fn struct_field(plan: &Plan<'_>, field: Node<'_>) -> Vec<Member> {
    let ty = plan.tokens_of(field, "type");
    let names = children_by_field(field, "name");
    let member = |name: &str| Member {
        name: name.into(),
        ty: ty.clone(),
        need: Need::Optional,
        visibility: visibility(name),
    };
    if names.is_empty() {
        let name = ty.rsplit([' ', '.']).next().unwrap_or_default().to_owned();
        return vec![member(&name)];
    }
    names.into_iter().map(|name| member(plan.text(name))).collect()
}

fn element(plan: &Plan<'_>, node: Node<'_>) -> Option<Member> {
    match node.kind() {
        "method_elem" => {
            let name = plan.field(node, "name")?;
            let (params, result) = signature(plan, node);
            let types: Vec<_> = params.iter().map(|p| format!("{:?} {}", p.need, p.ty)).collect();
            let ty = format!("( {} ) {result}", types.join(" , ")).into();
            let visibility = visibility(name);
            Some(Member { name: name.into(), ty, visibility, ..Member::default() })
        }
        "type_elem" => Some(Member { name: plan.tokens(node), ..Member::default() }),
        _ => None,
    }
}

/// The shape of one spec of a `const` or `var` declaration.
pub(super) fn value(plan: &Plan<'_>, spec: Node<'_>) -> Shape {
    Shape {
        form: Form::Value,
        visibility: visibility(plan.field(spec, "name").unwrap_or_default()),
        result: plan.tokens_of(spec, "type"),
        value: plan.tokens_of(spec, "value"),
        ..Shape::default()
    }
}

/// Names that begin in upper case are for other packages.
fn visibility(name: &str) -> u8 {
    u8::from(name.starts_with(char::is_uppercase))
}
