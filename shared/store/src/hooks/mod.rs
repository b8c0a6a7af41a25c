//! The repository's server-side hooks: which there are, and running one the way `git receive-pack` does.
//!
//! [`Store::hooks`] finds the folder; [`Hooks::has`] costs one look at a file, and none where the folder is missing.
//! [`Hooks::run`] starts a hook in the git directory, feeds it, hands its words to an [`Audience`] as they come, and says
//! how it ended. It is killed with all its children when its time is up or its audience has gone.
//!
//! Nothing here knows when a hook is due or what its answer means: that is the referee's.
//!
//! Source: githooks(5), and git-receive-pack(1), "Pre-receive hook" and the sections after it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use zit_model::Oid;

use crate::error::StoreError;
use crate::git::Git;
use crate::program::{Audience, Heard, Input, Limits, ProgramEnd, Talk, run};
use crate::{Quarantine, Store};

/// How long a hook may run where `zit.hookTimeout` says nothing. Checks of a whole push take minutes, never an hour.
const TIMEOUT: Duration = Duration::from_mins(10);

/// How long `reference-transaction` may run: refs are locked meanwhile, and nobody else is judged.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The second line of a `reference-transaction` hook that zit has put in front of the user's own.
const INSTALLED: &[u8] = b"# Installed by zit-hook.";

/// How much of a hook is looked at for that line, in bytes.
const MAX_START: u64 = 256;

/// How often a client that hears nothing is told that work goes on. Source: git-config(1), `receive.keepAlive`.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A hook of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// Before anything is moved; refuses the push as a whole.
    PreReceive,
    /// After it; carries out what the configuration leaves to it.
    ProcReceive,
    /// Before one ref is moved; refuses that one.
    Update,
    /// While refs are locked, and once they have moved or have not.
    ReferenceTransaction,
    /// Once refs have moved.
    PostReceive,
    /// The same, told only the names.
    PostUpdate,
}

impl Hook {
    /// The name of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreReceive => "pre-receive",
            Self::ProcReceive => "proc-receive",
            Self::Update => "update",
            Self::ReferenceTransaction => "reference-transaction",
            Self::PostReceive => "post-receive",
            Self::PostUpdate => "post-update",
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the repository's configuration says of hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// `core.hooksPath`, as written.
    pub path: Option<BString>,
    /// `zit.hookTimeout`: how long one hook may run.
    pub timeout: Duration,
    /// `receive.keepAlive`; `None` for never.
    pub keep_alive: Option<Duration>,
    /// `receive.updateServerInfo`: whether `info/refs` and `objects/info/packs` are written anew after a push.
    pub update_server_info: bool,
}

impl HookConfig {
    pub(crate) fn read(file: &gix_config::File) -> Self {
        let seconds = |key: &str| {
            let value = file.integer(key).ok().flatten()?;
            Some(Duration::from_secs(u64::try_from(value).unwrap_or(0)))
        };
        Self {
            path: file.string("core.hooksPath"),
            timeout: seconds("zit.hookTimeout").filter(|time| !time.is_zero()).unwrap_or(TIMEOUT),
            keep_alive: Some(seconds("receive.keepAlive").unwrap_or(KEEP_ALIVE))
                .filter(|time| !time.is_zero()),
            update_server_info: file
                .boolean("receive.updateServerInfo")
                .ok()
                .flatten()
                .unwrap_or(false),
        }
    }
}

/// One line of what `pre-receive` and `post-receive` are fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookLine {
    /// The value before; `None` for a ref that is created.
    pub old: Option<Oid>,
    /// The value after; `None` for one that is deleted.
    pub new: Option<Oid>,
    /// The ref. Invariant of whoever makes it: a valid refname, so that it is one word.
    pub name: BString,
}

/// One run of a hook.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// Which.
    pub hook: Hook,
    /// Its arguments.
    pub args: &'a [OsString],
    /// What its environment holds beyond the server's own.
    pub env: &'a [(String, OsString)],
    /// Its standard input.
    pub input: &'a [u8],
}

/// The hooks of one repository, as its configuration is now.
#[derive(Clone, Debug)]
pub struct Hooks {
    git_dir: PathBuf,
    kind: gix_hash::Kind,
    /// `None` when there is no such folder.
    folder: Option<PathBuf>,
    config: HookConfig,
}

impl Store {
    /// The hooks of the repository.
    ///
    /// # Errors
    /// [`StoreError`] when the configuration cannot be read.
    pub fn hooks(&self) -> Result<Hooks, StoreError> {
        let git_dir = self.common_dir().to_owned();
        let config = self.config()?.hooks.clone();
        let folder = folder(&git_dir, config.path.as_ref().map(|path| path.as_bytes()));
        let folder = Some(folder).filter(|folder| folder.is_dir());
        Ok(Hooks { git_dir, kind: self.hash_kind(), folder, config })
    }
}

/// A relative path is taken from where hooks run, as in git.
fn folder(git_dir: &Path, configured: Option<&[u8]>) -> PathBuf {
    let Some(path) = configured.filter(|path| !path.is_empty()) else {
        return git_dir.join("hooks");
    };
    home(path).unwrap_or_else(|| git_dir.join(OsStr::from_bytes(path)))
}

/// Where a configured path is that begins with `~/`.
pub(crate) fn home(path: &[u8]) -> Option<PathBuf> {
    let rest = path.strip_prefix(b"~/")?;
    Some(PathBuf::from(std::env::var_os("HOME")?).join(OsStr::from_bytes(rest)))
}

impl Hooks {
    /// Whether there is such a hook. One that is not executable is ignored, as in git, and the log says so.
    #[must_use]
    pub fn has(&self, hook: Hook) -> bool {
        self.file(hook).is_some()
    }

    /// Whether a push would run any.
    #[must_use]
    pub fn any(&self) -> bool {
        [Hook::PreReceive, Hook::Update, Hook::PostReceive, Hook::PostUpdate]
            .iter()
            .any(|hook| self.has(*hook))
    }

    /// The repository's object format.
    #[must_use]
    pub fn kind(&self) -> gix_hash::Kind {
        self.kind
    }

    /// Whether files for clients without smart HTTP are to be written anew after a push.
    #[must_use]
    pub fn updates_server_info(&self) -> bool {
        self.config.update_server_info
    }

    /// Writes these files.
    ///
    /// # Errors
    /// [`StoreError::Git`] with what git said.
    pub fn update_server_info(&self) -> Result<(), StoreError> {
        Git::at(&self.git_dir, &["safe.directory=*"], "update-server-info").output()?;
        Ok(())
    }

    fn file(&self, hook: Hook) -> Option<PathBuf> {
        let path = self.folder.as_ref()?.join(hook.name());
        if hook == Hook::ReferenceTransaction && is_installed(&path) {
            // It guards the referee's refs from others; the referee needs only what it stands in front of.
            return executable(path.with_extension("user"));
        }
        executable(path)
    }

    /// Runs a hook, if there is one.
    pub fn run(&self, call: &HookCall<'_>, audience: &mut dyn Audience) -> ProgramEnd {
        let Some(file) = self.file(call.hook) else { return ProgramEnd::Passed };
        let time = match call.hook {
            Hook::ReferenceTransaction => self.config.timeout.min(TRANSACTION_TIMEOUT),
            Hook::PreReceive
            | Hook::ProcReceive
            | Hook::Update
            | Hook::PostReceive
            | Hook::PostUpdate => self.config.timeout,
        };
        self.run_file(&file, call, Input::Text(call.input), time, audience)
    }

    /// Runs `proc-receive`, whose standard output is its side of a conversation; `None` without such a hook.
    pub fn converse(
        &self,
        env: &[(String, OsString)],
        talk: &mut dyn Talk,
        audience: &mut dyn Audience,
    ) -> Option<ProgramEnd> {
        let file = self.file(Hook::ProcReceive)?;
        let call = HookCall { hook: Hook::ProcReceive, args: &[], env, input: b"" };
        Some(self.run_file(&file, &call, Input::Talk(talk), self.config.timeout, audience))
    }

    fn run_file(
        &self,
        file: &Path,
        call: &HookCall<'_>,
        input: Input<'_>,
        time: Duration,
        audience: &mut dyn Audience,
    ) -> ProgramEnd {
        let limits = Limits { time, beat: self.config.keep_alive, heard: Heard::Both };
        let ended = run(&mut |program| self.command(program, call), file, input, limits, audience);
        tracing::info!(hook = %call.hook, ?ended, "hook ended");
        ended
    }

    /// The environment is the server's own, less what git would take from it, as a program that git's server starts.
    fn command(&self, program: &[&OsStr], call: &HookCall<'_>) -> Command {
        let (first, rest) = program.split_first().expect("a program has a name");
        #[expect(
            clippy::disallowed_methods,
            reason = "hooks are programs of the repository's owner"
        )]
        let mut command = Command::new(first);
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(variable);
            }
        }
        if let Some(Programs { folder, path }) = programs() {
            command.env("GIT_EXEC_PATH", folder).env("PATH", path);
        }
        command.args(rest).args(call.args).current_dir(&self.git_dir).env("GIT_DIR", ".");
        command.envs(call.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// An oid as hooks are told it: zeros for none.
    #[must_use]
    pub fn hex(&self, oid: Option<Oid>) -> String {
        oid.map_or_else(|| self.kind.null().to_string(), |oid| oid.to_string())
    }

    /// What `pre-receive` and `post-receive` read.
    #[must_use]
    pub fn lines(&self, lines: &[HookLine]) -> Vec<u8> {
        let mut text = Vec::new();
        for HookLine { old, new, name } in lines {
            text.extend_from_slice(format!("{} {} ", self.hex(*old), self.hex(*new)).as_bytes());
            text.extend_from_slice(name);
            text.push(b'\n');
        }
        text
    }
}

/// The file, if it may be run.
fn executable(path: PathBuf) -> Option<PathBuf> {
    let meta = std::fs::metadata(&path).ok()?;
    if meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
        return Some(path);
    }
    tracing::warn!(hook = %path.display(), "hook ignored: it is not set as executable");
    None
}

/// Whether the hook is zit's own. Source: the crate `zit-hook`, `install`.
fn is_installed(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_START).read_to_end(&mut start));
    read.is_ok() && start.lines().nth(1).is_some_and(|line| line.starts_with(INSTALLED))
}

/// What shows a hook the objects that are not in the repository yet. git refuses to move refs with it.
///
/// # Errors
/// As [`Quarantine::write`].
pub fn quarantine_env<'a>(
    quarantines: impl IntoIterator<Item = &'a mut Quarantine>,
) -> Result<Vec<(String, OsString)>, StoreError> {
    let (mut first, mut alternates) = (None, Vec::new());
    for quarantine in quarantines {
        let objects = quarantine.git_dir().join("objects");
        let folder = quarantine.materialise()?.to_owned();
        match &first {
            None => {
                first = Some(folder);
                alternates.push(objects);
            }
            Some(_) => alternates.insert(0, folder),
        }
    }
    let Some(first) = first else { return Ok(Vec::new()) };
    let alternates = std::env::join_paths(alternates)
        .map_err(|error| StoreError::WriteObject(error.to_string()))?;
    Ok(vec![
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), alternates),
        ("GIT_OBJECT_DIRECTORY".to_owned(), first.clone().into_os_string()),
        ("GIT_QUARANTINE_PATH".to_owned(), first.into_os_string()),
    ])
}

/// Where git's own programs are, and a `PATH` that looks there first.
struct Programs {
    folder: PathBuf,
    path: OsString,
}

/// What git gives its hooks to find its programs by; asked for once.
fn programs() -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Option<Programs>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let folder = Git::anywhere("--exec-path").output().ok()?;
        let folder = PathBuf::from(OsStr::from_bytes(folder.trim_end()));
        let own = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder.clone()).chain(std::env::split_paths(&own));
        let path = std::env::join_paths(all).ok()?;
        Some(Programs { folder, path })
    });
    programs.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_hooks_is_relative_to_the_repository() {
        let git_dir = Path::new("/srv/app.git");
        for (configured, expected) in [
            (None, "/srv/app.git/hooks"),
            (Some(b"".as_slice()), "/srv/app.git/hooks"),
            (Some(b"../shared"), "/srv/app.git/../shared"),
            (Some(b"/etc/hooks"), "/etc/hooks"),
        ] {
            assert_eq!(folder(git_dir, configured), Path::new(expected));
        }
    }

    #[test]
    fn a_hook_has_gits_time_to_keep_alive_and_can_be_given_more_time() {
        let read = |text: &str| {
            let meta = gix_config::file::Metadata::from(gix_config::Source::Local);
            let options = gix_config::file::init::Options::default();
            HookConfig::read(
                &gix_config::File::from_bytes_no_includes(text.as_bytes(), meta, options).unwrap(),
            )
        };
        assert_eq!(
            read(""),
            HookConfig {
                path: None,
                timeout: TIMEOUT,
                keep_alive: Some(KEEP_ALIVE),
                update_server_info: false
            }
        );
        let own = read(
            "[zit]\nhookTimeout = 7\n[receive]\nkeepAlive = 0\nupdateServerInfo\n[core]\nhooksPath = h\n",
        );
        let expected = HookConfig {
            path: Some("h".into()),
            timeout: Duration::from_secs(7),
            keep_alive: None,
            update_server_info: true,
        };
        assert_eq!(own, expected);
    }
}
