//! The server folds packs by itself, and clones, fetches and pushes at any moment do not notice.

use std::collections::BTreeSet;
use std::thread;

use zit_tests::world::text;
use zit_tests::{Git, Server, World, history, server};

const N_PUSHES: usize = 50;

fn objects(git: &Git) -> BTreeSet<String> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let list = git.ok(["cat-file", "--batch-all-objects", "--unordered", format]);
    list.lines().map(str::to_owned).collect()
}

fn n_packs(bare: &Git) -> usize {
    let counted = bare.ok(["count-objects", "-v"]);
    let line = counted.lines().find_map(|line| line.strip_prefix("packs: "));
    line.and_then(|n| n.parse().ok()).expect("git counts packs")
}

/// A served repository with some history, whose packs are folded long before a person would.
fn table(world: &World) -> (Git, Server) {
    let bare = server::init(world, "app.git");
    history::grow(&bare, 300, 7);
    bare.ok(["config", "gc.autoPackLimit", "2"]);
    // Each push leaves a pack.
    bare.ok(["config", "receive.unpackLimit", "1"]);
    // Each clone is made anew.
    bare.ok(["config", "zit.answerCache", "0"]);
    (bare, Server::start(world))
}

fn push_often(writer: &Git) {
    for n in 0..N_PUSHES {
        writer.commit(&format!("Push {n}"), &[(&format!("{n}.txt"), &format!("{n}\n"))]);
        writer.ok(["push", "--quiet", "origin", "HEAD:refs/heads/work"]);
    }
}

#[test]
fn clones_and_fetches_while_packs_are_folded_are_those_of_gits_own() {
    let world = World::new();
    let (bare, server) = table(&world);
    let expected = {
        let path = world.path("expected");
        let url = format!("file://{}", text(bare.dir()));
        world.git().ok([
            "clone",
            "--quiet",
            "--bare",
            "--branch=main",
            "--single-branch",
            &url,
            text(&path),
        ]);
        objects(&world.git().at(path))
    };
    let url = server.url("app.git");
    let writer = world.git().clone_of(&server.seat("ada", "app.git"), "writer");
    let follower = world.git().clone_of(&url, "follower");
    thread::scope(|scope| {
        let pushing = scope.spawn(|| push_often(&writer));
        let mut n_clones = 0;
        while !pushing.is_finished() || n_clones < 3 {
            let path = world.path(format!("clone-{n_clones}"));
            let line = ["clone", "--quiet", "--bare", "--branch=main", "--single-branch", &url];
            world.git().ok(line.into_iter().chain([text(&path)]));
            assert_eq!(objects(&world.git().at(&path)), expected, "clone {n_clones}");
            follower.ok(["fetch", "--quiet"]);
            n_clones += 1;
        }
    });
    follower.ok(["fetch", "--quiet"]);
    assert_eq!(follower.resolve("origin/work"), writer.resolve("HEAD"));
    follower.ok(["fsck", "--strict", "--no-dangling"]);
    bare.ok(["fsck", "--strict"]);
    assert!(server.log().matches("packs and refs folded").count() >= 2, "{}", server.log());
    assert!(n_packs(&bare) < N_PUSHES / 2, "{} packs", n_packs(&bare));
}

#[test]
fn a_server_that_is_stopped_or_killed_while_it_folds_leaves_a_sound_repository() {
    let world = World::new();
    let (bare, mut server) = table(&world);
    let writer = world.git().clone_of(text(bare.dir()), "writer");
    for (round, kills) in [true, false, true, false].into_iter().enumerate() {
        let url = server.seat("ada", "app.git");
        // The first push of a server is looked at, and folds what came before it.
        for branch in ["a", "b", "c"] {
            let name = format!("{branch}-{round}");
            writer.commit(&name, &[(&format!("{name}.txt"), &name)]);
            writer.ok(["push", "--quiet", &url, &format!("HEAD:refs/heads/{name}")]);
        }
        if kills {
            server.kill();
        } else {
            assert!(server.stop().success(), "{}", server.log());
        }
        server = Server::start(&world);
        let listed = world.git().ok(["ls-remote", &server.url("app.git")]);
        assert!(listed.contains(&format!("refs/heads/c-{round}")), "{listed}");
        bare.ok(["fsck", "--strict"]);
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
