//! One transaction of `git update-ref --stdin`: prepared, which locks and verifies, and then committed or dropped.
//!
//! The refs of a reftable are written in no other way. While a transaction is prepared, git holds `tables.list.lock`, so
//! that nobody moves any ref. The program gives up and unlocks as soon as this process is gone, and finishes what it was
//! told to commit.
//!
//! After a power failure its lock may stay. So that the next opening knows it, the lock is linked to a file of a folder of
//! ours, `tables-<boot>`, until it is gone.
//!
//! Every table is flushed before the list names it: a torn one would take all refs with it, not only those that moved.
//!
//! Source: git-update-ref(1).

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Duration;

use bstr::ByteSlice;
use tempfile::TempDir;
use zit_model::{Oid, RefName, RefUpdate};

use crate::boot::boot_id;
use crate::error::StoreError;
use crate::fsio;
use crate::git::{Git, GitError, read_start, said};
use crate::reflog::LogEntry;

const NAME: &str = "update-ref";

/// How the names of the files begin that our locks are linked to.
pub(crate) const MARK: &str = "tables-";

/// How refs of a reftable are written.
pub(crate) const SETTINGS: [&str; 3] = [
    // The hook is the referee's to run.
    "core.hooksPath=/dev/null",
    "core.fsync=reference",
    "core.fsyncMethod=fsync",
];

/// What a transaction needs to know of its repository.
pub(crate) struct Plan<'a> {
    pub(crate) git_dir: &'a Path,
    /// The list of tables, which git locks.
    pub(crate) tables: PathBuf,
    /// Where the lock is linked to.
    pub(crate) folder: &'a Path,
    pub(crate) kind: gix_hash::Kind,
    /// How long another writer is waited for.
    pub(crate) wait: Duration,
    /// What the logs of refs shall say.
    pub(crate) log: Option<&'a LogEntry>,
    /// Objects that are in no file of the repository yet.
    pub(crate) objects: Option<TempDir>,
}

/// What one ref shall hold, and what it must hold before.
pub(crate) struct Change<'a> {
    pub(crate) name: &'a RefName,
    pub(crate) old: Expected,
    pub(crate) new: Option<Oid>,
}

/// What a ref must hold.
pub(crate) enum Expected {
    Anything,
    Exactly(Option<Oid>),
}

impl<'a> From<&'a RefUpdate> for Change<'a> {
    fn from(update: &'a RefUpdate) -> Self {
        let RefUpdate { name, change } = update;
        Self { name, old: Expected::Exactly(change.old_value()), new: change.new_value() }
    }
}

/// A transaction that holds the lock and whose every old value was found. Dropping it undoes everything.
#[must_use = "dropping a prepared transaction undoes it"]
pub(crate) struct UpdateRef {
    running: Running,
    // In the order of dropping: the lock is gone before its mark is.
    _mark: Mark,
    /// What the program may still read.
    _objects: Option<TempDir>,
}

impl UpdateRef {
    /// Locks, and verifies the old values.
    ///
    /// # Errors
    /// [`GitError::Failed`] when the lock is not to be had, or something is not as expected; its words do not tell which.
    pub(crate) fn prepare<'c>(
        plan: Plan<'_>,
        changes: impl IntoIterator<Item = Change<'c>>,
    ) -> Result<Self, GitError> {
        let mut running = Running::start(&plan)?;
        let mut input = b"start\0".to_vec();
        let null = plan.kind.null().to_string();
        for Change { name, old, new } in changes {
            let hex = |oid: Option<Oid>| oid.map_or_else(|| null.clone(), |oid| oid.to_string());
            let old = match old {
                Expected::Anything => String::new(),
                Expected::Exactly(old) => hex(old),
            };
            input.extend_from_slice(b"update ");
            input.extend_from_slice(name.as_bstr());
            input.extend_from_slice(format!("\0{}\0{old}\0", hex(new)).as_bytes());
        }
        input.extend_from_slice(b"prepare\0");
        running.tell(&input)?;
        running.expect("start: ok")?;
        running.expect("prepare: ok")?;
        let mark = Mark::link(&plan);
        Ok(Self { running, _mark: mark, _objects: plan.objects })
    }

    /// Tells git to commit. Nothing stops it from now on.
    pub(crate) fn commit(&mut self) -> Result<(), GitError> {
        self.running.tell(b"commit\0")
    }

    /// Waits until it has.
    ///
    /// # Errors
    /// [`GitError`] when it has not.
    pub(crate) fn finish(mut self) -> Result<(), GitError> {
        self.running.expect("commit: ok")?;
        self.running.end()
    }
}

/// The program.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    fn start(plan: &Plan<'_>) -> Result<Self, GitError> {
        let wait = format!("reftable.lockTimeout={}", plan.wait.as_millis());
        let mut settings = SETTINGS.to_vec();
        settings.push(&wait);
        if plan.log.is_none() {
            settings.push("core.logAllRefUpdates=false");
        }
        let mut git = Git::at(plan.git_dir, &settings, NAME).args(["--stdin", "-z", "--no-deref"]);
        if let Some(log) = plan.log {
            git = log.sign(git).arg("-m").arg(&log.message);
        }
        if let Some(objects) = &plan.objects {
            git = git.borrowing(objects.path());
        }
        let mut child = git.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Self { child, stdin, stdout })
    }

    fn tell(&mut self, words: &[u8]) -> Result<(), GitError> {
        let told = match &mut self.stdin {
            Some(stdin) => stdin.write_all(words).and_then(|()| stdin.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match told {
            // It has ended, and says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(self.failure()),
            told => told.map_err(lost),
        }
    }

    fn expect(&mut self, answer: &str) -> Result<(), GitError> {
        let mut line = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_line(&mut line).map_err(lost)?;
        }
        if line.trim_end() == answer { Ok(()) } else { Err(self.failure()) }
    }

    /// Waits for the end of a program that has done its work.
    fn end(&mut self) -> Result<(), GitError> {
        self.stdin = None;
        let said = read_start(self.child.stderr.take()).map_err(lost)?;
        if !said.is_empty() {
            tracing::debug!(said = %said.as_bstr(), "git update-ref committed");
        }
        self.child.wait().map(drop).map_err(lost)
    }

    /// Why it has ended.
    fn failure(&mut self) -> GitError {
        self.stdin = None;
        let ended = read_start(self.child.stderr.take())
            .and_then(|stderr| self.child.wait().map(|status| (stderr, status)));
        match ended {
            Ok((stderr, status)) => {
                GitError::Failed { command: NAME.to_owned(), status, said: said(&stderr) }
            }
            Err(error) => lost(error),
        }
    }
}

fn lost(source: io::Error) -> GitError {
    GitError::Pipe { command: NAME.to_owned(), source }
}

impl Drop for Running {
    /// Without a word more, git gives up.
    fn drop(&mut self) {
        self.stdin = None;
        self.stdout = None;
        if let Err(error) = self.child.wait() {
            tracing::warn!(%error, "git update-ref may still be running");
        }
    }
}

/// The file that the lock is linked to.
struct Mark(Option<PathBuf>);

impl Mark {
    /// Where files cannot be linked, a power failure leaves a lock for the administrator.
    fn link(plan: &Plan<'_>) -> Self {
        let boot = boot_id().unwrap_or_default();
        let path = plan.folder.join(format!("{MARK}{boot}"));
        let linked = fsio::remove_file(&path)
            .and_then(|()| {
                let lock = crate::tx::lock_path(&plan.tables);
                let linked = fs::hard_link(&lock, &path);
                linked.map_err(|source| StoreError::Io { doing: "link", path: lock, source })
            })
            .inspect_err(|error| tracing::debug!(%error, "a lock of git's has no mark"));
        Self(linked.is_ok().then_some(path))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = fsio::remove_file(&path)
        {
            tracing::warn!(%error, "a file stays until the repository is opened again");
        }
    }
}

/// Whether a file is a mark that was made since the machine was started.
pub(crate) fn is_of_this_boot(mark: &Path) -> bool {
    let name = mark.file_name().unwrap_or_default().as_encoded_bytes();
    let boot = name.strip_prefix(MARK.as_bytes());
    boot.zip(boot_id()).is_some_and(|(boot, now)| boot.as_bstr() == now.as_str())
}
