//! A repository on this machine, without a server in between: who referees it is found out, not configured.
//!
//! [`open`] resolves a path as git does and gives a [`Way`]: through the socket of a server that has the repository
//! open, or by a referee in this process, or, for a fetch, by reading it. A referee of another process is waited for,
//! for [`PATIENCE`] at most: without a server nobody holds the lock longer than it takes to judge one push.
//!
//! Never opens a repository of another user's that git would not open.

mod push;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access as Mode, access};
use rustix::process::geteuid;
use zit_referee::{RefereeError, Repository};
use zit_store::{Access, Account, Store, StoreError};
use zit_wire::service::Service;

use crate::hello::Hello;
use crate::socket;

/// How long another referee is waited for.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The shortest and the longest pause between two looks at the lock, in milliseconds. Chosen at random between them, so
/// that those who wait do not all look at once.
const PAUSE: std::ops::Range<u64> = 2..20;

/// What may follow a path to make a git directory, in the order tried. Source: git's `path.c`, `enter_repo`.
pub const SUFFIXES: [&str; 4] = ["/.git", "", ".git/.git", ".git"];

/// Why a repository cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// There is none, it may not be opened, or it does not open.
    #[error(transparent)]
    Referee(#[from] RefereeError),
    /// Only its owner can push to it.
    #[error("cannot push to {}: this user may not write to it", path.display())]
    Unwritable {
        /// The git directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its owner is to be its referee, or somebody else is already.
    #[error("cannot push to {}: it belongs to another user", .0.display())]
    OthersRepository(PathBuf),
    /// A server of another user's is its referee.
    #[error("cannot push to {}: the server of another user has it open", .0.display())]
    OthersServer(PathBuf),
    /// Another referee holds it.
    #[error("{} has been in use for {} seconds", .0.display(), PATIENCE.as_secs())]
    Busy(PathBuf),
    /// The socket does not answer.
    #[error("cannot reach the server that has {} open", path.display())]
    Socket {
        /// The git directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LocalError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Referee(error) => error.hint(),
            Self::OthersRepository(_) => Some("push to a server of its owner's by its address"),
            Self::OthersServer(_) => Some("push to that server by its address"),
            Self::Busy(_) => Some("another push is still at work there; try again"),
            Self::Unwritable { .. } => Some("ask its owner, or push to its server by address"),
            Self::Socket { .. } => Some("try again once it answers, or push to it by address"),
        }
    }
}

impl From<StoreError> for LocalError {
    fn from(error: StoreError) -> Self {
        Self::Referee(error.into())
    }
}

/// How a conversation about a repository is to be held.
pub enum Way {
    /// A running server does.
    Server {
        /// The git directory.
        git_dir: PathBuf,
        /// The way to the server.
        stream: UnixStream,
    },
    /// This process does, as the repository's referee.
    Referee(Box<Referee>),
    /// This process does, by reading.
    Reader(Box<Store>),
}

/// The referee of a push, and where it is found again.
pub struct Referee {
    git_dir: PathBuf,
    repository: Repository,
}

/// Finds the repository at `path`, and how to do there what `service` does.
///
/// # Errors
/// [`LocalError`] when there is no way.
pub fn open(path: &Path, service: Service) -> Result<Way, LocalError> {
    let git_dir = enter(path).ok_or_else(|| StoreError::NotARepository(path.to_owned()))?;
    Store::check_owner(&git_dir)?;
    match service {
        Service::UploadPack => reader(&git_dir),
        Service::ReceivePack => Ok(match referee(&git_dir)? {
            Turn::Server(stream) => Way::Server { git_dir, stream },
            Turn::Ours(repository) => {
                Way::Referee(Box::new(Referee { git_dir, repository: *repository }))
            }
        }),
    }
}

impl Way {
    /// Holds the conversation that `hello` begins. Blocks until it is over.
    pub fn serve(self, hello: &Hello, input: Box<dyn Read + Send>, output: &mut dyn Write) {
        match self {
            Self::Server { git_dir, stream } => {
                forward(&stream, &signed(hello, &git_dir), input, output);
            }
            Self::Reader(store) => hello.fetch(&*store, input, output),
            Self::Referee(referee) => {
                let hello = signed(hello, &referee.git_dir);
                push::serve(*referee, &hello, input, output);
            }
        }
    }
}

/// With the user of this process, who is named as the one that pushes.
fn signed(hello: &Hello, git_dir: &Path) -> Hello {
    let account = match hello.service {
        Service::UploadPack => None,
        Service::ReceivePack => Account::of_process(git_dir),
    };
    Hello { account, ..hello.clone() }
}

/// Opens the repository at `git_dir` with `open` once no other referee has it open.
///
/// # Errors
/// Whatever `open` says, and [`StoreError::InUse`] when another referee has held it for `patience`.
pub fn open_waiting(
    patience: Duration,
    open: impl Fn() -> Result<Repository, RefereeError>,
) -> Result<Repository, RefereeError> {
    let deadline = Instant::now() + patience;
    loop {
        match open() {
            Err(RefereeError::Store(StoreError::InUse(_))) if Instant::now() < deadline => pause(),
            opened => return opened,
        }
    }
}

/// Source: git's `path.c`, `enter_repo`, and `setup.c`, `is_git_directory`.
fn enter(path: &Path) -> Option<PathBuf> {
    let candidates = SUFFIXES.map(|suffix| {
        let mut candidate = OsString::from(path);
        candidate.push(suffix);
        PathBuf::from(candidate)
    });
    let is_git_dir = |path: &PathBuf| {
        path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
    };
    candidates.iter().find(|path| is_git_dir(path)).and_then(|path| path.canonicalize().ok())
}

/// A way to fetch: it needs no lock, but what a crash left is finished first if nobody has it.
fn reader(git_dir: &Path) -> Result<Way, LocalError> {
    match socket::connect(git_dir) {
        Ok(Some(stream)) => return Ok(Way::Server { git_dir: git_dir.to_owned(), stream }),
        Ok(None) => {}
        // Another user's server may be read beside.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(source) => return Err(LocalError::Socket { path: git_dir.to_owned(), source }),
    }
    // What another user's referees left is theirs to finish: a file of ours among theirs would keep them out.
    if owner(&git_dir.join("zit")) == Some(us()) {
        match Store::open(git_dir, Access::Referee) {
            Ok(recovered) => drop(recovered),
            Err(error) => tracing::debug!(%error, "read as it is"),
        }
    }
    Ok(Way::Reader(Box::new(Store::open(git_dir, Access::Fetch)?)))
}

/// Whose turn it is to referee.
enum Turn {
    Server(UnixStream),
    Ours(Box<Repository>),
}

/// A server that has the repository open, else a referee of our own as soon as nobody has it.
fn referee(git_dir: &Path) -> Result<Turn, LocalError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match socket::connect(git_dir) {
            Ok(Some(stream)) => return Ok(Turn::Server(stream)),
            Ok(None) if is_others(git_dir) => {
                return Err(LocalError::OthersRepository(git_dir.to_owned()));
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(LocalError::OthersServer(git_dir.to_owned()));
            }
            // As many wait to be taken as may; there is a place soon.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(source) => return Err(LocalError::Socket { path: git_dir.to_owned(), source }),
        }
        match Repository::open_embedded(git_dir) {
            Ok(repository) => return Ok(Turn::Ours(Box::new(repository))),
            Err(RefereeError::Store(StoreError::InUse(_))) => {}
            Err(RefereeError::Store(StoreError::Io { source, .. })) if is_unwritable(&source) => {
                return Err(LocalError::Unwritable { path: git_dir.to_owned(), source });
            }
            Err(error) => return Err(error.into()),
        }
        if Instant::now() > deadline {
            return Err(LocalError::Busy(git_dir.to_owned()));
        }
        pause();
    }
}

/// Whether this user could be the referee and must not: its files would keep the owner's referees out.
fn is_others(git_dir: &Path) -> bool {
    let theirs =
        owner(&git_dir.join("zit")).or_else(|| owner(git_dir)).is_some_and(|it| it != us());
    theirs && access(git_dir, Mode::WRITE_OK).is_ok()
}

/// The user whose folder it is, if there is one.
fn owner(folder: &Path) -> Option<u32> {
    fs::metadata(folder).ok().map(|found| found.uid())
}

fn us() -> u32 {
    geteuid().as_raw()
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn pause() {
    thread::sleep(Duration::from_millis(fastrand::u64(PAUSE)));
}

/// Passes the conversation on. What the server says is told as it is, also that it ends.
fn forward(
    server: &UnixStream,
    hello: &Hello,
    mut input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) {
    let begun = server.try_clone().and_then(|mut sending| {
        sending.write_all(&hello.encode())?;
        // Not waited for: it ends when the client closes its side, which may be later than the last answer.
        thread::spawn(move || {
            // A server that stops listening says why.
            let _ = io::copy(&mut input, &mut sending);
            sending.shutdown(Shutdown::Write)
        });
        copy(server, output)
    });
    if let Err(error) = begun {
        tracing::info!(%error, "conversation lost");
    }
}

/// Passes on what comes as soon as it comes.
fn copy(mut from: &UnixStream, to: &mut dyn Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                to.write_all(buffer.get(..n).unwrap_or_default())?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
