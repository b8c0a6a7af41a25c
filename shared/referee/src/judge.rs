//! The judgement of a push: a pure function of the push, the view and the present.
//!
//! Stages: each command on its own ([`Judge::command`]), each option on its own ([`Judge::wish`]), then what one
//! refusal means for the others ([`bind`]).

use std::collections::{BTreeMap, BTreeSet};

use zit_model::document::{ClaimRecord, ClaimRequest, MAX_ITEMS};
use zit_model::settings::Tags;
use zit_model::{AgentId, ItemId, Now, Oid, RefChange, RefName, RefUpdate, Resource, refs};

use crate::push::{Ask, Command, Push, Study, Wish, WishKind};
use crate::speaker::Door;
use crate::verdict::{Already, Decision, Grant, ItemStep, Refusal, Step, Verdict};
use crate::view::{Claim, Strayed, View};

/// Judges a push. Moves nothing.
pub(crate) fn judge(push: &Push, door: Door, view: &View, now: Now) -> Verdict {
    let (granted, released, recorded, landing) = Default::default();
    let mut judge = Judge { push, door, view, now, granted, released, recorded, landing };
    let commands = push.commands.iter().map(|command| judge.command(command)).collect();
    let options = push.wishes.iter().map(|wish| (wish.text.clone(), judge.wish(wish))).collect();
    bind(push, Verdict { commands, options })
}

struct Judge<'a> {
    push: &'a Push,
    door: Door,
    view: &'a View,
    now: Now,
    /// Keys that this push has been granted: the same claim asked for twice is one claim.
    granted: BTreeSet<String>,
    /// Keys that this push has released.
    released: BTreeSet<String>,
    /// Changes that this push records already.
    recorded: BTreeSet<Oid>,
    /// Changes that this push lands already.
    landing: BTreeSet<Oid>,
}

/// What a claim is for, as far as it is said.
#[derive(Clone, Copy)]
struct Task<'a> {
    item: Option<&'a ItemId>,
    intent: Option<&'a String>,
}

/// How many of an agent's open items are left for recorded changes.
const LANDING_ROOM: usize = 50;

/// How many claims one push may take. Each is a ref and a document, written while others wait.
pub(crate) const MAX_CLAIMS: usize = 64;

impl<'a> Judge<'a> {
    fn command(&mut self, command: &Command) -> Decision {
        let decided = match (&command.ask, &command.name) {
            (Ask::Broken(refusal), _) => Err(refusal.clone()),
            (_, None) => Err(Refusal::BadName { why: "not a refname".into() }),
            (ask, Some(name)) => self.may_speak().and_then(|()| match ask {
                Ask::Broken(refusal) => Err(refusal.clone()),
                Ask::Head => self.head(command, name),
                Ask::Mainline => self.mainline(command, name),
                Ask::Tag => self.tag(command, name),
                Ask::Other => Ok(plain(command, name)),
                Ask::Change(oid) => self.change(command, name, *oid),
                Ask::Wip(agent, item) => self.wip(command, name, agent, item),
                Ask::ClaimDocument(key, None) => self.delete_claim(command, key),
                Ask::ClaimDocument(key, Some(document)) => self.document(command, key, document),
                Ask::Claim(resource) => self.claim(resource),
                Ask::Release(resource) => self.release(resource),
                Ask::Accept => self.accept(command),
                Ask::Same => Ok(Decision::Nothing(Already::Same)),
                Ask::Tell => self.agent().map(|_| Decision::Do(Step::Tell)),
                Ask::Handled(updates) => Ok(Decision::Do(Step::Handled(updates.clone()))),
            }),
        };
        decided.unwrap_or_else(Decision::Refuse)
    }

    fn wish(&mut self, wish: &Wish) -> Decision {
        let decided = self.may_speak().and_then(|()| {
            let resource = wish.resource.clone().map_err(Refusal::BadResource)?;
            match wish.kind {
                WishKind::Require | WishKind::Claim => self.claim(&resource),
                WishKind::Release => self.release(&resource),
            }
        });
        decided.unwrap_or_else(Decision::Refuse)
    }

    /// Nobody speaks for an agent of another principal. Source: `spec/identity.md`.
    fn may_speak(&self) -> Result<(), Refusal> {
        let Some(agent) = &self.push.speaker.agent else { return Ok(()) };
        match self.view.foreign_owner(agent, &self.push.speaker.principal) {
            Some(owner) => {
                Err(Refusal::ForeignAgent { agent: agent.clone(), owner: owner.to_owned() })
            }
            None => Ok(()),
        }
    }

    fn agent(&self) -> Result<&AgentId, Refusal> {
        self.push.speaker.agent.as_ref().ok_or(Refusal::NoAgent)
    }

    fn head(&self, command: &Command, name: &RefName) -> Result<Decision, Refusal> {
        let change = RefChange::between(command.old, command.new);
        let Some(change) = change else { return Ok(Decision::Nothing(Already::Same)) };
        let item = match &command.study {
            Some(study) if !self.push.is_mirror() => self.branch_item(name, study)?,
            Some(_) | None => self.closing(name),
        };
        Ok(update(name, change, item))
    }

    /// What a branch's push does to the item that the branch carries.
    fn branch_item(&self, name: &RefName, study: &Study) -> Result<ItemStep, Refusal> {
        // Source: `spec/refs.md`, "Items": what came with the first push, or has landed, is no open work.
        if study.merged || self.view.current.is_none() {
            return Ok(self.closing(name));
        }
        let by_author = || match self.door {
            Door::Open => study.author.clone(),
            Door::Credential => None,
        };
        let speaker = self.push.speaker.agent.clone().or_else(by_author);
        let owned = |agent: &AgentId| {
            self.view.foreign_owner(agent, &self.push.speaker.principal).is_none()
        };
        match speaker.filter(owned) {
            Some(agent) => self.opening(name, &agent, None),
            None => Ok(self.closing(name)),
        }
    }

    fn closing(&self, name: &RefName) -> ItemStep {
        if self.view.items.contains_key(name) { ItemStep::Close } else { ItemStep::None }
    }

    fn opening(
        &self,
        name: &RefName,
        agent: &AgentId,
        item: Option<&ItemId>,
    ) -> Result<ItemStep, Refusal> {
        let known = self.view.items.get(name).filter(|known| known.agent == *agent);
        let opens = self.push.commands.iter().filter(|command| command.may_open()).count();
        // Who has too much open must still be able to land it.
        let lands = matches!(refs::address(name), refs::Address::Change(_));
        let max = if lands { MAX_ITEMS } else { MAX_ITEMS - LANDING_ROOM };
        if known.is_none() && self.view.items_of(agent).count() + opens > max {
            return Err(Refusal::TooMany { what: "open items of one agent", max });
        }
        let item = item
            .or(self.push.item.as_ref())
            .cloned()
            .unwrap_or_else(|| ItemId::default_for(agent, name));
        let intent = self
            .push
            .options
            .intent
            .clone()
            .or_else(|| known.and_then(|known| known.intent.clone()))
            .or_else(|| self.stated_intent(agent));
        Ok(ItemStep::Open { agent: agent.clone(), item, intent })
    }

    /// Source: `spec/refs.md`, "Mainline".
    fn mainline(&self, command: &Command, name: &RefName) -> Result<Decision, Refusal> {
        let new = command.new.ok_or(Refusal::MainlineDelete)?;
        let study = command.study.as_ref().ok_or(Refusal::NotACommit { oid: new })?;
        let forward = |change, current_change| {
            Decision::Do(Step::Forward {
                mainline: RefUpdate { name: name.clone(), change },
                current: RefUpdate { name: refs::current(), change: current_change },
            })
        };
        let Some(current) = self.view.current else {
            let change =
                RefChange::between(command.old, Some(new)).ok_or(Refusal::NothingToLand)?;
            return Ok(forward(change, RefChange::Create { new }));
        };
        self.not_diverged(current)?;
        if new == current {
            return Ok(Decision::Nothing(Already::Same));
        }
        if command.old != Some(current) || !study.forward {
            return Err(Refusal::NotForward { current });
        }
        let holders = self.fences(study);
        if !holders.is_empty() {
            return Err(Refusal::Fenced { holders });
        }
        let change = RefChange::Move { old: current, new };
        Ok(forward(change, change))
    }

    fn fences(&self, study: &Study) -> Vec<crate::verdict::Holder> {
        match self.view.settings.bind {
            zit_model::settings::Policy::Advise => Vec::new(),
            zit_model::settings::Policy::Refuse => self.view.fences_against(
                self.push.speaker.agent.as_ref(),
                &study.footprint,
                self.now.monotonic,
            ),
        }
    }

    /// Source: git-config(1), `receive.denyCurrentBranch`. Pushes to the branch itself are refused before.
    fn not_checked_out(&self, name: &RefName) -> Result<(), Refusal> {
        if self.push.guards_mainline {
            return Err(Refusal::CheckedOut { name: name.clone() });
        }
        Ok(())
    }

    fn not_diverged(&self, current: Oid) -> Result<(), Refusal> {
        match self.view.diverged {
            Some(Strayed(mainline)) => Err(Refusal::Diverged { mainline, current }),
            None => Ok(()),
        }
    }

    fn tag(&self, command: &Command, name: &RefName) -> Result<Decision, Refusal> {
        let create_only = self.view.settings.tags == Tags::CreateOnly;
        if create_only && (command.old.is_some() || command.new.is_none()) {
            return Err(Refusal::TagExists { found: command.found });
        }
        Ok(plain(command, name))
    }

    fn change(&mut self, command: &Command, name: &RefName, oid: Oid) -> Result<Decision, Refusal> {
        let agent = self.agent()?;
        match command.new {
            None => {
                if let Some(item) = self.view.items.get(name).filter(|item| item.agent != *agent) {
                    return Err(Refusal::OthersRef { owner: item.agent.clone() });
                }
                if command.found.is_none() {
                    return Ok(Decision::Nothing(Already::Same));
                }
                Ok(update(name, RefChange::Delete { old: oid }, self.closing(name)))
            }
            Some(new) if new != oid => Err(Refusal::NameIsNotValue { value: new }),
            Some(_) if command.found.is_some() || self.recorded.contains(&oid) => {
                Ok(Decision::Nothing(Already::Same))
            }
            Some(_) if command.old.is_some() => Err(Refusal::CreateOnly),
            Some(new) => {
                command.study.as_ref().ok_or(Refusal::NotACommit { oid })?;
                let item = self.opening(name, agent, self.item_with_head(agent, oid).as_ref())?;
                self.recorded.insert(oid);
                Ok(update(name, RefChange::Create { new }, item))
            }
        }
    }

    /// The item of the agent's branch or wip that carries the same commit, so that one task stays one item.
    fn item_with_head(&self, agent: &AgentId, oid: Oid) -> Option<ItemId> {
        self.view.items_of(agent).find(|item| item.head == oid).map(|item| item.item.clone())
    }

    /// Any move is allowed; an old value of zero means unconditional. Source: `spec/refs.md`, "wip".
    fn wip(
        &self,
        command: &Command,
        name: &RefName,
        owner: &AgentId,
        item: &ItemId,
    ) -> Result<Decision, Refusal> {
        let agent = self.agent()?;
        if agent != owner {
            return Err(Refusal::OthersRef { owner: owner.clone() });
        }
        let Some(change) = RefChange::between(command.old.or(command.found), command.new) else {
            return Ok(Decision::Nothing(Already::Same));
        };
        let step = match (&command.new, &command.study) {
            (Some(oid), None) => return Err(Refusal::NotACommit { oid: *oid }),
            (Some(_), Some(study)) if !study.merged => self.opening(name, agent, Some(item))?,
            (Some(_), Some(_)) | (None, _) => self.closing(name),
        };
        Ok(update(name, change, step))
    }

    /// A pushed `claim.json`: the request in document form, by CAS on the value that the client saw.
    fn document(
        &mut self,
        command: &Command,
        key: &str,
        document: &ClaimRequest,
    ) -> Result<Decision, Refusal> {
        let agent = self.agent()?;
        if document.resource.key() != key {
            let why = format!("its resource belongs at {}", refs::claim(&document.resource.key()));
            return Err(Refusal::BadDocument { why });
        }
        if let Some(other) = document.agent.as_ref().filter(|other| *other != agent) {
            return Err(Refusal::OthersRef { owner: other.clone() });
        }
        let found = self.view.claims.get(key).map(|claim| claim.oid);
        if command.old != found {
            return Err(Refusal::ClaimMoved { found });
        }
        let push = self.task();
        let task = Task {
            item: document.item.as_ref().or(push.item),
            intent: document.intent.as_ref().or(push.intent),
        };
        self.claim_for(&document.resource, task)
    }

    fn delete_claim(&mut self, command: &Command, key: &str) -> Result<Decision, Refusal> {
        let Some(claim) = self.view.claims.get(key) else {
            return Ok(Decision::Nothing(Already::Same));
        };
        if command.old.is_some_and(|old| old != claim.oid) {
            return Err(Refusal::ClaimMoved { found: Some(claim.oid) });
        }
        self.release(&claim.record.resource.clone())
    }

    fn claim(&mut self, resource: &Resource) -> Result<Decision, Refusal> {
        self.claim_for(resource, self.task())
    }

    /// What the push says that it is for.
    fn task(&self) -> Task<'a> {
        Task { item: self.push.item.as_ref(), intent: self.push.options.intent.as_ref() }
    }

    /// Source: `spec/claims.md`, "Grant", "Renew", "Take over".
    fn claim_for(&mut self, resource: &Resource, task: Task<'_>) -> Result<Decision, Refusal> {
        let agent = self.agent()?.clone();
        let key = resource.key();
        if self.granted.contains(&key) {
            return Ok(Decision::Nothing(Already::Same));
        }
        if self.released.contains(&key) {
            return Err(Refusal::Contradiction { resource: resource.clone() });
        }
        if self.granted.len() == MAX_CLAIMS {
            return Err(Refusal::TooMany { what: "claims in one push", max: MAX_CLAIMS });
        }
        let existing = self.view.claims.get(&key);
        if let Some(other) = existing.filter(|claim| claim.record.resource != *resource) {
            return Err(Refusal::KeyCollision { found: other.record.resource.clone() });
        }
        let own = existing.filter(|claim| claim.record.agent == agent);
        if let Some(claim) = own.filter(|claim| claim.left(self.now.monotonic).is_some()) {
            self.granted.insert(key);
            return Ok(Decision::Do(self.renewal(claim, task)));
        }
        let holders = self.view.held_against(&agent, resource, self.now.monotonic);
        if !holders.is_empty() {
            return Err(Refusal::Held { resource: resource.clone(), holders });
        }
        let epoch = match own {
            Some(claim) => claim.record.epoch,
            None => self.view.next_epoch,
        };
        self.granted.insert(key);
        let owner = existing.map(|claim| claim.record.agent.clone());
        Ok(Decision::Do(Step::Grant(Grant {
            expected: existing.map(|claim| claim.oid),
            taken_from: owner.filter(|owner| *owner != agent),
            supersedes: self.view.lapsed_against(&agent, resource, self.now.monotonic),
            record: ClaimRecord {
                resource: resource.clone(),
                item: task.item.cloned().unwrap_or_else(|| self.claim_item(&agent)),
                intent: task.intent.cloned().or_else(|| self.stated_intent(&agent)),
                lease: self.view.settings.lease,
                epoch,
                agent,
            },
        })))
    }

    /// A live claim of one's own: only its lease starts anew, unless another task is stated.
    fn renewal(&self, claim: &Claim, task: Task<'_>) -> Step {
        let item = task.item.unwrap_or(&claim.record.item).clone();
        let intent = task.intent.cloned().or_else(|| claim.record.intent.clone());
        if item == claim.record.item
            && intent == claim.record.intent
            && self.view.settings.lease == claim.record.lease
        {
            return Step::Renew { resource: claim.record.resource.clone(), oid: claim.oid };
        }
        let lease = self.view.settings.lease;
        Step::Grant(Grant {
            record: ClaimRecord { item, intent, lease, ..claim.record.clone() },
            expected: Some(claim.oid),
            taken_from: None,
            supersedes: BTreeMap::new(),
        })
    }

    /// The item of a claim that names none: the pushed branch's, the only open one, or the mainline's default.
    fn claim_item(&self, agent: &AgentId) -> ItemId {
        let pushed = || {
            let mut branches = self.push.commands.iter().filter(|c| c.ask == Ask::Head);
            let name = branches.next()?.name.as_ref()?;
            branches.next().is_none().then(|| ItemId::default_for(agent, name))
        };
        let only = || {
            let mut items = self.view.items_of(agent);
            let first = items.next()?;
            items.all(|item| item.item == first.item).then(|| first.item.clone())
        };
        let default = || {
            let mainline = self.view.mainline.clone().unwrap_or_else(refs::current);
            ItemId::default_for(agent, &mainline)
        };
        pushed().or_else(only).unwrap_or_else(default)
    }

    fn stated_intent(&self, agent: &AgentId) -> Option<String> {
        self.view.agents.get(agent)?.intent.clone()
    }

    fn release(&mut self, resource: &Resource) -> Result<Decision, Refusal> {
        let (agent, key) = (self.agent()?, resource.key());
        if self.granted.contains(&key) {
            return Err(Refusal::Contradiction { resource: resource.clone() });
        }
        let Some(claim) = self.view.claims.get(&key) else {
            return Ok(Decision::Nothing(Already::NoClaim(resource.clone())));
        };
        if claim.record.resource != *resource {
            return Err(Refusal::KeyCollision { found: claim.record.resource.clone() });
        }
        if claim.record.agent != *agent {
            return Err(Refusal::NotYours { holder: Box::new(claim.holder(self.now.monotonic)) });
        }
        if !self.released.insert(key) {
            return Ok(Decision::Nothing(Already::Same));
        }
        Ok(Decision::Do(Step::Release { resource: resource.clone(), oid: claim.oid }))
    }

    /// Source: `spec/accept.md`. Recording is decided here; landing is judged after it.
    fn accept(&mut self, command: &Command) -> Result<Decision, Refusal> {
        let agent = self.agent()?.clone();
        let commit = command.new.ok_or(Refusal::NothingToLand)?;
        let current = self
            .view
            .current
            .ok_or_else(|| Refusal::NotMainline { mainline: self.view.mainline.clone() })?;
        self.not_diverged(current)?;
        if let Some(mainline) = &self.view.mainline {
            self.not_checked_out(mainline)?;
        }
        let study = command.study.as_ref().ok_or(Refusal::NotACommit { oid: commit })?;
        if study.merged {
            return Ok(Decision::Nothing(Already::Accepted(commit)));
        }
        if self.push.atomic && self.push.commands.len() > 1 {
            return Err(Refusal::AtomicAccept);
        }
        if !self.landing.insert(commit) {
            return Ok(Decision::Nothing(Already::Same));
        }
        let record = || {
            let name = refs::change(commit);
            let item = self.opening(&name, &agent, self.item_with_head(&agent, commit).as_ref())?;
            Ok((RefUpdate { name, change: RefChange::Create { new: commit } }, item))
        };
        let is_new = command.found.is_none() && !self.recorded.contains(&commit);
        let record = is_new.then(record).transpose()?;
        self.recorded.insert(commit);
        Ok(Decision::Do(Step::Land { commit, record }))
    }
}

fn plain(command: &Command, name: &RefName) -> Decision {
    match RefChange::between(command.old, command.new) {
        Some(change) => update(name, change, ItemStep::None),
        None => Decision::Nothing(Already::Same),
    }
}

fn update(name: &RefName, change: RefChange, item: ItemStep) -> Decision {
    Decision::Do(Step::Update { update: RefUpdate { name: name.clone(), change }, item })
}

/// What one refusal means for the rest of the push.
///
/// A required claim that is refused stops everything; an atomic push stops with any of its parts; a `tell` is refused
/// with any of its options.
pub(crate) fn bind(push: &Push, mut verdict: Verdict) -> Verdict {
    let refused = |decision: &Decision| matches!(decision, Decision::Refuse(_));
    let required = push
        .wishes
        .iter()
        .zip(&verdict.options)
        .find(|(wish, (_, decision))| wish.kind == WishKind::Require && refused(decision))
        .map(|(wish, _)| Refusal::ClaimRequired { resource: wish.text.clone() });
    let culprit = push
        .commands
        .iter()
        .zip(&verdict.commands)
        .find(|(_, decision)| refused(decision))
        .map(|(command, _)| command.sent.to_string())
        .or_else(|| verdict.options.iter().find(|(_, d)| refused(d)).map(|(text, _)| text.clone()));
    let atomic = culprit.filter(|_| push.atomic).map(|culprit| Refusal::Atomic { culprit });
    if let Some(refusal) = required.or(atomic) {
        let all = verdict.commands.iter_mut().chain(verdict.options.iter_mut().map(|(_, d)| d));
        for decision in all.filter(|decision| !refused(decision)) {
            *decision = Decision::Refuse(refusal.clone());
        }
    }
    let first = verdict.options.iter().find_map(|(_, d)| match d {
        Decision::Refuse(refusal) => Some(refusal.clone()),
        Decision::Do(_) | Decision::Nothing(_) => None,
    });
    if let Some(refusal) = first {
        for (command, decision) in push.commands.iter().zip(&mut verdict.commands) {
            if command.ask == Ask::Tell && !refused(decision) {
                *decision = Decision::Refuse(refusal.clone());
            }
        }
    }
    verdict
}
