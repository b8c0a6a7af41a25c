//! What languages of keys and values have in common: a unit for each key, down to three of them.

use zit_model::resource::Part;

use crate::unit::{Fragment, Order, Repeat, Units, assemble};

/// How many keys a unit's name has at most. Source: ours; `workspace.dependencies.serde` has three.
const MAX_KEYS: usize = 3;

/// A value that may have keys.
pub(super) trait Keys {
    /// What it is.
    fn node(&self) -> Node<'_, Self>;
}

/// A value.
pub(super) enum Node<'a, T: ?Sized> {
    /// It has keys.
    Keys(Vec<(&'a str, &'a T)>),
    /// It has none, and this text.
    Leaf(String),
}

/// The units of a file whose value is `root`.
pub(super) fn parts<T: Keys>(root: &T) -> Units {
    let mut fragments = Vec::new();
    super::work_off((Vec::new(), root), |(path, value): (Vec<&str>, &T), todo| {
        match value.node() {
            Node::Keys(keys) if path.len() < MAX_KEYS => {
                todo.extend(keys.into_iter().map(|(key, value)| {
                    (path.iter().copied().chain([key]).collect::<Vec<_>>(), value)
                }));
            }
            Node::Keys(_) => fragments.push(fragment(&path, text(value))),
            Node::Leaf(text) => fragments.push(fragment(&path, text)),
        }
    });
    assemble(fragments, Order::Free)
}

fn fragment<'s>(path: &[&str], text: String) -> Fragment<'s> {
    let name: String = path.join(".").chars().take(200).collect();
    let part = if path.is_empty() { Part::Module } else { Part::Unit(name) };
    let mut fragment = Fragment::new(part, None, Repeat::Number);
    fragment.body = text.into_bytes();
    fragment.body.push(0);
    fragment
}

/// All that is below a value, in the order of its keys.
fn text<T: Keys>(root: &T) -> String {
    let mut lines = Vec::new();
    super::work_off((String::new(), root), |(path, value): (String, &T), todo| {
        match value.node() {
            Node::Keys(keys) => {
                todo.extend(keys.into_iter().map(|(key, value)| (format!("{path}\0{key}"), value)));
            }
            Node::Leaf(text) => lines.push(format!("{path}\0{text}")),
        }
    });
    lines.sort();
    lines.join("\n")
}
