//! `zit-server stdio`: one conversation over standard input and output, as ssh has it.
//!
//! Through the socket of the server that has the repository open, else with a referee of its own. What cannot be served
//! is told in an `ERR` packet, which git shows its user; standard error says nothing twice.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use zit_model::Namespace;
use zit_model::namespace::NamespaceError;
use zit_service::local::{self, LocalError, Way};
use zit_service::{Hello, pipe};
use zit_wire::service::ProtocolVersion;

use crate::cli::StdioArgs;
use crate::forced::{self, ForcedError};

/// The client is gone.
#[derive(Debug, thiserror::Error)]
#[error("cannot speak with the client")]
pub(crate) struct StdioError(#[from] io::Error);

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// No way to the repository.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The login does no such thing.
    #[error(transparent)]
    Forced(#[from] ForcedError),
    /// `GIT_NAMESPACE` names none.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A home folder that is not known.
    #[error("cannot find the folder {0:?}: only ~/ is known")]
    Home(PathBuf),
}

/// Holds the conversation, or tells the client why there is none; the exit code says which.
///
/// # Errors
/// [`StdioError`] when there is nobody to tell.
pub(crate) fn run(args: &StdioArgs) -> Result<ExitCode, StdioError> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    match open(args) {
        Ok((way, hello)) => {
            way.serve(&hello, Box::new(input), &mut output);
            Ok(ExitCode::SUCCESS)
        }
        Err(refusal) => {
            let hint = match &refusal {
                Refusal::Local(error) => error.hint(),
                Refusal::Forced(error) => Some(error.hint()),
                Refusal::Namespace(error) => Some(error.hint()),
                Refusal::Home(_) => Some("give the path from / on"),
            };
            pipe::tell(&refusal, hint, &mut output)?;
            Ok(ExitCode::from(crate::ERROR))
        }
    }
}

/// Finds out what is wanted, and the way to it.
fn open(args: &StdioArgs) -> Result<(Way, Hello), Refusal> {
    let command = std::env::var_os(forced::VARIABLE);
    // sshd sets the variable only where it is not the client that says what is run.
    let bound = command.is_some() && args.agent.is_some();
    let forced = || forced::asked(command.as_deref(), args);
    let args = if args.wanted().is_some() { args.clone() } else { forced()? };
    let (service, path) = args.wanted().ok_or(ForcedError::NoCommand)?;
    let hello = Hello {
        service,
        version: args.protocol.unwrap_or_else(asked_by_environment),
        agent: args.agent.clone(),
        bound,
        item: args.item.clone(),
        namespace: namespace()?,
        account: None,
        nonce: None,
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = expand(path, home.as_deref())?;
    Ok((local::open(&path, service)?, hello))
}

/// What git asks for through ssh, when nothing is said on the command line.
fn asked_by_environment() -> ProtocolVersion {
    let asked = std::env::var_os("GIT_PROTOCOL").unwrap_or_default();
    ProtocolVersion::from_header(asked.as_bytes())
}

/// The namespace that whoever runs this shows alone, as to git's own programs.
fn namespace() -> Result<Option<Namespace>, NamespaceError> {
    let name = std::env::var_os("GIT_NAMESPACE").filter(|name| !name.is_empty());
    name.map(|name| Namespace::from_bytes(name.as_bytes())).transpose()
}

/// Replaces `~/` by the home folder.
fn expand(path: &Path, home: Option<&Path>) -> Result<PathBuf, Refusal> {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.starts_with(b"~") {
        return Ok(path.to_owned());
    }
    let rest = bytes.strip_prefix(b"~/").map(OsStr::from_bytes);
    rest.zip(home).map(|(rest, home)| home.join(rest)).ok_or_else(|| Refusal::Home(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_folder_is_known_by_its_short_name_alone() {
        let expand = |path: &str| expand(Path::new(path), Some(Path::new("/home/ada"))).ok();
        assert_eq!(expand("~/r.git"), Some("/home/ada/r.git".into()));
        assert_eq!(expand("/srv/~/r"), Some("/srv/~/r".into()));
        assert_eq!(expand("~ben/r"), None);
        assert_eq!(expand("~"), None);
    }
}
