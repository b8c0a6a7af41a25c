//! Accepts that do not land: stale, in conflict, fenced; and what they leave behind.

use std::time::Duration;

use zit_model::Oid;

use crate::world::{LEASE, World, accept, change_ref, claim, create, source};

/// Lands `landed` and asks for `change`, both on one base; the refusal's answer.
#[track_caller]
fn refused(landed: &[(&str, &str)], change: (&str, &[(&str, &str)]), reason: &str) -> String {
    let (world, base) = World::new();
    let first = world.commit_by("Linus", "first", Some(base), landed);
    let (message, files) = change;
    let second = world.commit_by("Grace", message, Some(base), files);
    world.push("linus", &[accept(first)], &[]).ok();
    let answer = world.push("grace", &[accept(second)], &[]);
    answer.refused(reason);
    left_as_recorded(&world, first, second);
    answer.text
}

/// A refused accept moves nothing and keeps its change as the pusher's open item.
#[track_caller]
fn left_as_recorded(world: &World, current: Oid, change: Oid) {
    assert_eq!(world.current(), current);
    assert_eq!(world.find(&change_ref(change)), Some(change));
    assert_eq!(world.items(), [change_ref(change)]);
}

#[test]
fn a_change_of_what_landed_is_stale_and_names_who_wrote_it() {
    let text = refused(
        &[("src/a.rs", &source("10", "2"))],
        ("x", &[("src/a.rs", &source("11", "2"))]),
        "stale: src/a.rs#one was written by \"Linus\" (",
    );
    assert!(text.contains("both write src/a.rs#one, landed by \"Linus\" in "), "{text}");
    assert!(
        text.contains(
            "git fetch origin && git rebase origin/main && git push origin HEAD:refs/for/main"
        ),
        "{text}"
    );
}

#[test]
fn a_change_that_relies_on_an_interface_that_changed_is_stale() {
    let wider = source("1", "2").replace("one() -> u32", "one() -> u64");
    let text = refused(
        &[("src/a.rs", &wider)],
        ("x", &[("src/b.rs", "use crate::a::one;\n\npub fn three() -> u32 {\n    one()\n}\n")]),
        "stale: src/a.rs#one was written by \"Linus\"",
    );
    assert!(text.contains("your src/b.rs#three relies on src/a.rs#one, which changed"), "{text}");
}

#[test]
fn a_change_of_an_interface_that_what_landed_relies_on_is_stale() {
    let wider = source("1", "2").replace("one() -> u32", "one() -> u64");
    let text = refused(
        &[("src/b.rs", "use crate::a::one;\n\npub fn three() -> u32 {\n    one()\n}\n")],
        ("x", &[("src/a.rs", &wider)]),
        "stale: src/b.rs#three was written by \"Linus\"",
    );
    assert!(text.contains("src/b.rs#three relies on src/a.rs#one, which you change"), "{text}");
}

#[test]
fn by_names_alone_a_mention_of_what_is_declared_differently_is_stale() {
    let wider = source("1", "2").replace("one() -> u32", "one() -> u64");
    let other = "use crate::q::one;\n\npub fn three() -> u32 {\n    one()\n}\n";
    for (settings, lands) in [("", true), ("[accept]\njudge = 'names'\n", false)] {
        let (world, base) = World::settled(settings);
        let landed = world.commit(Some(base), &[("src/a.rs", &wider)]);
        let change = world.commit(Some(base), &[("src/b.rs", other)]);
        world.push("ada", &[accept(landed)], &[]).ok();
        let answer = world.push("bob", &[accept(change)], &[]);
        if lands {
            answer.ok();
        } else {
            answer.refused("stale: src/a.rs#one was written by");
            left_as_recorded(&world, landed, change);
        }
    }
}

#[test]
fn a_declared_read_of_what_landed_is_stale() {
    refused(
        &[("src/a.rs", &source("10", "2"))],
        ("Use one\n\nZit-Read: src/a.rs#one\n", &[("src/b.rs", "fn x() {}\n")]),
        "stale: src/a.rs#one was written by \"Linus\"",
    );
}

#[test]
fn a_body_that_changed_behind_its_interface_makes_nobody_stale() {
    let (world, base) = World::new();
    let landed = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let caller = "use crate::a::one;\n\npub fn three() -> u32 {\n    one()\n}\n";
    let change = world.commit(Some(base), &[("src/b.rs", caller)]);
    world.push("ada", &[accept(landed)], &[]).ok();
    world.push("bob", &[accept(change)], &[]).ok();
}

#[test]
fn prose_that_does_not_merge_is_a_conflict() {
    refused(
        &[("README.md", "# Title\n\nmine\n")],
        ("x", &[("README.md", "# Title\n\ntheirs\n")]),
        "conflicts with what landed in README.md; rebase, then land again",
    );
}

#[test]
fn a_composition_that_no_longer_parses_is_a_conflict() {
    let base_text = |top: &str, note: &str, two: &str| {
        format!(
            "{top}function one() {{\n  const a = 1;\n  const b = 2;\n  return a + b;\n}}\n\n\
             {note}\n\nfunction two() {{\n  return {two};\n}}\n"
        )
    };
    let (world, start) = World::new();
    let base = world.commit(Some(start), &[("src/c.js", &base_text("", "/* note */", "2"))]);
    world.push("ada", &[accept(base)], &[]).ok();
    // One change drops the end of a comment, the other opens one that reaches up to it.
    let landed = world.commit(Some(base), &[("src/c.js", &base_text("", "// note", "3"))]);
    let change = world.commit(Some(base), &[("src/c.js", &base_text("/*\n", "/* note */", "2"))]);
    world.push("ada", &[accept(landed)], &[]).ok();
    world.push("bob", &[accept(change)], &[]).refused("conflicts with what landed in src/c.js");
    left_as_recorded(&world, landed, change);
}

#[test]
fn a_landing_over_a_live_claim_of_another_is_refused_until_it_lapses() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=tune"]).ok();
    world.advance(Duration::from_mins(4));
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let answer = world.push("bob", &[accept(change)], &[]);
    answer
        .refused("claimed by ada, lease left 6m00s; land again then: it writes src/a.rs#one")
        .says("ada is doing \"tune\" and holds src/a.rs#one");
    let [status, land, ask, drop] = &answer.offers()[..] else { panic!("{}", answer.text) };
    assert_eq!(status, "git push -o zit.status origin origin/main:refs/zit/tell");
    assert_eq!(*land, format!("git push origin {change}:refs/for/main"));
    assert_eq!(ask, "git push origin origin/main:refs/zit/claim/src/a.rs#one");
    assert_eq!(*drop, format!("git push origin :{}", change_ref(change)));
    left_as_recorded(&world, base, change);
    world.advance(LEASE);
    world.push("bob", &[accept(change)], &[]).ok();
    assert_eq!(world.current(), change);
}

#[test]
fn an_agent_whose_claim_was_taken_over_cannot_land_on_it_by_pushing_late() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.advance(LEASE);
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    world.push("ada", &[accept(change)], &[]).refused("claimed by bob");
    left_as_recorded(&world, base, change);
}

#[test]
fn ones_own_claim_stops_no_landing() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs")], &[]).ok();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[accept(change)], &[]).ok();
}

#[test]
fn a_claim_only_advises_where_zit_toml_says_so() {
    let (world, base) = World::settled("[claims]\nbind = \"advise\"\n");
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("bob", &[accept(change)], &[]).ok().says("warning: ada holds src/a.rs#one");
    assert_eq!(world.current(), change);
}

#[test]
fn a_refused_change_lands_once_it_is_rebuilt() {
    let (world, base) = World::new();
    let landed = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let stale = world.commit(Some(base), &[("src/a.rs", &source("11", "2"))]);
    world.push("ada", &[accept(landed)], &[]).ok();
    world.push("bob", &[accept(stale)], &[]).refused("stale");
    assert_eq!(world.find(&change_ref(stale)), Some(stale), "a rejection deletes nothing");
    let rebuilt = world.commit(Some(landed), &[("src/a.rs", &source("11", "2"))]);
    world.push("bob", &[accept(rebuilt)], &[]).ok();
    assert_eq!(world.current(), rebuilt);
}

#[test]
fn an_accept_lands_on_its_own() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let both = [accept(change), create("refs/heads/t", change)];
    world.push_atomic("ada", &both, &[]).refused("an accept lands on its own");
    assert_eq!(world.current(), base);
    assert_eq!(world.find(&change_ref(change)), None);
    world.push("ada", &both, &[]).ok();
    assert_eq!(world.current(), change);
    assert!(world.items().is_empty());
}

#[test]
fn an_accept_without_a_commit_or_for_another_branch_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[("refs/for/main".into(), None, None)], &[]).refused("needs a commit");
    world.push("ada", &[create("refs/for/other", base)], &[]).refused("changes land on main");
    let empty = World::empty();
    let base = empty.commit(None, &[("a", "x")]);
    empty.push("ada", &[accept(base)], &[]).refused("nothing has landed yet");
}
