//! The one place that starts stock `git`, with an environment of our own.
//!
//! What the caller's environment says about repositories, objects, configuration or prompts does not reach the
//! program, so a result depends on the repository and the arguments only. Nothing here reads the terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use bstr::ByteSlice;
use rustix::process::{Pid, setpriority_process};

use crate::maintain::Stop;

/// How much of what a program says is kept, in bytes. Enough for git's first complaint and its context.
const MAX_SAID: usize = 2000;

/// How much of a program's standard error is read before the rest is thrown away, in bytes.
const MAX_STDERR: u64 = 64 * 1024;

/// The lowest priority that Unix knows, for work that nobody waits for.
const LOWEST: i32 = 19;

/// Why a git program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started.
    #[error("cannot run git {command}")]
    Start {
        /// The subcommand.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// Talking to it failed.
    #[error("lost git {command}")]
    Pipe {
        /// The subcommand.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("git {command} failed ({status}): {said}")]
    Failed {
        /// The subcommand.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Its first words, bounded, on one line, without control characters.
        said: String,
    },
}

/// One run of git, being put together.
pub(crate) struct Git {
    command: Command,
    name: String,
}

/// How a run ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    name: String,
}

impl Git {
    /// `git <name>` without a repository, and with the user's configuration: git's own checks of ownership apply.
    pub(crate) fn anywhere(name: &str) -> Self {
        Self::configured(&[], name)
    }

    fn configured(settings: &[&str], name: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the one wrapper that may")]
        let mut command = Command::new("git");
        // Where the caller's repository, objects and configuration are, what it traces and how it asks.
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(variable);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        command.arg(name);
        Self { command, name: name.to_owned() }
    }

    /// `git <name>` in the repository `git_dir`, with no configuration but the repository's own and `settings`.
    pub(crate) fn at(git_dir: &Path, settings: &[&str], name: &str) -> Self {
        let mut git = Self::configured(settings, name);
        git.command
            .env("GIT_DIR", git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1");
        git
    }

    /// Reads and writes objects in `objects` first. That folder names the repository's objects as its alternate.
    pub(crate) fn quarantined(mut self, objects: &Path) -> Self {
        self.command.env("GIT_OBJECT_DIRECTORY", objects).env("GIT_QUARANTINE_PATH", objects);
        self
    }

    /// Also reads objects in the folder `objects`.
    pub(crate) fn borrowing(mut self, objects: &Path) -> Self {
        self.command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub(crate) fn folder(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Starts it with all three streams as pipes.
    pub(crate) fn spawn(mut self) -> Result<Child, GitError> {
        self.command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|source| GitError::Start { command: self.name, source })
    }

    /// Runs it to the end with nothing on standard input; an error unless it succeeds.
    pub(crate) fn output(self) -> Result<Vec<u8>, GitError> {
        self.finish(|_| Ok(())).and_then(Finished::success).map(|finished| finished.stdout)
    }

    /// Runs it to the end while `feed` writes its standard input.
    ///
    /// A program that stops listening is no error of `feed`'s: how it ended says why. Any other error of `feed`
    /// ends the program and comes back as [`GitError::Pipe`].
    pub(crate) fn finish(
        self,
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Finished, GitError> {
        let name = self.name.clone();
        let child = self.spawn()?;
        attend(name, child, feed)
    }

    /// Runs it to the end at the lowest priority, in a process group that `stop` ends, with `stdin` to read from.
    pub(crate) fn in_background(mut self, stdin: &File, stop: &Stop) -> Result<Finished, GitError> {
        let name = self.name.clone();
        let failed = |source| GitError::Start { command: name.clone(), source };
        self.command.stdin(stdin.try_clone().map_err(failed)?).process_group(0);
        let child = self.command.spawn().map_err(failed)?;
        // Before it starts others, or nearly so; none of them matters much.
        if let Err(error) = setpriority_process(Some(Pid::from_child(&child)), LOWEST) {
            tracing::debug!(%error, "maintenance runs at the usual priority");
        }
        let _running = stop.running(&child);
        attend(name, child, |_| Ok(()))
    }
}

/// Sees a program to its end while `feed` writes its standard input, if that is a pipe.
fn attend(
    name: String,
    mut child: Child,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Finished, GitError> {
    let lost = |source| GitError::Pipe { command: name.clone(), source };
    let mut stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (written, stdout, stderr) = std::thread::scope(|scope| {
        let stdout = scope.spawn(|| read_all(stdout));
        let stderr = scope.spawn(|| read_start(stderr));
        let written = match stdin.as_mut() {
            Some(stdin) => feed(stdin),
            None => Ok(()),
        };
        drop(stdin.take());
        if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            // Already gone is as good as killed.
            let _ = child.kill();
        }
        (written, stdout.join(), stderr.join())
    });
    let status = child.wait().map_err(lost)?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(lost(error)),
        Ok(()) | Err(_) => {}
    }
    let gone = || io::Error::other("a reader of its output panicked");
    let stdout = stdout.map_err(|_| lost(gone()))?.map_err(lost)?;
    let stderr = stderr.map_err(|_| lost(gone()))?.map_err(lost)?;
    Ok(Finished { status, stdout, stderr, name })
}

impl Finished {
    /// Itself when the program succeeded, else what the program said.
    pub(crate) fn success(self) -> Result<Self, GitError> {
        if self.status.success() { Ok(self) } else { Err(self.failed()) }
    }

    pub(crate) fn failed(self) -> GitError {
        GitError::Failed { command: self.name, status: self.status, said: said(&self.stderr) }
    }
}

/// The version of git, as far as it tells features apart; asked for once. `None` when it cannot be told.
pub(crate) fn version() -> Option<(u32, u32)> {
    static VERSION: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *VERSION.get_or_init(|| parse_version(&Git::anywhere("version").output().ok()?))
}

/// Reads `git version 2.47.3`, whatever follows the second number.
fn parse_version(said: &[u8]) -> Option<(u32, u32)> {
    let text = said.to_str().ok()?.trim().strip_prefix("git version ")?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

fn read_all(stream: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads to the end, so that the program never waits, and keeps the start.
pub(crate) fn read_start(stream: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.by_ref().take(MAX_STDERR).read_to_end(&mut bytes)?;
        io::copy(&mut stream, &mut io::sink())?;
    }
    Ok(bytes)
}

/// What a program wrote on standard error, fit to be shown: one line, bounded, no control characters.
pub(crate) fn said(stderr: &[u8]) -> String {
    let mut text = String::new();
    for line in stderr.lines().filter(|line| !line.trim().is_empty()) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        let line = line.to_str_lossy();
        text.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
        if text.len() > MAX_SAID {
            break;
        }
    }
    let text = text.trim();
    match text.char_indices().nth(MAX_SAID) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None if text.is_empty() => "no message".to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_is_one_line_without_control_characters() {
        assert_eq!(said(b"fatal: a\x1b[31m\n\n\tb\r\n"), "fatal: a [31m;  b");
        assert_eq!(said(b"\n"), "no message");
        assert!(said(&vec![b'x'; 100_000]).chars().count() <= MAX_SAID + 2);
    }

    #[test]
    fn a_version_is_its_first_two_numbers() {
        assert_eq!(parse_version(b"git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(parse_version(b"git version 2.50.1 (Apple Git-155)\n"), Some((2, 50)));
        assert_eq!(parse_version(b"git version 3.0-rc1\n"), Some((3, 0)));
        assert_eq!(parse_version(b"git 2.47"), None);
    }

    #[test]
    fn a_program_that_stops_listening_is_judged_by_how_it_ended() {
        let big = vec![b'x'; 1 << 20];
        let finished = Git::anywhere("version").finish(|stdin| stdin.write_all(&big)).unwrap();
        assert!(finished.status.success());
    }

    #[test]
    fn a_failing_feed_ends_the_program_and_is_reported() {
        let lost = Git::anywhere("hash-object")
            .arg("--stdin")
            .finish(|_| Err(io::Error::other("peer went away")));
        assert!(matches!(lost, Err(GitError::Pipe { .. })));
    }
}
