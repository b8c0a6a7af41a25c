//! A small fetch starts no program on the server, and the client cannot tell.
//!
//! The servers here find no git on their `PATH`, so whatever they answer, they answer by themselves.
//! Stock git moves the refs of the served repository from outside.

use std::collections::BTreeSet;
use std::fs;

use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, history, server};

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("src/lib.rs", "fn main() {}\n")];

/// A served repository, a server without git, and a clone with which stock git writes into it directly.
struct Table {
    world: World,
    server: Server,
    bare: Git,
    writer: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let server = without_git(&world);
    let writer = world.git().clone_of(text(bare.dir()), "writer");
    Table { world, server, bare, writer }
}

/// A server that can start nothing.
fn without_git(world: &World) -> Server {
    let empty = world.path("empty");
    fs::create_dir(&empty).expect("each world has one such server");
    Server::start_with(world, &[], &[("PATH", text(&empty))])
}

impl Table {
    /// Clones through the server.
    #[track_caller]
    fn reader(&self, name: &str) -> Git {
        let reader = self.world.git().with_config("fetch.fsckObjects=true");
        reader.clone_of(&self.server.url("app.git"), name)
    }

    /// Commits and writes the branch into the served repository.
    #[track_caller]
    fn write(&self, name: &str) -> String {
        let oid = self.writer.commit(name, &[(&format!("{name}.txt"), name)]);
        self.writer.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
        oid
    }
}

#[track_caller]
fn assert_sound(git: &Git) {
    git.ok(["fsck", "--strict", "--no-dangling"]);
}

fn objects(git: &Git) -> BTreeSet<String> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let list = git.ok(["cat-file", "--batch-all-objects", "--unordered", format]);
    list.lines().map(str::to_owned).collect()
}

#[test]
fn polls_and_small_fetches_start_no_program() {
    let table = table();
    let reader = table.reader("reader");
    for name in ["one", "two", "three"] {
        reader.ok(["ls-remote", "--quiet", "origin", "refs/heads/*"]);
        let oid = table.write(name);
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(reader.resolve("origin/main"), Some(oid), "{name}");
        reader.ok(["fetch", "--quiet"]);
    }
    assert_sound(&reader);
    assert_eq!(objects(&reader), objects(&table.bare));
    // The proof that there is no git to be found.
    reader.fails(["fetch", "--depth=1", "origin"]).says("error");
}

#[test]
fn a_claim_starts_no_program_and_keeps_nothing_of_what_it_uploads() {
    let table = table();
    let claimer = table.world.git().clone_of(&table.server.seat("ada", "app.git"), "ada");
    claimer.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/claimed.rs"]);
    claimer.ok(["push", "--quiet", "origin", "origin/main:refs/zit/release/claimed.rs"]);
    // A claim that brings objects along needs git to take them in, and none of them stays.
    let server = Server::start(&table.world);
    let other = server::seeded(&table.world, "other.git", FILES);
    let bearer = table.world.git().clone_of(&server.seat("ben", "other.git"), "ben");
    let oid = bearer.commit("Unasked", &[("unasked.txt", "text\n")]);
    bearer.ok(["push", "--quiet", "origin", "HEAD:refs/zit/claim/claimed.rs"]);
    other.fails(["cat-file", "-e", &oid]);
    assert_eq!(other.ok(["for-each-ref", "refs/zit/claims/"]).lines().count(), 1);
}

#[test]
fn claims_and_other_documents_are_fetched_without_a_program() {
    let table = table();
    let reader = table.reader("reader");
    let ada = table.world.git().clone_of(&table.server.seat("ada", "app.git"), "ada");
    ada.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/claimed.rs"]);
    reader.ok(["fetch", "--quiet", "origin", "+refs/zit/*:refs/zit/*"]);
    let documents = ["--format=%(refname)", "refs/zit/claims/", "refs/zit/agents/"];
    let found = reader.ok(["for-each-ref"].into_iter().chain(documents));
    assert_eq!(found.lines().count(), 2, "the claim and the state: {found}");
    let claim = found.lines().find(|name| name.contains("/claims/")).expect("it is one of two");
    let document = reader.ok(["show", &format!("{claim}:claim.json")]);
    assert!(document.contains("claimed.rs"), "{document}");
    assert_sound(&reader);
}

#[test]
fn annotated_tags_follow_what_is_fetched() {
    let table = table();
    let reader = table.reader("reader");
    table.write("one");
    table.writer.ok(["tag", "-a", "-m", "One", "one"]);
    table.writer.ok(["tag", "-a", "-m", "A tag of a tag", "two", "one"]);
    table.writer.ok(["tag", "-a", "-m", "Elsewhere", "elsewhere", "HEAD^{tree}"]);
    table.writer.ok(["push", "--quiet", "--tags", "origin"]);
    reader.ok(["fetch", "--quiet"]);
    for tag in ["one", "two"] {
        let refname = format!("refs/tags/{tag}");
        assert_eq!(reader.resolve(&refname), table.writer.resolve(&refname), "{tag}");
    }
    reader.ok(["fetch", "--quiet", "--tags"]);
    assert_eq!(objects(&reader), objects(&table.bare));
    assert_sound(&reader);
}

#[test]
fn a_client_with_much_of_its_own_finds_what_is_common_in_several_rounds() {
    let table = table();
    let reader = table.reader("reader");
    for n in 0..100 {
        reader.ok(["commit", "--quiet", "--allow-empty", "-m", &format!("Own {n}")]);
    }
    // Or the client would name the tip that it fetched before all else.
    reader.ok(["update-ref", "-d", "refs/remotes/origin/main"]);
    let oid = table.write("one");
    let trace = table.world.path("packets");
    reader.with_env("GIT_TRACE_PACKET", text(&trace)).ok(["fetch", "--quiet"]);
    assert_eq!(reader.resolve("origin/main"), Some(oid));
    let trace = fs::read_to_string(trace).expect("git wrote a trace");
    let n_rounds = trace.matches("fetch< acknowledgments").count();
    assert!(n_rounds > 2, "{n_rounds} rounds");
    assert!(trace.contains("fetch< NAK") && trace.contains("fetch< ready"));
    assert_sound(&reader);
}

#[test]
fn histories_without_anything_in_common_are_fetched_too() {
    let table = table();
    table.world.git().ok(["init", "--quiet", "stranger"]);
    let stranger = table.world.git().at("stranger");
    stranger.commit("Alone", &[("alone.txt", "alone\n")]);
    stranger.ok(["fetch", "--quiet", &table.server.url("app.git"), "main:refs/heads/theirs"]);
    assert_eq!(stranger.resolve("theirs"), table.bare.resolve("refs/heads/main"));
    assert_sound(&stranger);
}

#[test]
fn an_object_is_wanted_by_its_oid_whether_or_not_a_ref_names_it() {
    let table = table();
    let reader = table.reader("reader");
    let oid = table.write("one");
    table.write("two");
    reader.ok(["fetch", "--quiet", "origin", &oid]);
    assert_eq!(reader.resolve("FETCH_HEAD"), Some(oid));
    let nowhere = "1".repeat(40);
    let refused = format!("remote error: upload-pack: not our ref {nowhere}");
    reader.fails(["fetch", "origin", &nowhere]).says(&refused);
}

#[test]
fn a_sha_256_repository_answers_small_fetches_too() {
    let world = World::new();
    let path = world.root().join("app.git");
    world.git().ok(["init", "--quiet", "--bare", "--object-format=sha256", text(&path)]);
    world.git().ok(["init", "--quiet", "--object-format=sha256", "writer"]);
    let writer = world.git().at("writer");
    writer.commit("Begin", FILES);
    writer.ok(["push", "--quiet", text(&path), "HEAD:refs/heads/main"]);
    let server = without_git(&world);
    let reader = world.git().clone_of(&server.url("app.git"), "reader");
    let oid = writer.commit("Next", &[("next.txt", "text\n")]);
    writer.ok(["push", "--quiet", text(&path), "HEAD:refs/heads/main"]);
    reader.ok(["fetch", "--quiet"]);
    assert_eq!(reader.resolve("origin/main"), Some(oid));
    assert_sound(&reader);
}

/// A client follows a history of merges and tags in leaps, once from us and once from git's own server.
#[test]
fn a_client_that_follows_a_history_has_what_the_peer_would_have_given_it() {
    let world = World::new();
    let source = world.bare("source.git");
    history::grow(&source, 800, 7);
    let steps = source.ok(["rev-list", "--reverse", "--topo-order", "main"]);
    let steps = steps.lines().skip(20).step_by(41).map(str::to_owned).collect::<Vec<_>>();
    let (server, peer) = (without_git(&world), Peer::start(&world));
    let bare = world.bare("app.git");
    let advance = |to: &str| {
        let main = format!("{to}:refs/heads/main");
        source.ok(["push", "--quiet", text(bare.dir()), &main]);
        for tag in source.ok(["tag", "--merged", to]).lines() {
            let tag = format!("refs/tags/{tag}");
            source.ok(["push", "--quiet", text(bare.dir()), &format!("{tag}:{tag}")]);
        }
    };
    advance(&steps[0]);
    let ours = world.git().clone_of(&server.url("app.git"), "ours");
    let theirs = world.git().clone_of(&peer.url("app.git"), "theirs");
    for step in &steps {
        advance(step);
        for client in [&ours, &theirs] {
            client.ok(["fetch", "--quiet"]);
        }
        assert_eq!(ours.refs(), theirs.refs(), "at {step}");
        assert!(objects(&ours) == objects(&theirs), "at {step}: other objects");
    }
    assert!(ours.refs().contains("refs/tags/v"), "annotated tags came along");
    assert_sound(&ours);
}

#[test]
fn what_is_more_than_small_is_answered_as_ever() {
    let world = World::new();
    let bare = world.bare("app.git");
    history::grow(&bare, 300, 9);
    bare.ok(["config", "uploadpack.allowFilter", "true"]);
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    for (name, args) in [
        ("depth", &["--depth=3"][..]),
        ("filter", &["--filter=blob:none", "--no-checkout"]),
        ("branch", &["--depth=1", "--branch=topic/1"]),
    ] {
        let clone = |url: &str, whose: &str| {
            let folder = format!("{name}-{whose}");
            world.git().ok([&["clone", "--quiet", url, &folder][..], args].concat());
            world.git().at(folder)
        };
        let ours = clone(&server.url("app.git"), "ours");
        let theirs = clone(&peer.url("app.git"), "theirs");
        assert_eq!(ours.refs(), theirs.refs(), "{name}");
        assert!(objects(&ours) == objects(&theirs), "{name}: other objects");
        assert_sound(&ours);
    }
    let shallow = world.git().at("depth-ours");
    shallow.ok(["fetch", "--quiet", "--unshallow"]);
    assert_eq!(
        shallow.ok(["rev-list", "--count", "origin/main"]),
        bare.ok(["rev-list", "--count", "main"])
    );
}
