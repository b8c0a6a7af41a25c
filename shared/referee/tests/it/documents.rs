//! A claim in document form: `claim.json` pushed to the claim's own ref, by compare-and-swap.

use zit_model::Oid;

use crate::world::{Sent, World, claim, claim_ref, create, delete, moved};

const ONE: &str = "src/a.rs#one";

/// A commit whose tree holds the text as `claim.json`.
fn document(world: &World, json: &str) -> Oid {
    world.commit(None, &[("claim.json", json)])
}

fn minimal(world: &World) -> Oid {
    document(world, r#"{"format": 1, "resource": "src/a.rs#one"}"#)
}

#[test]
fn a_document_claims_and_the_referee_stores_its_own_form() {
    let (world, _) = World::new();
    let sent = minimal(&world);
    let answer = world.push("ada", &[create(&claim_ref(ONE), sent)], &[]);
    let stored = world.find(&claim_ref(ONE)).unwrap();
    assert_ne!(stored, sent);
    assert_eq!(answer.ok().rewritten(), [format!("{} none {stored}", claim_ref(ONE))]);
    assert_eq!(world.claim_document(ONE)["agent"], "ada");
    assert!(world.claim_document(ONE)["epoch"].as_u64().unwrap() > 0);
}

#[test]
fn the_documents_item_and_intent_are_taken_and_its_epoch_is_not() {
    let (world, _) = World::new();
    let json = r#"{"format": 1, "resource": "src/a.rs#one", "agent": "ada", "item": "8c1f0e2a9b3d",
        "intent": "why", "epoch": 999999, "lease_seconds": 999999}"#;
    world.push("ada", &[create(&claim_ref(ONE), document(&world, json))], &[]).ok();
    let stored = world.claim_document(ONE);
    assert_eq!(stored["item"], "8c1f0e2a9b3d");
    assert_eq!(stored["intent"], "why");
    assert_eq!(stored["lease_seconds"], 600);
    assert!(stored["epoch"].as_u64().unwrap() < 999_999);
}

#[test]
fn a_document_over_ones_own_live_claim_says_what_it_is_for_now() {
    let (world, _) = World::new();
    world.push("ada", &[claim(ONE)], &[]).ok();
    let epoch = world.claim_document(ONE)["epoch"].clone();
    let held = world.find(&claim_ref(ONE)).unwrap();
    let json =
        r#"{"format": 1, "resource": "src/a.rs#one", "item": "8c1f0e2a9b3d", "intent": "why"}"#;
    world.push("ada", &[moved(&claim_ref(ONE), held, document(&world, json))], &[]).ok();
    let stored = world.claim_document(ONE);
    assert_eq!((&stored["item"], &stored["intent"]), (&"8c1f0e2a9b3d".into(), &"why".into()));
    assert_eq!(stored["epoch"], epoch);
}

#[test]
fn a_document_that_cannot_be_used_is_refused_and_named() {
    for (json, reason) in [
        (
            r#"{"format": 1, "resource": "src/a.rs#two"}"#,
            "its resource belongs at refs/zit/claims/",
        ),
        (r#"{"format": 1, "resource": "src/a.rs#one", "agent": "bob"}"#, "belongs to agent bob"),
        (r#"{"format": 2, "resource": "src/a.rs#one"}"#, "format 2 is newer"),
        (r#"{"format": 1, "resource": "/src""#, "claim.json cannot be used"),
        (r#"{"format": 1}"#, "missing field `resource`"),
        (r#"{"format": 1, "resource": "../x"}"#, "claim.json: resource"),
        ("not json", "claim.json cannot be used"),
        ("", "claim.json cannot be used"),
    ] {
        let (world, _) = World::new();
        let before = world.refs();
        let answer = world.push("ada", &[create(&claim_ref(ONE), document(&world, json))], &[]);
        let found = answer.reason(0);
        assert!(found.contains(reason), "{json} gave {found}");
        assert_eq!(world.refs(), before, "{json}");
    }
}

#[test]
fn a_commit_without_the_document_is_refused() {
    let (world, base) = World::new();
    world.push("ada", &[create(&claim_ref(ONE), base)], &[]).refused("holds no claim.json");
}

#[test]
fn a_document_is_written_only_over_the_value_that_its_pusher_saw() {
    let (world, base) = World::new();
    world.push("ada", &[claim(ONE)], &[]).ok();
    let stored = world.find(&claim_ref(ONE)).unwrap();
    let cases: [(Sent, bool); 3] = [
        (create(&claim_ref(ONE), minimal(&world)), false),
        (moved(&claim_ref(ONE), base, minimal(&world)), false),
        (moved(&claim_ref(ONE), stored, minimal(&world)), true),
    ];
    for (sent, done) in cases {
        let answer = world.push("ada", std::slice::from_ref(&sent), &[]);
        assert_eq!(answer.reports[0].result.is_ok(), done, "{sent:?}");
        if !done {
            assert!(answer.reason(0).contains("the claim's ref is at"), "{}", answer.reason(0));
        }
    }
    world.push("ada", &[crate::world::release(ONE)], &[]).ok();
    world
        .push("ada", &[moved(&claim_ref(ONE), stored, minimal(&world))], &[])
        .refused("the claim's ref is gone");
}

#[test]
fn a_document_is_judged_by_the_rules_of_the_request() {
    let (world, _) = World::new();
    world.push("ada", &[claim("src/a.rs")], &[]).ok();
    world.push("bob", &[create(&claim_ref(ONE), minimal(&world))], &[]).refused("held by ada");
}

#[test]
fn deleting_the_claims_ref_releases_the_claim() {
    let (world, base) = World::new();
    world.push("ada", &[claim(ONE)], &[]).ok();
    let stored = world.find(&claim_ref(ONE)).unwrap();
    world.push("bob", &[delete(&claim_ref(ONE), stored)], &[]).refused("ada holds it, not you");
    world.push("ada", &[delete(&claim_ref(ONE), base)], &[]).refused("the claim's ref is at");
    world.push("ada", &[delete(&claim_ref(ONE), stored)], &[]).ok();
    assert_eq!(world.find(&claim_ref(ONE)), None);
    assert!(world.claims().is_empty());
}

#[test]
fn a_claims_key_is_an_address_and_never_stands_for_its_resource() {
    let (world, _) = World::new();
    let short = "refs/zit/claims/0123";
    world
        .push("ada", &[create(short, minimal(&world))], &[])
        .refused("no such ref below refs/zit/");
}
