//! What the verbs print: text for people, JSON for programs.
//!
//! ```text
//! git zit footprint --json: `zit_footprint::document::FootprintDocument`
//! git zit judge --json:     {"format": 2, "composes": bool, "conflicts": [conflict], "leftToTextMerge": [conflict],
//!                            "informs": [conflict]}
//!
//! conflict: {"kind": "write-write" | "read-write" | "write-read", "mine": resource, "theirs": resource,
//!            "mineLines"?, "theirsLines"?, "name"?, "why"?, "meant"?, "oldSignature"?, "newSignature"?,
//!            "past": {"run": command, "then": sentence}}
//! ```
//!
//! `name` is the identifier by which the two meet, when they do not meet by address, `why` what happened to it, `meant`
//! why the name means it. The signatures are those of what the other side relies on, before and after; for
//! `write-write`, those that theirs leaves. `past` is how to get past it: a command that a shell runs as it stands, which
//! puts mine on theirs, and what is to be looked at then.
//!
//! Names and declarations come from the commits, so from anybody: each is folded onto one line before it is shown.

use serde::Serialize;
use zit_footprint::document;
use zit_footprint::{
    Because, Conflict, ConflictKind, Footprint, Prose, Reach, Surroundings, Weight, Write,
};
use zit_model::envelope::Command;
use zit_model::{Resource, quote};

/// The version of the judgement's JSON.
const FORMAT: u32 = 2;

/// A footprint as one line of JSON.
#[must_use]
pub fn footprint_json(footprint: &Footprint) -> String {
    document::to_json(footprint)
}

/// A footprint as lines for people: each write, then each declared read.
#[must_use]
pub fn footprint_text(footprint: &Footprint) -> String {
    let mut text = String::new();
    for (resource, write) in &footprint.writes {
        let what = write.change.as_str();
        text.push_str(&format!("{what:<9}  {}", shown(resource)));
        if let Some((first, last)) = write.new_lines.or(write.old_lines) {
            text.push_str(&format!("  {first}-{last}"));
        }
        if let Some(fallback) = footprint.fallbacks.get(resource) {
            text.push_str(&format!("  ({})", fallback.as_str()));
        }
        if write.is_noticed() && write.old_signature != write.new_signature {
            text.push_str(&format!("  {}", signatures(write)));
        }
        text.push('\n');
    }
    for resource in &footprint.reads {
        text.push_str(&format!("reads      {}\n", shown(resource)));
    }
    text
}

/// By which rule two changes are compared.
pub enum Rule<'a> {
    /// A use meets what it means; what is given answers for the base.
    Resolved(&'a dyn Surroundings),
    /// A mention meets whatever has the name.
    Names,
}

/// Whether two changes compose, and where they do not.
pub struct Judgement {
    /// Puts mine on theirs.
    rebuild: Command,
    conflicts: Vec<Meeting>,
    left_to_text_merge: Vec<Meeting>,
    informs: Vec<Meeting>,
}

/// A conflict with what is to be said about it.
struct Meeting {
    conflict: Conflict,
    mine_lines: Option<(u32, u32)>,
    theirs_lines: Option<(u32, u32)>,
    old_signature: Option<String>,
    new_signature: Option<String>,
}

impl Judgement {
    /// Compares the footprints of two changes of one base; `rebuild` is the command that puts mine on theirs.
    #[must_use]
    pub fn of(mine: &Footprint, theirs: &Footprint, rule: &Rule<'_>, rebuild: Command) -> Self {
        let found = match rule {
            Rule::Resolved(around) => zit_footprint::conflicts(mine, theirs, *around),
            Rule::Names => zit_footprint::conflicts_by_name(mine, theirs),
        };
        let (conflicts, informs): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(|conflict| Meeting::new(conflict, mine, theirs))
            .partition(|meeting| meeting.conflict.weight == Weight::Refuses);
        let (left_to_text_merge, conflicts) = conflicts
            .into_iter()
            .partition(|meeting| meeting.conflict.prose() == Prose::LeaveToTextMerge);
        Self { rebuild, conflicts, left_to_text_merge, informs }
    }

    /// Whether nothing stands between the two.
    #[must_use]
    pub fn composes(&self) -> bool {
        self.conflicts.is_empty()
    }

    /// The judgement as lines for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = match self.conflicts.len() {
            0 => "composes\n".to_owned(),
            1 => "1 conflict\n".to_owned(),
            n => format!("{n} conflicts\n"),
        };
        for meeting in &self.conflicts {
            text.push_str(&meeting.to_text());
            let (run, then) = (self.rebuild.as_str(), meeting.then());
            text.push_str(&format!("  past: {run}   # then {then}\n"));
        }
        for Meeting { conflict, .. } in &self.left_to_text_merge {
            let resource = shown(&conflict.theirs);
            text.push_str(&format!("left to git's text merge: both write {resource}\n"));
        }
        for meeting in &self.informs {
            text.push_str(&format!("worth knowing: {}", meeting.to_text()));
        }
        text
    }

    /// The judgement as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(&JudgementDocument {
            format: FORMAT,
            composes: self.composes(),
            conflicts: self.conflicts.iter().map(|met| met.document(Some(&self.rebuild))).collect(),
            left_to_text_merge: self
                .left_to_text_merge
                .iter()
                .map(|met| met.document(None))
                .collect(),
            informs: self.informs.iter().map(|met| met.document(None)).collect(),
        })
    }
}

impl Meeting {
    fn new(conflict: Conflict, mine: &Footprint, theirs: &Footprint) -> Self {
        let (my_write, their_write) =
            (mine.writes.get(&conflict.mine), theirs.writes.get(&conflict.theirs));
        let lines = |write: &Write| write.new_lines.or(write.old_lines);
        // Whose write the other side meets.
        let met = match conflict.kind {
            ConflictKind::WriteWrite | ConflictKind::ReadWrite => their_write,
            ConflictKind::WriteRead => my_write,
        };
        let met = met.filter(|write| write.is_noticed());
        Self {
            mine_lines: my_write.and_then(lines),
            theirs_lines: their_write.and_then(lines),
            old_signature: met.and_then(|write| write.old_signature.clone()),
            new_signature: met.and_then(|write| write.new_signature.clone()),
            conflict,
        }
    }

    fn to_text(&self) -> String {
        let Conflict { kind, mine, theirs, because, .. } = &self.conflict;
        let (mine, theirs) = (at(mine, self.mine_lines), at(theirs, self.theirs_lines));
        let uses = match self.conflict.name() {
            Some(name) => format!("uses {} in", quote::one_line(name)),
            None => "reads".to_owned(),
        };
        let mut text = match kind {
            ConflictKind::WriteWrite if self.conflict.mine == self.conflict.theirs => {
                format!("{}: both write {theirs}", kind.as_str())
            }
            ConflictKind::WriteWrite => {
                format!("{}: mine writes {mine}, theirs writes {theirs}", kind.as_str())
            }
            ConflictKind::ReadWrite => {
                format!("{}: mine {uses} {mine}, theirs changes {theirs}", kind.as_str())
            }
            ConflictKind::WriteRead => {
                format!("{}: mine changes {mine}, theirs {uses} {theirs}", kind.as_str())
            }
        };
        text.extend(why(because).map(|why| format!(": {why}")));
        text.push('\n');
        text.extend(meant(because).map(|meant| format!("  meant: {meant}\n")));
        for (label, signature) in [("old", &self.old_signature), ("new", &self.new_signature)] {
            if let Some(signature) = signature {
                text.push_str(&format!("  {label}: {}\n", quote::one_line(signature)));
            }
        }
        text
    }

    /// What is to be looked at once mine is on theirs.
    fn then(&self) -> String {
        let Conflict { mine, theirs, because, kind, .. } = &self.conflict;
        let (mine, theirs) = (shown(mine), shown(theirs));
        match (kind, because) {
            (ConflictKind::WriteWrite, Because::SameName) => {
                format!("give {mine} another name, or drop it for {theirs}")
            }
            (ConflictKind::WriteWrite, _) => format!("make your change of {mine} on theirs"),
            (ConflictKind::ReadWrite, Because::Declared) => {
                format!("see whether what you read in {theirs} still holds")
            }
            (ConflictKind::ReadWrite, _) => format!("make {mine} fit {theirs} as it is now"),
            (ConflictKind::WriteRead, Because::Declared) => {
                format!("see whether {theirs}, which others rely on, still holds with your change")
            }
            (ConflictKind::WriteRead, _) => format!("make {theirs} fit your change of {mine}"),
        }
    }

    fn document<'a>(&'a self, rebuild: Option<&'a Command>) -> ConflictDocument<'a> {
        ConflictDocument {
            kind: self.conflict.kind.as_str(),
            mine: self.conflict.mine.to_string(),
            theirs: self.conflict.theirs.to_string(),
            mine_lines: self.mine_lines,
            theirs_lines: self.theirs_lines,
            name: self.conflict.name(),
            why: why(&self.conflict.because),
            meant: meant(&self.conflict.because),
            old_signature: self.old_signature.as_deref(),
            new_signature: self.new_signature.as_deref(),
            past: rebuild.map(|run| PastDocument { run: run.as_str(), then: self.then() }),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JudgementDocument<'a> {
    format: u32,
    composes: bool,
    conflicts: Vec<ConflictDocument<'a>>,
    left_to_text_merge: Vec<ConflictDocument<'a>>,
    informs: Vec<ConflictDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConflictDocument<'a> {
    kind: &'static str,
    mine: String,
    theirs: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mine_lines: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    theirs_lines: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meant: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    past: Option<PastDocument<'a>>,
}

#[derive(Serialize)]
struct PastDocument<'a> {
    run: &'a str,
    then: String,
}

fn json(document: &impl Serialize) -> String {
    let mut line = serde_json::to_string(document).expect("strings, numbers and lists are JSON");
    line.push('\n');
    line
}

/// What happened to what one side uses.
fn why(because: &Because) -> Option<String> {
    match because {
        Because::Overlap | Because::Declared | Because::Name { .. } => None,
        Because::Apart => Some("in other parts of it".to_owned()),
        Because::SameName => Some("they would be declared twice in one package".to_owned()),
        Because::Import { name } => Some(format!("{} is imported no more", quote::one_line(name))),
        Because::Reference { name, why, .. } => {
            Some(format!("{} {}", quote::one_line(name), why.as_str()))
        }
    }
}

/// Why a name means what the other side alters.
fn meant(because: &Because) -> Option<&'static str> {
    let Because::Reference { reach, .. } = because else { return None };
    Some(match reach {
        Reach::Yes => "it is imported from there, or declared beside it",
        Reach::IfUniqueThere => "it is imported, and nothing else that it may be has the name",
        Reach::IfUnique => "nothing else has the name",
        Reach::No => return None,
    })
}

/// A resource and its lines.
fn at(resource: &Resource, lines: Option<(u32, u32)>) -> String {
    let lines = lines.map(|(first, last)| format!(" (lines {first}-{last})"));
    shown(resource) + &lines.unwrap_or_default()
}

fn shown(resource: &Resource) -> String {
    quote::one_line(&resource.to_string())
}

fn signatures(write: &Write) -> String {
    let side =
        |text: &Option<String>| text.as_deref().map_or("nothing".to_owned(), quote::one_line);
    format!("{}  =>  {}", side(&write.old_signature), side(&write.new_signature))
}
