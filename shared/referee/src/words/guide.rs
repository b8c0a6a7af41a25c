//! Every refusal has a row in `docs/GUIDE.md`, "What a refusal means".

use std::collections::BTreeSet;
use std::time::Duration;

use zit_footprint::{Because, Conflict, ConflictKind, Weight};
use zit_model::{AgentId, Oid, Prompt, RefName, Resource};
use zit_store::RefusedUpdate;

use super::{Voice, refusal};
use crate::verdict::{Hold, Holder, Refusal, Staleness};

const GUIDE: &str = include_str!("../../../../docs/GUIDE.md");
const VERDICT: &str = include_str!("../verdict.rs");

fn oid(digit: &str) -> Oid {
    digit.repeat(40).parse().unwrap()
}

fn branch() -> RefName {
    RefName::new("refs/heads/x").unwrap()
}

fn file() -> Resource {
    Resource::file("a.rs").unwrap()
}

fn holder(hold: Hold) -> Holder {
    Holder { agent: AgentId::new("ada").unwrap(), intent: None, resource: file(), hold }
}

fn claim() -> Hold {
    Hold::Claim { left: Duration::from_secs(598) }
}

fn in_flight() -> Hold {
    Hold::InFlight { name: branch(), since: Duration::from_secs(1) }
}

/// What refs themselves refuse.
fn refused_updates() -> Vec<RefusedUpdate> {
    let (name, found, expected) = (branch(), oid("a"), oid("b"));
    vec![
        RefusedUpdate::Exists { name: name.clone(), found },
        RefusedUpdate::Missing { name: name.clone(), expected },
        RefusedUpdate::Stale { name: name.clone(), expected, found },
        RefusedUpdate::NameConflict { name: name.clone(), with: branch() },
        RefusedUpdate::Locked { name: name.clone(), lock: "refs/heads/x.lock".into() },
        RefusedUpdate::MissingObject { name: name.clone(), oid: found },
        RefusedUpdate::NotACommit { name, oid: found, kind: zit_store::Kind::Blob },
    ]
}

/// One of each, and both where a refusal has two forms.
fn refusals() -> Vec<Refusal> {
    let agent = || AgentId::new("ada").unwrap();
    let (name, why) = (branch(), || "why".to_owned());
    let bad = |text: &[u8]| Resource::decode(text, &|_| false).unwrap_err();
    let (weight, because) = (Weight::Refuses, Because::Overlap);
    let conflict =
        Conflict { kind: ConflictKind::WriteWrite, mine: file(), theirs: file(), weight, because };
    let mut refusals = vec![
        Refusal::BadName { why: why() },
        Refusal::UnknownRef,
        Refusal::NotInNamespace,
        Refusal::RefereeOnly,
        Refusal::OthersRef { owner: agent() },
        Refusal::NoAgent,
        Refusal::ForeignAgent { agent: agent(), owner: "anyone".into() },
        Refusal::BadResource(bad(b"")),
        Refusal::BadResource(bad(b"%")),
        Refusal::KeyCollision { found: file() },
        Refusal::BadDocument { why: why() },
        Refusal::Held { resource: file(), holders: vec![holder(claim())] },
        Refusal::Held { resource: file(), holders: vec![holder(in_flight())] },
        Refusal::NotYours { holder: Box::new(holder(claim())) },
        Refusal::ClaimMoved { found: Some(oid("a")) },
        Refusal::ClaimMoved { found: None },
        Refusal::NotForward { current: oid("a") },
        Refusal::MainlineDelete,
        Refusal::Diverged { mainline: None, current: oid("a") },
        Refusal::NotMainline { mainline: Some(branch()) },
        Refusal::NotMainline { mainline: None },
        Refusal::NothingToLand,
        Refusal::NotACommit { oid: oid("a") },
        Refusal::AtomicAccept,
        Refusal::NameIsNotValue { value: oid("a") },
        Refusal::CreateOnly,
        Refusal::Hidden { is_deletion: false },
        Refusal::Hidden { is_deletion: true },
        Refusal::LeftToHook,
        Refusal::ByHook { why: "proc-receive failed to report status".into() },
        Refusal::DeleteDenied { name: name.clone() },
        Refusal::CurrentDelete { name: name.clone() },
        Refusal::NonFastForward { name: name.clone() },
        Refusal::CheckedOut { name },
        Refusal::TagExists { found: None },
        Refusal::Stale { reasons: vec![Staleness { conflict, landed: None }] },
        Refusal::Unrelated,
        Refusal::Conflict { paths: vec!["a.rs".into()] },
        Refusal::Fenced { holders: vec![holder(claim())] },
        Refusal::Incomplete { why: why() },
        Refusal::ShallowUpdate,
        Refusal::Hook,
        Refusal::Duplicate,
        Refusal::Aliased,
        Refusal::Contradiction { resource: file() },
        Refusal::TooMany { what: "claims", max: 10 },
        Refusal::Atomic { culprit: "refs/heads/y".into() },
        Refusal::ClaimRequired { resource: "a.rs".into() },
    ];
    refusals.extend(refused_updates().into_iter().map(Refusal::Ref));
    refusals
}

/// What the table's first column shows: what is said, in pieces between what differs each time.
fn shown() -> Vec<Vec<&'static str>> {
    let (_, page) = GUIDE.split_once("## What a refusal means").unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let columns = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let codes = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    codes.map(pieces).collect()
}

fn pieces(code: &'static str) -> Vec<&'static str> {
    let parts = code.split("...").flat_map(|part| part.split(['<', '>']).step_by(2));
    parts.filter(|piece| !piece.is_empty()).collect()
}

fn says(mut text: &str, pieces: &[&str]) -> bool {
    pieces.iter().all(|piece| match text.split_once(piece) {
        Some((_, rest)) => {
            text = rest;
            true
        }
        None => false,
    })
}

#[test]
fn every_refusal_has_a_row_in_the_guide() {
    let prompt = Prompt { mainline: "main".into(), agent: None };
    let voice = Voice {
        prompt,
        pushed: None,
        free_agent: AgentId::new("free").unwrap(),
        is_over_network: true,
    };
    let shown = shown();
    for case in refusals() {
        let reason = refusal(&case, "refs/heads/x", &voice).reason;
        assert!(shown.iter().any(|pieces| says(&reason, pieces)), "{case:?}: {reason}");
    }
}

#[test]
fn every_refusal_is_among_those_that_are_looked_up() {
    let (_, body) = VERDICT.split_once("enum Refusal {\n").unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let word = |text: &str| text.chars().take_while(char::is_ascii_alphanumeric).collect();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants: BTreeSet<String> =
        variants.filter(|line| line.starts_with(char::is_uppercase)).map(word).collect();
    let tried: BTreeSet<String> =
        refusals().iter().map(|case| word(&format!("{case:?}"))).collect();
    assert_eq!(tried, variants);
}
