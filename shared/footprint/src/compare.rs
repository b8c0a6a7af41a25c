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
            let write = unit_write(language, old.get(part), new.get(part))?;
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
    })
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
    }
}
