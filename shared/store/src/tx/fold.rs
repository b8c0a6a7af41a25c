//! Removing the file of a ref that `packed-refs` has with the same value.
//!
//! `git pack-refs` would do it, and looks at the file alone. A ref that is deleted after it was packed, and created again
//! with the value that it had, then has that value in its file and no line any more, and would lose the file. Here both
//! are looked at while the ref is locked, without which nobody changes either.

use std::time::Duration;

use bstr::BStr;

use super::lock::{Lock, LockError, remove_empty_parents};
use crate::error::StoreError;
use crate::refs::Files;
use crate::{Store, fsio};

impl Store {
    /// Removes the file of a ref if `packed-refs` says the same; leaves one that somebody else has locked.
    pub(crate) fn fold_ref(&self, files: &Files, name: &BStr) -> Result<(), StoreError> {
        let mut ledger = self.ledger()?;
        // What failed half way is looked at by the next transaction; until then nothing else is touched.
        if ledger.unfinished || !files.is_packed_too(name)? {
            return Ok(());
        }
        let file = ledger.folder.join("folded");
        ledger.noting(fsio::write_unflushed(&file, b""))?;
        let target = files.path(name);
        let sharing = self.config()?.sharing;
        let mut lock = Lock::planned(self.common_dir(), file, target.clone()).shared(sharing);
        match lock.take(Duration::ZERO) {
            Ok(()) => {}
            Err(LockError::Held(_) | LockError::Blocked(_)) => return Ok(()),
            Err(LockError::Io(error)) => return Err(error),
        }
        if files.is_packed_too(name)? {
            fsio::remove_file(&target)?;
        }
        lock.release()?;
        remove_empty_parents(self.common_dir(), &target);
        Ok(())
    }
}
