//! Trees: which paths differ between two of them, and what lies at one path.
//!
//! The list is that of `git diff-tree -r --no-renames`, in the same order. Its length is bounded, since a few small
//! trees that name each other can stand for billions of paths.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use zit_model::Oid;

use crate::error::StoreError;
use crate::objects::{Kind, Objects, broken};

/// How many differing paths are listed at most.
pub const MAX_TREE_CHANGES: usize = 500_000;

/// What a tree says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMode {
    /// A file.
    Regular,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

/// What lies at a path; never a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How it is checked out.
    pub mode: EntryMode,
    /// The blob, or a submodule's commit.
    pub oid: Oid,
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// The path from the root, with slashes.
    pub path: BString,
    /// What was there before; `None` when the path is new.
    pub old: Option<Entry>,
    /// What is there now; `None` when the path is gone.
    pub new: Option<Entry>,
}

/// An entry of one tree object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Tree(Oid),
    Leaf(Entry),
}

/// Two trees at one path that are still to be compared.
struct Pair {
    /// Empty, or the path with a slash at its end.
    prefix: BString,
    old: Option<Oid>,
    new: Option<Oid>,
}

impl Objects {
    /// The paths that differ between two trees, sorted by path. Every path of `new` when there is no `old`.
    ///
    /// # Errors
    /// [`StoreError`] when a tree is missing or does not decode, and past [`MAX_TREE_CHANGES`].
    pub fn tree_changes(&self, old: Option<Oid>, new: Oid) -> Result<Vec<TreeChange>, StoreError> {
        let mut changes = Vec::new();
        let mut pairs = vec![Pair { prefix: BString::default(), old, new: Some(new) }];
        while let Some(pair) = pairs.pop() {
            if pair.old == pair.new {
                continue;
            }
            self.compare(&pair, &mut pairs, &mut changes)?;
            if changes.len() > MAX_TREE_CHANGES || pairs.len() > MAX_TREE_CHANGES {
                return Err(StoreError::TooManyChanges(MAX_TREE_CHANGES));
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// What lies at `path`; `None` when nothing does, or a folder.
    ///
    /// # Errors
    /// [`StoreError`] when a tree on the way is missing or does not decode.
    pub fn entry_at(&self, tree: Oid, path: &BStr) -> Result<Option<Entry>, StoreError> {
        let mut at = tree;
        let mut names = path.split_str("/").peekable();
        while let Some(name) = names.next() {
            match self.nodes(at)?.remove(name.as_bstr()) {
                Some(Node::Tree(oid)) if names.peek().is_some() => at = oid,
                Some(Node::Leaf(entry)) if names.peek().is_none() => return Ok(Some(entry)),
                Some(Node::Tree(_) | Node::Leaf(_)) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Compares one level; trees go onto `pairs`.
    fn compare(
        &self,
        pair: &Pair,
        pairs: &mut Vec<Pair>,
        changes: &mut Vec<TreeChange>,
    ) -> Result<(), StoreError> {
        let mut old = pair.old.map(|oid| self.nodes(oid)).transpose()?.unwrap_or_default();
        let new = pair.new.map(|oid| self.nodes(oid)).transpose()?.unwrap_or_default();
        let mut differ = |name: &BStr, was: Option<Node>, is: Option<Node>| {
            if was == is {
                return;
            }
            let mut path = pair.prefix.clone();
            path.extend_from_slice(name);
            let (old, new) = (was.and_then(Node::leaf), is.and_then(Node::leaf));
            let (old_tree, new_tree) = (was.and_then(Node::tree), is.and_then(Node::tree));
            if old_tree.is_some() || new_tree.is_some() {
                let mut prefix = path.clone();
                prefix.push(b'/');
                pairs.push(Pair { prefix, old: old_tree, new: new_tree });
            }
            if old.is_some() || new.is_some() {
                changes.push(TreeChange { path, old, new });
            }
        };
        for (name, node) in new {
            differ(name.as_bstr(), old.remove(&name), Some(node));
        }
        for (name, node) in old {
            differ(name.as_bstr(), Some(node), None);
        }
        Ok(())
    }

    fn nodes(&self, tree: Oid) -> Result<BTreeMap<BString, Node>, StoreError> {
        let bytes = self.structure(tree, Kind::Tree)?;
        let mut nodes = BTreeMap::new();
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, self.kind) {
            let entry = entry.map_err(|error| broken(tree, &error))?;
            let oid = Oid::from_gix(entry.oid.to_owned())
                .ok_or_else(|| broken(tree, &"an entry names the null oid"))?;
            nodes.insert(entry.filename.to_owned(), Node::new(entry.mode.kind(), oid));
        }
        Ok(nodes)
    }
}

impl Node {
    fn new(kind: gix_object::tree::EntryKind, oid: Oid) -> Self {
        use gix_object::tree::EntryKind;
        let leaf = |mode| Self::Leaf(Entry { mode, oid });
        match kind {
            EntryKind::Tree => Self::Tree(oid),
            EntryKind::Blob => leaf(EntryMode::Regular),
            EntryKind::BlobExecutable => leaf(EntryMode::Executable),
            EntryKind::Link => leaf(EntryMode::Symlink),
            EntryKind::Commit => leaf(EntryMode::Submodule),
        }
    }

    fn leaf(self) -> Option<Entry> {
        match self {
            Self::Leaf(entry) => Some(entry),
            Self::Tree(_) => None,
        }
    }

    fn tree(self) -> Option<Oid> {
        match self {
            Self::Tree(oid) => Some(oid),
            Self::Leaf(_) => None,
        }
    }
}
