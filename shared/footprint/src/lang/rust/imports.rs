//! What Rust's `use`, `extern crate` and `mod x;` bind.

use tree_sitter::Node;

use super::super::work_off;
use crate::{
    plan::{Plan, children, named_children},
    reference::{Import, Source},
};

/// Notes what an import binds.
pub(super) fn note(plan: &mut Plan<'_>, node: Node<'_>) {
    match node.kind() {
        "extern_crate_declaration" => extern_crate(plan, node),
        "use_declaration" => {
            let inline = inline_modules(plan, node);
            let is_public = children(node).any(|child| child.kind() == "visibility_modifier");
            let before = plan.imports.passed_on.clone();
            if let Some(argument) = node.child_by_field_name("argument") {
                use_tree(plan, argument, &inline);
            }
            if !is_public {
                plan.imports.passed_on = before;
            }
        }
        _ => {}
    }
}

fn extern_crate(plan: &mut Plan<'_>, node: Node<'_>) {
    let Some(name) = plan.field(node, "name") else { return };
    let alias = plan.field(node, "alias").unwrap_or(name);
    let import = Import { source: Source::Package(name.into()), name: None };
    plan.imports_mut().names.insert(alias.into(), import);
}

/// The modules within the file that a node is in, outermost first.
fn inline_modules<'s>(plan: &Plan<'s>, node: Node<'_>) -> Vec<&'s str> {
    let mut modules = Vec::new();
    let mut at = node.parent();
    while let Some(node) = at {
        modules.extend(plan.field(node, "name").filter(|_| node.kind() == "mod_item"));
        at = node.parent();
    }
    modules.reverse();
    modules
}

/// One tree of a `use`, with the path that its names begin with.
fn use_tree(plan: &mut Plan<'_>, root: Node<'_>, inline: &[&str]) {
    work_off((root, Vec::new()), |(node, before), todo| match node.kind() {
        "use_list" => todo.extend(named_children(node).map(|child| (child, before.clone()))),
        "scoped_use_list" => {
            let before = extended(plan, before, node.child_by_field_name("path"));
            todo.extend(node.child_by_field_name("list").map(|list| (list, before)));
        }
        "use_as_clause" => {
            let path = extended(plan, before, node.child_by_field_name("path"));
            bind(plan, path, node.child_by_field_name("alias"), inline);
        }
        "use_wildcard" => {
            let path = extended(plan, before, node.named_child(0));
            if let Some(source) = source(&path, inline) {
                plan.imports_mut().globs.push(source);
            }
        }
        "identifier" | "scoped_identifier" | "self" | "crate" | "super" => {
            let path = extended(plan, before, Some(node));
            bind(plan, path, None, inline);
        }
        _ => {}
    });
}

fn extended<'s>(plan: &Plan<'s>, mut before: Vec<&'s str>, path: Option<Node<'_>>) -> Vec<&'s str> {
    let text = path.map(|path| plan.text(path)).unwrap_or_default();
    before.extend(text.split("::").map(str::trim).filter(|part| !part.is_empty()));
    before
}

/// Binds the last name of a path; `a::{self}` binds `a`.
fn bind(plan: &mut Plan<'_>, mut path: Vec<&str>, alias: Option<Node<'_>>, inline: &[&str]) {
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let Some((&name, before)) = path.split_last() else { return };
    let local = alias.map_or(name, |alias| plan.text(alias));
    if local == "_" {
        return;
    }
    let import = match source(before, inline) {
        Some(source) => Import { source, name: Some(name.into()) },
        None => match source(&path, inline) {
            Some(source) => Import { source, name: None },
            None => return,
        },
    };
    plan.imports_mut().names.insert(local.into(), import);
    if inline.is_empty() {
        plan.imports_mut().passed_on.insert(local.into());
    }
}

/// Where a path starts, and the rest; `None` for no path. `inline` are the modules within the file that it is in.
fn source(path: &[&str], inline: &[&str]) -> Option<Source> {
    let (first, rest) = path.split_first()?;
    let levels = path.iter().take_while(|part| **part == "super").count();
    let below = |kept: usize, rest: &[&str]| -> Box<str> {
        let kept = inline.get(..kept).unwrap_or_default();
        [kept, rest].concat().join("/").into()
    };
    Some(match *first {
        "crate" => Source::FromCrate(rest.join("/").into()),
        "self" => Source::Above(0, below(inline.len(), rest)),
        "super" => {
            let rest = path.get(levels..).unwrap_or_default();
            let kept = inline.len().saturating_sub(levels);
            Source::Above(levels.saturating_sub(inline.len()), below(kept, rest))
        }
        _ => Source::Package(path.join("/").into()),
    })
}
