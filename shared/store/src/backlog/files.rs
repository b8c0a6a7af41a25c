//! One round: objects and refs into their files, in an order that stock git may watch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, ByteSlice};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use zit_model::{Oid, RefName};

use super::pack::Packer;
use super::{Backlog, Debt, FolderId, Mark};
use crate::boot::boot_id;
use crate::config::RepoConfig;
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::refs::Storage;
use crate::sharing::Sharing;
use crate::tx::{Lock, LockError, PackedLock, lock_path, remove_empty_parents};

/// Refs that something is in the way of.
#[derive(Default)]
pub(super) struct Unpaid {
    pub(super) refs: BTreeMap<RefName, Option<Oid>>,
    /// What is in the way of the first.
    pub(super) first: String,
}

impl Unpaid {
    pub(super) fn add(&mut self, name: &RefName, new: Option<Oid>, error: &dyn Display) {
        tracing::debug!(%name, %error, "a ref waits");
        if self.refs.is_empty() {
            self.first = error.to_string();
        }
        self.refs.insert(name.clone(), new);
    }
}

impl Backlog {
    /// Pays; what comes back are the refs that something is in the way of.
    pub(super) fn pay(&self, debt: &Debt, packer: &mut Packer) -> Result<Unpaid, StoreError> {
        self.check_place()?;
        packer.sharing = self.config.current()?.sharing;
        packer.write(&debt.objects, debt.seq)?;
        crash_point("settle.objects");
        let unpaid = self.write_refs(&debt.refs)?;
        crash_point("settle.refs");
        if unpaid.refs.is_empty() {
            // Without a boot to name, the mark is read as none.
            let boot = boot_id().unwrap_or_default();
            Mark { boot, seq: debt.seq, folder: self.id }.write(&self.git_dir)?;
            packer.release(debt.seq)?;
        }
        Ok(unpaid)
    }

    fn write_refs(&self, refs: &BTreeMap<RefName, Option<Oid>>) -> Result<Unpaid, StoreError> {
        if refs.is_empty() {
            return Ok(Unpaid::default());
        }
        let config = self.config.current()?;
        let folder = folder(&self.git_dir);
        if let Err(error) = fs::create_dir(&folder)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error).doing("create", &folder);
        }
        if self.storage == Storage::Reftable {
            return self.write_tables(&folder, refs);
        }
        let mut unpaid = Unpaid::default();
        let mut deleted = Vec::new();
        for (name, new) in refs {
            let Some(oid) = new else {
                deleted.push(name);
                continue;
            };
            if let Err(error) = self.write_ref(&folder, name, *oid, &config) {
                unpaid.add(name, *new, &error);
            }
        }
        let waits = (config.ref_lock_wait, config.packed_refs_wait);
        if let Err(error) = self.delete_refs(&folder, &deleted, waits, &mut unpaid) {
            for name in deleted {
                unpaid.add(name, None, &error);
            }
        }
        Ok(unpaid)
    }

    fn write_ref(
        &self,
        folder: &Path,
        name: &RefName,
        new: Oid,
        config: &RepoConfig,
    ) -> Result<(), StoreError> {
        let target = self.path(name);
        let content = format!("{new}\n");
        match fs::read(&target) {
            Ok(found) if found == content.as_bytes() => return Ok(()),
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && create_ref(folder, &target, content.as_bytes(), config.sharing)? =>
            {
                return Ok(());
            }
            Ok(_) | Err(_) => {}
        }
        fsio::remove_empty_folders(&target);
        let mut lock =
            self.lock(folder, "ref", content.as_bytes(), target, config.ref_lock_wait)?;
        lock.publish()
    }

    /// As stock git deletes: both locks, then the packed line, then the file. A file that cannot be locked is left unpaid.
    fn delete_refs(
        &self,
        folder: &Path,
        names: &[&RefName],
        (wait, packed_wait): (Duration, Duration),
        unpaid: &mut Unpaid,
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
            if let Err(error) = self.delete_file(folder, name, wait) {
                unpaid.add(name, None, &error);
            }
        }
        packed.release()
    }

    fn delete_file(&self, folder: &Path, name: &RefName, wait: Duration) -> Result<(), StoreError> {
        let target = self.path(name);
        let mut lock = self.lock(folder, "ref", b"", target.clone(), wait)?;
        fsio::remove_file(&target)?;
        lock.release()?;
        remove_empty_parents(&self.git_dir, &target);
        Ok(())
    }

    /// That the repository is still where it was. Another one may have taken the place.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        match FolderId::of(&self.git_dir) {
            Some(found) if found == self.id => Ok(()),
            Some(_) | None => Err(StoreError::Gone(self.git_dir.clone())),
        }
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
        fsio::write_over(&file, content)?;
        let sharing = self.config.current()?.sharing;
        let mut lock = Lock::planned(&self.git_dir, file, target).shared(sharing);
        lock.take(wait).map_err(LockError::into_store)?;
        Ok(lock)
    }

    pub(super) fn path(&self, name: &RefName) -> PathBuf {
        self.git_dir.join(name.as_bstr().to_path_lossy())
    }
}

/// Makes the file of a ref that has none: complete, at once, and only if still none is there. Whether it did; whatever is in
/// the way, a lock of stock git too, is for who takes the lock to find out.
///
/// Without a lock, since there is no value to compare and stock git packs only what has a file: a new claim costs two
/// changes of folders instead of four.
fn create_ref(
    folder: &Path,
    target: &Path,
    content: &[u8],
    sharing: Sharing,
) -> Result<bool, StoreError> {
    if fsio::inode(&lock_path(target)).is_some() {
        return Ok(false);
    }
    let file = folder.join("ref");
    fsio::write_over(&file, content)?;
    sharing.share(&file);
    Ok(renameat_with(CWD, &file, CWD, target, RenameFlags::NOREPLACE).is_ok())
}

/// Where locks of this room are made: a crash leaves them linked to files of this folder.
pub(crate) fn folder(git_dir: &Path) -> PathBuf {
    git_dir.join("zit").join("settle")
}
