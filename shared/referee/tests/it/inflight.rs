//! Work that has not landed, as something that holds what it writes.

use std::time::Duration;

use crate::world::{World, claim, create, delete, moved, source, wip_ref};

const HOUR: Duration = Duration::from_hours(1);

#[test]
fn unlanded_work_holds_what_it_writes_and_nothing_else() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.intent=tune"]).ok();
    world.advance(HOUR);
    world
        .push("bob", &[claim("src/a.rs#one")], &[])
        .refused("being written by ada, not landed yet; see refs/heads/t: src/a.rs#one")
        .says("ada is doing \"tune\" and is writing src/a.rs#one on refs/heads/t, pushed 1h00m ago")
        .says("git fetch origin refs/heads/t");
    world.push("bob", &[claim("src/a.rs")], &[]).refused("being written by ada");
    world.push("bob", &[claim("src/a.rs#two")], &[]).ok();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn a_branch_a_wip_and_a_change_all_hold() {
    for name in ["refs/heads/t", "wip", "change"] {
        let (world, base) = World::new();
        let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
        let name = match name {
            "wip" => wip_ref("ada", "aaaaaaaaaaaa"),
            "change" => format!("refs/zit/changes/{work}"),
            other => other.to_owned(),
        };
        world.push("ada", &[create(&name, work)], &[]).ok();
        world
            .push("bob", &[claim("src/a.rs#one")], &[])
            .refused("being written by ada")
            .says(&format!("is writing src/a.rs#one on {name}"));
        world.push("ada", &[delete(&name, work)], &[]).ok();
        world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    }
}

#[test]
fn work_that_was_taken_back_holds_nothing_any_more() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let other = world.commit(Some(base), &[("src/a.rs", &source("1", "20"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.push("ada", &[moved("refs/heads/t", work, other)], &[]).ok();
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    world.push("bob", &[claim("src/a.rs#two")], &[]).refused("being written by ada");
}

#[test]
fn a_claim_and_work_in_its_way_are_both_named() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.push("bob", &[claim("src/a.rs#two")], &[]).ok();
    world
        .push("eve", &[claim("src/a.rs")], &[])
        .refused("held by bob")
        .says("bob holds src/a.rs#two, lease left 10m00s")
        .says("ada is writing src/a.rs#one on refs/heads/t");
}

#[test]
fn work_may_only_advise_where_zit_toml_says_so() {
    let (world, base) = World::settled("[claims]\ninflight = \"advise\"\n");
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    world.push("eve", &[claim("src/a.rs#one")], &[]).refused("held by bob");
}

#[test]
fn work_older_than_its_time_holds_nothing() {
    let (world, base) = World::settled("[claims]\ninflight_ttl = \"2h\"\n");
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.advance(2 * HOUR);
    world.push("bob", &[claim("src/a.rs#one")], &[]).refused("being written by ada");
    world.advance(Duration::from_secs(1));
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn a_push_of_the_same_work_makes_it_young_again() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let more = world.commit(Some(work), &[("src/a.rs", &source("11", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.advance(23 * HOUR);
    world.push("ada", &[moved("refs/heads/t", work, more)], &[]).ok();
    world.advance(23 * HOUR);
    world
        .push("bob", &[claim("src/a.rs#one")], &[])
        .refused("being written by ada")
        .says("23h00m ago");
}

#[test]
fn the_pusher_is_told_whose_work_meets_its_own() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.intent=tune"]).ok();
    let other = world.commit(Some(base), &[("src/a.rs", &source("11", "2"))]);
    let answer = world.push("bob", &[create("refs/heads/u", other)], &[]);
    answer.ok().says("new notes:").says("ada");
    let apart = world.commit(Some(base), &[("notes.txt", "other\n")]);
    world.push("bob", &[create("refs/heads/v", apart)], &[]).ok().keeps_silent_about("new notes:");
}

#[test]
fn the_pusher_is_warned_that_landing_waits_for_a_claim() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world
        .push("bob", &[create("refs/heads/t", work)], &[])
        .ok()
        .says("warning: ada holds src/a.rs#one, lease left 10m00s; landing waits for it");
}
