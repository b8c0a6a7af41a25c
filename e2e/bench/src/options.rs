//! The command line: each option once, with its default, unit and help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Measure zit-server beside git http-backend and print one table
#[derive(Debug, Parser)]
#[command(name = "zit-bench", version)]
pub(crate) struct Options {
    /// Measure each row for N seconds on each side
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// Measure these rows only, separated by commas
    #[arg(long, value_name = "ROWS", value_enum, value_delimiter = ',')]
    rows: Vec<Row>,

    /// Measure one side only
    #[arg(long, value_enum)]
    only: Option<SideName>,

    /// Clone a repository of about 300 MB instead of 30 MB
    #[arg(long)]
    pub(crate) full: bool,

    /// Let N claims be there before anything is measured; of the peer, N packed refs
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) claims: u64,

    /// Measure this zit-server instead of building one first
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) server: Option<PathBuf>,

    /// Keep the repositories below DIR; it must be on a real disk, because flushing is part of what is measured
    #[arg(long, value_name = "DIR", default_value = "target")]
    pub(crate) dir: PathBuf,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Row {
    /// List 100 refs among 10,000
    Poll,
    /// Take a claim that nobody has; the peer creates a ref
    Claim,
    /// Move one ref that everybody moves
    Move,
    /// Fetch one commit
    Fetch,
    /// Clone a repository
    Clone,
    /// Push a commit of 50 files
    #[value(name = "push-50")]
    PushFiles,
    /// Push 1,000 commits
    #[value(name = "push-1000")]
    PushCommits,
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideName {
    /// zit-server
    Zit,
    /// nginx, fcgiwrap and git http-backend
    Peer,
}

impl Options {
    /// How long each row is measured on each side.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The rows to measure, in the table's order.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let wanted = |row: &Row| self.rows.is_empty() || self.rows.contains(row);
        Row::value_variants().iter().copied().filter(wanted).collect()
    }

    /// Whether `side` is measured.
    pub(crate) fn measures(&self, side: SideName) -> bool {
        self.only.is_none_or(|only| only == side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_measured_in_the_tables_order_and_all_without_a_word() {
        let rows = |args: &[&str]| Options::parse_from([&["zit-bench"], args].concat()).rows();
        assert_eq!(rows(&["--rows", "push-50,poll"]), [Row::Poll, Row::PushFiles]);
        assert_eq!(rows(&[]), Row::value_variants());
    }
}
