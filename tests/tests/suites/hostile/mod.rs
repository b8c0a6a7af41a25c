//! Bad input: each piece gets a clear `ng` line or HTTP error, the server lives on, and the
//! repository's folder holds exactly the files that it held before.
//!
//! `pushes` sends bad bodies in good requests, `requests` sends bad requests, and `table` lists more of both, each with
//! the answer that it gets. All start from a [`Target`] that has answered a good push.

mod pack;
mod pushes;
mod requests;
mod table;

use std::time::{Duration, Instant};

use zit_tests::wire::{PushBody, Report, ZERO};
use zit_tests::{Git, Server, World, files, http, server};

const FILES: &[(&str, &str)] =
    &[("src/config.rs", "pub fn parse() {}\n"), ("README.md", "# App\n")];

/// The seat that every bad push comes from.
const REPOSITORY: &str = "@mallory/app.git";

/// How long the server may take to clean up after a client that went away.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that has already answered a good push, and what a bad one is made from.
struct Target {
    world: World,
    server: Server,
    bare: Git,
    clone: Git,
    /// The commit of the mainline and of the branch `taken`.
    base: String,
    /// A commit that the server lacks, on top of `base`.
    new: String,
    /// The pack that `new` needs.
    pack: Vec<u8>,
    before: Vec<String>,
}

impl Target {
    fn new() -> Self {
        Self::with_args(&[])
    }

    /// A server started with `args`.
    fn with_args(args: &[&str]) -> Self {
        let world = World::new();
        let bare = server::seeded(&world, "app.git", FILES);
        let server = Server::start_with(&world, args, &[]);
        let clone = world.git().clone_of(&server.seat("mallory", "app.git"), "mallory");
        let tip = clone.ok(["rev-parse", "HEAD"]);
        clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/taken"]);
        let new = clone.commit("New", &[("src/new.rs", &"pub fn new() {}\n".repeat(200))]);
        let pack = pack_of(&clone, &format!("{new}\n^{tip}\n"), &[]);
        let before = files::file_list(bare.dir());
        Self { world, server, bare, clone, base: tip, new, pack, before }
    }

    /// A push that would be good: a new branch at the new commit.
    fn good(&self) -> PushBody {
        PushBody::of(ZERO, &self.new, "refs/heads/x", &self.pack)
    }

    /// Sends a push that must be refused; what the refusal says.
    #[track_caller]
    fn refused(&mut self, case: &str, body: &[u8]) -> String {
        let response = http::push(self.server.address(), REPOSITORY, body);
        let report = Report::read(&response.body);
        let said = if response.status == 200 {
            let refusals = report.refusals().join("\n");
            assert!(!refusals.is_empty(), "{case}: not refused: {report:?}: {}", response.text());
            refusals
        } else {
            assert!((400..500).contains(&response.status), "{case}: {}", response.head);
            response.text()
        };
        assert!(said.trim().len() > 10, "{case}: says what is wrong: {said:?}");
        for line in said.lines().filter(|line| line.starts_with("ng ")) {
            // The name is the pusher's own, sent back as it came.
            let reason = line.splitn(3, ' ').nth(2).unwrap_or_default();
            assert!(reason.chars().count() <= 120, "{case}: at most 120 characters: {line}");
            assert!(!reason.chars().any(char::is_control), "{case}: {line:?}");
        }
        self.unharmed(case);
        said
    }

    /// The server lives, serves a good request, and the repository's folder is as before.
    #[track_caller]
    fn unharmed(&mut self, case: &str) {
        assert!(self.server.is_alive(), "{case}: the server died: {}", self.server.log());
        let refs = http::get(self.server.address(), "/app.git/info/refs?service=git-upload-pack");
        assert_eq!(refs.status, 200, "{case}: {}", refs.text());
        let deadline = Instant::now() + PATIENCE;
        // A client that hung up is noticed a moment later; the files must be gone soon after.
        while files::file_list(self.bare.dir()) != self.before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        files::assert_unchanged(self.bare.dir(), &self.before, case);
        assert!(!self.server.log().contains("panicked"), "{case}: {}", self.server.log());
    }
}

/// The pack of what the revisions need, thin or not.
fn pack_of(git: &Git, revisions: &str, args: &[&str]) -> Vec<u8> {
    let fixed = ["pack-objects", "--quiet", "--revs", "--stdout", "--delta-base-offset"];
    git.run_with_input(fixed.iter().chain(args), revisions.as_bytes()).ok().stdout
}

/// A pack of no objects, as git sends when the server has everything.
fn empty_pack(git: &Git) -> Vec<u8> {
    git.run_with_input(["pack-objects", "--quiet", "--stdout"], b"").ok().stdout
}
