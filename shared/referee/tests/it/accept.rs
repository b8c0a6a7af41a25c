//! Accepts that land: as they are, composed, from many threads, and what closes with them.

use std::collections::BTreeSet;

use crate::world::{World, accept, change_ref, claim, claim_ref, create, moved, source, wip_ref};

#[test]
fn a_change_on_current_lands_as_it_is() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let answer = world.push("ada", &[accept(change)], &[]);
    assert_eq!(answer.ok().rewritten(), [format!("refs/zit/current {base} {change}")]);
    answer.says("landed on main").says("- git fetch origin");
    assert_eq!(world.current(), change);
    assert_eq!(world.find(&change_ref(change)), None);
    assert!(world.items().is_empty());
}

#[test]
fn both_names_of_the_request_land() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/zit/accept", change)], &[]).ok();
    assert_eq!(world.current(), change);
}

#[test]
fn a_change_beside_what_landed_is_composed_with_its_author_kept() {
    let (world, base) = World::new();
    let landed = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let change =
        world.commit_by("Grace", "Raise two", Some(base), &[("src/a.rs", &source("1", "20"))]);
    world.push("ada", &[accept(landed)], &[]).ok();
    let answer = world.push("grace", &[accept(change)], &[]);
    let current = world.current();
    assert_eq!(answer.ok().rewritten(), [format!("refs/zit/current {landed} {current}")]);
    let shown = world.git(&["show", "-s", "--format=%P|%an|%cn|%s", &current.to_string()]);
    let short = &change.to_string()[..shown.split("Land ").nth(1).unwrap().find(':').unwrap()];
    assert_eq!(shown, format!("{landed} {change}|Grace|zit|Land {short}: Raise two\n"));
    let text = world.git(&["show", &format!("{current}:src/a.rs")]);
    assert_eq!(text, source("10", "20"));
    assert_eq!(world.find(&change_ref(change)), None);
}

#[test]
fn a_change_that_has_landed_is_accepted_already() {
    let (world, base) = World::new();
    let one = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let two = world.commit(Some(base), &[("src/b.rs", "fn x() {}\n")]);
    world.push("ada", &[accept(one)], &[]).ok();
    world.push("ada", &[accept(two)], &[]).ok();
    let before = world.refs();
    for change in [base, one, two] {
        world.push("bob", &[accept(change)], &[]).ok().says("has landed before");
        assert_eq!(world.find("refs/zit/current"), Some(before["refs/zit/current"]));
        assert_eq!(world.find(&change_ref(change)), None);
    }
}

#[test]
fn a_recorded_change_is_landed_by_a_later_accept() {
    let (mut world, base) = World::new();
    let change = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create(&change_ref(change), change)], &[]).ok();
    world.reopen();
    world.push("bob", &[accept(change)], &[]).ok();
    assert_eq!(world.current(), change);
    assert_eq!(world.find(&change_ref(change)), None);
}

#[test]
fn a_change_lands_with_the_changes_below_it() {
    let (world, base) = World::new();
    let below = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let above = world.commit(Some(below), &[("src/b.rs", "fn x() {}\n")]);
    world.push("ada", &[create(&change_ref(below), below)], &[]).ok();
    world.push("ada", &[accept(above)], &[]).ok();
    assert_eq!(world.current(), above);
    assert_eq!(world.find(&change_ref(below)), None, "it has landed");
    assert!(world.items().is_empty());
}

#[test]
fn landing_closes_the_item_and_drops_its_claims_only() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let item = ["zit.item=aaaaaaaaaaaa"];
    world.push("ada", &[create("refs/heads/t", change), claim("src/a.rs#one")], &item).ok();
    world.push("ada", &[claim("src/b.rs")], &["zit.item=bbbbbbbbbbbb"]).ok();
    world.push("bob", &[claim("notes.txt")], &item).ok();
    world.push("ada", &[accept(change)], &[]).ok();
    assert!(world.items().is_empty());
    assert_eq!(world.claims(), ["bob notes.txt", "ada src/b.rs"]);
    assert_eq!(world.find(&claim_ref("src/a.rs#one")), None);
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn landing_leaves_other_work_open() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let other = world.commit(Some(base), &[("src/b.rs", "fn x() {}\n")]);
    let more = world.commit(Some(change), &[("notes.txt", "x\n")]);
    let refs = [create("refs/heads/other", other), create(&wip_ref("ada", "aaaaaaaaaaaa"), more)];
    world.push("ada", &refs, &[]).ok();
    world.push("ada", &[accept(change)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/other".to_owned(), wip_ref("ada", "aaaaaaaaaaaa")]);
}

#[test]
fn a_change_that_touches_nothing_of_what_landed_lands_whatever_its_base() {
    let (world, base) = World::new();
    let mut last = base;
    for n in 0..5 {
        let file = format!("f{n}.txt");
        last = world.commit(Some(last), &[(&file, "x\n")]);
    }
    world.push("ada", &[moved("refs/heads/main", base, last)], &[]).ok();
    let change = world.commit(Some(base), &[("src/b.rs", "fn x() {}\n")]);
    world.push("bob", &[accept(change)], &[]).ok();
    let files = world.git(&["ls-tree", "-r", "--name-only", "refs/heads/main"]);
    assert!(files.contains("f4.txt"), "{files}");
}

#[test]
fn accepts_from_many_threads_at_once_all_land_exactly_once() {
    const AGENTS: usize = 12;
    let (world, base) = World::new();
    let changes: Vec<_> =
        (0..AGENTS).map(|n| world.commit(Some(base), &[(&*format!("f{n}.txt"), "x\n")])).collect();
    std::thread::scope(|scope| {
        for (n, change) in changes.iter().enumerate() {
            let world = &world;
            // Two agents ask for each change: it lands once all the same.
            for side in ["a", "b"] {
                scope.spawn(move || {
                    world.push(&format!("agent-{side}{n}"), &[accept(*change)], &[]).ok();
                });
            }
        }
    });
    let current = world.current().to_string();
    let line = world.git(&["rev-list", "--first-parent", &current, &format!("^{base}")]);
    assert_eq!(line.lines().count(), AGENTS, "one step of current for each change");
    let reached: BTreeSet<String> =
        world.git(&["rev-list", &current]).lines().map(str::to_owned).collect();
    for change in &changes {
        assert!(reached.contains(&change.to_string()), "{change} is lost");
        assert_eq!(world.find(&change_ref(*change)), None);
    }
    assert!(world.items().is_empty());
}

#[test]
fn claims_and_accepts_from_many_threads_have_one_winner_for_each_resource() {
    const AGENTS: usize = 12;
    let (world, _) = World::new();
    let won: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..AGENTS)
            .map(|n| {
                let world = &world;
                let resource = if n % 2 == 0 { "src/a.rs" } else { "src/a.rs#one" };
                scope.spawn(move || {
                    let answer = world.push(&format!("agent-{n}"), &[claim(resource)], &[]);
                    if answer.reports[0].result.is_err() {
                        answer.refused("held by agent-");
                    }
                    usize::from(answer.reports[0].result.is_ok())
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
    assert_eq!(world.claims().len(), 1);
}

#[test]
fn a_rebuilt_change_takes_its_refused_form_and_its_claims_with_it_when_it_lands() {
    let (world, base) = World::new();
    let first = world.commit_by("Linus", "first", Some(base), &[("src/a.rs", &source("10", "2"))]);
    let refused = world.commit_by("Ada", "mine", Some(base), &[("src/a.rs", &source("11", "2"))]);
    let subject = world.commit_by("Ada", "other", Some(base), &[("src/a.rs", &source("1", "7"))]);
    let elsewhere = world.commit_by("Ada", "mine", Some(base), &[("src/b.rs", "fn x() {}\n")]);
    world.push("linus", &[accept(first)], &[]).ok();
    world.push("ada", &[accept(refused)], &[]).refused("stale");
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let others = [subject, elsewhere].map(|oid| create(&change_ref(oid), oid));
    world.push("ada", &others, &[]).ok();
    let rebuilt = world.commit_by("Ada", "mine", Some(first), &[("src/a.rs", &source("12", "2"))]);
    world.push("ada", &[accept(rebuilt)], &[]).ok().says("the claim on src/a.rs#one ended");
    assert_eq!(world.find(&change_ref(refused)), None);
    let left: BTreeSet<String> = world.items().into_iter().collect();
    let expected = [subject, elsewhere].map(change_ref);
    assert_eq!(left, expected.into(), "another subject, or other writes, are another change");
}
