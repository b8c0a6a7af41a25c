//! `git zit status`, `claims` and `items` read a remote, whatever carries them.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

use serde_json::Value;
use zit_tests::{Git, Server, Sshd, World, process, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

const CLAIM: &str = "origin/main:refs/zit/claim/src/config.rs#parse";

/// A repository, and a git that finds the helper.
struct Table {
    world: World,
    bare: Git,
    git: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let _ = (process::product("git-zit"), process::product("git-remote-zit"));
    let path = [process::product_folder().into_os_string(), process::search_path()];
    let path = path.map(|folders| folders.into_string().unwrap()).join(":");
    let git = world.git().with_env("PATH", &path);
    Table { world, bare, git }
}

impl Table {
    fn path(&self) -> String {
        format!("{}/app.git", self.world.root().display())
    }

    /// ada holds a function, ben works on a branch.
    fn populate(&self, url: &str) {
        let [ada, ben] = ["ada", "ben"].map(|agent| {
            let clone = self.git.with_env("ZIT_AGENT", agent).clone_of(url, agent);
            clone.commit("Next", &[(&format!("{agent}.txt"), "next\n")]);
            clone
        });
        ada.ok(["push", "--quiet", "-o", "zit.intent=Parse \"faster\"", "origin", CLAIM]);
        ben.ok([
            "push",
            "--quiet",
            "-o",
            "zit.intent=Write it down",
            "origin",
            "HEAD:refs/heads/topic",
        ]);
    }

    /// What stands there is told in text and as JSON, and nothing is kept of it.
    fn assert_told(&self, git: &Git, what: &str) {
        let objects = git.ok(["count-objects", "-v"]);
        let status = git.ok(["zit", "status"]);
        let current = self.bare.resolve("refs/zit/current").unwrap();
        let head = self.bare.resolve("refs/heads/topic").unwrap();
        let lines: Vec<&str> = status.lines().collect();
        assert_eq!(lines[0], format!("current: {current}"), "{what}: {status}");
        assert!(lines[2].starts_with("  src/config.rs#parse  ada  item "), "{what}: {status}");
        assert!(lines[2].ends_with("  \"Parse \\\"faster\\\"\""), "{what}: {status}");
        assert!(
            status.contains(&format!("  refs/heads/topic  {head}  \"Write it down\"")),
            "{what}: {status}"
        );
        let claims: Value = serde_json::from_str(&git.ok(["zit", "claims", "--json"])).unwrap();
        assert_eq!(claims["claims"][0]["resource"], "src/config.rs#parse", "{what}: {claims}");
        assert_eq!(
            (&claims["claims"][0]["leaseSeconds"], &claims["items"]),
            (&600.into(), &Value::Null)
        );
        let items: Value = serde_json::from_str(&git.ok(["zit", "items", "--json"])).unwrap();
        assert_eq!(items["items"][0]["agent"], "ben", "{what}: {items}");
        assert_eq!(items["items"][0]["head"], head, "{what}: {items}");
        assert_eq!(git.ok(["count-objects", "-v"]), objects, "{what}: nothing is kept");
        assert_eq!(git.ok(["for-each-ref", "refs/zit"]), "", "{what}");
    }
}

#[test]
fn a_server_is_read_by_one_list_and_one_fetch() {
    let table = table();
    let server = Server::start_with(&table.world, &["--log", "debug"], &[]);
    let url = format!("zit::{}", server.url("app.git"));
    table.populate(&url);
    for (name, url) in [
        ("helper", url.clone()),
        ("plain", server.url("app.git")),
        ("seat", server.seat("cyd", "app.git")),
    ] {
        table.assert_told(&table.git.clone_of(&url, name), name);
    }
}

#[test]
fn a_repository_is_read_by_path_and_through_the_server_that_has_it_open() {
    let table = table();
    let address = format!("zit::{}", table.path());
    table.populate(&address);
    let git = table.git.clone_of(&address, "reader");
    table.assert_told(&git, "path");
    let server = Server::start(&table.world);
    table.git.ok(["ls-remote", "--quiet", &server.url("app.git")]);
    table.assert_told(&git, "socket");
    assert!(server.log().contains("conversation held"), "{}", server.log());
}

#[test]
fn a_repository_is_read_through_sshd() {
    let table = table();
    let sshd = Sshd::start(&table.world, None);
    let ssh = sshd.client().to_str().unwrap().to_owned();
    let git = table.git.with_env("GIT_SSH_COMMAND", &ssh).with_env("GIT_SSH_VARIANT", "ssh");
    let address = format!("zit::{}", sshd.url(table.path().as_ref()));
    table.populate(&format!("zit::{}", table.path()));
    table.assert_told(&git.clone_of(&address, "reader"), "ssh");
}

#[test]
fn a_repository_of_the_other_hash_function_is_read_too() {
    let world = World::new();
    let path = world.root().join("app.git");
    let path = path.to_str().unwrap();
    world.git().ok(["init", "--quiet", "--bare", "--object-format=sha256", path]);
    let table = Table { bare: world.git().at(path), ..table() };
    let git = table.git.clone_of(&format!("zit::{path}"), "writer");
    let git = git.with_env("ZIT_AGENT", "ada");
    git.commit("First", &[("a.txt", "a\n")]);
    git.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    git.ok(["push", "--quiet", "origin", "HEAD:refs/zit/claim/a.txt"]);
    let status = git.ok(["zit", "status"]);
    assert!(status.contains("  a.txt  ada  item "), "{status}");
}

#[test]
fn what_cannot_be_read_is_named_with_what_was_tried_and_what_to_do() {
    let table = table();
    let git = table.git.clone_of(&table.path(), "clone");
    for (url, said) in [
        ("http://127.0.0.1:1/app.git", "cannot reach remote origin at http://127.0.0.1:1/app.git"),
        (
            "http://ada:secret@127.0.0.1:1/app.git",
            "cannot reach remote origin at http://127.0.0.1:1/app.git",
        ),
        (
            "zit::/nowhere/app.git",
            "cannot reach remote origin at /nowhere/app.git: no git repository at",
        ),
        ("ftp://host/app.git", "cannot ask remote origin: cannot reach ftp://host/app.git"),
    ] {
        git.ok(["remote", "set-url", "origin", url]);
        let run = git.fails(["zit", "status"]).says(&format!("fatal: {said}"));
        assert!(run.stderr.contains("\nhint: "), "{url}: {run}");
        assert_eq!(run.code(), Some(2), "{run}");
        let ours = run.stderr.lines().filter(|line| line.starts_with("fatal: cannot"));
        assert!(!ours.collect::<String>().contains("secret"), "{run}");
    }
    let _ = git.fails(["zit", "items", "--remote", "upstream"]).says("No such remote 'upstream'");
}
