//! Clones of one tip: made once, and the same to every client as git's own server makes them.

use std::collections::BTreeSet;
use std::thread;

use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, history, server};

/// Past what is answered in process.
const N_COMMITS: u32 = 300;

const LOG: &[&str] = &["--log", "info,zit_store=debug"];

/// A served repository with some history.
fn grown() -> (World, Git, Server) {
    let world = World::new();
    let bare = server::init(&world, "app.git");
    history::grow(&bare, N_COMMITS, 7);
    let server = Server::start_with(&world, LOG, &[]);
    (world, bare, server)
}

fn objects(git: &Git) -> BTreeSet<String> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let list = git.ok(["cat-file", "--batch-all-objects", "--unordered", format]);
    list.lines().map(str::to_owned).collect()
}

fn count(server: &Server, text: &str) -> usize {
    server.log().matches(text).count()
}

#[track_caller]
fn clone(world: &World, url: &str, name: &str, args: &[&str]) -> Git {
    let path = world.path(name);
    let line = [&["clone", "--quiet", "--no-checkout"], args, &[url, text(&path)]].concat();
    world.git().with_config("fetch.fsckObjects=true").ok(line);
    world.git().at(path)
}

#[test]
fn every_kind_of_clone_has_the_objects_that_gits_own_server_sends_also_the_second_time() {
    let (world, _, server) = grown();
    let peer = Peer::start(&world);
    let kinds: &[(&str, &[&str])] = &[
        ("plain", &[]),
        ("mirror", &["--mirror"]),
        ("no-tags", &["--no-tags", "--single-branch"]),
        ("depth", &["--depth=3"]),
        ("since", &["--shallow-since=2023-11-15T01:00:00Z"]),
        ("blobless", &["--filter=blob:none"]),
        ("treeless", &["--filter=tree:0", "--bare"]),
    ];
    for (kind, args) in kinds {
        let theirs = clone(&world, &peer.url("app.git"), &format!("{kind}-peer"), args);
        let mut begun = Vec::new();
        for round in ["first", "second"] {
            let ours = clone(&world, &server.url("app.git"), &format!("{kind}-{round}"), args);
            // A clone without some objects fetches what it lacks when it is looked at closely.
            let shown = |git: &Git| objects(&git.with_env("GIT_NO_LAZY_FETCH", "1"));
            assert_eq!(shown(&ours), shown(&theirs), "{kind} {round}");
            begun.push(count(&server, "fetch begins an answer"));
        }
        assert_eq!(begun[0], begun[1], "{kind}: the second is answered from what is kept");
    }
    assert!(count(&server, "fetch begins an answer") >= 5, "{}", server.log());
}

#[test]
fn clones_at_once_share_one_answer() {
    let (world, bare, server) = grown();
    let (world, server) = (&world, &server);
    thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || clone(world, &server.url("app.git"), &format!("c{n}"), &[]));
        }
    });
    assert_eq!(count(server, "fetch begins an answer"), 1);
    assert_eq!(count(server, "fetch joins an answer"), 7);
    let expected = objects(&bare);
    for n in 0..8 {
        assert_eq!(objects(&world.git().at(format!("c{n}"))), expected, "c{n}");
    }
}

#[test]
fn a_moved_ref_is_seen_by_the_next_clone() {
    let (world, bare, server) = grown();
    clone(&world, &server.url("app.git"), "before", &[]);
    let seed = world.git().clone_of(text(bare.dir()), "seed");
    let oid = seed.commit("Next", &[("next.txt", "text\n")]);
    seed.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    let after = clone(&world, &server.url("app.git"), "after", &[]);
    assert_eq!(after.resolve("origin/main"), Some(oid));
    assert_eq!(objects(&after), objects(&bare));
}

#[test]
fn a_large_fetch_that_many_need_is_made_once() {
    let (world, bare, server) = grown();
    let readers: Vec<_> =
        (0..3).map(|n| clone(&world, &server.url("app.git"), &format!("r{n}"), &[])).collect();
    let seed = world.git().clone_of(text(bare.dir()), "seed");
    for n in 0..80 {
        seed.commit(&format!("Next {n}"), &[("next.txt", &format!("text {n}\n"))]);
    }
    seed.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    let begun = count(&server, "fetch begins an answer");
    for reader in &readers {
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(objects(reader), objects(&bare));
    }
    assert_eq!(count(&server, "fetch begins an answer") - begun, 1);
}
