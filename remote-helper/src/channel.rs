//! A conversation of protocol 2 with a repository that is fetched from, as one pair of streams whatever is in between.
//!
//! ```text
//! a server   git's own HTTP transport, told to stateless-connect: TLS, proxies and credentials are git's
//! a path     a thread of this process, or the server that has the repository open
//! ssh        zit-server on the other machine
//! ```
//!
//! Source: gitremote-helpers(7), `stateless-connect`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use zit_service::local::{self, LocalError};
use zit_wire::service::{ProtocolVersion, Service};

use crate::address::Remote;
use crate::answers::Answers;
use crate::connect::Identified;
use crate::git;
use crate::identity::Identity;
use crate::ssh::{self, SshError};
use crate::transport;

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// No way to the repository on this machine.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// No ssh.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// A program that carries it does not start, or ended.
    #[error("cannot speak with the program that carries the connection")]
    Stream(#[from] io::Error),
    /// Git's transport did not get through; it has said why.
    #[error("git's transport did not get through")]
    Refused,
    /// The other side is older than protocol 2.
    #[error("it does not speak protocol 2 of git")]
    TooOld,
}

impl ChannelError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Local(error) => error.hint(),
            Self::Ssh(error) => error.hint(),
            Self::Refused => {
                Some("what git says above is the reason; git ls-remote tries the same way")
            }
            Self::TooOld => {
                Some("is it a zit server? git ls-remote <remote> refs/zit/current tells")
            }
            Self::Stream(_) => None,
        }
    }
}

/// Both streams, and whoever is at their other end.
pub struct Channel {
    /// What the other side says.
    pub from: Box<dyn Read>,
    /// What is said to it.
    pub to: Box<dyn Write>,
    /// The program in between, to be dropped after both.
    pub carrier: Option<Carrier>,
}

/// A program that carries a conversation; it ends with this value.
pub struct Carrier(Child);

impl Drop for Carrier {
    fn drop(&mut self) {
        // It has nothing more to do; how it ends is its own business.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens the conversation with `remote`, which git knows as `name`.
///
/// # Errors
/// [`ChannelError`] when there is no way to it.
pub fn open(
    name: &str,
    remote: &Remote,
    identity: &Identity,
    config: &BTreeMap<String, String>,
) -> Result<Channel, ChannelError> {
    let mut who = Identified { identity: identity.clone(), config }.hello(Service::UploadPack);
    who.version = ProtocolVersion::V2;
    match remote {
        Remote::Server(address) => {
            through_git(git::remote_http(name, address, &transport::settings(address, identity)))
        }
        Remote::Ssh(address) => {
            let (carrier, to, from) = piped(ssh::command(address, &who, config)?)?;
            Ok(Channel { from: Box::new(from), to: Box::new(to), carrier: Some(carrier) })
        }
        Remote::Path(path) => {
            let way = local::open(path, Service::UploadPack)?;
            let (ours, theirs) = UnixStream::pair()?;
            let (from, to) = (ours.try_clone()?, ours);
            thread::spawn(move || {
                let Ok(input) = theirs.try_clone() else { return };
                let mut output = theirs;
                way.serve(&who, Box::new(input), &mut output);
                // Whoever reads is told that it is over, also where a thread holds on to the stream.
                let _ = output.shutdown(std::net::Shutdown::Both);
            });
            Ok(Channel { from: Box::new(from), to: Box::new(to), carrier: None })
        }
    }
}

/// Starts a program between two pipes.
fn piped(mut command: Command) -> io::Result<(Carrier, ChildStdin, ChildStdout)> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let carrier = Carrier(child);
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    Ok((carrier, to.ok_or_else(missing)?, from.ok_or_else(missing)?))
}

/// Asks git's transport to hand the connection through.
fn through_git(command: Command) -> Result<Channel, ChannelError> {
    let (carrier, mut to, from) = piped(command)?;
    let mut from = BufReader::new(from);
    to.write_all(b"stateless-connect git-upload-pack\n")?;
    to.flush()?;
    let mut answer = String::new();
    from.read_line(&mut answer)?;
    match answer.as_str() {
        "\n" => {}
        "fallback\n" => return Err(ChannelError::TooOld),
        _ => return Err(ChannelError::Refused),
    }
    let from = Box::new(Answers::new(from));
    Ok(Channel { from, to: Box::new(to), carrier: Some(carrier) })
}
