//! Two versions of one file, compared unit by unit.
//!
//! Never panics, whatever the bytes; what cannot be taken apart is written as a whole, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use zit_model::{Resource, resource::Part};

use crate::{
    Fallback, FileFootprint, Language, UnitHash, Write, WriteKind,
    lang::{self, Analysis, UnitsOfBoth},
    parse::parse,
    plan::Plan,
    unit::{Unit, Units, assemble},
    walk::walk,
};

/// The largest version taken apart, in bytes. Source: `spec/footprints.md`.
pub const MAX_FILE: usize = 1024 * 1024;

/// What a tree entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// Mode 100644.
    Regular,
    /// Mode 100755.
    Executable,
    /// Mode 120000.
    Symlink,
    /// Mode 160000; the bytes are the commit's id.
    Submodule,
}

/// One version of a file.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What its tree entry is.
    pub kind: FileKind,
    /// The blob.
    pub bytes: &'a [u8],
}

/// One version of a source file, taken apart: all that comparing it needs, without its bytes.
///
/// It says what the bytes say in one language, wherever the file lies and whatever it is compared with.
#[derive(Clone, Debug)]
pub struct Carved {
    kind: FileKind,
    bytes: UnitHash,
    /// Why it is no text of a size that is taken apart, when it is none.
    text: Result<(), Fallback>,
    units: Result<Units, Fallback>,
}

impl Carved {
    /// Takes one version apart; `None` where a language names the units of two versions by looking at both.
    #[must_use]
    pub fn new(language: Language, side: Side<'_>) -> Option<Self> {
        match lang::analysis(language) {
            Analysis::Prose(_) => None,
            Analysis::Code(grammar) => Some(Self::by(grammar, side)),
        }
    }

    /// How many units it has.
    #[must_use]
    pub fn n_units(&self) -> usize {
        self.units.as_ref().map_or(0, BTreeMap::len)
    }

    fn by(grammar: &lang::Grammar, side: Side<'_>) -> Self {
        let text = text(side);
        let units = text.and_then(|source| code_units(grammar, source));
        Self { kind: side.kind, bytes: hash(side), text: text.map(drop), units }
    }
}

/// Compares two versions of the file `path`; `None` is a version in which it does not exist.
///
/// Shape: equal versions write nothing; so do versions that differ in white space, comments or item order only.
/// Of `path`, only the file counts, not the part.
///
/// # Source
/// `spec/footprints.md`, "Writes".
#[must_use]
pub fn compare(path: &Resource, old: Option<Side<'_>>, new: Option<Side<'_>>) -> FileFootprint {
    let language = Language::of_path(path.path());
    match language.map(lang::analysis) {
        Some(Analysis::Code(grammar)) => {
            let carved = |side| Carved::by(grammar, side);
            compare_carved(path, old.map(carved).as_ref(), new.map(carved).as_ref())
        }
        Some(Analysis::Prose(units)) => compare_texts(path, old, new, Some(units)),
        None => compare_texts(path, old, new, None),
    }
}

/// As [`compare`], of versions that were taken apart as the language of `path` is.
#[must_use]
pub fn compare_carved(
    path: &Resource,
    old: Option<&Carved>,
    new: Option<&Carved>,
) -> FileFootprint {
    let version = |carved: &Carved| Version { kind: carved.kind, bytes: carved.bytes };
    let (old_version, new_version) = (old.map(version), new.map(version));
    footprint(path, old_version, new_version, |file, language| {
        old.map_or(Ok(()), |old| old.text)?;
        new.map_or(Ok(()), |new| new.text)?;
        same_mode(old_version, new_version)?;
        let none = Units::new();
        Ok(differences(file, language, units_of(old, &none)?, units_of(new, &none)?))
    })
}

fn units_of<'a>(carved: Option<&'a Carved>, none: &'a Units) -> Result<&'a Units, Fallback> {
    carved.map_or(Ok(none), |carved| carved.units.as_ref().map_err(|fallback| *fallback))
}

fn compare_texts(
    path: &Resource,
    old: Option<Side<'_>>,
    new: Option<Side<'_>>,
    units: Option<UnitsOfBoth>,
) -> FileFootprint {
    let version = |side: Side<'_>| Version { kind: side.kind, bytes: hash(side) };
    let (old_version, new_version) = (old.map(version), new.map(version));
    footprint(path, old_version, new_version, |file, language| {
        let (old, new) = (old.map(text).transpose()?, new.map(text).transpose()?);
        same_mode(old_version, new_version)?;
        let units = units.ok_or(Fallback::NoGrammar)?;
        let (old, new) = units(old.unwrap_or_default(), new.unwrap_or_default());
        Ok(differences(file, language, &old, &new))
    })
}

/// What a version is, as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    kind: FileKind,
    bytes: UnitHash,
}

fn footprint(
    path: &Resource,
    old: Option<Version>,
    new: Option<Version>,
    writes: impl FnOnce(&Resource, Option<Language>) -> Result<BTreeMap<Resource, Write>, Fallback>,
) -> FileFootprint {
    let file = path.with(Part::File);
    let language = Language::of_path(file.path());
    let mut footprint = FileFootprint { file, language, writes: BTreeMap::new(), fallback: None };
    if old == new {
        return footprint;
    }
    let one_sided = old.is_none() || new.is_none();
    match writes(&footprint.file, language) {
        Ok(writes) if !(one_sided && writes.is_empty()) => footprint.writes = writes,
        cut => {
            let write = file_write(language, old, new);
            footprint.writes.insert(footprint.file.clone(), write);
            footprint.fallback = Some(cut.err().unwrap_or(Fallback::Empty));
        }
    }
    footprint
}

fn same_mode(old: Option<Version>, new: Option<Version>) -> Result<(), Fallback> {
    match (old, new) {
        (Some(old), Some(new)) if old.kind != new.kind => Err(Fallback::ModeChange),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn text(side: Side<'_>) -> Result<&str, Fallback> {
    match side.kind {
        FileKind::Regular | FileKind::Executable => {}
        FileKind::Symlink | FileKind::Submodule => return Err(Fallback::NotRegular),
    }
    if side.bytes.len() > MAX_FILE {
        return Err(Fallback::TooLarge);
    }
    if side.bytes.contains(&0) {
        return Err(Fallback::Binary);
    }
    std::str::from_utf8(side.bytes).map_err(|_| Fallback::NotUtf8)
}

fn code_units(grammar: &lang::Grammar, source: &str) -> Result<Units, Fallback> {
    let tree = parse(grammar, source)?;
    let mut plan = Plan::new(source);
    (grammar.carve)(&mut plan, tree.root_node());
    Ok(assemble(walk(grammar, &tree, plan), grammar.order))
}

fn differences(
    file: &Resource,
    language: Option<Language>,
    old: &Units,
    new: &Units,
) -> BTreeMap<Resource, Write> {
    let parts: BTreeSet<&Part> = old.keys().chain(new.keys()).collect();
    parts
        .into_iter()
        .filter_map(|part| {
            let mut write = unit_write(language, old.get(part), new.get(part))?;
            if *part == Part::Imports {
                write.drops = dropped(old.get(part), new.get(part));
                write.interface = !write.drops.is_empty();
            }
            Some((file.with(part.clone()), write))
        })
        .collect()
}

fn unit_write(language: Option<Language>, old: Option<&Unit>, new: Option<&Unit>) -> Option<Write> {
    let (change, interface) = match (old, new) {
        (None, None) => return None,
        (None, Some(new)) => (WriteKind::Added, new.required),
        (Some(_), None) => (WriteKind::Removed, true),
        (Some(old), Some(new)) if old.whole == new.whole => return None,
        (Some(old), Some(new)) if old.interface != new.interface => (WriteKind::Interface, true),
        (Some(old), Some(new)) if old.code != new.code => (WriteKind::Body, false),
        (Some(_), Some(_)) => (WriteKind::Docs, false),
    };
    let either = new.or(old)?;
    let signature = |unit: &Unit| Some(unit.signature.clone()).filter(|text| !text.is_empty());
    Some(Write {
        change,
        old: old.map(|unit| unit.whole),
        new: new.map(|unit| unit.whole),
        interface,
        old_signature: old.and_then(signature),
        new_signature: new.and_then(signature),
        lines: either.lines,
        name: either.mentioned_as.clone(),
        language,
        refs: new.into_iter().flat_map(Unit::refs).map(str::to_owned).collect(),
        drops: BTreeSet::new(),
    })
}

/// What the old version mentions and the new one does not.
fn dropped(old: Option<&Unit>, new: Option<&Unit>) -> BTreeSet<String> {
    let kept: BTreeSet<&str> = new.into_iter().flat_map(Unit::refs).collect();
    let old = old.into_iter().flat_map(Unit::refs);
    old.filter(|name| !kept.contains(name)).map(str::to_owned).collect()
}

fn hash(side: Side<'_>) -> UnitHash {
    UnitHash::of([&[side.kind as u8][..], side.bytes])
}

fn file_write(language: Option<Language>, old: Option<Version>, new: Option<Version>) -> Write {
    Write {
        change: WriteKind::File,
        old: old.map(|version| version.bytes),
        new: new.map(|version| version.bytes),
        interface: false,
        old_signature: None,
        new_signature: None,
        lines: None,
        name: None,
        language,
        refs: BTreeSet::new(),
        drops: BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "compare takes versions that may not exist")]
    fn side(kind: FileKind, bytes: &[u8]) -> Option<Side<'_>> {
        Some(Side { kind, bytes })
    }

    #[track_caller]
    fn fallback(path: &str, old: Option<Side<'_>>, new: Option<Side<'_>>) -> Option<Fallback> {
        let path = Resource::file(path).unwrap();
        let footprint = compare(&path, old, new);
        let is_whole = footprint.writes.keys().eq([&path]);
        assert_eq!(is_whole, footprint.fallback.is_some(), "{footprint:?}");
        footprint.fallback
    }

    #[test]
    fn whatever_cannot_be_taken_apart_is_the_whole_file_and_says_why() {
        use FileKind::{Executable, Regular, Submodule, Symlink};
        let good = side(Regular, b"fn f() {}\n");
        let large = vec![b'\n'; MAX_FILE + 1];
        for (path, old, new, why) in [
            ("x.bin", good, None, Fallback::NoGrammar),
            ("x.rs", good, side(Regular, b"fn f() { \0 }"), Fallback::Binary),
            ("x.rs", good, side(Regular, b"fn f() { \xff }"), Fallback::NotUtf8),
            ("x.rs", good, side(Regular, &large), Fallback::TooLarge),
            ("x.rs", good, side(Symlink, b"y.rs"), Fallback::NotRegular),
            ("x.rs", side(Submodule, b"1"), side(Submodule, b"2"), Fallback::NotRegular),
            ("x.rs", good, side(Executable, b"fn f() {}\n"), Fallback::ModeChange),
            ("x.rs", good, side(Regular, b"fn f( {}\n"), Fallback::DoesNotParse),
            ("x.rs", side(Regular, b"fn f( {}\n"), good, Fallback::DoesNotParse),
            ("x.rs", None, side(Regular, b""), Fallback::Empty),
            ("x.rs", side(Regular, b"// a\n"), None, Fallback::Empty),
        ] {
            assert_eq!(fallback(path, old, new), Some(why), "{path} {why:?}");
        }
        assert_eq!(fallback("x.rs", good, None), None);
        assert_eq!(fallback("x.rs", None, None), None);
    }

    #[test]
    fn a_file_that_loses_its_last_unit_without_going_away_is_no_whole_write() {
        let (old, new) = (side(FileKind::Regular, b"fn f() {}\n"), side(FileKind::Regular, b""));
        let footprint = compare(&Resource::file("x.rs").unwrap(), old, new);
        assert_eq!(footprint.fallback, None);
        assert_eq!(
            footprint.writes.values().map(|w| w.change).collect::<Vec<_>>(),
            [WriteKind::Removed]
        );
    }

    #[test]
    fn depth_costs_no_stack() {
        for (path, open, close, around) in [
            ("x.rs", "(", ")", ("fn f() { ", " }")),
            ("x.rs", "mod m {", "}", ("", "struct S;")),
            ("x.py", "[", "]", ("x = ", "\n")),
            ("x.ts", "{", "}", ("function f() {", "}")),
            ("x.go", "(", ")", ("package a\nvar x = ", "\n")),
            ("x.md", "> ", "", ("", "")),
        ] {
            let inner = if open.starts_with("mod") { "" } else { "1" };
            let deep =
                around.0.to_owned() + &open.repeat(1900) + inner + &close.repeat(1900) + around.1;
            assert_eq!(
                fallback(path, None, side(FileKind::Regular, deep.as_bytes())),
                None,
                "{path}"
            );
            let deeper = open.repeat(20_000) + &close.repeat(20_000);
            let path = Resource::file(path).unwrap();
            let footprint = compare(&path, None, side(FileKind::Regular, deeper.as_bytes()));
            assert!(!footprint.writes.is_empty(), "{path}");
        }
    }

    #[test]
    fn lines_and_signatures_tell_where_and_what() {
        let old = b"use a;\n\n/// Doc.\npub fn f(\n    a: u8, // why\n) -> u8 {\n    1\n}\n";
        let new = b"use a;\n\n/// Doc.\npub fn f(\n    a: u16,\n) -> u8 {\n    1\n}\n";
        let path = Resource::file("x.rs").unwrap();
        let footprint = compare(&path, side(FileKind::Regular, old), side(FileKind::Regular, new));
        let write = &footprint.writes[&"x.rs#f".parse().unwrap()];
        assert_eq!(write.lines, Some((4, 8)));
        assert_eq!(write.old_signature.as_deref(), Some("pub fn f( a: u8, ) -> u8"));
        assert_eq!(write.new_signature.as_deref(), Some("pub fn f( a: u16, ) -> u8"));
        assert_eq!(write.name.as_deref(), Some("f"));
    }

    #[test]
    fn a_signature_is_bounded() {
        let long = format!("fn f({}) {{}}", "a: u8, ".repeat(500));
        let path = Resource::file("x.rs").unwrap();
        let footprint = compare(&path, None, side(FileKind::Regular, long.as_bytes()));
        let signature = footprint.writes.values().next().unwrap().new_signature.clone().unwrap();
        assert_eq!(signature.chars().count(), 200);
    }
}
