//! Racing accepts of changes that do not touch each other all land, each exactly once.

use zit_tests::barrier::Racer;
use zit_tests::{Barrier, Git, Server, World, server};

/// A served repository and `n_clients` clones, each one commit of its own ahead.
struct Race {
    _world: World,
    _server: Server,
    bare: Git,
    clients: Vec<Git>,
}

fn race(n_clients: usize) -> Race {
    let world = World::new();
    let bare = server::seeded(&world, "repo.git", &[("README.md", "# Repo\n")]);
    let server = Server::start(&world);
    let join = |n| {
        let agent = format!("a{n:02}");
        let clone = world.git().clone_of(&server.seat(&agent, "repo.git"), &agent);
        let (path, text) = (file(n), format!("pub fn f{n}() -> u32 {{\n    {n}\n}}\n"));
        clone.commit(&format!("Change {n}"), &[(&path, &text)]);
        clone
    };
    let clients = (0..n_clients).map(join).collect();
    Race { _world: world, _server: server, bare, clients }
}

/// The file that client `n` adds.
fn file(n: usize) -> String {
    format!("src/f{n:02}.rs")
}

#[test]
fn eight_racing_accepts_of_disjoint_changes_all_land_once() {
    land_all(8);
}

#[test]
fn thirty_two_racing_accepts_of_disjoint_changes_all_land_once() {
    land_all(32);
}

#[track_caller]
fn land_all(n_clients: usize) {
    let race = race(n_clients);
    let args = ["origin", "HEAD:refs/for/main"].map(str::to_owned).to_vec();
    let racers: Vec<Racer> = race.clients.iter().map(|git| (git.clone(), args.clone())).collect();
    for (n, run) in Barrier::new().race(&racers).iter().enumerate() {
        assert!(run.is_ok(), "client {n}: {run}");
    }
    let bare = &race.bare;
    assert_eq!(bare.resolve("refs/zit/current"), bare.resolve("refs/heads/main"));
    let tree = bare.ok(["ls-tree", "-r", "--name-only", "refs/heads/main"]);
    let subjects = bare.ok(["log", "--format=%s", "refs/heads/main"]);
    for n in 0..n_clients {
        assert!(tree.lines().any(|path| path == file(n)), "change {n} is in the tree: {tree}");
        // A composed landing may quote the change's subject, but only the change bears it alone.
        let subject = format!("Change {n}");
        let times = subjects.lines().filter(|line| *line == subject).count();
        assert_eq!(times, 1, "change {n} landed once: {subjects}");
    }
    assert_eq!(tree.lines().count(), n_clients + 1, "{tree}");
    assert_eq!(bare.ok(["for-each-ref", "refs/zit/changes/"]), "", "landed changes are not open");
    bare.ok(["fsck", "--strict"]);
}

#[test]
fn a_repository_that_goes_by_names_refuses_what_resolving_takes() {
    for (settings, lands) in [("", true), ("[accept]\njudge = \"names\"\n", false)] {
        let world = World::new();
        let one = "pub fn parse() -> u32 {\n    1\n}\n";
        let files = [("src/config.rs", one), ("zit.toml", settings)];
        let _bare = server::seeded(&world, "repo.git", &files);
        let server = Server::start(&world);
        let [first, second] =
            ["a1", "a2"].map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
        first.commit("Widen", &[("src/config.rs", &one.replace("parse()", "parse(x: u32)"))]);
        // Another `parse` is meant.
        let user = "use date::parse;\n\npub fn age() -> u32 {\n    parse()\n}\n";
        second.commit("Use", &[("src/age.rs", user)]);
        first.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
        let run = second.run(["push", "origin", "HEAD:refs/for/main"]);
        assert_eq!(run.is_ok(), lands, "with {settings:?}: {run}");
        if !lands {
            let _ = run.says("stale: src/config.rs#parse was written by");
        }
    }
}

#[test]
fn a_change_to_what_another_landed_is_refused_as_stale_and_stays_recorded() {
    let world = World::new();
    let files = [("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];
    let bare = server::seeded(&world, "repo.git", &files);
    let server = Server::start(&world);
    let [first, second] =
        ["a1", "a2"].map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
    first.commit("Two", &[("src/config.rs", "pub fn parse() -> u32 {\n    2\n}\n")]);
    let change =
        second.commit("Three", &[("src/config.rs", "pub fn parse() -> u32 {\n    3\n}\n")]);
    first.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    let landed = bare.resolve("refs/heads/main");
    let run = second.fails(["push", "origin", "HEAD:refs/for/main"]).says("src/config.rs#parse");
    assert!(run.stderr.contains("rejected"), "{run}");
    assert_eq!(bare.resolve("refs/heads/main"), landed, "{run}");
    assert_eq!(bare.resolve(&format!("refs/zit/changes/{change}")), Some(change), "{run}");
}

#[test]
fn an_accept_of_what_has_landed_changes_nothing() {
    let race = race(1);
    race.clients[0].ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    let landed = race.bare.resolve("refs/heads/main");
    race.clients[0].ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(race.bare.resolve("refs/heads/main"), landed);
}

#[test]
fn a_change_that_relies_on_a_changed_signature_is_refused_and_lands_by_the_printed_command() {
    let world = World::new();
    let price = "pub fn price(a: u32) -> u32 {\n    a\n}\n";
    let total = "use crate::price::price;\n\npub fn total() -> u32 {\n    0\n}\n";
    let bare =
        server::seeded(&world, "repo.git", &[("src/price.rs", price), ("src/total.rs", total)]);
    let server = Server::start(&world);
    let [first, second] =
        ["a1", "a2"].map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
    let price = "pub fn price(a: u32, tax: u32) -> u32 {\n    a + tax\n}\n";
    first.commit("Add a tax", &[("src/price.rs", price)]);
    let total = "use crate::price::price;\n\npub fn total() -> u32 {\n    price(1)\n}\n";
    let change = second.commit("Use the price", &[("src/total.rs", total)]);
    first.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    let run = second.fails(["push", "origin", "HEAD:refs/for/main"]).says("src/price.rs#price");
    let commands = run.printed_commands();
    let [rebuild, drop] = &commands[..] else { panic!("two ways forward: {run}") };
    assert!(second.shell(rebuild).is_ok(), "{rebuild}: {run}");
    assert_eq!(bare.ok(["show", "main:src/total.rs"]), total.trim_end());
    assert!(second.shell(drop).is_ok(), "{drop}: {run}");
    assert_eq!(bare.resolve(&format!("refs/zit/changes/{change}")), None);
}

#[test]
fn work_that_landed_in_an_amended_form_stands_in_nobodys_way() {
    for land in ["HEAD:refs/for/main", "HEAD:refs/heads/main"] {
        let world = World::new();
        let text = |n: u32| format!("pub fn parse() -> u32 {{\n    {n}\n}}\n");
        server::seeded(&world, "repo.git", &[("src/config.rs", &text(1))]);
        let server = Server::start(&world);
        let [ada, ben] = ["ada", "ben"]
            .map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
        ada.commit("Two", &[("src/config.rs", &text(2))]);
        ada.ok(["push", "--quiet", "origin", "HEAD:refs/heads/two"]);
        let claim = ["push", "origin", "origin/main:refs/zit/claim/src/config.rs#parse"];
        ben.fails(claim).says("being written by ada");
        std::fs::write(ada.dir().join("src/config.rs"), text(3)).unwrap();
        ada.ok(["commit", "--quiet", "--all", "--amend", "--no-edit"]);
        ada.ok(["push", "--quiet", "origin", land]);
        ben.ok(["pull", "--quiet", "origin", "main"]);
        ben.ok(claim);
        ben.commit("Four", &[("src/config.rs", &text(4))]);
        let pushed = ben.run(["push", "origin", "HEAD:refs/heads/four"]).ok();
        assert!(!pushed.stderr.contains("note"), "{land}: {pushed}");
    }
}
