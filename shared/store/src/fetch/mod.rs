//! Small fetches, answered in process: [`Store::fetch`] takes what a client wants and has, and gives a pack.
//!
//! # Stages
//!
//! 1. `resolve`: every want must be here, as in git's protocol v2; haves that are not here are passed over.
//! 2. `negotiate`: a client that is not done is told what both have, until every want leads there.
//! 3. [`history`]: the commits that the client lacks, parents first.
//! 4. [`collect`]: what these commits hold that their parents do not, then the tags that go with it.
//! 5. [`pack`]: all of it; what changed a little as a [`delta`] against what lay at the same path.
//!
//! Whatever is past [`FetchLimits`] is [`FetchError::TooBig`], found before anything is answered: the request goes to
//! a [`crate::PackSource`] as it came. Deltas are made here, against an object that is read for it where it was not read
//! before, and never taken from packs: no offset in a file has to be believed, and it does not matter how an object is
//! stored.
//!
//! Invariant: nothing that the client lacks is left out. A little that it has may be sent again: a file that moved
//! from a folder that its new commits leave alone, or that came back from before the commits both have.

mod collect;
mod delta;
mod history;
pub(crate) mod pack;

pub(crate) use pack::write_header;

use std::collections::HashSet;

use zit_model::Oid;

use self::collect::Collector;
use self::history::History;
use crate::error::StoreError;
use crate::objects::{Kind, Objects, broken};
use crate::store::Store;

/// What a small fetch may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// How many commits may be looked at, on both sides of what is sent.
    pub max_walked: usize,
    /// How many commits may be sent. A clone of a long history meets this before it has cost anything.
    pub max_commits: usize,
    /// How many objects may be sent.
    pub max_objects: usize,
    /// How many bytes these may have before compression.
    pub max_bytes: u64,
    /// How many bytes of commits, trees and tags may be looked at to find them, each time that they are.
    pub max_read: u64,
}

/// About where git's own programs, which reuse the deltas they find, catch up with what it costs to start them.
impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            max_walked: 4_000,
            max_commits: 64,
            max_objects: 1_000,
            max_bytes: 1024 * 1024,
            max_read: 8 * 1024 * 1024,
        }
    }
}

/// One request, as far as it says which objects to send.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an argument of the protocol")]
pub struct FetchQuery {
    /// What is wanted.
    pub wants: Vec<Oid>,
    /// What the client has; also what is not here.
    pub haves: Vec<Oid>,
    /// The client says no more: the pack comes next.
    pub done: bool,
    /// No pack before the client is done.
    pub wait_for_done: bool,
    /// With an object, send the annotated tags that lead to it.
    pub include_tag: bool,
    /// Deltas may build on what the client has.
    pub thin_pack: bool,
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// More has to be known: these are the haves that are here, in the order given. One that an earlier one implies, as
    /// the same commit or as a parent of it, is left out.
    Acknowledged(Vec<Oid>),
    /// A whole pack.
    Pack {
        /// The haves as in [`Fetched::Acknowledged`]; `None` for a client that does not wait to be told.
        acknowledged: Option<Vec<Oid>>,
        /// The pack, its trailer included.
        pack: Vec<u8>,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No such object. The words are git's.
    #[error("upload-pack: not our ref {0}")]
    NotOurRef(Oid),
    /// More than is done here; another engine can.
    #[error("the fetch is too big to be answered in process: {0}")]
    TooBig(&'static str),
    /// The store failed; another engine may find out why.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Answers one request of protocol v2 that asks for objects and for nothing else.
    ///
    /// # Errors
    /// [`FetchError::NotOurRef`] for a want that is not here; [`FetchError::TooBig`] past `limits`, and for a
    /// repository that lacks history itself.
    ///
    /// # Source
    /// git's `gitprotocol-v2`, "fetch"; which wants are served is `upload-pack.c`, `parse_want`.
    pub fn fetch(&self, query: &FetchQuery, limits: &FetchLimits) -> Result<Fetched, FetchError> {
        if self.common_dir().join("shallow").exists() {
            return Err(FetchError::TooBig("the repository is shallow"));
        }
        let objects = self.objects()?;
        let wants = resolve_wants(&objects, &query.wants)?;
        let haves = resolve_haves(self.objects()?, &query.haves)?;
        let mut history = History::new(&objects, limits);
        let may_wait = !query.done && !query.haves.is_empty();
        let mut acknowledged = None;
        if may_wait {
            let common = haves.acknowledged(&mut history)?;
            if !is_ready(query, &wants, &haves, &mut history)? {
                return Ok(Fetched::Acknowledged(common));
            }
            acknowledged = Some(common);
        }
        let pack = self.pack_between(query, limits, &wants, &haves, history)?;
        Ok(Fetched::Pack { acknowledged, pack })
    }

    fn pack_between(
        &self,
        query: &FetchQuery,
        limits: &FetchLimits,
        wants: &Wanted,
        haves: &Held,
        mut history: History<'_>,
    ) -> Result<Vec<u8>, FetchError> {
        let missing = history.missing(&wants.commits, &haves.commits)?;
        let mut collector = Collector::new(history, limits, haves.tags.iter().copied());
        missing.into_iter().try_for_each(|commit| collector.add_commit(commit))?;
        wants.others.iter().try_for_each(|(oid, kind)| collector.add_other(*oid, *kind))?;
        if query.include_tag {
            for tag in self.refs_below("refs/tags/")? {
                if tag.peeled.is_some_and(|peeled| collector.sends(peeled)) {
                    collector.add_tags(tag.oid)?;
                }
            }
        }
        collector.into_pack(query.thin_pack)
    }
}

/// What is wanted, by kind.
struct Wanted {
    /// Commits, and those that wanted tags lead to.
    commits: Vec<Oid>,
    /// All that is no commit.
    others: Vec<(Oid, Kind)>,
}

/// What the client has of what is here.
struct Held {
    /// Every have that is here, in the order given, and whether it is a commit.
    common: Vec<(Oid, bool)>,
    /// The commits among them, and those that tags among them lead to.
    commits: Vec<Oid>,
    /// The tags on the way to these.
    tags: HashSet<Oid>,
}

impl Held {
    /// The commits that were named as such. Only these count when the two sides find out what they share.
    fn named_commits(&self) -> Vec<Oid> {
        self.common.iter().filter(|(_, is_commit)| *is_commit).map(|(oid, _)| *oid).collect()
    }

    /// What the client is told of what it named.
    ///
    /// # Source
    /// git's `upload-pack.c`, `do_got_oid`.
    fn acknowledged(&self, history: &mut History<'_>) -> Result<Vec<Oid>, FetchError> {
        let mut implied = HashSet::new();
        let mut acknowledged = Vec::new();
        for &(oid, is_commit) in &self.common {
            if !is_commit || implied.insert(oid) {
                acknowledged.push(oid);
            }
            if is_commit {
                implied.extend(&history.node(oid)?.parents);
            }
        }
        Ok(acknowledged)
    }
}

fn resolve_wants(objects: &Objects, wants: &[Oid]) -> Result<Wanted, FetchError> {
    let mut wanted = Wanted { commits: Vec::new(), others: Vec::new() };
    for &want in wants {
        let kind = objects.kind(want)?.ok_or(FetchError::NotOurRef(want))?;
        match kind {
            Kind::Commit => wanted.commits.push(want),
            Kind::Tree | Kind::Blob => wanted.others.push((want, kind)),
            Kind::Tag => {
                wanted.others.push((want, kind));
                let target = objects.peel(want)?;
                match objects.kind(target)? {
                    Some(Kind::Commit) => wanted.commits.push(target),
                    Some(kind) => wanted.others.push((target, kind)),
                    None => return Err(StoreError::MissingObject(target).into()),
                }
            }
        }
    }
    Ok(wanted)
}

/// Looks at the packs on disk once at most: a client names many objects that were never here.
fn resolve_haves(mut objects: Objects, haves: &[Oid]) -> Result<Held, FetchError> {
    let mut held = Held { common: Vec::new(), commits: Vec::new(), tags: HashSet::new() };
    for &have in haves {
        let Some(kind) = objects.kind(have)? else {
            objects.handle.refresh_never();
            continue;
        };
        held.common.push((have, kind == Kind::Commit));
        match kind {
            Kind::Commit => held.commits.push(have),
            // No client names these; passing them over sends a little too much at worst.
            Kind::Tree | Kind::Blob => {}
            Kind::Tag => {
                let mut at = have;
                while objects.kind(at)? == Some(Kind::Tag) && held.tags.insert(at) {
                    at = tag_target(at, &objects.structure(at, Kind::Tag)?)?;
                }
                if objects.kind(at)? == Some(Kind::Commit) {
                    held.commits.push(at);
                }
            }
        }
    }
    Ok(held)
}

/// Whether a client that is not done gets its pack all the same: nothing it could name would change it much.
///
/// # Source
/// git's `upload-pack.c`, `send_acks` and `ok_to_give_up`: something is common, and each wanted commit leads to it.
fn is_ready(
    query: &FetchQuery,
    wants: &Wanted,
    haves: &Held,
    history: &mut History<'_>,
) -> Result<bool, FetchError> {
    if query.wait_for_done || haves.common.is_empty() {
        return Ok(false);
    }
    history.all_lead_to(&wants.commits, &haves.named_commits())
}

/// What a tag object points at.
fn tag_target(tag: Oid, bytes: &[u8]) -> Result<Oid, StoreError> {
    let decoded =
        gix_object::TagRef::from_bytes(bytes, tag.kind()).map_err(|error| broken(tag, &error))?;
    Oid::from_hex(decoded.target).map_err(|error| broken(tag, &error))
}
