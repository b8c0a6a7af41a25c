//! Footprints of open work, read by stock git from the refs that the referee publishes them at.

use serde_json::Value;
use zit_tests::{Git, Server, World, server};

use crate::helper::path_with_helper;

/// The heads whose footprints a remote lists.
fn listed(git: &Git) -> Vec<String> {
    let lines = git.ok(["ls-remote", "origin", "refs/zit/footprints/*"]);
    let name = |line: &str| line.rsplit('/').next().unwrap_or_default().to_owned();
    lines.lines().map(name).collect()
}

#[test]
fn another_agent_reads_what_open_work_touches_in_one_command() {
    let world = World::new();
    let one = "pub fn parse() -> u32 {\n    1\n}\n";
    let bare = server::seeded(&world, "repo.git", &[("src/config.rs", one)]);
    let server = Server::start(&world);
    let [ada, bob] =
        ["ada", "bob"].map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
    let wider = one.replace("parse()", "parse(x: u32)");
    let head = ada.commit("Widen", &[("src/config.rs", &wider)]);
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    assert_eq!(listed(&bob), std::slice::from_ref(&head));
    let read = |git: &Git, head: &str| {
        let name = format!("refs/zit/footprints/{head}");
        let json = git.shell(&format!("git fetch -q origin {name} && git cat-file -p FETCH_HEAD"));
        serde_json::from_str::<Value>(&json.ok().text()).expect("one JSON document")
    };
    let document = read(&bob, &head);
    assert_eq!(document["writes"][0]["resource"], "src/config.rs#parse");
    assert_eq!(document["writes"][0]["effects"][0]["why"], "parameters");
    let helped = ada.with_env("PATH", &path_with_helper());
    let local = helped.ok(["zit", "footprint", "--json", "origin/main", "HEAD"]);
    assert_eq!(document, serde_json::from_str::<Value>(&local).expect("one JSON document"));
    // A clone takes none of it, and a push is not shown it.
    let clone = world.git().clone_of(&server.seat("eve", "repo.git"), "eve");
    assert_eq!(clone.ok(["for-each-ref", "refs/zit/"]), "");
    let moved = ada.commit("Again", &[("src/config.rs", &wider.replace('1', "2"))]);
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    assert_eq!(listed(&bob), std::slice::from_ref(&moved));
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(listed(&bob), [""; 0]);
    assert_eq!(bare.resolve("refs/heads/main"), Some(moved));
    bare.ok(["fsck", "--strict"]);
}

#[test]
fn a_refused_change_is_published_until_it_is_given_up() {
    let world = World::new();
    let one = "pub fn parse() -> u32 {\n    1\n}\n";
    let _bare = server::seeded(&world, "repo.git", &[("src/config.rs", one)]);
    let server = Server::start(&world);
    let [ada, bob] =
        ["ada", "bob"].map(|agent| world.git().clone_of(&server.seat(agent, "repo.git"), agent));
    ada.commit("Two", &[("src/config.rs", &one.replace('1', "2"))]);
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    let change = bob.commit("Three", &[("src/config.rs", &one.replace('1', "3"))]);
    let _ = bob.fails(["push", "origin", "HEAD:refs/for/main", "HEAD:refs/heads/topic"]);
    assert_eq!(listed(&ada), std::slice::from_ref(&change));
    let server = server.restart();
    for (git, agent) in [(&ada, "ada"), (&bob, "bob")] {
        git.ok(["remote", "set-url", "origin", &server.seat(agent, "repo.git")]);
    }
    assert_eq!(listed(&ada), std::slice::from_ref(&change));
    // The branch has the same head, and stays open.
    bob.ok(["push", "--quiet", "origin", &format!(":refs/zit/changes/{change}")]);
    assert_eq!(listed(&ada), [change]);
    bob.ok(["push", "--quiet", "origin", ":refs/heads/topic"]);
    assert_eq!(listed(&ada), [""; 0]);
}

#[test]
fn only_the_referee_writes_a_published_footprint() {
    let world = World::new();
    let bare = server::seeded(&world, "repo.git", &[("a.rs", "fn a() {}\n")]);
    let server = Server::start(&world);
    let ada = world.git().clone_of(&server.seat("ada", "repo.git"), "ada");
    let main = bare.resolve("refs/heads/main").expect("it was seeded");
    let name = format!("refs/zit/footprints/{main}");
    let _ =
        ada.fails(["push", "origin", &format!("HEAD:{name}")]).says("only the referee writes it");
}
