//! `zit/settled`: up to which record of the journal everything is in its file, and during which boot that was so.
//!
//! The file is not flushed. After a power failure it may be old, torn or gone, and its boot is another one anyway.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, StoreError};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) boot: String,
    pub(crate) seq: u64,
}

/// What Linux calls this boot; empty where it cannot be read, which is no boot at all.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

impl Mark {
    /// The mark of the repository; `None` where there is none, or none that can be read.
    pub(crate) fn read(git_dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(path(git_dir)).ok()?;
        let (boot, seq) = text.strip_suffix('\n')?.split_once(' ')?;
        let seq = seq.parse().ok()?;
        (!boot.is_empty()).then(|| Self { boot: boot.to_owned(), seq })
    }

    pub(crate) fn write(&self, git_dir: &Path) -> Result<(), StoreError> {
        let path = path(git_dir);
        let next = path.with_extension("next");
        fs::write(&next, format!("{} {}\n", self.boot, self.seq)).doing("write", &next)?;
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
        let mark = Mark { boot: "b-1".to_owned(), seq: 120 };
        mark.write(dir.path()).unwrap();
        assert_eq!(Mark::read(dir.path()), Some(mark));
        for torn in ["", "b-1", "b-1 12", "b-1 x\n", " 12\n"] {
            fs::write(path(dir.path()), torn).unwrap();
            assert_eq!(Mark::read(dir.path()), None, "{torn:?}");
        }
    }
}
