//! Open items: what opens, moves and closes them, what a restart keeps, and what a pusher is shown.

use std::collections::BTreeSet;

use zit_model::AgentId;

use zit_wire::ls_refs::Prefixes;

use crate::world::{
    Sent, World, accept, change_ref, claim, claim_ref, create, delete, moved, source, tell, wip_ref,
};

#[test]
fn a_branch_is_one_item_from_its_first_push_to_its_deletion() {
    let (world, base) = World::new();
    let one = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let two = world.commit(Some(one), &[("src/a.rs", &source("10", "20"))]);
    world.push("ada", &[create("refs/heads/t", one)], &["zit.intent=tune"]).ok();
    let first = world.status()["items"][0].clone();
    world.push("ada", &[moved("refs/heads/t", one, two)], &[]).ok().says("2 units written");
    let second = world.status()["items"][0].clone();
    assert_eq!(first["item"], second["item"]);
    assert_eq!(second["intent"], "tune");
    assert_eq!(second["head"], two.to_string());
    world.push("ada", &[delete("refs/heads/t", two)], &[]).ok().says("no longer open work");
    assert!(world.items().is_empty());
}

#[test]
fn a_branch_that_another_agent_pushes_is_that_agents_item() {
    let (mut world, base) = World::new();
    let one = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let two = world.commit(Some(one), &[("src/a.rs", &source("10", "20"))]);
    world.push("ada", &[create("refs/heads/t", one)], &[]).ok();
    world.push("bob", &[moved("refs/heads/t", one, two)], &[]).ok();
    for _ in 0..2 {
        let items = world.status()["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1);
        assert_eq!(items[0]["agent"], "bob");
        world.reopen();
    }
}

#[test]
fn a_branch_that_holds_nothing_new_is_no_item() {
    let (world, base) = World::new();
    world.push("ada", &[create("refs/heads/t", base)], &[]).ok();
    assert!(world.items().is_empty());
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[moved("refs/heads/t", base, work)], &[]).ok();
    assert_eq!(world.items(), ["refs/heads/t"]);
    world.push("ada", &[moved("refs/heads/t", work, base)], &[]).ok();
    assert!(world.items().is_empty());
}

#[test]
fn one_commit_as_branch_and_as_change_is_one_item() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.push("ada", &[create(&change_ref(work), work)], &[]).ok();
    let items = world.status()["items"].clone();
    assert_eq!(items[0]["item"], items[1]["item"]);
}

#[test]
fn a_mirror_sized_push_opens_no_items() {
    let (world, base) = World::new();
    let branches: Vec<Sent> = (0..9)
        .map(|n| {
            let work = world.commit(Some(base), &[("notes.txt", &format!("{n}\n"))]);
            create(&format!("refs/heads/b{n}"), work)
        })
        .collect();
    world.push("ada", &branches, &[]).ok();
    assert!(world.items().is_empty());
    world.push("bob", &[claim("notes.txt")], &[]).ok();
    // One branch fewer is a person's push.
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let branches: Vec<Sent> = (0..8).map(|n| create(&format!("refs/heads/b{n}"), work)).collect();
    world.push("ada", &branches, &[]).ok();
    assert_eq!(world.items().len(), 8);
}

#[test]
fn items_intents_and_footprints_survive_a_restart() {
    let (mut world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let refs = [
        create("refs/heads/t", work),
        create(&wip_ref("ada", "aaaaaaaaaaaa"), work),
        create(&change_ref(work), work),
    ];
    world.push("ada", &refs, &["zit.intent=tune"]).ok();
    world.push("ada", &[claim("src/b.rs")], &[]).ok();
    let before = world.status();
    world.reopen();
    assert_eq!(world.status(), before);
    world
        .push("bob", &[claim("src/a.rs#one")], &[])
        .refused("being written by ada")
        .says("ada is doing \"tune\" and is writing src/a.rs#one");
    world.push("bob", &[claim("src/a.rs#two")], &[]).ok();
}

#[test]
fn a_ref_that_stock_git_deleted_is_no_item_after_a_restart() {
    let (mut world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    world.closed(|world| drop(world.git(&["update-ref", "-d", "refs/heads/t"])));
    assert!(world.items().is_empty());
    world.push("bob", &[claim("src/a.rs#one")], &[]).ok();
}

#[test]
fn a_document_that_cannot_be_read_costs_only_itself() {
    let (mut world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    world.push("bob", &[claim("src/b.rs")], &[]).ok();
    world.closed(|world| {
        for name in [claim_ref("src/a.rs#one"), "refs/zit/agents/ada/state".to_owned()] {
            world.git(&["update-ref", &name, &base.to_string()]);
        }
    });
    assert_eq!(world.claims(), ["bob src/b.rs"]);
    world.push("bob", &[accept(world.commit(Some(base), &[("notes.txt", "x\n")]))], &[]).ok();
}

#[test]
fn a_pusher_is_shown_its_own_refs_and_not_those_of_others() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    for agent in ["ada", "bob"] {
        let item = if agent == "ada" { "aaaaaaaaaaaa" } else { "bbbbbbbbbbbb" };
        let file = format!("{agent}.txt");
        let change = world.commit(Some(base), &[(&file, "x\n")]);
        let refs = [
            create(&format!("refs/heads/{agent}"), work),
            create(&wip_ref(agent, item), work),
            create(&change_ref(change), change),
            claim(&file),
        ];
        world.push(agent, &refs, &[]).ok();
    }
    world.push("ada", &[create("refs/tags/v1", base)], &[]).ok();
    let shown = |agent: Option<&str>| -> BTreeSet<String> {
        let agent = agent.map(|agent| AgentId::new(agent).unwrap());
        let refs = world.repository().refs_for_push(agent.as_ref()).unwrap();
        refs.into_iter().map(|r| r.name.to_string()).collect()
    };
    let all: BTreeSet<String> = world.refs().into_keys().collect();
    let common: BTreeSet<String> =
        ["refs/heads/ada", "refs/heads/bob", "refs/heads/main", "refs/tags/v1", "refs/zit/current"]
            .map(str::to_owned)
            .into();
    assert_eq!(shown(None), common);
    assert_eq!(shown(Some("nobody")), common);
    let (ada, bob) = (shown(Some("ada")), shown(Some("bob")));
    assert_eq!(ada.intersection(&bob).cloned().collect::<BTreeSet<_>>(), common);
    // Published footprints are for those who fetch.
    let (published, others): (BTreeSet<String>, BTreeSet<String>) =
        all.iter().cloned().partition(|name| name.starts_with("refs/zit/footprints/"));
    assert_eq!(published.len(), 3);
    assert_eq!(ada.union(&bob).cloned().collect::<BTreeSet<_>>(), others);
    for name in [
        wip_ref("ada", "aaaaaaaaaaaa"),
        claim_ref("ada.txt"),
        "refs/zit/agents/ada/state".to_owned(),
    ] {
        assert!(ada.contains(&name), "{name}");
    }
    let shown = |prefixes: &[&str]| {
        let prefixes = Prefixes::new(prefixes.iter().map(|&prefix| prefix.into()).collect());
        let found = world.repository().refs_for_fetch(&prefixes).unwrap();
        found.into_iter().map(|r| r.name.to_string()).collect::<Vec<_>>()
    };
    let names: Vec<String> = all.iter().cloned().collect();
    assert_eq!(shown(&[]), names);
    for prefixes in [
        &["refs/"][..],
        &["r"],
        &["refs/zit/"],
        &["refs/heads/", "refs/zit/claims/"],
        &["refs/zit/cl", "refs/he"],
        &["HEAD", "main", "refs/main", "refs/heads/main"],
        &["refs/nothing/"],
    ] {
        let wanted = |name: &&String| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let expected: Vec<String> = names.iter().filter(wanted).cloned().collect();
        assert_eq!(shown(prefixes), expected, "{prefixes:?}");
    }
}

#[test]
fn the_state_ref_of_an_agent_holds_its_items() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/t", work)], &["zit.intent=tune"]).ok();
    let json = world.git(&["show", "refs/zit/agents/ada/state:state.json"]);
    let state: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(state["agent"]["id"], "ada");
    assert_eq!(state["agent"]["intent"], "tune");
    assert_eq!(state["items"][0]["ref"], "refs/heads/t");
    assert_eq!(state["items"][0]["head"], work.to_string());
}

#[test]
fn status_tells_ones_own_first_and_then_the_others() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &["zit.intent=tune"]).ok();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("zoe", &[create("refs/heads/t", work), claim("src/b.rs")], &[]).ok();
    let answer = world.push("zoe", &[tell()], &["zit.status"]);
    let text = &answer.ok().text;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("lacks {part:?}:\n{text}"));
    assert!(at("you hold src/b.rs") < at("ada holds src/a.rs#one for \"tune\", lease left 10m00s"));
    answer.says("you write 1 unit on refs/heads/t");
}
