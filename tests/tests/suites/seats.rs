//! Who may see and write what: claims, wip heads and changes belong to the agent of the seat.

use zit_tests::{Git, Run, Server, World, http, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

/// A wip head of Ada's.
const WIP: &str = "refs/zit/wip/ada/0123456789ab";

/// A repository with a claim and a wip head of Ada's, and Bob beside her.
struct Table {
    _world: World,
    server: Server,
    bare: Git,
    ada: Git,
    bob: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let server = Server::start(&world);
    let [ada, bob] =
        ["ada", "bob"].map(|agent| world.git().clone_of(&server.seat(agent, "app.git"), agent));
    ada.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/config.rs#parse"]);
    ada.commit("Snapshot", &[("draft.txt", "one\n")]);
    ada.ok(["push", "--quiet", "origin", &format!("HEAD:{WIP}")]);
    Table { _world: world, server, bare, ada, bob }
}

impl Table {
    /// The one claim's ref.
    fn claim(&self) -> String {
        self.bare.ok(["for-each-ref", "--format=%(refname)", "refs/zit/claims/"])
    }

    /// Bob pushes `refspec`, which must be rejected and change nothing that Ada has.
    #[track_caller]
    fn bob_is_refused(&self, refspec: &str) -> Run {
        let before = self.bare.ok(["for-each-ref", "refs/zit/claims/", "refs/zit/wip/"]);
        let run = self.bob.fails(["push", "--force", "origin", refspec]).says("rejected");
        let after = self.bare.ok(["for-each-ref", "refs/zit/claims/", "refs/zit/wip/"]);
        assert_eq!(after, before, "{run}");
        run
    }
}

#[test]
fn another_agents_claim_can_be_neither_released_nor_deleted_nor_overwritten() {
    let table = table();
    let claim = table.claim();
    table.bob_is_refused("origin/main:refs/zit/release/src/config.rs#parse");
    table.bob_is_refused(&format!(":{claim}"));
    table.bob_is_refused(&format!("origin/main:{claim}"));
}

#[test]
fn another_agents_wip_head_can_be_neither_moved_nor_deleted() {
    let table = table();
    table.bob_is_refused(&format!("origin/main:{WIP}"));
    table.bob_is_refused(&format!(":{WIP}"));
    table.bob_is_refused("origin/main:refs/zit/wip/ada/ba9876543210");
}

#[test]
fn an_own_wip_head_takes_any_move_and_a_delete() {
    let table = table();
    table.ada.ok(["commit", "--quiet", "--amend", "-m", "Another snapshot"]);
    table.ada.ok(["push", "--quiet", "--force", "origin", &format!("HEAD:{WIP}")]);
    assert_eq!(table.bare.resolve(WIP), table.ada.resolve("HEAD"));
    table.ada.ok(["push", "--quiet", "origin", &format!(":{WIP}")]);
    assert_eq!(table.bare.resolve(WIP), None);
}

#[test]
fn a_renewed_claim_keeps_its_one_ref() {
    let table = table();
    let before = table.claim();
    table.ada.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/config.rs#parse"]);
    assert_eq!(table.claim(), before);
}

#[test]
fn a_claim_on_a_file_overlaps_the_claim_on_a_function_in_it() {
    let table = table();
    table.bob_is_refused("origin/main:refs/zit/claim/src/config.rs").says("ada");
    table.bob.ok(["push", "--quiet", "origin", "origin/main:refs/zit/claim/src/other.rs"]);
}

#[test]
fn work_in_flight_holds_what_it_writes_against_claims() {
    let table = table();
    table.bob_is_refused("origin/main:refs/zit/claim/draft.txt").says("ada");
}

#[test]
fn a_push_that_requires_a_claim_moves_nothing_without_it() {
    let table = table();
    table.bob.commit("Work", &[("work.txt", "text\n")]);
    let option = "zit.require-claim=src/config.rs#parse";
    table.bob.fails(["push", "-o", option, "origin", "HEAD:refs/heads/work"]).says("ada");
    assert_eq!(table.bare.resolve("refs/heads/work"), None);
    let option = "zit.require-claim=work.txt";
    table.bob.ok(["push", "--quiet", "-o", option, "origin", "HEAD:refs/heads/work"]);
    assert_eq!(table.bare.resolve("refs/heads/work"), table.bob.resolve("HEAD"));
}

#[test]
fn a_pusher_is_shown_no_ref_of_another_agent() {
    let table = table();
    let shown = |seat: &str| {
        let path = format!("/{seat}app.git/info/refs?service=git-receive-pack");
        http::get(table.server.address(), &path).text()
    };
    assert!(shown("@ada/").contains(WIP));
    for seat in ["@bob/", ""] {
        let refs = shown(seat);
        assert!(refs.contains("refs/heads/main") && refs.contains("refs/zit/current"), "{refs}");
        assert!(!refs.contains("refs/zit/wip/") && !refs.contains("refs/zit/claims/"), "{refs}");
    }
}

#[test]
fn a_mirror_push_moves_heads_and_leaves_refs_zit_alone() {
    let table = table();
    table.bob.commit("Work", &[("work.txt", "text\n")]);
    table.bob.ok(["branch", "extra"]);
    let before = table.bare.ok(["for-each-ref", "refs/zit/claims/", "refs/zit/wip/"]);
    let run = table.bob.run(["push", "--mirror", "origin"]);
    assert_eq!(table.bare.resolve("refs/heads/extra"), table.bob.resolve("HEAD"), "{run}");
    assert_eq!(table.bare.ok(["for-each-ref", "refs/zit/claims/", "refs/zit/wip/"]), before);
    assert!(table.bare.resolve("refs/zit/current").is_some(), "{run}");
}

#[test]
fn a_push_larger_than_gits_buffer_arrives() {
    let table = table();
    let mut random = fastrand::Rng::with_seed(3);
    let noise = (0..3_000_000).map(|_| char::from(random.u8(b' '..=b'~'))).collect::<String>();
    let new = table.bob.commit("Large", &[("large.txt", &noise)]);
    let git = table.bob.with_config("http.postBuffer=1000");
    git.ok(["push", "--quiet", "origin", "HEAD:refs/heads/large"]);
    assert_eq!(table.bare.resolve("refs/heads/large"), Some(new));
}

#[test]
fn an_agent_named_by_option_speaks_for_the_push() {
    let table = table();
    let url = table.server.url("app.git");
    let refspec = "origin/main:refs/zit/claim/src/config.rs#parse";
    table.bob.fails(["push", "-o", "zit.agent=carol", &url, refspec]).says("ada");
    table.bob.ok(["push", "--quiet", "-o", "zit.agent=ada", &url, refspec]);
    for bad in ["Ada", "-x", "a/b", "", &"a".repeat(49)] {
        let option = format!("zit.agent={bad}");
        table.bob.fails(["push", "-o", &option, &url, "origin/main:refs/zit/claim/x"]);
    }
}

#[test]
fn who_has_no_seat_and_does_what_is_printed_is_one_agent_from_then_on() {
    let table = table();
    let clone = table.bob.at("..").clone_of(&table.server.url("app.git"), "nobody");
    let claim = ["push", "origin", "origin/main:refs/zit/claim/README.md"];
    let [printed] = &clone.fails(claim).says("always the same").printed_commands()[..] else {
        panic!("one way forward")
    };
    let run = clone.shell(printed);
    assert!(run.is_ok(), "{printed}: {run}");
    clone.ok(claim);
    clone.commit("Write", &[("README.md", "# Title\n")]);
    let run = clone.run(["push", "origin", "HEAD:refs/for/main"]).ok();
    assert!(run.stderr.contains("the claim on README.md ended with it"), "{run}");
}

#[test]
fn a_misspelt_option_is_answered_with_a_push_that_does_what_was_meant() {
    let table = table();
    table.bob.commit("Work", &[("b.txt", "b\n")]);
    let misspelt = ["push", "-o", "zit.clam=b.txt", "-o", "zit.intent=It's `b`", "origin"];
    let run = table.bob.run([&misspelt[..], &["HEAD:refs/heads/b"]].concat()).failed();
    let [printed] = &run.printed_commands()[..] else { panic!("one way forward: {run}") };
    let run = table.bob.shell(printed);
    assert!(run.is_ok(), "{printed}: {run}");
    assert!(run.stderr.contains("bob holds b.txt"), "{run}");
    assert_eq!(table.bare.resolve("refs/heads/b"), table.bob.resolve("HEAD"));
    let status = table.ada.run(["push", "-o", "zit.status", "origin", "HEAD:refs/zit/tell"]).ok();
    assert!(status.stderr.contains("\"It's `b`\""), "{status}");
}
