//! Whether two changes meet: by writing the same thing, or by one relying on what the other alters.

use std::collections::BTreeMap;

use zit_model::{Resource, resource::Part};

use crate::{Footprint, Language, Write};

/// How two footprints meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConflictKind {
    /// Both write it.
    WriteWrite,
    /// Mine reads or mentions what theirs writes.
    ReadWrite,
    /// Mine writes what theirs reads or mentions.
    WriteRead,
}

impl ConflictKind {
    /// The kind in kebab case, as documents spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteWrite => "write-write",
            Self::ReadWrite => "read-write",
            Self::WriteRead => "write-read",
        }
    }
}

/// One meeting of two footprints.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conflict {
    /// How they meet.
    pub kind: ConflictKind,
    /// What mine writes, reads, or mentions the name in.
    pub mine: Resource,
    /// What theirs writes, reads, or mentions the name in.
    pub theirs: Resource,
    /// The identifier by which they meet; `None` where they meet by address.
    pub name: Option<String>,
}

/// Whether a conflict is one that git's text merge decides well enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prose {
    /// Two writes of Markdown, or of imports: the text merge decides.
    LeaveToTextMerge,
    /// Anything else: it stands.
    Stands,
}

impl Conflict {
    /// Whether accepting leaves the conflict to the text merge.
    ///
    /// # Source
    /// `spec/footprints.md`, "Prose and imports".
    #[must_use]
    pub fn prose(&self) -> Prose {
        let markdown = |r: &Resource| Language::of_path(r.path()) == Some(Language::Markdown);
        let both = |test: &dyn Fn(&Resource) -> bool| test(&self.mine) && test(&self.theirs);
        let leave = self.kind == ConflictKind::WriteWrite
            && (both(&markdown) || both(&|r| *r.part() == Part::Imports));
        if leave { Prose::LeaveToTextMerge } else { Prose::Stands }
    }
}

/// Where two footprints meet, in the order of kind, mine, theirs.
///
/// Shape: each write of one side appears at most once. A unit that both sides leave with the same content is no
/// conflict, nor is its changed interface. Names meet only within one family of languages.
///
/// # Source
/// `spec/footprints.md`, "Conflicts".
#[must_use]
pub fn conflicts(mine: &Footprint, theirs: &Footprint) -> Vec<Conflict> {
    let mut found = Vec::new();
    let (mine_names, their_names) = (Mentions::of(mine), Mentions::of(theirs));
    for (resource, write) in &theirs.writes {
        if same_edit(mine, resource, write) {
            continue;
        }
        if let Some(own) = overlapping_write(mine, resource) {
            found.push(meet(ConflictKind::WriteWrite, own, resource, None));
        } else if let Some((own, name)) = relies_on(mine, &mine_names, resource, write) {
            found.push(meet(ConflictKind::ReadWrite, own, resource, name));
        }
    }
    for (resource, write) in &mine.writes {
        if !same_edit(theirs, resource, write)
            && overlapping_write(theirs, resource).is_none()
            && let Some((their, name)) = relies_on(theirs, &their_names, resource, write)
        {
            found.push(meet(ConflictKind::WriteRead, resource, their, name));
        }
    }
    found.sort();
    found
}

fn meet(kind: ConflictKind, mine: &Resource, theirs: &Resource, name: Option<&str>) -> Conflict {
    Conflict { kind, mine: mine.clone(), theirs: theirs.clone(), name: name.map(str::to_owned) }
}

/// Whether `other` writes the very resource to the same effect.
fn same_edit(other: &Footprint, resource: &Resource, write: &Write) -> bool {
    other.writes.get(resource).is_some_and(|own| own.new == write.new)
}

fn overlapping_write<'a>(footprint: &'a Footprint, resource: &Resource) -> Option<&'a Resource> {
    // The file sorts before its parts, so the range holds exactly what can overlap.
    let mut near = footprint.writes.range(resource.with(Part::File)..).map(|(own, _)| own);
    near.by_ref().take_while(|own| own.path() == resource.path()).find(|own| own.overlaps(resource))
}

/// What of `footprint` relies on a resource that the other side writes: a declared read, or a mention of its
/// name where its interface changed.
fn relies_on<'a, 'w>(
    footprint: &'a Footprint,
    mentions: &Mentions<'a>,
    resource: &Resource,
    write: &'w Write,
) -> Option<(&'a Resource, Option<&'w str>)> {
    let mut near = footprint.reads.range(resource.with(Part::File)..);
    let read =
        near.by_ref().take_while(|r| r.path() == resource.path()).find(|r| r.overlaps(resource));
    if let Some(read) = read {
        return Some((read, None));
    }
    let name = write.name.as_deref().filter(|_| write.interface)?;
    Some((mentions.first(name, write.language?)?, Some(name)))
}

/// Which resources mention a name, in order.
struct Mentions<'a>(BTreeMap<&'a str, Vec<(Language, &'a Resource)>>);

impl<'a> Mentions<'a> {
    fn of(footprint: &'a Footprint) -> Self {
        let mut mentions: BTreeMap<&str, Vec<(Language, &Resource)>> = BTreeMap::new();
        for (resource, write) in &footprint.writes {
            let Some(language) = write.language else { continue };
            for name in &write.refs {
                let at = mentions.entry(name).or_default();
                // One mention for each language is enough, and keeps the table small.
                if !at.iter().any(|(earlier, _)| *earlier == language) {
                    at.push((language, resource));
                }
            }
        }
        Self(mentions)
    }

    fn first(&self, name: &str, language: Language) -> Option<&'a Resource> {
        let at = self.0.get(name)?;
        at.iter().find(|(in_language, _)| in_language.shares_names_with(language)).map(|hit| hit.1)
    }
}
