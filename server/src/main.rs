//! `zit-server`: a git remote that referees, over smart HTTP.
//!
//! Reads the command line and hands each command to its module: [`serve`] for the server itself, [`stdio`] for one
//! conversation over its streams, the store for `init`.
//! Exit codes: 0 done, 1 where the answer is no, 2 error. Errors go to standard error as an `error:` line and, where there is a next step, a
//! `hint:` line. Standard output carries what a script waits for, and nothing else.
//!
//! Never judges anything: what a push may do is decided behind one door, `zit_referee::Repository`.

mod check;
mod cli;
mod config;
mod connection;
mod demo;
mod forced;
mod http;
mod log;
mod maintenance;
mod registry;
mod serve;
mod socket;
mod stdio;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use zit_model::failure;

use crate::cli::{Cli, Command};
use crate::config::{Config, ConfigError};
use crate::demo::DemoError;
use crate::serve::ServeError;
use crate::stdio::StdioError;

/// The exit code of an error.
pub(crate) const ERROR: u8 = 2;

/// The exit code of a command whose answer is no.
const NO: u8 = 1;

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Store(#[from] zit_store::StoreError),
    #[error(transparent)]
    Stdio(#[from] StdioError),
    #[error(transparent)]
    Demo(#[from] DemoError),
    #[error(transparent)]
    Check(#[from] check::CheckError),
    #[error(transparent)]
    Log(#[from] log::LogError),
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl Failure {
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Config(error) => Some(error.hint()),
            Self::Serve(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Demo(error) => error.hint(),
            Self::Check(error) => error.hint(),
            Self::Log(error) => error.hint(),
            Self::Stdio(_) | Self::Output(_) => None,
        }
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure, failure.hint());
            ExitCode::from(ERROR)
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    config::start_log(cli.log_filter())?;
    match &cli.command {
        Command::Serve(args) => serve::serve(&Config::check(args)?)?,
        Command::Log(args) => log::run(args, &mut io::BufWriter::new(io::stdout().lock()))?,
        Command::Check(args) => {
            let sound = check::run(args, &mut io::BufWriter::new(io::stdout().lock()))?;
            return Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(NO) });
        }
        Command::Stdio(args) => return Ok(stdio::run(args)?),
        Command::Demo(options) => demo::run(options)?,
        Command::Init { path } => {
            zit_store::Store::init(path)?;
            say(&format!("initialized empty repository in {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{line}").map_err(Failure::Output)
}

/// Says what went wrong and why on one line, and what to do on the next.
fn complain(error: &dyn Error, hint: Option<&str>) {
    eprintln!("error: {}", failure::chain(error));
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}
