//! One round: objects and refs into their files, in an order that stock git may watch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, ByteSlice};
use zit_model::{Oid, RefName};

use super::pack::Packer;
use super::{Backlog, Debt, Mark, boot_id};
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::tx::{Lock, LockError, PackedLock, remove_empty_parents};

impl Backlog {
    /// Pays; what comes back are the refs that something is in the way of.
    pub(super) fn pay(
        &self,
        debt: &Debt,
        packer: &mut Packer,
    ) -> Result<BTreeMap<RefName, Option<Oid>>, StoreError> {
        packer.sharing = self.config.current()?.sharing;
        packer.write(&debt.objects, debt.seq)?;
        crash_point("settle.objects");
        let unpaid = self.write_refs(&debt.refs)?;
        crash_point("settle.refs");
        if unpaid.is_empty() {
            Mark { boot: boot_id(), seq: debt.seq }.write(&self.git_dir)?;
            packer.release(debt.seq)?;
        }
        Ok(unpaid)
    }

    fn write_refs(
        &self,
        refs: &BTreeMap<RefName, Option<Oid>>,
    ) -> Result<BTreeMap<RefName, Option<Oid>>, StoreError> {
        if refs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let config = self.config.current()?;
        let folder = folder(&self.git_dir);
        fs::create_dir_all(&folder).doing("create", &folder)?;
        let mut unpaid = BTreeMap::new();
        let mut deleted = Vec::new();
        for (name, new) in refs {
            let Some(oid) = new else {
                deleted.push(name);
                continue;
            };
            if let Err(error) = self.write_ref(&folder, name, *oid, config.ref_lock_wait) {
                tracing::debug!(%name, %error, "a ref waits");
                unpaid.insert(name.clone(), *new);
            }
        }
        let waits = (config.ref_lock_wait, config.packed_refs_wait);
        if let Err(error) = self.delete_refs(&folder, &deleted, waits) {
            tracing::debug!(%error, "refs wait to be deleted");
            unpaid.extend(deleted.into_iter().map(|name| (name.clone(), None)));
        }
        Ok(unpaid)
    }

    fn write_ref(
        &self,
        folder: &Path,
        name: &RefName,
        new: Oid,
        wait: Duration,
    ) -> Result<(), StoreError> {
        let target = self.path(name);
        let content = format!("{new}\n");
        if fs::read(&target).is_ok_and(|found| found == content.as_bytes()) {
            return Ok(());
        }
        fsio::remove_empty_folders(&target);
        let mut lock = self.lock(folder, "ref", content.as_bytes(), target, wait)?;
        lock.publish()
    }

    /// As stock git deletes: both locks, then the packed line, then the file.
    fn delete_refs(
        &self,
        folder: &Path,
        names: &[&RefName],
        (wait, packed_wait): (Duration, Duration),
    ) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let lock =
            self.lock(folder, "packed", b"", self.git_dir.join("packed-refs"), packed_wait)?;
        let mut packed = PackedLock::new(lock);
        let deleted: BTreeSet<&BStr> = names.iter().map(|name| name.as_bstr()).collect();
        let next = folder.join("packed.next");
        fsio::remove_file(&next)?;
        packed.write_next(next, &deleted)?;
        packed.publish()?;
        for name in names {
            let target = self.path(name);
            let mut lock = self.lock(folder, "ref", b"", target.clone(), wait)?;
            fsio::remove_file(&target)?;
            lock.release()?;
            remove_empty_parents(&self.git_dir, &target);
        }
        packed.release()
    }

    fn lock(
        &self,
        folder: &Path,
        file: &str,
        content: &[u8],
        target: PathBuf,
        wait: Duration,
    ) -> Result<Lock, StoreError> {
        let file = folder.join(file);
        fsio::remove_file(&file)?;
        fsio::write_unflushed(&file, content)?;
        let sharing = self.config.current()?.sharing;
        let mut lock = Lock::planned(&self.git_dir, file, target).shared(sharing);
        lock.take(wait).map_err(LockError::into_store)?;
        Ok(lock)
    }

    fn path(&self, name: &RefName) -> PathBuf {
        self.git_dir.join(name.as_bstr().to_path_lossy())
    }
}

/// Where locks of this room are made: a crash leaves them linked to files of this folder.
pub(crate) fn folder(git_dir: &Path) -> PathBuf {
    git_dir.join("zit").join("settle")
}
