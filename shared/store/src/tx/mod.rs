//! The ref transaction: prepare, then stage or commit, or drop.
//!
//! # Stages
//!
//! 1. **Look** ([`check`]). Every update is checked against the refs as they are, without a lock. Whoever has lost
//!    already learns it here, with the value found, before anything is written.
//! 2. **Lock** ([`lock`]). A deferred ref needs none: nobody else writes it. Any other's lock is a file of `zit/tx/` with
//!    what the ref file shall hold, hard-linked to `<ref>.lock`. A link is as exclusive as the `O_EXCL` of stock git,
//!    which honours it; and since both names are one inode, recovery tells a lock of ours that a crash left behind from
//!    one that a running git holds. A deletion also locks `packed-refs`, as git does, also when the file need not change:
//!    otherwise `git pack-refs` could pack the ref while it goes away, and bring it back.
//! 3. **Verify**. Stage 1 again, now under the locks. Its answer stands.
//! 4. **Stage** ([`ledger`]). The record of the transaction waits for the next flush, which may take many. Objects that are not in the
//!    record are flushed before.
//! 5. **Flush**. The append to the journal is the commit point. Then files are renamed ([`apply`]; the file `shallow` before
//!    refs, [`ends`]), deferred refs become
//!    visible, and what the files do not show yet goes into the [backlog](crate::backlog).
//!
//! A transaction with a ref that is not deferred is flushed at once, together with what waits. Dropping a [`Prepared`]
//! undoes stages 2 and 3 and leaves nothing.
//!
//! # What a reader may see
//!
//! Before the commit point every ref as it was; after [`Prepared::commit`] or [`Store::flush`] returns every ref as it
//! shall be, also after power loss. In between a reader of several refs may see some moved and some not, as with stock
//! git; a crash there is finished by the next [`Store::open`](crate::Store::open), before anything else looks.
//!
//! # Recovery ([`recover`])
//!
//! Locks that share an inode with a file of ours are removed. Then every record that may not be in the files is carried
//! out again. A deferred ref takes its last value. Any other is written if it still holds a value that it had before, or
//! is damaged; anything else was moved by another program since, stays, and is journaled as an override. The file
//! `shallow` gets the commits that it lacks, unless their parents have come since.
//!
//! # Forms
//!
//! That is how refs that are files move ([`locks`]). A [reftable](crate::refs) is locked, verified and written by one git
//! program instead ([`tables`]); [`held`] is either. Everything else is the same.
//!
//! The folder must lie on a file system with hard links.

mod apply;
mod check;
mod ends;
mod fold;
mod held;
mod ledger;
mod lock;
mod locks;
mod recover;
mod tables;

use std::collections::BTreeSet;
use std::sync::MutexGuard;

use bstr::{BString, ByteSlice};
use zit_model::{Oid, RefName, RefUpdate};

use crate::crash::crash_point;
use crate::error::StoreError;
use crate::journal::Draft;
use crate::objects::{Kind, Objects};
use crate::quarantine::Quarantine;
use crate::reflog::LogEntry;
use crate::refs::{Form, is_deferred};
use crate::{Store, fsio};

pub(crate) use apply::PackedLock;
pub(crate) use ledger::{Ledger, decode_state, encode_state};
pub(crate) use lock::{Lock, LockError, lock_path, remove_empty_parents};
pub(crate) use recover::{recover, undo_folder};

use ends::Ends;
use held::Held;

/// Why one update of a transaction is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RefusedUpdate {
    /// It was to be created, and exists.
    #[error("{name} already exists at {}", found.short())]
    Exists {
        /// The ref.
        name: RefName,
        /// What it holds.
        found: Oid,
    },
    /// It was to hold a value, and does not exist.
    #[error("{name} does not exist; expected {}", expected.short())]
    Missing {
        /// The ref.
        name: RefName,
        /// The value it was to hold.
        expected: Oid,
    },
    /// It holds another value than it was to.
    #[error("{name} is at {}, not at {}", found.short(), expected.short())]
    Stale {
        /// The ref.
        name: RefName,
        /// The value it was to hold.
        expected: Oid,
        /// The value it holds.
        found: Oid,
    },
    /// A ref cannot be the folder of another.
    #[error("{name} conflicts with the ref {with}")]
    NameConflict {
        /// The ref.
        name: RefName,
        /// A ref that exists, or another of the same transaction.
        with: RefName,
    },
    /// Another program holds a lock, and held it until the wait was over.
    #[error("{name} is locked by another program ({lock})")]
    Locked {
        /// The ref.
        name: RefName,
        /// What is in the way, relative to the git directory.
        lock: BString,
    },
    /// The new value names no object.
    #[error("{name}: object {} is missing", oid.short())]
    MissingObject {
        /// The ref.
        name: RefName,
        /// The new value.
        oid: Oid,
    },
    /// A branch names commits only.
    #[error("{name}: {} is a {kind}, not a commit", oid.short())]
    NotACommit {
        /// The ref.
        name: RefName,
        /// The new value.
        oid: Oid,
        /// What it is.
        kind: Kind,
    },
    /// The transaction names the ref twice.
    #[error("{name} is updated twice")]
    Duplicate {
        /// The ref.
        name: RefName,
    },
    /// A symbolic ref is not updated, neither itself nor through it.
    #[error("{name} is a symbolic ref to {target}")]
    Symbolic {
        /// The ref.
        name: RefName,
        /// What it names.
        target: BString,
    },
    /// The ref's file holds neither an oid nor a ref.
    #[error("{name} is broken: its file holds no object id")]
    Broken {
        /// The ref.
        name: RefName,
    },
}

impl RefusedUpdate {
    /// The ref it is about.
    #[must_use]
    pub fn name(&self) -> &RefName {
        match self {
            Self::Exists { name, .. }
            | Self::Missing { name, .. }
            | Self::Stale { name, .. }
            | Self::NameConflict { name, .. }
            | Self::Locked { name, .. }
            | Self::MissingObject { name, .. }
            | Self::NotACommit { name, .. }
            | Self::Duplicate { name }
            | Self::Symbolic { name, .. }
            | Self::Broken { name } => name,
        }
    }

    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exists { .. } | Self::Missing { .. } | Self::Stale { .. } => {
                Some("fetch, and decide again on what is there now")
            }
            Self::NameConflict { .. } => Some("choose another name, or delete the ref in the way"),
            Self::Locked { .. } => Some("try again; remove the file if no git program is running"),
            Self::MissingObject { .. } => Some("push the object along with the ref"),
            Self::NotACommit { .. } => Some("push it as a tag or below another folder of refs/"),
            Self::Symbolic { .. } => Some("push to the ref that it names"),
            Self::Broken { .. } => Some("run `git fsck` in the repository"),
            Self::Duplicate { .. } => None,
        }
    }
}

/// Every refused update of a transaction, with its index, in that order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedUpdates(pub Vec<(usize, RefusedUpdate)>);

impl std::fmt::Display for RefusedUpdates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (_, refused)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{refused}")?;
        }
        Ok(())
    }
}

/// Why a transaction was not prepared. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Some updates may not be.
    #[error("{0}")]
    Refused(RefusedUpdates),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A transaction that holds its locks and whose every precondition has been verified under them.
#[must_use = "dropping a prepared transaction undoes it"]
pub struct Prepared<'a> {
    // In the order of dropping: the ledger is free for the next transaction once the locks are gone.
    held: Option<Held>,
    ends: Option<Ends>,
    deferred: Vec<RefUpdate>,
    log: Option<LogEntry>,
    ledger: MutexGuard<'a, Ledger>,
    store: &'a Store,
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.updates()).finish()
    }
}

impl Store {
    /// Locks the refs of `updates` and checks every precondition, what is staged included. Waits for the transaction
    /// before: preparing a second one in the same thread while holding a first never returns.
    ///
    /// # Errors
    /// [`PrepareError::Refused`] with every refused update; [`PrepareError::Store`] when the file system refuses.
    pub fn prepare(&self, updates: &[RefUpdate]) -> Result<Prepared<'_>, PrepareError> {
        self.prepare_seeing(updates, &[])
    }

    /// As [`Store::prepare`], for values that are still in quarantine. Hand the quarantines to the commit: until then,
    /// the refs are locked and nobody sees the new values.
    ///
    /// # Errors
    /// As [`Store::prepare`].
    pub fn prepare_seeing(
        &self,
        updates: &[RefUpdate],
        quarantined: &[&Objects],
    ) -> Result<Prepared<'_>, PrepareError> {
        self.prepare_logged(updates, quarantined, None)
    }

    /// As [`Store::prepare_seeing`], with what the logs of the refs shall say, where the repository keeps logs.
    ///
    /// # Errors
    /// As [`Store::prepare`].
    pub fn prepare_logged(
        &self,
        updates: &[RefUpdate],
        quarantined: &[&Objects],
        log: Option<LogEntry>,
    ) -> Result<Prepared<'_>, PrepareError> {
        let mut ledger = self.ledger()?;
        self.backlog()?.check_place()?;
        if ledger.unfinished {
            recover(self, &mut ledger)?;
        }
        check::all(self, updates, quarantined)?;
        let (deferred, filed): (Vec<&RefUpdate>, Vec<&RefUpdate>) =
            updates.iter().partition(|update| is_deferred(update.name.as_bstr()));
        let deferred = deferred.into_iter().cloned().collect();
        let mut held = None;
        if !filed.is_empty() {
            let mut taken =
                Held::take(self, &mut ledger, filed, updates, quarantined, log.as_ref())?;
            check::all(self, updates, quarantined)?;
            taken.make_ready(&mut ledger, updates)?;
            held = Some(taken);
        }
        crash_point("tx.verified");
        Ok(Prepared { held, ends: None, deferred, log, ledger, store: self })
    }

    /// Flushes everything that is staged.
    ///
    /// # Errors
    /// As the file system says. What was staged then did not happen, as far as anybody can tell before the next
    /// [`Store::prepare`] or [`Store::open`], which looks.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.ledger()?.flush(self, None, None)
    }
}

impl Prepared<'_> {
    /// Lets the repository's history end at `roots` too, once the refs move, and not if they do not.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another program has the file `shallow` locked, [`StoreError::Io`] when nothing can be
    /// written.
    pub fn end_at(&mut self, roots: &BTreeSet<Oid>) -> Result<(), StoreError> {
        if !roots.is_empty() {
            self.ends = Ends::take(self.store, &mut self.ledger, roots)?;
        }
        Ok(())
    }

    /// Moves the refs, and everything that is staged. `draft` says who asked; `objects` are what the refs shall name.
    ///
    /// # Errors
    /// As the file system says. Whether the transaction happened is then decided, wholly, by the next
    /// [`Store::prepare`] or [`Store::open`].
    pub fn commit(mut self, draft: Draft, objects: Vec<Quarantine>) -> Result<(), StoreError> {
        self.enter(draft, objects)?;
        self.ledger.flush(self.store, self.ends.as_mut(), self.held.as_mut())?;
        self.write_logs();
        Ok(())
    }

    /// As [`Prepared::commit`], but where every ref is deferred and history ends nowhere else, the flush is left to [`Store::flush`], or to the next
    /// commit. Until then only later transactions see it.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    pub fn stage(mut self, draft: Draft, objects: Vec<Quarantine>) -> Result<(), StoreError> {
        if self.held.is_some() || self.ends.is_some() {
            return self.commit(draft, objects);
        }
        self.enter(draft, objects)?;
        self.write_logs();
        Ok(())
    }

    /// Logs the moves where logs are files. A move without its line is no failure.
    fn write_logs(&self) {
        if let (Some(entry), Form::Files(_)) = (&self.log, self.store.refs.form())
            && let Err(error) = self.store.log_moves(self.updates(), entry)
        {
            tracing::warn!(%error, "cannot write a reflog");
        }
    }

    /// Puts the transaction into the ledger.
    fn enter(&mut self, mut draft: Draft, objects: Vec<Quarantine>) -> Result<(), StoreError> {
        let mut kept = Vec::new();
        draft.changes = self.updates().cloned().collect();
        draft.facts.extend(self.ends.iter().flat_map(Ends::facts));
        for quarantine in objects {
            let migrated = quarantine.migrate()?;
            kept.push(migrated.kept);
            draft.objects.extend(ledger::inline(&migrated.inline));
        }
        self.ledger.enter(self.store, draft)?;
        self.ledger.keep(kept);
        crash_point("tx.staged");
        Ok(())
    }

    /// What the transaction does.
    pub fn updates(&self) -> impl Iterator<Item = &RefUpdate> {
        self.held.iter().flat_map(Held::updates).chain(&self.deferred)
    }
}

/// Makes HEAD name a ref: the same files and lock, one rename.
pub(crate) fn set_head(
    store: &Store,
    ledger: &mut Ledger,
    name: &RefName,
) -> Result<(), StoreError> {
    if ledger.unfinished {
        recover(store, ledger)?;
    }
    let files = match store.refs.form() {
        Form::Files(files) => files,
        Form::Reftable(_) => return tables::set_head(store, name),
    };
    let content = [b"ref: ", name.as_bstr().as_bytes(), b"\n"].concat();
    let file = ledger.folder.join("head");
    ledger.unfinished = true;
    fsio::write_new(&file, &content)?;
    let lock = Lock::planned(store.common_dir(), file, files.head_path().to_owned());
    ledger.unfinished = false;
    let config = store.config()?;
    let mut lock = lock.shared(config.sharing);
    lock.take(config.ref_lock_wait).map_err(LockError::into_store)?;
    lock.publish().inspect_err(|_| ledger.unfinished = true)?;
    fsio::sync(store.git_dir())
}
