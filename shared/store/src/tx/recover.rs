//! Recovery: finishes a transaction that was past its commit point, and undoes one that was not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use bstr::BStr;
use zit_model::{Oid, RefUpdate};

use super::apply::{self, PackedLock, Step};
use super::lock::{self, Lock, LockError};
use super::{TxFolder, plan};
use crate::error::{Doing, StoreError};
use crate::refs::Value;
use crate::{Store, fsio};

/// Leaves `zit/tx` empty and no lock of ours anywhere. Changes nothing when there is nothing to do, and can itself be
/// interrupted at any point.
pub(crate) fn recover(store: &Store, folder: &mut TxFolder) -> Result<(), StoreError> {
    folder.unfinished = true;
    let intent = folder.intent();
    match fs::read(&intent) {
        Ok(content) => {
            let updates = plan::decode(&content).ok_or_else(|| StoreError::Damaged {
                path: intent.clone(),
                why: "it is no plan of a transaction".to_owned(),
            })?;
            roll_forward(store, folder, &updates)?;
            fsio::remove_file(&intent)?;
            fsio::sync(&folder.path)?;
        }
        Err(error) if fsio::is_absent(&error) => {}
        Err(error) => return Err(error).doing("read", &intent),
    }
    undo(store, folder)?;
    folder.unfinished = false;
    Ok(())
}

/// Carries out what is still to be done of a committed transaction.
fn roll_forward(store: &Store, folder: &TxFolder, updates: &[RefUpdate]) -> Result<(), StoreError> {
    let mut steps = Vec::new();
    for (i, update) in updates.iter().enumerate() {
        if pending(store, update)?
            && let Some(lock) = lock_again(store, folder.file(&i.to_string()), update)?
            // Once more, now that nobody can move it.
            && pending(store, update)?
        {
            steps.push(Step { update: update.clone(), lock });
        }
    }
    let deleted: BTreeSet<&BStr> = steps
        .iter()
        .filter(|step| step.is_delete())
        .map(|step| step.update.name.as_bstr())
        .collect();
    let mut packed = None;
    if !deleted.is_empty() {
        let mut held = PackedLock::new(lock_packed_again(store, folder)?);
        let next = folder.file("packed.next");
        fsio::remove_file(&next)?;
        held.write_next(next, &deleted)?;
        packed = Some(held);
    }
    drop(deleted);
    tracing::info!(refs = steps.len(), "finished a transaction that a crash interrupted");
    apply::apply(&store.refs, &mut steps, packed.as_mut())
}

/// Whether the ref still holds its old value.
fn pending(store: &Store, update: &RefUpdate) -> Result<bool, StoreError> {
    let found = store.refs.value(update.name.as_bstr())?;
    let holds = |value: Option<Oid>| found == value.map(Value::Oid);
    if holds(update.change.new_value()) {
        return Ok(false);
    }
    if !holds(update.change.old_value()) {
        tracing::warn!(name = %update.name, ?found, "a committed update was overtaken by another program");
        return Ok(false);
    }
    Ok(true)
}

/// The ref's lock: the one that the crash left, or a new one. `None` when another ref is now in the way.
fn lock_again(
    store: &Store,
    file: PathBuf,
    update: &RefUpdate,
) -> Result<Option<Lock>, StoreError> {
    if fsio::inode(&file).is_none() {
        fsio::write_new(&file, &apply::content(update.change.new_value()))?;
    }
    let target = store.refs.path(update.name.as_bstr());
    if !fsio::remove_empty_folders(&target) {
        tracing::warn!(name = %update.name, "a committed update lost its name to another program");
        return Ok(None);
    }
    let mut lock = Lock::planned(store.common_dir(), file, target);
    match lock.take(store.config()?.ref_lock_wait) {
        Ok(()) => Ok(Some(lock)),
        Err(LockError::Blocked(_)) => {
            tracing::warn!(name = %update.name, "a committed update lost its name to another program");
            Ok(None)
        }
        Err(error) => Err(keep(lock, error)),
    }
}

fn lock_packed_again(store: &Store, folder: &TxFolder) -> Result<Lock, StoreError> {
    let file = folder.file("packed");
    if fsio::inode(&file).is_none() {
        fsio::write_new(&file, b"")?;
    }
    let mut lock = Lock::planned(store.common_dir(), file, store.refs.packed.path().to_owned());
    match lock.take(store.config()?.packed_refs_wait) {
        Ok(()) => Ok(lock),
        Err(error) => Err(keep(lock, error)),
    }
}

/// The files stay for the next attempt.
fn keep(mut lock: Lock, error: LockError) -> StoreError {
    lock.leave();
    error.into_store()
}

/// Removes what is left in `zit/tx`, and every lock that is a link to it.
fn undo(store: &Store, folder: &TxFolder) -> Result<(), StoreError> {
    let mut files = Vec::new();
    let mut linked = BTreeSet::new();
    for entry in fs::read_dir(&folder.path).doing("list", &folder.path)? {
        let path = entry.doing("list", &folder.path)?.path();
        let meta = fs::symlink_metadata(&path).doing("look at", &path)?;
        if meta.nlink() > 1 {
            linked.insert((meta.dev(), meta.ino()));
        }
        files.push(path);
    }
    if !linked.is_empty() {
        remove_locks(store, &linked)?;
    }
    files.iter().try_for_each(|path| fsio::remove_file(path))
}

fn remove_locks(store: &Store, ours: &BTreeSet<(u64, u64)>) -> Result<(), StoreError> {
    let mut locks =
        vec![lock::lock_path(store.refs.head_path()), lock::lock_path(store.refs.packed.path())];
    let mut folders = vec![store.refs.path(BStr::new("refs"))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).doing("list", &folder)? {
            let entry = entry.doing("list", &folder)?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "lock") {
                locks.push(entry.path());
            }
        }
    }
    for path in locks {
        if fsio::inode(&path).is_some_and(|inode| ours.contains(&inode)) {
            tracing::info!(path = %path.display(), "removed a lock that a crash left");
            fsio::remove_file(&path)?;
            lock::remove_empty_parents(store.common_dir(), &path);
        }
    }
    Ok(())
}
