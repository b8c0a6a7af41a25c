//! Refs of a reftable, locked: one transaction of `git update-ref`, prepared.
//!
//! Git looks for the objects that refs are to name while it prepares; they may be in memory only, as they are journaled
//! first. It is shown them in a folder `objects/incoming-zit-…`, which goes with the transaction.

use std::collections::BTreeSet;
use std::path::Path;

use bstr::ByteSlice as _;
use gix_object::Write as _;
use tempfile::TempDir;
use zit_model::{Oid, RefName, RefUpdate};

use super::ledger::Ledger;
use super::{PrepareError, RefusedUpdate, check, lock_path};
use crate::Store;
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::git::{Git, GitError};
use crate::objects::{self, Objects};
use crate::quarantine::PREFIX;
use crate::reflog::LogEntry;
use crate::refs::Reftable;
use crate::update_ref::{self, Change, Plan, UpdateRef};

/// How the lock of all refs is told to who has to wait for it.
const LOCK: &str = "reftable/tables.list.lock";

/// Refs that are locked with all others. Dropping it lets go.
pub(crate) struct Tables {
    pub(super) updates: Vec<RefUpdate>,
    prepared: Option<UpdateRef>,
}

impl Tables {
    /// Locks the reftable; `updates` is the whole transaction, whose indexes refusals carry.
    pub(super) fn take(
        store: &Store,
        tables: &Reftable,
        ledger: &Ledger,
        at_once: Vec<&RefUpdate>,
        updates: &[RefUpdate],
        quarantined: &[&Objects],
        log: Option<&LogEntry>,
    ) -> Result<Self, PrepareError> {
        let mut at_once: Vec<RefUpdate> = at_once.into_iter().cloned().collect();
        at_once.sort_by(|a, b| a.name.cmp(&b.name));
        crash_point("tx.planned");
        let tips = at_once.iter().filter_map(|update| update.change.new_value()).collect();
        let objects = shown(store, quarantined, &tips)?;
        match prepare(store, tables, &ledger.folder, &at_once, objects, log) {
            Ok(prepared) => {
                crash_point("tx.locked");
                Ok(Self { updates: at_once, prepared: Some(prepared) })
            }
            Err(error @ GitError::Failed { .. }) => {
                // Somebody has moved a ref meanwhile, or is about to.
                check::all(store, updates, quarantined)?;
                if !lock_path(&tables.tables()).exists() {
                    tracing::warn!(%error, "git did not prepare a transaction");
                }
                let locked = |update: &RefUpdate| RefusedUpdate::Locked {
                    name: update.name.clone(),
                    lock: LOCK.into(),
                };
                Err(check::refused(updates, at_once.iter().map(locked).collect()))
            }
            Err(error) => Err(PrepareError::Store(error.into())),
        }
    }

    /// Moves refs that the journal says have moved; their objects are in files.
    pub(super) fn again(
        store: &Store,
        tables: &Reftable,
        ledger: &Ledger,
        updates: Vec<RefUpdate>,
    ) -> Result<(), StoreError> {
        if updates.is_empty() {
            return Ok(());
        }
        let prepared = prepare(store, tables, &ledger.folder, &updates, None, None)?;
        Self { updates, prepared: Some(prepared) }.apply()
    }

    /// Moves the refs, then lets go.
    pub(super) fn apply(&mut self) -> Result<(), StoreError> {
        let Some(mut prepared) = self.prepared.take() else { return Ok(()) };
        prepared.commit()?;
        for _ in &self.updates {
            crash_point("tx.renamed");
        }
        Ok(prepared.finish()?)
    }
}

/// Makes HEAD name a ref.
pub(super) fn set_head(store: &Store, name: &RefName) -> Result<(), StoreError> {
    Git::at(store.common_dir(), &update_ref::SETTINGS, "symbolic-ref")
        .arg("HEAD")
        .arg(name.as_bstr().to_os_str_lossy())
        .output()?;
    Ok(())
}

/// Prepares updates of a reftable.
fn prepare(
    store: &Store,
    tables: &Reftable,
    folder: &Path,
    updates: &[RefUpdate],
    objects: Option<TempDir>,
    log: Option<&LogEntry>,
) -> Result<UpdateRef, GitError> {
    let wait = store.config().map_or_else(|_| std::time::Duration::ZERO, |it| it.ref_lock_wait);
    let plan = Plan {
        git_dir: store.common_dir(),
        tables: tables.tables(),
        folder,
        kind: store.hash_kind(),
        wait,
        log,
        objects,
    };
    UpdateRef::prepare(plan, updates.iter().map(Change::from))
}

/// A folder with the objects of `tips` that are in no file of the repository; `None` when all are.
fn shown(
    store: &Store,
    quarantined: &[&Objects],
    tips: &BTreeSet<Oid>,
) -> Result<Option<TempDir>, StoreError> {
    let files = store.files()?.to_cache_arc();
    let hidden: Vec<Oid> =
        tips.iter().copied().filter(|oid| !files.exists_without_refresh(oid.as_gix())).collect();
    if hidden.is_empty() {
        return Ok(None);
    }
    let own = store.objects()?;
    let objects_dir = store.objects_dir();
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(&objects_dir)
        .doing("create a folder in", &objects_dir)?;
    std::fs::create_dir(folder.path().join("pack")).doing("create", folder.path())?;
    let database = objects::open(folder.path(), store.hash_kind())?;
    let into = database.to_cache_arc();
    for oid in hidden {
        for objects in quarantined.iter().copied().chain([&own]) {
            if let Some(kind) = objects.kind(oid)? {
                let bytes = objects.read(oid, kind)?;
                into.write_buf_with_known_id(kind, &bytes, oid.as_gix().to_owned())
                    .map_err(|error| StoreError::WriteObject(error.to_string()))?;
                break;
            }
        }
    }
    Ok(Some(folder))
}
