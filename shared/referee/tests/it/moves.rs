//! Files that move: what stock git merges across a move is judged by units.

use crate::world::{GONE, World, accept, source};

/// Lands `first` and asks for `second`, both on one base.
fn race(first: &[(&str, &str)], second: &[(&str, &str)]) -> (World, crate::world::Answer) {
    let (world, base) = World::new();
    let [first, second] = [first, second].map(|files| world.commit(Some(base), files));
    world.push("ada", &[accept(first)], &[]).ok();
    let answer = world.push("ben", &[accept(second)], &[]);
    (world, answer)
}

/// In either order.
fn both_orders<'a>(
    one: &'a [(&'a str, &'a str)],
    two: &'a [(&'a str, &'a str)],
) -> [(World, crate::world::Answer); 2] {
    [race(one, two), race(two, one)]
}

#[test]
fn an_edit_at_the_old_path_lands_beside_the_move() {
    let (text, edited) = (source("1", "2"), source("1", "20"));
    let moves = [("src/a.rs", GONE), ("src/c.rs", &*text)];
    for (world, answer) in both_orders(&moves, &[("src/a.rs", &edited)]) {
        answer.ok();
        let current = world.current();
        assert_eq!(world.git(&["show", &format!("{current}:src/c.rs")]), edited);
        assert!(world.git(&["ls-tree", &format!("{current}:src")]).find("a.rs").is_none());
    }
}

#[test]
fn an_edit_of_what_the_move_edits_too_is_refused() {
    let (text, edited) = (source("10", "2"), source("11", "2"));
    let moves = [("src/a.rs", GONE), ("src/c.rs", &*text)];
    for (_, answer) in both_orders(&moves, &[("src/a.rs", &edited)]) {
        answer.refused("stale: src/a.rs#one");
    }
    let beside = source("1", "20");
    for (world, answer) in both_orders(&moves, &[("src/a.rs", &beside)]) {
        answer.ok();
        let landed = world.git(&["show", &format!("{}:src/c.rs", world.current())]);
        assert_eq!(landed, source("10", "20"));
    }
}

#[test]
fn who_starts_to_import_the_old_module_is_refused() {
    let text = source("1", "2");
    let moves = [("src/a.rs", GONE), ("src/c.rs", &*text)];
    let importer = "use crate::a::two;\n\npub fn four() -> u32 {\n    two()\n}\n";
    let [(_, importer_last), (_, move_last)] = both_orders(&moves, &[("src/d.rs", importer)]);
    importer_last.refused("stale: src/a.rs#two");
    move_last.refused("stale: src/d.rs#four");
}
