//! One push, from its pack to its answer.
//!
//! ```text
//! arrive       the pack, unless what it is for is lost already
//! wait         whose turn it is to move a branch
//! look         what is wrong with commands whatever the referee says: lost, incomplete, denied, not for a namespace
//! hear_hooks   what the repository's hooks say
//! decide       expand, study, ask the actor; again as often as current has moved meanwhile
//! answer       land what is to land, and tell
//! ```
//!
//! Nothing here judges: what is found out is put into the [`Push`] that the actor judges.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use bstr::ByteSlice;
use zit_footprint::Surroundings;
use zit_model::document::{CLAIM_FILE, ClaimRequest};
use zit_model::options::Options;
use zit_model::{Namespace, Oid, RefName, Resource};
use zit_store::{
    Audience, Hook, Objects, PackLimits, Published, Quarantine, RefusedUpdate, StoreError,
};
use zit_wire::receive::PushRequest;

use super::{MAX_ROUNDS, Repository};
use crate::actor::{Brief, Decided, Event, Outcome, Proposal};
use crate::answer::{self, PushAnswer};
use crate::complete::{self, Completeness};
use crate::denied::{Denied, denied};
use crate::error::RefereeError;
use crate::hooks::Errand;
use crate::namespaced::Placed;
use crate::open;
use crate::proc_receive::Handled;
use crate::published;
use crate::push::{Ask, Ground, Push, expand};
use crate::race::{self, Turn};
use crate::signed::{self, Signed};
use crate::speaker::Caller;
use crate::verdict::Refusal;

/// A push as it was sent.
pub(super) struct Sent<'a> {
    caller: &'a Caller,
    request: &'a PushRequest,
    options: &'a Options,
    /// The request, its names as the repository has them.
    placed: Placed<'a>,
}

/// What is known of a push once it is looked at, before hooks are asked.
struct Looked {
    faults: Faults,
    signed: Option<Signed>,
    errand: Errand,
    /// The commands that are left to `proc-receive`.
    left: BTreeSet<usize>,
}

/// What is wrong with commands, by their place, whatever the referee says.
struct Faults {
    /// Moves of branches that others have moved.
    overtaken: BTreeMap<usize, RefusedUpdate>,
    complete: Completeness,
    denied: Denied,
}

/// What hooks said of a push that `pre-receive` did not decline.
#[derive(Default)]
struct Said {
    /// The commands that `update` declined, by their place.
    declined: BTreeSet<usize>,
    handled: Handled,
    /// Held until refs name the objects.
    published: Option<Published>,
}

impl<'a> Sent<'a> {
    pub(super) fn new(caller: &'a Caller, request: &'a PushRequest, options: &'a Options) -> Self {
        let placed = Placed::new(request, caller.namespace.as_ref());
        Self { caller, request, options, placed }
    }

    fn stored(&self) -> &PushRequest {
        &self.placed.request
    }
}

impl Repository {
    /// Judges a push, carries it out, and answers it.
    pub(super) fn judge_push(
        &self,
        sent: &Sent<'_>,
        pack: &mut dyn Read,
        limits: &PackLimits,
        audience: &mut dyn Audience,
    ) -> Result<PushAnswer, RefereeError> {
        let kind = self.store.hash_kind();
        let mut overtaken = self.overtaken(sent.stored())?;
        let mut incoming = self.arrive(sent, &overtaken, pack, limits)?;
        if !sent.request.signs_its_options() {
            return Ok(answer::unsigned_options(sent.request, kind, sent.options));
        }
        let turn = self.wait(sent, &mut overtaken)?;
        let mut looked = self.look(sent, overtaken, &mut incoming)?;
        looked.faults.denied.warn(audience);
        let Some(said) = self.hear_hooks(sent, &mut looked, &mut incoming, audience)? else {
            return Ok(answer::declined_by_hook(sent.request, kind, sent.options));
        };
        let outcome = self.decide(sent, &looked, &said, incoming)?;
        drop(turn);
        Ok(self.answer(outcome, looked.errand))
    }

    /// Takes what the push brings; none of it where all is lost already.
    fn arrive(
        &self,
        sent: &Sent<'_>,
        overtaken: &BTreeMap<usize, RefusedUpdate>,
        pack: &mut dyn Read,
        limits: &PackLimits,
    ) -> Result<Option<Quarantine>, RefereeError> {
        let request = sent.stored();
        let is_lost = request.commands.len() == overtaken.len() && request.cert.is_none();
        if is_lost && !self.looks_at_all()? {
            race::skip(request, pack, limits);
            return Ok(None);
        }
        if !request.expects_pack() {
            return Ok(None);
        }
        let mut incoming = self.store.quarantine()?;
        incoming.ends_at(&request.shallow);
        incoming.receive_pack(pack, limits)?;
        Ok(Some(incoming))
    }

    /// Of pushes that race for one branch, one at a time is looked into; the others lose while they wait.
    fn wait(
        &self,
        sent: &Sent<'_>,
        overtaken: &mut BTreeMap<usize, RefusedUpdate>,
    ) -> Result<Option<Turn<'_>>, RefereeError> {
        let turn = if overtaken.is_empty() { self.turn(sent.stored()) } else { None };
        overtaken.extend(self.overtaken(sent.stored())?);
        Ok(turn.filter(|_| overtaken.is_empty()))
    }

    fn look(
        &self,
        sent: &Sent<'_>,
        overtaken: BTreeMap<usize, RefusedUpdate>,
        incoming: &mut Option<Quarantine>,
    ) -> Result<Looked, RefereeError> {
        let Sent { caller, request, options, placed } = sent;
        let is_overtaken = |n: usize| overtaken.contains_key(&n);
        let complete = complete::look(&self.store, sent.stored(), is_overtaken, incoming.as_mut())?;
        let now = self.clock.now().wall;
        let signed = request.cert.as_ref();
        let signed = signed.map(|cert| signed::look(&self.store, caller, cert, now, incoming));
        let signed = signed.transpose()?;
        let speaker = caller.speaker(options);
        let errand = Errand::new(&self.store, caller, &speaker, request, signed.as_ref())?;
        let (namespace, mainline) = (caller.namespace.as_ref(), self.last_brief().mainline.clone());
        let mut denied =
            denied(&self.store, request, namespace, mainline.as_ref(), incoming.as_ref())?;
        let duplicates = request.duplicates();
        let is_refused = |n: usize| {
            let name = request.commands.get(n).map(|command| command.name.as_bstr());
            let twice = name.is_none_or(|name| duplicates.contains(name));
            twice || complete.refused.contains_key(&n) || is_overtaken(n) || placed.refuses(n)
        };
        // The hook could not say where the repository's history is to end.
        let left = denied.left(is_refused, |n| complete.shortens(n));
        let faults = Faults { overtaken, complete, denied };
        Ok(Looked { faults, signed, errand, left })
    }

    /// Runs the hooks that come before a push; `None` if `pre-receive` declines all of it. A dry run asks none.
    ///
    /// `proc-receive` makes refs of its own, so what it is asked about leaves quarantine first.
    fn hear_hooks(
        &self,
        sent: &Sent<'_>,
        looked: &mut Looked,
        incoming: &mut Option<Quarantine>,
        audience: &mut dyn Audience,
    ) -> Result<Option<Said>, RefereeError> {
        let Looked { faults: Faults { complete, denied, .. }, errand, left, .. } = looked;
        let (request, left) = (sent.request, std::mem::take(left));
        if sent.options.dry_run {
            return Ok(Some(Said { handled: Handled::unasked(left), ..Said::default() }));
        }
        let broken: BTreeSet<usize> = complete.refused.keys().copied().collect();
        if !errand.pre_receive(request, &broken, denied, incoming.as_mut(), audience)? {
            return Ok(None);
        }
        let mut said = Said::default();
        if !left.is_empty() {
            if errand.has(Hook::ProcReceive) {
                said.published = incoming.take().map(Quarantine::publish).transpose()?;
                self.settle()?;
            }
            said.handled = errand.proc_receive(request, &left, audience);
            denied.take_back(&said.handled.handed_back);
        }
        let incoming = incoming.as_mut();
        said.declined =
            errand.updates(request, &broken, denied, &said.handled, incoming, audience)?;
        Ok(Some(said))
    }

    /// Has the actor judge the push and carry it out.
    fn decide(
        &self,
        sent: &Sent<'_>,
        looked: &Looked,
        said: &Said,
        mut incoming: Option<Quarantine>,
    ) -> Result<Outcome, RefereeError> {
        for _ in 0..MAX_ROUNDS {
            let brief = self.last_brief();
            let mut push = self.expand(sent, incoming.as_ref(), &brief)?;
            push.signed.clone_from(&looked.signed);
            looked.faults.tell(&mut push);
            sent.placed.refuse(&mut push);
            said.tell(&mut push);
            self.study(&mut push, incoming.as_ref(), &brief)?;
            let proposal = Box::new(Proposal { push, door: sent.caller.door, incoming });
            match self.ask(|back| Event::Decide(proposal, back))?? {
                Decided::Done(outcome) => return Ok(*outcome),
                // What was learned of the commits may no longer be so.
                Decided::Moved(again) => incoming = again,
            }
        }
        Err(RefereeError::Busy)
    }

    /// Lands what is to land and tells what became of everything. What was carried out stays so whatever fails here.
    fn answer(&self, mut outcome: Outcome, errand: Errand) -> PushAnswer {
        let accepted = self.land_all(&mut outcome);
        let agent = outcome.push.speaker.agent.clone();
        let status = outcome.push.options.status.then(|| self.status(agent)).and_then(Result::ok);
        let absent = self.absent(&outcome).unwrap_or_default();
        let kind = self.store.hash_kind();
        // What cannot be read makes notes less sure, and nothing else.
        let objects = self.store.objects().ok();
        let current = self.last_brief().current;
        let around = objects.as_ref().map(|objects| self.footprinter.around(objects, current));
        let unknown = zit_footprint::Unknown::default();
        let around: &dyn Surroundings = around.as_ref().map_or(&unknown, |around| around);
        let mut answer =
            answer::decided(&outcome, &accepted, &absent, around, status.as_ref(), kind);
        answer.post_hooks = errand.after(&outcome, &accepted);
        answer
    }

    /// The granted resources that current does not have. They may be claimed; a mistyped one should not go unnoticed.
    fn absent(&self, outcome: &Outcome) -> Result<Vec<Resource>, RefereeError> {
        let granted = &outcome.done.granted;
        let (false, Some(current)) = (granted.is_empty(), self.last_brief().current) else {
            return Ok(Vec::new());
        };
        let objects = self.store.objects()?;
        let mut absent = Vec::new();
        for (grant, _) in granted {
            if !self.footprinter.exists(&objects, current, &grant.record.resource)? {
                absent.push(grant.record.resource.clone());
            }
        }
        Ok(absent)
    }

    fn expand(
        &self,
        sent: &Sent<'_>,
        incoming: Option<&Quarantine>,
        brief: &Brief,
    ) -> Result<Push, RefereeError> {
        let (caller, request) = (sent.caller, sent.stored());
        let objects = self.objects(incoming)?;
        let tree = brief.current.map(|c| objects.commit(c)).transpose()?.map(|commit| commit.tree);
        let is_path = |path: &str| {
            tree.is_some_and(|tree| matches!(objects.entry_at(tree, path.into()), Ok(Some(_))))
        };
        let read_claim = |oid: Oid| {
            let json = open::document(&objects, oid, CLAIM_FILE)?;
            ClaimRequest::from_json(&json).map_err(|e| e.to_string())
        };
        let head = open::head_target(&self.store)?;
        let symrefs = self.symrefs(request, caller.namespace.as_ref())?;
        let ground = Ground {
            symrefs: &symrefs,
            mainline: brief.mainline.as_ref(),
            head: head.as_ref(),
            is_path: &is_path,
            read_claim: &read_claim,
        };
        Ok(expand(request, sent.options.clone(), caller, &ground))
    }

    /// The symbolic refs that are pushed to, with what they name in the end. None is below `refs/zit/`, and none leads out of
    /// a namespace.
    fn symrefs(
        &self,
        request: &PushRequest,
        namespace: Option<&Namespace>,
    ) -> Result<BTreeMap<RefName, RefName>, StoreError> {
        let is_inside =
            |target: &RefName| namespace.is_none_or(|within| within.strip(target).is_some());
        let names = request.commands.iter().filter_map(|command| RefName::new(&command.name).ok());
        let mut symrefs = BTreeMap::new();
        for name in names.filter(|name| !name.is_zit()) {
            if let Some(target) = self.store.symref_target(&name)?.filter(is_inside) {
                symrefs.insert(name, target);
            }
        }
        Ok(symrefs)
    }

    /// The moves of branches that others have moved already: of many that race for one, all but a few lose, and need
    /// not be looked into. The mainline has words of its own for that.
    ///
    /// Of several commands that stand each for itself, none: all are told what held at one moment, which is the actor's,
    /// and until then a branch may be back where it was.
    fn overtaken(
        &self,
        request: &PushRequest,
    ) -> Result<BTreeMap<usize, RefusedUpdate>, RefereeError> {
        let mut overtaken = BTreeMap::new();
        if request.commands.len() > 1 && !request.capabilities.atomic {
            return Ok(overtaken);
        }
        let brief = self.last_brief();
        for (n, command) in request.commands.iter().enumerate() {
            let Some((name, expected, new)) = race::branch_move(command, brief.mainline.as_ref())
            else {
                continue;
            };
            match self.store.find_ref(&name)? {
                Some(found) if found != expected && found != new => {
                    overtaken.insert(n, RefusedUpdate::Stale { name, expected, found });
                }
                Some(_) | None => {}
            }
        }
        Ok(overtaken)
    }

    /// Whether objects are looked at also of what will be refused: hooks are shown them, and git says first that a branch
    /// would lose commits where that is denied.
    fn looks_at_all(&self) -> Result<bool, StoreError> {
        Ok(self.store.config()?.deny.non_fast_forwards || self.runs_hooks())
    }

    /// A turn for a push that is one move of a branch, unless hooks of the repository have a say in it, which takes as
    /// long as they like.
    fn turn(&self, request: &PushRequest) -> Option<Turn<'_>> {
        let [command] = request.commands.as_slice() else { return None };
        let brief = self.last_brief();
        let (name, ..) = race::branch_move(command, brief.mainline.as_ref())?;
        (!self.runs_hooks()).then(|| self.turnstile.enter(name)).flatten()
    }

    fn study(
        &self,
        push: &mut Push,
        incoming: Option<&Quarantine>,
        brief: &Brief,
    ) -> Result<(), RefereeError> {
        let objects = self.objects(incoming)?;
        for command in &mut push.commands {
            let studied = matches!(
                command.ask,
                Ask::Head | Ask::Mainline | Ask::Change(_) | Ask::Wip(..) | Ask::Accept
            );
            if let Some(new) = command.new.filter(|_| studied) {
                command.study = self.footprinter.study(&objects, brief.current, new)?;
                // Made here, beside the actor; whether it is published is decided there.
                let opens = !push.options.dry_run && command.may_open();
                let study = command.study.as_ref().filter(|study| opens && !study.merged);
                command.document = study.map(|study| published::json(&study.footprint).into());
            }
        }
        Ok(())
    }

    fn objects(&self, incoming: Option<&Quarantine>) -> Result<Objects, StoreError> {
        match incoming {
            Some(incoming) => Ok(incoming.objects()),
            None => self.store.objects(),
        }
    }
}

impl Faults {
    /// Puts what is wrong in place of what the commands ask for.
    fn tell(&self, push: &mut Push) {
        self.complete.tell(push);
        for (n, refusal) in &self.overtaken {
            // Whatever it asks for by now: nobody has looked whether its objects are there.
            let command = push.commands.get_mut(*n);
            if let Some(c) = command.filter(|c| !matches!(c.ask, Ask::Broken(_))) {
                c.ask = Ask::Broken(Refusal::Ref(refusal.clone()));
            }
        }
        self.denied.refuse(push);
    }
}

impl Said {
    /// Puts what hooks did and declined in place of what the commands ask for.
    fn tell(&self, push: &mut Push) {
        self.handled.tell(push);
        for n in &self.declined {
            if let Some(command) = push.commands.get_mut(*n) {
                command.ask = Ask::Broken(Refusal::Hook);
            }
        }
    }
}
