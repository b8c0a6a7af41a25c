//! The repository's own configuration, as far as the referee and the wire need it. Where it is read from:
//! [`crate::config_file`]; all keys and what becomes of them: [`crate::config_keys`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use zit_model::RefName;

use crate::alternates::AlternateRefs;
use crate::deny::DenyConfig;
use crate::hidden::HiddenRefs;
use crate::hooks::HookConfig;
use crate::http_config::HttpConfig;
use crate::receive_config::ReceiveConfig;
use crate::reflog::LogRefs;
use crate::sharing::Sharing;
use crate::signature::SignatureConfig;

/// How long git waits for a ref's lock. Source: git-config(1), `core.filesRefLockTimeout`.
const REF_LOCK_WAIT: Duration = Duration::from_millis(100);
/// How long git waits for `packed-refs.lock`. Source: git-config(1), `core.packedRefsTimeout`.
const PACKED_REFS_WAIT: Duration = Duration::from_secs(1);
/// What "wait forever" means here: a server answers in the end.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How many bytes the kept answers to fetches may have together: a few clones of a large history.
const ANSWER_CACHE: u64 = 1024 * 1024 * 1024;

/// How many packs are too many, where `gc.autoPackLimit` is unset. git's 50 is for a person's clone; each pack costs a
/// lookup in every search for an object, and a history of millions of objects folds into less than this.
const MAX_PACKS: usize = 32;

/// How many loose objects are too many, where `gc.auto` is unset. Each one costs a file and, to be sent, a process of git
/// its compression.
const MAX_LOOSE: usize = 2000;

/// The extensions that change nothing here, or that are read below. Source: git's `setup.c`, `handle_extension`.
const KNOWN_EXTENSIONS: [&str; 8] = [
    "noop",
    "noop-v1",
    "preciousObjects",
    "partialClone",
    "worktreeConfig",
    "objectFormat",
    "refStorage",
    "relativeWorktrees",
];

/// What the repository's configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is one setting of git's")]
pub struct RepoConfig {
    /// `zit.mainline`, as a branch's name or full refname; `None` when unset or neither.
    pub mainline: Option<RefName>,
    /// `core.bare`: whether no work tree belongs to the repository.
    pub bare: bool,
    /// `uploadpack.allowFilter`: whether a fetch may ask for a partial clone.
    pub allow_filter: bool,
    /// `zit.answerCache`: how many bytes the kept answers to fetches may have together; 0 keeps none.
    pub answer_cache: u64,
    /// When maintenance is due; `None` when `gc.auto` is 0, or `maintenance.auto` or `receive.autogc` is
    /// false.
    pub maintenance: Option<MaintenanceLimits>,
    /// What a fetch by protocol 0 or 1 may want beside what is advertised.
    pub wants: Wants,
    /// `uploadpack.allowRefInWant`: whether a want may name a ref.
    pub ref_in_want: bool,
    /// `uploadpack.allowSidebandAll`: whether all of a fetch's answer may be in bands.
    pub sideband_all: bool,
    /// `transfer.advertiseObjectInfo`: whether sizes of objects are told.
    pub object_info: bool,
    /// `transfer.advertiseSID`: whether clients are told under which id the log has their session.
    pub advertise_sid: bool,
    /// `bundle.*`, where `uploadpack.advertiseBundleURIs` is on: keys and values that clients are told.
    pub bundles: Option<Vec<(BString, BString)>>,
    /// `lsrefs.unborn`: what becomes of a HEAD that names no branch yet.
    pub unborn: Unborn,
    /// `receive.advertiseAtomic`, on unless said otherwise: whether pushers are offered to move all refs or none.
    pub advertise_atomic: bool,
    /// `receive.advertisePushOptions`, on unless said otherwise, unlike in git: without options an agent can say little.
    pub advertise_push_options: bool,
    /// `repack.useDeltaBaseOffset`, on unless said otherwise: whether pushers may name a delta's base by its distance.
    pub ofs_delta: bool,
    /// The refs that fetchers are not shown.
    pub hidden_from_fetch: HiddenRefs,
    /// The refs that pushers are not shown, and may not touch.
    pub hidden_from_push: HiddenRefs,
    /// How the refs of alternates are found.
    pub(crate) alternate_refs: AlternateRefs,
    /// `receive.deny*`.
    pub deny: DenyConfig,
    /// `http.*`.
    pub http: HttpConfig,
    /// What is asked of a pack that comes in.
    pub receive: Arc<ReceiveConfig>,
    /// `core.filesRefLockTimeout`, at most ten seconds.
    pub ref_lock_wait: Duration,
    /// `core.packedRefsTimeout`, at most ten seconds.
    pub packed_refs_wait: Duration,
    /// `core.logAllRefUpdates`: which refs get a log.
    pub log_refs: LogRefs,
    /// `core.sharedRepository`: who may read and write what is made.
    pub(crate) sharing: Sharing,
    /// What is said of hooks.
    pub hooks: HookConfig,
    /// What is said of programs that know signatures.
    pub(crate) signatures: SignatureConfig,
}

/// Whether those who ask for it are told of a HEAD that names no branch yet, which is `lsrefs.unborn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unborn {
    /// They are, and the server says that they may ask. The default.
    Advertise,
    /// They are.
    Allow,
    /// They are not.
    Ignore,
}

/// How much may pile up before it is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceLimits {
    /// `gc.autoPackLimit`: packs that may be folded; 0 does not count them.
    pub max_packs: usize,
    /// `gc.auto`: loose objects; at least 1.
    pub max_loose: usize,
}

/// Which objects a fetch may want by their oid; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wants {
    /// What the advertisement lists.
    Advertised,
    /// The tips of hidden refs (`uploadpack.allowTipSHA1InWant`).
    Tips,
    /// Whatever a ref reaches (`uploadpack.allowReachableSHA1InWant`).
    Reachable,
    /// Any object (`uploadpack.allowAnySHA1InWant`).
    Any,
}

/// Formats that decide whether the repository can be read at all.
pub(crate) struct Format {
    pub(crate) hash: Option<String>,
    pub(crate) ref_storage: Option<String>,
    /// `core.repositoryFormatVersion`, where it is not known.
    pub(crate) version: Option<BString>,
    /// An extension that is not known, where the repository says that it must be.
    pub(crate) extension: Option<String>,
}

impl Format {
    pub(crate) fn of(file: &gix_config::File) -> Self {
        let text = |key: &str| file.string(key).map(|value| value.to_string());
        let version = file.string("core.repositoryFormatVersion");
        let known =
            |name: &str| KNOWN_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(name));
        let extensions = file.sections_by_name("extensions").into_iter().flatten();
        let unknown = extensions
            .flat_map(|section| section.value_names().collect::<Vec<_>>())
            .find(|name| !known(name));
        let is_old = version.as_ref().is_none_or(|version| *version == "0");
        Self {
            hash: text("extensions.objectFormat"),
            ref_storage: text("extensions.refStorage"),
            version: version.filter(|version| !matches!(version.as_slice(), b"0" | b"1")),
            // Before version 1, git passes over what it does not know.
            extension: unknown.filter(|_| !is_old),
        }
    }
}

pub(crate) fn interpret(file: &gix_config::File, git_dir: &Path) -> RepoConfig {
    // A value that git would refuse counts as unset.
    let is = |key: &str| file.boolean(key).ok().flatten().unwrap_or(false);
    let is_on = |key: &str| file.boolean(key).ok().flatten().unwrap_or(true);
    let wait = |key: &str, default| match file.integer(key).ok().flatten() {
        None => default,
        Some(millis) => {
            u64::try_from(millis).map_or(LONGEST_WAIT, Duration::from_millis).min(LONGEST_WAIT)
        }
    };
    RepoConfig {
        mainline: file.string("zit.mainline").and_then(|name| mainline(&name)),
        // `git init` always says it for a repository with a work tree.
        bare: file.boolean("core.bare").ok().flatten().unwrap_or(true),
        allow_filter: is("uploadpack.allowFilter"),
        answer_cache: match file.integer("zit.answerCache").ok().flatten() {
            None => ANSWER_CACHE,
            Some(n_bytes) => u64::try_from(n_bytes).unwrap_or(0),
        },
        maintenance: maintenance(file),
        wants: if is("uploadpack.allowAnySHA1InWant") {
            Wants::Any
        } else if is("uploadpack.allowReachableSHA1InWant") {
            Wants::Reachable
        } else if is("uploadpack.allowTipSHA1InWant") {
            Wants::Tips
        } else {
            Wants::Advertised
        },
        ref_in_want: is("uploadpack.allowRefInWant"),
        sideband_all: is("uploadpack.allowSidebandAll"),
        object_info: is("transfer.advertiseObjectInfo"),
        advertise_sid: is("transfer.advertiseSID"),
        bundles: crate::bundles::read(file),
        unborn: unborn(file),
        advertise_atomic: is_on("receive.advertiseAtomic"),
        advertise_push_options: is_on("receive.advertisePushOptions"),
        ofs_delta: is_on("repack.useDeltaBaseOffset"),
        hidden_from_fetch: HiddenRefs::read(file, "uploadpack"),
        hidden_from_push: HiddenRefs::read(file, "receive"),
        alternate_refs: AlternateRefs::read(file),
        deny: DenyConfig::read(file),
        http: HttpConfig::of(file),
        receive: Arc::new(ReceiveConfig::read(file, git_dir)),
        ref_lock_wait: wait("core.filesRefLockTimeout", REF_LOCK_WAIT),
        packed_refs_wait: wait("core.packedRefsTimeout", PACKED_REFS_WAIT),
        log_refs: LogRefs::read(file),
        sharing: Sharing::read(file),
        hooks: HookConfig::read(file),
        signatures: SignatureConfig::read(file),
    }
}

fn unborn(file: &gix_config::File) -> Unborn {
    match file.string("lsrefs.unborn").as_deref().map(AsRef::<[u8]>::as_ref) {
        Some(b"allow") => Unborn::Allow,
        Some(b"ignore") => Unborn::Ignore,
        // git dies of any other word.
        Some(_) | None => Unborn::Advertise,
    }
}

/// # Source
/// git's `builtin/gc.c`, `need_to_gc` and `too_many_packs`: zero or less is never.
fn maintenance(file: &gix_config::File) -> Option<MaintenanceLimits> {
    let number = |key: &str, default| match file.integer(key).ok().flatten() {
        None => default,
        Some(n) => usize::try_from(n).unwrap_or(0),
    };
    let is_on = ["maintenance.auto", "receive.autogc"]
        .iter()
        .all(|key| file.boolean(key).ok().flatten().unwrap_or(true));
    let max_loose = number("gc.auto", MAX_LOOSE);
    let max_packs = number("gc.autoPackLimit", MAX_PACKS);
    (is_on && max_loose > 0).then_some(MaintenanceLimits { max_packs, max_loose })
}

fn mainline(name: &[u8]) -> Option<RefName> {
    let full = if name.starts_with(b"refs/") {
        name.to_vec()
    } else {
        [b"refs/heads/".as_slice(), name].concat()
    };
    let branch = RefName::new(&full).ok().filter(|name| name.branch().is_some());
    if branch.is_none() {
        tracing::warn!(name = %name.as_bstr(), "zit.mainline is not a branch's name");
    }
    branch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RepoConfig {
        interpret(&gix_config::File::try_from(text).unwrap(), Path::new("/"))
    }

    #[test]
    fn the_mainline_is_a_branch_name_or_a_full_refname() {
        for text in ["[zit]\nmainline = trunk\n", "[zit]\nmainline = refs/heads/trunk\n"] {
            assert_eq!(read(text).mainline.unwrap().to_string(), "refs/heads/trunk");
        }
        for other in ["a..b", "refs/tags/v1", "refs/zit/current"] {
            assert_eq!(read(&format!("[zit]\nmainline = {other}\n")).mainline, None, "{other}");
        }
        assert_eq!(read("").mainline, None);
    }

    #[test]
    fn what_fetchers_and_pushers_are_offered_is_as_git_reads_it() {
        let unset = read("");
        assert_eq!((unset.unborn, unset.ref_in_want), (Unborn::Advertise, false));
        assert_eq!((unset.advertise_atomic, unset.ofs_delta), (true, true));
        assert_eq!(read("[lsrefs]\nunborn = allow\n").unborn, Unborn::Allow);
        assert_eq!(read("[lsrefs]\nunborn = ignore\n").unborn, Unborn::Ignore);
        assert!(!read("[receive]\nadvertiseAtomic = no\n").advertise_atomic);
        assert!(!read("[repack]\nuseDeltaBaseOffset = off\n").ofs_delta);
        assert!(read("[uploadpack]\nallowSidebandAll\n").sideband_all);
    }

    #[test]
    fn waits_default_to_gits_and_forever_is_bounded() {
        assert_eq!(read("").ref_lock_wait, REF_LOCK_WAIT);
        assert_eq!(read("[core]\nfilesRefLockTimeout = -1\n").ref_lock_wait, LONGEST_WAIT);
        assert_eq!(
            read("[core]\npackedRefsTimeout = 5\n").packed_refs_wait,
            Duration::from_millis(5)
        );
    }

    #[test]
    fn how_much_is_kept_is_a_number_with_a_unit() {
        assert_eq!(read("").answer_cache, ANSWER_CACHE);
        assert_eq!(read("[zit]\nanswerCache = 2m\n").answer_cache, 2 << 20);
        for none in ["0", "-1"] {
            assert_eq!(read(&format!("[zit]\nanswerCache = {none}\n")).answer_cache, 0);
        }
    }

    #[test]
    fn maintenance_is_turned_off_as_git_turns_it_off() {
        let default = MaintenanceLimits { max_packs: MAX_PACKS, max_loose: MAX_LOOSE };
        for (text, expected) in [
            ("", Some(default)),
            ("[gc]\nauto = 0\n", None),
            ("[gc]\nauto = -1\n", None),
            ("[maintenance]\nauto = false\n", None),
            ("[gc]\nauto = 9\n", Some(MaintenanceLimits { max_loose: 9, ..default })),
            ("[gc]\nautoPackLimit = 0\n", Some(MaintenanceLimits { max_packs: 0, ..default })),
        ] {
            assert_eq!(read(text).maintenance, expected, "{text:?}");
        }
    }

    #[test]
    fn a_repository_of_a_later_format_is_told_apart() {
        let format = |text: &str| Format::of(&gix_config::File::try_from(text).unwrap());
        let core = |version| format!("[core]\nrepositoryFormatVersion = {version}\n");
        assert_eq!(format(&core(2)).version, Some("2".into()));
        let frotz = "[extensions]\nnoop = 1\nfrotz = 1\n";
        assert_eq!(format(&(core(1) + frotz)).extension.as_deref(), Some("frotz"));
        assert_eq!(format(&(core(0) + frotz)).extension, None);
    }
}
