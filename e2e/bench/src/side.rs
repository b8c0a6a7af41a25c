//! The two servers that are compared, each with its own copy of the same repositories.
//!
//! A [`Side`] says where a repository is asked for and which processes serve it. They end when it is dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::cpu::Group;
use crate::options::SideName;
use crate::peer;
use crate::process::Program;

/// One running server.
#[derive(Debug)]
pub(crate) struct Side {
    name: SideName,
    address: SocketAddr,
    root: PathBuf,
    // Invariant: dropped before their group, which cannot be removed while they run.
    _programs: Vec<Program>,
    group: Group,
}

impl Side {
    /// Starts the server of `name` on a copy of `templates`, with its files in `dir`.
    ///
    /// # Errors
    /// When a program is missing or does not begin to serve.
    pub(crate) fn start(name: SideName, dir: &Path, templates: &Path, zit: &Path) -> Result<Self> {
        let root = dir.join("repositories");
        copy(templates, &root).context("cannot copy the repositories")?;
        let group = Group::new(&format!("{name:?}"));
        let (address, programs) = match name {
            SideName::Zit => start_zit(&group, zit, dir, &root)?,
            SideName::Peer => peer::start(&group, dir, &root)?,
        };
        Ok(Self { name, address, root, _programs: programs, group })
    }

    /// Which server it is.
    pub(crate) fn name(&self) -> SideName {
        self.name
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A repository's path in the URL of the client with this number, which is an agent of its own to zit.
    pub(crate) fn path(&self, client: usize, repository: &str) -> String {
        match self.name {
            SideName::Zit => format!("/@bench-{client}/{repository}"),
            SideName::Peer => format!("/{repository}"),
        }
    }

    /// A repository's URL for git, as one client.
    pub(crate) fn url(&self, repository: &str) -> String {
        format!("http://{}{}", self.address, self.path(0, repository))
    }

    /// A repository's folder.
    pub(crate) fn folder(&self, repository: &str) -> PathBuf {
        self.root.join(repository)
    }

    /// The group of all processes that serve.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }
}

fn start_zit(
    group: &Group,
    zit: &Path,
    dir: &Path,
    root: &Path,
) -> Result<(SocketAddr, Vec<Program>)> {
    let log = fs::File::create(dir.join("log"))?;
    let mut command = group.command(zit, dir);
    command.args(["--log", "warn", "serve", "--listen", "127.0.0.1:0", "--root"]).arg(root);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut server = Program::start(&mut command, Signal::TERM)?;
    let stdout = server.child().stdout.take().context("zit-server has no standard output")?;
    let mut line = String::new();
    // It prints this one line and nothing after it, so its output can be closed.
    BufReader::new(stdout).read_line(&mut line)?;
    let address = line.trim_end().strip_prefix("listening on http://");
    let address = address.and_then(|address| address.parse().ok());
    let address = address.with_context(|| format!("zit-server does not serve: {line:?}"))?;
    Ok((address, vec![server]))
}

/// Copies a folder with everything below it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
