//! Two versions of one file, compared unit by unit.
//!
//! Never panics, whatever the bytes; what cannot be taken apart is written as a whole, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use zit_model::{Resource, resource::Part};

use crate::{
    Fallback, FileFootprint, Language, UnitHash, Write, WriteKind,
    lang::{self, Analysis},
    parse::parse,
    plan::Plan,
    unit::{Unit, assemble},
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

/// Compares two versions of the file `path`; `None` is a version in which it does not exist.
///
/// Shape: equal versions write nothing; so do versions that differ in white space, comments or item order only.
/// Of `path`, only the file counts, not the part.
///
/// # Source
/// `spec/footprints.md`, "Writes".
#[must_use]
pub fn compare(path: &Resource, old: Option<Side<'_>>, new: Option<Side<'_>>) -> FileFootprint {
    let file = path.with(Part::File);
    let language = Language::of_path(file.path());
    let mut footprint = FileFootprint { file, language, writes: BTreeMap::new(), fallback: None };
    if same(old, new) {
        return footprint;
    }
    match writes_by_unit(&footprint.file, language, old, new) {
        Ok(writes) => footprint.writes = writes,
        Err(fallback) => {
            let write = file_write(language, old, new);
            footprint.writes.insert(footprint.file.clone(), write);
            footprint.fallback = Some(fallback);
        }
    }
    footprint
}

fn same(old: Option<Side<'_>>, new: Option<Side<'_>>) -> bool {
    match (old, new) {
        (None, None) => true,
        (Some(old), Some(new)) => old.kind == new.kind && old.bytes == new.bytes,
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn writes_by_unit(
    file: &Resource,
    language: Option<Language>,
    old: Option<Side<'_>>,
    new: Option<Side<'_>>,
) -> Result<BTreeMap<Resource, Write>, Fallback> {
    let old_text = old.map(text).transpose()?;
    let new_text = new.map(text).transpose()?;
    if let (Some(old), Some(new)) = (old, new)
        && old.kind != new.kind
    {
        return Err(Fallback::ModeChange);
    }
    let language = language.ok_or(Fallback::NoGrammar)?;
    let (old_units, new_units) = match lang::analysis(language) {
        Analysis::Prose(units) => units(old_text.unwrap_or_default(), new_text.unwrap_or_default()),
        Analysis::Code(grammar) => (code_units(grammar, old_text)?, code_units(grammar, new_text)?),
    };
    let writes = differences(file, language, &old_units, &new_units);
    let one_sided = old.is_none() || new.is_none();
    if one_sided && writes.is_empty() { Err(Fallback::Empty) } else { Ok(writes) }
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

fn code_units<'s>(
    grammar: &lang::Grammar,
    source: Option<&'s str>,
) -> Result<BTreeMap<Part, Unit<'s>>, Fallback> {
    let Some(source) = source else { return Ok(BTreeMap::new()) };
    let tree = parse(grammar, source)?;
    let mut plan = Plan::new(source);
    (grammar.carve)(&mut plan, tree.root_node());
    Ok(assemble(walk(grammar, &tree, plan), grammar.order))
}

fn differences(
    file: &Resource,
    language: Language,
    old: &BTreeMap<Part, Unit<'_>>,
    new: &BTreeMap<Part, Unit<'_>>,
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

fn unit_write(language: Language, old: Option<&Unit<'_>>, new: Option<&Unit<'_>>) -> Option<Write> {
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
    let signature = |unit: &Unit<'_>| Some(unit.signature.clone()).filter(|text| !text.is_empty());
    Some(Write {
        change,
        old: old.map(|unit| unit.whole),
        new: new.map(|unit| unit.whole),
        interface,
        old_signature: old.and_then(signature),
        new_signature: new.and_then(signature),
        lines: either.lines,
        name: either.mentioned_as.clone(),
        language: Some(language),
        refs: new.into_iter().flat_map(|unit| &unit.refs).map(|&name| name.to_owned()).collect(),
        drops: BTreeSet::new(),
    })
}

/// What the old version mentions and the new one does not.
fn dropped(old: Option<&Unit<'_>>, new: Option<&Unit<'_>>) -> BTreeSet<String> {
    let old = old.into_iter().flat_map(|unit| &unit.refs);
    let gone = old.filter(|name| new.is_none_or(|unit| !unit.refs.contains(*name)));
    gone.map(|&name| name.to_owned()).collect()
}

fn file_write(language: Option<Language>, old: Option<Side<'_>>, new: Option<Side<'_>>) -> Write {
    let hash = |side: Side<'_>| UnitHash::of([&[side.kind as u8][..], side.bytes]);
    Write {
        change: WriteKind::File,
        old: old.map(hash),
        new: new.map(hash),
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
