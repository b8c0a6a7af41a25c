//! The files that make up a repository's own configuration: `config`, `config.worktree` where the repository has it
//! (`extensions.worktreeConfig`), and whatever both include.
//!
//! Nothing of the user's or the system's is read, and of the environment only `HOME`, for `~/` in an include, as by the git
//! programs that the store starts. The files are read again when one of them changes, appears or goes.
//!
//! Source: git-config(1), "Includes" and "Conditional includes".

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bstr::ByteSlice;
use gix_config::File;
use gix_config::file::{Metadata, includes, init};
use gix_config::path::interpolate;

use crate::config::{RepoConfig, interpret};
use crate::config_keys;
use crate::error::{Doing, StoreError};
use crate::fsio::Stamp;

/// The files, and what was last read from them.
pub(crate) struct ConfigFile {
    common_dir: PathBuf,
    git_dir: PathBuf,
    /// Never held while a file is looked at.
    read: RwLock<Option<Arc<Read>>>,
    /// Held by whoever reads the files again.
    reading: Mutex<()>,
}

/// What was read, and from what.
struct Read {
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    config: Arc<RepoConfig>,
    generation: u64,
}

impl ConfigFile {
    /// `common_dir` holds `config`; `git_dir`, which is another in a linked work tree, `config.worktree`.
    pub(crate) fn new(common_dir: PathBuf, git_dir: PathBuf) -> Self {
        Self { common_dir, git_dir, read: RwLock::default(), reading: Mutex::default() }
    }

    /// The configuration as it is now.
    pub(crate) fn current(&self) -> Result<Arc<RepoConfig>, StoreError> {
        Ok(Arc::clone(&self.read()?.config))
    }

    /// The configuration, if a few stats tell that it is as it was read; `None` where it would have to be read, or cannot
    /// be looked at.
    pub(crate) fn known(&self) -> Option<Arc<RepoConfig>> {
        let read = self.last_read()?;
        read.is_current().is_ok_and(|is_current| is_current).then(|| Arc::clone(&read.config))
    }

    /// A number that is another one after each change.
    pub(crate) fn generation(&self) -> Result<u64, StoreError> {
        Ok(self.read()?.generation)
    }

    /// Everything that is set, as it is now.
    pub(crate) fn parse(&self) -> Result<File, StoreError> {
        let config = self.common_dir.join("config");
        let mut file = self.parse_one(&config)?;
        if file.boolean("extensions.worktreeConfig").ok().flatten() == Some(true) {
            let path = self.git_dir.join("config.worktree");
            if path.is_file() {
                let damaged = |why: String| StoreError::Damaged { path: path.clone(), why };
                let more = self.parse_one(&path)?;
                file.append(more).map_err(|error| damaged(error.to_string()))?;
            }
        }
        Ok(file)
    }

    fn read(&self) -> Result<Arc<Read>, StoreError> {
        if let Some(read) = self.current_read()? {
            return Ok(read);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever was before may have read it.
        if let Some(read) = self.current_read()? {
            return Ok(read);
        }
        // What is read must not be younger than its stamps: a first reading only tells which files there are.
        let paths = self.files(&self.parse()?);
        let stamps = paths
            .into_iter()
            .map(|path| Stamp::of(&path).map(|stamp| (path, stamp)))
            .collect::<Result<Vec<_>, _>>()?;
        let file = self.parse()?;
        config_keys::report(&file, &self.common_dir);
        let config = Arc::new(interpret(&file, &self.common_dir));
        let generation = self.last_read().map_or(0, |read| read.generation + 1);
        let read = Arc::new(Read { stamps, config, generation });
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    /// What was last read, if it is so still.
    fn current_read(&self) -> Result<Option<Arc<Read>>, StoreError> {
        match self.last_read() {
            Some(read) if read.is_current()? => Ok(Some(read)),
            Some(_) | None => Ok(None),
        }
    }

    fn last_read(&self) -> Option<Arc<Read>> {
        self.read.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every file that has a say, also those that are not there yet.
    fn files(&self, file: &File) -> BTreeSet<PathBuf> {
        let mut paths =
            BTreeSet::from([self.common_dir.join("config"), self.git_dir.join("config.worktree")]);
        for section in file.sections() {
            let (name, from) = (section.header().name(), section.meta().path.as_deref());
            if name.eq_ignore_ascii_case(b"include") || name.eq_ignore_ascii_case(b"includeIf") {
                paths.extend(section.values("path").iter().filter_map(|path| target(path, from)));
                // Which branch HEAD names may decide.
                paths.insert(self.git_dir.join("HEAD"));
            }
            paths.extend(from.map(Path::to_owned));
        }
        paths
    }

    fn parse_one(&self, path: &Path) -> Result<File, StoreError> {
        let damaged = |why: String| StoreError::Damaged { path: path.to_owned(), why };
        let bytes = std::fs::read(path).doing("read", path)?;
        let meta = Metadata { path: Some(path.to_owned()), ..gix_config::Source::Local.into() };
        let mut file = File::from_bytes_no_includes(&bytes, meta, init::Options::default())
            .map_err(|error| damaged(error.to_string()))?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let head = std::fs::read(self.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.strip_prefix(b"ref:").map(ByteSlice::trim).unwrap_or_default();
        let branch = gix_ref::FullName::try_from(branch.as_bstr()).ok();
        let options = includes::Options::follow(
            interpolate::Context {
                home_dir: home.as_deref(),
                home_for_user: Some(interpolate::home_for_user),
                ..interpolate::Context::default()
            },
            includes::conditional::Context {
                git_dir: Some(&self.git_dir),
                branch_name: branch.as_ref().map(AsRef::as_ref),
            },
        );
        file.resolve_includes(init::Options { includes: options, ..init::Options::default() })
            .map_err(|error| damaged(format!("cannot follow its includes: {error}")))?;
        Ok(file)
    }
}

impl Read {
    fn is_current(&self) -> Result<bool, StoreError> {
        for (path, stamp) in &self.stamps {
            if Stamp::of(path)? != *stamp {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The file that a value of `include.path` in the file `from` names.
fn target(path: &[u8], from: Option<&Path>) -> Option<PathBuf> {
    match (path.strip_prefix(b"~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Some(PathBuf::from(home).join(OsStr::from_bytes(rest))),
        _ => Some(from?.parent()?.join(OsStr::from_bytes(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a configuration in it.
    fn repository(text: &str) -> (tempfile::TempDir, ConfigFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("config"), text).unwrap();
        std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        (folder, ConfigFile::new(path.clone(), path))
    }

    fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }

    const FILTER: &str = "[uploadpack]\nallowFilter = true\n";

    #[test]
    fn an_included_file_counts_from_when_it_appears_until_it_goes() {
        let (folder, config) = repository("[include]\npath = more\n");
        assert!(!config.current().unwrap().allow_filter);
        write(&folder, "more", FILTER);
        assert!(config.current().unwrap().allow_filter);
        std::fs::remove_file(folder.path().join("more")).unwrap();
        assert!(!config.current().unwrap().allow_filter);
        assert_eq!(config.generation().unwrap(), 2);
    }

    #[test]
    fn a_configuration_is_known_once_it_was_read_and_until_it_changes() {
        let (folder, config) = repository("");
        assert!(config.known().is_none());
        let read = config.current().unwrap();
        assert!(config.known().is_some_and(|known| Arc::ptr_eq(&known, &read)));
        write(&folder, "config", FILTER);
        assert!(config.known().is_none());
        config.current().unwrap();
        assert!(config.known().is_some_and(|known| known.allow_filter));
    }

    #[test]
    fn an_include_may_depend_on_the_branch_and_on_the_folder() {
        let (folder, config) = repository("[includeIf \"onbranch:work\"]\npath = more\n");
        write(&folder, "more", FILTER);
        assert!(!config.current().unwrap().allow_filter);
        write(&folder, "HEAD", "ref: refs/heads/work\n");
        assert!(config.current().unwrap().allow_filter);
        let path = folder.path().display();
        write(&folder, "config", &format!("[includeIf \"gitdir:{path}\"]\npath = more\n"));
        assert!(config.current().unwrap().allow_filter);
        write(&folder, "config", "[includeIf \"gitdir:/elsewhere/\"]\npath = more\n");
        assert!(!config.current().unwrap().allow_filter);
    }

    #[test]
    fn the_later_of_two_values_counts_across_files() {
        let (folder, config) =
            repository("[uploadpack]\nallowFilter = false\n[include]\npath = more\n");
        write(&folder, "more", FILTER);
        assert!(config.current().unwrap().allow_filter);
        write(&folder, "config", "[include]\npath = more\n[uploadpack]\nallowFilter = false\n");
        assert!(!config.current().unwrap().allow_filter);
    }

    #[test]
    fn the_configuration_of_the_work_tree_counts_where_there_is_one() {
        let (folder, config) = repository("");
        write(&folder, "config.worktree", FILTER);
        assert!(!config.current().unwrap().allow_filter);
        write(&folder, "config", "[extensions]\nworktreeConfig = true\n");
        assert!(config.current().unwrap().allow_filter);
    }

    #[test]
    fn includes_in_a_circle_are_an_error_as_in_git() {
        let (_folder, config) = repository("[include]\npath = config\n");
        assert!(matches!(config.current(), Err(StoreError::Damaged { .. })));
    }
}
