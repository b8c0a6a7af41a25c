//! Which URLs are views of a namespace: rules `<prefix>=<repository>`, given to `serve`.
//!
//! Below the prefix, the rest of a repository's path is the name of a namespace of the one repository:
//!
//! ```text
//! forks=app.git    /forks/ada/info/refs       namespace ada of app.git
//!                  /forks/ada/x/info/refs     namespace ada/x
//! ```
//!
//! It is what administrators of `git http-backend` write as `SetEnvIf Request_URI ... GIT_NAMESPACE=$1`. A URL and not a
//! setting of the repository says which namespace is meant, so that each has an address of its own, and one repository
//! any number of them. Nothing here looks at a file.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use zit_model::Namespace;
use zit_model::namespace::NamespaceError;

use super::route::RepositoryPath;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    prefix: RepositoryPath,
    repository: RepositoryPath,
}

/// What an address means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meant {
    /// The repository.
    pub(crate) repository: RepositoryPath,
    /// The namespace of it.
    pub(crate) namespace: Option<Namespace>,
}

impl FromStr for Rule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, repository) = text.split_once('=').ok_or("write <prefix>=<repository>")?;
        let path = |text: &str| RepositoryPath::new(text.trim_matches('/').as_bytes());
        let (prefix, repository) = path(prefix).zip(path(repository)).ok_or(
            "a prefix and a repository are paths below the root, without empty components, '.' and '..'",
        )?;
        Ok(Self { prefix, repository })
    }
}

/// Applies the first rule that fits; a path that none fits means the repository there.
///
/// # Errors
/// [`NamespaceError`] when what follows the prefix is no namespace.
pub(crate) fn apply(rules: &[Rule], path: RepositoryPath) -> Result<Meant, NamespaceError> {
    for Rule { prefix, repository } in rules {
        let Some(rest) = below(path.as_path(), prefix.as_path()) else { continue };
        let namespace = Namespace::from_bytes(rest.as_os_str().as_bytes())?;
        return Ok(Meant { repository: repository.clone(), namespace: Some(namespace) });
    }
    Ok(Meant { repository: path, namespace: None })
}

/// What follows `prefix`; `None` for the prefix itself and what is elsewhere.
fn below(path: &Path, prefix: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(prefix).ok()?;
    (!rest.as_os_str().is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(path: &str) -> Result<(String, Option<String>), NamespaceError> {
        let rules = ["forks=app.git", "/t/f/=t/app"].map(|rule| rule.parse().unwrap());
        let Meant { repository, namespace } =
            apply(&rules, RepositoryPath::new(path.as_bytes()).unwrap())?;
        Ok((repository.as_path().display().to_string(), namespace.map(|n| n.to_string())))
    }

    #[test]
    fn below_its_prefix_an_address_is_a_namespaces() {
        for (path, repository, namespace) in [
            ("forks/ada", "app.git", Some("ada")),
            ("forks/ada/x", "app.git", Some("ada/x")),
            ("t/f/ben", "t/app", Some("ben")),
            ("forks", "forks", None),
            ("forksada", "forksada", None),
            ("app.git", "app.git", None),
            ("t/forks/ada", "t/forks/ada", None),
        ] {
            let expected = (repository.to_owned(), namespace.map(str::to_owned));
            assert_eq!(meant(path), Ok(expected), "{path}");
        }
        for path in ["forks/a b", "forks/a.lock", "forks/.a", "forks/\u{fffd}~"] {
            assert!(meant(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_rule_is_two_paths() {
        for text in ["", "a", "=", "a=", "=a", "a=..", "a//b=c"] {
            assert!(text.parse::<Rule>().is_err(), "{text:?}");
        }
    }
}
