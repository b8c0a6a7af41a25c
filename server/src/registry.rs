//! Which repositories there are, and the ones that are open.
//!
//! [`Registry::open`] finds the repository that a URL's path names, opens it once, and hands out the same
//! `Repository` from then on: there is one referee for each, whatever its URLs. A failure to open is not remembered, and
//! neither is a repository that was removed, moved, or replaced by another at its path.
//!
//! [`Registry::sweep`] closes what nobody uses.
//!
//! Never leaves the root: a path that symbolic links lead elsewhere names nothing.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zit_model::Instant;
use zit_referee::{Clock, RefereeError, Repository};
use zit_service::local;
use zit_store::PackLimits;

use crate::http::route::RepositoryPath;
use crate::socket::Door;

/// How long a command on this machine that has a repository open is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The file that marks a repository for export. Source: `git-http-backend`.
const EXPORT_OK: &str = "git-daemon-export-ok";

/// How many names are remembered.
const MAX_WAYS: usize = 4096;

/// How long a repository stays open that nobody asks for. Opening it again takes a few milliseconds.
const MAX_UNUSED: Duration = Duration::from_mins(15);

/// The repositories below one root.
pub(crate) struct Registry {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    /// Whether only repositories with [`EXPORT_OK`] are served.
    marked_only: bool,
    /// What a push through a socket may cost.
    limits: PackLimits,
    slots: Mutex<HashMap<PathBuf, Slot>>,
    /// Where names led when they were last resolved.
    ways: Mutex<HashMap<PathBuf, Arc<Way>>>,
}

/// How a name led to a repository that is open.
struct Way {
    /// What was tried before, and was not there.
    before: Vec<PathBuf>,
    /// What the name led to, its symbolic links not followed.
    path: PathBuf,
    file: FileId,
    /// Weak: what is closed is not kept open by having been found.
    open: Weak<Mutex<Option<Open>>>,
}

/// The place of one git directory. Whoever holds the inner lock opens or closes the repository; others wait for that
/// alone.
#[derive(Clone)]
struct Slot {
    /// Which directory it is: one that was removed and made again at the same path is another.
    file: FileId,
    open: Arc<Mutex<Option<Open>>>,
}

/// An open repository.
struct Open {
    /// The socket beside it. Invariant: before the repository, so that it is gone once the lock is free.
    _door: Option<Door>,
    repository: Arc<Repository>,
    /// When it was last asked for.
    used: Instant,
}

/// A directory's device, inode, and when it was made, if the file system knows: inodes are used again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64, Option<SystemTime>);

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino(), metadata.created().ok()))
    }
}

/// Why there is no repository to talk to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    /// The path names none.
    #[error("no git repository at {0}")]
    Absent(RepositoryPath),
    /// The path names one that its owner does not give out.
    #[error("repository not exported: {0}")]
    NotExported(RepositoryPath),
    /// The path names one that does not open.
    #[error("cannot open the repository {name}")]
    Open {
        /// The path of the URL.
        name: RepositoryPath,
        /// What the referee said.
        source: RefereeError,
    },
    /// The path cannot be looked at.
    #[error("cannot look at the repository {name}")]
    Look {
        /// The path of the URL.
        name: RepositoryPath,
        /// What the system said.
        source: io::Error,
    },
}

impl Registry {
    /// The repositories below `root`, an absolute path without symbolic links.
    pub(crate) fn new(root: PathBuf, clock: Arc<dyn Clock>, limits: PackLimits) -> Self {
        Self {
            root,
            clock,
            marked_only: false,
            limits,
            slots: Mutex::default(),
            ways: Mutex::default(),
        }
    }

    /// The same, but for repositories that are not marked for export, if `marked_only`.
    #[must_use]
    pub(crate) fn marked_only(self, marked_only: bool) -> Self {
        Self { marked_only, ..self }
    }

    /// The time that people tell.
    pub(crate) fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.clock.now().wall.0)
    }

    /// The repository that `name` names, opened if it was not.
    ///
    /// # Errors
    /// [`RegistryError`] when there is none or it does not open.
    pub(crate) fn open(&self, name: &RepositoryPath) -> Result<Arc<Repository>, RegistryError> {
        let look = |source| RegistryError::Look { name: name.clone(), source };
        let git_dir = resolve(&self.root, name)
            .map_err(look)?
            .ok_or_else(|| RegistryError::Absent(name.clone()))?;
        if self.marked_only && !git_dir.join(EXPORT_OK).try_exists().map_err(look)? {
            return Err(RegistryError::NotExported(name.clone()));
        }
        let slot = self.slot(&git_dir).map_err(look)?;
        self.note(name, &slot);
        let mut open = lock(&slot.open);
        // A referee that ended is dropped here; its lock goes with the last request that still holds it.
        if open.as_ref().is_some_and(|open| open.repository.has_ended()) {
            tracing::error!(git_dir = %git_dir.display(), "the referee ended; opening again");
            *open = None;
        }
        let used = self.clock.now().monotonic;
        if let Some(open) = &mut *open {
            open.used = used;
            return Ok(Arc::clone(&open.repository));
        }
        tracing::info!(git_dir = %git_dir.display(), "opening repository");
        let repository =
            local::open_waiting(PATIENCE, || Repository::open(&git_dir, Arc::clone(&self.clock)))
                .map_err(|source| RegistryError::Open { name: name.clone(), source })?;
        let repository = Arc::new(repository);
        // Without the socket others are kept waiting, and the server is as good.
        let door = Door::open(&git_dir, &repository, self.limits)
            .inspect_err(|error| tracing::warn!(%error, "no socket beside the repository"))
            .ok();
        *open = Some(Open { _door: door, repository: Arc::clone(&repository), used });
        Ok(repository)
    }

    /// The repository that `name` names, if it is open and that takes no more than a few stats to know.
    pub(crate) fn opened(&self, name: &RepositoryPath) -> Option<Arc<Repository>> {
        let way = lock(&self.ways).get(name.as_path()).cloned()?;
        let is_absent = |path: &PathBuf| fs::symlink_metadata(path).is_err_and(|e| is_nothing(&e));
        let same = way.before.iter().all(is_absent)
            && FileId::of(&way.path).is_ok_and(|file| file == way.file)
            && (!self.marked_only || way.path.join(EXPORT_OK).exists());
        if !same {
            return None;
        }
        let slot = way.open.upgrade()?;
        // Whoever holds it may be opening or closing, which takes long.
        let mut open = slot.try_lock().ok()?;
        let open = open.as_mut().filter(|open| !open.repository.has_ended())?;
        open.used = self.clock.now().monotonic;
        Some(Arc::clone(&open.repository))
    }

    /// Remembers where a name leads.
    fn note(&self, name: &RepositoryPath, slot: &Slot) {
        let paths = local::SUFFIXES.map(|suffix| {
            let mut path = self.root.join(name.as_path()).into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        });
        let is_it = |path: &PathBuf| FileId::of(path).is_ok_and(|file| file == slot.file);
        let Some(n_before) = paths.iter().position(is_it) else { return };
        let mut before = paths.to_vec();
        before.truncate(n_before + 1);
        let Some(path) = before.pop() else { return };
        let way = Way { before, path, file: slot.file, open: Arc::downgrade(&slot.open) };
        let mut ways = lock(&self.ways);
        if ways.len() >= MAX_WAYS {
            ways.clear();
        }
        ways.insert(name.as_path().to_owned(), Arc::new(way));
    }

    /// Closes the repositories that nobody has asked for in [`MAX_UNUSED`], and those whose directory is gone. Blocks.
    ///
    /// One with claims or open items stays: how old they are is known only while it is open.
    pub(crate) fn sweep(&self) {
        let now = self.clock.now().monotonic;
        let slots: Vec<_> = lock(&self.slots).iter().map(|(p, s)| (p.clone(), s.clone())).collect();
        for (path, slot) in slots {
            let is_there = FileId::of(&path).is_ok_and(|file| file == slot.file);
            // Whoever holds it is using it.
            let Ok(mut open) = slot.open.try_lock() else { continue };
            let close = open.as_ref().is_some_and(|open| !is_there || open.is_idle(now));
            if close {
                tracing::info!(git_dir = %path.display(), is_there, "closing repository");
                // Not before the lock of its file is free may another request open it again.
                *open = None;
            }
            if open.is_none() {
                self.forget(&path, &slot);
            }
        }
    }

    /// Lets go of every repository: each one's socket goes, and its lock with the last request that is at work there.
    pub(crate) fn close(&self) {
        let slots: Vec<Slot> = lock(&self.slots).drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            *lock(&slot.open) = None;
        }
    }

    fn slot(&self, git_dir: &Path) -> io::Result<Slot> {
        let file = FileId::of(git_dir)?;
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(git_dir).filter(|slot| slot.file == file) {
            return Ok(slot.clone());
        }
        // One that was moved is open at the path where it was, and another may have been here.
        let is_stale = |path: &PathBuf, slot: &mut Slot| slot.file == file || path == git_dir;
        let stale: Vec<_> = slots.extract_if(is_stale).collect();
        let slot = Slot { file, open: Arc::default() };
        slots.insert(git_dir.to_owned(), slot.clone());
        // Closing waits for the referee; only who wants the new slot has to.
        drop(slots);
        drop(stale);
        Ok(slot)
    }

    /// Removes a slot that is not taken. To be called with its lock held, so that nobody opens in it meanwhile.
    fn forget(&self, path: &Path, slot: &Slot) {
        let mut slots = lock(&self.slots);
        let is_same = slots.get(path).is_some_and(|found| Arc::ptr_eq(&found.open, &slot.open));
        // The map's and the caller's: whoever else has it is about to open in it.
        if is_same && Arc::strong_count(&slot.open) == 2 {
            slots.remove(path);
        }
    }
}

impl Open {
    fn is_idle(&self, now: Instant) -> bool {
        let unused = now.since(self.used);
        // A repository that is used now was asked for by somebody who still holds it.
        unused >= MAX_UNUSED
            && Arc::strong_count(&self.repository) == 1
            && self.repository.is_timeless()
    }
}

/// Finds the git directory that `name` names below `root`, its symbolic links followed; `None` when there is none.
fn resolve(root: &Path, name: &RepositoryPath) -> io::Result<Option<PathBuf>> {
    for suffix in local::SUFFIXES {
        let mut path = root.join(name.as_path()).into_os_string();
        path.push(suffix);
        let path = match Path::new(&path).canonicalize() {
            Ok(path) => path,
            Err(error) if is_nothing(&error) => continue,
            Err(error) => return Err(error),
        };
        if !path.starts_with(root) {
            tracing::warn!(%name, path = %path.display(), "a symbolic link leads out of the root");
            continue;
        }
        if is_git_dir(&path) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Source: git's `setup.c`, `is_git_directory`.
fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Whether the error says that a path, which a peer chose, names no file.
fn is_nothing(error: &io::Error) -> bool {
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::InvalidFilename];
    // Links that lead in a circle have no stable kind yet.
    let circle = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    circle || kinds.contains(&error.kind())
}

/// A registry whose opener panicked still knows which repositories are open.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use zit_referee::ManualClock;
    use zit_store::{Access, Store, StoreError};

    use super::*;

    fn git_dir(path: &Path) {
        for dir in ["objects", "refs"] {
            fs::create_dir_all(path.join(dir)).unwrap();
        }
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[track_caller]
    fn check(root: &Path, name: &str, expected: Option<&str>) {
        let name = RepositoryPath::new(name.as_bytes()).unwrap();
        let found = resolve(root, &name).unwrap();
        let found = found.map(|path| path.strip_prefix(root).unwrap().display().to_string());
        assert_eq!(found.as_deref(), expected, "{name}");
    }

    /// A folder with `root` in it, and the root's path without symbolic links.
    fn world() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        let root = root.canonicalize().unwrap();
        (dir, root)
    }

    fn name(name: &str) -> RepositoryPath {
        RepositoryPath::new(name.as_bytes()).unwrap()
    }

    #[test]
    fn a_repository_that_nobody_uses_is_closed_and_opened_again() {
        let (_dir, root) = world();
        let path = root.join("a.git");
        Store::init(&path).unwrap();
        let clock = Arc::new(ManualClock::default());
        let registry = Registry::new(root, clock.clone(), PackLimits::default());
        let is_closed = || Store::open(&path, Access::Referee).is_ok();
        let held = registry.open(&name("a")).unwrap();
        clock.advance(MAX_UNUSED);
        registry.sweep();
        assert!(!is_closed(), "a request still holds it");
        drop(held);
        registry.open(&name("a")).unwrap();
        clock.advance(MAX_UNUSED / 2);
        registry.sweep();
        assert!(!is_closed(), "it was used not long ago");
        clock.advance(MAX_UNUSED / 2);
        registry.sweep();
        assert!(is_closed());
        assert!(lock(&registry.slots).is_empty());
        registry.open(&name("a")).unwrap();
        assert!(!is_closed());
    }

    #[test]
    fn a_repository_that_was_moved_or_replaced_is_not_taken_for_the_old_one() {
        let (_dir, root) = world();
        let registry =
            Registry::new(root.clone(), Arc::new(ManualClock::default()), PackLimits::default());
        let (a, b) = (root.join("a.git"), root.join("b.git"));
        Store::init(&a).unwrap();
        assert!(registry.opened(&name("a")).is_none(), "it is not open");
        let old = Arc::downgrade(&registry.open(&name("a")).unwrap());
        let same = |found| old.ptr_eq(&Arc::downgrade(&found));
        assert!(registry.opened(&name("a")).is_some_and(same));
        fs::rename(&a, &b).unwrap();
        assert!(registry.opened(&name("a")).is_none(), "it is elsewhere");
        let absent = registry.open(&name("a"));
        assert!(matches!(absent, Err(RegistryError::Absent(_))));
        registry.open(&name("b")).unwrap();
        assert!(old.upgrade().is_none(), "one referee a repository");
        // Removed and made again, mostly with the same inode.
        fs::remove_dir_all(&b).unwrap();
        Store::init(&b).unwrap();
        assert!(registry.opened(&name("b")).is_none(), "it is another one");
        registry.open(&name("b")).unwrap();
        assert!(registry.opened(&name("b")).is_some());
        // What the name would rather mean comes to be.
        fs::create_dir(root.join("b")).unwrap();
        assert!(registry.opened(&name("b")).is_none(), "it is to be resolved again");
        fs::remove_dir(root.join("b")).unwrap();
        assert!(matches!(Store::open(&b, Access::Referee), Err(StoreError::InUse(_))));
        fs::remove_dir_all(&b).unwrap();
        registry.sweep();
        assert!(lock(&registry.slots).is_empty(), "one that is gone is closed");
    }

    #[test]
    fn a_path_finds_its_repository_with_or_without_its_suffix() {
        let (_dir, root) = world();
        for path in ["bare.git", "plain", "work/.git", "team/deep.git", "both/.git", "both.git"] {
            git_dir(&root.join(path));
        }
        for (name, expected) in [
            ("bare", Some("bare.git")),
            ("bare.git", Some("bare.git")),
            ("plain", Some("plain")),
            ("work", Some("work/.git")),
            ("work/.git", Some("work/.git")),
            ("team/deep", Some("team/deep.git")),
            ("team", None),
            ("both", Some("both/.git")),
            ("both.git", Some("both.git")),
            ("absent", None),
            ("bare.git/refs", None),
            ("bare.git/HEAD", None),
            ("bare.git/HEAD/x", None),
        ] {
            check(&root, name, expected);
        }
        check(&root, &"x".repeat(5000), None);
    }

    #[test]
    fn a_link_within_the_root_is_followed_and_one_out_of_it_is_not() {
        let (dir, root) = world();
        git_dir(&root.join("real.git"));
        git_dir(&dir.path().join("outside.git"));
        git_dir(&dir.path().join("root-beside.git"));
        symlink(root.join("real.git"), root.join("alias.git")).unwrap();
        symlink(dir.path().join("outside.git"), root.join("out.git")).unwrap();
        symlink(dir.path().join("root-beside.git"), root.join("beside.git")).unwrap();
        symlink(dir.path(), root.join("up")).unwrap();
        symlink(root.join("loop"), root.join("loop")).unwrap();
        check(&root, "alias", Some("real.git"));
        for name in ["out", "out.git", "beside.git", "up/outside.git", "loop"] {
            check(&root, name, None);
        }
        check(&root, "up/root/real.git", Some("real.git"));
    }

    #[test]
    fn a_git_file_is_not_followed() {
        let (dir, root) = world();
        git_dir(&dir.path().join("outside.git"));
        let text = format!("gitdir: {}\n", dir.path().join("outside.git").display());
        fs::write(root.join("file.git"), &text).unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/.git"), &text).unwrap();
        for name in ["file", "file.git", "work"] {
            check(&root, name, None);
        }
    }
}
