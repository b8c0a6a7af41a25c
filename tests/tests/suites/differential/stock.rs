//! Stock clients: what git makes of the answers, with options in every combination.
//!
//! A case clones, lets the repository grow, fetches and pushes. Refs, objects, shallow files and exit codes of both
//! clients must be equal, and so must the refs of the two repositories.

use fastrand::Rng;
use gix_hash::Kind as Format;
use zit_tests::{Git, Run};

use super::cases::Cases;
use super::twins::{Arena, Side};

#[test]
fn stock_clients_end_up_with_what_they_get_from_the_peer() {
    run("stock_clients_end_up_with_what_they_get_from_the_peer", 5, Format::Sha1);
}

#[test]
fn stock_clients_end_up_with_what_they_get_from_the_peer_with_sha256() {
    let test = "stock_clients_end_up_with_what_they_get_from_the_peer_with_sha256";
    run(test, 2, Format::Sha256);
}

/// What our server does whatever is configured, as in `super::pushing`.
const SETTINGS: &[&str] = &[
    "receive.fsckObjects=true",
    "receive.denyDeleteCurrent=ignore",
    "uploadpack.allowAnySHA1InWant=true",
];

const WHOLE: &str = "every command succeeded";
const FAILED: &str = "some command failed";

#[track_caller]
fn run(test: &'static str, percent: u64, format: Format) {
    let arena = Arena::open();
    let mut cases = Cases::of(test, percent, 1);
    for group in cases.groups() {
        for (n, mut random) in cases.in_group(group) {
            let seed = cases.seed_of_group(group);
            let twins = arena.twins(&format!("g{group}"), format, seed, SETTINGS);
            let story = Story::random(&twins.refs, &mut random);
            let tell = |side, folder: &str| {
                story.tell(&arena.world.git(), side, &format!("c{n}-{folder}"))
            };
            let (ours, theirs) = (tell(&twins.ours, "ours"), tell(&twins.theirs, "theirs"));
            if ours == theirs {
                let failed = ours.codes.iter().any(|code| *code != Some(0));
                cases.saw(if failed { FAILED } else { WHOLE });
            } else {
                cases.fail(n, &format!("{story:#?}\nours: {ours:#?}\ntheirs: {theirs:#?}"));
            }
        }
    }
    cases.finish(&[(WHOLE, 15), (FAILED, 15)]);
}

/// What a client does.
#[derive(Debug)]
struct Story {
    version: u8,
    clone: Vec<String>,
    fetches: Vec<Vec<String>>,
    push: Vec<String>,
    seed: u64,
}

/// What came of it.
#[derive(Debug, PartialEq)]
struct Outcome {
    codes: Vec<Option<i32>>,
    refs: String,
    objects: Vec<String>,
    shallow: String,
    served: String,
}

impl Story {
    fn random(refs: &[(String, String)], random: &mut Rng) -> Self {
        let one = |random: &mut Rng, all: &[&str]| all[random.usize(0..all.len())].to_owned();
        let mut clone = vec!["--no-checkout".to_owned()];
        for option in [
            one(random, &["--mirror", "--bare", "--no-local", "--no-local", "--no-local"]),
            one(random, &["--depth=1", "--depth=4", "--shallow-since=1700001000", "--no-local"]),
            one(random, &["--filter=blob:none", "--filter=tree:1", "--no-local", "--no-local"]),
            one(random, &["--no-tags", "--single-branch", "--no-single-branch", "--no-local"]),
            one(random, &["--branch=topic/a", "--branch=v1", "--branch=none", "--no-local"]),
        ] {
            if option != "--no-local" && !(option == "--bare" && random.bool()) {
                clone.push(option);
            }
        }
        let (name, _) = &refs[random.usize(0..refs.len())];
        let mut fetches = Vec::new();
        for _ in 0..random.usize(1..4) {
            let mut fetch = vec![one(
                random,
                &[
                    "--deepen=2",
                    "--depth=3",
                    "--unshallow",
                    "--tags",
                    "--prune",
                    "--no-tags",
                    "--force",
                ],
            )];
            if random.u8(0..3) == 0 {
                fetch.extend(["origin".to_owned(), format!("+{name}:refs/got/it")]);
            }
            fetches.push(fetch);
        }
        let push = [
            one(random, &["--atomic", "--force", "--thin", "--no-thin", "--porcelain"]),
            "origin".to_owned(),
            one(random, &["HEAD:refs/heads/pushed", "HEAD:refs/heads/topic/b", ":refs/heads/old"]),
            one(random, &["HEAD:refs/tags/pushed", ":refs/tags/v2", "HEAD:refs/heads/main/x"]),
        ];
        let version = random.u8(0..3);
        Self { version, clone, fetches, push: push.to_vec(), seed: random.u64(..) }
    }

    fn tell(&self, git: &Git, side: &Side, folder: &str) -> Outcome {
        let git = git.with_config(format!("protocol.version={}", self.version));
        let url = side.url();
        let mut args = vec!["clone", "--quiet"];
        args.extend(self.clone.iter().map(String::as_str));
        args.extend([url.as_str(), folder]);
        let mut runs = vec![git.run(args)];
        let client = git.at(folder);
        if !client.dir().exists() {
            return Outcome::of(&runs, &client, &side.bare);
        }
        for (n, fetch) in self.fetches.iter().enumerate() {
            self.grow(&side.bare, n);
            let args = ["fetch", "--quiet"].into_iter().chain(fetch.iter().map(String::as_str));
            runs.push(client.run(args));
        }
        let tree = client.run_with_input(["mktree"], b"").text();
        let commit = client.run(["commit-tree", &tree, "-p", "HEAD", "-m", "Client"]);
        if commit.is_ok() {
            runs.push(client.run(["update-ref", "--no-deref", "HEAD", &commit.text()]));
        }
        runs.push(client.run(["push"].into_iter().chain(self.push.iter().map(String::as_str))));
        Outcome::of(&runs, &client, &side.bare)
    }

    /// Another client's commit, put into the repository directly.
    fn grow(&self, bare: &Git, n: usize) {
        let mut random = Rng::with_seed(self.seed.wrapping_add(n as u64));
        let branch = ["refs/heads/topic/a", "refs/heads/other"][random.usize(0..2)];
        let blob = bare.run_with_input(["hash-object", "-w", "--stdin"], branch.as_bytes()).text();
        let line = format!("100644 blob {blob}\tnew-{n}\n");
        let tree = bare.run_with_input(["mktree"], line.as_bytes()).text();
        let commit = bare.ok(["commit-tree", &tree, "-p", branch, "-m", &format!("New {n}")]);
        bare.ok(["update-ref", branch, &commit]);
        if random.bool() {
            bare.ok(["tag", "-a", "-m", "New", &format!("new-{n}"), &commit]);
        }
    }
}

impl Outcome {
    fn of(runs: &[Run], client: &Git, bare: &Git) -> Self {
        let codes = runs.iter().map(Run::code).collect();
        let served = bare.refs();
        if !client.dir().exists() {
            let (refs, objects, shallow) = (String::new(), Vec::new(), String::new());
            return Self { codes, refs, objects, shallow, served };
        }
        let args = ["cat-file", "--batch-all-objects", "--unordered", "--batch-check"];
        // What is not there is asked for one by one otherwise.
        let list = client.with_env("GIT_NO_LAZY_FETCH", "1").run(args).text();
        let mut objects = list.lines().map(str::to_owned).collect::<Vec<_>>();
        objects.sort();
        let path = client.ok(["rev-parse", "--git-path", "shallow"]);
        let shallow = std::fs::read_to_string(client.dir().join(path)).unwrap_or_default();
        let mut lines = shallow.lines().collect::<Vec<_>>();
        lines.sort_unstable();
        Self { codes, refs: client.refs(), objects, shallow: lines.join("\n"), served }
    }
}
