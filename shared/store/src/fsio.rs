//! Files: flushing, and telling whether a file is still the one that was read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use crate::error::{Doing, StoreError};

/// What tells one version of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    inode: (u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
    len: u64,
}

impl Stamp {
    /// The stamp of the file at `path`; `None` when there is none.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>, StoreError> {
        match fs::metadata(path) {
            Ok(meta) => Ok(Some(Self {
                inode: (meta.dev(), meta.ino()),
                modified: (meta.mtime(), meta.mtime_nsec()),
                changed: (meta.ctime(), meta.ctime_nsec()),
                len: meta.len(),
            })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error).doing("look at", path),
        }
    }
}

/// Device and inode of what `path` itself names; `None` when there is nothing.
pub(crate) fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Whether the error says that the path names nothing.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Creates a file that must not exist and flushes its content.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(path).doing("create", path)?;
    file.write_all(content).doing("write", path)?;
    file.sync_all().doing("flush", path)
}

/// Writes a file that need not survive a power failure. One that is there, and may have another name too, is not written to.
pub(crate) fn write_over(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    let file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_file(path)?;
            create()
        }
        created => created,
    };
    file.and_then(|mut file| file.write_all(content)).doing("write", path)
}

/// Writes a file that need not survive a power failure.
pub(crate) fn write_unflushed(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    fs::write(path, content).doing("write", path)
}

/// Flushes a folder's entries, or a file's content.
pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).doing("flush", path)
}

/// Flushes a folder's entries, unless garbage collection has packed what it held and removed it.
pub(crate) fn sync_if_there(path: &Path) -> Result<(), StoreError> {
    match File::open(path) {
        Err(error) if is_absent(&error) => Ok(()),
        opened => opened.and_then(|file| file.sync_all()).doing("flush", path),
    }
}

/// Gives a file the present as its time, which keeps `git gc` from pruning it for a while; says whether it is there.
pub(crate) fn freshen(path: &Path) -> Result<bool, StoreError> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    match utimensat(CWD, path, &times, AtFlags::empty()).map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        // Another user's file may be read, and is as good.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
        Err(error) => Err(error).doing("freshen", path),
    }
}

/// Removes a file that may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error).doing("remove", path),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes `path` if it is a folder that holds nothing but folders. Whether no folder is left there.
pub(crate) fn remove_empty_folders(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return !path.is_dir() };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir())
            || !remove_empty_folders(&entry.path())
        {
            return false;
        }
    }
    fs::remove_dir(path).is_ok() || !path.exists()
}
