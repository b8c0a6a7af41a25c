//! Plans: everything that one ref transaction does, and what it changes in the view once the refs have moved.
//!
//! A plan is made from a verdict's steps, from a landing, or from what stock git did to the mainline. Making one writes
//! documents into a quarantine and moves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zit_model::refs::Address;
use zit_model::settings::Settings;
use zit_model::{AgentId, ItemId, Now, Oid, RefChange, RefName, RefUpdate, Resource, refs};
use zit_store::{Objects, Quarantine, StoreError};

use crate::actor::Actor;
use crate::documents::{claim_document, standing, state_document};
use crate::forms::{Forms, Lander};
use crate::landing::Landing;
use crate::open;
use crate::push::{Push, Study};
use crate::verdict::{Decision, Grant, ItemStep, Step, Verdict};
use crate::view::{AgentRecord, Claim, OpenItem};

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

/// Which part of the push a ref update belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command with this index.
    Command(usize),
    /// The option with this index.
    Wish(usize),
    /// The state of an agent that the push touches.
    State(AgentId),
    /// The published footprint of a head.
    Footprint(Oid),
    /// What moves with current.
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

impl<'a> Ground<'a> {
    /// What was learned of the commit that a part of the push brings.
    fn study(&self, origin: &Origin) -> Option<&'a Study> {
        match origin {
            Origin::Command(n) => self.push.commands.get(*n)?.study.as_ref(),
            Origin::Wish(_) | Origin::State(_) | Origin::Footprint(_) | Origin::Landing => None,
        }
    }
}

/// What changes in the view once the refs have moved.
enum Effect {
    Item(RefName, Option<OpenItem>),
    Claim(String, Option<Claim>),
    Renew(String),
    Current(Oid, Settings),
    State(AgentId, Oid),
    Footprint(Oid, Option<Oid>),
}

/// Everything that one transaction does.
#[derive(Default)]
pub(crate) struct Plan {
    updates: Vec<(Origin, RefUpdate)>,
    effects: Vec<Effect>,
    done: CarriedOut,
    agents: BTreeMap<AgentId, AgentRecord>,
    /// Intents whose work has landed or was given up.
    ended: BTreeSet<(AgentId, String)>,
    needs_pack: bool,
    moves_mainline: bool,
}

impl Plan {
    /// The plan of what a verdict says is to be done.
    pub(crate) fn of(
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
        plan.publish(actor, Some(push), made)?;
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
        let Ground { actor, objects, now, .. } = *ground;
        match step {
            Step::Update { update, item } => {
                self.item(ground, &origin, update, item);
                self.update(origin, update.clone());
            }
            Step::Forward { mainline, current } => {
                self.moves_mainline = true;
                self.needs_pack = true;
                let agent = pusher(ground, &origin);
                let study = ground.study(&origin);
                let by = agent.as_ref().zip(study);
                let by = by.map(|(agent, study)| Lander { agent, footprint: &study.footprint });
                self.updates.push((origin, mainline.clone()));
                if let Some(to) = current.change.new_value() {
                    self.advance(actor, current.clone(), to, by, objects)?;
                }
            }
            Step::Grant(grant) => {
                let key = grant.record.resource.key();
                let oid = claim_document(grant, made, now)?;
                for (key, old) in &grant.supersedes {
                    self.end_claim(key, *old, origin.clone());
                }
                // What this push ended to make room for another of its claims, it may also take.
                let name = refs::claim(&key);
                self.updates.retain(|(_, update)| update.name != name);
                if let Some(change) = RefChange::between(grant.expected, Some(oid)) {
                    self.updates.push((origin, RefUpdate { name: refs::claim(&key), change }));
                }
                self.effects.push(Effect::Claim(key, Some(standing(grant, oid, now))));
                self.done.granted.push((grant.clone(), oid));
            }
            Step::Renew { resource, .. } => self.effects.push(Effect::Renew(resource.key())),
            Step::Release { resource, oid } => {
                self.end_claim(&resource.key(), *oid, origin);
            }
            Step::Tell | Step::Handled(_) => {}
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
        let agent = landing.agent.as_ref();
        let by = agent.map(|agent| Lander { agent, footprint: &landing.footprint });
        plan.advance(actor, current, landing.to, by, &made.objects())?;
        plan.publish(actor, None, made)?;
        plan.states(actor, made, now)?;
        Ok(plan)
    }

    /// Closes an item, and ends the claims that were made for it.
    fn close(&mut self, actor: &Actor, item: &OpenItem) {
        self.effects.push(Effect::Item(item.name.clone(), None));
        self.ended.extend(item.intent.clone().map(|intent| (item.agent.clone(), intent)));
        if let Some(record) = actor.view.agents.get(&item.agent) {
            self.meet(actor, &item.agent, &record.principal);
        }
        for key in claims_of_item(actor, item) {
            if let Some(claim) = actor.view.claims.get(&key)
                && self.end_claim(&key, claim.oid, Origin::Landing)
            {
                self.done.released.push(claim.record.resource.clone());
            }
        }
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
        plan.advance(actor, current, to, None, &made.objects())?;
        plan.publish(actor, None, made)?;
        plan.states(actor, made, now)?;
        Ok(plan)
    }

    /// The agents whose state this plan writes.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// Whether a ref will name what was pushed.
    pub(crate) fn needs_pack(&self) -> bool {
        self.needs_pack
    }

    /// Whether this plan moves the mainline by a direct push.
    pub(crate) fn moves_mainline(&self) -> bool {
        self.moves_mainline
    }

    /// Which part of a push the update at `index` belongs to.
    pub(crate) fn origin(&self, index: usize) -> Option<&Origin> {
        self.updates.get(index).map(|(origin, _)| origin)
    }

    /// Current moves to `to`: what has landed with it is no longer open, and its claims go with it.
    fn advance(
        &mut self,
        actor: &Actor,
        current: RefUpdate,
        to: Oid,
        by: Option<Lander<'_>>,
        objects: &Objects,
    ) -> Result<(), StoreError> {
        let from = current.change.old_value();
        self.updates.push((Origin::Landing, current));
        self.effects.push(Effect::Current(to, open::settings(objects, to)));
        let landed = self.landed(actor, from, to, by, objects)?;
        for item in &landed {
            self.end_recorded(actor, item)?;
            self.close(actor, item);
        }
        self.done.opened.retain(|opened| landed.iter().all(|item| item.name != opened.name));
        let stated = by.and_then(|by| {
            let intent = actor.view.agents.get(by.agent)?.intent.clone()?;
            Some((by.agent.clone(), intent))
        });
        self.ended.extend(stated);
        Ok(())
    }

    /// The open items that `to` brings into current, also in a later form, and the snapshots of their tasks that are no
    /// younger.
    ///
    /// # Source
    /// `spec/accept.md`, "After a landing".
    fn landed(
        &self,
        actor: &Actor,
        from: Option<Oid>,
        to: Oid,
        by: Option<Lander<'_>>,
        objects: &Objects,
    ) -> Result<Vec<OpenItem>, StoreError> {
        let items = self.items(actor);
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let new: BTreeSet<Oid> = match objects.commits_between(from, to) {
            Ok(commits) => commits.into_iter().collect(),
            Err(StoreError::TooManyCommits(_)) => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        let mut landed: BTreeMap<&RefName, OpenItem> = BTreeMap::new();
        for (name, item) in &items {
            // Past the bound of the list, each item is asked for on its own.
            if new.contains(&item.head) || new.is_empty() && objects.is_ancestor(item.head, to)? {
                landed.insert(name, (*item).clone());
            }
        }
        if let Some(by) = by {
            let now = |item: &OpenItem| self.done.opened.iter().any(|new| new.name == item.name);
            let others =
                items.values().filter(|item| !landed.contains_key(&item.name) && !now(item));
            let earlier = earlier_forms(by, others.copied(), new, to, objects)?;
            landed.extend(earlier.into_iter().map(|item| (&item.name, item.clone())));
        }
        for item in landed.values().cloned().collect::<Vec<_>>() {
            let wip = refs::wip(&item.agent, &item.item);
            let opened_now = self.done.opened.iter().any(|opened| opened.name == wip);
            if let Some((name, snapshot)) = items.get_key_value(&wip)
                && snapshot.pushed <= item.pushed
                && !opened_now
            {
                landed.insert(name, (*snapshot).clone());
            }
        }
        Ok(landed.into_values().collect())
    }

    /// Drops the ref of a change or snapshot that has landed; one that this very push records is not written at all.
    fn end_recorded(&mut self, actor: &Actor, item: &OpenItem) -> Result<(), StoreError> {
        match refs::address(&item.name) {
            Address::Change(_) | Address::Wip(..) => {}
            Address::Head
            | Address::Tag
            | Address::Other
            | Address::Current
            | Address::Claim(_)
            | Address::AgentState(_)
            | Address::Footprint(_)
            | Address::Request(_)
            | Address::Unknown => return Ok(()),
        }
        let planned = self.updates.iter().position(|(_, update)| update.name == item.name);
        match planned.map(|n| (n, self.updates[n].1.change)) {
            // What this very push records is not written at all, or goes instead of moving.
            Some((n, RefChange::Create { .. })) => drop(self.updates.remove(n)),
            Some((n, RefChange::Move { old, .. })) => {
                self.updates[n].1.change = RefChange::Delete { old };
            }
            None if actor.store.find_ref(&item.name)? == Some(item.head) => {
                self.end(item.name.clone(), item.head, Origin::Landing);
            }
            Some((_, RefChange::Delete { .. })) | None => {}
        }
        Ok(())
    }

    /// Deletes a claim's ref, unless this transaction does so already, or writes it; says whether it does.
    fn end_claim(&mut self, key: &str, old: Oid, origin: Origin) -> bool {
        let ends = self.end(refs::claim(key), old, origin);
        if ends {
            self.effects.push(Effect::Claim(key.to_owned(), None));
        }
        ends
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
                Effect::Claim(..)
                | Effect::Renew(_)
                | Effect::Current(..)
                | Effect::State(..)
                | Effect::Footprint(..) => {}
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
            ItemStep::Close => {
                self.effects.push(Effect::Item(update.name.clone(), None));
                let closed = actor.view.items.get(&update.name);
                let intent =
                    closed.and_then(|item| Some((item.agent.clone(), item.intent.clone()?)));
                self.ended.extend(intent);
            }
            ItemStep::Open { agent, item, intent } => {
                let study = ground.study(origin);
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
            record.intent.clone_from(&stated);
        }
        // What is said with a push of the mainline is said of what lands with it.
        let landed = stated.filter(|_| self.moves_mainline);
        self.ended.extend(landed.map(|intent| (agent.clone(), intent)));
    }

    /// Forgets the intents whose work has landed or was given up, unless the agent still has some open, or claimed, for the
    /// same: what it does next is something else until it says so.
    ///
    /// # Source
    /// `spec/options.md`, "Intent".
    fn end_intents(&mut self, actor: &Actor, now: Now) {
        for (agent, intent) in std::mem::take(&mut self.ended) {
            let known = self.agents.get(&agent).or_else(|| actor.view.agents.get(&agent));
            let Some(record) = known.filter(|record| record.intent.as_ref() == Some(&intent))
            else {
                continue;
            };
            if self.is_at_work(actor, &agent, &intent, now) {
                continue;
            }
            let principal = record.principal.clone();
            self.meet(actor, &agent, &principal);
            if let Some(record) = self.agents.get_mut(&agent) {
                record.intent = None;
            }
        }
    }

    /// Whether an open item or a live claim of the agent is for that intent, after what is planned so far.
    fn is_at_work(&self, actor: &Actor, agent: &AgentId, intent: &String, now: Now) -> bool {
        let is_for = |stated: &Option<String>| stated.as_ref() == Some(intent);
        let mut claims: BTreeMap<&String, &Claim> = actor.view.claims.of(agent).collect();
        for effect in &self.effects {
            match effect {
                Effect::Claim(key, Some(claim)) if claim.record.agent == *agent => {
                    claims.insert(key, claim);
                }
                Effect::Claim(key, _) => drop(claims.remove(key)),
                Effect::Item(..)
                | Effect::Renew(_)
                | Effect::Current(..)
                | Effect::State(..)
                | Effect::Footprint(..) => {}
            }
        }
        let mut live = claims.into_values().filter(|claim| claim.left(now.monotonic).is_some());
        self.items(actor).values().any(|item| item.agent == *agent && is_for(&item.intent))
            || live.any(|claim| is_for(&claim.record.intent))
    }

    /// Writes the state of every agent that this transaction touches.
    fn states(&mut self, actor: &Actor, made: &mut Quarantine, now: Now) -> Result<(), StoreError> {
        self.end_intents(actor, now);
        if self.agents.is_empty() {
            return Ok(());
        }
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

    /// Publishes the footprints of what opens, and removes those of what ends.
    ///
    /// # Source
    /// `spec/refs.md`, "Published footprints".
    fn publish(
        &mut self,
        actor: &Actor,
        push: Option<&Push>,
        made: &mut Quarantine,
    ) -> Result<(), StoreError> {
        let changes = {
            let touched = self.touched(actor);
            if touched.is_empty() && actor.view.footprints.adrift.is_empty() {
                return Ok(());
            }
            let items = self.items(actor);
            actor.view.footprints.changes(&touched, items.values().copied())
        };
        let pushed = push.into_iter().flat_map(|push| &push.commands);
        let documents: BTreeMap<Oid, &str> = pushed
            .filter_map(|command| Some((command.new?, command.document.as_deref()?)))
            .collect();
        for head in changes.publish {
            let Some(json) = documents.get(&head) else { continue };
            let blob = made.write_blob(json.as_bytes())?;
            self.footprint(head, RefChange::Create { new: blob });
        }
        for (head, old) in changes.remove {
            self.footprint(head, RefChange::Delete { old });
        }
        Ok(())
    }

    fn footprint(&mut self, head: Oid, change: RefChange) {
        let update = RefUpdate { name: refs::footprint(head), change };
        self.updates.push((Origin::Footprint(head), update));
        self.effects.push(Effect::Footprint(head, change.new_value()));
    }

    /// The heads of items that open, move or close.
    fn touched(&self, actor: &Actor) -> BTreeSet<Oid> {
        let mut touched = BTreeSet::new();
        for effect in &self.effects {
            if let Effect::Item(name, item) = effect {
                touched.extend(actor.view.items.get(name).map(|before| before.head));
                touched.extend(item.as_ref().map(|item| item.head));
            }
        }
        touched
    }

    /// The heads whose published footprints this plan writes or removes.
    pub(crate) fn footprints(&self) -> impl Iterator<Item = Oid> {
        self.updates.iter().filter_map(|(origin, _)| match origin {
            Origin::Footprint(head) => Some(*head),
            Origin::Command(_) | Origin::Wish(_) | Origin::State(_) | Origin::Landing => None,
        })
    }

    /// Brings the view up to what the refs now say. `adopts` is the mainline of a repository that had none.
    pub(crate) fn apply(self, actor: &mut Actor, adopts: Option<&RefName>, now: Now) -> CarriedOut {
        actor.view.agents.extend(self.agents);
        for effect in self.effects {
            match effect {
                Effect::Item(name, Some(item)) => drop(actor.view.items.insert(name, item)),
                Effect::Item(name, None) => drop(actor.view.items.remove(&name)),
                Effect::Claim(key, Some(claim)) => actor.view.claims.insert(key, claim),
                Effect::Claim(key, None) => actor.view.claims.remove(&key),
                Effect::Renew(key) => {
                    if let Some(claim) = actor.view.claims.get_mut(&key) {
                        claim.renewed = now.monotonic;
                    }
                }
                Effect::Current(oid, settings) => {
                    actor.view.current = Some(oid);
                    actor.view.settings = settings;
                    if actor.view.mainline.is_none() {
                        actor.view.mainline = adopts.cloned();
                    }
                }
                Effect::Footprint(head, blob) => actor.view.footprints.set(head, blob),
                Effect::State(agent, oid) => {
                    if let Some(record) = actor.view.agents.get_mut(&agent) {
                        record.state = Some(oid);
                    }
                }
            }
        }
        renew_touched(actor, &self.done.opened, now);
        self.done
    }
}

/// A push of the owner that touches a claim's item or resource starts its lease anew. Source: `spec/claims.md`, "Renew".
fn renew_touched(actor: &mut Actor, opened: &[OpenItem], now: Now) {
    if opened.is_empty() {
        return;
    }
    let claims = &mut actor.view.claims;
    for item in opened {
        let touches = |claim: &Claim| {
            let mut writes = item.footprint.writes.keys();
            claim.record.item == item.item
                || writes.any(|write| write.claim_overlaps(&claim.record.resource))
        };
        let live = claims
            .of(&item.agent)
            .filter(|(_, claim)| claim.left(now.monotonic).is_some() && touches(claim));
        let keys: Vec<String> = live.map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(claim) = claims.get_mut(&key) {
                claim.renewed = now.monotonic;
            }
        }
    }
}

/// The agent that pushes the mainline: the one that speaks, else the one that the commit's author stands for.
fn pusher(ground: &Ground<'_>, origin: &Origin) -> Option<AgentId> {
    let principal = &ground.push.speaker.principal;
    let owned = |agent: &AgentId| ground.actor.view.foreign_owner(agent, principal).is_none();
    let by_author = || ground.study(origin).and_then(|study| study.author.clone()).filter(owned);
    ground.push.speaker.agent.clone().or_else(by_author)
}

/// Which of `items` are the lander's, write some of the same, and are earlier forms of `new`, which current has at `to`.
fn earlier_forms<'a>(
    by: Lander<'_>,
    items: impl Iterator<Item = &'a OpenItem>,
    new: BTreeSet<Oid>,
    to: Oid,
    objects: &Objects,
) -> Result<Vec<&'a OpenItem>, StoreError> {
    let landed = &by.footprint.writes;
    let writes = |item: &OpenItem| {
        item.footprint.writes.keys().any(|write| landed.keys().any(|w| w.overlaps(write)))
    };
    let own: Vec<&OpenItem> =
        items.filter(|item| item.agent == *by.agent && writes(item)).collect();
    if own.is_empty() {
        return Ok(own);
    }
    let new = Forms::of(objects, new)?;
    // One that cannot be read is no form of anything, and stops nobody.
    let earlier = own.into_iter().filter(|item| new.end(objects, item.head, to).unwrap_or(false));
    Ok(earlier.collect())
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
        claim.record.item == item.item
            || Some(&claim.record.item) == unnamed.as_ref()
                && item.footprint.writes.keys().any(|w| w.claim_overlaps(&claim.record.resource))
    };
    let own = view.claims.of(&item.agent);
    own.filter(|(_, claim)| ends(claim)).map(|(key, _)| key.clone()).collect()
}
