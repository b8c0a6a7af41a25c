//! Judges what is known to be good, and what is known to be bad.
//!
//! ```text
//! zit-replay merges <repository> [--limit N] [--examples N]    two-sided merges of its history
//! zit-replay breaks <repository> [--pairs N]                   breaks made from its sources
//! ```
//!
//! Moves no ref of the repository; the trees of the merges that it tries stay as loose objects.
//!
//! Ends with 0, with 1 if a break was missed, with 2 on an error.

#![allow(clippy::print_stdout, reason = "a report goes to stdout")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "what is not told apart is not made, or shown as it is"
)]

mod breaks;
mod git;
mod merges;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Judge the history of a repository
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Judge merges that git makes by itself, and that were recorded as git makes them
    Merges {
        /// The repository, bare or not
        repository: PathBuf,
        /// How many merges to judge, the youngest first
        #[arg(long, default_value_t = usize::MAX)]
        limit: usize,
        /// How many refusals to show in full
        #[arg(long, default_value_t = 10)]
        examples: usize,
    },
    /// Make breaks from sources, and judge them
    Breaks {
        /// The repository, bare or not; its HEAD is what breaks are made from
        repository: PathBuf,
        /// How many pairs of each language, kind of declaration and alteration to make
        #[arg(long, default_value_t = 10)]
        pairs: usize,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.what {
        What::Merges { repository, limit, examples } => {
            merges::run(&repository, limit, examples).map(|()| true)
        }
        What::Breaks { repository, pairs } => breaks::run(&repository, pairs),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
