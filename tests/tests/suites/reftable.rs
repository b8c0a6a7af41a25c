//! A repository whose refs are a reftable is served like any other, with stock git beside it.

use std::path::Path;

use zit_tests::barrier::Racer;
use zit_tests::world::text;
use zit_tests::{Barrier, Git, Server, World, files, process};

/// Debian's git, which is made to say that it is too old for a reftable.
const OLD_GIT: &str = "/usr/bin/git";

const FILES: &[(&str, &str)] =
    &[("src/config.rs", "pub fn parse(text: &str) -> usize {\n    text.len()\n}\n")];

/// What clients race for.
const CLAIM: &str = "HEAD:refs/zit/claim/src/config.rs#parse";
const RELEASE: &str = "HEAD:refs/zit/release/src/config.rs#parse";

/// A repository with one commit on `main`, made as an administrator makes one.
fn seeded(world: &World) -> Git {
    let path = world.root().join("repo.git");
    world.git().ok(["init", "--quiet", "--bare", "--ref-format=reftable", text(&path)]);
    let bare = world.git().at(&path);
    world.git().ok(["init", "--quiet", "seed"]);
    let seed = world.git().at("seed");
    seed.commit("Begin", FILES);
    seed.ok(["push", "--quiet", text(&path), "HEAD:refs/heads/main"]);
    bare
}

#[test]
fn clones_pushes_and_fetches_work_over_every_protocol() {
    let world = World::new();
    let bare = seeded(&world);
    let server = Server::start(&world);
    bare.ok(["tag", "-a", "-m", "v1", "v1", "main"]);
    for version in ["0", "1", "2"] {
        let git = world.git().with_config(format!("protocol.version={version}"));
        let url = server.seat("ada", "repo.git");
        assert_eq!(git.ok(["ls-remote", &url, "refs/tags/*"]).lines().count(), 2, "v{version}");
        let [writer, reader] =
            ["writer", "reader"].map(|name| git.clone_of(&url, &format!("{name}{version}")));
        let new = writer.commit("Next", &[("next.txt", version)]);
        writer.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
        assert_eq!(bare.resolve("refs/heads/topic"), Some(new.clone()), "v{version}");
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(reader.resolve("origin/topic"), Some(new), "v{version}");
        writer.fails(["push", "origin", "HEAD~1:refs/heads/topic"]);
        writer.ok(["push", "--quiet", "--force", "origin", "HEAD~1:refs/heads/topic"]);
        assert_eq!(bare.resolve("refs/heads/topic"), writer.resolve("HEAD~1"), "v{version}");
        // All or none: one of the two is not a fast-forward.
        writer.fails(["push", "--atomic", "origin", "HEAD:refs/heads/x", "HEAD~1:refs/tags/v1"]);
        assert_eq!(bare.resolve("refs/heads/x"), None, "v{version}");
        writer.ok([
            "push",
            "--quiet",
            "--atomic",
            "origin",
            "HEAD:refs/heads/x",
            ":refs/heads/topic",
        ]);
        writer.ok(["push", "--quiet", "origin", "--delete", "x"]);
        assert_eq!(bare.ok(["for-each-ref", "refs/heads/"]).lines().count(), 1, "v{version}");
    }
    bare.ok(["fsck", "--strict"]);
}

#[test]
fn of_racing_claims_one_wins_and_accepts_all_land() {
    let world = World::new();
    let bare = seeded(&world);
    let server = Server::start(&world);
    let clients: Vec<Git> = (0..6)
        .map(|n| {
            let clone =
                world.git().clone_of(&server.seat(&format!("a{n}"), "repo.git"), &format!("a{n}"));
            clone.commit(&format!("Change {n}"), &[(&format!("f{n}.rs"), "pub fn f() {}\n")]);
            clone
        })
        .collect();
    let race = |refspec: &str| {
        let args = ["origin", refspec].map(str::to_owned).to_vec();
        let racers: Vec<Racer> = clients.iter().map(|git| (git.clone(), args.clone())).collect();
        Barrier::new().race(&racers)
    };
    let runs = race(CLAIM);
    let winners: Vec<usize> = (0..clients.len()).filter(|n| runs[*n].is_ok()).collect();
    let [winner] = winners[..] else { panic!("winners: {winners:?}: {}", runs[0]) };
    clients[winner].ok(["push", "--quiet", "origin", RELEASE]);
    for run in race("HEAD:refs/for/main") {
        assert!(run.is_ok(), "{run}");
    }
    assert_eq!(bare.resolve("refs/zit/current"), bare.resolve("refs/heads/main"));
    assert_eq!(bare.ok(["ls-tree", "-r", "--name-only", "main"]).lines().count(), 7);
    drop(server);
    assert_eq!(bare.ok(["for-each-ref", "refs/zit/claims/", "refs/zit/changes/"]), "");
    bare.ok(["fsck", "--strict"]);
}

#[test]
fn what_stock_git_does_beside_the_server_is_seen_by_the_next_request() {
    let world = World::new();
    let bare = seeded(&world);
    let server = Server::start(&world);
    let url = server.url("repo.git");
    let seen = || world.git().ok(["ls-remote", "--symref", &url]);
    assert!(seen().contains("ref: refs/heads/main\tHEAD"));
    for (command, shown, line) in [
        ("update-ref refs/heads/topic main", true, "refs/heads/topic"),
        ("pack-refs --all", true, "refs/heads/topic"),
        ("update-ref -d refs/heads/topic", false, "refs/heads/topic"),
        ("symbolic-ref refs/heads/other refs/heads/main", true, "refs/heads/other"),
        ("symbolic-ref HEAD refs/heads/later", false, "\tHEAD"),
        ("symbolic-ref HEAD refs/heads/main", true, "ref: refs/heads/main\tHEAD"),
    ] {
        bare.ok(command.split(' '));
        assert_eq!(seen().contains(line), shown, "{command}");
    }
}

#[test]
fn logs_and_hooks_of_the_repository_hear_of_a_push() {
    let world = World::new();
    let bare = seeded(&world);
    bare.ok(["config", "core.logAllRefUpdates", "true"]);
    let hook = bare.dir().join("hooks/reference-transaction");
    std::fs::create_dir_all(bare.dir().join("hooks")).expect("the repository is writable");
    std::fs::write(&hook, "#!/bin/sh\necho \"== $1\" >>heard\ncat >>heard\n").expect("as above");
    make_executable(&hook);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.seat("ada", "repo.git"), "ada");
    let new = clone.commit("Second", &[("a.txt", "two\n")]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    let heard = std::fs::read_to_string(bare.dir().join("heard")).expect("the hook has run");
    let moves = heard.lines().filter(|line| line.ends_with(" refs/heads/topic")).count();
    assert_eq!(moves, 2, "prepared and committed, once each: {heard}");
    let logged = bare.ok(["log", "-g", "--format=%H %gs", "refs/heads/topic", "--"]);
    assert_eq!(logged, format!("{new} push"));
}

#[test]
fn a_killed_server_has_what_it_acknowledged_and_leaves_no_lock() {
    let world = World::new();
    let bare = seeded(&world);
    let mut server = Server::start(&world);
    for n in 0..4 {
        let name = format!("a{n}");
        let clone = world.git().clone_of(&server.seat(&name, "repo.git"), &name);
        let new = clone.commit("More", &[("a.txt", &name)]);
        clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic", "--force"]);
        clone.ok(["push", "--quiet", "origin", &format!("HEAD:refs/zit/claim/f{n}")]);
        server.kill();
        server = server.restart();
        let listed = world.git().ok(["ls-remote", &server.url("repo.git")]);
        assert!(listed.contains(&format!("{new}\trefs/heads/topic")), "{listed}");
        assert_eq!(listed.matches("refs/zit/claims/").count(), n + 1, "{listed}");
    }
    assert!(server.stop().success());
    assert_eq!(bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count(), 4);
    assert_eq!(files::leftovers(bare.dir()), Vec::<String>::new());
    for check in [["log", "--verify"].as_slice(), &["check"]] {
        let mut command = process::command(process::product("zit-server"));
        command.args(check).arg(bare.dir()).env("HOME", world.home());
        let output = process::run(&mut command, b"");
        assert!(output.status.success(), "{check:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_repository_is_refereed_without_a_server() {
    let world = World::new();
    let bare = seeded(&world);
    let address = format!("zit::{}", bare.dir().display());
    // Asked for by name, so that a missing one is said plainly.
    let _ = process::product("git-remote-zit");
    let folder = process::product_folder().display().to_string();
    let path = format!("{folder}:{}", process::search_path().to_string_lossy());
    let git = world.git().with_env("PATH", &path).with_env("ZIT_AGENT", "ada");
    let clone = git.clone_of(&address, "ada");
    clone.commit("Change", &[("b.txt", "b\n")]);
    clone.ok(["push", "--quiet", "origin", CLAIM]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(bare.ok(["show", "main:b.txt"]), "b");
    assert_eq!(bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count(), 1);
}

#[test]
fn a_git_that_is_too_old_is_told_apart() {
    let world = World::new();
    let bare = seeded(&world);
    // It says that it is as old as Debian 12's.
    let old = world.path("old");
    std::fs::create_dir(&old).expect("the world is writable");
    let fake = old.join("git");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = version ] && echo git version 2.39.5 || exec {OLD_GIT} \"$@\"\n"
    );
    std::fs::write(&fake, script).expect("the world is writable");
    make_executable(&fake);
    let mut command = process::command(process::product("zit-server"));
    let path = format!("{}:/usr/bin:/bin", old.display());
    command.args(["check"]).arg(bare.dir()).env("HOME", world.home()).env("PATH", path);
    let output = process::run(&mut command, b"");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("needs git 2.45 or newer; here is git 2.39"), "{said}");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("the file was just made");
}
