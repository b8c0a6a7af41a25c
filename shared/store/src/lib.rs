//! zit's store: the objects and refs of one bare repository, synchronous, for one writer.
//!
//! # The way of a push
//!
//! 1. [`Store::quarantine`] makes a place apart; [`Quarantine::receive_pack`] streams the pack into it and
//!    [`Quarantine::check_connected`] sees that nothing is missing.
//! 2. The caller reads with [`Quarantine::objects`], judges, and may write objects of its own.
//! 3. [`Store::prepare`] locks the refs and checks every precondition.
//! 4. [`Prepared::commit`] takes the objects, journals the transaction, and moves the refs. [`Prepared::stage`] and
//!    [`Store::flush`] do so for many transactions at once.
//!
//! Objects come before refs, so no ref ever names an object that is missing. Whatever is dropped on the way leaves
//! no file behind.
//!
//! Refs below `refs/zit/` but current are *deferred*: the [`journal`] holds them, the store answers for them, and their
//! files follow within 200 ms ([`Store::settle`] waits for that).
//!
//! # The way of a fetch
//!
//! [`Store::fetch`] answers what is small and plain. Of the rest, [`Store::answer`] makes once what many ask for, and all
//! else goes to [`Store::pack_source`].
//!
//! # Beside both
//!
//! [`Store::maintain`] folds what pushes leave into few packs, when [`Store::is_maintenance_due`] says so.
//!
//! # Invariants
//!
//! - The repository is an ordinary one. Stock git, run in it at any moment, sees it consistent, and its locks are
//!   honoured in both directions.
//! - A committed transaction survives `kill -9` and power loss; one that was not committed leaves no trace.
//! - Nothing here reads wall time, decides what a push may do, or knows what a ref means.
//! - Programs are started in three places, for git, for hooks and for what checks signatures, with an environment of
//!   their own.
//! - No input of a peer makes it panic, and memory does not grow with the size of a pack or a blob.
//!
//! Needs a POSIX file system with hard links.

mod account;
mod alternates;
mod answers;
mod backlog;
mod boot;
mod bundles;
mod config;
mod config_file;
mod config_keys;
mod connected;
mod crash;
mod deny;
mod error;
mod fetch;
mod fsck;
mod fsio;
mod git;
mod hidden;
mod history;
mod hooks;
mod http_config;
mod inspect;
pub mod journal;
mod locate;
mod loose;
mod maintain;
mod merge;
mod objects;
mod pack;
mod packed;
mod packs;
mod polls;
mod program;
mod quarantine;
mod reach;
mod reading;
mod receive_config;
mod reflog;
mod refs;
mod shallow;
mod sharing;
mod signature;
mod store;
mod tree;
mod tx;
mod unpack;
mod update_ref;
mod upload;
mod work_trees;

pub use account::Account;
pub use answers::{AnswerError, AnswerQuery, SharedAnswer};
pub use boot::boot_id;
pub use config::{MaintenanceLimits, RepoConfig, Unborn, Wants};
pub use connected::Connected;
pub use crash::{CRASH_POINTS, MAINTENANCE_CRASH_POINTS, SHALLOW_CRASH_POINTS, crash_point};
pub use deny::{Deny, DenyConfig, LeftToHook};
pub use error::StoreError;
pub use fetch::{FetchError, FetchLimits, FetchQuery, Fetched};
pub use fsck::FsckRules;
pub use git::GitError;
pub use hidden::HiddenRefs;
pub use history::MAX_COMMITS_BETWEEN;
pub use hooks::{Hook, HookCall, HookConfig, HookLine, Hooks, quarantine_env};
pub use http_config::HttpConfig;
pub use inspect::{Finding, Inspected};
pub use maintain::{Maintained, Stop};
pub use merge::Merge;
pub use objects::{Blob, Commit, Kind, MAX_STRUCTURE, Objects, Signature};
pub use pack::{PackError, PackLimits, Received};
pub use polls::Ground;
pub use program::{Audience, Gone, ProgramEnd, Talk};
pub use quarantine::{Published, Quarantine};
pub use reading::{Glance, Reading};
pub use receive_config::ReceiveConfig;
pub use reflog::{LogEntry, LogRefs};
pub use refs::{Head, ResolvedHead, StoredRef};
pub use signature::Checked;
pub use store::{Access, Store};
pub use tree::{Entry, EntryMode, MAX_TREE_CHANGES, TreeChange};
pub use tx::{PrepareError, Prepared, RefusedUpdate, RefusedUpdates};
pub use upload::{Exchange, PackSource, PackStream, ProtocolVersion, UploadPack};

/// What crosses threads, checked where it is compiled.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Store>();
    shared::<Quarantine>();
    sent::<Objects>();
    sent::<PackStream>();
    sent::<SharedAnswer>();
};
