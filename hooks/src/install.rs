//! Puts the `reference-transaction` hook into a repository, in front of the user's own.
//!
//! The hook file is two lines of shell that start this program; what it decides is in [`crate::transaction`]. A hook
//! that was there before is kept beside it as `reference-transaction.user`. Nothing is ever overwritten but a hook
//! of our own.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bstr::ByteSlice;
use zit_model::quote;
use zit_store::{Access, Store, StoreError};

/// The file name of the hook, as git wants it.
const HOOK: &str = "reference-transaction";

/// The line by which a hook of ours is known.
const MARK: &str = "# Installed by zit-hook.";

/// Why the hook was not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The system does not say where this program is.
    #[error("cannot tell where this program is")]
    OwnPath(#[source] io::Error),
    /// The program's path cannot be written into a shell script.
    #[error("cannot write the path {0:?} into a hook")]
    ProgramPath(PathBuf),
    /// There is no repository to install into.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git does not say where the hooks are.
    #[error("cannot ask git where the hooks of {} are: {why}", repository.display())]
    HooksPath {
        /// The repository.
        repository: PathBuf,
        /// What git or the system said.
        why: String,
    },
    /// The hooks are shared with other repositories.
    #[error("the hooks folder {} is outside the repository", .0.display())]
    SharedHooks(PathBuf),
    /// The file system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The attempt, as a verb.
        doing: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Both a hook that is not ours and a kept one exist.
    #[error("both {HOOK} and {HOOK}.user exist in {}, and neither is zit's", .0.display())]
    TwoHooks(PathBuf),
}

impl InstallError {
    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ProgramPath(_) => Some("move zit-hook to a folder with a plain name"),
            Self::SharedHooks(_) => {
                Some("run `git config core.hooksPath hooks` in the repository, then try again")
            }
            Self::TwoHooks(_) => Some("join the two hooks in one file and remove the other"),
            Self::Store(error) => error.hint(),
            Self::OwnPath(_) | Self::HooksPath { .. } | Self::Io { .. } => None,
        }
    }
}

/// Installs the hook so that it starts `program`; the path of the hook.
///
/// # Errors
/// [`InstallError`]; nothing has changed then, except that a kept copy of the user's hook may have been made.
pub fn install(repository: &Path, program: &Path) -> Result<PathBuf, InstallError> {
    let store = Store::open(repository, Access::ReadOnly)?;
    let hooks = hooks_folder(&store)?;
    let script = script(program)?;
    let hook = hooks.join(HOOK);
    fs::create_dir_all(&hooks).doing("create", &hooks)?;
    match fs::read(&hook) {
        Ok(content) if is_ours(&content) => {}
        Ok(_) => keep_users_hook(&hooks, &hook)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).doing("read", &hook),
    }
    write_program(&hooks, &hook, &script)?;
    Ok(hook)
}

/// Whether a file exists and its owner, group or others may run it.
pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The folder that git takes this repository's hooks from.
fn hooks_folder(store: &Store) -> Result<PathBuf, InstallError> {
    let git_dir = store.common_dir();
    let failed = |why| InstallError::HooksPath { repository: git_dir.to_owned(), why };
    #[expect(clippy::disallowed_methods, reason = "core.hooksPath may stand in any of git's files")]
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(git_dir)
        .args(["rev-parse", "--path-format=absolute", "--git-path", "hooks"])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let path = output.stdout.trim_end_with(|c| c == '\n').to_path();
    match path {
        Ok(path) if output.status.success() && path.starts_with(git_dir) => Ok(path.to_owned()),
        Ok(path) if output.status.success() => Err(InstallError::SharedHooks(path.to_owned())),
        Ok(_) | Err(_) => Err(failed(quote::one_line(&output.stderr.to_str_lossy()))),
    }
}

fn script(program: &Path) -> Result<String, InstallError> {
    let unfit = || InstallError::ProgramPath(program.to_owned());
    let path =
        program.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(unfit)?;
    Ok(format!(
        "#!/bin/sh\n{MARK} The hook that was here before is {HOOK}.user and runs afterwards.\n\
         exec {} {HOOK} --then \"$0.user\" \"$@\"\n",
        quote::shell_word(path)
    ))
}

fn is_ours(content: &[u8]) -> bool {
    content.lines().nth(1).is_some_and(|line| line.starts_with(MARK.as_bytes()))
}

/// Gives the user's hook its second name; the first is taken over afterwards, so that a hook is in place all the time.
fn keep_users_hook(hooks: &Path, hook: &Path) -> Result<(), InstallError> {
    let kept = hooks.join(format!("{HOOK}.user"));
    match fs::hard_link(hook, &kept) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(InstallError::TwoHooks(hooks.to_owned()))
        }
        other => other.doing("keep", hook),
    }
}

fn write_program(folder: &Path, path: &Path, content: &str) -> Result<(), InstallError> {
    let mut file = tempfile::Builder::new()
        .prefix("zit-hook-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempfile_in(folder)
        .doing("create a file in", folder)?;
    file.write_all(content.as_bytes()).doing("write", file.path())?;
    file.persist(path).map_err(|error| error.error).doing("write", path)?;
    Ok(())
}

/// Names the attempt and the file of an I/O error.
trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, InstallError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, InstallError> {
        self.map_err(|source| InstallError::Io { doing, path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_program_is_one_word_of_the_shell() {
        let script = script(Path::new("/opt/my tools/zit-hook")).unwrap();
        assert!(script.ends_with(
            "exec '/opt/my tools/zit-hook' reference-transaction --then \"$0.user\" \"$@\"\n"
        ));
        assert!(is_ours(script.as_bytes()));
        assert!(super::script(Path::new("/opt/a\nb")).is_err());
    }

    #[test]
    fn only_a_script_with_our_mark_is_ours() {
        for content in [
            "",
            "#!/bin/sh\n",
            "# Installed by zit-hook.\n",
            "#!/bin/sh\n\n# Installed by zit-hook.\n",
        ] {
            assert!(!is_ours(content.as_bytes()), "{content:?}");
        }
    }
}
