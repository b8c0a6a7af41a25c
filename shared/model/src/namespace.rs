//! Namespaces: parts of a repository that are shown as repositories of their own.
//!
//! What a client of a namespace calls `refs/heads/x` is stored as `refs/namespaces/<name>/refs/heads/x`; a name of several
//! components repeats the `refs/namespaces/`. [`Namespace::full`] and [`Namespace::strip`] are the way there and back.
//! No name of a client's leads out of its namespace.
//!
//! Source: gitnamespaces(7); git's `environment.c`, `expand_namespace`.

use std::fmt;

use bstr::{BStr, ByteSlice};

use crate::refname::{RefName, RefNameError};

/// The longest name, in bytes. Each component adds `refs/namespaces/`, and names of refs have to fit behind them.
const MAX_NAME: usize = 256;

/// A namespace, `a` or `a/b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// As it was given, each component once.
    name: String,
    /// What stands before its refs. Invariant: valid as the start of a refname, and ends in a slash.
    prefix: String,
}

/// Why text is no namespace.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a valid namespace: {name:?} ({why})")]
pub struct NamespaceError {
    /// The start of what was given.
    pub name: String,
    /// Which rule it breaks.
    pub why: &'static str,
}

impl NamespaceError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "a namespace is named like a branch, such as ada or ada/work; `git check-ref-format --branch <name>` tries one"
    }
}

impl Namespace {
    /// Reads a name of one or more components separated by slashes; further slashes are passed over, as by git.
    ///
    /// # Errors
    /// [`NamespaceError`] when a component could not be one of a refname, when there is none, or past 256 bytes.
    pub fn new(name: &str) -> Result<Self, NamespaceError> {
        let refuse = |why| NamespaceError { name: name.chars().take(80).collect(), why };
        if name.len() > MAX_NAME {
            return Err(refuse("longer than 256 bytes"));
        }
        let components: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
        if components.is_empty() {
            return Err(refuse("empty"));
        }
        let prefix: String =
            components.iter().map(|part| format!("refs/namespaces/{part}/")).collect();
        if RefName::new(prefix.trim_end_matches('/')).is_err() {
            return Err(refuse("no part of a refname; see git-check-ref-format(1)"));
        }
        Ok(Self { name: components.join("/"), prefix })
    }

    /// Reads a name from an address or the environment.
    ///
    /// # Errors
    /// As [`Self::new`], and for what is not UTF-8.
    pub fn from_bytes(name: &[u8]) -> Result<Self, NamespaceError> {
        let name = std::str::from_utf8(name).map_err(|_| {
            let name = String::from_utf8_lossy(name).chars().take(80).collect();
            NamespaceError { name, why: "not UTF-8" }
        })?;
        Self::new(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What stands before the names of its refs: `refs/namespaces/a/refs/namespaces/b/`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The name under which the repository has a ref of the namespace.
    ///
    /// # Errors
    /// [`RefNameError`] when it is too long.
    pub fn full(&self, name: &RefName) -> Result<RefName, RefNameError> {
        RefName::new([self.prefix.as_bytes(), name.as_bstr()].concat())
    }

    /// What the namespace calls a ref of the repository, such as `refs/heads/x` or `HEAD`; `None` for one outside.
    #[must_use]
    pub fn strip<'r>(&self, name: &'r RefName) -> Option<&'r BStr> {
        name.strip_prefix(&self.prefix)
    }

    /// The same for those that are below `refs/`.
    #[must_use]
    pub fn strip_ref(&self, name: &RefName) -> Option<RefName> {
        RefName::new(self.strip(name)?.as_bytes()).ok()
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_component_has_its_own_folder() {
        for (name, prefix) in [
            ("a", "refs/namespaces/a/"),
            ("a/b", "refs/namespaces/a/refs/namespaces/b/"),
            ("/a//b/", "refs/namespaces/a/refs/namespaces/b/"),
        ] {
            assert_eq!(Namespace::new(name).unwrap().prefix(), prefix, "{name}");
        }
        for name in ["", "/", "..", "a/..", "a b", "a.lock", ".a", "a/x~", "a\n", "a:b"] {
            assert!(Namespace::new(name).is_err(), "{name:?}");
        }
        assert!(Namespace::new(&"x".repeat(257)).is_err());
        // Two of them would be one, were they read with a character that stands for others.
        assert!(Namespace::from_bytes(b"a\xff").is_err());
        assert_eq!(Namespace::from_bytes("ä".as_bytes()), Namespace::new("ä"));
    }

    #[test]
    fn a_name_goes_in_and_comes_back_and_no_other_does() {
        let namespace = Namespace::new("a/b").unwrap();
        let name = RefName::new("refs/heads/x").unwrap();
        let full = namespace.full(&name).unwrap();
        assert_eq!(full.to_string(), "refs/namespaces/a/refs/namespaces/b/refs/heads/x");
        assert_eq!(namespace.strip_ref(&full), Some(name.clone()));
        assert_eq!(Namespace::new("a").unwrap().strip(&name), None);
        let head = RefName::new("refs/namespaces/a/HEAD").unwrap();
        assert_eq!(Namespace::new("a").unwrap().strip(&head).unwrap(), "HEAD");
        assert_eq!(Namespace::new("a").unwrap().strip_ref(&head), None);
        let other = RefName::new("refs/namespaces/ab/refs/heads/x").unwrap();
        assert_eq!(Namespace::new("a").unwrap().strip(&other), None);
    }
}
