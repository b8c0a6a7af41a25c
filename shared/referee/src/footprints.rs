//! Footprints of commits: tree differences taken apart file by file, in parallel, with bounded memories.
//!
//! What one version of a file says is kept by its blob, so that the version that many changes start from is parsed once;
//! its syntax tree too, so that of the next version only what differs is parsed.
//! Runs on the caller's thread and one more a processor; on the actor only when it looks at all refs again. Forgetting
//! everything loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use zit_footprint::{
    Carved, Fallback, FileFootprint, FileKind, Footprint, Language, MAX_FILE, Parsed, Side,
    compare, compare_carved, compare_moved, compare_moved_carved,
};
use zit_model::resource::Part;
use zit_model::{AgentId, Oid, Resource, trailers};
use zit_store::{Blob, Entry, EntryMode, Kind, Objects, StoreError, TreeChange};

use crate::around::Landscape;
use crate::push::Study;
use crate::recent::Recent;
use crate::renames::renames;

/// How many units the kept versions of files have in all. One takes about half a kilobyte.
const MAX_UNITS: usize = 32 * 1024;

/// How many KiB of syntax trees are kept. A tree takes about twenty times its text; what versions of one file share is
/// counted for each.
const MAX_PARSED_KIB: usize = 96 * 1024;

/// How many writes the kept footprints of files have in all. One takes about half a kilobyte.
const MAX_FILE_WRITES: usize = 64 * 1024;

/// How many writes the kept footprints of commits have in all.
const MAX_PAIR_WRITES: usize = 128 * 1024;

/// How many writes the kept studies of pushed commits have in all, each counted for one more.
const MAX_STUDY_WRITES: usize = 16 * 1024;

/// How many bytes of files are read before they are taken apart. With one file more, this bounds memory.
const BATCH_BYTES: usize = 8 << 20;

/// How many files are read before they are taken apart.
const BATCH_FILES: usize = 1024;

/// From how many bytes on a second thread is worth what it costs to start.
const BYTES_PER_THREAD: usize = 8 * 1024;

/// How many files of one change are taken apart; the rest stays at file level.
const MAX_COMPARED: usize = 5000;

/// Computes footprints and remembers them.
pub struct Footprinter {
    versions: Mutex<Recent<VersionKey, Arc<Carved>>>,
    parsed: Mutex<Recent<VersionKey, Arc<Parsed>>>,
    files: Mutex<Recent<TreeChangeKey, Arc<FileFootprint>>>,
    pairs: Mutex<Recent<CommitPair, Arc<Footprint>>>,
    studies: Mutex<Recent<CommitPair, Study>>,
    pub(crate) landscape: Landscape,
    /// How many versions of files were taken apart.
    n_carved: AtomicU64,
}

/// The base or current, where there is one, and the tip.
type CommitPair = (Option<Oid>, Oid);

/// A path, the one it had before it was moved, and what lay there before and after: all that a file's footprint depends on.
type TreeChangeKey = (Vec<u8>, Option<Vec<u8>>, Option<(u8, Oid)>, Option<(u8, Oid)>);

/// All that what one version says depends on.
type VersionKey = (Language, FileKind, Oid);

impl Default for Footprinter {
    fn default() -> Self {
        Self {
            versions: Mutex::new(Recent::new(MAX_UNITS)),
            parsed: Mutex::new(Recent::new(MAX_PARSED_KIB)),
            files: Mutex::new(Recent::new(MAX_FILE_WRITES)),
            pairs: Mutex::new(Recent::new(MAX_PAIR_WRITES)),
            studies: Mutex::new(Recent::new(MAX_STUDY_WRITES)),
            landscape: Landscape::default(),
            n_carved: AtomicU64::new(0),
        }
    }
}

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
        let changes = moves(objects, objects.tree_changes(old, new)?)?;
        let files = self.files(objects, &changes)?;
        let mut footprint = Footprint::from_files(files.iter().map(|file| (**file).clone()));
        footprint.reads = declared_reads(objects, base, tip)?;
        let footprint = Arc::new(footprint);
        let weight = footprint.writes.len();
        lock(&self.pairs).insert((base, tip), footprint.clone(), weight);
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
        if let Some(known) = lock(&self.studies).get(&(current, pushed)) {
            return Ok(Some(known));
        }
        if objects.kind(pushed)? != Some(Kind::Commit) {
            return Ok(None);
        }
        let (study, is_met) = self.study_commit(objects, current, pushed)?;
        // Where no common history was found, it may only be cut off today.
        if is_met {
            let weight = study.footprint.writes.len();
            lock(&self.studies).insert((current, pushed), study.clone(), weight);
        }
        Ok(Some(study))
    }

    /// The study, and whether the commit has met current.
    fn study_commit(
        &self,
        objects: &Objects,
        current: Option<Oid>,
        pushed: Oid,
    ) -> Result<(Study, bool), StoreError> {
        let commit = objects.commit(pushed)?;
        let author = AgentId::slug(&commit.author.name.to_str_lossy());
        let Some(at) = current else {
            let footprint = Arc::default();
            let study = Study { current, merged: false, forward: true, footprint, author };
            return Ok((study, false));
        };
        // A commit on top of current needs no search for where the two met.
        let base =
            if commit.parents.contains(&at) { Some(at) } else { objects.merge_base(at, pushed)? };
        let merged = base == Some(pushed);
        let footprint = if merged { Arc::default() } else { self.between(objects, base, pushed)? };
        let forward = base == Some(at);
        Ok((Study { current, merged, forward, footprint, author }, base.is_some()))
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
        let files = self.files(objects, &[FileChange { change, from: None }])?;
        Ok(files.iter().any(|file| {
            file.fallback.is_some() || file.writes.keys().any(|unit| of.claim_overlaps(unit))
        }))
    }

    /// How many versions of files were taken apart so far, in whole or in part: what was remembered is not counted.
    #[must_use]
    pub fn n_carved(&self) -> u64 {
        self.n_carved.load(Ordering::Relaxed)
    }

    /// One version of a file, taken apart; `None` of a language that does not take versions apart one by one.
    pub(crate) fn version(
        &self,
        objects: &Objects,
        language: Language,
        oid: Oid,
    ) -> Result<Option<Arc<Carved>>, StoreError> {
        let key = (language, FileKind::Regular, oid);
        if let Some(known) = lock(&self.versions).get(&key) {
            return Ok(Some(known));
        }
        let bytes = read(objects, FileKind::Regular, oid, false)?;
        let side = Side { kind: FileKind::Regular, bytes: &bytes };
        let Some((carved, parsed)) = Carved::after(language, side, None) else { return Ok(None) };
        let carved = Arc::new(carved);
        self.remember((key, Arc::clone(&carved), parsed.map(Arc::new)));
        Ok(Some(carved))
    }

    fn files(
        &self,
        objects: &Objects,
        changes: &[FileChange],
    ) -> Result<Vec<Arc<FileFootprint>>, StoreError> {
        let mut files = Vec::with_capacity(changes.len());
        let (mut fresh, mut n_bytes) = (Vec::new(), 0);
        for (n, change) in changes.iter().enumerate() {
            let Some(path) = resource(change.change.path.as_bstr()) else { continue };
            if let Some(known) = lock(&self.files).get(&key(change)) {
                files.push(known);
                continue;
            }
            let file = self.read(objects, path, change, n >= MAX_COMPARED)?;
            n_bytes += file.n_bytes();
            fresh.push(file);
            if n_bytes >= BATCH_BYTES || fresh.len() >= BATCH_FILES {
                self.compare(std::mem::take(&mut fresh), n_bytes, &mut files);
                n_bytes = 0;
            }
        }
        self.compare(fresh, n_bytes, &mut files);
        Ok(files)
    }

    /// Reads both versions of a file, unless what they say is known.
    fn read(
        &self,
        objects: &Objects,
        path: Resource,
        change: &FileChange,
        whole: bool,
    ) -> Result<File, StoreError> {
        let from = change.from.as_ref().and_then(|from| resource(from.as_bstr()));
        let new_language = Language::of_path(path.path()).filter(|_| !whole);
        let old_language = match &from {
            Some(from) => Language::of_path(from.path()).filter(|_| !whole),
            None => new_language,
        };
        let version = |entry: Entry, language: Option<Language>| -> Result<Version, StoreError> {
            let kind = kind(entry.mode);
            let known = language
                .and_then(|language| lock(&self.versions).get(&(language, kind, entry.oid)));
            Ok(match known {
                Some(known) => Version::Known(known),
                None => Version::Read(kind, entry.oid, read(objects, kind, entry.oid, whole)?),
            })
        };
        let TreeChange { old, new, .. } = change.change;
        // What a version says depends on its language, and so does what is kept of its tree.
        let known = old.zip(old_language.filter(|_| old_language == new_language));
        let before = known.and_then(|(entry, language)| {
            lock(&self.parsed).get(&(language, kind(entry.mode), entry.oid))
        });
        let old = old.map(|entry| version(entry, old_language)).transpose()?;
        let new = new.map(|entry| version(entry, new_language)).transpose()?;
        let key = (!whole).then(|| key(change));
        Ok(File { key, path, from, languages: (old_language, new_language), old, new, before })
    }

    /// Compares files, and remembers what was found.
    fn compare(&self, fresh: Vec<File>, n_bytes: usize, files: &mut Vec<Arc<FileFootprint>>) {
        let compared = compare_all(&fresh, n_bytes);
        for (file, mut compared) in fresh.into_iter().zip(compared) {
            let fallback = &mut compared.footprint.fallback;
            // What stood in for its bytes is no reason of the file's own.
            if file.key.is_none() && *fallback == Some(Fallback::Binary) {
                *fallback = Some(Fallback::TooMany);
            }
            let footprint = Arc::new(compared.footprint);
            if let Some(key) = file.key {
                let weight = footprint.writes.len();
                lock(&self.files).insert(key, footprint.clone(), weight);
            }
            compared.carved.into_iter().for_each(|fresh| self.remember(fresh));
            files.push(footprint);
        }
    }

    fn remember(&self, (key, carved, parsed): Fresh) {
        self.n_carved.fetch_add(1, Ordering::Relaxed);
        let weight = carved.n_units();
        lock(&self.versions).insert(key, carved, weight);
        if let Some(parsed) = parsed {
            let weight = parsed.n_bytes() / 1024;
            lock(&self.parsed).insert(key, parsed, weight);
        }
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
struct File {
    /// Under which the footprint is remembered; `None` when it is made of less than the whole file.
    key: Option<TreeChangeKey>,
    path: Resource,
    /// Where it lay before, when it was moved.
    from: Option<Resource>,
    /// Of each version, as its path says.
    languages: (Option<Language>, Option<Language>),
    old: Option<Version>,
    new: Option<Version>,
    /// The old version's syntax tree, if it is remembered.
    before: Option<Arc<Parsed>>,
}

enum Version {
    Known(Arc<Carved>),
    Read(FileKind, Oid, Vec<u8>),
}

/// What is known of a file once it was compared.
struct Compared {
    footprint: FileFootprint,
    /// The versions that were not known before.
    carved: Vec<Fresh>,
}

/// A version that was taken apart.
type Fresh = (VersionKey, Arc<Carved>, Option<Arc<Parsed>>);

impl File {
    fn n_bytes(&self) -> usize {
        [&self.old, &self.new].into_iter().flatten().map(Version::n_bytes).sum()
    }

    fn compare(&self) -> Compared {
        self.compare_carved().unwrap_or_else(|| {
            let [old, new] = [&self.old, &self.new].map(|v| v.as_ref().and_then(Version::side));
            let footprint = match (&self.from, old, new) {
                (Some(from), Some(old), Some(new)) => compare_moved(from, &self.path, old, new),
                (Some(_) | None, old, new) => compare(&self.path, old, new),
            };
            Compared { footprint, carved: Vec::new() }
        })
    }

    /// Compares versions taken apart one by one; `None` where they are not.
    fn compare_carved(&self) -> Option<Compared> {
        let (old_language, new_language) = (self.languages.0?, self.languages.1?);
        let mut fresh: Vec<Fresh> = Vec::new();
        let mut before = self.before.clone();
        let mut carve = |version: &Option<Version>, language| match version {
            Some(version) => {
                let carved = version.carve(language, before.as_deref(), &mut fresh)?;
                let parsed = fresh.last().and_then(|fresh| fresh.2.clone());
                before = before.take().or(parsed).filter(|_| old_language == new_language);
                Some(Some(carved))
            }
            None => Some(None),
        };
        let (old, new) = (carve(&self.old, old_language)?, carve(&self.new, new_language)?);
        let footprint = match (&self.from, &old, &new) {
            (Some(from), Some(old), Some(new)) => compare_moved_carved(from, &self.path, old, new),
            (Some(_) | None, old, new) => {
                compare_carved(&self.path, old.as_deref(), new.as_deref())
            }
        };
        Some(Compared { footprint, carved: fresh })
    }
}

impl Version {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Known(_) => 0,
            Self::Read(_, _, bytes) => bytes.len(),
        }
    }

    fn side(&self) -> Option<Side<'_>> {
        match self {
            Self::Known(_) => None,
            Self::Read(kind, _, bytes) => Some(Side { kind: *kind, bytes }),
        }
    }

    fn carve(
        &self,
        language: Language,
        before: Option<&Parsed>,
        fresh: &mut Vec<Fresh>,
    ) -> Option<Arc<Carved>> {
        match self {
            Self::Known(known) => Some(Arc::clone(known)),
            Self::Read(kind, oid, bytes) => {
                let side = Side { kind: *kind, bytes };
                let (carved, parsed) = Carved::after(language, side, before)?;
                let (carved, parsed) = (Arc::new(carved), parsed.map(Arc::new));
                fresh.push(((language, *kind, *oid), Arc::clone(&carved), parsed));
                Some(carved)
            }
        }
    }
}

fn kind(mode: EntryMode) -> FileKind {
    match mode {
        EntryMode::Regular => FileKind::Regular,
        EntryMode::Executable => FileKind::Executable,
        EntryMode::Symlink => FileKind::Symlink,
        EntryMode::Submodule => FileKind::Submodule,
    }
}

/// Reads one version. One that is not to be taken apart is its oid, and a byte that keeps it at file level.
fn read(objects: &Objects, kind: FileKind, oid: Oid, whole: bool) -> Result<Vec<u8>, StoreError> {
    let stand_in = || [b"\0", oid.as_bytes()].concat();
    if kind == FileKind::Submodule || whole {
        return Ok(stand_in());
    }
    Ok(match objects.blob(oid, MAX_FILE as u64)? {
        Blob::Bytes(bytes) => bytes,
        Blob::TooLarge(_) => {
            let mut bytes = stand_in();
            bytes.resize(MAX_FILE + 1, 0);
            bytes
        }
    })
}

/// Compares files on as many threads as there are processors, in their order.
fn compare_all(files: &[File], n_bytes: usize) -> Vec<Compared> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(files.len()).min(n_bytes / BYTES_PER_THREAD);
    if threads < 2 {
        return files.iter().map(File::compare).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(n) else { return done };
            done.push((n, file.compare()));
        }
    };
    let mut compared = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut compared = work();
        for worker in workers {
            compared.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        compared
    });
    compared.sort_unstable_by_key(|(n, _)| *n);
    compared.into_iter().map(|(_, compared)| compared).collect()
}

fn key(of: &FileChange) -> TreeChangeKey {
    let side = |entry: Option<Entry>| entry.map(|entry| (entry.mode as u8, entry.oid));
    let from = of.from.as_ref().map(|from| from.to_vec());
    (of.change.path.to_vec(), from, side(of.change.old), side(of.change.new))
}

/// One file that differs.
struct FileChange {
    change: TreeChange,
    /// Where it lay before, when it was moved.
    from: Option<BString>,
}

/// Makes one change of the two paths of a moved file.
fn moves(objects: &Objects, changes: Vec<TreeChange>) -> Result<Vec<FileChange>, StoreError> {
    let renames = renames(objects, &changes)?;
    let gone: BTreeSet<usize> = renames.iter().map(|(from, _)| *from).collect();
    let mut from: BTreeMap<usize, (BString, Option<Entry>)> = BTreeMap::new();
    for (was, is) in renames {
        if let Some(change) = changes.get(was) {
            from.insert(is, (change.path.clone(), change.old));
        }
    }
    let kept = changes.into_iter().enumerate().filter(|(at, _)| !gone.contains(at));
    let moved = kept.map(|(at, mut change)| {
        let from = from.remove(&at).map(|(path, old)| {
            change.old = old;
            path
        });
        FileChange { change, from }
    });
    Ok(moved.collect())
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

/// A cache stays usable after a panic elsewhere: its entries are written whole.
pub(crate) fn lock<T>(cache: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zit_model::UnixSeconds;
    use zit_store::{Access, Signature, Store};

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

    /// Makes commits, each of some files.
    struct Bench {
        _folder: tempfile::TempDir,
        quarantine: zit_store::Quarantine,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("r.git");
            Store::init(&path).unwrap();
            let quarantine = Store::open(&path, Access::Referee).unwrap().quarantine().unwrap();
            Self { _folder: folder, quarantine }
        }

        fn commit(&mut self, files: &[(&str, &str)], parents: &[Oid], subject: &str) -> Oid {
            let time = UnixSeconds(1_700_000_000);
            let by = Signature { name: "A".into(), email: "a@x".into(), time, offset_minutes: 0 };
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
            let tree = self.quarantine.write_tree(&files).unwrap();
            self.quarantine.commit_tree(tree, parents, &by, &by, subject).unwrap()
        }
    }

    #[test]
    fn a_version_that_was_taken_apart_for_one_change_is_known_for_the_next() {
        let mut bench = Bench::new();
        let mut commit =
            |text: &str, parents: &[Oid]| bench.commit(&[("a.rs", text)], parents, "Step\n");
        let base = commit("fn f() {}\nfn g() {}\n", &[]);
        let one = commit("fn f() { 1 }\nfn g() {}\n", &[base]);
        let two = commit("fn f() {}\nfn g(a: u8) {}\n", &[base]);
        let objects = bench.quarantine.objects();
        let footprinter = Footprinter::default();
        let of = |of: &Footprinter, tip| of.between(&objects, Some(base), tip).unwrap();
        assert_eq!(of(&footprinter, one).writes.len(), 1);
        let tree = objects.commit(base).unwrap().tree;
        let blob = objects.entry_at(tree, "a.rs".into()).unwrap().unwrap().oid;
        let known = lock(&footprinter.versions).get(&(Language::Rust, FileKind::Regular, blob));
        assert_eq!(known.map(|carved| carved.n_units()), Some(2));
        assert_eq!(of(&footprinter, two), of(&Footprinter::default(), two));
        assert_eq!(footprinter.n_carved(), 3, "the base once, and each new version");
    }

    #[test]
    fn the_same_blobs_in_another_commit_are_not_taken_apart_again() {
        let mut bench = Bench::new();
        let base = bench.commit(&[("a.rs", "fn f() {}\n"), ("b.py", "x = 1\n")], &[], "Base\n");
        let new = [("a.rs", "fn f() { 1 }\n"), ("b.py", "x = 2\n")];
        let (one, two) =
            (bench.commit(&new, &[base], "One\n"), bench.commit(&new, &[base], "Two\n"));
        let objects = bench.quarantine.objects();
        let footprinter = Footprinter::default();
        let first = footprinter.between(&objects, Some(base), one).unwrap();
        assert_eq!(footprinter.n_carved(), 4);
        assert_eq!(footprinter.between(&objects, Some(base), two).unwrap(), first);
        assert_eq!(footprinter.n_carved(), 4);
    }

    #[test]
    fn a_moved_file_is_compared_with_what_it_was() {
        let mut bench = Bench::new();
        let mut commit = |path: &str, text: &str, parents: &[Oid]| {
            bench.commit(&[(path, text)], parents, "Step\n")
        };
        let base = commit("a.rs", "fn f() {}\nfn g() { 1 }\nfn h() {}\n", &[]);
        let moved = commit("b.rs", "fn f() {}\nfn g() { 1 }\nfn h() {}\n", &[base]);
        let altered = commit("b.rs", "fn f() {}\nfn g() { 2 }\nfn h() {}\n", &[base]);
        let objects = bench.quarantine.objects();
        let footprinter = Footprinter::default();
        let shown = |tip| {
            let footprint = footprinter.between(&objects, Some(base), tip).unwrap();
            let shown = footprint.writes.iter().map(|(r, w)| format!("{} {r}", w.change.as_str()));
            shown.collect::<Vec<_>>().join(", ")
        };
        let whole = |path: &str| format!("moved {path}#f, moved {path}#g, moved {path}#h");
        assert_eq!(shown(moved), format!("{}, {}", whole("a.rs"), whole("b.rs")));
        let whole = |path: &str| format!("moved {path}#f, body {path}#g, moved {path}#h");
        assert_eq!(shown(altered), format!("{}, {}", whole("a.rs"), whole("b.rs")));
    }
}
