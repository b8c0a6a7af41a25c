//! What a landing ends beside itself: the agent's recorded work that it contains, or that is an earlier form of it.

use std::collections::BTreeSet;

use zit_model::Oid;

use crate::world::{
    Sent, World, accept, change_ref, claim, create, moved, principal, source, wip_ref,
};

/// Every way to land a commit that is on current.
fn ways(base: Oid, tip: Oid) -> [Sent; 3] {
    [accept(tip), create("refs/zit/accept", tip), moved("refs/heads/main", base, tip)]
}

fn one(text: &str) -> String {
    source(text, "2")
}

#[test]
fn every_way_to_land_ends_the_branch_that_an_earlier_form_was_pushed_to() {
    for way in 0..3 {
        let (mut world, base) = World::new();
        let pushed = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("10"))]);
        let amended = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("11"))]);
        world.push("ada", &[create("refs/heads/t", pushed)], &["zit.intent=tune"]).ok();
        world.push("ada", &[ways(base, amended)[way].clone()], &[]).ok();
        for _ in 0..2 {
            assert!(world.items().is_empty(), "way {way}");
            assert_eq!(world.find("refs/heads/t"), Some(pushed), "a branch is its pusher's");
            world.reopen();
        }
        world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
        let next = world.commit(Some(amended), &[("src/a.rs", &one("12"))]);
        let answer = world.push("bob", &[create("refs/heads/next", next)], &[]);
        answer.ok().keeps_silent_about("note").keeps_silent_about("refs/heads/t ");
    }
}

#[test]
fn every_way_to_land_ends_the_work_below_it() {
    for way in 0..3 {
        let (world, base) = World::new();
        let below = world.commit(Some(base), &[("src/a.rs", &one("10"))]);
        let tip = world.commit(Some(below), &[("notes.txt", "x\n")]);
        world.push("ada", &[create("refs/heads/t", below)], &[]).ok();
        world.push("ada", &[create(&change_ref(below), below)], &[]).ok();
        world.push("ada", &[ways(base, tip)[way].clone()], &[]).ok();
        assert!(world.items().is_empty(), "way {way}");
        world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    }
}

#[test]
fn a_direct_push_without_an_agent_ends_the_earlier_work_of_its_author() {
    let (world, base) = World::new();
    let pushed = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("10"))]);
    let amended = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("11"))]);
    world.push("", &[create("refs/heads/t", pushed)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/t"]);
    world.push("", &[moved("refs/heads/main", base, amended)], &[]).ok();
    assert!(world.items().is_empty());
}

#[test]
fn a_change_is_known_by_its_trailer_whatever_its_subject() {
    let (world, base) = World::new();
    let message = |subject: &str, change: &str| format!("{subject}\n\nZit-Change: {change}\n");
    let commit = |author: &str, message: &str, text: &str| {
        world.commit_by(author, message, Some(base), &[("src/a.rs", &one(text))])
    };
    let same = commit("Ada", &message("Try", "c1"), "10");
    let other = commit("Ada", &message("Else", "c2"), "11");
    let plain = commit("Ada", "Nothing said", "12");
    for (name, oid) in [("same", same), ("other", other), ("plain", plain)] {
        world.push("ada", &[create(&format!("refs/heads/{name}"), oid)], &[]).ok();
    }
    let landed = commit("Grace", &message("Done", "c1"), "13");
    world.push("ada", &[accept(landed)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/other", "refs/heads/plain"]);
}

#[test]
fn work_of_several_commits_ends_with_the_last_of_them() {
    let (world, base) = World::new();
    let commit = |subject: &str, on: Oid, a: &str, b: &str| {
        world.commit_by("Ada", subject, Some(on), &[("src/a.rs", &source(a, b))])
    };
    let first = commit("first", base, "10", "2");
    let second = commit("second", first, "10", "20");
    world.push("ada", &[create("refs/heads/t", second)], &[]).ok();
    let rebuilt = commit("second", base, "1", "21");
    world.push("ada", &[accept(rebuilt)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/t"], "its first commit has not landed");
    let rebuilt = commit("first", rebuilt, "11", "21");
    world.push("ada", &[accept(rebuilt)], &[]).ok();
    assert!(world.items().is_empty());
}

#[test]
fn a_snapshot_goes_with_the_work_that_landed_in_another_form() {
    let (world, base) = World::new();
    let pushed = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("10"))]);
    let snapshot = world.commit_by("Ada", "wip", Some(base), &[("src/a.rs", &one("9"))]);
    let item = ["zit.item=aaaaaaaaaaaa"];
    let wip = wip_ref("ada", "aaaaaaaaaaaa");
    world.push("ada", &[create(&wip, snapshot)], &[]).ok();
    world.push("ada", &[create("refs/heads/t", pushed), claim("src/a.rs#one")], &item).ok();
    let amended = world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", &one("11"))]);
    world.push("ada", &[accept(amended)], &[]).ok().says("the claim on src/a.rs#one ended");
    assert!(world.items().is_empty());
    assert_eq!(world.find(&wip), None);
}

#[test]
fn a_form_ends_nobody_elses_work_and_no_work_elsewhere() {
    let (world, base) = World::new();
    let commit = |text: &str| world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", text)]);
    let elsewhere = world.commit_by("Ada", "tune", Some(base), &[("src/b.rs", "fn x() {}\n")]);
    world.push("bob", &[create("refs/heads/bobs", commit(&one("10")))], &[]).ok();
    world.push("ada", &[create("refs/heads/elsewhere", elsewhere)], &[]).ok();
    world.push("ada", &[accept(commit(&one("11")))], &[]).ok();
    let left: BTreeSet<String> = world.items().into_iter().collect();
    assert_eq!(left, ["refs/heads/bobs", "refs/heads/elsewhere"].map(str::to_owned).into());
}

#[test]
fn work_that_goes_on_from_what_landed_is_no_earlier_form_of_it() {
    let (world, base) = World::new();
    let commit =
        |on: Oid, text: &str| world.commit_by("Ada", "save", Some(on), &[("src/a.rs", &one(text))]);
    let first = commit(base, "10");
    let second = commit(first, "11");
    world.push("ada", &[create("refs/heads/t", second)], &[]).ok();
    world.push("ada", &[accept(first)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/t"], "two commits of one second and one subject");
}

#[test]
fn an_author_that_a_credential_does_not_own_ends_nothing() {
    let (world, base) = World::new();
    let commit = |text: &str| world.commit_by("Ada", "tune", Some(base), &[("src/a.rs", text)]);
    let (pushed, amended) = (commit(&one("10")), commit(&one("11")));
    world.push_by(&principal("ada", None), &[create("refs/heads/t", pushed)], &[]).ok();
    // A principal whose name is no agent's id speaks for no agent.
    let stranger = principal("", None);
    world.push_by(&stranger, &[moved("refs/heads/main", base, amended)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/t"]);
}
