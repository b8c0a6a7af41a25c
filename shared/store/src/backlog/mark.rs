//! `zit/settled`: up to which record of the journal everything is in its file, and during which boot, and in which
//! folder, that was so.
//!
//! The file is not flushed. After a power failure it may be old, torn or gone, and its boot is another one anyway. A copy
//! of a repository has another folder: its refs may have been copied before the mark was.

use std::fs;
use std::path::{Path, PathBuf};

use crate::boot::boot_id;
use crate::error::{Doing, StoreError};
use crate::fsio;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) boot: String,
    pub(crate) seq: u64,
    pub(crate) folder: FolderId,
}

/// Which folder `zit` of a repository is: its device and inode. Moving a repository keeps it, copying does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderId(u64, u64);

impl FolderId {
    /// That of the repository at `git_dir`; `None` when there is none.
    pub(crate) fn of(git_dir: &Path) -> Option<Self> {
        fsio::inode(&git_dir.join("zit")).map(|(device, inode)| Self(device, inode))
    }
}

impl Mark {
    /// The mark of the repository; `None` where there is none, or none that can be read.
    pub(crate) fn read(git_dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(path(git_dir)).ok()?;
        let mut words = text.strip_suffix('\n')?.split(' ');
        let boot = words.next().filter(|boot| !boot.is_empty())?.to_owned();
        let mut number = || words.next()?.parse().ok();
        let (seq, folder) = (number()?, FolderId(number()?, number()?));
        Some(Self { boot, seq, folder })
    }

    /// Whether the mark holds for the repository: of this boot, and no copy.
    pub(crate) fn holds(&self, git_dir: &Path) -> bool {
        boot_id().is_some_and(|boot| self.boot == boot)
            && Some(self.folder) == FolderId::of(git_dir)
    }

    pub(crate) fn write(&self, git_dir: &Path) -> Result<(), StoreError> {
        let path = path(git_dir);
        let next = path.with_extension("next");
        let Self { boot, seq, folder: FolderId(device, inode) } = self;
        let text = format!("{boot} {seq} {device} {inode}\n");
        fs::write(&next, text).doing("write", &next)?;
        fs::rename(&next, &path).doing("replace", &path)
    }
}

fn path(git_dir: &Path) -> PathBuf {
    git_dir.join("zit").join("settled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_and_a_torn_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("zit")).unwrap();
        assert_eq!(Mark::read(dir.path()), None);
        let mark = Mark { boot: "b-1".to_owned(), seq: 120, folder: FolderId(4, 77) };
        mark.write(dir.path()).unwrap();
        assert_eq!(Mark::read(dir.path()), Some(mark));
        for torn in ["", "b-1", "b-1 12 4 77", "b-1 12\n", "b-1 x 4 77\n", " 12 4 77\n"] {
            fs::write(path(dir.path()), torn).unwrap();
            assert_eq!(Mark::read(dir.path()), None, "{torn:?}");
        }
    }

    #[test]
    fn a_mark_of_another_boot_or_folder_does_not_hold() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("zit")).unwrap();
        let (boot, folder) = (boot_id().unwrap(), FolderId::of(dir.path()).unwrap());
        let here = Mark { boot, seq: 1, folder };
        assert!(here.holds(dir.path()));
        let other = Mark { boot: "another-boot".to_owned(), ..here.clone() };
        assert!(!other.holds(dir.path()));
        assert!(!Mark { folder: FolderId(0, 0), ..here }.holds(dir.path()));
    }
}
