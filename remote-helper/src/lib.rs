//! git's remote helper for zit, and zit's command line: one program under two names.
//!
//! Git finds both by name on the `PATH`. For an address `zit::<address>` or `zit://<host>/<path>` it starts
//! `git-remote-zit`; for `git zit <verb>` it starts `git-zit`. So installing means putting the two names into a folder
//! of the `PATH`; nothing is configured in git. Linked as `zit`, the second works without `git` in front.
//! (`git zit --help` asks git for a manual page; `git zit help` and `git zit -h` ask this program.)
//!
//! - [`address`]: which addresses work, and what they mean to git.
//! - [`identity`]: which agent and item speak.
//! - [`transport`]: hands the connection of a server to git's own HTTP transport, with that identity in headers.
//! - [`connect`]: carries a connection itself: to a repository on this machine, refereed here or by the server that has
//!   it open; or to [`ssh`], to `zit-server` on another machine.
//! - [`cli`]: the verbs. On commits of a local repository, [`report`] is what they print; of a remote one, which
//!   [`read`] asks over a [`channel`], it is [`standing`]. [`answers`] is how git's transport hands answers through.
//! - [`git`]: the one place that starts git.
//!
//! Invariant: as the helper, this program writes nothing to standard output but the helper protocol.
//! Invariant: nothing here judges. The verbs print what the referee's code computes.

pub mod address;
pub mod answers;
pub mod channel;
pub mod cli;
pub mod connect;
pub mod git;
pub mod identity;
pub mod read;
pub mod report;
pub mod ssh;
pub mod standing;
pub mod transport;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use zit_model::failure;

/// The name under which this program is the remote helper.
const HELPER: &str = "git-remote-zit";

/// Runs the program with the process's arguments, streams and environment.
#[must_use]
pub fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    if Path::new(&program).file_name().is_some_and(|name| name == HELPER) {
        helper(args.collect())
    } else {
        cli::main(std::iter::once(program).chain(args))
    }
}

/// Runs as `git-remote-zit <remote> [<url>]`.
///
/// When it fails, git itself adds that the helper gave up, and exits with 128.
fn helper(args: Vec<OsString>) -> ExitCode {
    match transport::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            fail(&error, error.hint());
            ExitCode::FAILURE
        }
    }
}

/// Says what went wrong and what to do, as git does.
pub(crate) fn fail(error: &dyn Error, hint: Option<&str>) {
    let mut text = format!("fatal: {}", failure::chain(error));
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    // If standard error is closed, nobody is there to be told.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
