//! Landing a change: composed on current beside the actor, then moved in by compare-and-swap.
//!
//! Stages: [`compose`] judges the change against what landed before it and merges; [`land`], on the actor, checks that
//! current has not moved and that nobody's claim is written over, and moves current and mainline together. A lost race
//! composes again on the new current; it never retries what was judged against the old one.
//!
//! Source: `spec/accept.md`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::ByteSlice;
use zit_footprint::{Conflict, Fallback, Footprint, Prose, Weight, conflicts, conflicts_by_name};
use zit_model::settings::{Judge, Policy};
use zit_model::{AgentId, Now, Oid, Resource};
use zit_store::journal::{Draft, Origin};
use zit_store::{Commit, Merge, Objects, PrepareError, Quarantine, Signature, StoreError};

use crate::actor::Actor;
use crate::carry_out::{commit, landing_refused, log_entry, millis};
use crate::documents::signature;
use crate::error::RefereeError;
use crate::footprints::Footprinter;
use crate::open;
use crate::plan::Plan;
use crate::speaker::Committer;
use crate::verdict::{Refusal, Staleness};
use crate::view::Strayed;

/// A change composed on current.
pub(crate) struct Landing {
    /// The change.
    pub(crate) commit: Oid,
    /// Who asks.
    pub(crate) agent: Option<AgentId>,
    /// Who moves the refs, as logs and hooks name it.
    pub(crate) committer: Committer,
    /// Whose credential it is.
    pub(crate) principal: String,
    /// Current, as the change was judged against it.
    pub(crate) from: Oid,
    /// What current becomes: the change itself, or a commit with current and the change as parents.
    pub(crate) to: Oid,
    /// What the change writes.
    pub(crate) footprint: Arc<Footprint>,
}

/// What became of a landing.
pub(crate) enum Landed {
    /// Current and mainline stand at [`Landing::to`].
    Done {
        /// What the agent no longer claims, because the work is done.
        released: Vec<Resource>,
    },
    /// Current is elsewhere: compose again.
    Moved,
    /// It would write over somebody's claim, or a ref refused.
    Refused(Refusal),
}

/// What composing a change on current comes to.
pub(crate) enum Composed {
    /// Current contains it already.
    Already,
    /// It holds.
    Ready {
        /// What current becomes.
        to: Oid,
        /// What the change writes.
        footprint: Arc<Footprint>,
    },
    /// It does not.
    Refused(Refusal),
}

/// Judges `commit` against what landed since it left current, and merges it.
///
/// `composed` is where new objects go; it must see the change.
pub(crate) fn compose(
    composed: &mut Quarantine,
    footprinter: &Footprinter,
    commit: Oid,
    from: Oid,
    now: Now,
) -> Result<Composed, StoreError> {
    let objects = composed.objects();
    let base = objects.merge_base(from, commit)?;
    if base == Some(commit) {
        return Ok(Composed::Already);
    }
    if base.is_none() {
        return Ok(Composed::Refused(Refusal::Unrelated));
    }
    let mine = footprinter.between(&objects, base, commit)?;
    if base == Some(from) {
        return Ok(Composed::Ready { to: commit, footprint: mine });
    }
    let theirs = footprinter.between(&objects, base, from)?;
    let judge = open::settings(&objects, from).judge;
    let stale = stale(footprinter, &objects, base, judge, [(&mine, commit), (&theirs, from)])?;
    if !stale.is_empty() {
        let landed = Landers::since(&objects, footprinter, base, from)?;
        let reasons = stale
            .into_iter()
            .map(|conflict| Staleness { landed: landed.writer(&conflict.theirs), conflict })
            .collect();
        return Ok(Composed::Refused(Refusal::Stale { reasons }));
    }
    let tree = match composed.merge_tree(from, commit)? {
        Merge::Clean(tree) => tree,
        Merge::Conflict { paths, .. } => {
            let paths = paths.iter().map(|path| path.to_str_lossy().into_owned()).collect();
            return Ok(Composed::Refused(Refusal::Conflict { paths }));
        }
    };
    let change = objects.commit(commit)?;
    let to = compose_commit(composed, &change, tree, from, commit, now)?;
    let unparsable = no_longer_parse(footprinter, &composed.objects(), from, to, &mine, &theirs)?;
    if !unparsable.is_empty() {
        return Ok(Composed::Refused(Refusal::Conflict { paths: unparsable }));
    }
    Ok(Composed::Ready { to, footprint: mine })
}

/// The conflicts of `mine` with `theirs` that refuse, as current settles it.
fn stale(
    footprinter: &Footprinter,
    objects: &Objects,
    base: Option<Oid>,
    judge: Judge,
    [(mine, my_tip), (theirs, their_tip)]: [(&Footprint, Oid); 2],
) -> Result<Vec<Conflict>, StoreError> {
    let mut found = match judge {
        Judge::Names => conflicts_by_name(mine, theirs),
        Judge::Resolved => {
            let around = footprinter.around(objects, base).with_sides(my_tip, their_tip);
            let found = conflicts(mine, theirs, &around);
            around.finish()?;
            found
        }
    };
    found.retain(|found| found.weight == Weight::Refuses && found.prose() == Prose::Stands);
    Ok(found)
}

/// Moves current and mainline to what was composed, if they still stand where it was composed on.
pub(crate) fn land(
    actor: &mut Actor,
    landing: &Landing,
    mut composed: Quarantine,
) -> Result<Landed, RefereeError> {
    if actor.suspect {
        return Err(RefereeError::Suspect);
    }
    if actor.view.current != Some(landing.from) {
        return Ok(Landed::Moved);
    }
    if let Some(Strayed(mainline)) = actor.view.diverged {
        let current = landing.from;
        return Ok(Landed::Refused(Refusal::Diverged { mainline, current }));
    }
    let store = Arc::clone(&actor.store);
    let now = actor.clock.now();
    let agent = landing.agent.as_ref();
    let holders = actor.view.fences_against(agent, &landing.footprint, now.monotonic);
    if actor.view.settings.bind == Policy::Refuse && !holders.is_empty() {
        return Ok(Landed::Refused(Refusal::Fenced { holders }));
    }
    let plan = Plan::landing(actor, landing, &mut composed, now)?;
    let mut draft = Draft::new(millis(now), landing.principal.as_str(), Origin::Referee);
    draft.agent = agent.map(|agent| agent.as_str().into()).unwrap_or_default();
    let entry = log_entry(Some(&landing.committer), now);
    match store.prepare_logged(&plan.ref_updates(), &[&composed.objects()], Some(entry)) {
        Ok(prepared) => {
            let (by, none) = (Some(&landing.committer), BTreeSet::new());
            commit(actor, by, draft, prepared, vec![composed], &none)?;
        }
        Err(PrepareError::Store(error)) => return Err(error.into()),
        Err(PrepareError::Refused(refused)) => return landing_refused(actor, &plan, refused),
    }
    let done = plan.apply(actor, None, now);
    Ok(Landed::Done { released: done.released })
}

/// The commit that composes a change: its author and intent, current as first parent, the change as second.
fn compose_commit(
    composed: &mut Quarantine,
    change: &Commit,
    tree: Oid,
    from: Oid,
    commit: Oid,
    now: Now,
) -> Result<Oid, StoreError> {
    let committer = signature(now);
    let author = Signature { time: now.wall, offset_minutes: 0, ..change.author.clone() };
    let subject = change.message.lines().next().unwrap_or_default().to_str_lossy().into_owned();
    let message = format!("Land {}: {subject}\n", commit.short());
    composed.commit_tree(tree, &[from, commit], &author, &committer, message)
}

/// Files that both sides changed and whose composition does not parse although current's version does.
fn no_longer_parse(
    footprinter: &Footprinter,
    objects: &Objects,
    from: Oid,
    to: Oid,
    mine: &Footprint,
    theirs: &Footprint,
) -> Result<Vec<String>, StoreError> {
    let path_of = |footprint: &Footprint, path: &str| {
        footprint.writes.keys().any(|resource| resource.path() == path)
    };
    let composed = footprinter.between(objects, Some(from), to)?;
    Ok(composed
        .fallbacks
        .iter()
        .filter(|(file, fallback)| {
            **fallback == Fallback::DoesNotParse
                && path_of(mine, file.path())
                && path_of(theirs, file.path())
                && !mine.fallbacks.contains_key(*file)
                && !theirs.fallbacks.contains_key(*file)
        })
        .map(|(file, _)| file.to_string())
        .collect())
}

/// Which commit of current's line wrote what, newest first.
struct Landers(Vec<(Oid, String, Arc<Footprint>)>);

/// How many landed commits are looked through for the one that wrote a unit.
const MAX_LANDERS: usize = 100;

impl Landers {
    /// The first-parent line from `from` back to `base`.
    fn since(
        objects: &Objects,
        footprinter: &Footprinter,
        base: Option<Oid>,
        from: Oid,
    ) -> Result<Self, StoreError> {
        let mut landers = Vec::new();
        let mut at = Some(from);
        while let Some(commit_id) = at.filter(|at| Some(*at) != base && landers.len() < MAX_LANDERS)
        {
            let commit = objects.commit(commit_id)?;
            let parent = commit.parents.first().copied();
            let footprint = footprinter.between(objects, parent, commit_id)?;
            landers.push((commit_id, commit.author.name.to_str_lossy().into_owned(), footprint));
            at = parent;
        }
        Ok(Self(landers))
    }

    fn writer(&self, resource: &Resource) -> Option<(Oid, String)> {
        self.0
            .iter()
            .find(|(_, _, footprint)| footprint.writes.keys().any(|w| w.overlaps(resource)))
            .map(|(commit, author, _)| (*commit, author.clone()))
    }
}
