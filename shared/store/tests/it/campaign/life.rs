//! One life: a process that works through random transactions, says so, and dies.
//!
//! It says `try <name> <old> <new> …` before a transaction and `ok <n>` once the first `n` are acknowledged, each a line
//! on standard error.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use fastrand::Rng;
use zit_model::{Oid, RefUpdate};
use zit_store::{Access, CRASH_POINTS, PackLimits, Quarantine, SHALLOW_CRASH_POINTS, Store};

use super::N_PACKS;
use crate::support::{Repo, create, delete, draft, moved, name, somebody};

/// How many transactions a life has at most.
const N_TRANSACTIONS: usize = 40;

const LIMITS: PackLimits = PackLimits { max_bytes: 1 << 20, max_objects: 100 };

/// Refs that are written before the answer.
const AT_ONCE: &[&str] = &["refs/heads/a", "refs/heads/b/c", "refs/heads/b/d", "refs/tags/t"];

/// Refs whose files follow.
const DEFERRED: &[&str] =
    &["refs/zit/claims/1", "refs/zit/claims/2", "refs/zit/wip/a/x", "refs/zit/agents/a/state"];

/// So little is journaled between two checkpoints, kept, and put into one segment.
const SMALL: &[(&str, &str)] =
    &[("ZIT_CHECKPOINT_BYTES", "4000"), ("ZIT_KEPT_BYTES", "20000"), ("ZIT_SEGMENT_BYTES", "6000")];

/// Every ref, by name, and every commit of the file `shallow` behind `shallow/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) BTreeMap<String, String>);

impl State {
    pub(super) fn of(repo: &Repo) -> Self {
        Self::with_ends(repo.git_refs(), repo)
    }

    /// Refs, and what the file `shallow` says.
    pub(super) fn with_ends(mut refs: BTreeMap<String, String>, repo: &Repo) -> Self {
        let text = std::fs::read_to_string(repo.path.join("shallow")).unwrap_or_default();
        refs.extend(text.lines().map(|root| (format!("shallow/{root}"), root.to_owned())));
        Self(refs)
    }

    pub(super) fn is_shallow(&self) -> bool {
        self.0.keys().any(|name| name.starts_with("shallow/"))
    }

    fn apply(&mut self, transaction: &[Update]) {
        for (name, _, new) in transaction {
            match new {
                Some(new) => drop(self.0.insert(name.clone(), new.clone())),
                None => drop(self.0.remove(name)),
            }
        }
    }
}

/// Name, old and new value.
type Update = (String, Option<String>, Option<String>);

/// What a process did, as far as it said.
pub(super) struct Life {
    tried: Vec<Vec<Update>>,
    /// How many of them are acknowledged.
    pub(super) acknowledged: usize,
    pub(super) crashed: bool,
    at: Option<String>,
}

impl Life {
    /// A life of transactions, which ends at a crash point or by a signal after an answer.
    pub(super) fn lived(repo: &Repo, random: &mut Rng) -> Self {
        let killed_after = (random.u8(0..5) == 0).then(|| random.usize(1..10));
        let point = random.choice([CRASH_POINTS, SHALLOW_CRASH_POINTS].concat()).unwrap();
        let at = killed_after.is_none().then(|| format!("{point}:{}", random.u8(1..8)));
        run(repo, N_TRANSACTIONS, random.u64(..), at, killed_after)
    }

    /// An opening of the repository, which may end at a crash point.
    pub(super) fn recovering(repo: &Repo, random: &mut Rng) -> Self {
        let points =
            ["tx.renamed", "shallow.renamed", "settle.packed", "settle.objects", "settle.refs"];
        let at = format!("{}:{}", random.choice(points).unwrap(), random.u8(1..3));
        run(repo, 0, random.u64(..), Some(at), None)
    }

    /// Whether it ended at that crash point.
    pub(super) fn died_at(&self, point: &str) -> bool {
        let at = self.at.as_deref().and_then(|at| at.split_once(':'));
        self.crashed && at.is_some_and(|(name, _)| name == point)
    }

    /// `found` must be the state after all that was acknowledged and some of what was tried after it, in order.
    #[track_caller]
    pub(super) fn assert_possible(&self, before: &State, found: &State, case: &str) {
        let mut state = before.clone();
        let mut possible = self.acknowledged == 0 && state == *found;
        for (i, transaction) in self.tried.iter().enumerate() {
            state.apply(transaction);
            possible |= i + 1 >= self.acknowledged && state == *found;
        }
        let Self { tried, acknowledged, at, .. } = self;
        assert!(
            possible,
            "{case}, at {at:?}: {acknowledged} of {tried:#?} are acknowledged; before {before:#?}, after {found:#?}"
        );
    }
}

/// Not a test on its own: the process that dies. It does nothing unless a test starts it with its instructions.
#[test]
fn victim() {
    let Ok(seed) = std::env::var("ZIT_CAMPAIGN_SEED") else { return };
    let repo = std::env::var("ZIT_CAMPAIGN_REPO").unwrap();
    let count = std::env::var("ZIT_CAMPAIGN_COUNT").unwrap().parse().unwrap();
    let store = Store::open(Path::new(&repo), Access::Referee).unwrap();
    let seed = seed.parse().unwrap();
    Worker { store: &store, random: Rng::with_seed(seed), seed, path: Path::new(&repo) }
        .work(count);
}

fn run(
    repo: &Repo,
    count: usize,
    seed: u64,
    at: Option<String>,
    killed_after: Option<usize>,
) -> Life {
    #[allow(clippy::disallowed_methods, reason = "this test again, to be killed")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "campaign::life::victim", "--nocapture"])
        .env("ZIT_CAMPAIGN_SEED", seed.to_string())
        .env("ZIT_CAMPAIGN_COUNT", count.to_string())
        .env("ZIT_CAMPAIGN_REPO", &repo.path)
        .envs(SMALL.iter().copied())
        .envs(at.iter().map(|at| ("ZIT_CRASH_AT", at)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut life = Life { tried: Vec::new(), acknowledged: 0, crashed: false, at };
    let (mut n_answers, mut complaints) = (0, String::new());
    for said in BufReader::new(child.stderr.take().unwrap()).lines() {
        let said = said.unwrap();
        if let Some(updates) = said.strip_prefix("try ") {
            life.tried.push(parse(updates));
        } else if let Some(count) = said.strip_prefix("ok ") {
            life.acknowledged = count.parse().unwrap();
            n_answers += 1;
        } else {
            complaints += &format!("{said}\n");
        }
        if killed_after == Some(n_answers) {
            // It may just have ended by itself.
            let _ = child.kill();
        }
    }
    life.crashed = !child.wait().unwrap().success();
    assert!(!complaints.contains("panicked"), "{complaints}");
    life
}

fn parse(updates: &str) -> Vec<Update> {
    let value = |text: &str| (text != "-").then(|| text.to_owned());
    let words: Vec<&str> = updates.split(' ').collect();
    words.chunks(3).map(|of| (of[0].to_owned(), value(of[1]), value(of[2]))).collect()
}

/// One line, in one write: what was said before a crash has been said.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The process that works.
struct Worker<'a> {
    store: &'a Store,
    random: Rng,
    seed: u64,
    path: &'a Path,
}

impl Worker<'_> {
    fn work(mut self, count: usize) {
        for n in 1..=count {
            match self.random.u8(0..12) {
                0 | 1 => self.store.settle().unwrap(),
                2 => self.store.checkpoint().unwrap(),
                _ => {}
            }
            self.transaction(n);
        }
        self.store.flush().unwrap();
        say(&format!("ok {count}"));
    }

    fn transaction(&mut self, n: usize) {
        let (new, roots, quarantine) = self.commit(n);
        let updates = self.updates(new);
        let value = |oid: Option<Oid>| oid.map_or_else(|| "-".to_owned(), |oid| oid.to_string());
        let words = updates.iter().map(|update| {
            let (old, new) = (update.change.old_value(), update.change.new_value());
            format!("{} {} {}", update.name, value(old), value(new))
        });
        let ends = roots.iter().map(|root| format!("shallow/{root} - {root}"));
        say(&format!("try {}", words.chain(ends).collect::<Vec<_>>().join(" ")));
        let objects = quarantine.objects();
        let mut prepared = self.store.prepare_seeing(&updates, &[&objects]).unwrap();
        prepared.end_at(&roots).unwrap();
        let all_deferred = updates.iter().all(is_deferred);
        if all_deferred && roots.is_empty() && self.random.bool() {
            prepared.stage(draft(), vec![quarantine]).unwrap();
            if self.random.u8(0..3) > 0 {
                return;
            }
            self.store.flush().unwrap();
        } else {
            prepared.commit(draft(), vec![quarantine]).unwrap();
        }
        say(&format!("ok {n}"));
    }

    /// A commit that is new: written here, or out of a pack. Those of the former whose parent is nowhere end history.
    fn commit(&mut self, n: usize) -> (Oid, BTreeSet<Oid>, Quarantine) {
        let mut quarantine = self.store.quarantine().unwrap();
        if self.random.u8(0..3) == 0 {
            let n = self.random.usize(0..N_PACKS);
            let beside = |name: &str| self.path.with_file_name(format!("{name}-{n}"));
            let pack = std::fs::read(beside("pack")).unwrap();
            quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
            let new = std::fs::read_to_string(beside("new")).unwrap();
            return (new.parse().unwrap(), BTreeSet::new(), quarantine);
        }
        let is_cut = self.random.u8(0..4) == 0;
        let parent = is_cut.then(|| format!("{:040x}", self.random.u128(1..)).parse().unwrap());
        let text = format!("{} {n}\n", self.seed);
        let new = quarantine
            .write_document_commit("f", text.as_bytes(), parent.as_slice(), "m\n", &somebody())
            .unwrap();
        if !is_cut {
            return (new, BTreeSet::new(), quarantine);
        }
        quarantine.ends_at(&[new]);
        (new, quarantine.roots(&[new]).unwrap().remove(0), quarantine)
    }

    /// One to three refs, or current and the mainline together.
    fn updates(&mut self, new: Oid) -> Vec<RefUpdate> {
        let old = self.store.find_ref(&name("refs/zit/current")).unwrap().unwrap();
        if old != new && self.random.u8(0..5) == 0 {
            return ["refs/zit/current", "refs/heads/main"]
                .map(|name| moved(name, old, new))
                .into();
        }
        let mut names = match self.random.u8(0..3) {
            0 => AT_ONCE.to_vec(),
            1 => DEFERRED.to_vec(),
            _ => [AT_ONCE, DEFERRED].concat(),
        };
        self.random.shuffle(&mut names);
        names.truncate(self.random.usize(1..4));
        names.into_iter().map(|name| self.update(name, new)).collect()
    }

    fn update(&mut self, of: &str, new: Oid) -> RefUpdate {
        match self.store.find_ref(&name(of)).unwrap() {
            None => create(of, new),
            Some(old) if old == new || self.random.u8(0..3) == 0 => delete(of, old),
            Some(old) => moved(of, old, new),
        }
    }
}

fn is_deferred(update: &RefUpdate) -> bool {
    DEFERRED.iter().any(|deferred| update.name == name(deferred))
}
