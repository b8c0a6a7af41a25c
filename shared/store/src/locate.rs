//! Where a repository lies, whose it is, and whether it can be served: all that is known before it is opened.
//!
//! A new one is made by [`Store::init`]. Nothing here opens refs or objects, or keeps what it found.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::Store;
use crate::alternates;
use crate::config::Format;
use crate::config_file::ConfigFile;
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::git::{self, Git};
use crate::refs::Storage;

/// What a new repository's configuration holds beyond git's own.
const NEW_CONFIG: &str = "\
[receive]
\tadvertisePushOptions = true
[transfer]
\tfsckObjects = true
[uploadpack]
\tallowFilter = true
";

/// The first git that reads and writes reftables. Source: its release notes.
const REFTABLE_GIT: (u32, u32) = (2, 45);

impl Store {
    /// Creates a bare repository with the branch `main` to come.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`] when there is something at the path; [`StoreError`] when git or the file system refuses.
    pub fn init(path: &Path) -> Result<(), StoreError> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(StoreError::NotEmpty(path.to_owned()));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).doing("create", path),
        }
        Git::anywhere("init")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["--bare", "--quiet", "--initial-branch=main", "--template=", "--"])
            .arg(path)
            .output()?;
        let config = path.join("config");
        let mut file = OpenOptions::new().append(true).open(&config).doing("open", &config)?;
        file.write_all(NEW_CONFIG.as_bytes()).doing("write", &config)?;
        file.sync_all().doing("flush", &config)?;
        fsio::sync(path)
    }

    /// Checks that the repository at `git_dir` may be trusted, as git does: that it belongs to this user, or that the
    /// user's `safe.directory` names it. A repository's own configuration and hooks can run programs.
    ///
    /// # Errors
    /// [`StoreError::NotOurs`] when it may not; [`StoreError`] when it cannot be looked at.
    pub fn check_owner(git_dir: &Path) -> Result<(), StoreError> {
        let owner = fs::metadata(git_dir).doing("look at", git_dir)?.uid();
        if owner == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Git::anywhere("rev-parse")
            .folder(git_dir)
            .args(["--git-dir"])
            .output()
            .map(drop)
            .map_err(|_| StoreError::NotOurs(git_dir.to_owned()))
    }
}

/// The path of a bare repository, made absolute.
pub(crate) fn bare(path: &Path) -> Result<PathBuf, StoreError> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) if fsio::is_absent(&error) => {
            return Err(StoreError::NotARepository(path.to_owned()));
        }
        Err(error) => return Err(error).doing("look at", path),
    };
    if path.join(".git").exists() {
        return Err(StoreError::NotBare(path));
    }
    let is_one = path.join("HEAD").is_file()
        && path.join("objects").is_dir()
        && path.join("refs").is_dir()
        && path.join("config").is_file();
    if is_one { Ok(path) } else { Err(StoreError::NotARepository(path)) }
}

/// Asks git for the git directory and the common one, with the user's own configuration: it refuses a folder that
/// belongs to somebody else.
pub(crate) fn discover(path: &Path) -> Result<(PathBuf, PathBuf), StoreError> {
    let none = || StoreError::NotARepository(path.to_owned());
    if !path.is_dir() {
        return Err(none());
    }
    let output = Git::anywhere("rev-parse")
        .folder(path)
        .args(["--path-format=absolute", "--git-dir", "--git-common-dir"])
        .output()
        .map_err(|error| {
            tracing::debug!(path = %path.display(), %error, "git found no repository");
            unreadable(path).unwrap_or_else(none)
        })?;
    let mut lines =
        output.lines().map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
    lines.next().zip(lines.next()).ok_or_else(none)
}

/// Why git does not take what lies here for a repository, where its format is the reason.
fn unreadable(path: &Path) -> Option<StoreError> {
    let folders = [path.to_owned(), path.join(".git")];
    let git_dir = folders.into_iter().find(|folder| folder.join("config").is_file())?;
    match formats(&ConfigFile::new(git_dir.clone(), git_dir.clone()), &git_dir) {
        Err(error @ StoreError::Unsupported { .. }) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

/// Which hash names the objects, and how the refs are stored.
pub(crate) fn formats(
    config: &ConfigFile,
    path: &Path,
) -> Result<(gix_hash::Kind, Storage), StoreError> {
    let format = Format::of(&config.parse()?);
    let unsupported = |what: String| StoreError::Unsupported { path: path.to_owned(), what };
    let storage = match format.ref_storage.as_deref() {
        None | Some("files") => Storage::Files,
        Some("reftable") => {
            check_version().map_err(unsupported)?;
            Storage::Reftable
        }
        Some(other) => {
            let what = format!("its refs are stored as {other:?}, not as files or a reftable");
            return Err(unsupported(what));
        }
    };
    if let Some(version) = format.version {
        return Err(unsupported(format!("its format is version {version}")));
    }
    if let Some(extension) = format.extension {
        return Err(unsupported(format!("it needs the extension {extension:?}")));
    }
    match format.hash.as_deref() {
        None | Some("sha1") => Ok((gix_hash::Kind::Sha1, storage)),
        Some("sha256") => Ok((gix_hash::Kind::Sha256, storage)),
        Some(other) => Err(unsupported(format!("its object format is {other:?}"))),
    }
}

/// Refuses objects that are borrowed in a way that would not be seen here.
pub(crate) fn check_alternates(common_dir: &Path) -> Result<(), StoreError> {
    let Some(folder) = alternates::unseen(&common_dir.join("objects")) else { return Ok(()) };
    let path = common_dir.to_owned();
    let what =
        format!("it borrows objects from {} by a path that is relative twice", folder.display());
    Err(StoreError::Unsupported { path, what })
}

/// Whether the git here can read a reftable; if not, what to say.
fn check_version() -> Result<(), String> {
    let needed = |found: &str| {
        let (major, minor) = REFTABLE_GIT;
        format!(
            "its refs are a reftable, which needs git {major}.{minor} or newer; here is {found}"
        )
    };
    match git::version() {
        Some(version) if version >= REFTABLE_GIT => Ok(()),
        Some((major, minor)) => Err(needed(&format!("git {major}.{minor}"))),
        None => Err(needed("none that tells its version")),
    }
}
