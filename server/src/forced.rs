//! What a client asked for through ssh, where sshd runs `zit-server stdio` whatever it asks for.
//!
//! sshd puts the client's own command into `SSH_ORIGINAL_COMMAND`. [`asked`] reads the two forms that git clients send:
//!
//! ```text
//! git-receive-pack '/srv/git/app.git'                          git, JGit, libgit2, dulwich; or `git receive-pack …`
//! zit-server stdio [<option>…] git-receive-pack '/srv/…'       git-remote-zit, and git told to by its user
//! ```
//!
//! No shell sees any of it: a command of another kind is refused, and so is a word that a shell would expand.
//!
//! # Source
//! sshd(8), the format of `authorized_keys`, `command=`; git's `quote.c`, `sq_quote_buf`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::Parser;
use zit_model::quote;

use crate::cli::StdioArgs;

/// The variable in which sshd tells what a client asked for.
pub(crate) const VARIABLE: &str = "SSH_ORIGINAL_COMMAND";

/// Why a client's command is not carried out.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ForcedError {
    /// There is none: somebody wants a shell.
    #[error("there is no shell here, only git")]
    NoCommand,
    /// It is for another program, or has options that are not known.
    #[error("not a git command: {0}")]
    Unknown(String),
    /// It speaks as another agent than its key may.
    #[error("this login speaks as {may}, not as {asked}")]
    OtherAgent {
        /// What the login is set to.
        may: String,
        /// What the client asked for.
        asked: String,
    },
}

impl ForcedError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NoCommand => "try: git clone ssh://<host>/<path>",
            Self::Unknown(_) => "fetch and push with git; nothing else is run for this login",
            Self::OtherAgent { .. } => {
                "leave ZIT_AGENT and zit.agent unset, or log in with the key of that agent"
            }
        }
    }
}

/// A client's words, read as `stdio` reads them.
#[derive(Debug, Parser)]
#[command(name = "zit-server stdio")]
struct Asked {
    #[command(flatten)]
    args: StdioArgs,
}

/// What `command` asks for, as far as a login allows that is set to `set`.
///
/// # Errors
/// [`ForcedError`] when it asks for anything else.
pub(crate) fn asked(command: Option<&OsStr>, set: &StdioArgs) -> Result<StdioArgs, ForcedError> {
    let command = command.filter(|line| !line.is_empty()).ok_or(ForcedError::NoCommand)?;
    let unknown = || ForcedError::Unknown(quote::one_line(&command.to_string_lossy()));
    let mut words = words(command.as_bytes()).ok_or_else(unknown)?;
    let is = |n: usize, word: &str| words.get(n).is_some_and(|found| found == word);
    if is(0, "zit-server") && is(1, "stdio") {
        words.remove(0);
    } else if is(0, "git") && (is(1, "upload-pack") || is(1, "receive-pack")) {
        // git's own shell for logins takes this form, too.
        words.splice(0..2, ["stdio".into(), joined(&words)]);
    } else if is(0, "git-upload-pack") || is(0, "git-receive-pack") {
        words.insert(0, "stdio".into());
    } else {
        return Err(unknown());
    }
    let asked = Asked::try_parse_from(words).map_err(|_| unknown())?.args;
    if asked.wanted().is_none() {
        return Err(unknown());
    }
    match (&set.agent, &asked.agent) {
        (Some(may), Some(asked)) if may != asked => {
            Err(ForcedError::OtherAgent { may: may.to_string(), asked: asked.to_string() })
        }
        _ => Ok(StdioArgs {
            agent: set.agent.clone().or(asked.agent),
            item: set.item.clone().or(asked.item),
            protocol: set.protocol.or(asked.protocol),
            ..asked
        }),
    }
}

/// A command of two words as one.
fn joined(words: &[OsString]) -> OsString {
    words.iter().take(2).cloned().collect::<Vec<_>>().join(OsStr::new("-"))
}

/// The words of a command as a shell would split them; `None` when a shell would do more than that.
fn words(line: &[u8]) -> Option<Vec<OsString>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut in_word = false;
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == b' ' {
            in_word = false;
            continue;
        }
        if !std::mem::replace(&mut in_word, true) {
            words.push(Vec::new());
        }
        let word = words.last_mut()?;
        match byte {
            b'\'' => loop {
                match bytes.next()? {
                    b'\'' => break,
                    byte => word.push(byte),
                }
            },
            b'\\' => word.push(bytes.next()?),
            byte if byte.is_ascii_alphanumeric() || b"-_./=~:+@%,".contains(&byte) => {
                word.push(byte);
            }
            byte if byte >= 0x80 => word.push(byte),
            _ => return None,
        }
    }
    Some(words.into_iter().map(OsString::from_vec).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zit_wire::service::{ProtocolVersion, Service};

    use super::*;

    fn set(agent: Option<&str>) -> StdioArgs {
        StdioArgs {
            service: None,
            path: None,
            protocol: None,
            agent: agent.map(|agent| agent.parse().unwrap()),
            item: None,
        }
    }

    fn ask(command: &str, agent: Option<&str>) -> Result<StdioArgs, ForcedError> {
        asked(Some(OsStr::new(command)), &set(agent))
    }

    #[test]
    fn both_forms_of_a_command_are_understood() {
        for (command, path) in [
            ("git-receive-pack '/srv/a b.git'", "/srv/a b.git"),
            ("git-receive-pack '~/it'\\''s'\\!''", "~/it's!"),
            ("git-receive-pack /srv/r", "/srv/r"),
            ("git receive-pack '/srv/r'", "/srv/r"),
            ("zit-server stdio --protocol=1 --agent=ada git-receive-pack '/r'", "/r"),
        ] {
            let found = ask(command, None).unwrap();
            assert_eq!(found.wanted(), Some((Service::ReceivePack, Path::new(path))), "{command}");
        }
        let found = ask("zit-server stdio --protocol=1 git-upload-pack '/r'", Some("ada")).unwrap();
        assert_eq!(found.protocol, Some(ProtocolVersion::V1));
        assert_eq!(found.agent, Some("ada".parse().unwrap()));
    }

    #[test]
    fn whatever_else_is_asked_for_is_refused() {
        for command in [
            "ls",
            "git-receive-pack",
            "git-receive-pack '/r' '/s'",
            "git-upload-archive '/r'",
            "git upload-archive '/r'",
            "git -c x=y receive-pack '/r'",
            "git",
            "git-receive-pack $(id)",
            "git-receive-pack /r; id",
            "git-receive-pack '/r",
            "git-receive-pack /r\\",
            "git-receive-pack \"/r\"",
            "git-receive-pack /r\nid",
            "zit-server serve --root /",
            "zit-server stdio --log=debug git-upload-pack /r",
            "zit-server stdio --help",
            "zit-server stdio",
            "/bin/zit-server stdio git-upload-pack /r",
        ] {
            assert!(matches!(ask(command, None), Err(ForcedError::Unknown(_))), "{command}");
        }
        assert_eq!(asked(None, &set(None)).unwrap_err(), ForcedError::NoCommand);
        assert_eq!(ask("", None).unwrap_err(), ForcedError::NoCommand);
    }

    #[test]
    fn a_login_that_is_set_to_an_agent_speaks_as_no_other() {
        let command = |agent: &str| format!("zit-server stdio --agent={agent} git-upload-pack /r");
        assert!(ask(&command("ada"), Some("ada")).is_ok());
        assert!(matches!(ask(&command("ben"), Some("ada")), Err(ForcedError::OtherAgent { .. })));
    }
}
