//! `zit-bench`: zit-server beside `git http-backend`, in one table.
//!
//! `cargo run --release -p zit-bench` builds the server, makes the repositories, starts both servers, measures and
//! prints. `README.md` beside this crate says what each row is. It leaves nothing behind but the server's build.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use rustix::thread::CpuSet;

use crate::options::{Options, SideName};
use crate::side::Side;
use crate::table::Measured;

mod cpu;
mod history;
mod http;
mod load;
mod options;
mod peer;
mod pkt;
mod process;
mod rows;
mod side;
mod table;

/// How many processors servers and clients share.
const N_CPUS: usize = 2;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<()> {
    // Before the processors are shared, because it takes minutes.
    let server = options.server.clone().map_or_else(build_server, Ok)?;
    let n_cpus = pin()?;
    fs::create_dir_all(&options.dir)?;
    let dir = tempfile::Builder::new().prefix("zit-bench-").tempdir_in(&options.dir)?;
    let path = dir.path().canonicalize()?;
    let measured = measure(options, &path, &server)?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}\n\n{}", machine(&path, n_cpus)?, table::table(&measured, n_cpus))?;
    Ok(())
}

/// Measures row by row, both sides of one right after each other.
fn measure(options: &Options, dir: &Path, server: &Path) -> Result<Vec<Measured>> {
    let rows = options.rows();
    let (templates, client) = (dir.join("templates"), dir.join("client"));
    eprintln!("making repositories");
    rows::prepare(&rows, options.full, &templates, &client)?;
    fs::create_dir_all(&client)?;
    let mut sides = Vec::new();
    for &name in SideName::value_variants().iter().filter(|&&side| options.measures(side)) {
        let dir = dir.join(format!("{name:?}"));
        let side = Side::start(name, &dir, &templates, server)?;
        if options.claims > 0 {
            eprintln!("taking {} claims on {name:?}", options.claims);
            rows::take_claims(&side, options.claims)?;
        }
        sides.push(side);
    }
    let mut measured = Vec::new();
    for row in rows {
        let mut samples = Vec::new();
        for side in &sides {
            eprintln!("measuring {row:?} on {:?}", side.name());
            let sample = rows::measure(row, side, options.span(), &client)
                .with_context(|| format!("{row:?} on {:?}", side.name()))?;
            samples.push((side.name(), sample));
        }
        measured.push(Measured { row, samples });
    }
    Ok(measured)
}

/// Builds the server as it is released; where it is then.
fn build_server() -> Result<PathBuf> {
    eprintln!("building zit-server, unless it is built; --server names another");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Cargo needs the caller's environment: where its registry and its toolchains are.
    let mut command = process::command(cargo, &workspace);
    command.envs(env::vars_os()).current_dir(&workspace);
    command.args(["build", "--release", "-p", "zit-server"]);
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "zit-server was not built");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(workspace.join(target).join("release/zit-server"))
}

/// Keeps this process, and all that it starts from now on, on [`N_CPUS`] processors; on how many it is.
fn pin() -> Result<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).context("cannot ask for processors")?;
    let mut chosen = CpuSet::new();
    let free = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    free.take(N_CPUS).for_each(|cpu| chosen.set(cpu));
    rustix::thread::sched_setaffinity(None, &chosen).context("cannot choose processors")?;
    Ok(usize::try_from(chosen.count())?)
}

/// What the figures were measured on.
fn machine(dir: &Path, n_cpus: usize) -> Result<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name\t: "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let git = process::git(dir, ["--version"])?;
    let (model, kernel) = (model.unwrap_or("processor unknown"), kernel.trim());
    let build = if cfg!(debug_assertions) { "; the load generator is a debug build" } else { "" };
    Ok(format!("{n_cpus} x {model}, Linux {kernel}, {git}; {} clients{build}", rows::N_CLIENTS))
}
