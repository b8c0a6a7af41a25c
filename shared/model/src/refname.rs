//! Full refnames, as `git check-ref-format` accepts them below `refs/`.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

/// A full refname: `refs/…`, valid by git's rules, any bytes git allows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(BString);

/// Why bytes are not a full refname.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a valid refname: {name:?} ({why})")]
pub struct RefNameError {
    /// What was given, lossily.
    pub name: String,
    /// Which rule it breaks.
    pub why: String,
}

/// The longest refname taken, in bytes. Source: a file path limit of 4,096 less the repository's own path.
pub const MAX_REFNAME: usize = 1024;

impl RefName {
    /// Reads a full refname.
    ///
    /// # Errors
    /// [`RefNameError`] when git would refuse it, when it does not start with `refs/`, or past [`MAX_REFNAME`].
    ///
    /// # Source
    /// git-check-ref-format(1).
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, RefNameError> {
        let name = name.as_ref();
        let refuse = |why: &str| RefNameError {
            name: String::from_utf8_lossy(&name[..name.len().min(200)]).into_owned(),
            why: why.to_owned(),
        };
        if name.len() > MAX_REFNAME {
            return Err(refuse("longer than 1024 bytes"));
        }
        if !name.starts_with(b"refs/") {
            return Err(refuse("a full refname starts with refs/"));
        }
        gix_validate::reference::name(name.as_bstr()).map_err(|e| refuse(&e.to_string()))?;
        Ok(Self(name.into()))
    }

    /// The bytes of the name.
    #[must_use]
    pub fn as_bstr(&self) -> &BStr {
        self.0.as_bstr()
    }

    /// What follows `prefix`, where the name starts with it.
    #[must_use]
    pub fn strip_prefix(&self, prefix: &str) -> Option<&BStr> {
        self.0.strip_prefix(prefix.as_bytes()).map(ByteSlice::as_bstr)
    }

    /// The branch's name, for a refname below `refs/heads/`.
    #[must_use]
    pub fn branch(&self) -> Option<&BStr> {
        self.strip_prefix("refs/heads/")
    }

    /// Whether the name is `refs/zit` or lies below it.
    #[must_use]
    pub fn is_zit(&self) -> bool {
        self.0 == "refs/zit" || self.0.starts_with(b"refs/zit/")
    }

    /// Whether the name has one component below `refs/` only. Git lets nobody push to such a ref.
    ///
    /// # Source
    /// git's `builtin/receive-pack.c`, "funny refname".
    #[must_use]
    pub fn is_one_level(&self) -> bool {
        self.strip_prefix("refs/").is_some_and(|rest| !rest.contains(&b'/'))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::str::FromStr for RefName {
    type Err = RefNameError;

    fn from_str(name: &str) -> Result<Self, RefNameError> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_refuses_are_refused() {
        for name in [
            "",
            "refs/",
            "HEAD",
            "refs/heads/",
            "refs//heads/x",
            "refs/heads/.x",
            "refs/heads/x.lock",
            "refs/heads/a..b",
            "refs/heads/a b",
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/a?",
            "refs/heads/a*",
            "refs/heads/a[",
            "refs/heads/a\\b",
            "refs/heads/@{x",
            "refs/heads/x.",
            "refs/heads/\u{7f}",
            "refs/heads/x\n",
            "/refs/heads/x",
            "refs/../x",
        ] {
            assert!(RefName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_ref_directly_below_refs_is_one_level() {
        for (name, expected) in [("refs/stash", true), ("refs/zit", true), ("refs/heads/x", false)]
        {
            assert_eq!(RefName::new(name).unwrap().is_one_level(), expected, "{name}");
        }
        assert!(RefName::new("refs/zit").unwrap().is_zit());
        assert!(!RefName::new("refs/zitter/x").unwrap().is_zit());
    }

    #[test]
    fn names_that_git_takes_are_taken() {
        for name in
            ["refs/heads/main", "refs/zit/claim/src/a.rs#(imports)", "refs/heads/é", "refs/x"]
        {
            assert!(RefName::new(name).is_ok(), "{name:?}");
        }
        assert!(RefName::new(b"refs/heads/\xff").is_ok(), "a name need not be UTF-8");
    }
}
