//! Locks on refs that are files: one lock a ref, and that of `packed-refs` where refs are deleted.

use std::collections::BTreeSet;

use bstr::BStr;
use zit_model::{RefName, RefUpdate};

use super::apply::{self, PackedLock, Step};
use super::check;
use super::ledger::Ledger;
use super::lock::{Lock, LockError};
use super::{PrepareError, RefusedUpdate};
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::refs::Files;
use crate::{Store, fsio};

/// Refs that are locked, with what their files shall hold. Dropping it lets go.
pub(crate) struct Locks {
    pub(super) steps: Vec<Step>,
    pub(super) packed: Option<PackedLock>,
}

impl Locks {
    /// Locks the refs of `at_once`; `updates` is the whole transaction, whose indexes refusals carry.
    pub(super) fn take(
        store: &Store,
        files: &Files,
        ledger: &mut Ledger,
        at_once: Vec<&RefUpdate>,
        updates: &[RefUpdate],
    ) -> Result<Self, PrepareError> {
        let mut locks = Self { steps: Vec::new(), packed: None };
        locks.plan(store, files, ledger, at_once)?;
        let wait = store.config()?.ref_lock_wait;
        let mut refused = Vec::new();
        for step in &mut locks.steps {
            if let Err(error) = step.lock.take(wait) {
                refused.push(check::unlocked(store, &step.update.name, error)?);
            }
        }
        if refused.is_empty() && locks.steps.iter().any(Step::is_delete) {
            refused = locks.lock_packed(store, files, ledger)?;
        }
        if !refused.is_empty() {
            return Err(check::refused(updates, refused));
        }
        crash_point("tx.locked");
        Ok(locks)
    }

    /// Writes what the refs shall hold, for their locks.
    fn plan(
        &mut self,
        store: &Store,
        files: &Files,
        ledger: &mut Ledger,
        mut updates: Vec<&RefUpdate>,
    ) -> Result<(), StoreError> {
        let sharing = store.config()?.sharing;
        updates.sort_by(|a, b| a.name.cmp(&b.name));
        for (i, update) in updates.into_iter().enumerate() {
            let file = ledger.folder.join(i.to_string());
            let content = apply::content(update.change.new_value());
            ledger.noting(fsio::write_unflushed(&file, &content))?;
            let target = files.path(update.name.as_bstr());
            let lock = Lock::planned(store.common_dir(), file, target).shared(sharing);
            self.steps.push(Step { update: update.clone(), lock });
        }
        crash_point("tx.planned");
        Ok(())
    }

    /// Locks `packed-refs`; the deletions are refused where somebody else holds it.
    fn lock_packed(
        &mut self,
        store: &Store,
        files: &Files,
        ledger: &mut Ledger,
    ) -> Result<Vec<RefusedUpdate>, StoreError> {
        let file = ledger.folder.join("packed");
        ledger.noting(fsio::write_unflushed(&file, b""))?;
        let config = store.config()?;
        let target = files.packed_path().to_owned();
        let mut lock = Lock::planned(store.common_dir(), file, target).shared(config.sharing);
        let taken = lock.take(config.packed_refs_wait);
        self.packed = Some(PackedLock::new(lock));
        match taken {
            Ok(()) => Ok(Vec::new()),
            Err(LockError::Held(_) | LockError::Blocked(_)) => {
                let deletes = self.steps.iter().filter(|step| step.is_delete());
                let locked = |name: &RefName| RefusedUpdate::Locked {
                    name: name.clone(),
                    lock: "packed-refs.lock".into(),
                };
                Ok(deletes.map(|step| locked(&step.update.name)).collect())
            }
            Err(LockError::Io(error)) => Err(error),
        }
    }

    /// Clears the way for the files, and writes what `packed-refs` shall hold.
    pub(super) fn make_ready(
        &mut self,
        ledger: &mut Ledger,
        updates: &[RefUpdate],
    ) -> Result<(), PrepareError> {
        for step in self.steps.iter().filter(|step| !step.is_delete()) {
            let name = &step.update.name;
            if !fsio::remove_empty_folders(step.lock.target()) {
                let lock = name.as_bstr().to_owned();
                let refused = RefusedUpdate::Locked { name: name.clone(), lock };
                return Err(check::refused(updates, vec![refused]));
            }
        }
        let deleted: BTreeSet<&BStr> = self
            .steps
            .iter()
            .filter(|step| step.is_delete())
            .map(|step| step.update.name.as_bstr())
            .collect();
        let file = ledger.folder.join("packed.next");
        let written = match &mut self.packed {
            Some(packed) => packed.write_next(file, &deleted),
            None => Ok(()),
        };
        Ok(ledger.noting(written)?)
    }
}
