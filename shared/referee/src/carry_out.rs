//! Carrying a verdict out: refs moved in one transaction, then the view brought up to date.
//!
//! Stages: a [`Plan`] is made of the verdict's steps; the store prepares it; objects become visible, refs move, and only
//! then the view changes. A ref that refuses turns its step into a refusal, what binds the others to it is applied again,
//! and the rest is planned anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use zit_model::refs::{self, Address};
use zit_model::{AgentId, Now, Oid, RefName, RefUpdate};
use zit_store::journal::{self, Draft};
use zit_store::{
    LogEntry, PrepareError, Prepared, Quarantine, RefusedUpdate, RefusedUpdates, Signature, Store,
    StoreError,
};

use crate::actor::Actor;
use crate::documents::signature;
use crate::error::RefereeError;
use crate::hooks::Voter;
use crate::judge::bind;
use crate::landing::Landed;
use crate::open;
use crate::plan::{CarriedOut, Origin, Plan};
use crate::push::Push;
use crate::signed::Signed;
use crate::speaker::Committer;
use crate::verdict::{Decision, Refusal, Step, Verdict};

/// How often refs that only the referee writes may turn out to have been moved by others before it gives up.
const MAX_ROUNDS: usize = 8;

/// Carries out what was not refused. The verdict that comes back names refusals that only the refs knew.
pub(crate) fn carry_out(
    actor: &mut Actor,
    push: &Push,
    mut verdict: Verdict,
    incoming: Option<Quarantine>,
    now: Now,
) -> Result<(Verdict, CarriedOut), RefereeError> {
    let store = Arc::clone(&actor.store);
    for _ in 0..MAX_ROUNDS {
        if verdict.steps().next().is_none() {
            return Ok((verdict, CarriedOut::default()));
        }
        let mut made = store.quarantine()?;
        let pushed = match &incoming {
            Some(incoming) => incoming.objects(),
            None => store.objects()?,
        };
        let plan = Plan::of(actor, push, &verdict, &pushed, &mut made, now)?;
        // Before the transaction: the store has one at a time, and HEAD is written in one of its own. A crash between
        // the two leaves HEAD at a branch to come, which the next first push makes right.
        if let Some(name) = push.adopts.as_ref().filter(|_| plan.moves_mainline()) {
            adopt(&store, name)?;
        }
        // Documents first: they are in memory, and looking for them elsewhere would read the packs' folder again.
        let updates = plan.ref_updates();
        let seen = [&made.objects(), &pushed];
        let entry = log_entry(Some(&push.committer), actor.clock.now());
        match store.prepare_logged(&updates, &seen, Some(entry)) {
            Ok(prepared) => {
                let mut incoming = incoming;
                let mut roots = push.roots(&verdict);
                if let Some(incoming) = incoming.as_mut().filter(|_| !roots.is_empty()) {
                    // What landed while hooks ran may go on where the pusher's history ends.
                    roots = incoming.unreached(roots)?;
                }
                let pack = incoming.filter(|_| plan.needs_pack() || push.signed.is_some());
                let objects = pack.into_iter().chain([made]).collect();
                let draft = draft(push, &plan, now);
                commit(actor, Some(&push.committer), draft, prepared, objects, &roots)?;
                let done = plan.apply(actor, push.adopts.as_ref(), now);
                return Ok((verdict, done));
            }
            Err(PrepareError::Refused(refused)) => {
                refuse_all(actor, &plan, refused, &mut verdict)?;
                verdict = bind(push, verdict);
            }
            Err(PrepareError::Store(error)) => return Err(error.into()),
        }
    }
    Err(RefereeError::Contended)
}

/// What the journal says of a push.
fn draft(push: &Push, plan: &Plan, now: Now) -> Draft {
    let mut draft = Draft::new(millis(now), push.principal(), journal::Origin::Push);
    let agent = push.speaker.agent.as_ref().or_else(|| plan.agents().next());
    draft.agent = agent.map(|agent| agent.as_str().into()).unwrap_or_default();
    draft.facts.extend(push.signed.as_ref().and_then(Signed::fact));
    draft
}

/// The time as the journal writes it.
pub(crate) fn millis(now: Now) -> u64 {
    now.wall.0.saturating_mul(1000)
}

/// Makes objects visible and moves refs; deferred ones with the next flush. From then on the repository's history ends at
/// `roots` too. The caller then brings the view up to date, which cannot fail.
///
/// Should the refs fail to move, what became of them is known only to the store: the view is rebuilt before it is
/// looked at again.
pub(crate) fn commit(
    actor: &mut Actor,
    committer: Option<&Committer>,
    draft: Draft,
    mut prepared: Prepared<'_>,
    mut objects: Vec<Quarantine>,
    roots: &BTreeSet<Oid>,
) -> Result<(), RefereeError> {
    let store = Arc::clone(&actor.store);
    let updates: Vec<RefUpdate> = prepared.updates().cloned().collect();
    prepared.end_at(roots)?;
    // Where it has something to say, the refs are not deferred, and are moved when this returns.
    let voter = Voter::ask(&store, committer, &updates, &mut objects)?;
    if let Err(error) = prepared.stage(draft, objects) {
        (actor.suspect, actor.lost) = (true, true);
        return Err(error.into());
    }
    voter.committed();
    Ok(())
}

/// What the logs of refs say of a move, as git's server says it, where the repository keeps logs.
pub(crate) fn log_entry(committer: Option<&Committer>, now: Now) -> LogEntry {
    let by = match committer {
        Some(committer) => Signature {
            name: committer.user.clone().into(),
            email: committer.email.clone().into(),
            ..signature(now)
        },
        None => signature(now),
    };
    LogEntry { by, message: "push".to_owned() }
}

/// Turns refusals of refs into refusals of what they were part of.
fn refuse_all(
    actor: &mut Actor,
    plan: &Plan,
    refused: RefusedUpdates,
    verdict: &mut Verdict,
) -> Result<(), StoreError> {
    for (index, refusal) in refused.0 {
        actor.suspect |= is_moved(&refusal) && is_the_referees(&refusal);
        match plan.origin(index) {
            Some(Origin::Command(n)) => refuse(verdict.commands.get_mut(*n), refusal),
            Some(Origin::Wish(n)) => refuse(verdict.options.get_mut(*n).map(|(_, d)| d), refusal),
            Some(Origin::State(agent)) if is_moved(&refusal) => reload_state(actor, agent)?,
            Some(Origin::Footprint(head)) if is_moved(&refusal) => reload_footprint(actor, *head)?,
            // Without its agent's state or its footprint, nothing of the push can be carried out.
            Some(Origin::State(_) | Origin::Footprint(_)) => {
                let options = verdict.options.iter_mut().map(|(_, decision)| decision);
                for decision in verdict.commands.iter_mut().chain(options) {
                    if matches!(decision, Decision::Do(_)) {
                        refuse(Some(decision), refusal.clone());
                    }
                }
            }
            // What moves with current was asked for by the push of the mainline.
            Some(Origin::Landing) | None => {
                let forward = |d: &&mut Decision| matches!(d, Decision::Do(Step::Forward { .. }));
                refuse(verdict.commands.iter_mut().find(forward), refusal);
            }
        }
    }
    Ok(())
}

/// Whether the ref holds something else than it was to, so that it is worth looking again.
fn is_moved(refusal: &RefusedUpdate) -> bool {
    match refusal {
        RefusedUpdate::Exists { .. }
        | RefusedUpdate::Missing { .. }
        | RefusedUpdate::Stale { .. } => true,
        RefusedUpdate::NameConflict { .. }
        | RefusedUpdate::Locked { .. }
        | RefusedUpdate::MissingObject { .. }
        | RefusedUpdate::NotACommit { .. }
        | RefusedUpdate::Duplicate { .. }
        | RefusedUpdate::Symbolic { .. }
        | RefusedUpdate::Broken { .. } => false,
    }
}

/// Whether only the referee writes the ref, and the view says what it holds: elsewhere, it was moved by others, and the
/// view is out of date.
fn is_the_referees(refusal: &RefusedUpdate) -> bool {
    matches!(refs::address(refusal.name()), Address::Claim(_) | Address::Current)
}

fn refuse(decision: Option<&mut Decision>, refusal: RefusedUpdate) {
    if let Some(decision) = decision {
        *decision = Decision::Refuse(Refusal::Ref(refusal));
    }
}

/// What it means for a landing that refs refused. One that others moved is looked at again; anything else stands.
pub(crate) fn landing_refused(
    actor: &mut Actor,
    plan: &Plan,
    refused: RefusedUpdates,
) -> Result<Landed, RefereeError> {
    actor.suspect |= refused.0.iter().any(|(_, r)| is_moved(r) && is_the_referees(r));
    if let Some((_, refusal)) = refused.0.into_iter().find(|(_, refusal)| !is_moved(refusal)) {
        return Ok(Landed::Refused(Refusal::Ref(refusal)));
    }
    reload_states(actor, plan)?;
    actor.refresh()?;
    Ok(Landed::Moved)
}

/// Looks again at the states and footprints that a plan writes: others may have moved their refs.
pub(crate) fn reload_states(actor: &mut Actor, plan: &Plan) -> Result<(), StoreError> {
    plan.footprints().try_for_each(|head| reload_footprint(actor, head))?;
    plan.agents().try_for_each(|agent| reload_state(actor, agent))
}

/// What the ref of a published footprint holds now is what the next round replaces or removes.
fn reload_footprint(actor: &mut Actor, head: Oid) -> Result<(), StoreError> {
    let found = actor.store.find_ref(&refs::footprint(head))?;
    actor.view.footprints.set(head, found);
    Ok(())
}

/// A state ref that others moved: what it holds now is what the next round replaces, and who owns the agent.
fn reload_state(actor: &mut Actor, agent: &AgentId) -> Result<(), StoreError> {
    let Some(found) = actor.store.find_ref(&refs::agent_state(agent))? else {
        if let Some(record) = actor.view.agents.get_mut(agent) {
            record.state = None;
        }
        return Ok(());
    };
    let objects = actor.store.objects()?;
    let record = open::agent_record(&objects, agent, found);
    actor.view.agents.entry(agent.clone()).or_insert(record).state = Some(found);
    Ok(())
}

/// Makes a branch the mainline of a repository that had none: a clone then checks it out.
fn adopt(store: &Store, name: &RefName) -> Result<(), StoreError> {
    if open::head_target(store)?.as_ref() != Some(name) {
        store.set_head(name)?;
    }
    Ok(())
}
