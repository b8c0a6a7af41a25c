//! Footprints of commits: tree differences taken apart file by file, in parallel, with a bounded cache.
//!
//! Runs on the caller's thread; on the actor only when it looks at all refs again. Deleting the cache loses nothing.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, ByteSlice};
use zit_footprint::{FileFootprint, FileKind, Footprint, MAX_FILE, Side, compare};
use zit_model::resource::Part;
use zit_model::{AgentId, Oid, Resource, trailers};
use zit_store::{Blob, Entry, EntryMode, Kind, Objects, StoreError, TreeChange};

use crate::push::Study;

/// How many writes the kept footprints of files have in all. One takes about half a kilobyte.
const MAX_FILE_WRITES: usize = 64 * 1024;

/// How many writes the kept footprints of commits have in all.
const MAX_PAIR_WRITES: usize = 128 * 1024;

/// How many files are read before they are compared, which bounds memory to this many times 2 MiB.
const BATCH: usize = 32;

/// How many files of one change are taken apart; the rest stays at file level.
const MAX_COMPARED: usize = 5000;

/// Computes footprints and remembers them.
#[derive(Default)]
pub struct Footprinter {
    files: Mutex<Bounded<TreeChangeKey, Arc<FileFootprint>>>,
    pairs: Mutex<Bounded<CommitPair, Arc<Footprint>>>,
}

/// The base, where there is one, and the tip.
type CommitPair = (Option<Oid>, Oid);

/// A path and what lay there, before and after: all that a file's footprint depends on.
type TreeChangeKey = (Vec<u8>, Option<(u8, Oid)>, Option<(u8, Oid)>);

impl Footprinter {
    /// What `tip` touches since `base`, both commits; since the empty tree without a base.
    ///
    /// # Errors
    /// [`StoreError`] when an object cannot be read.
    pub fn between(
        &self,
        objects: &Objects,
        base: Option<Oid>,
        tip: Oid,
    ) -> Result<Arc<Footprint>, StoreError> {
        if let Some(known) = lock(&self.pairs).get(&(base, tip)) {
            return Ok(known);
        }
        let old = base.map(|base| objects.commit(base)).transpose()?.map(|commit| commit.tree);
        let new = objects.commit(tip)?.tree;
        let files = self.files(objects, &objects.tree_changes(old, new)?)?;
        let mut footprint = Footprint::from_files(files.iter().map(|file| (**file).clone()));
        footprint.reads = declared_reads(objects, base, tip)?;
        let footprint = Arc::new(footprint);
        let weight = footprint.writes.len();
        lock(&self.pairs).insert((base, tip), footprint.clone(), weight, MAX_PAIR_WRITES);
        Ok(footprint)
    }

    /// What is to be known of a pushed object before it is judged; `None` when it is not a commit.
    ///
    /// # Errors
    /// [`StoreError`] when an object cannot be read.
    pub(crate) fn study(
        &self,
        objects: &Objects,
        current: Option<Oid>,
        pushed: Oid,
    ) -> Result<Option<Study>, StoreError> {
        if objects.kind(pushed)? != Some(Kind::Commit) {
            return Ok(None);
        }
        let author = AgentId::slug(&objects.commit(pushed)?.author.name.to_str_lossy());
        let Some(at) = current else {
            let footprint = Arc::default();
            return Ok(Some(Study { current, merged: false, forward: true, footprint, author }));
        };
        let base = objects.merge_base(at, pushed)?;
        let merged = base == Some(pushed);
        let footprint = if merged { Arc::default() } else { self.between(objects, base, pushed)? };
        Ok(Some(Study { current, merged, forward: base == Some(at), footprint, author }))
    }

    /// Whether a commit has the resource. A part of a file that cannot be taken apart counts as there.
    pub(crate) fn exists(
        &self,
        objects: &Objects,
        commit: Oid,
        of: &Resource,
    ) -> Result<bool, StoreError> {
        let tree = objects.commit(commit)?.tree;
        let Some(new) = objects.entry_at(tree, of.path().into())? else { return Ok(false) };
        let Part::Unit(_) = of.part() else { return Ok(true) };
        let change = TreeChange { path: of.path().into(), old: None, new: Some(new) };
        let files = self.files(objects, &[change])?;
        Ok(files.iter().any(|file| {
            file.fallback.is_some() || file.writes.keys().any(|unit| of.claim_overlaps(unit))
        }))
    }

    fn files(
        &self,
        objects: &Objects,
        changes: &[TreeChange],
    ) -> Result<Vec<Arc<FileFootprint>>, StoreError> {
        let mut files = Vec::with_capacity(changes.len());
        for (n, batch) in changes.chunks(BATCH).enumerate() {
            let whole = n * BATCH >= MAX_COMPARED;
            let mut fresh = Vec::new();
            for change in batch {
                let Some(path) = resource(change.path.as_bstr()) else { continue };
                match lock(&self.files).get(&key(change)) {
                    Some(known) => files.push(known),
                    None => fresh.push(ReadFile::read(objects, path, change, whole)?),
                }
            }
            for (file, footprint) in compare_all(fresh) {
                let footprint = Arc::new(footprint);
                if !whole {
                    let weight = footprint.writes.len();
                    lock(&self.files).insert(file, footprint.clone(), weight, MAX_FILE_WRITES);
                }
                files.push(footprint);
            }
        }
        Ok(files)
    }
}

/// A path as a resource. Bytes that a resource cannot hold become one character that stands for all of them: two such
/// paths may then be taken for one, which can only add conflicts.
fn resource(path: &BStr) -> Option<Resource> {
    let path = path.to_str_lossy();
    let path: String = path
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    Resource::file(&path)
}

/// Both versions of one file, in memory.
struct ReadFile {
    key: TreeChangeKey,
    path: Resource,
    old: Option<(FileKind, Vec<u8>)>,
    new: Option<(FileKind, Vec<u8>)>,
}

impl ReadFile {
    fn read(
        objects: &Objects,
        path: Resource,
        change: &TreeChange,
        whole: bool,
    ) -> Result<Self, StoreError> {
        let side = |entry: Option<Entry>| entry.map(|e| read(objects, e, whole)).transpose();
        Ok(Self { key: key(change), path, old: side(change.old)?, new: side(change.new)? })
    }

    fn compare(&self) -> FileFootprint {
        fn side(version: Option<&(FileKind, Vec<u8>)>) -> Option<Side<'_>> {
            version.map(|(kind, bytes)| Side { kind: *kind, bytes })
        }
        compare(&self.path, side(self.old.as_ref()), side(self.new.as_ref()))
    }
}

/// Reads one version. One that is not to be taken apart is its oid, and a byte that keeps it at file level.
fn read(objects: &Objects, entry: Entry, whole: bool) -> Result<(FileKind, Vec<u8>), StoreError> {
    let kind = match entry.mode {
        EntryMode::Regular => FileKind::Regular,
        EntryMode::Executable => FileKind::Executable,
        EntryMode::Symlink => FileKind::Symlink,
        EntryMode::Submodule => FileKind::Submodule,
    };
    let stand_in = || [b"\0", entry.oid.as_bytes()].concat();
    if kind == FileKind::Submodule || whole {
        return Ok((kind, stand_in()));
    }
    Ok(match objects.blob(entry.oid, MAX_FILE as u64)? {
        Blob::Bytes(bytes) => (kind, bytes),
        Blob::TooLarge(_) => {
            let mut bytes = stand_in();
            bytes.resize(MAX_FILE + 1, 0);
            (kind, bytes)
        }
    })
}

/// Compares files on as many threads as there are processors.
fn compare_all(files: Vec<ReadFile>) -> Vec<(TreeChangeKey, FileFootprint)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(threads).max(1);
    if files.len() < 2 || threads == 1 {
        return files.into_iter().map(|file| (file.key.clone(), file.compare())).collect();
    }
    let compared: Vec<FileFootprint> = std::thread::scope(|scope| {
        let workers: Vec<_> = files
            .chunks(share)
            .map(|chunk| scope.spawn(|| chunk.iter().map(ReadFile::compare).collect::<Vec<_>>()))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    files.into_iter().map(|file| file.key).zip(compared).collect()
}

fn key(change: &TreeChange) -> TreeChangeKey {
    let side = |entry: Option<Entry>| entry.map(|entry| (entry.mode as u8, entry.oid));
    (change.path.to_vec(), side(change.old), side(change.new))
}

/// The resources that the commits of `base..tip` declare to have read. They can only add conflicts.
fn declared_reads(
    objects: &Objects,
    base: Option<Oid>,
    tip: Oid,
) -> Result<BTreeSet<Resource>, StoreError> {
    let mut reads = BTreeSet::new();
    let Some(base) = base else { return Ok(reads) };
    for commit in objects.commits_between(Some(base), tip)? {
        let message = objects.commit(commit)?.message.to_str_lossy().into_owned();
        let trailers = trailers::parse(&message);
        reads.extend(trailers::values(&trailers, "Zit-Read").filter_map(|v| v.parse().ok()));
    }
    Ok(reads)
}

/// A map that forgets its oldest entries when they weigh too much.
struct Bounded<K, V> {
    entries: HashMap<K, V>,
    // Invariant: one element for each entry, with its weight; `total` is their sum.
    order: VecDeque<(K, usize)>,
    total: usize,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), total: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Bounded<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.entries.get(key).cloned()
    }

    /// Keeps an entry, unless it alone weighs more than `max`. Each counts for one more than its weight.
    fn insert(&mut self, key: K, value: V, weight: usize, max: usize) {
        let weight = weight + 1;
        if weight > max || self.entries.contains_key(&key) {
            return;
        }
        self.entries.insert(key.clone(), value);
        self.order.push_back((key, weight));
        self.total += weight;
        while self.total > max
            && let Some((oldest, weight)) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
            self.total -= weight;
        }
    }
}

/// A cache stays usable after a panic elsewhere: its entries are written whole.
fn lock<T>(cache: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_is_a_resource() {
        for (path, shown) in [
            (&b"src/a.rs"[..], "src/a.rs"),
            (b"z\xff.txt", "z\u{fffd}.txt"),
            (b"a\nb\x1b", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(resource(path.as_bstr()).unwrap().to_string(), shown, "{path:?}");
        }
    }

    #[test]
    fn a_full_cache_forgets_its_oldest_entries_and_never_keeps_what_alone_is_too_much() {
        let mut cache = Bounded::default();
        for n in 0..10 {
            cache.insert(n, n, 9, 30);
        }
        assert_eq!((0..10).filter(|n| cache.get(n).is_some()).collect::<Vec<_>>(), [7, 8, 9]);
        cache.insert(10, 10, 30, 30);
        assert_eq!(cache.get(&10), None);
        assert_eq!((cache.total, cache.order.len(), cache.entries.len()), (30, 3, 3));
    }
}
