//! Carrying a verdict out: documents written, refs moved in one transaction, the view brought up to date.
//!
//! Stages: [`Plan::of`] turns steps into ref updates and effects on the view; the store prepares them all; objects become
//! visible, refs move, and only then the view changes. A ref that refuses turns its step into a refusal, what binds the
//! others to it is applied again, and the rest is planned anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zit_model::document::{AgentState, CLAIM_FILE, ClaimRecord, ItemState, STATE_FILE};
use zit_model::refs::Address;
use zit_model::{AgentId, ItemId, Now, Oid, RefChange, RefName, RefUpdate, Resource, refs};
use zit_store::{
    Objects, PrepareError, Quarantine, RefusedUpdate, RefusedUpdates, Signature, Store, StoreError,
};

use crate::actor::Actor;
use crate::error::RefereeError;
use crate::judge::bind;
use crate::landing::{Landed, Landing};
use crate::open;
use crate::push::Push;
use crate::verdict::{Decision, Grant, ItemStep, Refusal, Step, Verdict};
use crate::view::{AgentRecord, Claim, OpenItem};

/// How often refs that only the referee writes may turn out to have been moved by others before it gives up.
const MAX_ROUNDS: usize = 8;

/// What was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct CarriedOut {
    /// Items that this push opened or moved.
    pub(crate) opened: Vec<OpenItem>,
    /// Claims written, with the value of their refs.
    pub(crate) granted: Vec<(Grant, Oid)>,
    /// Claims that ended because what they were for has landed.
    pub(crate) released: Vec<Resource>,
}

impl CarriedOut {
    /// The agent of the opened items, for a push whose agent is its commits' author.
    pub(crate) fn author(&self) -> Option<AgentId> {
        self.opened.first().map(|item| item.agent.clone())
    }
}

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
        let written = made.objects();
        // Before the transaction: the store has one at a time, and HEAD is written in one of its own. A crash between
        // the two leaves HEAD at a branch to come, which the next first push makes right.
        if let Some(name) = push.adopts.as_ref().filter(|_| plan.adopts) {
            adopt(&store, name)?;
        }
        match store.prepare_seeing(&plan.ref_updates(), &[&pushed, &written]) {
            Ok(prepared) => {
                if let Some(epoch) = plan.highest_epoch {
                    actor.epochs.reserve(epoch)?;
                }
                if let Some(incoming) = incoming.filter(|_| plan.needs_pack) {
                    incoming.migrate()?;
                }
                made.migrate()?;
                prepared.commit()?;
                let done = plan.apply(actor, push.adopts.as_ref(), now)?;
                return Ok((verdict, done));
            }
            Err(PrepareError::Refused(refused)) => {
                for (index, refusal) in refused.0 {
                    match plan.updates.get(index).map(|(origin, _)| origin) {
                        Some(Origin::Command(n)) => refuse(verdict.commands.get_mut(*n), refusal),
                        Some(Origin::Wish(n)) => {
                            refuse(verdict.options.get_mut(*n).map(|(_, d)| d), refusal);
                        }
                        Some(Origin::State(agent)) => reload_state(actor, agent)?,
                        Some(Origin::Landing) | None => {}
                    }
                }
                verdict = bind(push, verdict);
            }
            Err(PrepareError::Store(error)) => return Err(error.into()),
        }
    }
    Err(RefereeError::Contended)
}

fn refuse(decision: Option<&mut Decision>, refusal: RefusedUpdate) {
    if let Some(decision) = decision {
        *decision = Decision::Refuse(Refusal::Ref(refusal));
    }
}

/// A state ref that others moved: what it holds now is what the next round replaces.
fn reload_state(actor: &mut Actor, agent: &AgentId) -> Result<(), StoreError> {
    let found = actor.store.find_ref(&refs::agent_state(agent))?;
    if let Some(record) = actor.view.agents.get_mut(agent) {
        record.state = found;
    }
    Ok(())
}

/// Makes a branch the mainline of a repository that had none: a clone then checks it out.
fn adopt(store: &Store, name: &RefName) -> Result<(), StoreError> {
    if open::head_target(store)?.as_ref() != Some(name) {
        store.set_head(name)?;
    }
    Ok(())
}

/// Which part of the push a ref update belongs to.
#[derive(Clone)]
enum Origin {
    Command(usize),
    Wish(usize),
    State(AgentId),
    Landing,
}

/// What planning looks at.
struct Ground<'a> {
    actor: &'a Actor,
    push: &'a Push,
    /// The pushed objects, and the repository's.
    objects: &'a Objects,
    now: Now,
}

/// What changes in the view once the refs have moved.
enum Effect {
    Item(RefName, Option<OpenItem>),
    Claim(String, Option<Claim>),
    Renew(String),
    Current(Oid),
    State(AgentId, Oid),
}

/// Everything that one transaction does.
#[derive(Default)]
pub(crate) struct Plan {
    updates: Vec<(Origin, RefUpdate)>,
    effects: Vec<Effect>,
    done: CarriedOut,
    agents: BTreeMap<AgentId, AgentRecord>,
    highest_epoch: Option<u64>,
    needs_pack: bool,
    adopts: bool,
}

impl Plan {
    fn of(
        actor: &Actor,
        push: &Push,
        verdict: &Verdict,
        objects: &Objects,
        made: &mut Quarantine,
        now: Now,
    ) -> Result<Self, StoreError> {
        let mut plan = Self::default();
        let ground = Ground { actor, push, objects, now };
        let decisions = verdict.commands.iter().enumerate().map(|(n, d)| (Origin::Command(n), d));
        let options = verdict.options.iter().enumerate().map(|(n, (_, d))| (Origin::Wish(n), d));
        let steps = decisions.chain(options).filter_map(|(origin, decision)| match decision {
            Decision::Do(step) => Some((origin, step)),
            Decision::Nothing(_) | Decision::Refuse(_) => None,
        });
        // What moves the mainline comes last: it closes also what this very push opens.
        let (forward, others): (Vec<_>, Vec<_>) =
            steps.partition(|(_, step)| matches!(step, Step::Forward { .. }));
        for (origin, step) in others.into_iter().chain(forward) {
            plan.step(&ground, origin, step, made)?;
        }
        plan.meet_speaker(actor, push);
        plan.states(actor, made, now)?;
        Ok(plan)
    }

    fn step(
        &mut self,
        ground: &Ground<'_>,
        origin: Origin,
        step: &Step,
        made: &mut Quarantine,
    ) -> Result<(), StoreError> {
        let Ground { actor, push, objects, now } = *ground;
        match step {
            Step::Update { update, item } => {
                self.item(ground, &origin, update, item);
                self.update(origin, update.clone());
            }
            Step::Forward { mainline, current } => {
                self.adopts = true;
                self.needs_pack = true;
                self.updates.push((origin, mainline.clone()));
                if let Some(to) = current.change.new_value() {
                    self.advance(actor, current.clone(), to, objects)?;
                }
            }
            Step::Grant(grant) => {
                let key = grant.resource.key();
                let oid = claim_document(grant, made, now)?;
                for (key, old) in &grant.supersedes {
                    self.end_claim(key, *old, origin.clone());
                }
                if let Some(change) = RefChange::between(grant.expected, Some(oid)) {
                    self.updates.push((origin, RefUpdate { name: refs::claim(&key), change }));
                }
                self.highest_epoch = self.highest_epoch.max(Some(grant.epoch));
                self.effects.push(Effect::Claim(key, Some(standing(grant, oid, now))));
                self.done.granted.push((grant.clone(), oid));
                self.meet(actor, &grant.agent, push.principal());
            }
            Step::Renew { resource, .. } => self.effects.push(Effect::Renew(resource.key())),
            Step::Release { resource, oid } => {
                self.end_claim(&resource.key(), *oid, origin);
            }
            Step::Tell => {}
            Step::Land { record, .. } => {
                if let Some((update, item)) = record {
                    self.item(ground, &origin, update, item);
                    self.update(origin, update.clone());
                }
            }
        }
        Ok(())
    }

    /// The ref updates alone, in the plan's order.
    pub(crate) fn ref_updates(&self) -> Vec<RefUpdate> {
        self.updates.iter().map(|(_, update)| update.clone()).collect()
    }

    /// A plan that moves current and mainline, drops the landed change's ref, and closes what has landed with it.
    pub(crate) fn landing(
        actor: &Actor,
        landing: &Landing,
        made: &mut Quarantine,
        now: Now,
    ) -> Result<Self, StoreError> {
        let mut plan = Self { needs_pack: true, ..Self::default() };
        let change = RefChange::Move { old: landing.from, new: landing.to };
        if let Some(name) = actor.view.mainline.clone() {
            plan.updates.push((Origin::Landing, RefUpdate { name, change }));
        }
        let name = refs::change(landing.commit);
        if actor.store.find_ref(&name)? == Some(landing.commit) {
            plan.end(name, landing.commit, Origin::Landing);
        }
        let current = RefUpdate { name: refs::current(), change };
        plan.advance(actor, current, landing.to, &made.objects())?;
        plan.states(actor, made, now)?;
        Ok(plan)
    }

    /// A plan that takes current to where stock git moved the mainline, and closes what has landed with it.
    pub(crate) fn following(
        actor: &Actor,
        current: RefUpdate,
        to: Oid,
        made: &mut Quarantine,
        now: Now,
    ) -> Result<Self, StoreError> {
        let mut plan = Self::default();
        plan.advance(actor, current, to, &made.objects())?;
        plan.states(actor, made, now)?;
        Ok(plan)
    }

    /// What it means for a landing that refs refused. One that others moved is looked at again; anything else stands.
    pub(crate) fn refused(
        self,
        actor: &mut Actor,
        refused: RefusedUpdates,
    ) -> Result<Landed, RefereeError> {
        for (_, refusal) in refused.0 {
            match refusal {
                RefusedUpdate::Exists { .. }
                | RefusedUpdate::Missing { .. }
                | RefusedUpdate::Stale { .. } => {}
                RefusedUpdate::NameConflict { .. }
                | RefusedUpdate::Locked { .. }
                | RefusedUpdate::MissingObject { .. }
                | RefusedUpdate::NotACommit { .. }
                | RefusedUpdate::Duplicate { .. }
                | RefusedUpdate::Symbolic { .. }
                | RefusedUpdate::Broken { .. } => {
                    return Ok(Landed::Refused(Refusal::Ref(refusal)));
                }
            }
        }
        self.reload_states(actor)?;
        actor.refresh()?;
        Ok(Landed::Moved)
    }

    /// Looks again at the state refs that this plan writes: others may have moved them.
    pub(crate) fn reload_states(&self, actor: &mut Actor) -> Result<(), StoreError> {
        self.agents.keys().try_for_each(|agent| reload_state(actor, agent))
    }

    /// Current moves to `to`: items whose head it contains have landed, and their claims go with them.
    fn advance(
        &mut self,
        actor: &Actor,
        current: RefUpdate,
        to: Oid,
        objects: &Objects,
    ) -> Result<(), StoreError> {
        self.updates.push((Origin::Landing, current));
        self.effects.push(Effect::Current(to));
        let mut landed = Vec::new();
        for item in self.items(actor).into_values() {
            if objects.is_ancestor(item.head, to)? {
                landed.push(item.clone());
            }
        }
        let mut going = BTreeSet::new();
        for item in &landed {
            self.effects.push(Effect::Item(item.name.clone(), None));
            let principal = actor.view.agents.get(&item.agent).map(|r| r.principal.clone());
            self.meet(actor, &item.agent, principal.as_deref().unwrap_or_default());
            if let Address::Change(commit) = refs::address(&item.name)
                && actor.store.find_ref(&item.name)? == Some(commit)
            {
                self.end(item.name.clone(), commit, Origin::Landing);
            }
            going.extend(claims_of_item(actor, item));
        }
        self.done.opened.retain(|opened| landed.iter().all(|item| item.name != opened.name));
        for key in going {
            if let Some(claim) = actor.view.claims.get(&key) {
                self.done.released.push(claim.resource.clone());
                self.end_claim(&key, claim.oid, Origin::Landing);
            }
        }
        Ok(())
    }

    /// Deletes a claim's ref, unless this transaction does so already, or writes it.
    fn end_claim(&mut self, key: &str, old: Oid, origin: Origin) {
        if self.end(refs::claim(key), old, origin) {
            self.effects.push(Effect::Claim(key.to_owned(), None));
        }
    }

    /// Deletes a ref that this transaction does not touch yet; says whether that is so.
    fn end(&mut self, name: RefName, old: Oid, origin: Origin) -> bool {
        let untouched = self.updates.iter().all(|(_, update)| update.name != name);
        if untouched {
            self.updates.push((origin, RefUpdate { name, change: RefChange::Delete { old } }));
        }
        untouched
    }

    /// Open items as they stand after what is planned so far.
    fn items<'a>(&'a self, actor: &'a Actor) -> BTreeMap<&'a RefName, &'a OpenItem> {
        let mut items: BTreeMap<&RefName, &OpenItem> = actor.view.items.iter().collect();
        for effect in &self.effects {
            match effect {
                Effect::Item(name, Some(item)) => drop(items.insert(name, item)),
                Effect::Item(name, None) => drop(items.remove(name)),
                Effect::Claim(..) | Effect::Renew(_) | Effect::Current(_) | Effect::State(..) => {}
            }
        }
        items
    }

    fn update(&mut self, origin: Origin, update: RefUpdate) {
        self.needs_pack |= update.change.new_value().is_some();
        self.updates.push((origin, update));
    }

    fn item(&mut self, ground: &Ground<'_>, origin: &Origin, update: &RefUpdate, step: &ItemStep) {
        let Ground { actor, push, now, .. } = *ground;
        let before = actor.view.items.get(&update.name).map(|item| item.agent.clone());
        match step {
            ItemStep::None => return,
            ItemStep::Close => self.effects.push(Effect::Item(update.name.clone(), None)),
            ItemStep::Open { agent, item, intent } => {
                let study = match origin {
                    Origin::Command(n) => push.commands.get(*n).and_then(|c| c.study.as_ref()),
                    Origin::Wish(_) | Origin::State(_) | Origin::Landing => None,
                };
                let (Some(head), Some(study)) = (update.change.new_value(), study) else { return };
                let open = OpenItem {
                    agent: agent.clone(),
                    item: item.clone(),
                    intent: intent.clone(),
                    name: update.name.clone(),
                    head,
                    footprint: Arc::clone(&study.footprint),
                    pushed: now.monotonic,
                };
                self.done.opened.push(open.clone());
                self.effects.push(Effect::Item(update.name.clone(), Some(open)));
                self.meet(actor, agent, push.principal());
            }
        }
        // The item's former agent has one item less: its state is written again too.
        if let Some(agent) = before {
            self.meet(actor, &agent, push.principal());
        }
    }

    /// Makes sure that an agent's state is written with this transaction.
    fn meet(&mut self, actor: &Actor, agent: &AgentId, principal: &str) {
        self.agents.entry(agent.clone()).or_insert_with(|| {
            actor.view.agents.get(agent).cloned().unwrap_or_else(|| AgentRecord {
                principal: principal.to_owned(),
                intent: None,
                state: None,
            })
        });
    }

    /// The first word of an agent, and each new intent, are remembered.
    fn meet_speaker(&mut self, actor: &Actor, push: &Push) {
        let Some(agent) = &push.speaker.agent else { return };
        let known = actor.view.agents.get(agent);
        let stated = push.options.intent.clone();
        let news = stated.is_some() && known.is_none_or(|record| record.intent != stated);
        if known.is_none() || news {
            self.meet(actor, agent, push.principal());
        }
        if let Some(record) = self.agents.get_mut(agent).filter(|_| news) {
            record.intent = stated;
        }
    }

    /// Writes the state of every agent that this transaction touches.
    fn states(&mut self, actor: &Actor, made: &mut Quarantine, now: Now) -> Result<(), StoreError> {
        let items = self.items(actor);
        let mut written = Vec::new();
        for (agent, record) in &self.agents {
            let oid = state_document(agent, record, items.values().copied(), made, now)?;
            written.push((agent.clone(), record.state, oid));
        }
        for (agent, old, new) in written {
            if let Some(change) = RefChange::between(old, Some(new)) {
                let update = RefUpdate { name: refs::agent_state(&agent), change };
                self.updates.push((Origin::State(agent.clone()), update));
            }
            self.effects.push(Effect::State(agent, new));
        }
        Ok(())
    }

    /// Brings the view up to what the refs now say. `adopts` is the mainline of a repository that had none.
    pub(crate) fn apply(
        self,
        actor: &mut Actor,
        adopts: Option<&RefName>,
        now: Now,
    ) -> Result<CarriedOut, StoreError> {
        actor.view.agents.extend(self.agents);
        for effect in self.effects {
            match effect {
                Effect::Item(name, Some(item)) => drop(actor.view.items.insert(name, item)),
                Effect::Item(name, None) => drop(actor.view.items.remove(&name)),
                Effect::Claim(key, Some(claim)) => drop(actor.view.claims.insert(key, claim)),
                Effect::Claim(key, None) => drop(actor.view.claims.remove(&key)),
                Effect::Renew(key) => {
                    if let Some(claim) = actor.view.claims.get_mut(&key) {
                        claim.renewed = now.monotonic;
                    }
                }
                Effect::Current(oid) => {
                    actor.view.current = Some(oid);
                    actor.view.settings = open::settings(&actor.store, Some(oid))?;
                    if actor.view.mainline.is_none() {
                        actor.view.mainline = adopts.cloned();
                    }
                }
                Effect::State(agent, oid) => {
                    if let Some(record) = actor.view.agents.get_mut(&agent) {
                        record.state = Some(oid);
                    }
                }
            }
        }
        actor.view.next_epoch = actor.epochs.peek();
        renew_touched(actor, &self.done.opened, now);
        Ok(self.done)
    }
}

/// A push of the owner that touches a claim's item or resource starts its lease anew. Source: `spec/claims.md`, "Renew".
fn renew_touched(actor: &mut Actor, opened: &[OpenItem], now: Now) {
    for claim in actor.view.claims.values_mut() {
        let touches = |item: &OpenItem| {
            item.agent == claim.agent
                && (item.item == claim.item
                    || item.footprint.writes.keys().any(|w| w.claim_overlaps(&claim.resource)))
        };
        if claim.left(now.monotonic).is_some() && opened.iter().any(touches) {
            claim.renewed = now.monotonic;
        }
    }
}

fn claim_document(grant: &Grant, made: &mut Quarantine, now: Now) -> Result<Oid, StoreError> {
    let json = record(grant).to_json(now.wall);
    made.write_document_commit(CLAIM_FILE, &json, &[], "zit: claim\n", &signature(now))
}

fn record(grant: &Grant) -> ClaimRecord {
    ClaimRecord {
        resource: grant.resource.clone(),
        agent: grant.agent.clone(),
        item: grant.item.clone(),
        intent: grant.intent.clone(),
        lease: grant.lease,
        epoch: grant.epoch,
    }
}

fn standing(grant: &Grant, oid: Oid, now: Now) -> Claim {
    Claim {
        resource: grant.resource.clone(),
        agent: grant.agent.clone(),
        item: grant.item.clone(),
        intent: grant.intent.clone(),
        lease: grant.lease,
        epoch: grant.epoch,
        oid,
        renewed: now.monotonic,
    }
}

/// Writes an agent's state with those of `items` that are its own.
pub(crate) fn state_document<'a>(
    agent: &AgentId,
    record: &AgentRecord,
    items: impl Iterator<Item = &'a OpenItem>,
    made: &mut Quarantine,
    now: Now,
) -> Result<Oid, StoreError> {
    let state = AgentState {
        agent: agent.clone(),
        principal: record.principal.clone(),
        intent: record.intent.clone(),
        items: items
            .filter(|item| item.agent == *agent)
            .map(|item| ItemState {
                id: item.item.clone(),
                intent: item.intent.clone(),
                name: item.name.clone(),
                head: item.head,
            })
            .collect(),
    };
    let json = state.to_json(now.wall);
    made.write_document_commit(STATE_FILE, &json, &[], "zit: state\n", &signature(now))
}

/// The referee as author and committer.
pub(crate) fn signature(now: Now) -> Signature {
    let (name, email) = ("zit".into(), "zit@localhost".into());
    Signature { name, email, time: now.wall, offset_minutes: 0 }
}

/// The keys of the claims that end when an item lands: those made for the item, and those made for no item in
/// particular on what it writes.
///
/// # Source
/// `spec/claims.md`, "Release".
fn claims_of_item(actor: &Actor, item: &OpenItem) -> Vec<String> {
    let view = &actor.view;
    let unnamed = view.mainline.as_ref().map(|name| ItemId::default_for(&item.agent, name));
    let ends = |claim: &Claim| {
        claim.item == item.item
            || Some(&claim.item) == unnamed.as_ref()
                && item.footprint.writes.keys().any(|w| w.claim_overlaps(&claim.resource))
    };
    let own = view.claims.iter().filter(|(_, claim)| claim.agent == item.agent);
    own.filter(|(_, claim)| ends(claim)).map(|(key, _)| key.clone()).collect()
}
