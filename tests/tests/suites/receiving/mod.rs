//! What a push may carry beside plain commands is taken as behind `git http-backend`: ends of a shallow history, and
//! certificates.
//!
//! Each test does one thing to two repositories that differ in nothing but their server, and compares what came of it.

mod certs;
mod names;
mod shallow;

use zit_tests::{Git, Peer, Server, World, twins};

/// One repository behind our server and its twin behind git's, and a clone with three commits that both have.
struct Pair {
    world: World,
    server: Server,
    peer: Peer,
    ours: Git,
    theirs: Git,
    source: Git,
}

impl Pair {
    /// The mainline is none of the branches, so that nothing but what is tried is in the way of a push.
    fn new() -> Self {
        let world = World::new();
        let (ours, theirs) = (world.bare("ours.git"), world.bare("theirs.git"));
        world.git().ok(["init", "--quiet", "source"]);
        let source = world.git().at("source");
        for n in ["one", "two", "three"] {
            source.commit(n, &[("a.txt", n)]);
        }
        for repository in [&ours, &theirs] {
            repository.ok(["config", "zit.mainline", "trunk"]);
            source.ok(["push", "--quiet", path(repository), "HEAD:refs/heads/main"]);
        }
        let (server, peer) = (Server::start(&world), Peer::start(&world));
        Self { world, server, peer, ours, theirs, source }
    }

    fn urls(&self) -> [String; 2] {
        [self.server.url("ours.git"), self.peer.url("theirs.git")]
    }

    fn set(&self, key: &str, value: &str) {
        for repository in [&self.ours, &self.theirs] {
            repository.ok(["config", key, value]);
        }
    }

    /// Pushes from `clone` to both, and expects one outcome for each ref and the same refs.
    #[track_caller]
    fn push(&self, clone: &Git, args: &[&str]) -> String {
        let [ours, theirs] = self.urls().map(|url| {
            let run = clone.run([&["push", "--porcelain", &url], args].concat());
            twins::outcome(&run)
        });
        assert_eq!(ours, theirs, "{args:?}");
        assert_eq!(self.ours.refs(), self.theirs.refs(), "{args:?}");
        ours
    }
}

fn path(repository: &Git) -> &str {
    repository.dir().to_str().expect("a temporary folder has a plain name")
}
