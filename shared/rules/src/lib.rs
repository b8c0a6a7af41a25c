//! Deterministic rules: one agent's open work against everybody else's, as notes.
//!
//! One rule, one file, one row of [`RULES`]. A rule looks at one pair of conflicting units; [`evaluate`] gathers what it
//! finds into one note for each problem, with all its counterparts. Nothing here reads a clock, a file or the network.
//!
//! Source: `spec/results.md`, "Notes".

mod body_overlap;
mod callee_changed;
mod callers_affected;
mod file_overlap;
mod signature_clash;

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use zit_footprint::{Conflict, Footprint, Surroundings, Weight, Write, conflicts};
use zit_model::envelope::{Line, Note, Severity};
use zit_model::{AgentId, ItemId, Prompt, RefName, Resource, quote};

/// One agent's open work, as the rules see it.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Whose it is.
    pub agent: &'a AgentId,
    /// Which task.
    pub item: &'a ItemId,
    /// What the task is for, in its agent's words.
    pub intent: Option<&'a str>,
    /// The ref that carries it.
    pub name: &'a RefName,
    /// What it touches.
    pub footprint: &'a Footprint,
    /// Whether it was pushed so recently that it holds what it writes.
    pub age: Age,
}

/// How old open work is, against the time that a repository gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It holds what it writes.
    Fresh,
    /// It may have been forgotten: notes about it say `info`.
    Stale,
}

/// One rule.
pub struct Rule {
    /// The kind its notes carry.
    pub kind: &'static str,
    /// How grave one conflicting pair is, if the rule is about such pairs.
    find: fn(&Pair<'_>) -> Option<Severity>,
    /// What the other agent does, after "`<agent>` (task: …) ".
    says: fn(&Pair<'_>) -> String,
    /// Which of the two resources the note is about.
    subject: fn(&Pair<'_>) -> Resource,
}

/// Every rule, the gravest first: a pair is the first rule's that takes it.
pub const RULES: &[Rule] = &[
    signature_clash::RULE,
    file_overlap::RULE,
    body_overlap::RULE,
    callee_changed::RULE,
    callers_affected::RULE,
];

/// Two units that meet, and the work that each is part of.
struct Pair<'a> {
    conflict: &'a Conflict,
    mine: &'a Work<'a>,
    theirs: &'a Work<'a>,
}

impl Pair<'_> {
    fn my_write(&self) -> Option<&Write> {
        self.mine.footprint.writes.get(&self.conflict.mine)
    }

    fn their_write(&self) -> Option<&Write> {
        self.theirs.footprint.writes.get(&self.conflict.theirs)
    }
}

/// All notes for the agent of `mine`, gravest first, then by id.
///
/// `around` answers for the repository that the work is done in. `claimed` is what others hold by live claims: nobody is told to ask for that. `prompt` is what the commands in options
/// are built on.
#[must_use]
pub fn evaluate(
    mine: &Work<'_>,
    others: &[Work<'_>],
    around: &dyn Surroundings,
    claimed: &[&Resource],
    prompt: &Prompt,
) -> Vec<Note> {
    let mut problems: BTreeMap<(&'static str, Resource), Vec<Found>> = BTreeMap::new();
    for theirs in others {
        for conflict in conflicts(mine.footprint, theirs.footprint, around) {
            let pair = Pair { conflict: &conflict, mine, theirs };
            if let Some((rule, severity)) =
                RULES.iter().find_map(|rule| Some((rule, (rule.find)(&pair)?)))
            {
                problems
                    .entry((rule.kind, (rule.subject)(&pair)))
                    .or_default()
                    .push(Found::new(rule, severity, &pair));
            }
        }
    }
    let mut notes: Vec<Note> = problems
        .into_iter()
        .filter_map(|((kind, subject), found)| {
            note(kind, &subject, mine.item, &found, claimed, prompt)
        })
        .collect();
    notes.sort_by(|a, b| (a.severity, &a.id).cmp(&(b.severity, &b.id)));
    notes
}

/// What one rule says of one pair.
struct Found {
    severity: Severity,
    title: String,
    evidence: Vec<Line>,
    their_ref: RefName,
}

impl Found {
    fn new(rule: &Rule, severity: Severity, pair: &Pair<'_>) -> Self {
        let who = match pair.theirs.intent {
            Some(intent) => format!("{} (task: {})", pair.theirs.agent, quote::quoted(intent)),
            None => pair.theirs.agent.to_string(),
        };
        let mut evidence = vec![Line::new(format!(
            "yours: {} · theirs: {} in {}",
            pair.conflict.mine.shown(),
            pair.conflict.theirs.shown(),
            pair.theirs.name
        ))];
        let moved = |write: &&Write| write.old_signature != write.new_signature;
        if let Some(write) = pair.their_write().filter(moved) {
            evidence.extend(write.old_signature.as_ref().map(|s| Line::new(format!("was: {s}"))));
            evidence.extend(write.new_signature.as_ref().map(|s| Line::new(format!("now: {s}"))));
        }
        let severity = match (pair.theirs.age, pair.conflict.weight) {
            (Age::Fresh, Weight::Refuses) => severity,
            (Age::Stale, _) | (_, Weight::Informs) => Severity::Info,
        };
        Self {
            severity,
            title: format!("{who} {}", (rule.says)(pair)),
            evidence,
            their_ref: pair.theirs.name.clone(),
        }
    }
}

/// One note for one problem; its title names the first counterpart and counts the others.
fn note(
    kind: &'static str,
    subject: &Resource,
    my_item: &ItemId,
    found: &[Found],
    claimed: &[&Resource],
    prompt: &Prompt,
) -> Option<Note> {
    let first = found.iter().min_by_key(|f| f.severity)?;
    let title = match found.len() - 1 {
        0 => first.title.clone(),
        more => format!("{} (and {more} more)", first.title),
    };
    let mut options = vec![prompt.fetch(&first.their_ref, "see their work, as FETCH_HEAD")];
    if !claimed.iter().any(|held| held.claim_overlaps(subject)) {
        options.push(prompt.claim(subject, "ask to be its one owner"));
    }
    Some(Note {
        id: note_id(kind, subject, my_item),
        kind,
        severity: first.severity,
        title: Line::new(title),
        evidence: found.iter().flat_map(|f| f.evidence.iter().cloned()).collect(),
        options,
    })
}

/// `n-` and the first 12 hex of `sha256(kind NUL subject NUL item)`.
fn note_id(kind: &str, subject: &Resource, item: &ItemId) -> String {
    let digest = Sha256::digest(format!("{kind}\0{subject}\0{item}"));
    format!("n-{}", hex::encode(&digest[..6]))
}

#[cfg(test)]
mod tests;
