//! Many agents do everything at once, with stock git packing refs beside them; then the books must
//! balance.

use std::collections::BTreeMap;

use zit_tests::{Git, Run, Server, World, files, server};

/// How many agents.
const N_AGENTS: usize = 6;

/// How many steps each takes.
const N_STEPS: usize = 30;

/// Chooses what they do; another seed is another storm.
const SEED: u64 = 11;

/// What they claim.
const RESOURCES: [&str; 3] = ["src/config.rs#parse", "src/config.rs#render", "docs"];

const FILES: &[(&str, &str)] = &[(
    "src/config.rs",
    "pub fn parse() -> u32 {\n    1\n}\n\npub fn render() -> u32 {\n    2\n}\n",
)];

/// One agent, and what the server acknowledged to it.
struct Agent {
    name: String,
    git: Git,
    random: fastrand::Rng,
    n_commits: usize,
    /// The branches that should be there, and where.
    branches: BTreeMap<String, String>,
    /// The subjects of the changes that landed.
    landed: Vec<String>,
    /// The resources it holds.
    held: Vec<&'static str>,
}

#[test]
fn after_a_storm_of_pushes_claims_and_accepts_the_books_balance() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let mut server = Server::start(&world);
    let mut agents = (0..N_AGENTS).map(|n| Agent::new(&world, &server, n)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let working = agents.iter_mut().map(|agent| {
            scope.spawn(move || {
                for _ in 0..N_STEPS {
                    agent.step();
                }
            })
        });
        let working = working.collect::<Vec<_>>();
        while !working.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            bare.ok(["gc", "--quiet"]);
        }
    });
    assert!(server.is_alive(), "{}", server.log());
    assert!(!server.log().contains("panicked"), "{}", server.log());
    balance(&bare, &agents);
    let server = server.restart();
    world.git().ok(["ls-remote", "--quiet", &server.url("app.git")]);
    balance(&bare, &agents);
}

impl Agent {
    fn new(world: &World, server: &Server, n: usize) -> Self {
        let name = format!("a{n}");
        let git = world.git().clone_of(&server.seat(&name, "app.git"), &name);
        let random = fastrand::Rng::with_seed(SEED + n as u64);
        let (branches, landed, held) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { name, git, random, n_commits: 0, branches, landed, held }
    }

    fn step(&mut self) {
        match self.random.u8(0..10) {
            0..=3 => self.push_branch(),
            4 => self.delete_branch(),
            5..=6 => self.accept(),
            7..=8 => self.claim(),
            _ => self.release(),
        }
    }

    /// A new commit in a file of its own, on what the agent last saw of the mainline.
    fn commit(&mut self) -> (String, String) {
        self.n_commits += 1;
        let subject = format!("{} {}", self.name, self.n_commits);
        self.git.ok(["fetch", "--quiet"]);
        self.git.ok(["checkout", "--quiet", "--detach", "origin/main"]);
        let path = format!("work/{}-{}.rs", self.name, self.n_commits);
        let text = format!("pub fn f{}() {{}}\n", self.n_commits);
        (self.git.commit(&subject, &[(&path, &text)]), subject)
    }

    fn push_branch(&mut self) {
        let (commit, _) = self.commit();
        let branch = format!("refs/heads/{}/b{}", self.name, self.random.u8(0..3));
        self.git.ok(["push", "--quiet", "--force", "origin", &format!("HEAD:{branch}")]);
        self.branches.insert(branch, commit);
    }

    fn delete_branch(&mut self) {
        if let Some((branch, _)) = self.branches.pop_first() {
            self.git.ok(["push", "--quiet", "origin", &format!(":{branch}")]);
        }
    }

    fn accept(&mut self) {
        let (_, subject) = self.commit();
        self.git.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
        self.landed.push(subject);
    }

    fn claim(&mut self) {
        let resource = RESOURCES[self.random.usize(0..RESOURCES.len())];
        let run = self.request("claim", resource);
        if !run.is_ok() {
            assert!(run.stderr.contains("held by"), "{run}");
        } else if !self.held.contains(&resource) {
            self.held.push(resource);
        }
    }

    fn release(&mut self) {
        if let Some(resource) = self.held.pop() {
            assert!(self.request("release", resource).is_ok(), "{} held {resource}", self.name);
        }
    }

    fn request(&self, verb: &str, resource: &str) -> Run {
        let refspec = format!("origin/main:refs/zit/{verb}/{resource}");
        self.git.run(["push", "--quiet", "origin", &refspec])
    }
}

/// What the server holds is what it acknowledged, no more and no less.
#[track_caller]
fn balance(bare: &Git, agents: &[Agent]) {
    let head = bare.resolve("refs/heads/main").expect("the mainline is there");
    assert_eq!(bare.resolve("refs/zit/current"), Some(head));
    let subjects = bare.ok(["log", "--format=%s", "refs/heads/main"]);
    let wanted = agents.iter().flat_map(|agent| &agent.landed);
    for subject in wanted {
        let times = subjects.lines().filter(|line| line == subject).count();
        assert_eq!(times, 1, "{subject:?} landed once: {subjects}");
    }
    let found = bare.ok(["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/"]);
    let found = found.lines().filter(|line| !line.starts_with("refs/heads/main "));
    let found = found.map(str::to_owned).collect::<Vec<_>>();
    let wanted = agents.iter().flat_map(|agent| &agent.branches);
    let wanted = wanted.map(|(name, oid)| format!("{name} {oid}")).collect::<Vec<_>>();
    assert_eq!(files::difference(&wanted, &found), [""; 0], "branches");
    let n_claims = bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count();
    assert_eq!(n_claims, agents.iter().map(|agent| agent.held.len()).sum::<usize>(), "claims");
    let fsck = bare.run(["fsck", "--strict"]);
    assert!(fsck.is_ok(), "{fsck}");
    assert_eq!(files::leftovers(bare.dir()), [""; 0]);
}
