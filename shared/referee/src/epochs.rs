//! Fencing numbers that never go back, also after a release and a restart.
//!
//! The file `zit/epoch` in the git directory holds a number that no epoch has reached. It is raised and flushed before
//! epochs up to it are given out, so a crash skips numbers and never repeats one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::RefereeError;

/// How many epochs one flush reserves.
const BLOCK: u64 = 1024;

/// The epochs of one repository.
#[derive(Debug)]
pub(crate) struct Epochs {
    path: PathBuf,
    next: u64,
    reserved: u64,
}

impl Epochs {
    /// Goes on where the file says, and above every epoch that a claim carries.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no number.
    pub(crate) fn open(git_dir: &Path, highest_claimed: u64) -> Result<Self, RefereeError> {
        let path = git_dir.join("zit").join("epoch");
        let refuse = |source| RefereeError::Epochs { path: path.clone(), source };
        let reserved = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(|e| refuse(io::Error::other(e)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 1,
            Err(error) => return Err(refuse(error)),
        };
        Ok(Self { path, next: reserved.max(highest_claimed.saturating_add(1)), reserved })
    }

    /// The next epoch, which is not given out yet.
    #[must_use]
    pub(crate) fn peek(&self) -> u64 {
        self.next
    }

    /// Makes sure that no later start gives out an epoch up to and including `epoch` again.
    ///
    /// # Errors
    /// When the file cannot be written; the epoch must not be used then.
    pub(crate) fn reserve(&mut self, epoch: u64) -> Result<(), RefereeError> {
        if epoch >= self.reserved {
            let reserved = epoch.saturating_add(BLOCK);
            self.write(reserved)
                .map_err(|source| RefereeError::Epochs { path: self.path.clone(), source })?;
            self.reserved = reserved;
        }
        self.next = self.next.max(epoch.saturating_add(1));
        Ok(())
    }

    fn write(&self, reserved: u64) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut file = File::create(&temporary)?;
        writeln!(file, "{reserved}")?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_never_comes_twice_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("zit")).unwrap();
        let mut last = 0;
        for _ in 0..5 {
            let mut epochs = Epochs::open(dir.path(), 0).unwrap();
            for _ in 0..3 {
                let epoch = epochs.peek();
                assert!(epoch > last, "{epoch} after {last}");
                epochs.reserve(epoch).unwrap();
                last = epoch;
            }
        }
        assert!(Epochs::open(dir.path(), last + 10_000).unwrap().peek() > last + 10_000);
    }

    #[test]
    fn a_file_without_a_number_is_an_error_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("zit")).unwrap();
        let path = dir.path().join("zit").join("epoch");
        fs::write(&path, "many").unwrap();
        assert!(Epochs::open(dir.path(), 0).is_err());
        assert_eq!(fs::read_to_string(path).unwrap(), "many");
    }
}
