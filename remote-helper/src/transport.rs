//! Finds the transport for an address: git's own for a server, [`crate::connect`] for a path and for ssh.
//!
//! For a server, `git-remote-zit <remote> <url>` becomes `git remote-https <remote> <http url>` by `exec`: the same process, streams
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

use crate::address::{Address, AddressError, Remote};
use crate::connect::{self, ConnectError, Identified};
use crate::git::{self, GitError};
use crate::identity::{Identity, IdentityError};

/// Why no transport was started.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Not started by git, or without an address.
    #[error("git-remote-zit is started by git with a remote and its address")]
    Usage,
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The identity cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The repository could not be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Git could not be started, or its configuration not be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl TransportError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage => Some("try: git clone zit::https://<host>/<path>, or zit::<path>"),
            Self::Address(error) => Some(error.hint()),
            Self::Identity(error) => Some(error.hint()),
            Self::Connect(error) => error.hint(),
            Self::Git(_) => None,
        }
    }
}

/// The settings of git's that are looked at, all at once.
pub(crate) const SETTINGS: &str = r"^(zit\.[^.]*|protocol\.version|core\.sshcommand|ssh\.variant)$";

/// Carries the connection for the remote and address in `args` to its end, or becomes who does.
///
/// # Errors
/// [`TransportError`] when there is none to carry.
pub fn run(args: Vec<OsString>) -> Result<(), TransportError> {
    let (name, remote) = parse(args)?;
    let config = git::config_matching(SETTINGS)?;
    // What is not UTF-8 is no id either; replacing it lets the error show it.
    let env = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let identity = Identity::read(env, |key| config.get(key).cloned())?;
    let as_who = || Identified { identity: identity.clone(), config: &config };
    match remote {
        Remote::Server(address) => Err(become_http(name, &address, &identity).into()),
        Remote::Path(path) => Ok(connect::to_path(&path, &as_who())?),
        Remote::Ssh(host) => Ok(connect::to_ssh(&host, &as_who())?),
    }
}

fn parse(args: Vec<OsString>) -> Result<(OsString, Remote), TransportError> {
    let [name, url]: [OsString; 2] = args.try_into().map_err(|_| TransportError::Usage)?;
    Ok((name, Remote::parse(&url)?))
}

/// Becomes git's own transport; comes back only with what prevented it.
fn become_http(name: OsString, address: &Address, identity: &Identity) -> GitError {
    let subcommand = format!("remote-{}", address.scheme().as_str());
    let args = [OsString::from(subcommand), name, address.to_string().into()];
    git::become_git(&settings(address, identity), &args)
}

/// The settings, keys and values, that tell the server at `address`, and nobody else, who speaks.
pub(crate) fn settings(address: &Address, identity: &Identity) -> Vec<(String, String)> {
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
            assert!(matches!(parse(args), Err(TransportError::Usage)));
        }
    }
}
