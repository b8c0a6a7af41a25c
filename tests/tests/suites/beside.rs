//! The bare repository is a normal one: an administrator uses stock git beside the running server.

use zit_tests::world::text;
use zit_tests::{Git, Server, World, http, process, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

/// A served repository and one clone of it.
struct Table {
    world: World,
    server: Server,
    bare: Git,
    clone: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.seat("ada", "app.git"), "ada");
    Table { world, server, bare, clone }
}

impl Table {
    /// Pushes a new commit as a change to land; its oid.
    #[track_caller]
    fn land(&self, name: &str) -> String {
        let oid = self.clone.commit(name, &[(&format!("{name}.txt"), "text\n")]);
        self.clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
        oid
    }
}

#[test]
fn garbage_collection_beside_the_server_loses_nothing() {
    let table = table();
    table.clone.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/config.rs"]);
    for round in 0..3 {
        table.land(&format!("before-{round}"));
        table.bare.ok(["gc", "--quiet", "--prune=now"]);
        table.bare.ok(["pack-refs", "--all"]);
        let oid = table.land(&format!("after-{round}"));
        assert_eq!(table.bare.resolve("refs/heads/main"), Some(oid.clone()), "round {round}");
        assert_eq!(table.bare.resolve("refs/zit/current"), Some(oid), "round {round}");
    }
    table.bare.ok(["fsck", "--strict"]);
    let claims = table.bare.ok(["for-each-ref", "refs/zit/claims/"]);
    assert_eq!(claims.lines().count(), 1, "the claim is still held: {claims}");
}

#[test]
fn a_mainline_that_stock_git_moved_forward_is_followed() {
    let table = table();
    let oid = table.clone.commit("Outside", &[("outside.txt", "text\n")]);
    table.clone.ok(["push", "--quiet", text(table.bare.dir()), "HEAD:refs/heads/main"]);
    let next = table.land("inside");
    assert_eq!(table.bare.resolve("refs/heads/main"), Some(next.clone()));
    assert_eq!(table.bare.resolve("refs/zit/current"), Some(next));
    assert_eq!(table.bare.ok(["rev-parse", "main^"]), oid);
}

#[test]
fn a_mainline_that_stock_git_rewrote_is_refused_until_the_printed_command_repairs_it() {
    let table = table();
    table.land("landed");
    let current = table.bare.resolve("refs/zit/current");
    table.bare.ok(["update-ref", "refs/heads/main", "main^"]);
    table.clone.commit("Next", &[("next.txt", "text\n")]);
    let run = table.clone.fails(["push", "origin", "HEAD:refs/for/main"]).says("rejected");
    let command = run.printed_commands().into_iter().find(|line| line.contains("update-ref"));
    let command = command.unwrap_or_else(|| panic!("the repair is printed: {run}"));
    let repaired = table.bare.shell(&command);
    assert!(repaired.is_ok(), "{command}: {repaired}");
    assert_eq!(table.bare.resolve("refs/heads/main"), current);
    table.clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
}

#[test]
fn with_the_hook_stock_git_cannot_write_below_refs_zit_and_still_collects_garbage() {
    let table = table();
    let install = [text(&process::product("zit-hook")), "install", "."].join(" ");
    assert!(table.bare.shell(&install).is_ok(), "{install}");
    table.clone.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/config.rs"]);
    let before = table.bare.ok(["for-each-ref", "refs/zit/"]);
    let claim = before.lines().find(|line| line.contains("refs/zit/claims/"));
    let claim = claim.and_then(|line| line.split('\t').nth(1)).expect("the claim has a ref");
    table.bare.fails(["update-ref", "-d", claim]);
    table.bare.fails(["update-ref", "refs/zit/current", "main^{commit}", "main^{tree}"]);
    table.bare.fails(["update-ref", "refs/zit/wip/ada/000000000000", "main"]);
    assert_eq!(table.bare.ok(["for-each-ref", "refs/zit/"]), before);
    table.bare.ok(["gc", "--quiet", "--prune=now"]);
    table.bare.ok(["pack-refs", "--all"]);
    assert_eq!(table.bare.ok(["for-each-ref", "refs/zit/"]), before);
    table.land("after");
}

#[test]
fn a_second_server_does_not_write_beside_the_first() {
    let table = table();
    table.land("first");
    let mut second = Server::start(&table.world);
    let url = second.seat("bob", "app.git");
    table.clone.commit("Next", &[("next.txt", "text\n")]);
    let before = table.bare.refs();
    table.clone.fails(["push", &url, "HEAD:refs/heads/other"]);
    assert_eq!(table.bare.refs(), before);
    assert!(second.is_alive(), "{}", second.log());
    let address = table.server.address();
    let refs = http::get(address, "/app.git/info/refs?service=git-receive-pack");
    assert_eq!(refs.status, 200, "the first serves on: {}", refs.text());
}

#[test]
fn a_mainline_of_another_name_is_found_by_head() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    bare.ok(["branch", "-m", "main", "trunk"]);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.seat("ada", "app.git"), "ada");
    let oid = clone.commit("Next", &[("next.txt", "text\n")]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/trunk"]);
    assert_eq!(bare.resolve("refs/heads/trunk"), Some(oid.clone()));
    assert_eq!(bare.resolve("refs/zit/current"), Some(oid));
}

#[test]
fn a_sha_256_repository_is_served_like_any_other() {
    let world = World::new();
    let path = world.root().join("app.git");
    world.git().ok(["init", "--quiet", "--bare", "--object-format=sha256", text(&path)]);
    let bare = world.git().at(&path);
    world.git().ok(["init", "--quiet", "--object-format=sha256", "seed"]);
    let seed = world.git().at("seed");
    seed.commit("Begin", FILES);
    seed.ok(["push", "--quiet", text(&path), "HEAD:refs/heads/main"]);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.seat("ada", "app.git"), "ada");
    let oid = clone.commit("Next", &[("next.txt", "text\n")]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(oid.len(), 64);
    assert_eq!(bare.resolve("refs/zit/current"), Some(oid));
    bare.ok(["fsck", "--strict"]);
}
