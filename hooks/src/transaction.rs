//! The `reference-transaction` hook: stock git may not write below `refs/zit/`.
//!
//! Stages of [`check`]: read git's lines, set aside those that are not below `refs/zit/`, and compare the others with
//! what the repository holds now. The repository is opened only if such a line exists, so that other transactions
//! cost nothing.
//!
//! `git pack-refs` and `git gc` report their work as if refs came and went, although no ref changes its value. They
//! would die if that were refused, so exactly these two lines pass:
//!
//! - nothing to X, when the ref already resolves to X: git copies it into `packed-refs`;
//! - X to nothing, when `packed-refs` holds exactly X and is not locked: git drops the loose copy. A real delete
//!   looks the same but holds the lock of `packed-refs` meanwhile.
//!
//! Never writes. Source: `spec/refs.md`, "Stock git in the repository"; githooks(5), "reference-transaction".

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use zit_model::{Oid, RefName, oid::OidError};
use zit_store::{Access, Store, StoreError};

/// What git does next with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum State {
    /// Refs are about to be locked. Only newer versions of git ask this early.
    Preparing,
    /// All refs are locked and hold what was expected; the hook may still refuse.
    Prepared,
    /// It is done.
    Committed,
    /// It was given up.
    Aborted,
}

impl State {
    /// The state as git spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Prepared => "prepared",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
        }
    }
}

/// Why a transaction is refused.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// It would change a ref that zit alone writes.
    #[error(
        "{0} is written by zit alone: a change behind its back would break what claims and landings rely on"
    )]
    Reserved(RefName),
    /// A line is not what git writes.
    #[error("not a line of a ref transaction: {0:?}")]
    Malformed(String),
    /// The repository could not be looked at.
    #[error("cannot check a change below refs/zit/")]
    Store(#[from] StoreError),
    /// `packed-refs` could not be read.
    #[error("cannot read {}", path.display())]
    PackedRefs {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
}

impl TransactionError {
    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Reserved(_) => Some(
                "push through zit-server, which also takes deletes: a claim goes with \
                 git push <remote> origin/<branch>:refs/zit/release/<resource>",
            ),
            Self::Malformed(_) => Some("let git run this hook; it is not for use by hand"),
            Self::Store(error) => error.hint(),
            Self::PackedRefs { .. } => None,
        }
    }
}

/// Checks the lines of a prepared transaction in the repository at `git_dir`.
///
/// # Errors
/// [`TransactionError::Reserved`] for the first line that would change a ref below `refs/zit/`; another error when it
/// cannot be told, which refuses as well.
pub fn check(git_dir: &Path, lines: &[u8]) -> Result<(), TransactionError> {
    let mut store = None;
    for line in lines.lines() {
        let Some(update) = Update::parse(line)? else { continue };
        let store = match &mut store {
            Some(store) => store,
            none => none.insert(Store::open(git_dir, Access::ReadOnly)?),
        };
        if !update.keeps_the_value(store)? {
            return Err(TransactionError::Reserved(update.name));
        }
    }
    Ok(())
}

/// One line about a ref below `refs/zit/`.
#[derive(Debug, PartialEq, Eq)]
struct Update {
    name: RefName,
    old: Value,
    new: Value,
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    /// All zero: nothing, or anything.
    Null,
    Oid(Oid),
    /// `ref:<target>`
    Symbolic,
}

impl Update {
    /// Reads `<old> SP <new> SP <refname>`; `None` for a ref that is not below `refs/zit/`.
    fn parse(line: &[u8]) -> Result<Option<Self>, TransactionError> {
        let malformed =
            || TransactionError::Malformed(line.to_str_lossy().chars().take(200).collect());
        let mut words = line.splitn_str(3, " ");
        let mut word = || words.next().ok_or_else(malformed);
        let (old, new, name) = (word()?, word()?, word()?);
        let value = |word| Value::parse(word).ok_or_else(malformed);
        let (old, new) = (value(old)?, value(new)?);
        if name != b"refs/zit" && !name.starts_with(b"refs/zit/") {
            return Ok(None);
        }
        let name = RefName::new(name).map_err(|_| malformed())?;
        Ok(Some(Self { name, old, new }))
    }

    /// Whether the ref holds the same afterwards, so that only its place changes.
    fn keeps_the_value(&self, store: &Store) -> Result<bool, TransactionError> {
        match (&self.old, &self.new) {
            (Value::Null, Value::Oid(new)) => Ok(store.find_ref(&self.name)? == Some(*new)),
            (Value::Oid(old), Value::Null) => {
                let locked = store.common_dir().join("packed-refs.lock").exists();
                Ok(!locked && packed(store, &self.name)? == Some(*old))
            }
            _ => Ok(false),
        }
    }
}

impl Value {
    fn parse(word: &[u8]) -> Option<Self> {
        if word.starts_with(b"ref:") {
            return Some(Self::Symbolic);
        }
        match Oid::from_hex(word) {
            Ok(oid) => Some(Self::Oid(oid)),
            Err(OidError::Null) => Some(Self::Null),
            Err(OidError::Malformed(_)) => None,
        }
    }
}

/// What `packed-refs` says about one ref, whatever a loose file says.
fn packed(store: &Store, name: &RefName) -> Result<Option<Oid>, TransactionError> {
    let path = store.common_dir().join("packed-refs");
    let damaged = |why: String| TransactionError::PackedRefs {
        path: path.clone(),
        source: io::Error::new(io::ErrorKind::InvalidData, why),
    };
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TransactionError::PackedRefs { path, source }),
    };
    let buffer = gix_ref::packed::Buffer::from_bytes(&bytes, store.hash_kind())
        .map_err(|error| damaged(error.to_string()))?;
    let name = <&gix_ref::FullNameRef>::try_from(name.as_bstr())
        .map_err(|error| damaged(error.to_string()))?;
    let found = buffer.try_find(name).map_err(|error| damaged(error.to_string()))?;
    Ok(found.and_then(|line| Oid::from_gix(line.target())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_below_refs_zit_are_looked_at() {
        let (x, zero) = ("1".repeat(40), "0".repeat(40));
        for name in ["refs/heads/main", "HEAD", "refs/zitter/x", "refs/heads/refs/zit/x"] {
            let line = format!("{zero} {x} {name}");
            assert_eq!(Update::parse(line.as_bytes()).unwrap(), None, "{name}");
        }
        let update = Update::parse(format!("{zero} {x} refs/zit/x").as_bytes()).unwrap().unwrap();
        assert_eq!((update.old, update.new), (Value::Null, Value::Oid(x.parse().unwrap())));
        let line = format!("{x} ref:refs/heads/main refs/zit/x");
        assert_eq!(Update::parse(line.as_bytes()).unwrap().unwrap().new, Value::Symbolic);
    }

    #[test]
    fn a_line_that_git_does_not_write_is_malformed() {
        let x = "1".repeat(40);
        for line in ["", &x, &format!("{x} {x}"), "a b refs/zit/x", &format!("{x} {x} refs/zit/..")]
        {
            assert!(
                matches!(Update::parse(line.as_bytes()), Err(TransactionError::Malformed(_))),
                "{line:?}"
            );
        }
    }

    #[test]
    fn other_refs_need_no_repository() {
        let (x, zero) = ("1".repeat(40), "0".repeat(40));
        let lines = format!("{zero} {x} refs/heads/main\n");
        assert!(check(Path::new("/nonexistent"), lines.as_bytes()).is_ok());
        let lines = format!("{zero} {x} refs/zit/x\n");
        let refused = check(Path::new("/nonexistent"), lines.as_bytes());
        assert!(matches!(refused, Err(TransactionError::Store(_))));
    }
}
