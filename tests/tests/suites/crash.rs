//! `kill -9` at any moment: what was acknowledged is there, anything else is there wholly or not at
//! all, and nothing half-made is left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zit_tests::{Git, Run, Server, World, files, server};

/// How many pushes are made while the server is being killed.
const N_PUSHES: usize = 200;

/// How many accepts are made while the server is being killed.
const N_ACCEPTS: usize = 50;

/// How many clients push at once.
const N_WORKERS: usize = 4;

/// Chooses the moments; another seed is another run.
const SEED: u64 = 7;

/// The longest time between a start and a kill.
const LONGEST_LIFE: Duration = Duration::from_millis(900);

const FILES: &[(&str, &str)] = &[("README.md", "# Repo\n")];

/// One client that makes one commit after another.
struct Worker {
    name: String,
    git: Git,
    n_commits: usize,
    /// The last commit that the server acknowledged.
    acknowledged: Option<String>,
    /// A commit whose push was cut off: the server may have it.
    unsure: Vec<String>,
    /// How many pushes were cut off in all.
    n_unsure: usize,
}

impl Worker {
    fn new(world: &World, server: &Server, n: usize) -> Self {
        let name = format!("w{n}");
        let git = world.git().clone_of(&server.seat(&name, "repo.git"), &name);
        Self { name, git, n_commits: 0, acknowledged: None, unsure: Vec::new(), n_unsure: 0 }
    }

    fn commit(&mut self) -> String {
        self.n_commits += 1;
        let (name, n) = (&self.name, self.n_commits);
        let path = format!("{name}/f{n}.txt");
        self.git.commit(&format!("{name} {n}"), &[(&path, &format!("{n}\n"))])
    }

    fn note(&mut self, commit: String, acknowledged: bool) {
        if acknowledged {
            self.acknowledged = Some(commit);
            self.unsure.clear();
        } else {
            self.unsure.push(commit);
            self.n_unsure += 1;
        }
    }

    /// Pushes one commit to two branches in one transaction.
    fn push(&mut self, server: &Server) {
        let commit = self.commit();
        let [a, b] = ["a", "b"].map(|leaf| format!("HEAD:refs/heads/{}/{leaf}", self.name));
        let url = server.seat(&self.name, "repo.git");
        let run = self.git.run(["push", "--quiet", "--force", "--atomic", &url, &a, &b]);
        assert_not_refused(&run);
        self.note(commit, run.is_ok());
    }

    /// Both branches must be at the acknowledged commit or at one whose push was cut off.
    #[track_caller]
    fn verify(&self, bare: &Git) {
        let [a, b] =
            ["a", "b"].map(|leaf| bare.resolve(&format!("refs/heads/{}/{leaf}", self.name)));
        assert_eq!(a, b, "{}: one transaction moved one of its two refs", self.name);
        let possible =
            a == self.acknowledged || a.as_ref().is_some_and(|found| self.unsure.contains(found));
        let (name, acknowledged, unsure) = (&self.name, &self.acknowledged, &self.unsure);
        assert!(possible, "{name}: found {a:?}, not {acknowledged:?} nor one of {unsure:?}");
    }
}

#[test]
fn pushes_survive_kills_at_random_moments() {
    let world = World::new();
    let bare = seeded(&world);
    let mut server = Server::start(&world);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut workers = (0..N_WORKERS).map(|n| Worker::new(&world, &server, n)).collect::<Vec<_>>();
    let budget = AtomicUsize::new(N_PUSHES);
    let mut n_kills = 0;
    while budget.load(Ordering::SeqCst) > 0 {
        let life = LONGEST_LIFE.mul_f64(random.f64());
        live_and_die(&mut server, life, &budget, &mut workers, Worker::push);
        n_kills += 1;
        server = server.restart();
        wake(&world, &server);
        assert_whole(&bare, &format!("kill {n_kills}"));
        for worker in &workers {
            worker.verify(&bare);
        }
    }
    let n_acknowledged = workers.iter().filter(|worker| worker.acknowledged.is_some()).count();
    assert!(n_acknowledged > 0, "no push was ever acknowledged in {n_kills} lives");
    let n_unsure = workers.iter().map(|worker| worker.n_unsure).sum::<usize>();
    eprintln!("{n_kills} kills, {n_unsure} pushes cut off");
    assert!(n_kills > 3, "only {n_kills} kills");
}

#[test]
fn accepts_survive_kills_at_random_moments() {
    let world = World::new();
    let bare = seeded(&world);
    let mut server = Server::start(&world);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut changers = (0..N_WORKERS).map(|n| Changer::new(&world, &server, n)).collect::<Vec<_>>();
    let budget = AtomicUsize::new(N_ACCEPTS);
    let mut n_kills = 0;
    while budget.load(Ordering::SeqCst) > 0 {
        // Accepts are fewer than pushes, so that lives must be shorter for as many kills.
        let life = LONGEST_LIFE.mul_f64(0.2 + random.f64() / 2.5);
        live_and_die(&mut server, life, &budget, &mut changers, Changer::accept);
        n_kills += 1;
        server = server.restart();
        wake(&world, &server);
        assert_whole(&bare, &format!("kill {n_kills}"));
        for changer in &changers {
            changer.verify(&bare);
        }
    }
    let n_landed = changers.iter().map(|changer| changer.landed.len()).sum::<usize>();
    eprintln!("{n_kills} kills, {n_landed} accepts acknowledged");
    assert!(n_landed > 0, "nothing ever landed in {n_kills} lives");
    assert!(n_kills > 3, "only {n_kills} kills");
}

/// One client that proposes one change after another, each from where the mainline began.
struct Changer {
    worker: Worker,
    /// The changes that the server said have landed.
    landed: Vec<String>,
}

impl Changer {
    fn new(world: &World, server: &Server, n: usize) -> Self {
        Self { worker: Worker::new(world, server, n), landed: Vec::new() }
    }

    fn accept(&mut self, server: &Server) {
        self.worker.git.ok(["reset", "--quiet", "--hard", "origin/main"]);
        self.worker.commit();
        let url = server.seat(&self.worker.name, "repo.git");
        let run = self.worker.git.run(["push", "--quiet", &url, "HEAD:refs/for/main"]);
        assert_not_refused(&run);
        if run.is_ok() {
            self.landed.push(format!("{} {}", self.worker.name, self.worker.n_commits));
        }
    }

    /// Every acknowledged change is on the mainline, and none is there twice.
    #[track_caller]
    fn verify(&self, bare: &Git) {
        let subjects = bare.ok(["log", "--format=%s", "refs/heads/main"]);
        let times = |subject: &str| subjects.lines().filter(|line| *line == subject).count();
        for subject in &self.landed {
            assert_eq!(times(subject), 1, "{subject:?} was acknowledged: {subjects}");
        }
        for n in 1..=self.worker.n_commits {
            let subject = format!("{} {n}", self.worker.name);
            assert!(times(&subject) <= 1, "{subject:?} landed twice: {subjects}");
        }
    }
}

/// A push may be cut off, but no server has a reason to refuse it.
#[track_caller]
fn assert_not_refused(run: &Run) {
    assert!(!run.stderr.contains("rejected]"), "refused: {run}");
}

/// Lets every client work until the server is killed after `life`, or the budget is used up.
fn live_and_die<T: Send>(
    server: &mut Server,
    life: Duration,
    budget: &AtomicUsize,
    clients: &mut [T],
    step: impl Fn(&mut T, &Server) + Sync,
) {
    let (killed, pid) = (AtomicUsize::new(0), server.pid());
    std::thread::scope(|scope| {
        let (server, killed, step) = (&*server, &killed, &step);
        for client in clients {
            scope.spawn(move || {
                while killed.load(Ordering::SeqCst) == 0 && take_one(budget) {
                    step(client, server);
                }
            });
        }
        // Not synchronisation: the moment of the kill is what this test varies.
        std::thread::sleep(life);
        killed.store(1, Ordering::SeqCst);
        server::kill_nine(pid);
    });
    server.kill();
}

/// Takes one of what is left, if anything is.
fn take_one(budget: &AtomicUsize) -> bool {
    budget.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// A repository in which also a small pack goes by way of files, so that every point is passed.
fn seeded(world: &World) -> Git {
    let bare = server::seeded(world, "repo.git", FILES);
    bare.ok(["config", "receive.unpackLimit", "1"]);
    // What folds packs is killed elsewhere, and holds a lock of its own meanwhile.
    bare.ok(["config", "maintenance.auto", "false"]);
    bare
}

/// Whether what dies there has been acknowledged before, most likely.
fn is_late(point: &str) -> bool {
    point.starts_with("settle.")
}

/// Every named point of a push, and the later visits of those that a push passes more than once.
fn crash_points() -> impl Iterator<Item = &'static str> {
    let later = ["quarantine.migrating:2"];
    let points =
        zit_store::CRASH_POINTS.iter().copied().filter(|at| !at.starts_with("checkpoint."));
    points.chain(later)
}

#[test]
fn a_push_cut_off_at_each_named_point_is_there_wholly_or_not_at_all() {
    for point in crash_points() {
        let world = World::new();
        let bare = seeded(&world);
        let server = Server::start(&world);
        let mut worker = Worker::new(&world, &server, 0);
        worker.push(&server);
        drop(server);
        let mut server = Server::start_with(&world, &[], &[("ZIT_CRASH_AT", point)]);
        worker.push(&server);
        assert!(is_late(point) || !worker.unsure.is_empty(), "{point}: it was acknowledged");
        assert!(server.dies(), "{point}: the push never came to this point: {}", server.log());
        let server = server.restart();
        wake(&world, &server);
        assert_whole(&bare, point);
        worker.verify(&bare);
        worker.push(&server);
        assert_eq!(worker.unsure, [""; 0], "{point}: the next push is served: {}", server.log());
        worker.verify(&bare);
    }
}

#[test]
fn an_accept_cut_off_at_each_named_point_lands_once_or_not_at_all() {
    for point in crash_points() {
        let world = World::new();
        let bare = seeded(&world);
        let server = Server::start(&world);
        let [mut first, mut second] = [0, 1].map(|n| Changer::new(&world, &server, n));
        first.accept(&server);
        drop(server);
        let mut server = Server::start_with(&world, &[], &[("ZIT_CRASH_AT", point)]);
        second.accept(&server);
        assert!(is_late(point) || second.landed.is_empty(), "{point}: it was acknowledged");
        assert!(server.dies(), "{point}: the accept never came to this point: {}", server.log());
        let server = server.restart();
        wake(&world, &server);
        assert_whole(&bare, point);
        second.verify(&bare);
        let again = push_again(&second, &server);
        assert!(again.is_ok(), "{point}: the same accept again: {again}");
        second.landed.push("w1 1".to_owned());
        first.verify(&bare);
        second.verify(&bare);
        assert_whole(&bare, point);
    }
}

fn push_again(changer: &Changer, server: &Server) -> Run {
    let url = server.seat(&changer.worker.name, "repo.git");
    changer.worker.git.run(["push", "--quiet", &url, "HEAD:refs/for/main"])
}

/// Makes the server open the repository, which is when it recovers.
#[track_caller]
fn wake(world: &World, server: &Server) {
    world.git().ok(["ls-remote", "--quiet", &server.url("repo.git")]);
}

/// What must hold after every recovery.
#[track_caller]
fn assert_whole(bare: &Git, case: &str) {
    let (current, mainline) = (bare.resolve("refs/zit/current"), bare.resolve("refs/heads/main"));
    assert_eq!(current, mainline, "{case}: current is the mainline");
    let fsck = bare.run(["fsck", "--strict"]);
    assert!(fsck.is_ok(), "{case}: {fsck}");
    let left = files::leftovers(bare.dir());
    assert!(left.is_empty(), "{case}: left behind: {left:?}");
}
