//! The helper protocol, with the one capability `connect`: git speaks to a repository as if over a pipe.
//!
//! ```text
//! git:    capabilities                  helper: connect, and an empty line
//! git:    connect git-receive-pack      helper: an empty line; from here on, git's own protocol
//! ```
//!
//! So packs, push options, reports and progress are git's. Requests are read byte by byte: what follows the last one is
//! not ours.
//!
//! Source: gitremote-helpers(7).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use zit_model::quote;
use zit_service::Hello;
use zit_service::local::{self, LocalError, Way};
use zit_wire::service::{ProtocolVersion, Service};

use crate::address::SshAddress;
use crate::identity::Identity;
use crate::ssh::{self, SshError};

/// The longest request of the helper protocol, in bytes.
const MAX_LINE: usize = 4096;

/// Who speaks, and what its git is configured to.
pub struct Identified<'a> {
    /// Which agent and item.
    pub identity: Identity,
    /// Settings by lower-case key.
    pub config: &'a BTreeMap<String, String>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No way to the repository.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// No ssh.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Git asks for what was not offered.
    #[error("git asks the remote helper for something else than a connection: {0}")]
    Request(String),
    /// Git is gone.
    #[error("cannot speak with git")]
    Stream(#[from] io::Error),
}

impl ConnectError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Local(error) => error.hint(),
            Self::Ssh(error) => error.hint(),
            Self::Request(_) | Self::Stream(_) => None,
        }
    }
}

impl Identified<'_> {
    pub(crate) fn hello(&self, service: Service) -> Hello {
        let version = match self.config.get("protocol.version").map(String::as_str) {
            Some("0") => ProtocolVersion::V0,
            Some("1") => ProtocolVersion::V1,
            // Git complains of any other value itself.
            Some(_) | None => ProtocolVersion::V2,
        };
        let Identity { agent, item } = self.identity.clone();
        let (bound, nonce) = (false, None);
        // `GIT_NAMESPACE` is the user's own repository's here; git keeps it from the other side, too.
        Hello { service, version, agent, bound, item, namespace: None, account: None, nonce }
    }
}

/// Connects git to the repository at `path` on this machine.
///
/// # Errors
/// [`ConnectError`] when it cannot be reached. What goes wrong within the connection, git is told there.
pub fn to_path(path: &Path, who: &Identified<'_>) -> Result<(), ConnectError> {
    let mut streams = Streams::of_process()?;
    let Some(service) = streams.wanted()? else { return Ok(()) };
    let way: Way = local::open(path, service)?;
    let mut output = streams.connected()?;
    way.serve(&who.hello(service), Box::new(streams.input), &mut output);
    Ok(())
}

/// Connects git to a repository on another machine: this process becomes ssh.
///
/// # Errors
/// [`ConnectError`] when ssh does not start.
pub fn to_ssh(address: &SshAddress, who: &Identified<'_>) -> Result<(), ConnectError> {
    let mut streams = Streams::of_process()?;
    let Some(service) = streams.wanted()? else { return Ok(()) };
    let ssh = ssh::command(address, &who.hello(service), who.config)?;
    streams.connected()?;
    Err(ssh::become_it(ssh).into())
}

/// Both ends of git's pipe, not buffered.
struct Streams {
    input: File,
    output: File,
}

impl Streams {
    fn of_process() -> io::Result<Self> {
        Ok(Self {
            input: File::from(io::stdin().as_fd().try_clone_to_owned()?),
            output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        })
    }

    /// Answers git until it asks for a connection; `None` when it ends without.
    fn wanted(&mut self) -> Result<Option<Service>, ConnectError> {
        while let Some(line) = read_line(&mut self.input)? {
            if line == "capabilities" {
                self.output.write_all(b"connect\n\n")?;
            } else if let Some(name) = line.strip_prefix("connect ") {
                match Service::from_name(name) {
                    Some(service) => return Ok(Some(service)),
                    None => self.output.write_all(b"fallback\n")?,
                }
            } else {
                return Err(ConnectError::Request(quote::one_line(&line)));
            }
        }
        Ok(None)
    }

    /// Says that the connection stands, and gives its sending side.
    fn connected(&mut self) -> io::Result<File> {
        self.output.write_all(b"\n")?;
        self.output.try_clone()
    }
}

/// Reads one line and no byte more; `None` at the end, or at the empty line by which git says that it wants no more.
fn read_line(input: &mut dyn Read) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_LINE && input.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend_from_slice(&byte);
    }
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_without_what_follows_it() {
        let mut input = b"connect git-upload-pack\n0014command=ls-refs\n".as_slice();
        assert_eq!(read_line(&mut input).unwrap().as_deref(), Some("connect git-upload-pack"));
        assert_eq!(input, b"0014command=ls-refs\n");
        assert_eq!(read_line(&mut b"\n".as_slice()).unwrap(), None);
        assert_eq!(read_line(&mut b"".as_slice()).unwrap(), None);
    }

    #[test]
    fn the_protocol_is_the_one_that_git_is_configured_to() {
        for (value, version) in [
            (None, ProtocolVersion::V2),
            (Some("0"), ProtocolVersion::V0),
            (Some("1"), ProtocolVersion::V1),
            (Some("2"), ProtocolVersion::V2),
        ] {
            let set = value.map(|value| ("protocol.version".to_owned(), value.to_owned()));
            let config = set.into_iter().collect();
            let who = Identified { identity: Identity::default(), config: &config };
            assert_eq!(who.hello(Service::UploadPack).version, version);
        }
    }
}
