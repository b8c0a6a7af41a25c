//! Hands the connection to git's own HTTP transport.
//!
//! `git-remote-zit <remote> <url>` becomes `git remote-https <remote> <http url>` by `exec`: the same process, streams
//! and exit code. So clone, fetch, push, push options, request refs, progress and credentials are exactly git's.
//! The identity rides along as HTTP headers, set by `http.<url>.extraHeader` for this address alone.
//!
//! Git would send those headers to wherever the server redirects it as well. Therefore redirects are refused for this
//! address when there is an identity to tell (`http.<url>.followRedirects`), and are git's own business when there is
//! none.
//!
//! The settings are given with `--config-env`, which puts them behind all others: `GIT_CONFIG_COUNT` would be read
//! before the user's `-c`, and git then drops a `-c http.extraHeader=…` as less specific than ours.

use std::ffi::OsString;

use crate::address::{Address, AddressError};
use crate::git::{self, GitError};
use crate::identity::{Identity, IdentityError};

/// Why no transport was started.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Not started by git, or without an address.
    #[error("git-remote-zit is started by git with a remote and its address")]
    Usage,
    /// The address is not UTF-8.
    #[error("the address of the remote is not UTF-8")]
    NotUtf8,
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The identity cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Git could not be started, or its configuration not be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl TransportError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage => Some("try: git clone zit::https://<host>/<path>"),
            Self::NotUtf8 => Some("write other bytes in it as %XX"),
            Self::Address(error) => Some(error.hint()),
            Self::Identity(error) => Some(error.hint()),
            Self::Git(_) => None,
        }
    }
}

/// Becomes git's transport for the remote and address in `args`; comes back only with what prevented it.
#[must_use]
pub fn run(args: Vec<OsString>) -> TransportError {
    match prepare(args) {
        Ok((remote, address, identity)) => {
            let subcommand = format!("remote-{}", address.scheme().as_str());
            let args = [OsString::from(subcommand), remote, address.to_string().into()];
            git::become_git(&settings(&address, &identity), &args).into()
        }
        Err(error) => error,
    }
}

fn prepare(args: Vec<OsString>) -> Result<(OsString, Address, Identity), TransportError> {
    let [remote, url]: [OsString; 2] = args.try_into().map_err(|_| TransportError::Usage)?;
    let address = Address::parse(url.to_str().ok_or(TransportError::NotUtf8)?)?;
    let config = git::config_below("zit")?;
    // What is not UTF-8 is no id either; replacing it lets the error show it.
    let env = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let identity = Identity::read(env, |key| config.get(key).cloned())?;
    Ok((remote, address, identity))
}

/// The settings, keys and values, that tell the server at `address`, and nobody else, who speaks.
fn settings(address: &Address, identity: &Identity) -> Vec<(String, String)> {
    let mut settings: Vec<_> = identity
        .headers()
        .into_iter()
        .map(|header| (format!("http.{address}.extraHeader"), header))
        .collect();
    if !settings.is_empty() {
        settings.push((format!("http.{address}.followRedirects"), "false".to_owned()));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_told_to_this_address_only_and_follows_no_redirect() {
        let address = Address::parse("zit://localhost:1/r").unwrap();
        let identity = Identity { agent: Some("ada".parse().unwrap()), item: None };
        let expected = [
            ("http.http://localhost:1/r.extraHeader", "Zit-Agent: ada"),
            ("http.http://localhost:1/r.followRedirects", "false"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(settings(&address, &identity), expected);
    }

    #[test]
    fn without_an_identity_git_is_left_as_it_is() {
        let address = Address::parse("https://h/r").unwrap();
        assert!(settings(&address, &Identity::default()).is_empty());
    }

    #[test]
    fn an_address_is_needed() {
        for args in [vec![], vec!["origin"], vec!["a", "b", "c"]] {
            let args = args.into_iter().map(OsString::from).collect();
            assert!(matches!(prepare(args), Err(TransportError::Usage)));
        }
    }
}
