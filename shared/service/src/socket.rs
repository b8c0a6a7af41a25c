//! The socket `zit/socket` of a repository, on which a running server takes the conversations of other programs.
//!
//! It exists while its listener's process holds the repository's lock. One that a killed server left behind is refused
//! by the system and replaced by the next server. Its mode lets in its owner alone; whoever listens checks the peer's
//! user id besides.
//!
//! A socket's name has at most 107 bytes; a longer path goes through `/proc/self/fd`.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest name of a socket, in bytes. Source: unix(7), `sun_path`, less its NUL.
const MAX_NAME: usize = 107;

/// How the folder begins in which a socket is made.
const SCRATCH: &str = "socket-";

/// A listener, and the name it is found by.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

/// The place where the socket of the repository at `git_dir` is found.
#[must_use]
pub fn path(git_dir: &Path) -> PathBuf {
    git_dir.join("zit").join("socket")
}

impl Socket {
    /// Listens for conversations about the repository at `git_dir`, whose lock this process holds.
    ///
    /// # Errors
    /// As the file system says.
    pub fn bind(git_dir: &Path) -> io::Result<Self> {
        let path = path(git_dir);
        let folder = git_dir.join("zit");
        remove_scratch(&folder)?;
        // Made where nobody else can look, so that it never has another mode under its own name.
        let scratch = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&folder)?;
        let made = scratch.path().join("s");
        let listener = at(&made, |name| UnixListener::bind(name))?;
        fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        fs::rename(&made, &path)?;
        Ok(Self { path, listener })
    }

    /// The listener. Blocks, until it is told otherwise.
    ///
    /// # Errors
    /// When the process has no room for another file.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

/// The name goes; conversations under way go on.
impl Drop for Socket {
    fn drop(&mut self) {
        // One that stays is refused by the system.
        let _ = fs::remove_file(&self.path);
    }
}

/// Connects to whoever listens for the repository at `git_dir`; `None` when nobody does.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] when another user does; otherwise as the system says.
pub fn connect(git_dir: &Path) -> io::Result<Option<UnixStream>> {
    match at(&path(git_dir), |name| UnixStream::connect(name)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_nobody(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::ConnectionRefused];
    kinds.contains(&error.kind())
}

/// Gives `path` to `call`, by way of its folder's descriptor if it is too long for a socket.
fn at<T>(path: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().as_bytes().len() <= MAX_NAME {
        return call(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return call(path) };
    let folder = File::open(folder)?;
    call(&PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
}

/// Removes what a server that was killed while it made its socket left behind.
fn remove_scratch(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(SCRATCH.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    fn git_dir(name: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let git_dir = dir.path().join(name);
        fs::create_dir_all(git_dir.join("zit")).unwrap();
        (dir, git_dir)
    }

    #[test]
    fn a_client_reaches_the_listener_also_where_the_path_is_long() {
        for name in ["r.git".to_owned(), "x".repeat(200)] {
            let (_dir, git_dir) = git_dir(&name);
            let socket = Socket::bind(&git_dir).unwrap();
            let mode = fs::metadata(path(&git_dir)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let mut client = connect(&git_dir).unwrap().unwrap();
            client.write_all(b"hello").unwrap();
            drop(client);
            let mut text = String::new();
            socket.listener().unwrap().accept().unwrap().0.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello");
            drop(socket);
            assert_eq!(fs::read_dir(git_dir.join("zit")).unwrap().count(), 0);
            assert!(connect(&git_dir).unwrap().is_none());
        }
    }

    #[test]
    fn a_socket_that_a_killed_server_left_is_nobody_and_is_replaced() {
        let (_dir, git_dir) = git_dir("r.git");
        drop(UnixListener::bind(path(&git_dir)).unwrap());
        fs::create_dir(git_dir.join("zit/socket-left")).unwrap();
        assert!(fs::metadata(path(&git_dir)).unwrap().file_type().is_socket());
        assert!(connect(&git_dir).unwrap().is_none());
        let _socket = Socket::bind(&git_dir).unwrap();
        assert!(connect(&git_dir).unwrap().is_some());
        assert!(!git_dir.join("zit/socket-left").exists());
    }
}
