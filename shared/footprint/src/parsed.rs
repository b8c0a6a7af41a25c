//! What is kept of a version that was taken apart, so that the next version of its file costs what differs.
//!
//! A [`Parsed`] has the text, its syntax tree, and a [`Record`] of each unit without units inside: what walking it gave. The
//! parser shares the nodes that an edit leaves alone between both trees, so that a node of the old tree in the new one says
//! that everything inside is as it was. Forgetting one loses nothing but time.
//!
//! Invariant: with one or without, a version is taken apart alike.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tree_sitter::Tree;

use crate::{edit::edits, mention::Mentions};

/// Bytes that a node of a tree takes, about. A leaf is eight bytes, a node with children a hundred.
const NODE: usize = 48;

/// Bytes that a record takes beside its text.
const RECORD: usize = 256;

/// One version of a source file with its syntax tree, from which its next version is taken apart faster.
pub struct Parsed {
    pub(crate) source: Box<str>,
    /// Invariant: as long as it is kept no other node has the id of one of its nodes.
    pub(crate) tree: Tree,
    pub(crate) records: Records,
}

/// Records by the id of the unit's node.
pub(crate) type Records = HashMap<usize, Arc<Record>, foldhash::fast::RandomState>;

/// What walking a unit's node gave, and what it depended on beside the node.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// What it depended on.
    pub around: Around,
    /// Tokens outside function bodies.
    pub interface: Box<[u8]>,
    /// Tokens inside function bodies.
    pub body: Box<[u8]>,
    /// Tokens of documentation inside the node.
    pub docs: Box<[u8]>,
    /// What it added to the declaration.
    pub signature: Box<str>,
    /// What it mentions.
    pub mentions: Mentions,
    /// Whether a comma after it would stand between items.
    pub after_item: bool,
    /// Whether it ends with a `.`.
    pub after_dot: bool,
}

/// What walking a unit's node depends on beside the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// The node's kind, and the field of its parent that it is in.
    pub place: (u16, u16),
    /// Its first row, up to where a comment is no licence any more.
    pub row: usize,
    /// The names that are bound around it, with types.
    pub scopes: String,
    /// How many bytes its interface and declaration had before.
    pub prefix: (usize, usize),
}

impl Parsed {
    /// How much memory it takes, about, in bytes. What it shares with others is counted for each.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        let nodes = self.tree.root_node().descendant_count() * NODE;
        // A unit's tokens are about its text once more.
        self.source.len() * 2 + nodes + self.records.len() * RECORD
    }

    /// The tree as it would be for `source`, marked where it is to be read again; `None` where too much differs.
    pub(crate) fn edited(&self, source: &str) -> Option<Tree> {
        let edits = edits(&self.source, source)?;
        let mut tree = self.tree.clone();
        for edit in &edits {
            tree.edit(edit);
        }
        Some(tree)
    }
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_bytes, n_units) = (self.source.len(), self.records.len());
        f.debug_struct("Parsed")
            .field("bytes", &n_bytes)
            .field("units", &n_units)
            .finish_non_exhaustive()
    }
}
