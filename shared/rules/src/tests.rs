//! What the rules find, on footprints of real sources: which rule takes a pair, what it says, and how grave it is.

use zit_footprint::{FileKind, Side, Unknown, compare};
use zit_model::{AgentId, ItemId, RefName};

use super::*;

const BASE: &str = "fn parse(text: &str) -> u32 { 1 }\n\nfn load() { let x = 1; }\n";

fn prompt() -> Prompt {
    Prompt { mainline: "main".into(), agent: None }
}

fn footprint(path: &str, old: &str, new: &str) -> Footprint {
    let side = |text| Some(Side { kind: FileKind::Regular, bytes: text });
    let path: Resource = path.parse().unwrap();
    Footprint::from_files([compare(&path, side(old.as_bytes()), side(new.as_bytes()))])
}

/// Open work of one agent, on one branch and item that all of them share.
fn work<'a>(team: &'a Team, n: usize, footprint: &'a Footprint) -> Work<'a> {
    Work {
        agent: &team.agents[n],
        item: &team.item,
        intent: (n == 1).then_some("Be strict"),
        name: &team.name,
        footprint,
        age: Age::Fresh,
    }
}

/// Ada, Ben, whose intent is known, and Eve.
struct Team {
    agents: [AgentId; 3],
    item: ItemId,
    name: RefName,
}

fn team() -> Team {
    Team {
        agents: ["ada", "ben", "eve"].map(|id| AgentId::new(id).unwrap()),
        item: ItemId::new("0123456789ab").unwrap(),
        name: "refs/heads/topic".parse().unwrap(),
    }
}

/// Both change the body of `parse`, each in its own way.
fn two_bodies() -> (Footprint, Footprint) {
    let to = |body| footprint("a.rs", BASE, &BASE.replace("{ 1 }", body));
    (to("{ 2 }"), to("{ 3 }"))
}

/// The notes that Ada with `mine` gets about Ben with `theirs`, as "severity kind title".
#[track_caller]
fn check(mine: &Footprint, theirs: &Footprint, expected: &[&str]) {
    let team = team();
    let notes = evaluate(
        &work(&team, 0, mine),
        &[work(&team, 1, theirs)],
        &Unknown::default(),
        &[],
        &prompt(),
    );
    let found: Vec<String> = notes
        .iter()
        .map(|n| format!("{} {} {}", n.severity.as_str(), n.kind, n.title.as_str()))
        .collect();
    assert_eq!(found, expected);
}

fn options(notes: &[Note]) -> Vec<&str> {
    notes[0].options.iter().map(zit_model::envelope::Command::as_str).collect()
}

#[test]
fn two_bodies_of_one_function_overlap() {
    let mine = footprint("a.rs", BASE, &BASE.replace("{ 1 }", "{ 2 }"));
    let theirs = footprint("a.rs", BASE, &BASE.replace("{ 1 }", "{ 3 }"));
    check(
        &mine,
        &theirs,
        &["warn body_overlap ben (task: \"Be strict\") is changing a.rs#parse, and so are you"],
    );
}

#[test]
fn a_body_under_a_changing_signature_is_worse() {
    let mine = footprint("a.rs", BASE, &BASE.replace("{ 1 }", "{ 2 }"));
    let theirs = footprint("a.rs", BASE, &BASE.replace("text: &str", "text: &[u8]"));
    check(
        &mine,
        &theirs,
        &["act body_overlap ben (task: \"Be strict\") is changing the signature of a.rs#parse, \
           and so are you"],
    );
}

#[test]
fn two_signatures_of_one_function_clash() {
    let mine = footprint("a.rs", BASE, &BASE.replace("text: &str", "text: String"));
    let theirs = footprint("a.rs", BASE, &BASE.replace("text: &str", "text: &[u8]"));
    check(
        &mine,
        &theirs,
        &[
            "act signature_clash ben (task: \"Be strict\") is changing the signature of a.rs#parse, \
           and so are you",
        ],
    );
}

#[test]
fn a_caller_hears_of_its_callee_and_the_callee_of_its_caller() {
    let user = footprint("a.rs", BASE, &BASE.replace("let x = 1", "let x = parse(\"\")"));
    let callee = footprint("a.rs", BASE, &BASE.replace("text: &str", "text: &[u8]"));
    check(
        &user,
        &callee,
        &["act callee_changed ben (task: \"Be strict\") is changing a.rs#parse, \
           which your a.rs#load refers to"],
    );
    check(
        &callee,
        &user,
        &["act callers_affected ben (task: \"Be strict\") refers to a.rs#parse in a.rs#load, \
           which you are changing"],
    );
}

#[test]
fn a_file_without_a_grammar_overlaps_as_a_whole() {
    let mine = footprint("a.bin", "1", "2");
    let theirs = footprint("a.bin", "1", "3");
    check(
        &mine,
        &theirs,
        &["warn file_overlap ben (task: \"Be strict\") is changing a.bin, and so are you"],
    );
}

#[test]
fn disjoint_work_and_the_same_edit_make_no_note() {
    let mine = footprint("a.rs", BASE, &BASE.replace("{ 1 }", "{ 2 }"));
    check(&mine, &mine, &[]);
    let theirs = footprint("a.rs", BASE, &BASE.replace("let x = 1", "let x = 2"));
    check(&mine, &theirs, &[]);
}

#[test]
fn work_that_has_grown_old_makes_info_notes() {
    let (mine, theirs) = two_bodies();
    let team = team();
    let old = Work { age: Age::Stale, ..work(&team, 1, &theirs) };
    let notes = evaluate(&work(&team, 0, &mine), &[old], &Unknown::default(), &[], &prompt());
    assert_eq!(notes[0].severity, Severity::Info);
}

#[test]
fn one_problem_with_two_counterparts_is_one_note_with_a_stable_id() {
    let (mine, theirs) = two_bodies();
    let team = team();
    let others = [work(&team, 1, &theirs), work(&team, 2, &theirs)];
    let both = evaluate(&work(&team, 0, &mine), &others, &Unknown::default(), &[], &prompt());
    let one = evaluate(&work(&team, 0, &mine), &others[..1], &Unknown::default(), &[], &prompt());
    assert_eq!(both.len(), 1);
    assert_eq!(both[0].id, one[0].id);
    assert!(both[0].title.as_str().ends_with("(and 1 more)"), "{:?}", both[0].title);
}

#[test]
fn an_option_is_a_command_that_runs_as_it_stands() {
    let (mine, theirs) = two_bodies();
    let team = team();
    let notes = evaluate(
        &work(&team, 0, &mine),
        &[work(&team, 1, &theirs)],
        &Unknown::default(),
        &[],
        &prompt(),
    );
    assert_eq!(
        options(&notes),
        [
            "git fetch origin refs/heads/topic",
            "git push origin origin/main:refs/zit/claim/a.rs#parse",
        ]
    );
}

#[test]
fn nobody_is_told_to_claim_what_somebody_holds() {
    let (mine, theirs) = two_bodies();
    let team = team();
    let held: Resource = "a.rs".parse().unwrap();
    let others = [work(&team, 1, &theirs)];
    let notes = evaluate(&work(&team, 0, &mine), &others, &Unknown::default(), &[&held], &prompt());
    assert_eq!(options(&notes), ["git fetch origin refs/heads/topic"]);
}
