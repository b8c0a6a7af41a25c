//! The facade: one repository and its referee, shared by all requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use bstr::{BStr, ByteSlice};
use zit_footprint::Surroundings;
use zit_model::document::{CLAIM_FILE, ClaimRequest};
use zit_model::options::Options;
use zit_model::settings::Policy;
use zit_model::{AgentId, Namespace, Oid, RefName, Resource};
use zit_store::{
    Access, Audience, Glance, Hook, Maintained, Objects, PackLimits, Published, Quarantine,
    Reading, RefusedUpdate, Stop, Store, StoreError, StoredRef,
};
use zit_wire::ls_refs::Prefixes;
use zit_wire::receive::PushRequest;

use crate::actor::{Actor, Board, Brief, Decided, Event, Outcome, Proposal, Status};
use crate::answer::{self, Accepted, PushAnswer};
use crate::carry_out::millis;
use crate::clock::{BootClock, Clock};
use crate::complete;
use crate::denied::{Denied, denied};
use crate::error::RefereeError;
use crate::footprints::Footprinter;
use crate::hooks::{Errand, Nobody};
use crate::landing::{Composed, Landed, Landing, compose};
use crate::namespaced::{self, Placed};
use crate::open;
use crate::proc_receive::Handled;
use crate::push::{Ask, Ground, Push, expand};
use crate::race::{self, Turn, Turnstile};
use crate::seen::Seen;
use crate::signed;
use crate::speaker::{Caller, Committer};
use crate::verdict::{Decision, Refusal, Step};

/// How often a push or a landing may find that current has moved before it gives up. Landings wait their turn, so only
/// direct pushes of the mainline and stock git move it under one.
const MAX_ROUNDS: usize = 64;

/// How many prefixes of a fetcher are looked up one by one; with more, all refs are read once.
const MAX_PREFIXES: usize = 64;

/// One repository, opened by its only referee.
pub struct Repository {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    footprinter: Arc<Footprinter>,
    /// One change is composed at a time: a race would only compose again.
    landing: Mutex<()>,
    turnstile: Turnstile,
    board: Board,
    events: Option<Sender<Event>>,
    actor: Option<JoinHandle<()>>,
}

/// What hooks are asked about.
struct Asked<'a> {
    request: &'a PushRequest,
    /// The commands that are left to `proc-receive`.
    left: BTreeSet<usize>,
    /// Those that no hook is shown.
    broken: BTreeSet<usize>,
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

impl Repository {
    /// Opens a repository: recovers what a crash left, rebuilds the view, starts the actor.
    ///
    /// # Errors
    /// [`RefereeError`] when the repository cannot be read or has a referee already.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, RefereeError> {
        Self::open_remembering(path, clock, Seen::nothing)
    }

    /// Opens a repository for one command of a process that ends with it, so that leases count on from one command to
    /// the next; otherwise as [`Repository::open`].
    ///
    /// # Errors
    /// As [`Repository::open`].
    pub fn open_embedded(path: &Path) -> Result<Self, RefereeError> {
        let boot = zit_store::boot_id();
        Self::open_remembering(path, Arc::new(BootClock), move |git_dir| match boot {
            Some(boot) => Seen::since(git_dir, boot),
            // Without a boot to name, each command is a fresh observation.
            None => Seen::nothing(git_dir),
        })
    }

    fn open_remembering(
        path: &Path,
        clock: Arc<dyn Clock>,
        seen: impl FnOnce(&Path) -> Seen,
    ) -> Result<Self, RefereeError> {
        let store = Arc::new(Store::open(path, Access::Referee)?);
        let mut seen = seen(store.git_dir());
        let footprinter = Arc::new(Footprinter::default());
        let now = clock.now();
        let mut view = open::view(&store, &footprinter, now)?;
        seen.restore(&mut view, now.monotonic);
        seen.save(&view);
        let highest = view.claims.values().map(|claim| claim.record.epoch).max().unwrap_or(0);
        store.skip_to(highest, millis(clock.now()))?;
        let board = Arc::new(RwLock::new(Arc::new(view.brief())));
        let actor = Actor {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            footprinter: Arc::clone(&footprinter),
            view,
            seen,
            board: Arc::clone(&board),
            suspect: false,
            lost: false,
        };
        let (events, received) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("referee".into())
            .spawn(move || actor.run(&received))
            .map_err(RefereeError::Thread)?;
        Ok(Self {
            store,
            clock,
            footprinter,
            landing: Mutex::new(()),
            turnstile: Turnstile::default(),
            board,
            events: Some(events),
            actor: Some(thread),
        })
    }

    /// Whether the referee has ended: it panicked. The repository can be opened again once this value is dropped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.actor.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether nothing is known that closing the repository would forget: there are no claims and no open items, whose
    /// ages are kept in memory.
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        self.ask(Event::IsTimeless).is_ok_and(|timeless| timeless)
    }

    /// The repository's reading half. Only the referee writes.
    #[must_use]
    pub fn reading(&self) -> Reading<'_> {
        self.store.reading()
    }

    /// What is known of the repository without reading anything; `None` where something would have to be read.
    #[must_use]
    pub fn glance(&self) -> Option<Glance<'_>> {
        self.store.glance()
    }

    /// Whether a push runs hooks of the repository, and so has something to hear.
    #[must_use]
    pub fn runs_hooks(&self) -> bool {
        // A hook that is missed is told of, too.
        let is_left = || self.store.config().is_ok_and(|c| !c.deny.left_to_hook.is_empty());
        self.store.hooks().is_ok_and(|hooks| hooks.any()) || is_left()
    }

    /// Folds packs, loose objects and refs if enough has piled up; `None` when not. May take minutes, and nobody else
    /// waits for it: no ref moves and no object goes.
    ///
    /// # Errors
    /// As [`Store::maintain`].
    pub fn maintain_if_due(&self, stop: &Stop) -> Result<Option<Maintained>, StoreError> {
        if !self.store.is_maintenance_due()? {
            return Ok(None);
        }
        tracing::info!(git_dir = %self.store.git_dir().display(), "maintenance is due");
        self.store.maintain(stop).map(Some)
    }

    /// Puts everything that was acknowledged into the files where stock git looks. It happens by itself within 200 ms.
    ///
    /// # Errors
    /// As the file system says.
    pub fn settle(&self) -> Result<(), RefereeError> {
        Ok(self.store.settle()?)
    }

    /// The refs advertised to a pusher: everything outside `refs/zit/`, current, and the agent's own, less what the
    /// configuration hides.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    ///
    /// # Source
    /// `spec/refs.md`, "Scoped advertisement".
    pub fn refs_for_push(&self, agent: Option<&AgentId>) -> Result<Vec<StoredRef>, RefereeError> {
        let own = match agent {
            Some(agent) => self.ask(|back| Event::Own(agent.clone(), back))?,
            None => BTreeSet::new(),
        };
        // Of the refs of all agents, only the agent's own are looked at.
        let mut shown = self.store.refs_with(&[])?;
        for name in own.into_iter().filter(RefName::is_zit) {
            if let Some(oid) = self.reading().find_ref(&name)? {
                shown.push(StoredRef { name, oid, peeled: None, symref_target: None });
            }
        }
        let config = self.store.config()?;
        shown.retain(|r| !config.hidden_from_push.hides(r.name.as_bstr()));
        shown.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(shown)
    }

    /// The refs advertised to a pusher of a namespace, as it names them, and what the repository's other refs name that
    /// may be told: git's `.have` lines.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    ///
    /// # Source
    /// git's `builtin/receive-pack.c`, `show_ref_cb`.
    pub fn view_for_push(
        &self,
        namespace: &Namespace,
    ) -> Result<(Vec<StoredRef>, BTreeSet<Oid>), RefereeError> {
        let config = self.store.config()?;
        let (mut shown, mut haves) = (Vec::new(), BTreeSet::new());
        for stored in self.store.refs()? {
            let name = namespace.strip(&stored.name);
            let is_referees = stored.name.is_zit() && stored.name != zit_model::refs::current();
            if is_referees || config.hidden_from_push.hides_in(name, stored.name.as_bstr()) {
                continue;
            }
            match namespace.strip_ref(&stored.name) {
                Some(name) => shown.push(StoredRef { name, ..stored }),
                None => {
                    haves.insert(stored.oid);
                }
            }
        }
        Ok((shown, haves))
    }

    /// The refs shown to a fetcher: all that the configuration does not hide, or of these at least those that start with one of `prefixes`, by name.
    ///
    /// A poll of a few refs among many reads no others.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    pub fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError> {
        Ok(refs_for_fetch(&self.store, prefixes)?)
    }

    /// What a pusher is given to sign; `None` where the repository asks for no push certificates.
    ///
    /// # Errors
    /// [`RefereeError`] when the configuration cannot be read.
    pub fn push_nonce(&self) -> Result<Option<String>, RefereeError> {
        Ok(signed::nonce(&self.store, self.clock.now().wall)?)
    }

    /// Judges a push, carries it out, and answers it.
    ///
    /// `pack` is read to its end if the request expects one.
    pub fn push(
        &self,
        caller: &Caller,
        request: &PushRequest,
        pack: &mut dyn Read,
        limits: &PackLimits,
    ) -> PushAnswer {
        self.push_heard(caller, request, pack, limits, &mut Nobody)
    }

    /// As [`Repository::push`], for somebody who hears what the repository's hooks say while they run.
    ///
    /// A push whose audience goes away while a hook is asked about it is declined.
    pub fn push_heard(
        &self,
        caller: &Caller,
        request: &PushRequest,
        pack: &mut dyn Read,
        limits: &PackLimits,
        audience: &mut dyn Audience,
    ) -> PushAnswer {
        let kind = self.store.hash_kind();
        let options = match Options::parse(&request.options) {
            Ok(options) => options,
            Err(error) => return answer::bad_options(request, kind, &error),
        };
        if let Err(error) = caller.may_speak(&options) {
            return answer::other_agent(request, kind, &options, &error);
        }
        let format = options.format;
        let namespace = caller.namespace.as_ref();
        if namespace.is_some() && namespaced::asks_for_referee(&options) {
            return PushAnswer::refused(request, kind, namespaced::NO_REFEREE, Vec::new(), format);
        }
        let answer = self
            .judge_push(caller, request, &options, pack, limits, audience)
            .unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "push failed");
                PushAnswer::failed(request, kind, &error, format)
            });
        match namespace {
            Some(namespace) => namespaced::tell(answer, request, namespace),
            None => answer,
        }
    }

    fn judge_push(
        &self,
        caller: &Caller,
        request: &PushRequest,
        options: &Options,
        pack: &mut dyn Read,
        limits: &PackLimits,
        audience: &mut dyn Audience,
    ) -> Result<PushAnswer, RefereeError> {
        let namespace = caller.namespace.as_ref();
        let placed = Placed::new(request, namespace);
        let stored = &*placed.request;
        let mut overtaken = self.overtaken(stored)?;
        let is_lost = request.commands.len() == overtaken.len() && request.cert.is_none();
        let mut incoming = if is_lost && !self.looks_at_all()? {
            race::skip(request, pack, limits);
            None
        } else {
            self.receive(stored, pack, limits)?
        };
        if !request.signs_its_options() {
            return Ok(answer::unsigned_options(request, self.store.hash_kind(), options));
        }
        // Of those that race for one branch, one at a time is looked into; the others lose while they wait.
        let turn = if overtaken.is_empty() { self.turn(stored) } else { None };
        overtaken.extend(self.overtaken(stored)?);
        let turn = turn.filter(|_| overtaken.is_empty());
        let is_overtaken = |n: usize| overtaken.contains_key(&n);
        let complete = complete::look(&self.store, stored, is_overtaken, incoming.as_mut())?;
        let now = self.clock.now().wall;
        let signed = request.cert.as_ref();
        let signed = signed.map(|cert| signed::look(&self.store, caller, cert, now, &mut incoming));
        let signed = signed.transpose()?;
        let speaker = caller.speaker(options);
        let errand = Errand::new(&self.store, caller, &speaker, request, signed.as_ref())?;
        let mainline = self.last_brief().mainline.clone();
        let mut denied =
            denied(&self.store, request, namespace, mainline.as_ref(), incoming.as_ref())?;
        denied.warn(audience);
        let duplicates = request.duplicates();
        let is_refused = |n: usize| {
            let name = request.commands.get(n).map(|command| command.name.as_bstr());
            let twice = name.is_none_or(|name| duplicates.contains(name));
            twice || complete.refused.contains_key(&n) || is_overtaken(n) || placed.refuses(n)
        };
        // The hook could not say where the repository's history is to end.
        let left = denied.left(is_refused, |n| complete.shortens(n));
        let asked = Asked { request, left, broken: complete.refused.keys().copied().collect() };
        let said = if options.dry_run {
            Said { handled: Handled::unasked(asked.left), ..Said::default() }
        } else {
            let said = self.ask_hooks(&errand, asked, &mut denied, &mut incoming, audience)?;
            let Some(said) = said else {
                let kind = self.store.hash_kind();
                return Ok(answer::declined_by_hook(request, kind, options));
            };
            said
        };
        for _ in 0..MAX_ROUNDS {
            let brief = self.last_brief();
            let mut push =
                self.expand(caller, stored, options.clone(), incoming.as_ref(), &brief)?;
            push.signed.clone_from(&signed);
            complete.tell(&mut push);
            for (n, refusal) in &overtaken {
                // Whatever it asks for by now: nobody has looked whether its objects are there.
                let command = push.commands.get_mut(*n);
                if let Some(c) = command.filter(|c| !matches!(c.ask, Ask::Broken(_))) {
                    c.ask = Ask::Broken(Refusal::Ref(refusal.clone()));
                }
            }
            denied.refuse(&mut push);
            placed.refuse(&mut push);
            said.handled.tell(&mut push);
            for n in &said.declined {
                if let Some(command) = push.commands.get_mut(*n) {
                    command.ask = Ask::Broken(Refusal::Hook);
                }
            }
            self.study(&mut push, incoming.as_ref(), &brief)?;
            let proposal = Box::new(Proposal { push, door: caller.door, incoming });
            match self.ask(|back| Event::Decide(proposal, back))?? {
                Decided::Done(outcome) => {
                    drop(turn);
                    return Ok(self.answer(*outcome, errand));
                }
                // What was learned of the commits may no longer be so.
                Decided::Moved(again) => incoming = again,
            }
        }
        Err(RefereeError::Busy)
    }

    /// Runs the hooks that come before a push; `None` if `pre-receive` declines all of it.
    ///
    /// `proc-receive` makes refs of its own, so what it is asked about leaves quarantine first.
    fn ask_hooks(
        &self,
        errand: &Errand,
        asked: Asked<'_>,
        denied: &mut Denied,
        incoming: &mut Option<Quarantine>,
        audience: &mut dyn Audience,
    ) -> Result<Option<Said>, RefereeError> {
        let Asked { request, left, broken } = asked;
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

    fn status(&self, agent: Option<AgentId>) -> Result<Status, RefereeError> {
        self.ask(|back| Event::Status(agent, back))
    }

    fn receive(
        &self,
        request: &PushRequest,
        pack: &mut dyn Read,
        limits: &PackLimits,
    ) -> Result<Option<Quarantine>, RefereeError> {
        if !request.expects_pack() {
            return Ok(None);
        }
        let mut incoming = self.store.quarantine()?;
        incoming.ends_at(&request.shallow);
        incoming.receive_pack(pack, limits)?;
        Ok(Some(incoming))
    }

    fn expand(
        &self,
        caller: &Caller,
        request: &PushRequest,
        options: Options,
        incoming: Option<&Quarantine>,
        brief: &Brief,
    ) -> Result<Push, RefereeError> {
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
        Ok(expand(request, options, caller, &ground))
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

    /// Lands what the verdict says is to land. A dry run composes among its own objects, which go with it.
    fn land_all(&self, outcome: &mut Outcome) -> Vec<(usize, Accepted)> {
        let commits: Vec<(usize, Oid)> = outcome
            .verdict
            .commands
            .iter()
            .enumerate()
            .filter_map(|(n, decision)| match decision {
                Decision::Do(Step::Land { commit, .. }) => Some((n, *commit)),
                Decision::Do(_) | Decision::Nothing(_) | Decision::Refuse(_) => None,
            })
            .collect();
        let agent = outcome.push.speaker.agent.as_ref();
        let committer = &outcome.push.committer;
        let mut accepted = Vec::new();
        for (n, commit) in commits {
            let landed = match (outcome.push.options.dry_run, &mut outcome.scratch) {
                (false, _) => self.land(commit, agent, committer, outcome.push.principal()),
                (true, Some(scratch)) => self.would_land(commit, agent, scratch),
                (true, None) => continue,
            };
            let landed = landed.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "landing failed");
                Accepted::Failed(answer::chain(&error))
            });
            accepted.push((n, landed));
        }
        accepted
    }

    fn land(
        &self,
        commit: Oid,
        agent: Option<&AgentId>,
        committer: &Committer,
        principal: &str,
    ) -> Result<Accepted, RefereeError> {
        let _turn = self.landing.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..MAX_ROUNDS {
            let from = match self.landing_ground()? {
                Ok(from) => from,
                Err(refusal) => return Ok(Accepted::Refused(refusal)),
            };
            let mut composed = self.store.quarantine()?;
            let now = self.clock.now();
            let (to, footprint) =
                match compose(&mut composed, &self.footprinter, commit, from, now)? {
                    Composed::Already => return Ok(Accepted::Already),
                    Composed::Refused(refusal) => return Ok(Accepted::Refused(refusal)),
                    Composed::Ready { to, footprint } => (to, footprint),
                };
            let (agent, committer) = (agent.cloned(), committer.clone());
            let principal = principal.to_owned();
            let landing = Landing { commit, agent, committer, principal, from, to, footprint };
            let landing = Box::new(landing);
            match self.ask(|back| Event::Land(landing, composed, back))?? {
                Landed::Done { released } => {
                    return Ok(Accepted::Landed { from, to, released });
                }
                Landed::Refused(refusal) => return Ok(Accepted::Refused(refusal)),
                // Somebody else landed first: judge again on what is there now.
                Landed::Moved => {}
            }
        }
        Err(RefereeError::Busy)
    }

    /// What [`Repository::land`] would say, moving nothing.
    fn would_land(
        &self,
        commit: Oid,
        agent: Option<&AgentId>,
        scratch: &mut Quarantine,
    ) -> Result<Accepted, RefereeError> {
        let from = match self.landing_ground()? {
            Ok(from) => from,
            Err(refusal) => return Ok(Accepted::Refused(refusal)),
        };
        let now = self.clock.now();
        Ok(match compose(scratch, &self.footprinter, commit, from, now)? {
            Composed::Already => Accepted::Already,
            Composed::Refused(refusal) => Accepted::Refused(refusal),
            Composed::Ready { footprint, .. } => {
                let view = self.status(None)?.view;
                let holders = view.fences_against(agent, &footprint, now.monotonic);
                if holders.is_empty() || view.settings.bind == Policy::Advise {
                    Accepted::WouldLand
                } else {
                    Accepted::Refused(Refusal::Fenced { holders })
                }
            }
        })
    }

    /// Where current stands, if anything can land on it.
    fn landing_ground(&self) -> Result<Result<Oid, Refusal>, RefereeError> {
        let brief = self.ask(Event::Brief)?;
        Ok(match (brief.diverged, brief.current) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(current)) => Ok(current),
            (None, None) => Err(Refusal::NotMainline { mainline: brief.mainline }),
        })
    }

    /// What the actor said last. Whatever it leads to is judged against what the actor knows then.
    fn last_brief(&self) -> Arc<Brief> {
        Arc::clone(&self.board.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask<T>(&self, event: impl FnOnce(Sender<T>) -> Event) -> Result<T, RefereeError> {
        let (back, answer) = mpsc::channel();
        let events = self.events.as_ref().ok_or(RefereeError::Closed)?;
        events.send(event(back)).map_err(|_| RefereeError::Closed)?;
        answer.recv().map_err(|_| RefereeError::Closed)
    }
}

/// The refs shown to a fetcher by a repository that has no referee at the moment; as [`Repository::refs_for_fetch`].
///
/// # Errors
/// [`StoreError`] when refs cannot be read.
pub fn refs_for_fetch(store: &Store, prefixes: &Prefixes) -> Result<Vec<StoredRef>, StoreError> {
    let mut refs = refs_by_prefix(store, prefixes)?;
    let config = store.config()?;
    if !config.hidden_from_fetch.is_empty() {
        refs.retain(|r| !config.hidden_from_fetch.hides(r.name.as_bstr()));
    }
    Ok(refs)
}

fn refs_by_prefix(store: &Store, prefixes: &Prefixes) -> Result<Vec<StoredRef>, StoreError> {
    let mut of: Vec<&BStr> = prefixes.iter().collect();
    let all = of.is_empty() || of.len() > MAX_PREFIXES;
    if all || of.iter().any(|prefix| b"refs/".starts_with(prefix)) {
        return store.refs();
    }
    of.retain(|prefix| prefix.starts_with(b"refs/"));
    // They are sorted and disjoint, and so is what they give.
    let mut found = Vec::new();
    for prefix in of {
        found.extend(store.refs_below(prefix)?);
    }
    Ok(found)
}

impl Drop for Repository {
    /// Waits for the actor, so that the repository's lock is free once the last request is answered.
    fn drop(&mut self) {
        drop(self.events.take());
        if let Some(actor) = self.actor.take() {
            // An actor that panicked has said so on stderr; there is nothing to add.
            let _ = actor.join();
        }
    }
}
