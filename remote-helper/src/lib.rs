//! git's remote helper for zit.
//!
//! Git finds it by name on the `PATH`: for an address `zit::<address>` or `zit://<host>/<path>` it starts
//! `git-remote-zit`. So installing means putting the program into a folder of the `PATH`; nothing is configured in git.
//!
//! - [`address`]: which addresses work, and what they mean to git.
//! - [`identity`]: which agent and item speak.
//! - [`transport`]: hands the connection to git's own HTTP transport, with that identity in headers.
//! - [`git`]: the one place that starts git.
//!
//! Invariant: as the helper, this program writes nothing to standard output. What is spoken there is the helper
//! protocol, and git's own transport speaks it.

pub mod address;
pub mod git;
pub mod identity;
pub mod transport;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// Runs the program with the process's arguments, streams and environment.
#[must_use]
pub fn main() -> ExitCode {
    helper(std::env::args_os().skip(1).collect())
}

/// Runs as `git-remote-zit <remote> [<url>]`. Comes back only when there is no transport to hand over to.
///
/// Git itself adds that the helper gave up, and exits with 128.
fn helper(args: Vec<OsString>) -> ExitCode {
    let error = transport::run(args);
    fail(&error, error.hint());
    ExitCode::FAILURE
}

/// Says what went wrong and what to do, as git does.
pub(crate) fn fail(error: &dyn Error, hint: Option<&str>) {
    let mut text = format!("fatal: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    // If standard error is closed, nobody is there to be told.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
