//! The one place where the benchmark starts programs, and how it ends those that serve.
//!
//! [`command`] gives a command whose environment holds nothing of the caller's but `PATH`, so that nobody's git
//! configuration changes what is measured. A [`Program`] is ended by its process id, never by name.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// A command line for `program` that sees `home` as its home directory and no configuration of this machine.
#[allow(clippy::disallowed_methods, reason = "this is the wrapper that the lint points to")]
pub(crate) fn command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    command.env_clear().env("PATH", path).env("LC_ALL", "C").env("TZ", "UTC");
    command.env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// Runs git in `folder`; what it printed, without the last line end.
///
/// # Errors
/// When git cannot be started or fails; its own words are in the error.
pub(crate) fn git<'a>(folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Result<String> {
    git_fed(folder, args, |_| Ok(()))
}

/// Runs git in `folder` with what `write` writes on its standard input.
///
/// # Errors
/// As [`git`].
pub(crate) fn git_fed<'a>(
    folder: &Path,
    args: impl IntoIterator<Item = &'a str>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Result<String> {
    let mut command = command("git", folder);
    command.current_dir(folder).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start git")?;
    let stdin = child.stdin.take().context("git has no standard input")?;
    let output = std::thread::scope(|scope| {
        // A git that ends without reading everything is judged by its status, not here.
        scope.spawn(move || {
            let mut stdin = BufWriter::new(stdin);
            write(&mut stdin)
        });
        child.wait_with_output()
    })?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// A program that serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    ending: Signal,
}

impl Program {
    /// Starts `command`, which `ending` will end.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn start(command: &mut Command, ending: Signal) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, ending })
    }

    /// The process, for what needs its pipes or its state.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that it has already ended, which is what is asked for.
        let _ = kill_process(Pid::from_child(&self.child), self.ending);
        let _ = self.child.wait();
    }
}
