//! Refs that are stored as pushed: changes, wip, tags, other names, and those that only the referee writes.

use crate::world::{World, change_ref, create, delete, moved, source, wip_ref};

const ITEM: &str = "aaaaaaaaaaaa";

#[test]
fn a_change_is_created_once_under_its_own_name() {
    let (world, base) = World::new();
    let change = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let other = world.commit(Some(base), &[("notes.txt", "y\n")]);
    let name = change_ref(change);
    world.push("ada", &[create(&name, other)], &[]).refused("named by its commit");
    assert_eq!(world.find(&name), None);
    world.push("ada", &[create(&name, change)], &[]).ok();
    assert_eq!(world.find(&name), Some(change));
    world.push("bob", &[create(&name, change)], &[]).ok().says("nothing_to_do");
    world.push("ada", &[moved(&name, change, other)], &[]).refused("named by its commit");
    assert_eq!(world.items(), [name]);
}

#[test]
fn a_change_is_discarded_by_its_author_only() {
    let (mut world, base) = World::new();
    let change = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let name = change_ref(change);
    world.push("ada", &[create(&name, change)], &[]).ok();
    world.push("bob", &[delete(&name, change)], &[]).refused("it belongs to agent ada");
    world.reopen();
    world.push("bob", &[(name.clone(), None, None)], &[]).refused("it belongs to agent ada");
    assert_eq!(world.find(&name), Some(change));
    world.push("ada", &[(name.clone(), None, None)], &[]).ok();
    assert_eq!(world.find(&name), None);
    assert!(world.items().is_empty());
    world.push("ada", &[(name, None, None)], &[]).ok().says("nothing_to_do");
}

#[test]
fn a_change_that_is_no_commit_is_refused() {
    let (world, base) = World::new();
    let tree = world.git(&["rev-parse", &format!("{base}^{{tree}}")]).trim().parse().unwrap();
    world.push("ada", &[create(&change_ref(tree), tree)], &[]).refused("is not a commit");
    world.push("ada", &[create("refs/zit/accept", tree)], &[]).refused("is not a commit");
    let name = wip_ref("ada", ITEM);
    world.push("ada", &[create(&name, tree)], &[]).refused("is not a commit");
}

#[test]
fn a_wip_moves_anywhere_and_an_old_value_of_zero_is_unconditional() {
    let (world, base) = World::new();
    let one = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let two = world.commit(Some(base), &[("src/a.rs", &source("1", "20"))]);
    let name = wip_ref("ada", ITEM);
    world.push("ada", &[create(&name, one)], &[]).ok();
    world.push("ada", &[moved(&name, one, two)], &[]).ok();
    let answer = world.push("ada", &[create(&name, one)], &[]);
    assert_eq!(answer.ok().rewritten(), [format!("- {two} {one}")]);
    world.push("ada", &[moved(&name, two, one)], &[]).refused("");
    assert_eq!(world.find(&name), Some(one));
    world.push("ada", &[(name.clone(), None, None)], &[]).ok();
    assert_eq!(world.find(&name), None);
}

#[test]
fn a_wip_of_another_agent_is_refused() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let name = wip_ref("ada", ITEM);
    world.push("ada", &[create(&name, work)], &[]).ok();
    world.push("bob", &[delete(&name, work)], &[]).refused("it belongs to agent ada");
    world.push("bob", &[create(&wip_ref("eve", ITEM), work)], &[]).refused("belongs to agent eve");
    assert_eq!(world.find(&name), Some(work));
}

#[test]
fn a_wip_that_has_landed_opens_nothing() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let name = wip_ref("ada", ITEM);
    world.push("ada", &[create(&name, base)], &[]).ok();
    assert!(world.items().is_empty());
    world.push("ada", &[create(&name, work)], &[]).ok();
    assert_eq!(world.items(), std::slice::from_ref(&name));
    world.push("ada", &[create(&name, base)], &[]).ok();
    assert!(world.items().is_empty());
}

#[test]
fn a_tag_is_created_once() {
    let (world, base) = World::new();
    let other = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("", &[create("refs/tags/v1", base)], &[]).ok();
    for sent in [
        create("refs/tags/v1", other),
        moved("refs/tags/v1", base, other),
        delete("refs/tags/v1", base),
        ("refs/tags/v1".to_owned(), None, None),
    ] {
        let answer = world.push("ada", std::slice::from_ref(&sent), &[]);
        assert!(answer.reports[0].result.is_err(), "{sent:?}");
        assert_eq!(world.find("refs/tags/v1"), Some(base), "{sent:?}");
    }
}

#[test]
fn tags_move_where_zit_toml_lets_them() {
    let (world, base) = World::settled("[refs]\ntags = \"move\"\n");
    let other = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("", &[create("refs/tags/v1", base)], &[]).ok();
    world.push("", &[moved("refs/tags/v1", base, other)], &[]).ok();
    assert_eq!(world.find("refs/tags/v1"), Some(other));
    world.push("", &[delete("refs/tags/v1", other)], &[]).ok();
    assert_eq!(world.find("refs/tags/v1"), None);
}

#[test]
fn a_tag_may_name_any_object_and_a_branch_only_a_commit() {
    let (world, base) = World::new();
    let tree = world.git(&["rev-parse", &format!("{base}^{{tree}}")]).trim().parse().unwrap();
    world.push("", &[create("refs/tags/tree", tree)], &[]).ok();
    world.push("", &[create("refs/notes/x", tree)], &[]).ok();
    world.push("ada", &[create("refs/heads/tree", tree)], &[]).refused("");
    assert_eq!(world.find("refs/heads/tree"), None);
    world.push("ada", &[moved("refs/heads/main", base, tree)], &[]).refused("is not a commit");
}

#[test]
fn what_only_the_referee_writes_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[crate::world::tell()], &[]).ok();
    let before = world.refs();
    let next = world.commit(Some(base), &[("notes.txt", "x\n")]);
    for sent in [
        moved("refs/zit/current", base, next),
        delete("refs/zit/current", base),
        create("refs/zit/agents/ada/state", next),
        delete("refs/zit/agents/ada/state", before["refs/zit/agents/ada/state"]),
    ] {
        world.push("ada", std::slice::from_ref(&sent), &[]).refused("only the referee writes it");
        assert_eq!(world.refs(), before, "{sent:?}");
    }
}

#[test]
fn an_unknown_name_below_refs_zit_is_refused_with_the_known_ones() {
    let (world, base) = World::new();
    for name in [
        "refs/zit/nonsense",
        "refs/zit/claim",
        "refs/zit/wip/ada",
        "refs/zit/wip/Ada/aaaaaaaaaaaa",
        "refs/zit/changes/1234",
        "refs/zit/tell/more",
        "refs/zit/current/x",
        "refs/zit/dry-run",
    ] {
        let answer = world.push("ada", &[create(name, base)], &[]);
        answer.refused("no such ref below refs/zit/").says("- refs/zit/wip/<agent>/<item>");
        assert_eq!(world.find(name), None, "{name}");
    }
}

#[test]
fn the_missing_parts_of_a_push_refuse_its_ref() {
    let (world, base) = World::new();
    let absent = "1".repeat(40).parse().unwrap();
    let commit = format!(
        "tree {absent}\nparent {base}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n"
    );
    let file = world.path.join("commit");
    std::fs::write(&file, commit).unwrap();
    let words = ["hash-object", "-t", "commit", "--literally", "-w", file.to_str().unwrap()];
    let broken = world.git(&words).trim().parse().unwrap();
    for new in [absent, broken] {
        let sent = [create("refs/heads/t", new), create("refs/zit/accept", new)];
        let answer = world.push("ada", &sent, &[]);
        answer.refused("objects are missing");
        assert_eq!(world.find("refs/heads/t"), None);
    }
    let whole = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let mixed = [create("refs/heads/t", absent), create("refs/heads/u", whole)];
    let answer = world.push("ada", &mixed, &[]);
    assert!(answer.reports[0].result.is_err());
    assert_eq!(world.find("refs/heads/u"), Some(whole));
}
