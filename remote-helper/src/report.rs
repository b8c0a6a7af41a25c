//! What the verbs print: text for people, JSON for programs.
//!
//! ```text
//! git zit footprint --json: `zit_footprint::document::FootprintDocument`
//! git zit judge --json:     {"format": 1, "composes": bool, "conflicts": [conflict], "leftToTextMerge": [conflict]}
//!
//! conflict: {"kind": "write-write" | "read-write" | "write-read", "mine": resource, "theirs": resource,
//!            "name"?, "oldSignature"?, "newSignature"?}
//! ```
//!
//! `name` is the identifier by which the two meet, when they do not meet by address. The signatures are those of what
//! the other side relies on, before and after; for `write-write`, those that theirs leaves.
//!
//! Names and declarations come from the commits, so from anybody: each is folded onto one line before it is shown.

use serde::Serialize;
use zit_footprint::document::FootprintDocument;
use zit_footprint::{Conflict, ConflictKind, Footprint, Prose, Write};
use zit_model::{Resource, quote};

/// The version of the judgement's JSON.
const FORMAT: u32 = 1;

/// A footprint as one line of JSON.
#[must_use]
pub fn footprint_json(footprint: &Footprint) -> String {
    json(&FootprintDocument::from(footprint))
}

/// A footprint as lines for people: each write, then each declared read.
#[must_use]
pub fn footprint_text(footprint: &Footprint) -> String {
    let mut text = String::new();
    for (resource, write) in &footprint.writes {
        let what = write.change.as_str();
        text.push_str(&format!("{what:<9}  {}", shown(resource)));
        if let Some((first, last)) = write.lines {
            text.push_str(&format!("  {first}-{last}"));
        }
        if let Some(fallback) = footprint.fallbacks.get(resource) {
            text.push_str(&format!("  ({})", fallback.as_str()));
        }
        if write.interface && write.old_signature != write.new_signature {
            text.push_str(&format!("  {}", signatures(write)));
        }
        text.push('\n');
    }
    for resource in &footprint.reads {
        text.push_str(&format!("reads      {}\n", shown(resource)));
    }
    text
}

/// Whether two changes compose, and where they do not.
pub struct Judgement {
    conflicts: Vec<Meeting>,
    left_to_text_merge: Vec<Meeting>,
}

/// A conflict with what is to be said about it.
struct Meeting {
    conflict: Conflict,
    old_signature: Option<String>,
    new_signature: Option<String>,
}

impl Judgement {
    /// Compares the footprints of two changes of one base.
    #[must_use]
    pub fn of(mine: &Footprint, theirs: &Footprint) -> Self {
        let meetings = zit_footprint::conflicts(mine, theirs).into_iter().map(|conflict| {
            // Whose write the other side meets.
            let write = match conflict.kind {
                ConflictKind::WriteWrite | ConflictKind::ReadWrite => {
                    theirs.writes.get(&conflict.theirs)
                }
                ConflictKind::WriteRead => mine.writes.get(&conflict.mine),
            };
            let (old_signature, new_signature) = write
                .filter(|write| write.interface)
                .map(|write| (write.old_signature.clone(), write.new_signature.clone()))
                .unwrap_or_default();
            Meeting { conflict, old_signature, new_signature }
        });
        let (left_to_text_merge, conflicts) =
            meetings.partition(|meeting| meeting.conflict.prose() == Prose::LeaveToTextMerge);
        Self { conflicts, left_to_text_merge }
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
        }
        for Meeting { conflict, .. } in &self.left_to_text_merge {
            let resource = shown(&conflict.theirs);
            text.push_str(&format!("left to git's text merge: both write {resource}\n"));
        }
        text
    }

    /// The judgement as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(&JudgementDocument {
            format: FORMAT,
            composes: self.composes(),
            conflicts: self.conflicts.iter().map(Meeting::document).collect(),
            left_to_text_merge: self.left_to_text_merge.iter().map(Meeting::document).collect(),
        })
    }
}

impl Meeting {
    fn to_text(&self) -> String {
        let Conflict { kind, mine, theirs, name } = &self.conflict;
        let (mine, theirs) = (shown(mine), shown(theirs));
        let relies = match name {
            Some(name) => format!("mentions {} in", quote::one_line(name)),
            None => "reads".to_owned(),
        };
        let mut text = match kind {
            ConflictKind::WriteWrite if mine == theirs => {
                format!("{}: both write {mine}\n", kind.as_str())
            }
            ConflictKind::WriteWrite => {
                format!("{}: mine writes {mine}, theirs writes {theirs}\n", kind.as_str())
            }
            ConflictKind::ReadWrite => {
                format!("{}: mine {relies} {mine}, theirs changes {theirs}\n", kind.as_str())
            }
            ConflictKind::WriteRead => {
                format!("{}: mine changes {mine}, theirs {relies} {theirs}\n", kind.as_str())
            }
        };
        for (label, signature) in [("old", &self.old_signature), ("new", &self.new_signature)] {
            if let Some(signature) = signature {
                text.push_str(&format!("  {label}: {}\n", quote::one_line(signature)));
            }
        }
        text
    }

    fn document(&self) -> ConflictDocument<'_> {
        ConflictDocument {
            kind: self.conflict.kind.as_str(),
            mine: self.conflict.mine.to_string(),
            theirs: self.conflict.theirs.to_string(),
            name: self.conflict.name.as_deref(),
            old_signature: self.old_signature.as_deref(),
            new_signature: self.new_signature.as_deref(),
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
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConflictDocument<'a> {
    kind: &'static str,
    mine: String,
    theirs: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_signature: Option<&'a str>,
}

fn json(document: &impl Serialize) -> String {
    let mut line = serde_json::to_string(document).expect("strings, numbers and lists are JSON");
    line.push('\n');
    line
}

fn shown(resource: &Resource) -> String {
    quote::one_line(&resource.to_string())
}

fn signatures(write: &Write) -> String {
    let side =
        |text: &Option<String>| text.as_deref().map_or("nothing".to_owned(), quote::one_line);
    format!("{}  =>  {}", side(&write.old_signature), side(&write.new_signature))
}
