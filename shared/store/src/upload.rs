//! Packs for fetches: one request of the fetch protocol, answered by `git upload-pack`.
//!
//! [`PackSource`] is the door behind which other engines can stand. A [`PackStream`] is used from two threads, or the
//! request is written whole before the answer is read: a fetch request is bounded, an answer is not.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;

use zit_model::Namespace;

use crate::backlog::Backlog;
use crate::error::StoreError;
use crate::git::{Git, GitError, read_start, said};

/// The version of the fetch protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// Without a version.
    V0,
    /// As 0, announced.
    V1,
    /// Commands.
    V2,
}

/// Which half of a stateless exchange, or all of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The refs and capabilities that come before a request; nothing is read.
    Advertise,
    /// The answer to one request.
    Respond,
    /// An advertisement and whatever follows, until the client has what it wants: what git speaks over pipes.
    Converse,
}

/// Something that answers requests of the fetch protocol.
pub trait PackSource {
    /// Begins one exchange.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be begun.
    fn start(&self, version: ProtocolVersion, exchange: Exchange)
    -> Result<PackStream, StoreError>;
}

/// Stock git's `upload-pack`, one process per request.
pub struct UploadPack {
    git_dir: PathBuf,
    backlog: Option<Arc<Backlog>>,
    namespace: Option<Namespace>,
}

/// One exchange under way: the request goes in, the answer is read. Dropping it ends the program.
pub struct PackStream {
    /// Which program of git's it is.
    program: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl UploadPack {
    pub(crate) fn new(git_dir: PathBuf, backlog: Option<Arc<Backlog>>) -> Self {
        Self { git_dir, backlog, namespace: None }
    }

    /// The same, for those who see a namespace alone.
    #[must_use]
    pub fn of(self, namespace: Option<&Namespace>) -> Self {
        Self { namespace: namespace.cloned(), ..self }
    }
}

impl PackSource for UploadPack {
    fn start(
        &self,
        version: ProtocolVersion,
        exchange: Exchange,
    ) -> Result<PackStream, StoreError> {
        // The program sees files only.
        if let Some(backlog) = &self.backlog {
            backlog.show()?;
        }
        // Whoever serves a repository has decided to trust it, whoever owns its files.
        let program = "upload-pack";
        let mut git = Git::at(&self.git_dir, &["safe.directory=*"], program).arg("--strict");
        if let Some(namespace) = &self.namespace {
            git = git.env("GIT_NAMESPACE", namespace.as_str());
        }
        git = match version {
            ProtocolVersion::V0 => git,
            ProtocolVersion::V1 => git.env("GIT_PROTOCOL", "version=1"),
            ProtocolVersion::V2 => git.env("GIT_PROTOCOL", "version=2"),
        };
        git = match exchange {
            Exchange::Advertise => git.args(["--stateless-rpc", "--http-backend-info-refs"]),
            Exchange::Respond => git.arg("--stateless-rpc"),
            Exchange::Converse => git,
        };
        Ok(PackStream::of(program, git.arg("--").arg(&self.git_dir).spawn()?))
    }
}

impl PackStream {
    /// Stock git's `upload-archive`, for one request.
    pub(crate) fn archive(git_dir: &Path) -> Result<Self, StoreError> {
        let program = "upload-archive";
        let git = Git::at(git_dir, &["safe.directory=*"], program);
        Ok(Self::of(program, git.arg(git_dir).spawn()?))
    }

    fn of(program: &'static str, mut child: Child) -> Self {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Self { program, child, stdin, stdout, stderr }
    }

    /// Where the request goes. Drop it to end the request. `None` the second time.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Waits for the end, once the answer has been read.
    ///
    /// # Errors
    /// [`StoreError::Git`] with what git said when it failed.
    pub fn finish(mut self) -> Result<(), StoreError> {
        drop((self.stdin.take(), self.stdout.take()));
        let command = || self.program.to_owned();
        let lost = |source| GitError::Pipe { command: command(), source };
        let stderr = read_start(self.stderr.take()).map_err(lost)?;
        let status = self.child.wait().map_err(lost)?;
        if status.success() {
            return Ok(());
        }
        Err(GitError::Failed { command: command(), status, said: said(&stderr) }.into())
    }
}

impl Read for PackStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stdout {
            Some(stdout) => stdout.read(buffer),
            None => Ok(0),
        }
    }
}

impl Drop for PackStream {
    fn drop(&mut self) {
        // An exchange that is over has nothing to kill; one that is not must not outlive its request.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
