//! The backlog: what the journal holds and the repository's files do not show yet.
//!
//! A transaction is acknowledged once its record is flushed. Its small objects and its deferred refs are then owed to the
//! files, where stock git looks; a thread that lives as long as there is something to do pays in rounds:
//!
//! 1. objects, in a pack ([`pack`]) that is kept until
//! 2. refs name them, each by a lock and a rename as git does it, so that `git pack-refs` beside it loses nothing, or
//!    all in one transaction of git's where they are a reftable;
//! 3. the mark: `zit/settled` says up to which record everything is in its file.
//!
//! Refs and mark are not flushed, and a crash costs nothing: what is past the mark is read from the journal again, and
//! after a power failure (the mark names the boot) everything since the last checkpoint is.

mod checkpoint;
mod files;
mod mark;
mod pack;
mod pending;
mod tables;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gix_hash::ObjectId;
use zit_model::{Oid, RefName};

use crate::config_file::ConfigFile;
use crate::error::StoreError;
use crate::quarantine::Kept;
use crate::refs::Storage;

use checkpoint::Followed;
use pack::Packer;

pub(crate) use files::folder;
use mark::FolderId;
pub(crate) use mark::Mark;
pub(crate) use pending::{Beside, Content, Pending, Unpacked};

/// How long what is owed waits for more of it, so that one round pays for many transactions. Stock git sees a deferred
/// ref at most this and one round later.
const GATHER: Duration = Duration::from_millis(80);

/// The stack of the thread that pays, in bytes.
const STACK: usize = 512 << 10;

/// How long to wait after a round that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// How long a last round may take.
const ROUND: Duration = Duration::from_mins(1);

/// What one transaction, or a batch of them, owes.
#[derive(Default)]
pub(crate) struct Debt {
    pub(crate) refs: BTreeMap<RefName, Option<Oid>>,
    pub(crate) objects: HashMap<ObjectId, Content>,
    /// Packs that refs are about to name.
    pub(crate) kept: Vec<Kept>,
    /// The last record that this belongs to.
    pub(crate) seq: u64,
}

impl Debt {
    /// Adds a later debt: where both name a ref, the later value counts.
    fn add(&mut self, later: Self) {
        self.refs.extend(later.refs);
        self.objects.extend(later.objects);
        self.kept.extend(later.kept);
        self.seq = self.seq.max(later.seq);
    }

    fn is_paid(&self, settled: u64) -> bool {
        self.refs.is_empty() && self.objects.is_empty() && self.seq <= settled
    }
}

/// What is owed to the files of one repository, and who pays.
pub(crate) struct Backlog {
    git_dir: PathBuf,
    /// Which folder that was when it was opened.
    id: FolderId,
    kind: gix_hash::Kind,
    storage: Storage,
    config: Arc<ConfigFile>,
    pending: Pending,
    state: Mutex<State>,
    woken: Condvar,
    /// Locked by whoever pays.
    packer: Mutex<Packer>,
}

#[derive(Default)]
struct State {
    debt: Debt,
    settled: u64,
    followed: Option<Followed>,
    /// A thread is at work or about to be.
    running: bool,
    /// Nothing is gathered any more.
    closing: bool,
}

impl Backlog {
    /// Of the repository at `git_dir`, in which there is a folder `zit`.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when there is none any more.
    pub(crate) fn new(
        git_dir: &Path,
        kind: gix_hash::Kind,
        storage: Storage,
        config: Arc<ConfigFile>,
    ) -> Result<Self, StoreError> {
        let packer = Packer::new(git_dir.join("objects"), kind);
        let id = FolderId::of(git_dir).ok_or_else(|| StoreError::Gone(git_dir.to_owned()))?;
        Ok(Self {
            git_dir: git_dir.to_owned(),
            id,
            kind,
            storage,
            config,
            pending: Pending::default(),
            state: Mutex::default(),
            woken: Condvar::new(),
            packer: Mutex::new(packer),
        })
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Owes what has been journaled.
    pub(crate) fn owe(self: &Arc<Self>, debt: Debt) {
        let mut state = self.state();
        state.debt.add(debt);
        if state.debt.is_paid(state.settled) || state.running {
            return;
        }
        let is_due = state.followed.as_ref().is_some_and(Followed::is_due);
        if state.debt.refs.is_empty() && state.debt.objects.is_empty() && !is_due {
            drop(state);
            // Nothing but the mark: a thread costs more.
            if let Err(error) = self.settle() {
                tracing::warn!(%error, "zit/settled is not written");
            }
            return;
        }
        state.running = true;
        let backlog = Arc::clone(self);
        let thread = std::thread::Builder::new().name("settle".into()).stack_size(STACK);
        if let Err(error) = thread.spawn(move || backlog.work()) {
            tracing::warn!(%error, "refs below refs/zit wait for a thread");
            state.running = false;
        }
    }

    /// Pays everything that is owed now.
    ///
    /// # Errors
    /// As the file system says; what was not paid stays owed.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        let mut packer = self.packer();
        let debt = {
            let mut state = self.state();
            if state.debt.is_paid(state.settled) {
                return Ok(());
            }
            let seq = state.debt.seq;
            std::mem::replace(&mut state.debt, Debt { seq, ..Debt::default() })
        };
        let paid = self.pay(&debt, &mut packer);
        let mut state = self.state();
        match paid {
            Ok(unpaid) => {
                // What came again in the meantime stays until its own round.
                let objects =
                    debt.objects.keys().filter(|id| !state.debt.objects.contains_key(*id));
                self.pending.remove(objects);
                if unpaid.refs.is_empty() {
                    state.settled = debt.seq;
                    return Ok(());
                }
                let later = std::mem::take(&mut state.debt);
                let (n_refs, first) = (unpaid.refs.len(), unpaid.first);
                let (kept, seq) = (debt.kept, debt.seq);
                state.debt = Debt { refs: unpaid.refs, kept, seq, ..Debt::default() };
                state.debt.add(later);
                Err(StoreError::Unsettled { n_refs, first })
            }
            Err(error) => {
                let later = std::mem::replace(&mut state.debt, debt);
                state.debt.add(later);
                Err(error)
            }
        }
    }

    /// Puts all objects that are owed into files, those of a new debt included, ahead of refs that lead to them. They
    /// are kept until the debt is paid.
    pub(crate) fn place(&self, debt: &mut Debt) -> Result<(), StoreError> {
        self.check_place()?;
        let mut packer = self.packer();
        let owed = self.state().debt.objects.clone();
        debt.objects.extend(owed);
        packer.write(&debt.objects, debt.seq)?;
        let placed = std::mem::take(&mut debt.objects);
        let mut state = self.state();
        state.debt.objects.retain(|id, _| !placed.contains_key(id));
        self.pending.remove(placed.keys());
        Ok(())
    }

    /// Pays for a program of git that is about to look. What another program holds it does without.
    pub(crate) fn show(&self) -> Result<(), StoreError> {
        match self.settle() {
            Err(error @ StoreError::Unsettled { .. }) => {
                tracing::debug!(%error, "a program of git sees old values");
                Ok(())
            }
            settled => settled,
        }
    }

    /// Up to which record everything is in its file.
    pub(crate) fn settled(&self) -> u64 {
        self.state().settled
    }

    /// Makes readers forget objects that are not owed.
    pub(crate) fn forget<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) {
        let state = self.state();
        self.pending.remove(ids.filter(|id| !state.debt.objects.contains_key(*id)));
    }

    /// Pays what is owed, takes a checkpoint and gathers no more; nothing is at work any more when this returns.
    /// Whatever fails is in the journal.
    pub(crate) fn close(&self) {
        self.state().closing = true;
        self.woken.notify_all();
        let settled = self.settle();
        drop(self.woken.wait_timeout_while(self.state(), ROUND, |state| state.running));
        // What git does from now on is not to be taken for a lost write after a power failure.
        if let Err(error) = settled.and_then(|()| self.checkpoint_refs()) {
            tracing::warn!(%error, "files follow when the repository is opened again");
        }
    }

    fn work(&self) {
        let mut wait = GATHER;
        loop {
            self.gather(wait);
            let settled = self.settle();
            // A lock in the way of some refs is no reason to keep what is in files already.
            let checked = match settled {
                Ok(()) | Err(StoreError::Unsettled { .. }) => self.checkpoint_if_due(),
                Err(_) => Ok(()),
            };
            wait = match settled.and(checked) {
                Ok(()) => GATHER,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "files do not follow yet"
                    );
                    AFTER_FAILURE
                }
            };
            let mut state = self.state();
            if state.closing || state.debt.is_paid(state.settled) {
                state.running = false;
                self.woken.notify_all();
                return;
            }
        }
    }

    fn gather(&self, wait: Duration) {
        let state = self.state();
        let woken = self.woken.wait_timeout_while(state, wait, |state| !state.closing);
        drop(woken);
    }

    fn packer(&self) -> MutexGuard<'_, Packer> {
        self.packer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
