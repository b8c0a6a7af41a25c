//! The objects of commits that the client lacks, less what it has.
//!
//! A commit's tree is compared with those of all its parents, folder by folder: what is the same at the same path of
//! any parent is there already, or was sent with it. What the trees of commits at the border hold is remembered where
//! it was read, so that a file that moved is not sent again.
//!
//! What lay at the same path of a parent is what an object is told as a delta against, where that is much shorter: it
//! comes before it, or the client has it and takes thin packs.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use bstr::BStr;
use gix_object::tree::EntryKind;
use zit_model::Oid;

use super::history::History;
use super::{FetchError, FetchLimits, delta, pack, tag_target};
use crate::error::StoreError;
use crate::objects::{Kind, Objects, broken};

/// From how many bytes on a delta is tried. Below, an object and the name of its base are about as long.
const DELTA_FROM: usize = 256;

/// An object to send.
struct Found {
    oid: Oid,
    kind: Kind,
    /// `None` for a blob, which is read when it is written.
    data: Option<Rc<Vec<u8>>>,
    /// What lay at the same path of a parent.
    base: Option<Oid>,
}

/// Gathers objects to send.
pub(super) struct Collector<'a> {
    history: History<'a>,
    found: Vec<Found>,
    /// The trees read so far: what one commit brings is what the next is compared with.
    trees: HashMap<Oid, Rc<Vec<u8>>>,
    /// What is in `found`.
    listed: HashSet<Oid>,
    /// What the client has and would otherwise be sent.
    held: HashSet<Oid>,
    max_objects: usize,
    max_bytes: u64,
    /// How many bytes may still be looked at.
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
            trees: HashMap::new(),
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
        self.list(commit, Kind::Commit, Some(Rc::new(data)), None)?;
        if is_new { self.add_tree(node.tree, parents) } else { Ok(()) }
    }

    /// Adds an object that is no commit: a tag with the tags it leads to, a tree with all it holds, or a blob.
    pub(super) fn add_other(&mut self, oid: Oid, kind: Kind) -> Result<(), FetchError> {
        match kind {
            Kind::Tag => self.add_tags(oid),
            Kind::Tree => self.add_tree(oid, Vec::new()),
            Kind::Blob => self.list(oid, Kind::Blob, None, None),
            Kind::Commit => self.add_commit(oid),
        }
    }

    /// Adds a tag object and those it leads to, but not what they finally point at.
    pub(super) fn add_tags(&mut self, tag: Oid) -> Result<(), FetchError> {
        let mut at = tag;
        while !self.listed.contains(&at) && self.objects().kind(at)? == Some(Kind::Tag) {
            let data = self.read(at, Kind::Tag)?;
            let target = tag_target(at, &data)?;
            self.list(at, Kind::Tag, Some(Rc::new(data)), None)?;
            at = target;
        }
        Ok(())
    }

    /// Writes all that was gathered; with deltas against what the client has if it takes a thin pack.
    pub(super) fn into_pack(self, thin: bool) -> Result<Vec<u8>, FetchError> {
        let Self { history, mut found, held, trees, max_bytes, .. } = self;
        found.retain(|object| !held.contains(&object.oid));
        let objects = history.objects;
        let mut n_bytes = 0_u64;
        for object in &found {
            n_bytes = n_bytes.saturating_add(match &object.data {
                Some(data) => length(data),
                None => size(objects, object.oid)?,
            });
            if n_bytes > max_bytes {
                return Err(FetchError::TooBig("too many bytes to send"));
            }
        }
        let mut writer = pack::Writer::new(objects.kind, found.len());
        let mut bases = Bases {
            objects,
            trees,
            to_come: found.iter().map(|object| object.oid).collect(),
            written: HashSet::new(),
            thin,
            room: max_bytes,
        };
        for Found { oid, kind, data, base } in found {
            let data = match data {
                Some(data) => data,
                None => Rc::new(objects.read(oid, kind)?),
            };
            match base.map_or(Ok(None), |base| bases.delta(base, kind, &data))? {
                Some((base, delta)) => writer.add_delta(base, &delta)?,
                None => writer.add(kind, &data)?,
            }
            bases.to_come.remove(&oid);
            bases.written.insert(oid);
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
        let read = |parent: &Parent| Ok((*parent, self.tree(parent.tree)?));
        let parents = folder.parents.iter().map(read).collect::<Result<Vec<_>, FetchError>>()?;
        let parents = parents
            .iter()
            .map(|(parent, data)| {
                let entries = entries(parent.tree, data).collect::<Result<HashMap<_, _>, _>>()?;
                Ok((parent.held, entries))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        for (_, entries) in parents.iter().filter(|(held, _)| *held) {
            self.held.extend(entries.values().map(|entry| entry.oid));
        }
        let data = self.tree(folder.tree)?;
        for found in entries(folder.tree, &data) {
            let (name, entry) = found?;
            let before = parents
                .iter()
                .filter_map(|(held, entries)| entries.get(name).map(|entry| (*held, *entry)));
            if before.clone().any(|(_, other)| other == entry) {
                continue;
            }
            if entry.is_tree {
                let mut parents = before
                    .filter(|(_, other)| other.is_tree)
                    .map(|(held, other)| Parent { tree: other.oid, held })
                    .collect::<Vec<_>>();
                parents.dedup();
                folders.push(Folder { tree: entry.oid, parents });
            } else {
                let base = before.map(|(_, other)| other).find(|other| !other.is_tree);
                self.list(entry.oid, Kind::Blob, None, base.map(|base| base.oid))?;
            }
        }
        let base = folder.parents.first().map(|parent| parent.tree);
        self.list(folder.tree, Kind::Tree, Some(data), base)
    }

    fn list(
        &mut self,
        oid: Oid,
        kind: Kind,
        data: Option<Rc<Vec<u8>>>,
        base: Option<Oid>,
    ) -> Result<(), FetchError> {
        if self.listed.insert(oid) {
            if self.found.len() >= self.max_objects {
                return Err(FetchError::TooBig("too many objects to send"));
            }
            self.found.push(Found { oid, kind, data, base });
        }
        Ok(())
    }

    /// A tree. It is paid for each time, since it is taken apart each time.
    fn tree(&mut self, oid: Oid) -> Result<Rc<Vec<u8>>, FetchError> {
        if let Some(data) = self.trees.get(&oid) {
            let data = Rc::clone(data);
            self.pay(length(&data))?;
            return Ok(data);
        }
        let data = Rc::new(self.read(oid, Kind::Tree)?);
        self.trees.insert(oid, Rc::clone(&data));
        Ok(data)
    }

    fn read(&mut self, oid: Oid, kind: Kind) -> Result<Vec<u8>, FetchError> {
        self.pay(size(self.objects(), oid)?)?;
        Ok(self.objects().read(oid, kind)?)
    }

    fn pay(&mut self, n_bytes: u64) -> Result<(), FetchError> {
        let left = self.room.checked_sub(n_bytes);
        self.room = left.ok_or(FetchError::TooBig("too many bytes to look at"))?;
        Ok(())
    }

    fn objects(&self) -> &'a Objects {
        self.history.objects
    }
}

/// What a delta may be told against.
///
/// Invariant: whatever a parent's tree holds is sent, or the client has it. So a base is at hand if it does not come later.
struct Bases<'a> {
    objects: &'a Objects,
    /// Trees that were read.
    trees: HashMap<Oid, Rc<Vec<u8>>>,
    /// What is still to be written.
    to_come: HashSet<Oid>,
    written: HashSet<Oid>,
    /// Whether a base may be the client's.
    thin: bool,
    /// How many bytes of bases may still be looked at.
    room: u64,
}

impl Bases<'_> {
    /// An object as a delta, with what it builds on; `None` where it is not worth it.
    fn delta(
        &mut self,
        base: Oid,
        kind: Kind,
        data: &[u8],
    ) -> Result<Option<(Oid, Vec<u8>)>, StoreError> {
        let is_there = self.written.contains(&base) || self.thin && !self.to_come.contains(&base);
        if !is_there || data.len() < DELTA_FROM {
            return Ok(None);
        }
        let Some(room) = self.room.checked_sub(size(self.objects, base)?) else { return Ok(None) };
        self.room = room;
        let before = match self.trees.get(&base) {
            Some(data) => Rc::clone(data),
            None => Rc::new(self.objects.read(base, kind)?),
        };
        let delta = delta::encode(&before, data);
        Ok((delta.len() < data.len() / 2).then_some((base, delta)))
    }
}

fn length(data: &[u8]) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}

fn size(objects: &Objects, oid: Oid) -> Result<u64, StoreError> {
    objects.header(oid)?.map(|(_, size)| size).ok_or(StoreError::MissingObject(oid))
}

/// The entries of a tree, by name.
fn entries(tree: Oid, data: &[u8]) -> impl Iterator<Item = Result<(&BStr, Entry), StoreError>> {
    gix_object::TreeRefIter::from_bytes(data, tree.kind()).filter_map(move |entry| {
        let read = || {
            let entry = entry.map_err(|error| broken(tree, &error))?;
            let is_tree = match entry.mode.kind() {
                EntryKind::Tree => true,
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => false,
                EntryKind::Commit => return Ok(None),
            };
            let oid = Oid::from_gix(entry.oid.to_owned())
                .ok_or_else(|| broken(tree, &"an entry names the null oid"))?;
            Ok(Some((entry.filename, Entry { oid, is_tree })))
        };
        read().transpose()
    })
}
