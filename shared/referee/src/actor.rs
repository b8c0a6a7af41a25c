//! The actor: the one place that decides, and the only writer of refs.
//!
//! It runs on a thread of its own and answers one [`Event`] after the other, so that accepted pushes have one order.
//! Everything slow that needs no order (receiving packs, footprints, merges) happens before an event is sent.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, PoisonError, RwLock};

use zit_model::settings::Policy;
use zit_model::{AgentId, Now, Oid, RefChange, RefName, RefUpdate, refs};
use zit_rules::Age;
use zit_store::journal::{Draft, Origin};
use zit_store::{PrepareError, Quarantine, Store, StoreError};

use crate::carry_out::{carry_out, commit, log_entry, millis, reload_states};
use crate::clock::Clock;
use crate::error::RefereeError;
use crate::footprints::Footprinter;
use crate::judge::judge;
use crate::landing::{Landed, Landing, land};
use crate::open;
use crate::plan::{CarriedOut, Plan};
use crate::push::{Ask, Command, Push};
use crate::seen::Seen;
use crate::speaker::Door;
use crate::verdict::{Decision, Holder, Refusal, Verdict};
use crate::view::{OpenItem, Strayed, View};
use crate::words::GIVEN;

/// All that can wake the actor. Each carries the way back to who asks.
pub(crate) enum Event {
    /// What a push must know to be expanded and studied.
    Brief(Sender<Brief>),
    /// Judge a push and carry it out.
    Decide(Box<Proposal>, Sender<Result<Decided, RefereeError>>),
    /// Land a change that was composed on current.
    Land(Box<Landing>, Quarantine, Sender<Result<Landed, RefereeError>>),
    /// The refs below `refs/zit/` that an agent is shown when it pushes.
    Own(AgentId, Sender<BTreeSet<RefName>>),
    /// Whether there is no claim and no open item.
    IsTimeless(Sender<bool>),
    /// What an agent is told when it asks for the state of things.
    Status(Option<AgentId>, Sender<Status>),
}

/// What a push must know to be expanded and studied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Brief {
    pub(crate) mainline: Option<RefName>,
    pub(crate) current: Option<Oid>,
    pub(crate) diverged: Option<Refusal>,
}

/// A push with all that the actor needs to carry it out.
pub(crate) struct Proposal {
    pub(crate) push: Push,
    pub(crate) door: Door,
    /// The pack's objects; none when the push brought none.
    pub(crate) incoming: Option<Quarantine>,
}

/// What became of a proposal.
pub(crate) enum Decided {
    /// The ground moved since the push was expanded and studied: do so again. Its objects come back.
    Moved(Option<Quarantine>),
    /// Judged, and carried out as far as it was not refused.
    Done(Box<Outcome>),
}

/// A push that was decided.
pub(crate) struct Outcome {
    pub(crate) push: Push,
    pub(crate) verdict: Verdict,
    /// What was written; nothing for a dry run.
    pub(crate) done: CarriedOut,
    /// Everybody else's open work, as it stood after this push.
    pub(crate) others: Vec<(OpenItem, Age)>,
    /// Live claims of others on what the push writes.
    pub(crate) fences: Vec<Holder>,
    /// A dry run's objects, which were not kept.
    pub(crate) scratch: Option<Quarantine>,
    /// The mainline, as it stood after this push.
    pub(crate) mainline: Option<RefName>,
    /// An agent id that nobody has.
    pub(crate) free_agent: AgentId,
    /// Whether landing is refused where others claim what is written.
    pub(crate) bind: Policy,
}

/// What an agent is told of the state of things.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) agent: Option<AgentId>,
    pub(crate) view: View,
    pub(crate) now: Now,
}

/// A decided push whose answer waits for the flush.
type Waiting = (Result<Decided, RefereeError>, Sender<Result<Decided, RefereeError>>);

/// How many pushes wait for one flush.
const MAX_WAITING: usize = 64;

fn log(error: &StoreError) {
    tracing::warn!(error = error as &dyn std::error::Error, "cannot flush the journal");
}

impl View {
    /// What a push must know of it.
    pub(crate) fn brief(&self) -> Brief {
        let diverged = self.diverged.zip(self.current);
        Brief {
            mainline: self.mainline.clone(),
            current: self.current,
            diverged: diverged
                .map(|(Strayed(mainline), current)| Refusal::Diverged { mainline, current }),
        }
    }
}

/// The last brief, for whoever can do with one that may be out of date: what is judged after all is looked at again.
pub(crate) type Board = Arc<RwLock<Arc<Brief>>>;

/// The referee of one repository.
pub(crate) struct Actor {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) footprinter: Arc<Footprinter>,
    pub(crate) view: View,
    pub(crate) seen: Seen,
    pub(crate) board: Board,
    /// The refs may say something else than the view, which is rebuilt before it is looked at again.
    pub(crate) suspect: bool,
    /// A flush failed: what pushes that wait for one have done is lost, as far as anybody can tell.
    pub(crate) lost: bool,
}

impl Actor {
    /// Answers events until nobody can send any more.
    pub(crate) fn run(mut self, events: &Receiver<Event>) {
        let mut waiting = Vec::new();
        loop {
            // While pushes wait to be flushed, more of them may join; nobody else sees what they did.
            let event = match events.try_recv() {
                Ok(event) => Ok(event),
                Err(TryRecvError::Empty) => {
                    self.flush(&mut waiting);
                    events.recv().map_err(drop)
                }
                Err(TryRecvError::Disconnected) => Err(()),
            };
            let Ok(event) = event else { break };
            let joins = matches!(event, Event::Decide(..)) && waiting.len() < MAX_WAITING;
            if !joins {
                self.flush(&mut waiting);
            }
            if waiting.is_empty()
                && let Err(error) = self.rebuild().and_then(|()| self.refresh())
            {
                tracing::warn!(%error, "cannot look at the repository");
            }
            self.publish();
            self.answer(event, &mut waiting);
        }
        self.flush(&mut waiting);
    }

    /// Answers an event; an answer that depends on the next flush waits for it.
    ///
    /// An asker that has gone away needs no answer: the send's result does not matter.
    fn answer(&mut self, event: Event, waiting: &mut Vec<Waiting>) {
        match event {
            Event::Brief(back) => drop(back.send(self.brief())),
            Event::Decide(proposal, back) => {
                let decided = self.decide(*proposal);
                waiting.push((decided, back));
                if self.suspect {
                    self.flush(waiting);
                }
            }
            Event::Land(landing, composed, back) => {
                let landed = land(self, &landing, composed);
                self.seen.save(&self.view);
                self.publish();
                drop(back.send(landed));
            }
            Event::Own(agent, back) => drop(back.send(self.own(&agent))),
            Event::IsTimeless(back) => {
                let timeless = self.view.claims.is_empty() && self.view.items.is_empty();
                let _ = back.send(timeless);
            }
            Event::Status(agent, back) => {
                drop(back.send(Status { agent, view: self.view.clone(), now: self.clock.now() }));
            }
        }
    }

    /// Flushes what the waiting pushes did, and answers them. If that fails, whether they happened is not known.
    fn flush(&mut self, waiting: &mut Vec<Waiting>) {
        if waiting.is_empty() {
            return;
        }
        let lost = std::mem::take(&mut self.lost);
        let flushed = if lost { Ok(()) } else { self.store.flush().inspect_err(log) };
        let failure = flushed.err().map(Arc::new);
        self.suspect |= lost || failure.is_some();
        self.seen.save(&self.view);
        self.publish();
        for (decided, back) in waiting.drain(..) {
            let decided = match &failure {
                Some(error) => decided.and(Err(RefereeError::Unflushed(Arc::clone(error)))),
                None if lost => decided.and(Err(RefereeError::Suspect)),
                None => decided,
            };
            drop(back.send(decided));
        }
    }

    /// Rebuilds a view that the refs may have left behind.
    fn rebuild(&mut self) -> Result<(), RefereeError> {
        if !self.suspect {
            return Ok(());
        }
        // What failed half way is finished or undone first: the refs are believed only then.
        match self.store.prepare(&[]) {
            Ok(nothing) => drop(nothing),
            Err(PrepareError::Store(error)) => return Err(error.into()),
            Err(PrepareError::Refused(refused)) => tracing::warn!(%refused, "nothing was refused"),
        }
        let now = self.clock.now();
        let mut view = open::view(&self.store, &self.footprinter, now)?;
        view.keep_times(&self.view);
        self.view = view;
        self.suspect = false;
        Ok(())
    }

    /// Puts up a new brief where it says something else.
    fn publish(&self) {
        let brief = self.brief();
        let known = self.board.read().is_ok_and(|board| **board == brief);
        if !known {
            *self.board.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(brief);
        }
    }

    fn brief(&self) -> Brief {
        self.view.brief()
    }

    fn decide(&mut self, proposal: Proposal) -> Result<Decided, RefereeError> {
        let Proposal { mut push, door, incoming } = proposal;
        if self.suspect {
            // Nothing is judged against a view that may be wrong.
            return Err(RefereeError::Suspect);
        }
        let moved = |c: &Command| c.study.as_ref().is_some_and(|s| s.current != self.view.current);
        if push.mainline != self.view.mainline || push.commands.iter().any(moved) {
            return Ok(Decided::Moved(incoming));
        }
        for command in &mut push.commands {
            command.found = self.found(command)?;
        }
        let now = self.clock.now();
        self.view.next_epoch = self.store.next_seq()?;
        let verdict = self.judge(&push, door, now);
        let (verdict, done, scratch) = if push.options.dry_run {
            (verdict, CarriedOut::default(), incoming)
        } else {
            let (verdict, done) = carry_out(self, &push, verdict, incoming, now)?;
            (verdict, done, None)
        };
        let speaker = push.speaker.agent.clone().or_else(|| done.author());
        Ok(Decided::Done(Box::new(Outcome {
            others: self.others(&done, speaker.as_ref(), now),
            fences: self.fences(&push, &verdict, speaker.as_ref(), now),
            mainline: self.view.mainline.clone(),
            free_agent: self.free_agent(&push, door),
            bind: self.view.settings.bind,
            push,
            verdict,
            done,
            scratch,
        })))
    }

    /// Judges a push. Work in its way whose ref stock git took away is no work any more.
    fn judge(&mut self, push: &Push, door: Door, now: Now) -> Verdict {
        loop {
            let verdict = judge(push, door, &self.view, now);
            let in_the_way = verdict.in_flight();
            let gone: Vec<_> = in_the_way.into_iter().filter(|name| self.is_gone(name)).collect();
            if gone.is_empty() {
                return verdict;
            }
            self.view.items.retain(|name, _| !gone.contains(name));
            self.view.footprints.find_adrift(self.view.items.values());
        }
    }

    /// Whether the ref of an open item is no more. One that cannot be looked at is taken to stand, and so is one that
    /// stock git moved: what the item wrote, somebody is at work on.
    fn is_gone(&self, name: &RefName) -> bool {
        self.store.find_ref(name).is_ok_and(|found| found.is_none())
    }

    /// The id that a credential stands for, else one that nobody has yet. It need only be free, not secret, and is another
    /// each time: nothing but a credential tells one caller that has no agent from the next, and two that were told the
    /// same id would pass for one agent.
    fn free_agent(&self, push: &Push, door: Door) -> AgentId {
        let principal = &push.speaker.principal;
        let own = match door {
            Door::Open => None,
            Door::Credential => AgentId::slug(&principal.name),
        };
        let owned = |agent: &AgentId| self.view.foreign_owner(agent, principal).is_none();
        if let Some(own) = own.filter(owned) {
            return own;
        }
        let random = || RandomState::new().hash_one(0) & 0x00ff_ffff;
        let ids = std::iter::repeat_with(|| format!("{GIVEN}{:06x}", random()));
        ids.filter_map(|id| AgentId::new(&id).ok())
            .find(|id| !self.view.agents.contains_key(id))
            .expect("there are more ids of this form than agents fit into memory")
    }

    /// What the ref that a command is about holds now, where judging depends on it.
    fn found(&self, command: &Command) -> Result<Option<Oid>, StoreError> {
        match (&command.ask, &command.name, command.new) {
            (Ask::Accept, _, Some(commit)) => self.store.find_ref(&refs::change(commit)),
            (Ask::Change(_) | Ask::Wip(..) | Ask::Tag, Some(name), _) => self.store.find_ref(name),
            _ => Ok(None),
        }
    }

    /// Everybody else's open work, for a push that opened some; what stock git took away is not among it.
    fn others(
        &self,
        done: &CarriedOut,
        speaker: Option<&AgentId>,
        now: Now,
    ) -> Vec<(OpenItem, Age)> {
        if done.opened.is_empty() {
            return Vec::new();
        }
        let age = |item: &OpenItem| {
            let fresh = now.monotonic.since(item.pushed) <= self.view.settings.inflight_ttl;
            if fresh { Age::Fresh } else { Age::Stale }
        };
        let others = self.view.items.values().filter(|item| Some(&item.agent) != speaker);
        others
            .filter(|item| !self.is_gone(&item.name))
            .map(|item| (item.clone(), age(item)))
            .collect()
    }

    fn fences(
        &self,
        push: &Push,
        verdict: &Verdict,
        speaker: Option<&AgentId>,
        now: Now,
    ) -> Vec<Holder> {
        let done = push
            .commands
            .iter()
            .zip(&verdict.commands)
            .filter(|(_, decision)| matches!(decision, Decision::Do(_)));
        done.filter_map(|(command, _)| command.study.as_ref())
            .flat_map(|study| self.view.fences_against(speaker, &study.footprint, now.monotonic))
            .collect()
    }

    /// An agent's documents, claims, changes and snapshots. Source: `spec/refs.md`, "Scoped advertisement".
    fn own(&self, agent: &AgentId) -> BTreeSet<RefName> {
        let claims = self.view.claims.of(agent);
        let mut own: BTreeSet<RefName> = claims.map(|(key, _)| refs::claim(key)).collect();
        own.extend(self.view.items_of(agent).map(|item| item.name.clone()));
        own.insert(refs::agent_state(agent));
        own
    }

    /// Follows what stock git did to the mainline. Source: `spec/refs.md`, "Mainline".
    pub(crate) fn refresh(&mut self) -> Result<(), RefereeError> {
        let Some(mainline) = self.view.mainline.clone() else {
            self.view.mainline = open::mainline(&self.store)?;
            return Ok(());
        };
        let found = self.store.find_ref(&mainline)?;
        if found == self.view.current {
            self.view.diverged = None;
            return Ok(());
        }
        if self.view.diverged == Some(Strayed(found)) {
            return Ok(());
        }
        let follows = match (self.view.current, found) {
            (None, Some(_)) => true,
            (Some(current), Some(found)) => self.store.objects()?.is_ancestor(current, found)?,
            (_, None) => false,
        };
        let change = RefChange::between(self.view.current, found).filter(|_| follows);
        let Some(change) = change else {
            tracing::warn!(%mainline, ?found, current = ?self.view.current, "mainline left current");
            self.view.diverged = Some(Strayed(found));
            return Ok(());
        };
        let update = RefUpdate { name: refs::current(), change };
        if let Some(to) = found
            && !self.follow(update, to)?
        {
            // Somebody else moved a ref at this moment: the next event looks again.
            return Ok(());
        }
        tracing::info!(%mainline, ?found, "current follows mainline, which was moved by other means");
        self.view.diverged = None;
        Ok(())
    }

    /// Moves current, and closes what has landed with it; says whether the refs let it.
    fn follow(&mut self, current: RefUpdate, to: Oid) -> Result<bool, RefereeError> {
        let (store, now) = (Arc::clone(&self.store), self.clock.now());
        let mut made = store.quarantine()?;
        let plan = Plan::following(self, current, to, &mut made, now)?;
        let entry = log_entry(None, now);
        match store.prepare_logged(&plan.ref_updates(), &[&made.objects()], Some(entry)) {
            Ok(prepared) => {
                let draft = Draft::new(millis(now), "", Origin::External);
                commit(self, None, draft, prepared, vec![made], &BTreeSet::new())?;
            }
            Err(PrepareError::Store(error)) => return Err(error.into()),
            Err(PrepareError::Refused(refused)) => {
                tracing::warn!(%refused, "current does not follow mainline yet");
                reload_states(self, &plan)?;
                return Ok(false);
            }
        }
        plan.apply(self, None, now);
        Ok(true)
    }
}
