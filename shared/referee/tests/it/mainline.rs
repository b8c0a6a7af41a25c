//! Mainline and current: they move together, forward, and from the value that was judged.

use std::time::Duration;

use crate::world::{World, accept, change_ref, claim, create, delete, moved, source};

#[test]
fn the_first_push_into_an_empty_repository_makes_mainline_and_current() {
    let world = World::empty();
    let base = world.commit(None, &[("a.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/main", base)], &[]).ok();
    assert_eq!(world.current(), base);
    assert!(world.items().is_empty());
}

#[test]
fn the_first_branch_pushed_becomes_the_mainline_and_head_follows() {
    let world = World::empty();
    let base = world.commit(None, &[("a.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/trunk", base)], &[]).ok();
    assert_eq!(world.find("refs/zit/current"), Some(base));
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/trunk\n");
    let next = world.commit(Some(base), &[("a.txt", "y\n")]);
    world.push("ada", &[create("refs/for/trunk", next)], &[]).ok();
    assert_eq!(world.find("refs/heads/trunk"), Some(next));
}

#[test]
fn of_several_first_branches_heads_own_becomes_the_mainline() {
    let world = World::empty();
    let base = world.commit(None, &[("a.txt", "x\n")]);
    let other = world.commit(Some(base), &[("a.txt", "y\n")]);
    let both = [create("refs/heads/a", other), create("refs/heads/main", base)];
    world.push("ada", &both, &[]).ok();
    assert_eq!(world.current(), base);
    assert_eq!(world.find("refs/heads/a"), Some(other));
    assert!(world.items().is_empty(), "what came with the first push is no open work");
}

#[test]
fn a_first_push_that_is_refused_leaves_head_as_it_was() {
    let world = World::empty();
    let base = world.commit(None, &[("a.txt", "x\n")]);
    let tree = world.git(&["rev-parse", &format!("{base}^{{tree}}")]).trim().parse().unwrap();
    world.push("ada", &[create("refs/heads/trunk", tree)], &[]).refused("is not a commit");
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    world.push("ada", &[create("refs/heads/trunk", base)], &["zit.dry-run"]).ok();
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert!(world.refs().is_empty());
}

#[test]
fn a_forward_push_moves_mainline_and_current() {
    let (world, base) = World::new();
    let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[moved("refs/heads/main", base, next)], &[]).ok();
    assert_eq!(world.current(), next);
}

#[test]
fn a_push_that_loses_commits_is_refused_and_shown_the_way_to_land() {
    let (world, base) = World::new();
    let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let rival = world.commit(Some(base), &[("notes.txt", "y\n")]);
    world.push("ada", &[moved("refs/heads/main", base, next)], &[]).ok();
    for sent in [
        moved("refs/heads/main", next, rival),
        moved("refs/heads/main", next, base),
        moved("refs/heads/main", base, rival),
        create("refs/heads/main", rival),
    ] {
        let answer = world.push("bob", std::slice::from_ref(&sent), &[]);
        answer.refused("moves only forward").says("- git push origin HEAD:refs/for/main");
        assert_eq!(world.current(), next, "{sent:?}");
    }
}

#[test]
fn a_forward_push_from_a_stale_value_is_refused() {
    let (world, base) = World::new();
    let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let last = world.commit(Some(next), &[("notes.txt", "y\n")]);
    world.push("ada", &[moved("refs/heads/main", base, next)], &[]).ok();
    world.push("ada", &[moved("refs/heads/main", base, last)], &[]).refused("moves only forward");
    assert_eq!(world.current(), next);
}

#[test]
fn the_mainline_is_never_deleted() {
    let (world, base) = World::new();
    world.push("ada", &[delete("refs/heads/main", base)], &[]).refused("is never deleted");
    assert_eq!(world.current(), base);
}

#[test]
fn pushing_what_is_current_is_nothing_to_do() {
    let (world, base) = World::new();
    world.push("ada", &[create("refs/heads/main", base)], &[]).ok().says("nothing_to_do");
}

#[test]
fn a_forward_push_over_a_live_claim_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let next = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let forward = [moved("refs/heads/main", base, next)];
    let answer = world.push("bob", &forward, &[]);
    answer.refused("claimed by ada, lease left 10m00s; land again then");
    let offers = answer.offers();
    assert!(offers.contains(&format!("git push origin {next}:refs/for/main")), "{}", answer.text);
    assert_eq!(offers.len(), 3, "nothing is recorded that could be dropped: {}", answer.text);
    assert_eq!(world.current(), base);
    world.push("ada", &forward, &[]).ok();
    assert_eq!(world.current(), next);
}

#[test]
fn a_forward_push_closes_the_items_it_contains_with_their_claims_and_changes() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let item = ["zit.item=aaaaaaaaaaaa"];
    world.push("ada", &[create("refs/heads/t", work), claim("src/a.rs#one")], &item).ok();
    world.push("ada", &[create(&change_ref(work), work)], &item).ok();
    assert_eq!(world.items().len(), 2);
    world.push("ada", &[moved("refs/heads/main", base, work)], &[]).ok();
    assert!(world.items().is_empty());
    assert!(world.claims().is_empty());
    assert_eq!(world.find(&change_ref(work)), None, "a landed change is no longer recorded");
    assert_eq!(world.find("refs/heads/t"), Some(work));
}

#[test]
fn a_branch_pushed_together_with_the_mainline_that_contains_it_is_no_open_work() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let orders = [
        [moved("refs/heads/main", base, work), create("refs/heads/t", work)],
        [create("refs/heads/u", work), create("refs/heads/v", work)],
    ];
    world.push("ada", &orders[0], &[]).ok().keeps_silent_about("open work");
    world.push("ada", &orders[1], &[]).ok();
    assert!(world.items().is_empty());
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn releasing_a_claim_while_landing_what_it_was_for_does_both() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let item = ["zit.item=aaaaaaaaaaaa"];
    world.push("ada", &[create("refs/heads/t", work), claim("src/a.rs#one")], &item).ok();
    let forward = [moved("refs/heads/main", base, work)];
    let answer = world.push("ada", &forward, &["zit.release=src/a.rs#one"]);
    answer.ok().says("src/a.rs#one is released").keeps_silent_about("refused");
    assert!(world.claims().is_empty());
    assert_eq!(world.current(), work);
}

#[test]
fn renewing_a_claim_while_landing_what_it_was_for_lands_and_keeps_nothing_double() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let item = ["zit.item=aaaaaaaaaaaa"];
    world.push("ada", &[create("refs/heads/t", work), claim("src/a.rs#one")], &item).ok();
    let forward = [moved("refs/heads/main", base, work)];
    let options = ["zit.claim=src/a.rs#one", "zit.intent=another"];
    world.push("ada", &forward, &options).ok().keeps_silent_about("refused");
    assert_eq!(world.current(), work);
    let live = world.claims().len();
    assert_eq!(live, usize::from(world.find(&crate::world::claim_ref("src/a.rs#one")).is_some()));
}

#[test]
fn the_configured_mainline_is_the_mainline() {
    let (mut world, base) = World::new();
    let branch = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/release", branch)], &[]).ok();
    world.closed(|world| {
        world.git(&["config", "zit.mainline", "refs/heads/release"]);
        world.git(&["update-ref", "-d", "refs/zit/current"]);
    });
    assert_eq!(world.find("refs/zit/current"), Some(branch));
    let next = world.commit(Some(branch), &[("notes.txt", "y\n")]);
    world.push("ada", &[create("refs/for/release", next)], &[]).ok();
    assert_eq!(world.find("refs/heads/release"), Some(next));
    assert_eq!(world.find("refs/heads/main"), Some(base));
    world.push("ada", &[accept(next)], &[]).refused("changes land on release");
}

#[test]
fn a_repository_that_stood_before_gets_current_from_its_mainline() {
    let mut world = World::empty();
    let base = world.commit(None, &[("a.txt", "x\n")]);
    let other = world.commit(Some(base), &[("a.txt", "y\n")]);
    world.closed(|world| {
        world.git(&["update-ref", "refs/heads/main", &base.to_string()]);
        world.git(&["update-ref", "refs/heads/t", &other.to_string()]);
    });
    assert_eq!(world.current(), base);
    assert!(world.items().is_empty(), "branches that stood before open no item");
}

#[test]
fn current_follows_when_stock_git_moves_mainline_forward() {
    let (world, base) = World::new();
    let next =
        world.commit(Some(base), &[("notes.txt", "x\n"), ("zit.toml", "[claims]\nlease='60s'\n")]);
    world.git(&["update-ref", "refs/heads/main", &next.to_string()]);
    world.push("ada", &[claim("src/a.rs")], &[]).ok().says("for 1m00s");
    assert_eq!(world.current(), next);
}

#[test]
fn work_that_stock_git_landed_is_no_longer_open() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let commands = [create("refs/heads/t", work), claim("src/a.rs#one")];
    world.push("ada", &commands, &["zit.item=aaaaaaaaaaaa"]).ok();
    world.git(&["update-ref", "refs/heads/main", &work.to_string()]);
    assert!(world.items().is_empty());
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
    assert_eq!(world.current(), work);
}

#[test]
fn where_stock_git_moved_mainline_away_accepts_wait_for_the_command_that_repairs_it() {
    for away in ["rival", "deleted"] {
        let (world, base) = World::new();
        let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
        world.push("ada", &[moved("refs/heads/main", base, next)], &[]).ok();
        if away == "rival" {
            world.git(&["update-ref", "refs/heads/main", &base.to_string()]);
        } else {
            world.git(&["update-ref", "-d", "refs/heads/main"]);
        }
        let change = world.commit(Some(next), &[("src/a.rs", &source("10", "2"))]);
        let answer = world.push("bob", &[accept(change)], &[]);
        answer.refused("main was moved by other means");
        world.push("bob", &[moved("refs/heads/main", next, change)], &[]).refused("moved by other");
        assert_eq!(world.find("refs/zit/current"), Some(next));
        let repair = format!("git update-ref refs/heads/main {next}");
        assert_eq!(answer.offers(), [repair.as_str()], "{away}");
        world.git(&repair.split(' ').skip(1).collect::<Vec<_>>());
        world.push("bob", &[accept(change)], &[]).ok();
        assert_eq!(world.current(), change);
    }
}

#[test]
fn claims_and_branches_go_on_while_mainline_is_elsewhere() {
    let (world, base) = World::new();
    let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[moved("refs/heads/main", base, next)], &[]).ok();
    world.git(&["update-ref", "refs/heads/main", &base.to_string()]);
    world.push("ada", &[claim("src/a.rs"), create("refs/heads/t", next)], &[]).ok();
    world.advance(Duration::from_secs(1));
    world.push("ada", &[claim("src/a.rs")], &[]).ok();
}

#[test]
fn a_branch_that_is_checked_out_on_the_server_is_not_moved_under_its_work_tree() {
    let (mut world, base) = World::new();
    let next = world.commit(Some(base), &[("src/b.rs", "fn x() {}\n")]);
    world.closed(|world| {
        world.git(&["config", "core.bare", "false"]);
    });
    let answer = world.push("ada", &[moved("refs/heads/main", base, next)], &[]);
    answer.refused("refs/heads/main is checked out in a work tree on the server");
    world.push("ada", &[accept(next)], &[]).refused("is checked out");
    world.push("ada", &[create("refs/heads/topic", next)], &[]).ok();
    assert_eq!(world.current(), base);
}
