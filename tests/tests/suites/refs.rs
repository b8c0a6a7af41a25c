//! The rules of refs that stock git reports: mainline, tags, `refs/zit`, atomic pushes, seats.
//!
//! Messages are asserted loosely: that git calls the ref rejected, and that nothing moved.

use zit_tests::world::text;
use zit_tests::{Git, Server, World, http, process, server};

const FILES: &[(&str, &str)] =
    &[("src/config.rs", "pub fn parse() {}\n"), ("README.md", "# App\n")];

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
    /// Pushes `args`, which must be rejected and move no ref outside `refs/zit`.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let before = self.bare.refs();
        let run = self.clone.fails(["push", "origin"].iter().chain(args)).says("rejected");
        assert_eq!(self.bare.refs(), before, "a refused push moved a ref: {run}");
        run.stderr
    }
}

#[test]
fn a_forced_push_of_the_mainline_is_refused() {
    let table = table();
    table.clone.ok(["commit", "--quiet", "--amend", "-m", "Another beginning"]);
    table.refused(&["--force", "HEAD:refs/heads/main"]);
}

#[test]
fn a_delete_of_the_mainline_is_refused() {
    table().refused(&["--delete", "main"]);
}

#[test]
fn a_moved_tag_is_refused() {
    let table = table();
    table.clone.ok(["tag", "v1"]);
    table.clone.ok(["push", "--quiet", "origin", "v1"]);
    table.clone.commit("More", &[("more.txt", "more\n")]);
    table.clone.ok(["tag", "--force", "v1"]);
    table.refused(&["--force", "v1"]);
}

#[test]
fn a_push_of_the_mainline_moves_current_with_it() {
    let table = table();
    let new = table.clone.commit("Next", &[("next.txt", "next\n")]);
    table.clone.ok(["push", "--quiet", "origin", "main"]);
    assert_eq!(table.bare.resolve("refs/heads/main"), Some(new.clone()));
    assert_eq!(table.bare.resolve("refs/zit/current"), Some(new));
}

#[test]
fn the_first_push_into_an_empty_repository_creates_the_mainline_and_current() {
    let world = World::new();
    let bare = server::init(&world, "new.git");
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.seat("ada", "new.git"), "ada");
    let new = clone.commit("Begin", FILES);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    assert_eq!(bare.resolve("refs/heads/main"), Some(new.clone()));
    assert_eq!(bare.resolve("refs/zit/current"), Some(new));
}

#[test]
fn an_unknown_ref_below_refs_zit_is_refused_with_the_known_ones() {
    let said = table().refused(&["HEAD:refs/zit/nonsense/x"]);
    assert!(said.contains("refs/zit/claim"), "{said}");
}

#[test]
fn a_direct_push_of_current_is_refused() {
    let table = table();
    table.clone.commit("Next", &[("next.txt", "next\n")]);
    table.refused(&["HEAD:refs/zit/current"]);
    assert_eq!(table.bare.resolve("refs/zit/current"), table.bare.resolve("refs/heads/main"));
}

#[test]
fn an_atomic_push_with_one_refused_ref_moves_nothing() {
    let table = table();
    table.clone.commit("Next", &[("next.txt", "next\n")]);
    table.refused(&["--atomic", "HEAD:refs/heads/fine", "HEAD:refs/zit/nonsense/x"]);
}

#[test]
fn without_atomic_the_good_ref_moves_and_the_bad_one_does_not() {
    let table = table();
    let new = table.clone.commit("Next", &[("next.txt", "next\n")]);
    let args = ["push", "origin", "HEAD:refs/heads/fine", "HEAD:refs/zit/nonsense/x"];
    table.clone.fails(args).says("rejected");
    assert_eq!(table.bare.resolve("refs/heads/fine"), Some(new));
}

#[test]
fn a_branch_that_clashes_with_a_folder_of_branches_is_refused() {
    let table = table();
    table.clone.commit("Next", &[("next.txt", "next\n")]);
    table.clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/a/b"]);
    table.refused(&["HEAD:refs/heads/a"]);
    table.refused(&["HEAD:refs/heads/a/b/c"]);
}

#[test]
fn a_claim_without_a_seat_is_refused_with_the_command_to_type() {
    let table = table();
    let clone = table.world.git().clone_of(&table.server.url("app.git"), "nobody");
    let run = clone
        .fails(["push", "origin", "origin/main:refs/zit/claim/src/config.rs"])
        .says("rejected");
    assert!(
        run.printed_commands().iter().any(|line| line.contains("Zit-Agent") || line.contains("/@")),
        "{run}"
    );
}

#[test]
fn a_dry_run_moves_nothing() {
    let table = table();
    table.clone.commit("Next", &[("next.txt", "next\n")]);
    let before = table.bare.refs();
    let run = table.clone.run(["push", "-o", "zit.dry-run", "origin", "HEAD:refs/heads/dry"]);
    assert_eq!(table.bare.refs(), before, "{run}");
    assert!(run.stderr.contains("dry"), "{run}");
}

#[test]
fn a_server_that_is_asked_to_stop_ends_well_and_answers_again_when_started() {
    let mut table = table();
    assert_eq!(http::get(table.server.address(), "/livez").status, 200);
    assert!(table.server.stop().success(), "{}", table.server.log());
    let server = table.server.restart();
    let refs = table.clone.ok(["ls-remote", &server.url("app.git"), "refs/heads/main"]);
    assert!(refs.ends_with("refs/heads/main"), "{refs}");
}

#[test]
fn the_server_refuses_to_listen_beyond_loopback() {
    let world = World::new();
    let mut command = process::command(process::product("zit-server"));
    command.args(["serve", "--root", text(&world.root()), "--listen", "0.0.0.0:0"]);
    let output = process::run(&mut command, b"");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("127.0.0.1"), "{said}");
}

#[test]
fn stock_git_in_the_repository_sees_what_the_server_wrote() {
    let table = table();
    let new = table.clone.commit("Next", &[("next.txt", "next\n")]);
    table.clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    table.bare.ok(["fsck", "--strict"]);
    assert_eq!(table.bare.ok(["rev-parse", "topic"]), new);
    assert_eq!(table.bare.ok(["show", "topic:next.txt"]), "next");
}

#[test]
fn every_command_that_a_refusal_prints_can_be_run() {
    let table = table();
    let clone = &table.clone;
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/tags/v1", "HEAD:refs/heads/taken/x"]);
    clone.ok(["tag", "v1"]);
    clone.ok(["fetch", "--quiet"]);
    clone.commit("Next", &[("next.txt", "next\n")]);
    clone.ok(["tag", "--force", "v1"]);
    let refused: [&[&str]; 9] = [
        &["--force", "origin", "v1"],
        &["origin", "--delete", "main"],
        &["origin", "HEAD:refs/zit/current"],
        &["origin", "HEAD:refs/zit/nonsense/x"],
        &["origin", "HEAD:refs/heads/taken"],
        &["origin", "origin/main:refs/zit/claim/%2e%2e/x"],
        &["origin", "origin/main:refs/zit/release/src/config.rs"],
        &["-o", "zit.nope", "origin", "HEAD:refs/heads/x"],
        &["--force", "origin", "HEAD~1:refs/heads/main", "HEAD:refs/zit/changes/1"],
    ];
    let mut broken = Vec::new();
    for args in refused {
        let run = clone.run(["push"].iter().chain(args));
        for command in run.printed_commands() {
            let tried = clone.shell(&command);
            let sensible = tried.is_ok() || tried.stderr.contains("[remote rejected]");
            if !sensible {
                eprintln!("{command:?} printed for {args:?}: {tried}");
                broken.push(command);
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}
