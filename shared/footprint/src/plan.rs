//! The plan of a file: which nodes of its tree belong to which unit. Languages write it, `walk` follows it.
//!
//! A plan holds fragments (a unit may have several) and tags on nodes. A node without a tag belongs to whatever
//! its parent belongs to; the root belongs to the code outside symbols, fragment [`MODULE`].
//!
//! Never reads tokens or decides about hashes.

use std::collections::HashMap;

use tree_sitter::Node;
use zit_model::resource::Part;

use crate::{
    reference::Imports,
    shape::Shape,
    unit::{Fragment, Repeat},
};

/// The fragment of the code outside symbols.
pub(crate) const MODULE: usize = 0;

/// Longest unit name kept, in bytes; longer ones are cut. Source: ours; a resource has at most 4,096 bytes.
const MAX_NAME: usize = 512;

/// In how many rows at the head of a file a comment may be its licence.
pub(crate) const LICENCE_ROWS: usize = 3;

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

/// What those who implement a container must do about a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Nothing.
    #[default]
    Free,
    /// They may have it, and then it must be as declared.
    Provided,
    /// They must have it.
    Required,
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
    pub tags: HashMap<usize, Tag, foldhash::fast::RandomState>,
    /// What the file's imports bind.
    pub imports: Imports,
    /// How often the imports were added to.
    pub n_noted: usize,
}

/// A unit about to be planned.
pub(crate) struct Item {
    /// The unit's name, `Type::method` where it has a container.
    pub unit: String,
    /// The identifier by which other code mentions it.
    pub name: String,
    /// The type that it is a member of.
    pub container: Option<String>,
    /// The modules within the file that it is in, with `/` between them.
    pub inline: String,
    /// What becomes of a second unit of the name.
    pub repeat: Repeat,
    /// What those who implement its container must do about it.
    pub role: Role,
    /// What those who use it depend on.
    pub shape: Shape,
}

impl Item {
    /// A unit of its own.
    pub(crate) fn new(name: &str, repeat: Repeat, shape: Shape) -> Self {
        let (unit, name) = (name.to_owned(), name.to_owned());
        let inline = String::new();
        Self { unit, name, container: None, inline, repeat, role: Role::Free, shape }
    }

    /// A unit inside a type.
    pub(crate) fn member(container: &str, name: &str, repeat: Repeat, shape: Shape) -> Self {
        let unit = format!("{container}::{name}");
        let (name, container) = (name.to_owned(), Some(container.to_owned()));
        let inline = String::new();
        Self { unit, name, container, inline, repeat, role: Role::Free, shape }
    }
}

impl<'s> Plan<'s> {
    /// A plan in which everything is code outside symbols.
    pub(crate) fn new(source: &'s str) -> Self {
        let module = Fragment::new(Part::Module, None, Repeat::Merge);
        Self {
            source,
            fragments: vec![module],
            tags: HashMap::default(),
            imports: Imports::default(),
            n_noted: 0,
        }
    }

    /// The imports, to add to them.
    pub(crate) fn imports_mut(&mut self) -> &mut Imports {
        self.n_noted += 1;
        &mut self.imports
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
        let mut name = item.unit;
        name.truncate(name.floor_char_boundary(MAX_NAME));
        let mut fragment = Fragment::new(Part::Unit(name), Some(item.name), item.repeat);
        fragment.container = item.container;
        fragment.inline = item.inline;
        fragment.role = item.role;
        fragment.shape = item.shape;
        self.push(node, fragment)
    }

    /// The tokens of a node, comments left out, with spaces between them.
    pub(crate) fn tokens(&self, node: Node<'_>) -> Box<str> {
        let mut tokens = String::new();
        self.add_tokens(&mut tokens, node);
        tokens.into()
    }

    /// The tokens of a node's field; none without.
    pub(crate) fn tokens_of(&self, node: Node<'_>, field: &str) -> Box<str> {
        node.child_by_field_name(field).map(|child| self.tokens(child)).unwrap_or_default()
    }

    /// The tokens of a node's children but those in some fields and of some kinds.
    pub(crate) fn tokens_but(&self, node: Node<'_>, fields: &[&str], kinds: &[&str]) -> Box<str> {
        let mut tokens = String::new();
        let mut cursor = node.walk();
        let mut more = cursor.goto_first_child();
        while more {
            let child = cursor.node();
            let apart = cursor.field_name().is_some_and(|name| fields.contains(&name))
                || kinds.contains(&child.kind());
            if !apart {
                self.add_tokens(&mut tokens, child);
            }
            more = cursor.goto_next_sibling();
        }
        tokens.into()
    }

    fn add_tokens(&self, tokens: &mut String, node: Node<'_>) {
        let mut add = |text: &str| {
            if !tokens.is_empty() && !text.is_empty() {
                tokens.push(' ');
            }
            tokens.push_str(text);
        };
        let mut cursor = node.walk();
        let mut depth = 0_usize;
        loop {
            let at = cursor.node();
            let is_leaf = at.child_count() == 0;
            if is_leaf && !at.is_extra() {
                add(self.text(at));
            }
            if !is_leaf && cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while depth > 0 && !cursor.goto_next_sibling() {
                cursor.goto_parent();
                depth -= 1;
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Gives a fragment tokens that stand elsewhere: those of the declaration it is one part of.
    pub(crate) fn prefix(&mut self, fragment: usize, token: &str, shown: &str) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.interface.extend(token.bytes().chain([0]));
            fragment.signature.push_str(shown);
            fragment.signature.push(' ');
        }
    }

    /// Makes something else part of a constant's value.
    pub(crate) fn value_depends_on(&mut self, fragment: usize, what: &str) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.shape.value = format!("{} {what}", fragment.shape.value).into();
        }
    }

    /// Gives the unit of a fragment another name besides.
    pub(crate) fn alias(&mut self, fragment: usize, name: String) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.aliases.push(name);
        }
    }

    /// Makes the unit of a fragment what its module gives to those who import no name.
    pub(crate) fn is_default(&mut self, fragment: usize) {
        if let Some(fragment) = self.fragments.get_mut(fragment) {
            fragment.is_default = true;
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
        node.start_position().row < LICENCE_ROWS
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

/// A node's children.
pub(crate) fn children(node: Node<'_>) -> std::vec::IntoIter<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect::<Vec<_>>().into_iter()
}

/// A node's named children.
pub(crate) fn named_children(node: Node<'_>) -> std::vec::IntoIter<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect::<Vec<_>>().into_iter()
}

/// A node's named children in a field.
pub(crate) fn children_by_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor).filter(Node::is_named).collect()
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
