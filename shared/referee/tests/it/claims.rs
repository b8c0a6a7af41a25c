//! Claims: granted, renewed, released, taken over, and who stands in the way.

use std::time::Duration;

use crate::world::{LEASE, World, ask, claim, claim_ref, create, release, source, tell};

const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_claim_is_granted_and_its_ref_is_reported_with_the_document() {
    let (world, _) = World::new();
    let answer = world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=make one faster"]);
    let oid = world.find(&claim_ref("src/a.rs#one")).unwrap();
    assert_eq!(answer.ok().rewritten(), [format!("{} none {oid}", claim_ref("src/a.rs#one"))]);
    answer.says("ada holds src/a.rs#one for 10m00s (epoch ");
    let document = world.claim_document("src/a.rs#one");
    assert_eq!(document["resource"], "src/a.rs#one");
    assert_eq!(document["agent"], "ada");
    assert_eq!(document["intent"], "make one faster");
    assert_eq!(document["lease_seconds"], 600);
    assert_eq!(document["granted_at"], "2027-01-15T08:00:00Z");
}

#[test]
fn a_repository_is_timeless_while_nothing_in_it_has_an_age() {
    let (world, main) = World::new();
    assert!(world.repository().is_timeless());
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    assert!(!world.repository().is_timeless(), "a lease runs");
    world.push("ada", &[release("src/a.rs#one")], &[]).ok();
    assert!(world.repository().is_timeless());
    let work = world.commit(Some(main), &[("src/a.rs", &source("9", "2"))]);
    world.push("ada", &[create("refs/heads/work", work)], &[]).ok();
    assert!(!world.repository().is_timeless(), "an item is open");
}

#[test]
fn a_claim_on_what_does_not_exist_yet_is_granted() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/new.rs#later")], &[]).ok();
    assert_eq!(world.claims(), ["ada src/new.rs#later"]);
}

#[test]
fn a_renewal_starts_the_lease_anew_and_moves_no_ref() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    world.advance(6 * MINUTE);
    let before = world.refs();
    let oid = before[&claim_ref("src/a.rs#one")];
    let answer = world.push("ada", &[claim("src/a.rs#one")], &[]);
    assert_eq!(answer.ok().rewritten(), [format!("{} {oid} {oid}", claim_ref("src/a.rs#one"))]);
    assert_eq!(world.refs(), before);
    world.advance(6 * MINUTE);
    world.push("bob", &[claim("src/a.rs#one")], &[]).refused("held by ada, lease left 4m00s");
}

#[test]
fn a_renewal_with_another_intent_writes_the_claim_anew_and_keeps_its_epoch() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=first"]).ok();
    let first = world.claim_document("src/a.rs#one");
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=second"]).ok();
    let second = world.claim_document("src/a.rs#one");
    assert_eq!(second["intent"], "second");
    assert_eq!(first["epoch"], second["epoch"]);
}

#[test]
fn a_released_claim_is_gone_and_free_for_others() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let oid = world.find(&claim_ref("src/a.rs#one")).unwrap();
    let answer = world.push("ada", &[release("src/a.rs#one")], &[]);
    assert_eq!(answer.ok().rewritten(), [format!("{} {oid} none", claim_ref("src/a.rs#one"))]);
    assert_eq!(world.find(&claim_ref("src/a.rs#one")), None);
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn releasing_what_nobody_holds_is_nothing_to_do() {
    let (world, _) = World::new();
    world.push("ada", &[release("src/a.rs#one")], &[]).ok().says("nothing_to_do: nobody holds");
}

#[test]
fn the_claim_of_another_agent_is_not_released() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    world.push("bob", &[release("src/a.rs#one")], &[]).refused("ada holds it, not you");
    assert_eq!(world.claims(), ["ada src/a.rs#one"]);
}

#[test]
fn a_lapsed_claim_can_be_taken_by_another_agent_and_its_old_owner_is_refused_then() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let epoch = world.claim_document("src/a.rs#one")["epoch"].as_u64().unwrap();
    world.advance(9 * MINUTE + 59 * SECOND);
    world.push("bob", &[claim("src/a.rs#one")], &[]).refused("held by ada, lease left 1s");
    world.advance(SECOND);
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok().says("taken over from ada");
    assert!(world.claim_document("src/a.rs#one")["epoch"].as_u64().unwrap() > epoch);
    world.push("ada", &[claim("src/a.rs#one")], &[]).refused("held by bob");
    world.push("ada", &[release("src/a.rs#one")], &[]).refused("bob holds it, not you");
}

#[test]
fn a_lapsed_claim_that_nobody_took_is_renewed_by_its_owner_with_its_epoch() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let epoch = world.claim_document("src/a.rs#one")["epoch"].clone();
    world.advance(LEASE);
    assert!(world.claims().is_empty());
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok().keeps_silent_about("taken over");
    assert_eq!(world.claim_document("src/a.rs#one")["epoch"], epoch);
}

#[test]
fn a_lapsed_claim_on_a_unit_does_not_keep_its_owner_from_losing_the_file() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    world.advance(LEASE);
    world.push("bob", &[claim("src/a.rs")], &[]).ok();
    world.push("ada", &[claim("src/a.rs#one")], &[]).refused("held by bob");
}

#[test]
fn claims_overlap_as_files_hold_units_and_types_hold_methods() {
    for (first, second, free) in [
        ("src/a.rs", "src/a.rs", false),
        ("src/a.rs", "src/a.rs#one", false),
        ("src/a.rs#one", "src/a.rs", false),
        ("src/a.rs#(imports)", "src/a.rs", false),
        ("src/a.rs#T", "src/a.rs#T::m", false),
        ("src/a.rs#T::m", "src/a.rs#T", false),
        ("src/a.rs#T::m", "src/a.rs#T::n", true),
        ("src/a.rs#T", "src/a.rs#Tx::m", true),
        ("src/a.rs#one", "src/a.rs#two", true),
        ("src/a.rs#", "src/a.rs#(imports)", true),
        ("src/a.rs", "src/b.rs", true),
    ] {
        let (world, _) = World::new();
        world.push("ada", &[claim(first)], &[]).ok();
        let answer = world.push("bob", &[claim(second)], &[]);
        assert_eq!(answer.reports[0].result.is_ok(), free, "{first} then {second}");
        // What is one's own never stands in the way.
        world.push("ada", &[claim(second)], &[]).reports[0]
            .result
            .as_ref()
            .map_or_else(|_| assert!(free, "{first} and {second} of one agent"), drop);
    }
}

#[test]
fn a_refused_claim_is_refused_whole_and_names_every_holder() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=make one faster"]).ok();
    world.advance(2 * MINUTE);
    world.push("bob", &[claim("src/a.rs#T::m")], &["zit.intent=drop m"]).ok();
    let before = world.refs();
    let answer = world.push("eve", &[claim("src/a.rs")], &[]);
    answer
        .refused("held by ")
        .says("ada is doing \"make one faster\" and holds src/a.rs#one, lease left 8m00s")
        .says("bob is doing \"drop m\" and holds src/a.rs#T::m, lease left 10m00s");
    assert!(!answer.offers().is_empty());
    assert_eq!(world.refs(), before, "a refused claim records nothing");
}

#[test]
fn one_push_claims_several_resources_with_one_epoch() {
    let (world, _) = World::new();
    let both = [claim("src/a.rs#one"), claim("src/a.rs#two")];
    world.push("ada", &both, &["zit.claim=src/b.rs"]).ok();
    let mut epochs = ["src/a.rs#one", "src/a.rs#two", "src/b.rs"]
        .map(|text| world.claim_document(text)["epoch"].as_u64().unwrap())
        .to_vec();
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), 1);
    assert_eq!(world.claims(), ["ada src/a.rs#one", "ada src/a.rs#two", "ada src/b.rs"]);
}

#[test]
fn the_same_claim_asked_for_twice_is_one_claim() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.claim=src/a.rs#one"]).ok();
    assert_eq!(world.claims(), ["ada src/a.rs#one"]);
}

#[test]
fn an_epoch_never_goes_back_after_release_takeover_and_restart() {
    let (mut world, _) = World::new();
    let mut last = 0;
    let mut next = |world: &World, agent: &str| {
        world.push(agent, &[claim("src/a.rs#one")], &[]).ok();
        let epoch = world.claim_document("src/a.rs#one")["epoch"].as_u64().unwrap();
        assert!(epoch > last, "{epoch} after {last}");
        last = epoch;
    };
    next(&world, "ada");
    world.push("ada", &[release("src/a.rs#one")], &[]).ok();
    next(&world, "ada");
    world.advance(LEASE);
    next(&world, "bob");
    world.push("bob", &[release("src/a.rs#one")], &[]).ok();
    world.reopen();
    next(&world, "ada");
    world.reopen();
    world.advance(LEASE);
    next(&world, "bob");
}

#[test]
fn a_restart_counts_as_a_fresh_observation() {
    let (mut world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=x"]).ok();
    world.advance(9 * MINUTE);
    world.reopen();
    world.advance(9 * MINUTE);
    world
        .push("bob", &[claim("src/a.rs#one")], &[])
        .refused("held by ada, lease left 1m00s")
        .says("ada is doing \"x\" and holds");
    world.advance(MINUTE);
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn a_push_that_writes_what_is_claimed_renews_the_claim() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.item=aaaaaaaaaaaa"]).ok();
    world.advance(9 * MINUTE);
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.item=bbbbbbbbbbbb"]).ok();
    assert_eq!(left(&world), 600);
}

#[test]
fn a_push_of_the_item_that_a_claim_is_for_renews_the_claim() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.item=aaaaaaaaaaaa"]).ok();
    world.advance(9 * MINUTE);
    let work = world.commit(Some(base), &[("elsewhere.txt", "x")]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.item=aaaaaaaaaaaa"]).ok();
    assert_eq!(left(&world), 600);
}

#[test]
fn a_push_that_touches_neither_renews_nothing() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.item=aaaaaaaaaaaa"]).ok();
    world.advance(9 * MINUTE);
    let work = world.commit(Some(base), &[("elsewhere.txt", "x")]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.item=bbbbbbbbbbbb"]).ok();
    world.push("ada", &[tell()], &[]).ok();
    assert_eq!(left(&world), 60);
}

#[test]
fn a_lapsed_claim_is_not_revived_by_a_push_that_writes_it() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    world.advance(LEASE);
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    assert!(world.claims().is_empty());
}

#[test]
fn the_lease_is_what_zit_toml_says() {
    let (world, _) = World::settled("[claims]\nlease = \"90s\"\n");
    world.push("ada", &[claim("src/a.rs")], &[]).ok().says("for 1m30s");
    world.advance(90 * SECOND);
    world.push("bob", &[claim("src/a.rs")], &[]).ok();
}

#[test]
fn a_resource_in_another_spelling_is_answered_in_its_own_form() {
    let (world, _) = World::new();
    for option in ["zit.claim=src/a.rs:T.m", "zit.claim=src/a.rs#(*T).m", "zit.claim=src/a.rs#T->m"]
    {
        world.push("ada", &[tell()], &[option]).ok();
        assert_eq!(world.claims(), ["ada src/a.rs#T::m"], "{option}");
    }
}

/// What is left of the only claim, in seconds.
fn left(world: &World) -> u64 {
    world.status()["claims"][0]["leftSeconds"].as_u64().unwrap()
}

#[test]
fn a_claim_on_what_does_not_exist_is_granted_and_says_so() {
    let (world, _) = World::new();
    let absent = |thing: &str| format!("{thing} does not exist on main yet");
    for thing in ["src/a.rs#nine", "src/new.rs", "src/new.rs#x"] {
        world.push("ada", &[claim(thing)], &[]).ok().says(&absent(thing));
    }
    for thing in ["src/b.rs", "src/a.rs#one", "src/a.rs#T", "src/a.rs#T::m", "src/b.rs#"] {
        world.push("ada", &[claim(thing)], &[]).ok().keeps_silent_about(&absent(thing));
    }
}

#[test]
fn a_method_written_with_a_dot_is_the_same_claim() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#T::m")], &[]).ok();
    world.push("bob", &[ask("refs/zit/claim/src/a.rs#T.m")], &[]).refused("held by ada");
    world.push("bob", &[tell()], &["zit.claim=src/a.rs:T.m"]).refused("held by ada");
}
