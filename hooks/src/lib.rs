//! `zit-hook`: what git's hooks call, so that stock git and zit can share one repository.
//!
//! - [`transaction`]: the `reference-transaction` hook, which keeps stock git from writing below `refs/zit/`.
//! - [`install`]: puts that hook in place, in front of one that is there already.
//!
//! The program reads git's lines, asks one of these modules and reports. Standard output stays empty: git hands it on
//! to whoever runs the command. `zit-server` writes refs itself and passes over this hook, so it is
//! never refused here.

pub mod install;
pub mod transaction;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Parser, Subcommand};
use transaction::State;
use zit_model::failure;

/// Keep stock git and zit out of each other's way in one repository
#[derive(Parser)]
#[command(name = "zit-hook", version)]
struct Args {
    #[command(subcommand)]
    hook: Hook,
}

#[derive(Subcommand)]
enum Hook {
    /// Refuse changes of refs below refs/zit/ (git runs this as its hook)
    ///
    /// Reads lines of old oid, new oid and refname from standard input. Exits with 1 when the state is `prepared` and
    /// a line would change a ref that zit alone writes; git then gives up the whole transaction.
    ReferenceTransaction {
        /// Run this hook afterwards with the same input, if the file exists and is executable
        #[arg(long, value_name = "FILE")]
        then: Option<PathBuf>,
        /// State of the transaction, as git names it
        state: State,
    },
    /// Put the reference-transaction hook into a repository
    ///
    /// A hook that is there already is kept as reference-transaction.user and runs after zit's. Installing again
    /// changes nothing but the path of this program.
    Install {
        /// Repository, bare or not
        repository: PathBuf,
    },
}

/// Runs the program with the process's arguments, streams and environment.
#[must_use]
pub fn main() -> ExitCode {
    match Args::parse().hook {
        Hook::ReferenceTransaction { then, state } => reference_transaction(state, then.as_deref()),
        Hook::Install { repository } => {
            let installed = std::env::current_exe()
                .map_err(install::InstallError::OwnPath)
                .and_then(|program| install::install(&repository, &program));
            match installed {
                Ok(hook) => {
                    say(&format!("zit-hook: installed {}", hook.display()));
                    ExitCode::SUCCESS
                }
                Err(error) => fail(&error, error.hint()),
            }
        }
    }
}

fn reference_transaction(state: State, then: Option<&Path>) -> ExitCode {
    let mut input = Vec::new();
    if let Err(error) = io::stdin().lock().read_to_end(&mut input) {
        return fail(&error, None);
    }
    if state == State::Prepared {
        let git_dir = std::env::var_os("GIT_DIR").unwrap_or_else(|| OsString::from("."));
        if let Err(error) = transaction::check(Path::new(&git_dir), &input) {
            return fail(&error, error.hint());
        }
    }
    match then.map(|hook| run_users_hook(hook, state, &input)) {
        None => ExitCode::SUCCESS,
        Some(Ok(code)) => code,
        Some(Err(error)) => fail(&error, None),
    }
}

/// Runs the hook that was there before ours. As in git, one that is missing or not executable is passed over.
fn run_users_hook(hook: &Path, state: State, input: &[u8]) -> io::Result<ExitCode> {
    if !install::is_executable(hook) {
        return Ok(ExitCode::SUCCESS);
    }
    #[expect(clippy::disallowed_methods, reason = "the user's hook gets git's own environment")]
    let mut child = Command::new(hook).arg(state.as_str()).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input) {
            // A hook need not read what it is told.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let status = child.wait()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn fail(error: &dyn Error, hint: Option<&str>) -> ExitCode {
    let mut text = format!("zit-hook: {}", failure::chain(error));
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    say(&text);
    ExitCode::FAILURE
}

/// People read standard error; if it is closed, nobody is there to be told.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
