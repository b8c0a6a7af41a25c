//! What goes wrong below the referee: [`StoreError`], and the small trait that gives an I/O error its subject.
//!
//! Every variant names what was attempted and on what. Errors that a person can act on have a [`StoreError::hint`].

use std::io;
use std::path::{Path, PathBuf};

use zit_model::{Oid, RefName};

use crate::Kind;
use crate::git::GitError;
use crate::journal::JournalError;

/// Why the store could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The attempt, as a verb: "read", "rename".
        doing: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No repository at, or upward from, the path.
    #[error("no git repository at {}", .0.display())]
    NotARepository(PathBuf),
    /// A referee serves bare repositories only.
    #[error("{} has a work tree; a referee serves bare repositories", .0.display())]
    NotBare(PathBuf),
    /// A new repository would mix with what is there.
    #[error("{} exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// Another referee holds the repository's lock.
    #[error("{} is open in another referee", .0.display())]
    InUse(PathBuf),
    /// The repository belongs to another user, and nobody said that it may be trusted.
    #[error("{} belongs to another user", .0.display())]
    NotOurs(PathBuf),
    /// The repository uses a format that the store does not read.
    #[error("cannot open {}: {what}", path.display())]
    Unsupported {
        /// The repository.
        path: PathBuf,
        /// What is not supported.
        what: String,
    },
    /// A write through a store that was opened for reading.
    #[error("{} was opened for reading only", .0.display())]
    ReadOnly(PathBuf),
    /// A file of git's or of ours does not parse.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The repository was moved away while it was open; another one may be in its place.
    #[error("{} is not the repository that was opened", .0.display())]
    Gone(PathBuf),
    /// Refs whose files do not follow yet, because another program holds them.
    #[error("{n_refs} refs wait for their locks: {first}")]
    Unsettled {
        /// How many.
        n_refs: usize,
        /// What keeps the first of them.
        first: String,
    },
    /// The journal could not do its part.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A lock of git's own stayed taken.
    #[error("{} is held by another program", .0.display())]
    Locked(PathBuf),
    /// A symbolic ref that resolves to nothing, or to itself.
    #[error("symbolic ref {name} leads nowhere")]
    Dangling {
        /// The ref.
        name: RefName,
    },
    /// No such object.
    #[error("object {0} is missing")]
    MissingObject(Oid),
    /// An object that is not of the kind it was asked for as.
    #[error("object {oid} is a {found}, not a {expected}")]
    WrongKind {
        /// The object.
        oid: Oid,
        /// What was asked for.
        expected: Kind,
        /// What it is.
        found: Kind,
    },
    /// A commit or a tree larger than is decoded.
    #[error("object {oid} has {size} bytes; at most {limit} are read")]
    TooLarge {
        /// The object.
        oid: Oid,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An object that does not decode.
    #[error("cannot read object {oid}: {why}")]
    Object {
        /// The object.
        oid: Oid,
        /// What the decoder said.
        why: String,
    },
    /// An object could not be written.
    #[error("cannot write an object: {0}")]
    WriteObject(String),
    /// The object database does not open.
    #[error("cannot open the objects in {}: {why}", path.display())]
    OpenObjects {
        /// The folder.
        path: PathBuf,
        /// What the library said.
        why: String,
    },
    /// Two trees differ in more paths than are listed.
    #[error("the trees differ in more than {0} paths")]
    TooManyChanges(usize),
    /// More commits than are listed.
    #[error("more than {0} commits lie between the two")]
    TooManyCommits(usize),
    /// Two commits without a common ancestor cannot be merged.
    #[error("{ours} and {theirs} have no common ancestor")]
    Unrelated {
        /// One side.
        ours: Oid,
        /// The other.
        theirs: Oid,
    },
    /// No thread could be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The program that makes an answer to a fetch cannot be talked to.
    #[error("lost git upload-pack")]
    Answer {
        /// What the system said.
        source: io::Error,
    },
    /// A git program failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl StoreError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotARepository(_) => Some("create one with `git init --bare <path>`"),
            Self::NotBare(_) => Some("clone it with `git clone --bare` and serve the clone"),
            Self::NotEmpty(_) => Some("name a folder that does not exist yet"),
            Self::InUse(_) => Some("stop the other server, or go through it"),
            Self::NotOurs(_) => {
                Some("if you trust its owner: git config --global --add safe.directory <path>")
            }
            Self::Locked(_) | Self::Unsettled { .. } => {
                Some("remove the lock file if no git program is running")
            }
            Self::Gone(_) => Some("open it again, where it is now"),
            Self::Dangling { .. } => Some("name a branch with `git symbolic-ref`"),
            Self::MissingObject(_)
            | Self::WrongKind { .. }
            | Self::Object { .. }
            | Self::OpenObjects { .. } => Some(
                "`git fsck` in the repository says what else is damaged; restore it from a copy",
            ),
            Self::TooManyChanges(_) | Self::TooManyCommits(_) => Some("push in several steps"),
            Self::Thread(_) => Some("raise the limit of processes, or ask for less at once"),
            Self::Answer { .. } => Some("fetch again"),
            Self::Journal(error) => error.hint(),
            Self::Unrelated { .. } => Some("rebase onto the branch it is to land on"),
            Self::Io { .. }
            | Self::Unsupported { .. }
            | Self::ReadOnly(_)
            | Self::Damaged { .. }
            | Self::TooLarge { .. }
            | Self::WriteObject(_)
            | Self::Git(_) => None,
        }
    }
}

/// Names the attempt and the file of an I/O error.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { doing, path: path.to_owned(), source })
    }
}
