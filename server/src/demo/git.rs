//! A stock git client with an identity, a folder and nothing of the user's configuration.
//!
//! This is the one place in the demo that starts programs; the store's own wrapper serves the referee, not clients.

use std::io::{PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::DemoError;
use super::transcript::typed;

/// Who sits at a terminal, and in which folder.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// The name at the prompt, and the agent's id.
    pub(crate) who: &'static str,
    /// The current folder.
    pub(crate) folder: PathBuf,
}

/// A command that ended.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// The command as a person types it.
    pub(crate) command: String,
    /// Standard output and standard error, in the order printed.
    pub(crate) output: String,
    /// Whether it exited with 0.
    pub(crate) success: bool,
}

/// A command that runs.
#[must_use = "a command that is not waited for may outlive the demo"]
pub(crate) struct Running {
    command: String,
    child: Child,
    output: PipeReader,
}

impl Seat {
    /// Runs git and waits for it.
    ///
    /// # Errors
    /// [`DemoError::Program`] when git cannot be run; its own failures are in [`Ran::success`].
    pub(crate) fn git(&self, args: &[&str]) -> Result<Ran, DemoError> {
        self.start(args)?.wait()
    }

    /// Starts git.
    ///
    /// # Errors
    /// [`DemoError::Program`] when git cannot be started.
    pub(crate) fn start(&self, args: &[&str]) -> Result<Running, DemoError> {
        self.spawn("git", args, typed(args))
    }

    /// Runs a line of shell, such as the server prints, and waits for it.
    ///
    /// # Errors
    /// [`DemoError::Program`] when no shell can be run.
    pub(crate) fn shell(&self, line: &str) -> Result<Ran, DemoError> {
        self.spawn("sh", &["-c", line], line.to_owned())?.wait()
    }

    fn spawn(&self, name: &str, args: &[&str], command: String) -> Result<Running, DemoError> {
        let failed = |source| DemoError::Program { command: command.clone(), source };
        let (output, to_output) = std::io::pipe().map_err(failed)?;
        let to_error = to_output.try_clone().map_err(failed)?;
        let child = program(name, self.who, &self.folder)
            .args(args)
            .stdin(Stdio::null())
            .stdout(to_output)
            .stderr(to_error)
            .spawn()
            .map_err(failed)?;
        Ok(Running { command, child, output })
    }
}

impl Running {
    /// Waits for the end, collecting what is printed.
    ///
    /// # Errors
    /// [`DemoError::Program`] when the output cannot be read.
    pub(crate) fn wait(mut self) -> Result<Ran, DemoError> {
        let failed = |source| DemoError::Program { command: self.command.clone(), source };
        let mut output = Vec::new();
        self.output.read_to_end(&mut output).map_err(failed)?;
        let status = self.child.wait().map_err(failed)?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Ran { command: self.command, output, success: status.success() })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a client of the demo, with its environment fixed here"
)]
fn program(name: &str, who: &str, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).env_clear();
    for kept in ["PATH", "TMPDIR", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    let email = format!("{who}@harbour.example");
    command
        .env("HOME", folder)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .envs([("GIT_AUTHOR_NAME", who), ("GIT_COMMITTER_NAME", who)])
        .envs([("GIT_AUTHOR_EMAIL", &email), ("GIT_COMMITTER_EMAIL", &email)]);
    command
}
