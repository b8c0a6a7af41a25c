//! [`Store`]: one repository, opened by its referee or for reading only.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bstr::BStr;
use zit_model::{Namespace, Oid, RefName};

use crate::answers::Shelf;
use crate::backlog::Backlog;
use crate::config::RepoConfig;
use crate::config_file::ConfigFile;
use crate::error::{Doing, StoreError};
use crate::locate;
use crate::maintain::{self, Folded};
use crate::objects::{Database, Objects};
use crate::packs::Packs;
use crate::polls::Polls;
use crate::quarantine::Quarantine;
use crate::reach::Reach;
use crate::refs::{Head, Refs, ResolvedHead, Storage, StoredRef};
use crate::tx::{self, Ledger};
use crate::upload::UploadPack;

/// How few free places for packs are left when the object database is opened again.
const FEW_PLACES: usize = 128;

/// How many handles are given out between two looks at the free places: looking costs more than a handle does.
const HANDLES_PER_LOOK: u32 = 32;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A referee's: a bare repository at exactly the path. Takes the repository's lock (`zit/lock`), finishes or undoes
    /// what a crash left, and may write.
    Referee,
    /// A fetch's, while another may be the referee: a bare repository at exactly the path. Never writes.
    Fetch,
    /// Any repository at the path or upward from it, also one with a work tree. Never writes.
    ReadOnly,
}

/// One repository. Shared freely between threads; transactions wait for each other.
pub struct Store {
    git_dir: PathBuf,
    common_dir: PathBuf,
    kind: gix_hash::Kind,
    pub(crate) refs: Refs,
    config: Arc<ConfigFile>,
    objects: Mutex<Packs>,
    handles: AtomicU32,
    answers: Arc<Shelf>,
    reach: Reach,
    polls: Polls,
    folded: Folded,
    writer: Option<Writer>,
}

/// What only a referee has.
struct Writer {
    // In the order of dropping: the backlog's last round comes before another referee may take the lock.
    ledger: Mutex<Ledger>,
    backlog: Arc<Backlog>,
    /// Held, not used: the lock goes with the file.
    _lock: File,
}

impl Store {
    /// Opens the repository at `path`.
    ///
    /// # Errors
    /// [`StoreError::NotARepository`], [`StoreError::NotBare`] or [`StoreError::Unsupported`] for what cannot be
    /// served, [`StoreError::InUse`] when another referee has it open, and whatever recovery runs into.
    pub fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let (git_dir, common_dir) = match access {
            Access::Referee | Access::Fetch => {
                let path = locate::bare(path)?;
                (path.clone(), path)
            }
            Access::ReadOnly => locate::discover(path)?,
        };
        let config = Arc::new(ConfigFile::new(common_dir.clone(), git_dir.clone()));
        let (kind, storage) = locate::formats(&config, &common_dir)?;
        locate::check_alternates(&common_dir)?;
        let store = Self {
            refs: Refs::new(storage, &common_dir, &git_dir, kind),
            objects: Mutex::new(Packs::open(&common_dir.join("objects"), kind)?),
            handles: AtomicU32::new(0),
            answers: Shelf::new(common_dir.join("zit")),
            reach: Reach::default(),
            polls: Polls::default(),
            folded: Folded::default(),
            writer: (access == Access::Referee)
                .then(|| Writer::open(&common_dir, kind, storage, &config))
                .transpose()?,
            config,
            git_dir,
            common_dir,
            kind,
        };
        if store.writer.is_some() {
            crate::quarantine::remove_stale(&store.objects_dir())?;
            // Before the transaction's: what is left may lock refs.
            maintain::recover(&store.common_dir)?;
            tx::undo_folder(&store, &crate::backlog::folder(&store.common_dir))?;
            store.refs.defer(&store.objects()?)?;
            tx::recover(&store, &mut *store.ledger()?)?;
        }
        Ok(store)
    }

    /// The git directory. A linked work tree's is its own.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The folder with `objects`, `refs` and `config`; differs from [`Store::git_dir`] in a linked work tree only.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Which hash function names the objects.
    #[must_use]
    pub fn hash_kind(&self) -> gix_hash::Kind {
        self.kind
    }

    /// The configuration as it is now.
    ///
    /// # Errors
    /// [`StoreError`] when the file is missing or does not parse.
    pub fn config(&self) -> Result<Arc<RepoConfig>, StoreError> {
        self.config.current()
    }

    /// The configuration as it is now, if that takes no reading.
    pub(crate) fn known_config(&self) -> Option<Arc<RepoConfig>> {
        self.config.known()
    }

    /// A number that is another one after each change of the configuration.
    pub(crate) fn config_generation(&self) -> Result<u64, StoreError> {
        self.config.generation()
    }

    /// What HEAD names.
    ///
    /// # Errors
    /// [`StoreError`] when there is no HEAD or it does not parse.
    pub fn head(&self) -> Result<Head, StoreError> {
        self.refs.head()
    }

    /// What HEAD leads to, through every symbolic ref.
    ///
    /// # Errors
    /// As [`Store::head`], and when a file cannot be read.
    pub fn resolved_head(&self) -> Result<ResolvedHead, StoreError> {
        self.refs.resolved_head(&self.objects()?)
    }

    /// What the HEAD of a namespace leads to, as the repository names it; `None` when there is none.
    pub(crate) fn resolved_head_of(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<ResolvedHead>, StoreError> {
        let name = format!("{}HEAD", namespace.prefix());
        self.refs.resolved_as_head(name.as_str().into(), &self.objects()?)
    }

    /// Makes HEAD name a ref, which need not exist.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when stock git holds HEAD, else as the file system says.
    pub fn set_head(&self, name: &RefName) -> Result<(), StoreError> {
        tx::set_head(self, &mut *self.ledger()?, name)
    }

    /// Every ref, by name. Refs that are broken or have names that git refuses are left out with a warning.
    ///
    /// # Errors
    /// [`StoreError`] when a folder or file cannot be read.
    pub fn refs(&self) -> Result<Vec<StoredRef>, StoreError> {
        self.refs_below("refs/")
    }

    /// Every ref outside `refs/zit/`, current, and of the others there those alone whose names start with one of `deferred`,
    /// which are sorted and disjoint; by name. Of many claims, none is looked at.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub fn refs_with(&self, deferred: &[&str]) -> Result<Vec<StoredRef>, StoreError> {
        self.refs.filed_with(BStr::new("refs/"), deferred, &self.objects()?)
    }

    /// The refs whose names start with `prefix`, by name.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub fn refs_below(&self, prefix: impl AsRef<[u8]>) -> Result<Vec<StoredRef>, StoreError> {
        self.refs.below(BStr::new(prefix.as_ref()), &self.objects()?)
    }

    /// What a ref resolves to for the next transaction, which sees what is staged; `None` when it does not exist or leads
    /// nowhere. Readers go by [`Reading::find_ref`](crate::Reading::find_ref).
    ///
    /// # Errors
    /// [`StoreError`] when a file cannot be read.
    pub fn find_ref(&self, name: &RefName) -> Result<Option<Oid>, StoreError> {
        self.refs.resolve_staged(name.as_bstr())
    }

    /// The ref that a symbolic ref leads to in the end, whether or not that exists; `None` for any other, and for one that
    /// leads to no ref.
    ///
    /// # Errors
    /// [`StoreError`] when a file cannot be read.
    pub fn symref_target(&self, name: &RefName) -> Result<Option<RefName>, StoreError> {
        let end = self.refs.end(name.as_bstr().to_owned())?;
        Ok(if end == *name.as_bstr() { None } else { RefName::new(&end).ok() })
    }

    /// What a ref resolves to for readers.
    pub(crate) fn visible_ref(&self, name: &RefName) -> Result<Option<Oid>, StoreError> {
        self.refs.resolve(name.as_bstr())
    }

    /// The number that the journal gives to the next transaction: higher than that of any before, also after a restart.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] without the right to write.
    pub fn next_seq(&self) -> Result<u64, StoreError> {
        Ok(self.ledger()?.next_seq())
    }

    /// Makes sure that the journal's numbers go on above `seq`, which something in the repository carries already.
    /// `time_ms` is the time as the journal writes it.
    ///
    /// # Errors
    /// As the file system says.
    pub fn skip_to(&self, seq: u64, time_ms: u64) -> Result<(), StoreError> {
        self.ledger()?.skip_to(self, seq, time_ms)
    }

    /// Puts everything that was acknowledged into the files where stock git looks.
    ///
    /// # Errors
    /// As the file system says; it is tried again later anyhow.
    pub fn settle(&self) -> Result<(), StoreError> {
        self.writer.as_ref().map_or(Ok(()), |writer| writer.backlog.settle())
    }

    /// A handle on the repository's objects, also on those that arrive later.
    ///
    /// # Errors
    /// [`StoreError::OpenObjects`] when the database has to be opened again and cannot.
    pub fn objects(&self) -> Result<Objects, StoreError> {
        Ok(Objects::new(&self.database()?, self.kind))
    }

    fn database(&self) -> Result<Database, StoreError> {
        let pending = self.writer.as_ref().map(|writer| writer.backlog.pending().clone());
        Ok(Database { files: self.files()?, pending: pending.unwrap_or_default() })
    }

    pub(crate) fn files(&self) -> Result<Arc<gix_odb::Store>, StoreError> {
        let mut packs = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        // The library has a fixed number of places for packs and fails once they are used up.
        let look = self.handles.fetch_add(1, Ordering::Relaxed).is_multiple_of(HANDLES_PER_LOOK);
        let is_full = look && packs.store().metrics().unused_slots < FEW_PLACES;
        if packs.has_lost_any(&self.objects_dir())? || is_full {
            *packs = Packs::open(&self.objects_dir(), self.kind)?;
        }
        Ok(Arc::clone(packs.store()))
    }

    /// An empty quarantine: a place for objects that nobody else sees until they are migrated.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] without the right to write; otherwise as [`Store::objects`].
    pub fn quarantine(&self) -> Result<Quarantine, StoreError> {
        let backlog = Arc::clone(self.backlog()?);
        let config = self.config()?;
        let receive = Arc::clone(&config.receive);
        let quarantine = Quarantine::new(&self.common_dir, self.database()?, backlog, self.kind);
        Ok(quarantine.receiving(receive).shared(config.sharing))
    }

    /// Where packs for fetches come from.
    #[must_use]
    pub fn pack_source(&self) -> UploadPack {
        let backlog = self.writer.as_ref().map(|writer| Arc::clone(&writer.backlog));
        UploadPack::new(self.common_dir.clone(), backlog)
    }

    /// Puts everything into files and, where much was journaled since the last time, flushes them, so that the journal
    /// may forget. It happens by itself.
    ///
    /// # Errors
    /// As the file system says.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.settle()?;
        self.backlog()?.checkpoint_if_due()
    }

    /// What maintenance left.
    pub(crate) fn folded(&self) -> &Folded {
        &self.folded
    }

    /// An error for a store that was opened for reading.
    pub(crate) fn must_write(&self) -> Result<(), StoreError> {
        self.writer().map(drop)
    }

    /// What was met in the histories of refs.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The lists of refs that are kept as they were sent.
    pub(crate) fn polls(&self) -> &Polls {
        &self.polls
    }

    /// The answers to fetches that are kept.
    pub(crate) fn answers(&self) -> &Arc<Shelf> {
        &self.answers
    }

    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Waits for the transaction before.
    pub(crate) fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, StoreError> {
        Ok(self.writer()?.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn backlog(&self) -> Result<&Arc<Backlog>, StoreError> {
        Ok(&self.writer()?.backlog)
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly(self.git_dir.clone()))
    }
}

impl Writer {
    fn open(
        git_dir: &Path,
        kind: gix_hash::Kind,
        storage: Storage,
        config: &Arc<ConfigFile>,
    ) -> Result<Self, StoreError> {
        let folder = git_dir.join("zit");
        let tx = folder.join("tx");
        fs::create_dir_all(&tx).doing("create", &tx)?;
        let path = folder.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .doing("open", &path)?;
        match lock.try_lock() {
            Ok(()) => name_holder(&lock).doing("write", &path)?,
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(git_dir.to_owned())),
            Err(TryLockError::Error(error)) => return Err(error).doing("lock", &path),
        }
        let ledger = Mutex::new(Ledger::open(&folder)?);
        let backlog = Arc::new(Backlog::new(git_dir, kind, storage, Arc::clone(config))?);
        Ok(Self { ledger, backlog, _lock: lock })
    }
}

/// Says in the lock's file who holds it, for whoever wonders.
fn name_holder(mut lock: &File) -> std::io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.backlog.close();
    }
}
