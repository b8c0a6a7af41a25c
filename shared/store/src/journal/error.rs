//! What goes wrong with a journal: [`JournalError`], each with its subject and, where there is one, the next step.

use std::io;
use std::path::{Path, PathBuf};

use super::record::Seq;

/// Why the journal could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused. After a failed append the journal takes no more.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The attempt, as a verb.
        doing: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There was no room. Nothing was written, and the journal goes on.
    #[error("no room to write {}", path.display())]
    Full {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A write or flush failed before; what it wrote may or may not be on disk.
    #[error("the journal in {} takes no more records since a write failed", .0.display())]
    Poisoned(PathBuf),
    /// A store of slots did not say whether it took a batch, and cannot be asked.
    #[error("whether {} took record {seq} is unknown", path.display())]
    Unknown {
        /// The journal.
        path: PathBuf,
        /// The first record of the batch.
        seq: Seq,
    },
    /// Bytes that nothing but damage explains.
    #[error("{} is damaged at byte {offset}: {why}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// A record that must be there is not.
    #[error("record {seq} is missing from {}", path.display())]
    Missing {
        /// The journal.
        path: PathBuf,
        /// The record.
        seq: Seq,
    },
    /// A record that was dropped.
    #[error("record {seq} is not kept any more; the oldest is {oldest}")]
    Retired {
        /// The record.
        seq: Seq,
        /// The oldest there is.
        oldest: Seq,
    },
    /// A checkpoint of what has not happened.
    #[error("a checkpoint of record {upto} cannot be: the last is {last}")]
    Ahead {
        /// What was asked for.
        upto: Seq,
        /// The last record.
        last: Seq,
    },
    /// Another writer appended first.
    #[error("another writer appended record {0}")]
    Overtaken(Seq),
    /// More than a record, a batch or a checkpoint may hold.
    #[error("{what} of {size} bytes; at most {limit} are written")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A write through a journal that was opened for reading.
    #[error("the journal in {} was opened for reading only", .0.display())]
    ReadOnly(PathBuf),
}

impl JournalError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Full { .. } => Some("make room on the disk, and push again"),
            Self::Poisoned(_) | Self::Unknown { .. } => {
                Some("look after the disk, then restart: the journal is read anew")
            }
            Self::Damaged { .. } | Self::Missing { .. } => Some(
                "restore the journal's folder from a copy; without one, move it away: \
                 the refs stay, and what only the journal knew is lost",
            ),
            Self::Overtaken(_) => Some("read what was appended, and judge again"),
            Self::TooLarge { .. } => Some("write the packs beside the journal and name them"),
            Self::Io { .. } | Self::Retired { .. } | Self::Ahead { .. } | Self::ReadOnly(_) => None,
        }
    }

    /// Whether a failed append may have happened all the same. What is certain not to have may be tried again.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Unknown { .. })
    }
}

/// Names the attempt and the file of an I/O error.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, JournalError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, JournalError> {
        self.map_err(|source| {
            let path = path.to_owned();
            if is_full(&source) {
                JournalError::Full { path, source }
            } else {
                JournalError::Io { doing, path, source }
            }
        })
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
