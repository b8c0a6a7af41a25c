//! The facade: one repository and its referee, shared by all requests.
//!
//! `shown` says which refs are shown to whom, `pushed` takes a push from its pack to its answer, and `accepts` lands.

mod accepts;
mod pushed;
mod shown;

use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use zit_model::AgentId;
use zit_model::options::Options;
use zit_store::{
    Access, Audience, Glance, Maintained, PackLimits, Reading, Stop, Store, StoreError,
};
use zit_wire::receive::PushRequest;

use self::pushed::Sent;
pub use self::shown::refs_for_fetch;
use crate::actor::{Actor, Board, Brief, Event, Status};
use crate::answer::{self, PushAnswer};
use crate::carry_out::millis;
use crate::clock::{BootClock, Clock};
use crate::error::RefereeError;
use crate::footprints::Footprinter;
use crate::hooks::Nobody;
use crate::namespaced;
use crate::open;
use crate::race::Turnstile;
use crate::seen::Seen;
use crate::signed;
use crate::speaker::Caller;

/// How often a push or a landing may find that current has moved before it gives up. Landings wait their turn, so only
/// direct pushes of the mainline and stock git move it under one.
const MAX_ROUNDS: usize = 64;

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
            return answer::no_referee(request, kind, &options);
        }
        let answer = self
            .judge_push(&Sent::new(caller, request, &options), pack, limits, audience)
            .unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "push failed");
                PushAnswer::failed(request, kind, &error, format)
            });
        match namespace {
            Some(namespace) => namespaced::tell(answer, request, namespace),
            None => answer,
        }
    }

    /// What the actor said last. Whatever it leads to is judged against what the actor knows then.
    fn last_brief(&self) -> Arc<Brief> {
        Arc::clone(&self.board.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn status(&self, agent: Option<AgentId>) -> Result<Status, RefereeError> {
        self.ask(|back| Event::Status(agent, back))
    }

    fn ask<T>(&self, event: impl FnOnce(Sender<T>) -> Event) -> Result<T, RefereeError> {
        let (back, answer) = mpsc::channel();
        let events = self.events.as_ref().ok_or(RefereeError::Closed)?;
        events.send(event(back)).map_err(|_| RefereeError::Closed)?;
        answer.recv().map_err(|_| RefereeError::Closed)
    }
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
