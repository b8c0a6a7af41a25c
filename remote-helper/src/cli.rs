//! The verbs of `git zit`: what two commits of a local repository touch, whether changes compose, and what stands in the
//! repository of a remote.
//!
//! [`main`] reads the arguments, finds the repository, asks the referee's footprints or the remote, prints. Nothing is
//! written to the repository.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args as Arguments, Parser, Subcommand};
use zit_footprint::Footprint;
use zit_model::Oid;
use zit_model::envelope::Command;
use zit_referee::footprints::Footprinter;
use zit_store::{Access, Objects, Store, StoreError};

use crate::address::{AddressError, Remote};
use crate::channel::{self, ChannelError};
use crate::git::{self, GitError};
use crate::identity::{Identity, IdentityError};
use crate::read::{self, ReadError};
use crate::report::{self, Judgement, Rule};
use crate::standing::{self, Part};
use crate::transport::SETTINGS;

/// Exit code for changes that do not compose.
const CONFLICT: u8 = 1;

/// Exit code for everything that prevented an answer, as clap's own for bad arguments.
const ERROR: u8 = 2;

/// See what changes touch, whether they compose, and what other agents are at
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
    /// Show what has landed, who holds what, and who works on what at a remote
    Status(Where),
    /// List the claims at a remote
    ///
    /// One line for each: the resource, its agent and item, the length of its lease, its epoch, and the agent's intent.
    Claims(Where),
    /// List the open work at a remote
    ///
    /// One line for each item: its agent, its id, the ref and commit it is at, and the agent's intent.
    Items(Where),
    /// Tell whether two changes of the same base compose
    ///
    /// Compares their footprints as an accept does, and prints for each conflict the command that puts your change on
    /// the other one and what to look at then. Two edits of prose or of imports are left to git's text merge,
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
        /// Go by names alone, as a repository does with judge = "names" below [accept] in its zit.toml
        #[arg(long)]
        names: bool,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Which remote, and how it is told.
#[derive(Arguments)]
struct Where {
    /// Remote to ask [default: the one that the current branch follows, else origin]
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Why a verb has no answer.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot ask a remote")]
    NoRemote(#[source] GitError),
    #[error("cannot ask remote {name}")]
    Address { name: String, source: AddressError },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("cannot reach remote {name} at {url}")]
    Channel { name: String, url: String, source: Box<ChannelError> },
    #[error("cannot read remote {name} at {url}")]
    Read { name: String, url: String, source: Box<ReadError> },
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
            Self::NoRemote(_) => Some("name one of git remote with --remote"),
            Self::Address { source, .. } => Some(source.hint()),
            Self::Identity(error) => Some(error.hint()),
            Self::Channel { source, .. } => source.hint(),
            Self::Read { .. } => Some("see whether git can: git ls-remote <remote> 'refs/zit/*'"),
            Self::Git(_) | Self::Write(_) => None,
        }
    }
}

/// Runs the verb that `args` names, program name first.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let answered = match Args::parse_from(args).verb {
        Verb::Footprint { base, tip, json } => footprint(&base, &tip, json),
        Verb::Status(place) => standing(&place, Part::Status),
        Verb::Claims(place) => standing(&place, Part::Claims),
        Verb::Items(place) => standing(&place, Part::Items),
        Verb::Judge { base, mine, theirs, names, json } => {
            judge([&base, &mine, &theirs], names, json)
        }
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

fn judge(sides: [&OsString; 3], names: bool, json: bool) -> Result<ExitCode, CliError> {
    let commits = Commits::open()?;
    let [base, mine, theirs] = sides.map(|side| git::commit(side));
    let (base, tips @ [mine, theirs]) = (base?, [mine?, theirs?]);
    let [mine, theirs] = [commits.footprint(base, mine)?, commits.footprint(base, theirs)?];
    let [from, what, onto] = sides.map(|side| side.to_string_lossy());
    let rebuild = Command::git(["rebase", "--onto", &*onto, &*from, &*what], "puts mine on theirs");
    let around = commits.footprinter.around(&commits.objects, Some(base));
    let around = around.with_sides(tips[0], tips[1]);
    let rule = if names { Rule::Names } else { Rule::Resolved(&around) };
    let judgement = Judgement::of(&mine, &theirs, &rule, rebuild);
    around.finish()?;
    print(&if json { judgement.to_json() } else { judgement.to_text() })?;
    Ok(if judgement.composes() { ExitCode::SUCCESS } else { ExitCode::from(CONFLICT) })
}

/// Asks a remote what stands there.
fn standing(place: &Where, part: Part) -> Result<ExitCode, CliError> {
    let name = place.remote.clone().map_or_else(git::default_remote, Ok)?;
    let url = git::remote_url(&name).map_err(CliError::NoRemote)?;
    // Git takes the first part off before it starts the helper.
    let url = url.as_bytes().strip_prefix(b"zit::").map_or(url.as_os_str(), OsStr::from_bytes);
    let at = |source| CliError::Address { name: name.clone(), source };
    let remote = Remote::parse(url).map_err(at)?;
    let config = git::config_matching(SETTINGS)?;
    let env = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let identity = Identity::read(env, |key| config.get(key).cloned())?;
    let url = remote.shown();
    let channel = channel::open(&name, &remote, &identity, &config).map_err(|source| {
        CliError::Channel { name: name.clone(), url: url.clone(), source: Box::new(source) }
    })?;
    let standing = read::standing(channel, &url).map_err(|source| CliError::Read {
        name: name.clone(),
        url: url.clone(),
        source: Box::new(source),
    })?;
    print(&if place.json {
        standing::json(&standing, part, &name)
    } else {
        standing::text(&standing, part)
    })?;
    Ok(ExitCode::SUCCESS)
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
