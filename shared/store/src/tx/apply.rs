//! Carrying out: what happens to the files of refs whose locks are held. Recovery takes the same way.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bstr::BStr;
use zit_model::{Oid, RefChange, RefUpdate};

use super::lock::{self, Lock};
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::packed;

/// One ref of a transaction, with its lock.
pub(crate) struct Step {
    pub(crate) update: RefUpdate,
    pub(crate) lock: Lock,
}

impl Step {
    pub(crate) fn is_delete(&self) -> bool {
        matches!(self.update.change, RefChange::Delete { .. })
    }
}

/// What a ref's file holds for a value; a deleted ref's lock is empty.
pub(crate) fn content(new: Option<Oid>) -> Vec<u8> {
    new.map(|oid| format!("{oid}\n").into_bytes()).unwrap_or_default()
}

/// The lock of `packed-refs`, and the file's next content where it changes.
pub(crate) struct PackedLock {
    lock: Lock,
    next: Option<PathBuf>,
}

impl PackedLock {
    pub(crate) fn new(lock: Lock) -> Self {
        Self { lock, next: None }
    }

    /// Writes and flushes the content without the refs in `deleted` to `file`, where any of them is packed.
    pub(crate) fn write_next(
        &mut self,
        file: PathBuf,
        deleted: &BTreeSet<&BStr>,
    ) -> Result<(), StoreError> {
        let path = self.lock.target();
        let content = match fs::read(path) {
            Ok(content) => content,
            Err(error) if fsio::is_absent(&error) => return Ok(()),
            Err(error) => return Err(error).doing("read", path),
        };
        let next = packed::without(&content, deleted);
        if next != content {
            fsio::write_new(&file, &next)?;
            self.lock.sharing().share(&file);
            self.next = Some(file);
        }
        Ok(())
    }

    /// Puts the next content in place; the lock stays.
    pub(crate) fn publish(&mut self) -> Result<(), StoreError> {
        let Some(next) = self.next.take() else { return Ok(()) };
        let path = self.lock.target();
        fs::rename(&next, path).doing("replace", path)?;
        path.parent().map_or(Ok(()), fsio::sync)
    }

    /// Lets go.
    pub(crate) fn release(&mut self) -> Result<(), StoreError> {
        self.lock.release()
    }
}

impl Drop for PackedLock {
    fn drop(&mut self) {
        if let Some(next) = self.next.take()
            && let Err(error) = fsio::remove_file(&next)
        {
            tracing::warn!(%error, "a file stays until the repository is opened again");
        }
    }
}

/// Moves the refs, then lets go. None of it is flushed but `packed-refs`: the journal has it.
///
/// A ref that is deleted leaves `packed-refs` first and its own file last, so that it never shows an older value.
pub(crate) fn apply(
    git_dir: &Path,
    steps: &mut [Step],
    mut packed: Option<&mut PackedLock>,
) -> Result<(), StoreError> {
    if let Some(packed) = &mut packed {
        packed.publish()?;
    }
    for step in steps.iter_mut() {
        let target = step.lock.target().to_owned();
        if step.is_delete() {
            fsio::remove_file(&target)?;
        } else {
            step.lock.publish()?;
        }
        crash_point("tx.renamed");
    }
    for step in steps.iter_mut().filter(|step| step.is_delete()) {
        step.lock.release()?;
        remove_reflog(git_dir, step);
        lock::remove_empty_parents(git_dir, step.lock.target());
    }
    if let Some(packed) = packed {
        packed.release()?;
    }
    Ok(())
}

/// A ref that comes back later must not find the log of the one that went.
fn remove_reflog(git_dir: &Path, step: &Step) {
    let log = git_dir.join("logs").join(OsStr::from_bytes(step.update.name.as_bstr()));
    if log.is_file() && fs::remove_file(&log).is_ok() {
        lock::remove_empty_parents(git_dir, &log);
    }
}
