//! The remote helper: `zit::` addresses behave as git's own, and `git zit` answers about commits.

use zit_tests::{Git, Server, World, process, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

/// A served repository and a git that finds the helper.
struct Table {
    _world: World,
    server: Server,
    bare: Git,
    git: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let server = Server::start(&world);
    let git = world.git().with_env("PATH", &path_with_helper());
    Table { _world: world, server, bare, git }
}

/// A search path on which git finds `git-remote-zit` and `git-zit`.
pub(crate) fn path_with_helper() -> String {
    let helper = process::product("git-remote-zit");
    let folder = helper.parent().expect("a program is in a folder");
    let rest = process::search_path();
    format!("{}:{}", folder.display(), rest.to_string_lossy())
}

impl Table {
    fn address(&self) -> String {
        format!("zit::{}", self.server.seat("ada", "app.git"))
    }
}

#[test]
fn a_clone_a_push_and_a_fetch_work_through_the_helper_over_every_protocol() {
    for version in ["0", "1", "2"] {
        let table = table();
        let git = table.git.with_config(format!("protocol.version={version}"));
        let [writer, reader] =
            ["writer", "reader"].map(|name| git.clone_of(&table.address(), name));
        let new = writer.commit("Next", &[("next.txt", "next\n")]);
        writer.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
        assert_eq!(table.bare.resolve("refs/heads/topic"), Some(new.clone()), "protocol {version}");
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(reader.resolve("origin/topic"), Some(new), "protocol {version}");
        reader.ok(["fsck", "--strict"]);
    }
}

#[test]
fn a_refused_push_fails_through_the_helper_as_it_does_without() {
    let table = table();
    let clone = table.git.clone_of(&table.address(), "ada");
    clone.ok(["commit", "--quiet", "--amend", "-m", "Another beginning"]);
    clone.fails(["push", "--force", "origin", "HEAD:refs/heads/main"]).says("[remote rejected]");
    let run = clone.fails(["push", "-o", "zit.nope=1", "origin", "HEAD:refs/heads/topic"]);
    assert!(run.stderr.contains("zit.nope"), "{run}");
    assert_eq!(table.bare.resolve("refs/heads/topic"), None);
}

#[test]
fn a_claim_and_an_accept_work_through_the_helper() {
    let table = table();
    let clone = table.git.clone_of(&table.address(), "ada");
    clone.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/config.rs#parse"]);
    assert_eq!(table.bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count(), 1);
    clone.commit("Two", &[("src/config.rs", "pub fn parse() -> u32 {\n    2\n}\n")]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(table.bare.ok(["show", "main:src/config.rs"]), "pub fn parse() -> u32 {\n    2\n}");
}

#[test]
fn a_shallow_and_a_partial_clone_work_through_the_helper() {
    let table = table();
    for args in [["--depth=1", "shallow"], ["--filter=blob:none", "partial"]] {
        let [option, name] = args;
        table.git.ok(["clone", "--quiet", option, &table.address(), name]);
        let clone = table.git.at(name);
        assert_eq!(clone.ok(["show", "HEAD:src/config.rs"]).lines().count(), 3, "{option}");
    }
}

#[test]
fn judge_says_by_its_exit_code_whether_two_changes_compose() {
    let table = table();
    let clone = table.git.clone_of(&table.address(), "ada");
    let branch = |name: &str, files: &[(&str, &str)]| {
        clone.ok(["switch", "--quiet", "-c", name, "origin/main"]);
        clone.commit(name, files);
    };
    branch("two", &[("src/config.rs", "pub fn parse() -> u32 {\n    2\n}\n")]);
    branch("three", &[("src/config.rs", "pub fn parse() -> u32 {\n    3\n}\n")]);
    branch("apart", &[("src/other.rs", "pub fn other() {}\n")]);
    assert!(clone.run(["zit", "judge", "origin/main", "two", "apart"]).is_ok());
    let conflict = clone.run(["zit", "judge", "origin/main", "two", "three"]);
    assert_eq!(conflict.code(), Some(1), "{conflict}");
    assert!(conflict.text().contains("src/config.rs#parse"), "{conflict}");
    let wrong = clone.run(["zit", "judge", "origin/main", "two", "no-such-commit"]);
    assert_eq!(wrong.code(), Some(2), "{wrong}");
}

#[test]
fn footprint_prints_what_a_range_writes_as_text_and_as_json() {
    let table = table();
    let clone = table.git.clone_of(&table.address(), "ada");
    clone.commit("Two", &[("src/config.rs", "pub fn parse() -> u32 {\n    2\n}\n")]);
    let text = clone.ok(["zit", "footprint", "origin/main", "HEAD"]);
    assert!(text.contains("src/config.rs#parse"), "{text}");
    let json = clone.ok(["zit", "footprint", "origin/main", "HEAD", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert!(document["writes"].to_string().contains("src/config.rs#parse"), "{json}");
}
