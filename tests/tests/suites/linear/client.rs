//! One of the clients whose calls make the history, and the server that it finds again after restarts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use zit_tests::http::{self, Attempt};
use zit_tests::wire::{self, PushBody, Report, ZERO};

use super::model::{Call, Command, Entry, Grant, N_SLOTS};

/// The served repository; named so that no other test's server has one, should it get an old port.
pub(super) const REPOSITORY: &str = "linear.git";

/// How long a server may take to come back.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a group's slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refs that git knows no special rule for.
    Refs,
    /// Snapshots of one agent: an old value of zero stands for any.
    Wip,
    /// The mainline, which current moves with.
    Mainline,
    /// One resource.
    Claim,
}

/// A few refs that are pushed together, or a resource that is claimed.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: Kind,
    /// Whose seat everybody takes, or none for one's own.
    pub(super) seat: Option<String>,
    /// The refs, or the resource.
    pub(super) names: Vec<String>,
    /// The objects behind the values from 1 on.
    pub(super) oids: Vec<String>,
    /// The oid behind the value 0.
    pub(super) none: String,
}

/// Where the server is, across restarts.
#[derive(Debug, Default)]
pub(super) struct Service {
    state: Mutex<(u32, String)>,
    moved: Condvar,
}

/// What all clients share.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) service: Service,
    pub(super) groups: Vec<Group>,
    pub(super) started: Instant,
    /// How many calls are left to make.
    pub(super) budget: AtomicUsize,
}

/// One client.
pub(super) struct Client<'a> {
    n: usize,
    field: &'a Field,
    random: fastrand::Rng,
    /// What it last knew of each group.
    known: Vec<[u16; N_SLOTS]>,
    pub(super) history: Vec<Entry>,
}

impl Service {
    /// Says where the server is from now on.
    pub(super) fn set(&self, address: &str) {
        let mut state = self.state.lock().expect("no client panics while it looks");
        *state = (state.0 + 1, address.to_owned());
        self.moved.notify_all();
    }

    /// The server's life and address.
    fn now(&self) -> (u32, String) {
        self.state.lock().expect("no client panics while it looks").clone()
    }

    /// Waits until the server has another life than `life`, in which it could not be reached.
    fn wait(&self, life: u32) {
        let state = self.state.lock().expect("no client panics while it looks");
        let same = |state: &mut (u32, String)| state.0 == life;
        let (state, waited) = self
            .moved
            .wait_timeout_while(state, PATIENCE, same)
            .expect("no client panics while it waits");
        drop(state);
        assert!(!waited.timed_out(), "the server does not come back");
    }
}

impl Group {
    fn oid(&self, value: u16) -> &str {
        let index = usize::from(value).checked_sub(1);
        index.map_or(self.none.as_str(), |index| self.oids[index].as_str())
    }

    fn value(&self, oid: &str) -> u16 {
        let index = self.oids.iter().position(|known| known == oid);
        assert!(index.is_some() || oid == self.none, "{:?} holds {oid}", self.names);
        index.map_or(0, |index| u16::try_from(index + 1).expect("objects are few"))
    }
}

impl<'a> Client<'a> {
    pub(super) fn new(n: usize, seed: u64, field: &'a Field) -> Self {
        let random = fastrand::Rng::with_seed(seed.wrapping_add(n as u64));
        let known = vec![[0; N_SLOTS]; field.groups.len()];
        Self { n, field, random, known, history: Vec::new() }
    }

    /// Makes one call after another while there are any left; tells of each.
    pub(super) fn work(&mut self, done: &Sender<()>) {
        let take = |left: usize| left.checked_sub(1);
        while self.field.budget.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            self.step();
            done.send(()).expect("the test counts until all clients are gone");
        }
    }

    /// Reads everything that can be read.
    pub(super) fn read_all(&mut self) {
        for group in 0..self.field.groups.len() {
            for name in 0..self.field.groups[group].names.len() {
                self.read(group, name);
            }
        }
    }

    fn step(&mut self) {
        let group = self.random.usize(0..self.field.groups.len());
        match self.field.groups[group].kind {
            Kind::Claim => self.claim_or_release(group),
            Kind::Mainline if self.random.u8(0..10) < 6 => self.advance(group),
            Kind::Refs | Kind::Wip if self.random.u8(0..10) < 7 => self.push_some(group),
            Kind::Refs | Kind::Wip | Kind::Mainline => {
                let name = self.random.usize(0..self.field.groups[group].names.len());
                self.read(group, name);
            }
        }
    }

    /// Moves some of the slots.
    fn push_some(&mut self, group: usize) {
        let mut slots = (0..self.field.groups[group].names.len()).collect::<Vec<_>>();
        self.random.shuffle(&mut slots);
        let n_slots = self.random.usize(1..=slots.len());
        let commands = slots[..n_slots].iter().map(|&slot| self.command(group, slot)).collect();
        let atomic = self.random.bool();
        self.push(group, commands, atomic);
    }

    fn command(&mut self, group: usize, slot: usize) -> Command {
        let Group { kind, oids, .. } = &self.field.groups[group];
        let old = self.known[group][slot];
        let highest = u16::try_from(oids.len()).expect("objects are few");
        let new =
            if old != 0 && self.random.u8(0..4) == 0 { 0 } else { self.random.u16(1..=highest) };
        let new = if new == old { new % highest + 1 } else { new };
        let repeatable = false;
        Command { slot, old: (*kind != Kind::Wip || old != 0).then_some(old), new, repeatable }
    }

    /// Moves the mainline one level up; both commits of a level have both below as parents.
    fn advance(&mut self, group: usize) {
        let old = self.known[group][0];
        let new = old.div_ceil(2) * 2 + self.random.u16(1..=2);
        if usize::from(new) <= self.field.groups[group].oids.len() {
            // The mainline's own value is `nothing_to_do`, whatever the push expected.
            let command = Command { slot: 0, old: Some(old), new, repeatable: true };
            self.push(group, vec![command], self.n.is_multiple_of(2));
        }
    }

    fn push(&mut self, group: usize, commands: Vec<Command>, atomic: bool) {
        let Group { seat, names, .. } = &self.field.groups[group];
        let line = |command: &Command| {
            let (old, new) = (command.old.unwrap_or(0), command.new);
            let oids = [old, new].map(|value| self.field.groups[group].oid(value));
            format!("{} {} {}", oids[0], oids[1], names[command.slot])
        };
        let lines = commands.iter().map(line).collect::<Vec<_>>();
        let seat = seat.clone().unwrap_or_else(|| format!("c{}", self.n));
        let (times, report) = self.send(&seat, &lines, atomic);
        let told = |command: &Command| {
            let report = report.as_ref()?;
            outcome(report, &names[command.slot])
        };
        let answer = commands.iter().map(told).collect::<Option<Vec<_>>>();
        let (refused, first) = (answer.as_ref().is_some_and(|a| a.contains(&false)), commands[0]);
        for (command, done) in commands.iter().zip(answer.iter().flatten()) {
            if *done {
                self.known[group][command.slot] = command.new;
            }
        }
        self.record(group, times, Call::Push { commands, atomic, answer });
        if refused {
            self.read(group, first.slot);
        }
    }

    fn claim_or_release(&mut self, group: usize) {
        let resource = &self.field.groups[group].names[0];
        let (agent, seat) = (self.n, format!("k{}", self.n));
        let is_claim = self.random.bool();
        let verb = if is_claim { "claim" } else { "release" };
        let refname = format!("refs/zit/{verb}/{resource}");
        let (times, report) = self.send(&seat, &[format!("{ZERO} {ZERO} {refname}")], false);
        let done = report.as_ref().and_then(|report| outcome(report, &refname));
        let call = if is_claim {
            let epoch = report.as_ref().and_then(|report| epoch(&report.progress));
            let granted = || epoch.map_or(Grant::Renewed, Grant::New);
            let grant = |done| if done { granted() } else { Grant::Refused };
            Call::Claim { agent, answer: done.map(grant) }
        } else {
            Call::Release { agent, answer: done.map(|done| !done) }
        };
        self.record(group, times, call);
    }

    /// Reads one ref. A lost answer tells nothing and is left out.
    fn read(&mut self, group: usize, name: usize) {
        let Group { kind, names, .. } = &self.field.groups[group];
        if *kind == Kind::Claim {
            return;
        }
        let refname = &names[name];
        let prefix = wire::pkt(format!("ref-prefix {refname}\n").as_bytes());
        let body =
            [&wire::pkt(b"command=ls-refs\n"), b"0001".as_slice(), &prefix, b"0000"].concat();
        let path = format!("/{REPOSITORY}/git-upload-pack");
        let headers =
            ["Content-Type: application/x-git-upload-pack-request", "Git-Protocol: version=2"];
        let (times, answer) = self.call(&path, &headers, &body);
        let Some(refs) = answer.and_then(|body| wire::listed(&body)) else { return };
        let oid = refs.iter().find(|(found, _)| found == refname).map(|(_, oid)| oid.as_str());
        let found = self.field.groups[group].value(oid.unwrap_or(ZERO));
        // The mainline's two names stand for one slot.
        let slot = if *kind == Kind::Mainline { 0 } else { name };
        self.known[group][slot] = found;
        self.record(group, times, Call::Read { slot, found });
    }

    fn send(&self, seat: &str, lines: &[String], atomic: bool) -> ((i64, i64), Option<Report>) {
        let commands = lines.iter().map(|line| line.clone().into_bytes()).collect();
        let only_deletes = lines.iter().all(|line| line.split(' ').nth(1) == Some(ZERO));
        let pack = if only_deletes { Vec::new() } else { wire::EMPTY_PACK.to_vec() };
        let body = PushBody { commands, options: Vec::new(), pack, atomic }.encode();
        let path = format!("/@{seat}/{REPOSITORY}/git-receive-pack");
        let headers = ["Content-Type: application/x-git-receive-pack-request"];
        let (times, answer) = self.call(&path, &headers, &body);
        (times, answer.map(|body| Report::read(&body)))
    }

    /// One request, when it was sent and answered, and its body unless the answer was lost.
    fn call(&self, path: &str, headers: &[&str], body: &[u8]) -> ((i64, i64), Option<Vec<u8>>) {
        loop {
            let (life, address) = self.field.service.now();
            let sent = self.now();
            let answer = match http::attempt(&address, path, headers, body) {
                Attempt::NotSent => {
                    self.field.service.wait(life);
                    continue;
                }
                Attempt::Lost => None,
                Attempt::Answered(response) => (response.status == 200).then_some(response.body),
            };
            return ((sent, self.now()), answer);
        }
    }

    fn now(&self) -> i64 {
        i64::try_from(self.field.started.elapsed().as_nanos()).expect("the test takes no centuries")
    }

    fn record(&mut self, group: usize, (sent, answered): (i64, i64), call: Call) {
        self.history.push(Entry { group, sent, answered, call });
    }
}

/// Whether the command for `refname` was done, if the report says.
fn outcome(report: &Report, refname: &str) -> Option<bool> {
    let line = |line: &String| {
        let (status, rest) = line.split_once(' ')?;
        let is_about = rest == refname || rest.starts_with(&format!("{refname} "));
        (is_about && (status == "ok" || status == "ng")).then_some(status == "ok")
    };
    report.lines.iter().find_map(line)
}

/// The epoch in `... (epoch 7)`.
fn epoch(progress: &str) -> Option<u64> {
    let (_, rest) = progress.split_once("(epoch ")?;
    rest.split(')').next()?.parse().ok()
}
