//! The objects of commits that the client lacks, less what it has.
//!
//! A commit's tree is compared with those of all its parents, folder by folder: what is the same at the same path of
//! any parent is there already, or was sent with it. What the trees of commits at the border hold is remembered where
//! it was read, so that a file that moved is not sent again.

use std::collections::{BTreeMap, HashSet};

use bstr::BString;
use gix_object::tree::EntryKind;
use zit_model::Oid;

use super::history::History;
use super::{FetchError, FetchLimits, pack, tag_target};
use crate::error::StoreError;
use crate::objects::{Kind, Objects, broken};

/// An object to send.
struct Found {
    oid: Oid,
    kind: Kind,
    /// `None` for a blob, which is read when it is written.
    data: Option<Vec<u8>>,
}

/// Gathers objects to send.
pub(super) struct Collector<'a> {
    history: History<'a>,
    found: Vec<Found>,
    /// What is in `found`.
    listed: HashSet<Oid>,
    /// What the client has and would otherwise be sent.
    held: HashSet<Oid>,
    max_objects: usize,
    max_bytes: u64,
    /// How many bytes may still be read.
    room: u64,
}

/// A tree that is to be compared with those at the same path of the parents.
struct Folder {
    tree: Oid,
    parents: Vec<Parent>,
}

/// A tree of a parent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Parent {
    tree: Oid,
    /// Whether the client has the parent.
    held: bool,
}

/// What a name in a tree stands for. Submodules are left out: their commits are of other repositories.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    oid: Oid,
    is_tree: bool,
}

impl<'a> Collector<'a> {
    /// `held` are objects that the client has, beside the commits that `history` found it to lack.
    pub(super) fn new(
        history: History<'a>,
        limits: &FetchLimits,
        held: impl Iterator<Item = Oid>,
    ) -> Self {
        Self {
            history,
            found: Vec::new(),
            listed: HashSet::new(),
            held: held.collect(),
            max_objects: limits.max_objects,
            max_bytes: limits.max_bytes,
            room: limits.max_read,
        }
    }

    /// Whether an object is among those to send.
    pub(super) fn sends(&self, oid: Oid) -> bool {
        self.listed.contains(&oid) && !self.held.contains(&oid)
    }

    /// Adds a commit and what its tree holds that its parents' do not. Parents that are to be sent come before it.
    pub(super) fn add_commit(&mut self, commit: Oid) -> Result<(), FetchError> {
        let node = self.history.node(commit)?;
        let mut parents = Vec::with_capacity(node.parents.len());
        for &parent in &node.parents {
            let tree = self.history.node(parent)?.tree;
            if tree == node.tree {
                parents.clear();
                break;
            }
            parents.push(Parent { tree, held: !self.listed.contains(&parent) });
        }
        let is_new = node.parents.is_empty() || !parents.is_empty();
        let data = self.read(commit, Kind::Commit)?;
        self.list(commit, Kind::Commit, Some(data))?;
        if is_new { self.add_tree(node.tree, parents) } else { Ok(()) }
    }

    /// Adds an object that is no commit: a tag with the tags it leads to, a tree with all it holds, or a blob.
    pub(super) fn add_other(&mut self, oid: Oid, kind: Kind) -> Result<(), FetchError> {
        match kind {
            Kind::Tag => self.add_tags(oid),
            Kind::Tree => self.add_tree(oid, Vec::new()),
            Kind::Blob => self.list(oid, Kind::Blob, None),
            Kind::Commit => self.add_commit(oid),
        }
    }

    /// Adds a tag object and those it leads to, but not what they finally point at.
    pub(super) fn add_tags(&mut self, tag: Oid) -> Result<(), FetchError> {
        let mut at = tag;
        while !self.listed.contains(&at) && self.objects().kind(at)? == Some(Kind::Tag) {
            let data = self.read(at, Kind::Tag)?;
            let target = tag_target(at, &data)?;
            self.list(at, Kind::Tag, Some(data))?;
            at = target;
        }
        Ok(())
    }

    /// Writes all that was gathered.
    pub(super) fn into_pack(self) -> Result<Vec<u8>, FetchError> {
        let Self { history, mut found, held, max_bytes, .. } = self;
        found.retain(|object| !held.contains(&object.oid));
        let objects = history.objects;
        let mut n_bytes = 0_u64;
        for object in &found {
            n_bytes += match &object.data {
                Some(data) => u64::try_from(data.len()).unwrap_or(u64::MAX),
                None => size(objects, object.oid)?,
            };
            if n_bytes > max_bytes {
                return Err(FetchError::TooBig("too many bytes to send"));
            }
        }
        let mut writer = pack::Writer::new(objects.kind, found.len());
        for Found { oid, kind, data } in found {
            let data = match data {
                Some(data) => data,
                None => objects.read(oid, kind)?,
            };
            writer.add(kind, &data)?;
        }
        Ok(writer.finish()?)
    }

    fn add_tree(&mut self, tree: Oid, parents: Vec<Parent>) -> Result<(), FetchError> {
        let mut folders = vec![Folder { tree, parents }];
        while let Some(folder) = folders.pop() {
            if !self.listed.contains(&folder.tree) && !self.held.contains(&folder.tree) {
                self.add_folder(&folder, &mut folders)?;
            }
        }
        Ok(())
    }

    /// Adds one tree and the blobs in it; its trees go onto `folders`.
    fn add_folder(&mut self, folder: &Folder, folders: &mut Vec<Folder>) -> Result<(), FetchError> {
        let mut parents = Vec::with_capacity(folder.parents.len());
        for parent in &folder.parents {
            let data = self.read(parent.tree, Kind::Tree)?;
            let entries = entries(parent.tree, &data)?;
            if parent.held {
                self.held.extend(entries.values().map(|entry| entry.oid));
            }
            parents.push((parent.held, entries));
        }
        let data = self.read(folder.tree, Kind::Tree)?;
        for (name, entry) in entries(folder.tree, &data)? {
            let before = || {
                let found = |(held, entries): &(bool, BTreeMap<_, Entry>)| {
                    entries.get(&name).map(|entry| (*held, *entry))
                };
                parents.iter().filter_map(found)
            };
            if before().any(|(_, other)| other == entry) {
                continue;
            }
            if entry.is_tree {
                let mut parents = before()
                    .filter(|(_, other)| other.is_tree)
                    .map(|(held, other)| Parent { tree: other.oid, held })
                    .collect::<Vec<_>>();
                parents.dedup();
                folders.push(Folder { tree: entry.oid, parents });
            } else {
                self.list(entry.oid, Kind::Blob, None)?;
            }
        }
        self.list(folder.tree, Kind::Tree, Some(data))
    }

    fn list(&mut self, oid: Oid, kind: Kind, data: Option<Vec<u8>>) -> Result<(), FetchError> {
        if self.listed.insert(oid) {
            if self.found.len() >= self.max_objects {
                return Err(FetchError::TooBig("too many objects to send"));
            }
            self.found.push(Found { oid, kind, data });
        }
        Ok(())
    }

    fn read(&mut self, oid: Oid, kind: Kind) -> Result<Vec<u8>, FetchError> {
        let size = size(self.objects(), oid)?;
        self.room =
            self.room.checked_sub(size).ok_or(FetchError::TooBig("too many bytes to look at"))?;
        Ok(self.objects().read(oid, kind)?)
    }

    fn objects(&self) -> &'a Objects {
        self.history.objects
    }
}

fn size(objects: &Objects, oid: Oid) -> Result<u64, StoreError> {
    objects.header(oid)?.map(|(_, size)| size).ok_or(StoreError::MissingObject(oid))
}

fn entries(tree: Oid, data: &[u8]) -> Result<BTreeMap<BString, Entry>, StoreError> {
    let mut entries = BTreeMap::new();
    for entry in gix_object::TreeRefIter::from_bytes(data, tree.kind()) {
        let entry = entry.map_err(|error| broken(tree, &error))?;
        let is_tree = match entry.mode.kind() {
            EntryKind::Tree => true,
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => false,
            EntryKind::Commit => continue,
        };
        let oid = Oid::from_gix(entry.oid.to_owned())
            .ok_or_else(|| broken(tree, &"an entry names the null oid"))?;
        entries.insert(entry.filename.to_owned(), Entry { oid, is_tree });
    }
    Ok(entries)
}
