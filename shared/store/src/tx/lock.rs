//! One lock: a file of `zit/tx`, hard-linked to `<target>.lock`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::sharing::Sharing;

/// How often folders that vanish while a lock is being taken are created again.
const FOLDER_ATTEMPTS: u32 = 8;

/// How many folders above a ref stay although empty: `refs` and, say, `heads`.
const KEPT_FOLDERS: usize = 2;

/// The first pause while somebody else holds the lock; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// A lock, planned or held. Dropping it removes its files, unless it was published or left.
pub(crate) struct Lock {
    git_dir: PathBuf,
    file: PathBuf,
    target: PathBuf,
    held: bool,
    /// Files are still to be removed.
    open: bool,
    sharing: Sharing,
}

/// Why a lock was not taken.
pub(crate) enum LockError {
    /// Somebody else's lock stayed.
    Held(PathBuf),
    /// A folder of the target's path is a file.
    Blocked(PathBuf),
    Io(StoreError),
}

impl LockError {
    pub(crate) fn into_store(self) -> StoreError {
        match self {
            Self::Held(path) | Self::Blocked(path) => StoreError::Locked(path),
            Self::Io(error) => error,
        }
    }
}

impl Lock {
    /// A lock that is not taken yet. `file` need not exist until then; `target` lies in `git_dir`.
    pub(crate) fn planned(git_dir: &Path, file: PathBuf, target: PathBuf) -> Self {
        Self {
            git_dir: git_dir.to_owned(),
            file,
            target,
            held: false,
            open: true,
            sharing: Sharing::Umask,
        }
    }

    /// With files and folders that others may use as the configuration says.
    pub(crate) fn shared(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// The file of `zit/tx`.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The path that stock git takes as well.
    fn path(&self) -> PathBuf {
        lock_path(&self.target)
    }

    /// Takes the lock, also one of ours that a crash left, waiting up to `wait` for somebody else's.
    pub(crate) fn take(&mut self, wait: Duration) -> Result<(), LockError> {
        let path = self.path();
        if fsio::inode(&path).is_some_and(|inode| fsio::inode(&self.file) == Some(inode)) {
            self.held = true;
            return Ok(());
        }
        self.sharing.share(&self.file);
        let started = Instant::now();
        let (mut pause, mut folders) = (FIRST_PAUSE, 0);
        loop {
            match fs::hard_link(&self.file, &path) {
                Ok(()) => {
                    self.held = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let left = wait.saturating_sub(started.elapsed());
                    if left.is_zero() {
                        return Err(LockError::Held(path));
                    }
                    std::thread::sleep(pause.min(left));
                    pause *= 2;
                }
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && folders < FOLDER_ATTEMPTS =>
                {
                    folders += 1;
                    self.create_folder()?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return Err(LockError::Blocked(path));
                }
                Err(source) => {
                    return Err(LockError::Io(StoreError::Io { doing: "create", path, source }));
                }
            }
        }
    }

    /// Creates the folders above the target.
    fn create_folder(&self) -> Result<(), LockError> {
        let Some(parent) = self.target.parent() else { return Ok(()) };
        match self.sharing.create_folders(parent) {
            Ok(()) => Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists
                ) =>
            {
                Err(LockError::Blocked(self.path()))
            }
            Err(source) => Err(LockError::Io(StoreError::Io {
                doing: "create",
                path: parent.to_owned(),
                source,
            })),
        }
    }

    /// Makes the lock's content the target's, and lets go.
    pub(crate) fn publish(&mut self) -> Result<(), StoreError> {
        let path = self.path();
        fs::rename(&path, &self.target).doing("rename", &path)?;
        self.held = false;
        self.open = false;
        fsio::remove_file(&self.file)
    }

    /// Lets go without a change.
    pub(crate) fn release(&mut self) -> Result<(), StoreError> {
        if !std::mem::replace(&mut self.open, false) {
            return Ok(());
        }
        if std::mem::replace(&mut self.held, false) {
            // The link first: a lock whose file is gone would look like somebody else's.
            fsio::remove_file(&self.path())?;
        }
        fsio::remove_file(&self.file)
    }
}

/// Where git locks a file.
pub(crate) fn lock_path(target: &Path) -> PathBuf {
    let mut path = OsString::from(target.as_os_str());
    path.push(".lock");
    path.into()
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.open {
            if let Err(error) = self.release() {
                tracing::warn!(%error, "a lock stays until the repository is opened again");
            }
            remove_empty_parents(&self.git_dir, &self.target);
        }
    }
}

/// Removes folders that a ref left empty, up to but without `refs/<folder>`, as git does.
pub(crate) fn remove_empty_parents(git_dir: &Path, target: &Path) {
    let deep = |folder: &&Path| {
        folder.strip_prefix(git_dir).is_ok_and(|below| below.components().count() > KEPT_FOLDERS)
    };
    let mut folder = target.parent();
    while let Some(path) = folder.filter(deep) {
        if fs::remove_dir(path).is_err() {
            return;
        }
        folder = path.parent();
    }
}
