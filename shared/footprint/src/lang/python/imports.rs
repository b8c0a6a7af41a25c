//! What Python's imports bind, at the top level or anywhere else.

use tree_sitter::Node;

use crate::{
    plan::{Plan, children_by_field, named_children},
    reference::{Import, Source},
};

/// Notes what an import binds.
pub(super) fn note(plan: &mut Plan<'_>, node: Node<'_>) {
    match node.kind() {
        "import_statement" => {
            for name in children_by_field(node, "name") {
                import(plan, name);
            }
        }
        "import_from_statement" => from(plan, node),
        _ => {}
    }
}

/// `import a.b` binds `a`; `import a.b as c` binds `c` to `a.b`.
fn import(plan: &mut Plan<'_>, name: Node<'_>) {
    let alias = plan.field(name, "alias");
    let path = plan.field(name, "name").unwrap_or_else(|| plan.text(name)).replace('.', "/");
    let first = path.split('/').next().unwrap_or_default().to_owned();
    let (local, path) = alias.map_or((first.as_str(), first.as_str()), |alias| (alias, &path));
    let import = Import { source: Source::Package(path.into()), name: None };
    plan.imports_mut().names.insert(local.into(), import);
    plan.imports_mut().passed_on.insert(local.into());
}

fn from(plan: &mut Plan<'_>, node: Node<'_>) {
    let Some(module) = node.child_by_field_name("module_name") else { return };
    let source = source(plan.text(module));
    if named_children(node).any(|child| child.kind() == "wildcard_import") {
        plan.imports_mut().globs.push(source);
        return;
    }
    for name in children_by_field(node, "name") {
        let original = plan.field(name, "name").unwrap_or_else(|| plan.text(name));
        let local = plan.field(name, "alias").unwrap_or(original);
        let import = Import { source: source.clone(), name: Some(original.into()) };
        plan.imports_mut().names.insert(local.into(), import);
        plan.imports_mut().passed_on.insert(local.into());
    }
}

/// A module as written: `.a` is one level above the file's own, `a.b` starts at some root.
fn source(module: &str) -> Source {
    let module: String = module.split_whitespace().collect();
    let levels = module.bytes().take_while(|byte| *byte == b'.').count();
    let path = module.get(levels..).unwrap_or_default().replace('.', "/").into();
    if levels == 0 { Source::Package(path) } else { Source::Above(levels, path) }
}
