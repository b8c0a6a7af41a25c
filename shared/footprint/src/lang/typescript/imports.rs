//! What TypeScript's imports bind, and JavaScript's `require`.

use tree_sitter::Node;

use crate::{
    plan::{Plan, named_children},
    reference::{Import, Source},
};

/// Notes what an import binds, or a declarator that requires a module.
pub(super) fn note(plan: &mut Plan<'_>, node: Node<'_>) {
    match node.kind() {
        "import_statement" => statement(plan, node),
        "export_statement" => passed_on(plan, node),
        "variable_declarator" => require(plan, node),
        _ => {}
    }
}

fn statement(plan: &mut Plan<'_>, node: Node<'_>) {
    if let Some(clause) = named_children(node).find(|c| c.kind() == "import_require_clause") {
        let Some(source) = source(plan, clause.child_by_field_name("source")) else { return };
        if let Some(name) = clause.named_child(0) {
            bind(plan, plan.text(name), source, Some("default"));
        }
        return;
    }
    let Some(source) = source(plan, node.child_by_field_name("source")) else { return };
    let clause = named_children(node).find(|child| child.kind() == "import_clause");
    for child in clause.into_iter().flat_map(named_children) {
        match child.kind() {
            "identifier" => bind(plan, plan.text(child), source.clone(), Some("default")),
            "namespace_import" => {
                if let Some(name) = child.named_child(0) {
                    bind(plan, plan.text(name), source.clone(), None);
                }
            }
            "named_imports" => named(plan, child, &source),
            _ => {}
        }
    }
}

/// `export { a as b } from './m'` passes on `b`.
fn passed_on(plan: &mut Plan<'_>, node: Node<'_>) {
    for clause in named_children(node).filter(|child| child.kind() == "export_clause") {
        for specifier in named_children(clause) {
            let name = plan.field(specifier, "alias").or_else(|| plan.field(specifier, "name"));
            plan.imports_mut().passed_on.extend(name.map(Into::into));
        }
    }
}

fn named(plan: &mut Plan<'_>, list: Node<'_>, source: &Source) {
    for specifier in named_children(list).filter(|child| child.kind() == "import_specifier") {
        let Some(name) = plan.field(specifier, "name") else { continue };
        let local = plan.field(specifier, "alias").unwrap_or(name);
        bind(plan, local, source.clone(), Some(name));
    }
}

/// `const x = require('./m')` and `const { a, b: c } = require('./m')`.
fn require(plan: &mut Plan<'_>, declarator: Node<'_>) {
    let Some(call) = declarator.child_by_field_name("value") else { return };
    if call.kind() != "call_expression" || plan.field(call, "function") != Some("require") {
        return;
    }
    let argument = call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    let (Some(source), Some(name)) =
        (source(plan, argument), declarator.child_by_field_name("name"))
    else {
        return;
    };
    if name.kind() == "identifier" {
        return bind(plan, plan.text(name), source, None);
    }
    for child in named_children(name) {
        match child.kind() {
            "shorthand_property_identifier_pattern" => {
                let name = plan.text(child);
                bind(plan, name, source.clone(), Some(name));
            }
            "pair_pattern" => {
                if let (Some(name), Some(local)) =
                    (plan.field(child, "key"), plan.field(child, "value"))
                {
                    bind(plan, local, source.clone(), Some(name));
                }
            }
            _ => {}
        }
    }
}

fn bind(plan: &mut Plan<'_>, local: &str, source: Source, name: Option<&str>) {
    let import = Import { source, name: name.map(Into::into) };
    plan.imports_mut().names.insert(local.into(), import);
}

/// The module that a string names.
pub(super) fn source(plan: &Plan<'_>, string: Option<Node<'_>>) -> Option<Source> {
    let string = string.filter(|node| node.kind() == "string")?;
    let path = plan.text(string).trim_matches(['"', '\'', '`']);
    let relative = path == "." || path == ".." || path.starts_with("./") || path.starts_with("../");
    Some(if relative { Source::FromFolder(path.into()) } else { Source::Package(path.into()) })
}
