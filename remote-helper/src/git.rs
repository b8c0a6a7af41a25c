//! The one place in this crate that starts git.
//!
//! The git that is run is the user's: it sees the environment, configuration and repository that this program was
//! started in. Only the commands that answer here have their output read; the transport keeps the streams.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use zit_model::{Oid, quote};

use crate::address::Address;

/// The environment variables that carry the values of settings into git.
const SETTING: &str = "ZIT_SETTING_";

/// Why git did not answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started.
    #[error("cannot run git")]
    Start(#[source] io::Error),
    /// It refused. Git's own words say why.
    #[error("{said}")]
    Failed {
        /// What git said, on one line.
        said: String,
    },
    /// It answered something else than asked for.
    #[error("git {command} answered {answer:?}")]
    Answer {
        /// The command.
        command: &'static str,
        /// What came, shortened.
        answer: String,
    },
    /// A name that leads to no commit here.
    #[error("{revision:?} names no commit in this repository")]
    NoCommit {
        /// What was asked for, on one line.
        revision: String,
    },
}

/// Replaces this process by git with the given settings, keys and values; comes back only if that fails.
#[must_use]
pub fn become_git(settings: &[(String, String)], args: &[OsString]) -> GitError {
    let mut command = git();
    configure(&mut command, settings);
    GitError::Start(command.args(args).exec())
}

/// Git's own transport for the server at `address`, which git knows as `name`, with settings, keys and values.
#[must_use]
pub fn remote_http(name: &str, address: &Address, settings: &[(String, String)]) -> Command {
    let mut command = git();
    configure(&mut command, settings);
    command.args(["-c", "protocol.version=2"]);
    command.arg(format!("remote-{}", address.scheme().as_str())).arg(name).arg(address.to_string());
    command
}

fn configure(command: &mut Command, settings: &[(String, String)]) {
    for (n, (key, value)) in settings.iter().enumerate() {
        // Of `<key>=<variable>` git takes the last '=' as the border, so an address may hold others.
        command.arg(format!("--config-env={key}={SETTING}{n}")).env(format!("{SETTING}{n}"), value);
    }
}

/// The remote that the branch checked out here follows; `origin` when it follows none.
///
/// # Errors
/// [`GitError`] when git cannot be run.
pub fn default_remote() -> Result<String, GitError> {
    let branch = answer(git().args(["symbolic-ref", "--quiet", "--short", "HEAD"]))?;
    let branch = String::from_utf8_lossy(&branch.stdout).trim_end().to_owned();
    let key = format!("branch.{branch}.remote");
    let remote = answer(git().args(["config", "--get", &key]))?;
    let remote = String::from_utf8_lossy(&remote.stdout).trim_end().to_owned();
    // A lone dot is this repository itself.
    Ok(if remote.is_empty() || remote == "." { "origin".to_owned() } else { remote })
}

/// The address that git fetches from for a remote.
///
/// # Errors
/// [`GitError::Failed`] when there is no such remote.
pub fn remote_url(name: &str) -> Result<OsString, GitError> {
    let output = answer(git().args(["remote", "get-url", "--", name]))?;
    if !output.status.success() {
        return Err(failed(&output));
    }
    let mut url = output.stdout;
    url.pop_if(|byte| *byte == b'\n');
    Ok(OsString::from_vec(url))
}

/// The settings whose keys match `pattern`, by lower-case key; of repeated ones the last.
///
/// # Errors
/// [`GitError`] when git cannot read its configuration.
pub fn config_matching(pattern: &str) -> Result<BTreeMap<String, String>, GitError> {
    let output = answer(git().args(["config", "--null", "--get-regexp", pattern]))?;
    match output.status.code() {
        Some(0) => {}
        // None of them is set.
        Some(1) => return Ok(BTreeMap::new()),
        Some(_) | None => return Err(failed(&output)),
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let entries = text.split_terminator('\0');
    // A key without '=' in the file has no value, not even an empty one.
    Ok(entries
        .filter_map(|e| e.split_once('\n'))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect())
}

/// The git directory that commands run here would use.
///
/// # Errors
/// [`GitError::Failed`] when there is none.
pub fn git_dir() -> Result<PathBuf, GitError> {
    let output = answer(git().args(["rev-parse", "--absolute-git-dir"]))?;
    if !output.status.success() {
        return Err(failed(&output));
    }
    let mut path = output.stdout;
    path.pop_if(|byte| *byte == b'\n');
    Ok(PathBuf::from(OsString::from_vec(path)))
}

/// The commit that a revision names, as in gitrevisions(7); a tag's commit for a tag.
///
/// # Errors
/// [`GitError::NoCommit`] when it names none, [`GitError`] when git fails otherwise.
pub fn commit(revision: &OsStr) -> Result<Oid, GitError> {
    let mut peeled = revision.to_owned();
    peeled.push("^{commit}");
    let output =
        answer(git().args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(peeled))?;
    let shown = || quote::one_line(&revision.to_string_lossy());
    if !output.status.success() {
        return Err(GitError::NoCommit { revision: shown() });
    }
    Oid::from_hex(output.stdout.trim_ascii_end()).map_err(|_| GitError::Answer {
        command: "rev-parse",
        answer: quote::one_line(&String::from_utf8_lossy(&output.stdout)),
    })
}

fn git() -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one wrapper of this crate")]
    Command::new("git")
}

fn answer(command: &mut Command) -> Result<Output, GitError> {
    command.output().map_err(GitError::Start)
}

fn failed(output: &Output) -> GitError {
    let said = quote::one_line(&String::from_utf8_lossy(&output.stderr));
    GitError::Failed { said: said.strip_prefix("fatal: ").unwrap_or(&said).to_owned() }
}
