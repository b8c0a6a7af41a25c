//! `zit-server check`: whether a repository is sound, one line for each thing that is not, with what to do.
//!
//! Reads only, also beside a running server. Exit codes: 0 sound, 1 something is wrong, 2 it could not be found out.
//! What others wrote stands in lines without control characters, in JSON as ASCII.
//!
//! Never decides what is sound: [`zit_referee::inspect`] does.

use std::io::{self, Write};

use serde::Serialize;
use zit_store::{Access, Finding, Inspected, Store, StoreError};

use crate::cli::CheckArgs;
use crate::log::json;

/// Why it could not be found out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// The repository does not open, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody takes the lines.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl CheckError {
    /// What to do about it, where there is something to do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Output(_) => None,
        }
    }
}

/// Checks the repository that `args` names; whether it is sound.
pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<bool, CheckError> {
    let store = Store::open(&args.path, Access::ReadOnly)?;
    let inspected = zit_referee::inspect(&store)?;
    print(&inspected, args.json, out).map_err(CheckError::Output)?;
    Ok(!inspected.findings.iter().any(|finding| finding.problem))
}

fn print(inspected: &Inspected, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    for finding in &inspected.findings {
        let line = if as_json { json(&Line::of(finding)) } else { text(finding) };
        writeln!(out, "{line}")?;
    }
    let summary = Summary::of(inspected);
    writeln!(out, "{}", if as_json { json(&summary) } else { summary.text() })?;
    out.flush()
}

/// `problem: ref: refs/zit/claims/… is …; to do: …`.
fn text(finding: &Finding) -> String {
    let kind = if finding.problem { "problem" } else { "note" };
    format!("{kind}: {}: {}; to do: {}", finding.about, finding.what, finding.next)
}

/// A finding, as `--json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    problem: bool,
    about: &'static str,
    what: &'a str,
    next: &'a str,
}

impl<'a> Line<'a> {
    fn of(finding: &'a Finding) -> Self {
        let Finding { problem, about, what, next } = finding;
        Self { problem: *problem, about, what, next }
    }
}

/// The last line.
#[derive(Serialize)]
struct Summary {
    sound: bool,
    problems: usize,
    refs: usize,
    /// The first record of the journal that is kept, and the last.
    records: Option<(u64, u64)>,
    /// Whether a server has it open.
    in_use: bool,
}

impl Summary {
    fn of(inspected: &Inspected) -> Self {
        let problems = inspected.findings.iter().filter(|finding| finding.problem).count();
        Self {
            sound: problems == 0,
            problems,
            refs: inspected.n_refs,
            records: inspected.records.map(|(first, last)| (first.0, last.0)),
            in_use: inspected.in_use,
        }
    }

    fn text(&self) -> String {
        let outcome = match self.problems {
            0 => "sound".to_owned(),
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        let journal = match self.records {
            None => "no journal".to_owned(),
            Some((first, last)) if first > last => "no records".to_owned(),
            Some((first, last)) => format!("records {first} to {last}"),
        };
        let open = if self.in_use { ", open in a server" } else { "" };
        format!("{outcome}: {} refs, {journal}{open}", self.refs)
    }
}
