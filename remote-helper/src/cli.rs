//! The verbs of `git zit`: what two commits of a local repository touch, and whether changes compose.
//!
//! [`main`] reads the arguments, finds the repository, asks the referee's footprints, prints. Nothing is written to the
//! repository and no server is asked.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use zit_footprint::Footprint;
use zit_model::Oid;
use zit_referee::footprints::Footprinter;
use zit_store::{Access, Objects, Store, StoreError};

use crate::git::{self, GitError};
use crate::report::{self, Judgement};

/// Exit code for changes that do not compose.
const CONFLICT: u8 = 1;

/// Exit code for everything that prevented an answer, as clap's own for bad arguments.
const ERROR: u8 = 2;

/// See what changes touch and whether they compose
#[derive(Parser)]
#[command(name = "git zit", bin_name = "git zit", version)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List what a change writes and reads, down to functions
    ///
    /// One line for each write: what becomes of it, the resource, its lines, and its declaration where that changed.
    /// A file that could not be taken apart is one line with the reason.
    Footprint {
        /// Commit the change starts from
        base: OsString,
        /// Commit the change ends in
        tip: OsString,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
    /// Tell whether two changes of the same base compose
    ///
    /// Compares their footprints as an accept does. Two edits of prose or of imports are left to git's text merge,
    /// which this verb does not run.
    ///
    /// Exits with 0 when they compose, 1 when they conflict, and 2 when that cannot be told.
    Judge {
        /// Commit both changes start from
        base: OsString,
        /// Commit your change ends in
        mine: OsString,
        /// Commit the other change ends in
        theirs: OsString,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Why a verb has no answer.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the answer")]
    Write(#[from] io::Error),
}

impl CliError {
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Git(GitError::NoCommit { .. }) => {
                Some("fetch it first, or check its name with git log")
            }
            Self::Store(error) => error.hint(),
            Self::Git(_) | Self::Write(_) => None,
        }
    }
}

/// Runs the verb that `args` names, program name first.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let answered = match Args::parse_from(args).verb {
        Verb::Footprint { base, tip, json } => footprint(&base, &tip, json),
        Verb::Judge { base, mine, theirs, json } => judge(&base, &mine, &theirs, json),
    };
    match answered {
        Ok(code) => code,
        // The reader had enough, as in `git zit footprint … | head`.
        Err(CliError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            crate::fail(&error, error.hint());
            ExitCode::from(ERROR)
        }
    }
}

fn footprint(base: &OsString, tip: &OsString, json: bool) -> Result<ExitCode, CliError> {
    let commits = Commits::open()?;
    let footprint = commits.footprint(git::commit(base)?, git::commit(tip)?)?;
    print(&if json {
        report::footprint_json(&footprint)
    } else {
        report::footprint_text(&footprint)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn judge(
    base: &OsString,
    mine: &OsString,
    theirs: &OsString,
    json: bool,
) -> Result<ExitCode, CliError> {
    let commits = Commits::open()?;
    let base = git::commit(base)?;
    let mine = commits.footprint(base, git::commit(mine)?)?;
    let theirs = commits.footprint(base, git::commit(theirs)?)?;
    let judgement = Judgement::of(&mine, &theirs);
    print(&if json { judgement.to_json() } else { judgement.to_text() })?;
    Ok(if judgement.composes() { ExitCode::SUCCESS } else { ExitCode::from(CONFLICT) })
}

/// The repository that the program was started in.
struct Commits {
    objects: Objects,
    footprinter: Footprinter,
}

impl Commits {
    fn open() -> Result<Self, CliError> {
        let store = Store::open(&git::git_dir()?, Access::ReadOnly)?;
        Ok(Self { objects: store.objects()?, footprinter: Footprinter::default() })
    }

    fn footprint(&self, base: Oid, tip: Oid) -> Result<Arc<Footprint>, CliError> {
        Ok(self.footprinter.between(&self.objects, Some(base), tip)?)
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_declared_consistently() {
        Args::command().debug_assert();
    }
}
