//! [`Mark`]: git's own lock for maintenance, held by us, and what it takes to clean up after a run that died.
//!
//! `objects/maintenance.lock` keeps `git maintenance` away. Ours says which step is under way, and is locked by the
//! process and, through their standard input, by the programs that it starts: who finds it unlocked knows that the run
//! is dead, its server and its programs alike. What these had not tidied up is younger than the mark, and is removed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::quarantine::PREFIX;

/// What the mark says first; git's own lock is empty.
const OURS: &str = "zit ";

/// A step of a run, by what it may leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A `packed-refs` that is not whole.
    Refs,
    /// Packs that are not whole.
    Objects,
    /// A commit-graph that is not whole.
    Graph,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Refs, Self::Objects, Self::Graph];

    /// All have one length, so that one is written over another.
    fn word(self) -> &'static str {
        match self {
            Self::Refs => "refs ",
            Self::Objects => "packs",
            Self::Graph => "graph",
        }
    }
}

/// The right to run. The lock goes with the value; the file has to be released.
pub(super) struct Mark {
    path: PathBuf,
    file: File,
}

/// Cleans up after a run that a crash ended, if one did.
pub(crate) fn recover(common_dir: &Path) -> Result<(), StoreError> {
    let path = path(common_dir);
    if path.exists()
        && let Some(mark) = Mark::of_the_dead(&path, common_dir)?
    {
        mark.release();
    }
    Ok(())
}

fn path(common_dir: &Path) -> PathBuf {
    common_dir.join("objects/maintenance.lock")
}

impl Mark {
    /// Takes the lock; `None` while somebody else has it.
    pub(super) fn take(common_dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = path(common_dir);
        let objects = common_dir.join("objects");
        // Marked and locked before it has the name: one that is killed here must not leave what looks like git's own.
        let made = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&objects);
        let (file, made) = made.doing("create a lock in", &objects)?.into_parts();
        let mark = Self { path: path.clone(), file };
        mark.file.try_lock().map_err(io::Error::from).doing("lock", &made)?;
        mark.enter(Phase::Refs)?;
        match fs::hard_link(&made, &path) {
            Ok(()) => Ok(Some(mark)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::of_the_dead(&path, common_dir)
            }
            Err(error) => Err(error).doing("create", &path),
        }
    }

    /// Takes over from a run of ours that is dead, and cleans up after it.
    fn of_the_dead(path: &Path, common_dir: &Path) -> Result<Option<Self>, StoreError> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if fsio::is_absent(&error) => return Ok(None),
            opened => opened.doing("open", path)?,
        };
        let mark = Self { path: path.to_owned(), file };
        if mark.says().is_none() {
            tracing::info!(path = %path.display(), "maintenance of git's own is under way");
            return Ok(None);
        }
        if mark.file.try_lock().is_err() {
            tracing::info!(path = %path.display(), "an earlier maintenance is still under way");
            return Ok(None);
        }
        mark.clean(common_dir);
        Ok(Some(mark))
    }

    /// Says which step comes now.
    pub(super) fn enter(&self, phase: Phase) -> Result<(), StoreError> {
        let text = format!("{OURS}{}\n", phase.word());
        self.file.write_all_at(text.as_bytes(), 0).doing("write", &self.path)
    }

    /// The locked file, which programs inherit.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Removes what the step under way has left. What cannot be removed stays until the next run.
    pub(super) fn clean(&self, common_dir: &Path) {
        let Some(phase) = self.says() else { return };
        let Ok(since) = self.file.metadata().map(|meta| (meta.mtime(), meta.mtime_nsec())) else {
            return;
        };
        for path in leftovers(common_dir, phase) {
            let is_young = fs::symlink_metadata(&path).is_ok_and(|meta| {
                meta.is_file() && (meta.mtime(), meta.mtime_nsec()) >= since && meta.nlink() == 1
            });
            if is_young {
                tracing::info!(path = %path.display(), "removing what maintenance left");
                if let Err(error) = fsio::remove_file(&path) {
                    tracing::warn!(%error, "it stays");
                }
            }
        }
    }

    /// Lets others run.
    pub(super) fn release(self) {
        if let Err(error) = fsio::remove_file(&self.path) {
            tracing::warn!(%error, "maintenance stays locked until the repository is opened again");
        }
    }

    fn says(&self) -> Option<Phase> {
        let mut text = [0; 9];
        self.file.read_exact_at(&mut text, 0).ok()?;
        let word = std::str::from_utf8(&text).ok()?.strip_prefix(OURS)?;
        Phase::ALL.into_iter().find(|phase| phase.word() == word)
    }
}

/// The files that a step makes and does not keep, as far as there are any.
fn leftovers(common_dir: &Path, phase: Phase) -> Vec<PathBuf> {
    let objects = common_dir.join("objects");
    match phase {
        Phase::Refs => {
            vec![common_dir.join("packed-refs.lock"), common_dir.join("packed-refs.new")]
        }
        Phase::Objects => named(&objects.join("pack"), |name| {
            name.starts_with(".tmp-") || name.starts_with("tmp_") || name == "multi-pack-index.lock"
        }),
        Phase::Graph => named(&objects.join("info"), |name| {
            name.starts_with("tmp_") || name == "commit-graph.lock"
        }),
    }
}

fn named(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_one));
    named.map(|entry| entry.path()).collect()
}
