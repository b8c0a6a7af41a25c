//! Starting ssh the way git does: which program, in which dialect, with which options.
//!
//! | | environment | configuration | else |
//! | --- | --- | --- | --- |
//! | command line, for a shell | `GIT_SSH_COMMAND` | `core.sshCommand` | |
//! | program | `GIT_SSH` | | `ssh` |
//! | dialect | `GIT_SSH_VARIANT` | `ssh.variant` | told from the program's name, else by trying `-G` |
//!
//! On the other machine runs `zit-server stdio`, found by its user's `PATH`.
//!
//! Source: git's `connect.c`, `get_ssh_command`, `determine_ssh_variant` and `push_ssh_options`; git-config(1).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use zit_service::Hello;
use zit_wire::service::ProtocolVersion;

use crate::address::SshAddress;

/// Why ssh is not started.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// It does not run.
    #[error("cannot run ssh")]
    Start(#[source] io::Error),
    /// The program takes no port.
    #[error("cannot set a port: ssh variant 'simple' has no option for it")]
    NoPort,
}

impl SshError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start(_) => Some("install it, or name another in GIT_SSH_COMMAND"),
            Self::NoPort => Some("set ssh.variant to what the program is, or leave the port out"),
        }
    }
}

/// Which options the program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// OpenSSH's.
    Ssh,
    /// `PuTTY`'s `plink`.
    Plink,
    /// `TortoiseSVN`'s.
    TortoisePlink,
    /// None.
    Simple,
}

/// The program, before its options.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Program {
    /// A line for a shell.
    Line(OsString),
    /// A file.
    File(OsString),
}

/// Puts the command together that reaches `zit-server` at `address`.
///
/// # Errors
/// [`SshError`] when the program cannot say what the address asks for.
pub fn command(
    address: &SshAddress,
    hello: &Hello,
    config: &BTreeMap<String, String>,
) -> Result<Command, SshError> {
    let program = Program::find(|name| std::env::var_os(name), config);
    let named = Dialect::named(std::env::var("GIT_SSH_VARIANT").ok().as_ref(), config);
    let dialect = named.or_else(|| program.dialect()).unwrap_or_else(|| probe(&program, address));
    let mut command = program.command();
    command.args(options(dialect, address)?).arg(address.destination());
    command.arg(remote_command(address.path(), hello));
    Ok(command)
}

/// Replaces this process by the command; comes back only if that fails.
#[must_use]
pub fn become_it(mut command: Command) -> SshError {
    SshError::Start(command.exec())
}

impl Program {
    fn find(env: impl Fn(&str) -> Option<OsString>, config: &BTreeMap<String, String>) -> Self {
        env("GIT_SSH_COMMAND")
            .or_else(|| config.get("core.sshcommand").map(OsString::from))
            .map(Self::Line)
            .or_else(|| env("GIT_SSH").map(Self::File))
            .unwrap_or_else(|| Self::File("ssh".into()))
    }

    fn command(&self) -> Command {
        match self {
            Self::File(file) => start(file),
            Self::Line(line) => {
                let mut with_arguments = line.clone();
                with_arguments.push(" \"$@\"");
                let mut command = start(OsStr::new("/bin/sh"));
                command.arg("-c").arg(with_arguments).arg(line);
                command
            }
        }
    }

    /// The dialect that the program's name tells.
    fn dialect(&self) -> Option<Dialect> {
        let file = match self {
            Self::File(file) => file.clone(),
            // The first word as it is; of a quoted one the name is not told.
            Self::Line(line) => {
                let mut words = line.as_bytes().split(u8::is_ascii_whitespace);
                OsString::from_vec(words.find(|word| !word.is_empty())?.to_vec())
            }
        };
        let name = Path::new(&file).file_name()?.to_str()?.to_ascii_lowercase();
        match name.strip_suffix(".exe").unwrap_or(&name) {
            "ssh" => Some(Dialect::Ssh),
            "plink" | "putty" => Some(Dialect::Plink),
            "tortoiseplink" => Some(Dialect::TortoisePlink),
            _ => None,
        }
    }
}

impl Dialect {
    /// The dialect that the user names.
    fn named(env: Option<&String>, config: &BTreeMap<String, String>) -> Option<Self> {
        match env.or_else(|| config.get("ssh.variant"))?.as_str() {
            "auto" => None,
            "plink" | "putty" => Some(Self::Plink),
            "tortoiseplink" => Some(Self::TortoisePlink),
            "simple" => Some(Self::Simple),
            _ => Some(Self::Ssh),
        }
    }
}

/// Tries whether the program takes OpenSSH's options, which include one to do nothing.
fn probe(program: &Program, address: &SshAddress) -> Dialect {
    let mut command = program.command();
    command.arg("-G").args(options(Dialect::Ssh, address).unwrap_or_default());
    command.arg(address.destination());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let takes_them = command.status().is_ok_and(|status| status.success());
    if takes_them { Dialect::Ssh } else { Dialect::Simple }
}

fn options(dialect: Dialect, address: &SshAddress) -> Result<Vec<String>, SshError> {
    let mut options = Vec::new();
    if dialect == Dialect::TortoisePlink {
        options.push("-batch".to_owned());
    }
    if let Some(port) = address.port() {
        let option = match dialect {
            Dialect::Ssh => "-p",
            Dialect::Plink | Dialect::TortoisePlink => "-P",
            Dialect::Simple => return Err(SshError::NoPort),
        };
        options.extend([option.to_owned(), port.to_owned()]);
    }
    Ok(options)
}

/// What the other machine's shell is to run.
fn remote_command(path: &OsStr, hello: &Hello) -> OsString {
    let version = match hello.version {
        ProtocolVersion::V0 => 0,
        ProtocolVersion::V1 => 1,
        ProtocolVersion::V2 => 2,
    };
    let mut line = format!("zit-server stdio --protocol={version}");
    if let Some(agent) = &hello.agent {
        line.push_str(&format!(" --agent={agent}"));
    }
    if let Some(item) = &hello.item {
        line.push_str(&format!(" --item={item}"));
    }
    line.push_str(&format!(" {} ", hello.service));
    let mut line = OsString::from(line);
    line.push(quoted(path));
    line
}

/// One word for a shell, whatever its bytes. A `!` is kept from shells that expand it.
fn quoted(word: &OsStr) -> OsString {
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' | b'!' => quoted.extend_from_slice(&[b'\'', b'\\', byte, b'\'']),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

fn start(program: &OsStr) -> Command {
    #[expect(clippy::disallowed_methods, reason = "ssh is the user's, in the user's environment")]
    Command::new(program)
}

#[cfg(test)]
mod tests {
    use zit_wire::service::Service;

    use super::*;
    use crate::address::Remote;

    fn config(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn address(url: &str) -> SshAddress {
        match Remote::parse(OsStr::new(url)) {
            Ok(Remote::Ssh(address)) => address,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_program_is_found_in_the_order_of_git() {
        let find = |env: &[(&str, &str)], pairs: &[(&str, &str)]| {
            let env = config(env);
            Program::find(|name| env.get(name).map(OsString::from), &config(pairs))
        };
        let (line, file) = (|s: &str| Program::Line(s.into()), |s: &str| Program::File(s.into()));
        let all = [("GIT_SSH_COMMAND", "a b"), ("GIT_SSH", "c")];
        assert_eq!(find(&all, &[("core.sshcommand", "d")]), line("a b"));
        assert_eq!(find(&all[1..], &[("core.sshcommand", "d")]), line("d"));
        assert_eq!(find(&all[1..], &[]), file("c"));
        assert_eq!(find(&[], &[]), file("ssh"));
    }

    #[test]
    fn the_dialect_is_named_or_told_from_the_program() {
        for (program, expected) in [
            ("ssh", Some(Dialect::Ssh)),
            ("/usr/bin/ssh -v", Some(Dialect::Ssh)),
            ("C:/x/Plink.exe -i k", Some(Dialect::Plink)),
            ("TortoisePlink", Some(Dialect::TortoisePlink)),
            ("my-ssh", None),
        ] {
            assert_eq!(Program::Line(program.into()).dialect(), expected, "{program}");
        }
        let simple = config(&[("ssh.variant", "simple")]);
        assert_eq!(Dialect::named(None, &simple), Some(Dialect::Simple));
        assert_eq!(Dialect::named(Some(&"plink".to_owned()), &simple), Some(Dialect::Plink));
        assert_eq!(Dialect::named(Some(&"auto".to_owned()), &simple), None);
    }

    #[test]
    fn each_dialect_has_its_way_of_naming_a_port() {
        let address = address("ssh://h:22/r");
        for (dialect, expected) in [
            (Dialect::Ssh, vec!["-p", "22"]),
            (Dialect::Plink, vec!["-P", "22"]),
            (Dialect::TortoisePlink, vec!["-batch", "-P", "22"]),
        ] {
            assert_eq!(options(dialect, &address).unwrap(), expected);
        }
        assert!(matches!(options(Dialect::Simple, &address), Err(SshError::NoPort)));
    }

    #[test]
    fn the_other_shell_sees_the_path_as_one_word() {
        let hello = Hello {
            service: Service::ReceivePack,
            version: ProtocolVersion::V1,
            agent: Some("ada".parse().unwrap()),
            bound: false,
            item: None,
            namespace: None,
            account: None,
            nonce: None,
        };
        let line = remote_command(OsStr::new("/a b'; rm -rf !x"), &hello);
        let expected =
            r"zit-server stdio --protocol=1 --agent=ada git-receive-pack '/a b'\''; rm -rf '\!'x'";
        assert_eq!(line, expected);
    }
}
