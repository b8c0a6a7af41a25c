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
    if let Some(found) = relies_on_import(footprint, resource, write) {
        return Some(found);
    }
    let name = write.name.as_deref().filter(|_| write.interface)?;
    Some((mentions.first(name, write.language?)?, Some(name)))
}

/// What of the same file mentions a name that its imports drop, and the name.
fn relies_on_import<'a, 'w>(
    footprint: &'a Footprint,
    imports: &Resource,
    write: &'w Write,
) -> Option<(&'a Resource, Option<&'w str>)> {
    let near = footprint.writes.range(imports.with(Part::File)..);
    near.take_while(|(own, _)| !write.drops.is_empty() && own.path() == imports.path()).find_map(
        |(own, own_write)| {
            let name = write.drops.iter().find(|name| own_write.refs.contains(*name))?;
            Some((own, Some(name.as_str())))
        },
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileKind, Side, compare};

    fn change(files: &[(&str, &str, &str)]) -> Footprint {
        Footprint::from_files(files.iter().map(|(path, old, new)| {
            let side = |text| Some(Side { kind: FileKind::Regular, bytes: str::as_bytes(text) });
            compare(&Resource::file(path).unwrap(), side(old), side(new))
        }))
    }

    #[track_caller]
    fn check(mine: &Footprint, theirs: &Footprint, expected: &[&str]) {
        let shown = |conflict: &Conflict| {
            let name = conflict.name.as_deref().unwrap_or("-");
            let Conflict { kind, mine, theirs, .. } = conflict;
            format!("{} {mine} {theirs} {name}", kind.as_str())
        };
        let found: Vec<_> = conflicts(mine, theirs).iter().map(shown).collect();
        assert_eq!(found, expected);
    }

    const BASE: &str = "fn a() {}\nfn b() {}\n";

    #[test]
    fn two_functions_of_one_file_compose() {
        let mine = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() {}\n")]);
        let theirs = change(&[("x.rs", BASE, "fn a() {}\nfn b() { 2; }\n")]);
        check(&mine, &theirs, &[]);
    }

    #[test]
    fn two_edits_of_one_function_are_write_write() {
        let mine = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() {}\n")]);
        let theirs = change(&[("x.rs", BASE, "fn a() { 2; }\nfn b() {}\n")]);
        check(&mine, &theirs, &["write-write x.rs#a x.rs#a -"]);
    }

    #[test]
    fn the_same_edit_twice_is_no_conflict_even_where_its_interface_is_used() {
        let new = "fn a(x: u8) { 1; }\nfn b() { a(1) }\n";
        let both = change(&[("x.rs", BASE, new)]);
        check(&both, &both, &[]);
        let gone = change(&[("x.rs", BASE, "fn b() {}\n")]);
        check(&gone, &gone, &[]);
    }

    #[test]
    fn a_new_call_meets_a_changed_or_removed_callee_in_both_directions() {
        let user = change(&[("y.rs", "fn c() {}\n", "fn c() { a() }\n")]);
        for new in ["fn a(x: u8) {}\nfn b() {}\n", "fn b() {}\n"] {
            let changed = change(&[("x.rs", BASE, new)]);
            check(&user, &changed, &["read-write y.rs#c x.rs#a a"]);
            check(&changed, &user, &["write-read x.rs#a y.rs#c a"]);
        }
    }

    #[test]
    fn a_changed_body_meets_no_caller() {
        let user = change(&[("y.rs", "fn c() {}\n", "fn c() { a() }\n")]);
        let changed = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() {}\n")]);
        check(&user, &changed, &[]);
    }

    #[test]
    fn a_changed_method_is_met_by_a_mention_of_its_type() {
        let old = "struct T;\nimpl T { fn m(&self) {} }\n";
        let changed = change(&[("x.rs", old, "struct T;\nimpl T { fn m(&self, x: u8) {} }\n")]);
        let user = change(&[("y.rs", "fn c() {}\n", "fn c() { T::m(&T) }\n")]);
        check(&user, &changed, &["read-write y.rs#c x.rs#T::m T"]);
    }

    #[test]
    fn a_new_required_member_meets_a_new_implementor() {
        let theirs = change(&[("x.rs", "trait T {}\n", "trait T { fn m(&self); }\n")]);
        let mine = change(&[("y.rs", "struct S;\n", "struct S;\nimpl T for S {}\n")]);
        check(&mine, &theirs, &["read-write y.rs#S x.rs#T::m T"]);
    }

    #[test]
    fn a_whole_file_meets_every_part_of_it() {
        let mine = change(&[("x.rs", BASE, "fn a( {}\n")]);
        let theirs = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() { 2; }\n")]);
        check(&mine, &theirs, &["write-write x.rs x.rs#a -", "write-write x.rs x.rs#b -"]);
        check(&theirs, &mine, &["write-write x.rs#a x.rs -"]);
    }

    #[test]
    fn a_dropped_import_meets_a_new_use_in_the_same_file_only() {
        let base = "use a::helper;\nfn c() {}\n";
        let drops = change(&[("x.rs", base, "fn c() {}\n")]);
        let uses = "use a::helper;\nfn c() { helper() }\n";
        let same = change(&[("x.rs", base, uses)]);
        check(&same, &drops, &["read-write x.rs#c x.rs#(imports) helper"]);
        check(&drops, &same, &["write-read x.rs#(imports) x.rs#c helper"]);
        check(&change(&[("y.rs", base, uses)]), &drops, &[]);
    }

    #[test]
    fn a_declared_read_meets_a_write_of_it() {
        let mut mine = change(&[("y.rs", "fn c() {}\n", "fn c() { 1; }\n")]);
        mine.reads.insert("x.rs".parse().unwrap());
        let theirs = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() {}\n")]);
        check(&mine, &theirs, &["read-write x.rs x.rs#a -"]);
        check(&theirs, &mine, &["write-read x.rs#a x.rs -"]);
    }

    #[test]
    fn names_do_not_meet_across_families_of_languages() {
        let user = change(&[("y.py", "def c(): pass\n", "def c(): a()\n")]);
        let changed = change(&[("x.rs", BASE, "fn b() {}\n")]);
        check(&user, &changed, &[]);
    }

    #[test]
    fn writes_of_prose_and_of_imports_are_left_to_the_text_merge() {
        let base = "# A\none\n";
        let mine = change(&[("x.md", base, "# A\ntwo\n"), ("x.rs", "use a::b;\n", "use c::d;\n")]);
        let theirs =
            change(&[("x.md", base, "# A\nthree\n"), ("x.rs", "use a::b;\n", "use e::f;\n")]);
        let found = conflicts(&mine, &theirs);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|conflict| conflict.prose() == Prose::LeaveToTextMerge));
        let whole = change(&[("x.rs", "use a::b;\n", "use (\n")]);
        assert!(
            conflicts(&whole, &theirs).iter().all(|conflict| conflict.prose() == Prose::Stands)
        );
    }
}
