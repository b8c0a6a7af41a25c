//! The user whose process this is, as git names them in a repository: by its environment, its configuration, or the
//! system's account.
//!
//! git itself is asked, so that the answer is its own. Nothing is guessed: where git names nobody, neither does this.

use std::path::Path;

use bstr::ByteSlice;

use crate::Signature;
use crate::git::{Finished, Git};

/// What of this process's environment says who its user is, or where git's configuration is.
const VARIABLES: [&str; 8] = [
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "EMAIL",
    "HOME",
    "XDG_CONFIG_HOME",
];

/// How git's complaint goes about an address that it found and does not like. Source: git's `ident.c`, `fmt_ident`.
const FOUND: &str = "unable to auto-detect email address (got '";

/// A name and a mail address, each one line without angle brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

/// The longest name or address kept, in characters. Source: ours; it is told in one packet.
const MAX_PART: usize = 250;

impl Account {
    /// The user of this process, as `git receive-pack` would name them in the logs of the repository at `git_dir`.
    #[must_use]
    pub fn of_process(git_dir: &Path) -> Option<Self> {
        let finished = ask(git_dir, None)?;
        if finished.status.success() {
            return Self::read(&finished.stdout);
        }
        // `git var` refuses an address that names no host, which logs take.
        let said = String::from_utf8_lossy(&finished.stderr).into_owned();
        let (_, found) = said.split_once(FOUND)?;
        let (email, _) = found.split_once("')")?;
        let finished = ask(git_dir, Some(email))?;
        finished.status.success().then(|| Self::read(&finished.stdout)).flatten()
    }

    /// Reads `name <email> …`; what would end a field has no place in one.
    #[must_use]
    pub fn read(line: &[u8]) -> Option<Self> {
        let Signature { name, email, .. } = Signature::parse(line.lines().next()?);
        let plain = |text: &[u8]| {
            let text = text.to_str_lossy();
            let plain = text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>'));
            plain.take(MAX_PART).collect::<String>().trim().to_owned()
        };
        let account = Self { name: plain(&name), email: plain(&email) };
        (!account.name.is_empty() || !account.email.is_empty()).then_some(account)
    }
}

fn ask(git_dir: &Path, email: Option<&str>) -> Option<Finished> {
    let mut git = Git::anywhere("var").arg("GIT_COMMITTER_IDENT").env("GIT_DIR", git_dir);
    for variable in VARIABLES {
        if let Some(value) = std::env::var_os(variable) {
            git = git.env(variable, value);
        }
    }
    if let Some(email) = email {
        git = git.env("GIT_COMMITTER_EMAIL", email);
    }
    git.finish(|_| Ok(()))
        .inspect_err(|error| tracing::info!(%error, "the user of this process is not known"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_an_address_are_read_and_neither_can_end_early() {
        let read = |line: &str| Account::read(line.as_bytes()).map(|a| (a.name, a.email));
        let pair = |name: &str, email: &str| Some((name.to_owned(), email.to_owned()));
        assert_eq!(read("Ada L <a@x> 1700000000 +0000\n"), pair("Ada L", "a@x"));
        assert_eq!(read("Ada <a@x>"), pair("Ada", "a@x"));
        assert_eq!(read("A\x07da <a@x>"), pair("Ada", "a@x"));
        assert_eq!(read(""), None);
    }
}
