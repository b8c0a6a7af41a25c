//! `zit-server check`: a sound repository is told so, also beside a running server, and each damage is named with what to
//! do about it.

use std::fs;
use std::path::Path;

use zit_model::Resource;
use zit_tests::{Git, Server, World, process, server};

const FILES: &[(&str, &str)] = &[("src/lib.rs", "pub fn f() {}\npub fn g() {}\n")];

const CLAIM: &str = "HEAD:refs/zit/claim/src/lib.rs#f";

/// A repository with a claim, an agent, two commits on its mainline and a branch, closed again.
struct Table {
    world: World,
    bare: Git,
    /// The ref of ada's claim.
    claim: String,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "repo.git", FILES);
    let mut server = Server::start(&world);
    let ada = world.git().clone_of(&server.seat("ada", "repo.git"), "ada");
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    ada.commit("More", &[("more.txt", "more\n")]);
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/for/main", "HEAD:refs/heads/topic"]);
    assert!(server.stop().success());
    let claims = bare.ok(["for-each-ref", "--format=%(refname)", "refs/zit/claims"]);
    Table { world, bare, claim: claims.trim().to_owned() }
}

impl Table {
    /// The exit code and what is printed.
    fn check(&self, args: &[&str]) -> (Option<i32>, String) {
        check(&self.world, self.bare.dir(), args)
    }

    /// Something wrong is found, and said so.
    #[track_caller]
    fn finds(&self, problem: &str) -> String {
        let (code, text) = self.check(&[]);
        assert!(
            text.lines().any(|line| line.starts_with(&format!("problem: {problem}"))),
            "{text}"
        );
        assert_eq!(code, Some(1), "{text}");
        text
    }

    /// Nothing is wrong.
    #[track_caller]
    fn is_sound(&self) -> String {
        let (code, text) = self.check(&[]);
        assert!(text.lines().last().is_some_and(|line| line.starts_with("sound: ")), "{text}");
        assert_eq!(code, Some(0), "{text}");
        text
    }

    /// Makes a ref name a commit with one document, as no server would.
    fn document(&self, name: &str, file: &str, content: &str) {
        let bare = &self.bare;
        let write = |args: &[&str], input: &str| {
            let run = bare.run_with_input(args, input.as_bytes()).ok();
            String::from_utf8_lossy(&run.stdout).trim().to_owned()
        };
        let blob = write(&["hash-object", "-w", "--stdin"], content);
        let tree = write(&["mktree"], &format!("100644 blob {blob}\t{file}\n"));
        let commit = write(&["commit-tree", &tree, "-m", "By hand"], "");
        bare.ok(["update-ref", name, &commit]);
    }

    fn claim_json(&self) -> String {
        self.bare.ok(["show", &format!("{}:claim.json", self.claim)])
    }
}

fn check(world: &World, path: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = process::command(process::product("zit-server"));
    command.arg("check").args(args).arg(path).env("HOME", world.home());
    let output = process::run(&mut command, b"");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_sound_repository_is_told_so_and_left_as_it_is() {
    let table = table();
    let before = zit_tests::files::file_list(table.bare.dir());
    let text = table.is_sound();
    assert!(text.starts_with("sound: ") && text.contains("records 1 to "), "{text}");
    zit_tests::files::assert_unchanged(table.bare.dir(), &before, "a check");
    let (code, json) = table.check(&["--json"]);
    let summary: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!((code, &summary["sound"]), (Some(0), &true.into()), "{json}");
}

#[test]
fn a_repository_is_checked_beside_a_server_that_is_at_work() {
    let table = table();
    let server = Server::start(&table.world);
    let ben = table.world.git().clone_of(&server.seat("ben", "repo.git"), "ben");
    for n in 0..8 {
        let claim = format!("HEAD:refs/zit/claim/file-{n}.txt");
        ben.commit("Next", &[("next.txt", &format!("{n}\n"))]);
        ben.ok(["push", "--quiet", "origin", &claim, "HEAD:refs/heads/ben"]);
        let text = table.is_sound();
        assert!(text.contains("open in a server"), "{text}");
    }
}

#[test]
fn what_a_crash_left_to_do_is_named_and_is_no_problem() {
    let table = table();
    let mut server = Server::start_with(&table.world, &[], &[("ZIT_CRASH_AT", "settle.objects")]);
    let ben = table.world.git().clone_of(&server.seat("ben", "repo.git"), "ben");
    ben.run(["push", "--quiet", "origin", "HEAD:refs/zit/claim/b.txt"]);
    assert!(server.dies());
    let text = table.is_sound();
    assert!(text.contains("note: pending: ") && text.contains("note: leftover: "), "{text}");
    let mut server = server.restart();
    table.world.git().ok(["ls-remote", "--quiet", &server.url("repo.git")]);
    assert!(server.stop().success());
    let text = table.is_sound();
    assert!(!text.contains("note: "), "{text}");
}

#[test]
fn a_flipped_bit_in_the_journal_is_found() {
    let table = table();
    let segment = table.bare.dir().join("zit/journal/00000000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[100] ^= 1;
    fs::write(&segment, bytes).unwrap();
    table.finds("journal: ");
}

#[test]
fn a_ref_without_its_object_is_found() {
    let table = table();
    fs::write(table.bare.dir().join("refs/heads/lost"), format!("{}\n", "1".repeat(40))).unwrap();
    let text = table.finds("ref: refs/heads/lost names ");
    assert!(text.contains("problem: object: git fsck: "), "{text}");
}

#[test]
fn a_mainline_that_left_current_is_found_and_the_command_repairs_it() {
    let table = table();
    table.bare.ok(["update-ref", "refs/heads/main", "refs/heads/main~1"]);
    let text = table.finds("mainline: ");
    let line = text.lines().find(|line| line.starts_with("problem: mainline")).unwrap();
    let (_, command) = line.rsplit_once("to do: git ").unwrap();
    table.bare.ok(command.split(' '));
    table.is_sound();
}

#[test]
fn a_mainline_that_went_forward_is_to_be_followed() {
    let table = table();
    let main = table.bare.resolve("refs/heads/main").unwrap();
    let tree = format!("{main}^{{tree}}");
    let next = table.bare.ok(["commit-tree", &tree, "-p", &main, "-m", "Next"]);
    table.bare.ok(["update-ref", "refs/heads/main", next.trim()]);
    let text = table.is_sound();
    assert!(text.contains("note: mainline: "), "{text}");
}

#[test]
fn claims_that_are_not_what_they_seem_are_found() {
    let table = table();
    table.document("refs/zit/claims/0011223344556677", "claim.json", "{");
    table.finds("claim: refs/zit/claims/0011223344556677: claim.json");
    table.document("refs/zit/claims/0011223344556677", "claim.json", &table.claim_json());
    table.finds("claim: refs/zit/claims/0011223344556677: it claims src/lib.rs#f");
}

#[test]
fn two_agents_claims_on_one_thing_are_found() {
    let table = table();
    let file = Resource::file("src/lib.rs").unwrap();
    let json =
        table.claim_json().replace("\"ada\"", "\"ben\"").replace("src/lib.rs#f", "src/lib.rs");
    table.document(&format!("refs/zit/claims/{}", file.key()), "claim.json", &json);
    let text = table.finds("claim: refs/zit/claims/");
    assert!(text.contains("overlap; whether one has lapsed is not recorded"), "{text}");
}

#[test]
fn an_epoch_that_was_never_given_out_is_found() {
    let table = table();
    let mut json: serde_json::Value = serde_json::from_str(&table.claim_json()).unwrap();
    json["epoch"] = 100_000.into();
    table.document(&table.claim, "claim.json", &json.to_string());
    let text = table.finds(&format!("claim: {} has epoch 100000", table.claim));
    assert!(text.contains("something else wrote it"), "the journal knows another value: {text}");
}

#[test]
fn a_change_and_an_agent_that_are_not_what_they_are_named_by_are_found() {
    let table = table();
    let [main, before] = ["main", "main~1"].map(|name| table.bare.resolve(name).unwrap());
    table.bare.ok(["update-ref", &format!("refs/zit/changes/{main}"), &before]);
    table.finds("change: refs/zit/changes/");
    table.document("refs/zit/agents/eve/state", "state.json", "[]");
    table.finds("agent: refs/zit/agents/eve/state: state.json");
    table.bare.ok(["update-ref", "refs/zit/odd", &main]);
    table.finds("ref: refs/zit/odd: the name means nothing");
}

#[test]
fn a_claim_that_something_else_took_away_is_found_and_the_command_brings_it_back() {
    let table = table();
    table.bare.ok(["update-ref", "-d", &table.claim]);
    let text = table.finds(&format!("ref: {} is absent; the journal says ", table.claim));
    let line = text.lines().find(|line| line.contains("the journal says")).unwrap();
    let (_, command) = line.rsplit_once("not meant: git ").unwrap();
    table.bare.ok(command.split(' '));
    table.is_sound();
}

#[test]
fn leftovers_are_told_by_who_left_them() {
    let table = table();
    let dir = table.bare.dir();
    fs::create_dir(dir.join("objects/incoming-zit-x")).unwrap();
    let keep = "zit: refs that name these objects are being written\n";
    fs::write(dir.join("objects/pack/pack-x.keep"), keep).unwrap();
    fs::write(dir.join("zit/tx/0"), "").unwrap();
    fs::hard_link(dir.join("zit/tx/0"), dir.join("refs/heads/main.lock")).unwrap();
    let text = table.is_sound();
    for name in ["objects/incoming-zit-x", "pack-x.keep", "zit/tx/0", "refs/heads/main.lock"] {
        assert!(text.contains(&format!("{name} was left by a crash")), "{name}: {text}");
    }
    fs::write(dir.join("packed-refs.lock"), "").unwrap();
    let text = table.finds("leftover: packed-refs.lock is the lock of another program");
    assert!(text.contains("to do: if no git program is running there, remove it"), "{text}");
}

#[test]
fn a_head_that_leads_nowhere_is_found_and_the_command_mends_it() {
    let table = table();
    let bare = &table.bare;
    let main = bare.resolve("refs/heads/main").unwrap();
    for (name, branches, named) in [
        ("refs/namespaces/a/", &["old", "trunk"][..], "trunk"),
        ("refs/namespaces/b/", &["dev", "main"], "main"),
        ("refs/namespaces/b/refs/namespaces/c/", &["dev"], "dev"),
    ] {
        for branch in branches {
            bare.ok(["update-ref", &format!("{name}refs/heads/{branch}"), &main]);
        }
        // Named as the namespace calls it.
        let head = format!("{name}HEAD");
        bare.ok(["symbolic-ref", &head, "refs/heads/trunk"]);
        let text =
            table.finds(&format!("ref: {head} names refs/heads/trunk, which does not exist"));
        assert!(!text.contains("git fsck"), "{text}");
        let line = text.lines().find(|line| line.starts_with("problem: ref")).unwrap();
        let (_, command) = line.rsplit_once("to do: git ").unwrap();
        assert_eq!(command, format!("symbolic-ref {head} {name}refs/heads/{named}"));
        bare.ok(command.split(' '));
        table.is_sound();
    }
    bare.ok(["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone"]);
    let text = table.finds("ref: refs/remotes/origin/HEAD names refs/remotes/origin/gone");
    assert!(text.contains("to do: git symbolic-ref -d refs/remotes/origin/HEAD"), "{text}");
}

#[test]
fn the_head_of_a_namespace_without_branches_is_no_problem() {
    let table = table();
    let head = "refs/namespaces/a/HEAD";
    table.bare.ok(["symbolic-ref", head, "refs/namespaces/a/refs/heads/main"]);
    let (code, text) = table.check(&[]);
    let note = "note: ref: refs/namespaces/a/HEAD names refs/namespaces/a/refs/heads/main, which does not \
                exist; to do: nothing: a push of refs/namespaces/a/refs/heads/main makes it";
    assert!(text.contains(note), "{text}");
    assert_eq!(code, Some(0), "{text}");
    table.bare.ok(["symbolic-ref", head, "refs/heads/none"]);
    let (code, text) = table.check(&[]);
    let command = "git symbolic-ref refs/namespaces/a/HEAD refs/namespaces/a/refs/heads/main";
    assert!(text.contains(command), "{text}");
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn what_is_no_repository_cannot_be_checked() {
    let world = World::new();
    let (code, text) = check(&world, &world.root(), &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.starts_with("error: "), "{text}");
}
