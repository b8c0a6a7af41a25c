//! Whether everything that new values reach is here, found without a program.
//!
//! A ref vouches for all that it reaches; that an object is here proves nothing about what it names. So the walk goes
//! from the new values down and stops only at what refs reach:
//!
//! 1. commits, down to those that refs name or the repository had before;
//! 2. of the latter, a walk from the refs, from young to old, finds which are in their history; the others are walked
//!    like new ones;
//! 3. each new commit's tree is compared with those of its parents, folder by folder. What is the same at the same path
//!    of a parent is whole if the parent is, and parents are vouched for or looked at themselves.
//!
//! Only what is found whole is certain. An object found missing may lie behind a ref that the walk by dates did not
//! meet, so the caller has git decide that, and whatever is past [`Limits`].

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use bstr::ByteSlice as _;
use gix_object::TreeRefIter;
use gix_object::tree::EntryRef;
use zit_model::Oid;

use crate::error::StoreError;
use crate::objects::{Kind, Objects, broken, tag_target};
use crate::refs::StoredRef;
use crate::unpack::Object;

/// How many commits past the oldest that is looked for a walk by dates goes on: clocks are wrong at times.
const SLOP: usize = 16;

/// With how many parents' trees a tree is compared at most.
const MAX_BASES: usize = 16;

/// How many bytes of trees are kept to be compared with the next commit's.
const MAX_KEPT: usize = 16 << 20;

/// What is found without a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connected {
    /// Nothing is missing.
    Whole,
    /// This object is not here or is not of the kind that it is named as; whether a ref vouches for what names it is
    /// not certain.
    Missing(Oid),
    /// It takes more than is spent on it, or an object could not be read.
    Unsure,
}

/// At most how much is looked at before the rest is left to git.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// New commits, trees and blobs.
    pub(crate) objects: usize,
    /// Commits, in search of known ones.
    pub(crate) walked: usize,
    /// Bytes of trees.
    pub(crate) bytes: usize,
}

impl Default for Limits {
    /// Some tens of megabytes and about a second.
    fn default() -> Self {
        Self { objects: 200_000, walked: 20_000, bytes: 256 << 20 }
    }
}

/// Where the walk reads.
pub(crate) struct Ground<'a> {
    /// All objects, with those of the quarantine.
    pub(crate) objects: &'a Objects,
    /// The repository's without the quarantine's.
    pub(crate) repository: &'a Objects,
    /// What vouches.
    pub(crate) refs: &'a [StoredRef],
    /// Commits whose parents the repository does not have, and need not.
    pub(crate) shallow: HashSet<Oid>,
}

/// Looks at everything that `tips` reach and refs do not vouch for.
pub(crate) fn check(tips: &[Oid], ground: Ground<'_>, limits: Limits) -> Connected {
    let vouched = ground.refs.iter().flat_map(|r| [Some(r.oid), r.peeled]).flatten().collect();
    let mut walk = Walk {
        ground,
        limits,
        vouched,
        new: Vec::new(),
        seen: HashSet::new(),
        links: HashMap::new(),
        trees: HashMap::new(),
        n_kept: 0,
        n_bytes: 0,
    };
    match walk.all(tips) {
        Ok(()) => Connected::Whole,
        Err(Stop::Missing(oid)) => Connected::Missing(oid),
        Err(Stop::Unsure(why)) => {
            tracing::debug!(%why, "connectivity is left to git");
            Connected::Unsure
        }
    }
}

/// Whether all that the objects name is among them or in the repository, but for the parents of the commits in `ends`.
pub(crate) fn is_closed(objects: &[Object], repository: &Objects, ends: &HashSet<Oid>) -> bool {
    let mut here = objects.iter().filter_map(|o| Oid::from_gix(o.id)).collect::<HashSet<_>>();
    objects.iter().all(|object| {
        names(object, ends).is_some_and(|names| {
            names.into_iter().all(|oid| {
                is_empty_tree(oid)
                    || here.contains(&oid)
                    || (repository.has_at_once(oid) && here.insert(oid))
            })
        })
    })
}

/// What an object names; `None` when it cannot be read.
fn names(object: &Object, ends: &HashSet<Oid>) -> Option<Vec<Oid>> {
    let oid = Oid::from_gix(object.id)?;
    match object.kind {
        Kind::Blob => Some(Vec::new()),
        Kind::Tag => tag_target(&object.data).ok().map(|oid| vec![oid]),
        Kind::Commit => {
            let mut links = Links::parse(oid, &object.data).ok()?;
            if ends.contains(&oid) {
                links.parents.clear();
            }
            Some(links.parents.into_iter().chain([links.tree]).collect())
        }
        Kind::Tree => TreeRefIter::from_bytes(&object.data, oid.kind())
            .filter(|entry| !entry.as_ref().is_ok_and(|entry| entry.mode.is_commit()))
            .map(|entry| entry.ok().and_then(|entry| Oid::from_gix(entry.oid.to_owned())))
            .collect(),
    }
}

enum Stop {
    Missing(Oid),
    Unsure(String),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        if let StoreError::MissingObject(oid) | StoreError::WrongKind { oid, .. } = error {
            Self::Missing(oid)
        } else {
            Self::Unsure(error.to_string())
        }
    }
}

/// What a commit names, and when it was made.
pub(crate) struct Links {
    tree: Oid,
    pub(crate) parents: Vec<Oid>,
    pub(crate) date: i64,
}

/// One folder that is to be looked at, with the trees at the same path of its commit's parents.
struct Folder {
    tree: Oid,
    bases: Vec<Oid>,
}

struct Walk<'a> {
    ground: Ground<'a>,
    limits: Limits,
    /// What refs name, and the commits found in their history.
    vouched: HashSet<Oid>,
    /// Commits to look at, the young ones first.
    new: Vec<Oid>,
    /// Whatever is looked at or about to be.
    seen: HashSet<Oid>,
    links: HashMap<Oid, Rc<Links>>,
    trees: HashMap<Oid, Rc<Vec<u8>>>,
    n_kept: usize,
    n_bytes: usize,
}

impl Walk<'_> {
    fn all(&mut self, tips: &[Oid]) -> Result<(), Stop> {
        let mut commits = Vec::new();
        for &tip in tips {
            self.tip(tip, &mut commits)?;
        }
        self.commits(commits)?;
        let new = std::mem::take(&mut self.new);
        for &commit in new.iter().rev() {
            self.tree_of(commit)?;
        }
        Ok(())
    }

    /// Notes a commit, and looks at anything else.
    fn tip(&mut self, tip: Oid, commits: &mut Vec<Oid>) -> Result<(), Stop> {
        let mut at = tip;
        while !self.vouched.contains(&at) && !is_empty_tree(at) {
            match self.ground.objects.kind(at)?.ok_or(Stop::Missing(at))? {
                Kind::Commit => {
                    commits.push(at);
                    break;
                }
                Kind::Tree => return self.folders(Folder { tree: at, bases: Vec::new() }),
                Kind::Blob => break,
                Kind::Tag => {
                    self.pay(at)?;
                    let tag = self.ground.objects.structure(at, Kind::Tag)?;
                    at = tag_target(&tag).map_err(|why| broken(at, &why))?;
                }
            }
        }
        Ok(())
    }

    /// Lists the commits that refs do not vouch for.
    fn commits(&mut self, mut stack: Vec<Oid>) -> Result<(), Stop> {
        let mut border = Vec::new();
        while let Some(oid) = stack.pop() {
            if self.vouched.contains(&oid) || self.seen.contains(&oid) {
                continue;
            }
            if self.ground.repository.has_at_once(oid) {
                border.push(oid);
            } else {
                self.add(oid, &mut stack)?;
            }
        }
        self.vouch(&border)?;
        while let Some(oid) = border.pop() {
            if !self.vouched.contains(&oid) && !self.seen.contains(&oid) {
                self.add(oid, &mut border)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, oid: Oid, stack: &mut Vec<Oid>) -> Result<(), Stop> {
        self.pay(oid)?;
        stack.extend(&self.links(oid)?.parents);
        self.new.push(oid);
        Ok(())
    }

    /// Finds which of `border` are in the history of refs, in that of branches first.
    fn vouch(&mut self, border: &[Oid]) -> Result<(), Stop> {
        let mut sought = border.iter().copied().collect::<HashSet<_>>();
        let of = |branches: bool| {
            let chosen = move |r: &&StoredRef| r.name.branch().is_some() == branches;
            self.ground.refs.iter().filter(chosen).map(|r| r.peeled.unwrap_or(r.oid))
        };
        let stages = [of(true).collect::<Vec<_>>(), of(false).collect()];
        let mut known = HashSet::new();
        for tips in stages {
            if sought.is_empty() {
                break;
            }
            self.descend(tips, &mut sought, &mut known)?;
        }
        self.vouched.extend(known);
        Ok(())
    }

    /// Walks the history of `tips`, takes what it meets out of `sought`, and stops when that is empty or younger.
    fn descend(
        &mut self,
        tips: Vec<Oid>,
        sought: &mut HashSet<Oid>,
        known: &mut HashSet<Oid>,
    ) -> Result<(), Stop> {
        let mut oldest = i64::MAX;
        for &oid in sought.iter() {
            oldest = oldest.min(self.links(oid)?.date);
        }
        let mut queue = BinaryHeap::new();
        let mut slop = SLOP;
        let mut next = tips;
        loop {
            for oid in next.drain(..) {
                if known.len() >= self.limits.walked {
                    return Err(Stop::Unsure("too many commits to walk".to_owned()));
                }
                // A ref that names no commit, or a broken one, vouches for none.
                if !known.contains(&oid)
                    && let Ok(links) = self.links(oid)
                {
                    known.insert(oid);
                    queue.push((links.date, oid));
                }
            }
            let Some((date, oid)) = queue.pop() else { return Ok(()) };
            sought.remove(&oid);
            slop = if date < oldest { slop - 1 } else { SLOP };
            if sought.is_empty() || slop == 0 {
                return Ok(());
            }
            next.extend(&self.links(oid)?.parents);
        }
    }

    fn tree_of(&mut self, commit: Oid) -> Result<(), Stop> {
        let links = self.links(commit)?;
        let mut bases = Vec::new();
        for &parent in &links.parents {
            bases.push(self.links(parent)?.tree);
        }
        bases.dedup();
        bases.truncate(MAX_BASES);
        self.folders(Folder { tree: links.tree, bases })
    }

    fn folders(&mut self, root: Folder) -> Result<(), Stop> {
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            let whole = folder.bases.contains(&folder.tree)
                || self.vouched.contains(&folder.tree)
                || self.seen.contains(&folder.tree)
                || is_empty_tree(folder.tree);
            if !whole {
                self.pay(folder.tree)?;
                self.folder(&folder, &mut folders)?;
            }
        }
        Ok(())
    }

    /// Looks at the blobs of one tree; its folders go onto `folders`.
    fn folder(&mut self, folder: &Folder, folders: &mut Vec<Folder>) -> Result<(), Stop> {
        let kind = self.ground.objects.kind;
        let data = self.tree(folder.tree)?;
        // A tree that cannot be read is nothing to compare with.
        let bases = folder.bases.iter().filter_map(|base| self.tree(*base).ok());
        let bases = bases.collect::<Vec<_>>();
        let mut bases = bases
            .iter()
            .map(|data| Base::new(TreeRefIter::from_bytes(data, kind)))
            .collect::<Vec<_>>();
        for entry in TreeRefIter::from_bytes(&data, kind) {
            let entry = entry.map_err(|error| broken(folder.tree, &error))?;
            if entry.mode.is_commit() {
                continue;
            }
            let same_path = bases.iter_mut().filter_map(|base| base.at(&entry)).collect::<Vec<_>>();
            let is_same = |base: &EntryRef<'_>| {
                base.oid == entry.oid && base.mode.is_tree() == entry.mode.is_tree()
            };
            if same_path.iter().any(is_same) {
                continue;
            }
            let oid = Oid::from_gix(entry.oid.to_owned())
                .ok_or_else(|| broken(folder.tree, &"an entry names the null oid"))?;
            if entry.mode.is_tree() {
                let folders_there = same_path.iter().filter(|base| base.mode.is_tree());
                let bases = folders_there.filter_map(|base| Oid::from_gix(base.oid.to_owned()));
                folders.push(Folder { tree: oid, bases: bases.collect() });
            } else {
                self.blob(oid)?;
            }
        }
        Ok(())
    }

    fn blob(&mut self, oid: Oid) -> Result<(), Stop> {
        if self.seen.contains(&oid) {
            return Ok(());
        }
        self.pay(oid)?;
        match self.ground.objects.kind(oid)? {
            Some(Kind::Blob) => Ok(()),
            Some(Kind::Commit | Kind::Tree | Kind::Tag) | None => Err(Stop::Missing(oid)),
        }
    }

    /// A tree, as long as there is room for looking at it. It is paid for each time, since it is read each time.
    fn tree(&mut self, oid: Oid) -> Result<Rc<Vec<u8>>, Stop> {
        let data = match self.trees.get(&oid) {
            Some(data) => Rc::clone(data),
            None if is_empty_tree(oid) => Rc::default(),
            None => Rc::new(self.ground.objects.structure(oid, Kind::Tree)?),
        };
        self.n_bytes = self.n_bytes.saturating_add(data.len());
        if self.n_bytes > self.limits.bytes {
            return Err(Stop::Unsure("too many bytes of trees".to_owned()));
        }
        if self.trees.insert(oid, Rc::clone(&data)).is_none() {
            self.n_kept += data.len();
            if self.n_kept > MAX_KEPT {
                self.trees.clear();
                self.n_kept = 0;
            }
        }
        Ok(data)
    }

    fn links(&mut self, oid: Oid) -> Result<Rc<Links>, Stop> {
        if let Some(links) = self.links.get(&oid) {
            return Ok(Rc::clone(links));
        }
        let mut links = Links::read(self.ground.objects, oid)?;
        if self.ground.shallow.contains(&oid) {
            links.parents.clear();
        }
        let links = Rc::new(links);
        self.links.insert(oid, Rc::clone(&links));
        Ok(links)
    }

    fn pay(&mut self, oid: Oid) -> Result<(), Stop> {
        self.seen.insert(oid);
        if self.seen.len() > self.limits.objects {
            return Err(Stop::Unsure("too many objects".to_owned()));
        }
        Ok(())
    }
}

impl Links {
    /// Reads the first lines as git does: a tree, its parents, and then, somewhere before the message, a committer.
    pub(crate) fn read(objects: &Objects, oid: Oid) -> Result<Self, StoreError> {
        Self::parse(oid, &objects.structure(oid, Kind::Commit)?)
    }

    fn parse(oid: Oid, data: &[u8]) -> Result<Self, StoreError> {
        let mut lines = data.lines().peekable();
        let id = |hex: &[u8]| Oid::from_hex(hex).map_err(|error| broken(oid, &error));
        let tree = lines.next().and_then(|line| line.strip_prefix(b"tree "));
        let tree = id(tree.ok_or_else(|| broken(oid, &"a commit without a tree line"))?)?;
        let mut parents = Vec::new();
        while let Some(hex) = lines.peek().and_then(|line| line.strip_prefix(b"parent ")) {
            parents.push(id(hex)?);
            lines.next();
        }
        let mut header = lines.take_while(|line| !line.is_empty());
        let committer = header.find_map(|line| line.strip_prefix(b"committer "));
        Ok(Self { tree, parents, date: committer.map_or(0, date) })
    }
}

/// The seconds behind the mail address; zero when there are none.
fn date(committer: &[u8]) -> i64 {
    let when = committer.rfind_byte(b'>').and_then(|at| committer.get(at + 1..));
    let word = when.and_then(|when| when.fields().next()).and_then(|word| word.to_str().ok());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A tree to compare with, read as far as the other one is.
struct Base<'a> {
    entries: std::iter::Peekable<TreeRefIter<'a>>,
}

impl<'a> Base<'a> {
    fn new(entries: TreeRefIter<'a>) -> Self {
        Self { entries: entries.peekable() }
    }

    /// The entry of the same name. Of a tree that is not sorted, some are not found, which costs time only.
    fn at(&mut self, entry: &EntryRef<'_>) -> Option<EntryRef<'a>> {
        while let Some(Ok(found)) = self.entries.peek() {
            if found.filename == entry.filename {
                return Some(*found);
            }
            if *found > *entry {
                return None;
            }
            self.entries.next();
        }
        None
    }
}

/// Git knows the empty tree without having it.
fn is_empty_tree(oid: Oid) -> bool {
    oid.as_gix() == gix_hash::ObjectId::empty_tree(oid.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Store};

    #[test]
    fn what_takes_more_than_is_spent_is_left_to_git() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        let store = Store::open(&path, Access::Referee).unwrap();
        let mut quarantine = store.quarantine().unwrap();
        let tip = quarantine.write_tree(&[("a", b"1"), ("b", b"2")]).unwrap();
        let with = |limits| {
            let (objects, repository) = (&quarantine.objects(), &store.objects().unwrap());
            let ground = Ground { objects, repository, refs: &[], shallow: HashSet::new() };
            check(&[tip], ground, limits)
        };
        let enough = Limits::default();
        assert_eq!(with(enough), Connected::Whole);
        assert_eq!(with(Limits { objects: 2, ..enough }), Connected::Unsure);
        assert_eq!(with(Limits { bytes: 20, ..enough }), Connected::Unsure);
    }
}
