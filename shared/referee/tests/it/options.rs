//! Push options: what they bind, what they refuse, and how a dry run is told.

use crate::world::{
    Answer, World, accept, ask, claim, create, delete, moved, release, source, tell,
};

#[test]
fn a_required_claim_that_is_lost_moves_nothing() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let before = world.refs();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let commands = [create("refs/heads/t", work), claim("src/b.rs")];
    let answer = world.push("bob", &commands, &["zit.require-claim=src/a.rs#one"]);
    answer
        .refused("not applied: the push requires the claim on src/a.rs#one")
        .says("ada holds src/a.rs#one, lease left 10m00s");
    assert_eq!(world.refs(), before);
}

#[test]
fn a_required_claim_that_is_won_moves_everything() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let branch = [create("refs/heads/t", work)];
    world.push("bob", &branch, &["zit.require-claim=src/a.rs#one"]).ok();
    assert_eq!(world.find("refs/heads/t"), Some(work));
    assert_eq!(world.claims(), ["bob src/a.rs#one"]);
}

#[test]
fn a_plain_claim_that_is_lost_lets_the_branch_move() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let answer = world.push("bob", &[create("refs/heads/t", work)], &["zit.claim=src/a.rs#one"]);
    answer.ok().says("refused: ").says("held by ada");
    assert_eq!(world.find("refs/heads/t"), Some(work));
    assert_eq!(world.claims(), ["ada src/a.rs#one"]);
}

#[test]
fn an_atomic_push_moves_nothing_if_any_part_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let before = world.refs();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    let branch = create("refs/heads/t", work);
    let answers: [Answer; 3] = [
        world.push_atomic("bob", std::slice::from_ref(&branch), &["zit.claim=src/a.rs#one"]),
        world.push_atomic("bob", &[branch.clone(), claim("src/a.rs#one")], &[]),
        world.push_atomic("bob", &[branch, create("refs/zit/nonsense", base)], &["zit.claim=x"]),
    ];
    for answer in answers {
        answer.refused("not applied (see ");
        assert_eq!(world.refs(), before, "{}", answer.text);
    }
}

#[test]
fn an_atomic_push_with_a_ref_that_moved_moves_nothing() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    let before = world.refs();
    let stale = moved("refs/heads/t", base, work);
    let answer =
        world.push_atomic("ada", &[create("refs/heads/u", work), stale], &["zit.claim=src/b.rs"]);
    answer.refused("not applied (see refs/heads/t)");
    assert_eq!(world.refs(), before);
    assert!(world.claims().is_empty());
}

#[test]
fn a_push_that_is_not_atomic_moves_what_can_move() {
    let (world, base) = World::new();
    let work = world.commit(Some(base), &[("notes.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/t", work)], &[]).ok();
    let stale = moved("refs/heads/t", base, work);
    let answer = world.push("ada", &[create("refs/heads/u", work), stale], &[]);
    assert!(answer.reports[0].result.is_ok());
    assert!(answer.reason(1).contains("refs/heads/t"), "{}", answer.reason(1));
    assert_eq!(world.find("refs/heads/u"), Some(work));
}

#[test]
fn tell_is_refused_if_any_of_its_options_is() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs#one")], &[]).ok();
    let both = ["zit.claim=src/b.rs", "zit.claim=src/a.rs#one"];
    world.push("bob", &[tell()], &both).refused("held by ada");
    assert_eq!(world.claims(), ["ada src/a.rs#one", "bob src/b.rs"], "the other one is granted");
    world.push("bob", &[tell()], &["zit.release=src/a.rs#one"]).refused("ada holds it, not you");
}

#[test]
fn tell_carries_claims_and_releases() {
    let (world, _) = World::new();
    world.push("ada", &[tell()], &["zit.claim=src/a.rs", "zit.claim=src/b.rs"]).ok();
    world.push("ada", &[tell()], &["zit.release=src/a.rs"]).ok().says("src/a.rs is released");
    assert_eq!(world.claims(), ["ada src/b.rs"]);
}

#[test]
fn a_dry_run_moves_nothing_and_reports_the_ref_that_says_so() {
    let (world, base) = World::new();
    world.push("ada", &[claim("src/a.rs#two")], &[]).ok();
    let (before, files) = (world.refs(), world.files());
    let work = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    let files_with_work = world.files();
    for sent in [
        claim("src/b.rs"),
        create("refs/heads/t", work),
        moved("refs/heads/main", base, work),
        accept(work),
        tell(),
    ] {
        let answer = world.push("bob", std::slice::from_ref(&sent), &["zit.dry-run"]);
        answer.ok().says("dry run: ");
        assert!(answer.rewritten()[0].starts_with("refs/zit/dry-run none "), "{sent:?}");
        assert_eq!(world.refs(), before, "{sent:?}");
        assert_eq!(world.files(), files_with_work, "{sent:?}");
    }
    assert!(files.len() <= files_with_work.len());
    world.push("bob", &[claim("src/a.rs#two")], &["zit.dry-run"]).refused("held by ada");
    assert_eq!(world.claims(), ["ada src/a.rs#two"]);
}

#[test]
fn a_dry_run_of_an_accept_is_judged_as_the_accept_would_be() {
    let (world, base) = World::new();
    let landed = world.commit(Some(base), &[("src/a.rs", &source("10", "2"))]);
    world.push("ada", &[accept(landed)], &[]).ok();
    let (before, files) = (world.refs(), world.files().len());
    let stale = world.commit(Some(base), &[("src/a.rs", &source("11", "2"))]);
    let apart = world.commit(Some(base), &[("src/a.rs", &source("1", "20"))]);
    world.push("bob", &[accept(stale)], &["zit.dry-run"]).refused("stale: src/a.rs#one");
    world.push("bob", &[accept(apart)], &["zit.dry-run"]).ok();
    world.push("eve", &[claim("src/a.rs#two")], &[]).ok();
    world.push("bob", &[accept(apart)], &["zit.dry-run"]).refused("claimed by eve");
    world.push("eve", &[release("src/a.rs#two")], &[]).ok();
    assert_eq!(world.find("refs/zit/current"), Some(before["refs/zit/current"]));
    assert!(!world.refs().contains_key(&crate::world::change_ref(stale)));
    assert!(files > 0);
}

#[test]
fn an_unknown_option_is_refused_with_the_known_ones() {
    let (world, base) = World::new();
    let before = world.refs();
    let answer = world.push("ada", &[create("refs/heads/t", base), tell()], &["zit.nope=1"]);
    answer.refused("unknown option zit.nope; known: zit.agent").says("zit.require-claim");
    assert_eq!(world.refs(), before);
}

#[test]
fn an_option_that_cannot_be_taken_is_answered_with_the_same_push_mended() {
    let (world, base) = World::new();
    let branch = create("refs/heads/t", base);
    for (options, mended) in [
        (&["zit.clam=src/a b.rs#x"][..], "-o 'zit.claim=src/a b.rs#x' "),
        (
            &["ci.skip", "zit.intents=It's `rm`", "zit.status=1"],
            "-o ci.skip -o 'zit.intent=It'\\''s `rm`' -o zit.status ",
        ),
        (&["zit.agent=ada", "zit.nope=1"], "-o zit.agent=ada "),
        (&["zit.claim"], ""),
    ] {
        let answer = world.push("ada", std::slice::from_ref(&branch), options);
        let expected = format!("git push {mended}origin {base}:refs/heads/t");
        assert_eq!(answer.offers(), [expected], "{options:?}");
    }
    let answer =
        world.push_atomic("ada", &[branch.clone(), delete("refs/heads/u", base)], &["zit.nope"]);
    let refspecs = format!("{base}:refs/heads/t :refs/heads/u");
    assert_eq!(answer.offers(), [format!("git push --atomic origin {refspecs}")]);
    // What is too long to be read is not printed.
    let many: Vec<_> = (0..9).map(|n| create(&format!("refs/heads/t{n}"), base)).collect();
    let answer = world.push("ada", &many, &["zit.agent=ada", "zit.nope"]);
    assert_eq!(
        answer.offers(),
        ["git push -o zit.agent=ada -o zit.status origin HEAD:refs/zit/tell"]
    );
}

#[test]
fn an_option_of_others_changes_nothing() {
    let (world, base) = World::new();
    world.push("ada", &[create("refs/heads/t", base)], &["ci.skip"]).ok();
}

#[test]
fn a_malformed_option_is_refused_with_the_way_to_write_it() {
    let (world, _) = World::new();
    for (option, reason) in [
        ("zit.agent=Bob", "not an agent id"),
        ("zit.item=1", "not an item id"),
        ("zit.claim", "takes a value"),
        ("zit.status=1", "takes no value"),
    ] {
        let answer = world.push("ada", &[tell()], &[option]);
        assert!(answer.reason(0).contains(reason), "{option}: {}", answer.reason(0));
    }
}

#[test]
fn a_bad_resource_is_refused_with_the_way_to_write_it() {
    let (world, _) = World::new();
    for option in ["zit.claim=/etc/passwd", "zit.release=../x", "zit.require-claim=a//b"] {
        let answer = world.push("ada", &[tell()], &[option]);
        assert!(answer.reports[0].result.is_err(), "{option}");
        answer.says("write path, path#Symbol, path#Type::method");
    }
    for name in ["refs/zit/claim/a%2", "refs/zit/claim/a%FF", "refs/zit/release/%2Fa"] {
        let answer = world.push("ada", &[ask(name)], &[]);
        assert!(answer.reason(0).contains("resource"), "{name}: {}", answer.reason(0));
    }
}

#[test]
fn the_answer_is_one_line_of_json_where_asked_for() {
    let (world, _) = World::new();
    let done = world.push("ada", &[claim("src/a.rs")], &["zit.format=json"]);
    assert_eq!(done.text.lines().count(), 1);
    assert_eq!(done.json()["outcome"], "ok");
    assert_eq!(done.json()["data"]["claims"][0]["resource"], "src/a.rs");
    let refused = world.push("bob", &[claim("src/a.rs")], &["zit.format=json"]);
    assert_eq!(refused.json()["outcome"], "refused");
    let unknown = world.push("bob", &[tell()], &["zit.format=json", "zit.nope"]);
    assert_eq!(unknown.json()["outcome"], "refused");
}

#[test]
fn a_ref_named_twice_is_refused_both_times() {
    let (world, base) = World::new();
    let twice = [create("refs/heads/t", base), create("refs/heads/t", base)];
    world.push("ada", &twice, &[]).refused("names it more than once");
    assert_eq!(world.find("refs/heads/t"), None);
}

#[test]
fn a_name_that_git_refuses_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[create("refs/heads/a..b", base)], &[]).refused("not a valid refname");
}
