//! The plan of a file: which nodes of its tree belong to which unit. Languages write it, `walk` follows it.
//!
//! A plan holds fragments (a unit may have several) and tags on nodes. A node without a tag belongs to whatever
//! its parent belongs to; the root belongs to the code outside symbols, fragment [`MODULE`].
//!
//! Never reads tokens or decides about hashes.

use std::collections::{BTreeSet, HashMap};

use tree_sitter::Node;
use zit_model::resource::Part;

use crate::unit::{Fragment, Repeat};

/// The fragment of the code outside symbols.
pub(crate) const MODULE: usize = 0;

/// Longest unit name kept, in bytes; longer ones are cut. Source: ours; a resource has at most 4,096 bytes.
const MAX_NAME: usize = 512;

/// What a node is to the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Its tokens belong to this fragment.
    Unit(usize),
    /// Its tokens are documentation of this fragment.
    Docs(usize),
    /// It is the identifier that declares a unit: a token, not a reference.
    Name,
    /// Its own tokens say nothing that its tagged children do not say.
    Glue,
}

/// How a language's documentation is told from its items.
pub(crate) struct Above {
    /// Kinds of comments.
    pub comments: &'static [&'static str],
    /// Kinds of attributes and decorators, which stay attached over blank lines.
    pub attributes: &'static [&'static str],
}

/// The plan of one version of one file.
pub(crate) struct Plan<'s> {
    /// The file's text.
    pub source: &'s str,
    /// Fragments; the first is [`MODULE`].
    pub fragments: Vec<Fragment<'s>>,
    /// Tags by node id.
    pub tags: HashMap<usize, Tag>,
    /// Names bound by imports; their members count as references.
    pub imported: BTreeSet<&'s str>,
}

/// A unit about to be planned.
pub(crate) struct Item {
    /// The unit's name, `Type::method` where it has a container.
    pub name: String,
    /// The identifier by which other code mentions it.
    pub mentioned_as: String,
    /// What becomes of a second unit of the name.
    pub repeat: Repeat,
    /// Whether implementors must have it.
    pub required: bool,
}

impl Item {
    /// A unit that is mentioned by its own name.
    pub(crate) fn new(name: &str, repeat: Repeat) -> Self {
        Self { name: name.to_owned(), mentioned_as: name.to_owned(), repeat, required: false }
    }

    /// A unit inside a type, mentioned by the type's name.
    pub(crate) fn member(container: &str, type_name: &str, name: &str, repeat: Repeat) -> Self {
        let name = format!("{container}::{name}");
        Self { name, mentioned_as: type_name.to_owned(), repeat, required: false }
    }
}

impl<'s> Plan<'s> {
    /// A plan in which everything is code outside symbols.
    pub(crate) fn new(source: &'s str) -> Self {
        let module = Fragment::new(Part::Module, None, Repeat::Merge);
        Self { source, fragments: vec![module], tags: HashMap::new(), imported: BTreeSet::new() }
    }

    /// The text of a node.
    pub(crate) fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a node's field.
    pub(crate) fn field(&self, node: Node<'_>, field: &str) -> Option<&'s str> {
        node.child_by_field_name(field).map(|child| self.text(child))
    }

    /// Makes `node` a fragment of the unit `item`.
    pub(crate) fn unit(&mut self, node: Node<'_>, item: Item) -> usize {
        let mut name = item.name;
        name.truncate(name.floor_char_boundary(MAX_NAME));
        let mut fragment = Fragment::new(Part::Unit(name), Some(item.mentioned_as), item.repeat);
        fragment.required = item.required;
        self.push(node, fragment)
    }

    /// Gives a fragment tokens that stand elsewhere: those of the declaration it is one part of.
    pub(crate) fn prefix(&mut self, fragment: usize, token: &str, shown: &str) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.interface.extend(token.bytes().chain([0]));
            fragment.signature.push_str(shown);
            fragment.signature.push(' ');
        }
    }

    /// Gives the unit of a fragment another name besides.
    pub(crate) fn alias(&mut self, fragment: usize, name: String) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.aliases.push(name);
        }
    }

    /// Makes `node` one of the file's imports.
    pub(crate) fn import(&mut self, node: Node<'_>) -> usize {
        self.push(node, Fragment::new(Part::Imports, None, Repeat::Merge))
    }

    /// Tags a node.
    pub(crate) fn tag(&mut self, node: Node<'_>, tag: Tag) {
        self.tags.insert(node.id(), tag);
    }

    /// Tags the identifier in `field` as the one that declares.
    pub(crate) fn declares(&mut self, node: Node<'_>, field: &str) {
        if let Some(name) = node.child_by_field_name(field) {
            self.tag(name, Tag::Name);
        }
    }

    /// Visits the named children of a container in order. What stands directly above a child is documentation
    /// of the fragment that `visit` answers.
    pub(crate) fn sweep<'t>(
        &mut self,
        container: Node<'t>,
        style: &Above,
        mut visit: impl FnMut(&mut Self, Node<'t>) -> Option<usize>,
    ) {
        let mut above: Vec<Node<'t>> = Vec::new();
        let mut last_row = None;
        let mut cursor = container.walk();
        for child in container.children(&mut cursor).filter(Node::is_named) {
            let is_comment = style.comments.contains(&child.kind());
            if is_comment || style.attributes.contains(&child.kind()) {
                // A comment at the end of a line belongs to what stands on the line.
                if !(is_comment && last_row == Some(child.start_position().row)) {
                    above.push(child);
                }
                continue;
            }
            let fragment = visit(self, child);
            if let Some(fragment) = fragment {
                self.attach(&above, child, fragment, style);
            }
            above.clear();
            last_row = Some(last_line(child));
        }
    }

    fn attach(&mut self, above: &[Node<'_>], item: Node<'_>, fragment: usize, style: &Above) {
        let mut below = item.start_position().row;
        let mut touches = true;
        for &node in above.iter().rev() {
            let is_attribute = style.attributes.contains(&node.kind());
            touches = is_attribute || touches && last_line(node) + 1 >= below;
            if touches && !self.is_licence(node) {
                self.tag(node, Tag::Docs(fragment));
                below = node.start_position().row;
            }
        }
    }

    /// Whether a node is the comment that a file's licence opens with; it belongs to no item.
    fn is_licence(&self, node: Node<'_>) -> bool {
        let text = self.text(node);
        node.start_position().row < 3
            && ["Copyright", "copyright", "SPDX-", "Licensed under"]
                .iter()
                .any(|w| text.contains(w))
    }

    fn push(&mut self, node: Node<'_>, mut fragment: Fragment<'s>) -> usize {
        fragment.lines = Some((line(node.start_position().row), line(last_line(node))));
        self.fragments.push(fragment);
        let index = self.fragments.len() - 1;
        self.tag(node, Tag::Unit(index));
        index
    }
}

/// The row a node ends on; a comment that takes its line's end with it ends on the line before.
fn last_line(node: Node<'_>) -> usize {
    let (start, end) = (node.start_position(), node.end_position());
    if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row }
}

fn line(row: usize) -> u32 {
    u32::try_from(row + 1).unwrap_or(u32::MAX)
}

/// Text on one line, runs of white space as one space.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
