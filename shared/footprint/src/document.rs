//! A footprint as the JSON shapes that people and other tools read. The only place that knows them.
//!
//! Use: [`to_json`], for people who ask, or [`to_json_within`]. `spec/footprint.schema.json` says what each key means; a test holds it against real documents.
//!
//! Every list is sorted, so the same footprint is the same text. A document has at most [`MAX_JSON`] bytes: lists
//! are filled in the order of the document, and [`FootprintDocument::truncated`] says of what is left out how much there
//! was. Never read back to judge anything.
//!
//! Source: `spec/footprints.md`, "Document".

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;

use crate::{
    Break, Effect, Footprint, Language, Module, Place, Reference, Subject, VERSION, Why, Write,
    module::{join, modules_of},
};

/// The version of the shapes.
pub const FORMAT: u32 = 2;

/// The longest document, in bytes. Source: `spec/footprints.md`, "Document".
pub const MAX_JSON: usize = 1 << 20;

/// How many uses are told of one write. Source: as [`MAX_JSON`].
pub const MAX_USES: usize = 64;

/// How many places are told that one name may be declared in. Source: as [`MAX_JSON`].
pub const MAX_PLACES: usize = 8;

/// What a document takes beside its lists, in bytes: keys, versions and counts, with room to spare.
const ENVELOPE: usize = 512;

/// A footprint for a wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FootprintDocument {
    /// [`FORMAT`].
    pub format: u32,
    /// [`VERSION`] of the algorithm.
    pub version: u32,
    /// How much of each list is left out, where anything is.
    #[serde(skip_serializing_if = "Truncated::is_nothing")]
    pub truncated: Truncated,
    /// Every file written, and why it stayed at file level if it did.
    pub files: Vec<FileDocument>,
    /// What the author declares to have read.
    pub reads: Vec<String>,
    /// The resources among the writes that code elsewhere may notice.
    pub signatures: Vec<String>,
    /// What is written, by resource.
    pub writes: Vec<WriteDocument>,
    /// Every identifier mentioned by what is written.
    pub refs: Vec<String>,
}

/// How many entries are left out, by the list that they belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Of `files`.
    #[serde(skip_serializing_if = "is_zero")]
    pub files: usize,
    /// Of `reads`.
    #[serde(skip_serializing_if = "is_zero")]
    pub reads: usize,
    /// Of `signatures`.
    #[serde(skip_serializing_if = "is_zero")]
    pub signatures: usize,
    /// Of `writes`.
    #[serde(skip_serializing_if = "is_zero")]
    pub writes: usize,
    /// Of the `uses` of those writes that are there.
    #[serde(skip_serializing_if = "is_zero")]
    pub uses: usize,
    /// Of `refs`.
    #[serde(skip_serializing_if = "is_zero")]
    pub refs: usize,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteDocument {
    /// The resource, canonical.
    pub resource: String,
    /// In which way it is written, one lower-case word.
    pub change: &'static str,
    /// Whether code elsewhere may notice.
    pub interface: bool,
    /// Whether code that uses it may be wrong now.
    pub breaking: bool,
    /// The unit's language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
    /// By which other code mentions the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type that it is a member of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The module that declares it, a path of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The unit's hash before, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The unit's hash after, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The declaration before, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_signature: Option<String>,
    /// The declaration after, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_signature: Option<String>,
    /// First and last line, from one: after, or before if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// What it does to those who use the unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectDocument>,
    /// Names that a file's imports bind no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<String>,
    /// What it starts to use; at most [`MAX_USES`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<UseDocument>,
}

/// What a write does to some uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectDocument {
    /// `unit`, `member` or `container`: whose uses.
    pub subject: &'static str,
    /// The member's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Which uses: kinds, or `any` alone.
    pub on: Vec<&'static str>,
    /// Whether they may be wrong now.
    pub breaking: bool,
    /// Why, in kebab case.
    pub why: &'static str,
}

/// A name that a write starts to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UseDocument {
    /// The name, as the place where it is declared calls it.
    pub name: String,
    /// The first name that the code writes, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Kinds of use.
    pub kinds: Vec<&'static str>,
    /// Where it may be declared; at most [`MAX_PLACES`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceDocument>,
    /// Why there are no places, in kebab case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<&'static str>,
}

/// Where a name may be declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceDocument {
    /// The module, a path of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The module, by a name that the repository's manifests place, with `/` between its parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The type or inline module within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// One file that has writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDocument {
    /// The path, without escapes.
    pub path: String,
    /// Why the whole file is written, in kebab case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<&'static str>,
}

/// A footprint as one line of JSON of at most [`MAX_JSON`] bytes, its newline included.
#[must_use]
pub fn to_json(footprint: &Footprint) -> String {
    to_json_within(footprint, MAX_JSON)
}

/// As [`to_json`], of at most `limit` bytes, which are not less than 512.
#[must_use]
pub fn to_json_within(footprint: &Footprint, limit: usize) -> String {
    let mut line = json(&FootprintDocument::within(footprint, limit));
    line.push('\n');
    line
}

impl FootprintDocument {
    /// As much of a footprint as fits into `limit` bytes of JSON.
    fn within(footprint: &Footprint, limit: usize) -> Self {
        let mut room = Room { left: limit.saturating_sub(ENVELOPE), is_full: false };
        let (files, reads) = (files(footprint), &footprint.reads);
        let file = |(path, fallback): (&str, Option<&'static str>)| FileDocument {
            path: path.to_owned(),
            fallback,
        };
        let (files, more_files) = room.fill(files.into_iter(), file);
        let (reads, more_reads) = room.fill(reads.iter(), ToString::to_string);
        let signatures = footprint.signatures().map(|(resource, _)| resource);
        let (signatures, more_signatures) = room.fill(signatures, ToString::to_string);
        let mut more_uses = 0;
        let (writes, more_writes) = room.fill(footprint.writes.iter(), |(resource, write)| {
            more_uses += write.references.len().saturating_sub(MAX_USES);
            WriteDocument::of(resource, write)
        });
        let refs: BTreeSet<&str> =
            footprint.writes.values().flat_map(|write| &write.names).map(|name| &**name).collect();
        let (refs, more_refs) = room.fill(refs.into_iter(), str::to_owned);
        let truncated = Truncated {
            files: more_files,
            reads: more_reads,
            signatures: more_signatures,
            writes: more_writes,
            uses: more_uses,
            refs: more_refs,
        };
        let (format, version) = (FORMAT, VERSION);
        Self { format, version, truncated, files, reads, signatures, writes, refs }
    }
}

impl Truncated {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Every file written, and why it stayed at file level.
fn files(footprint: &Footprint) -> BTreeMap<&str, Option<&'static str>> {
    let mut files: BTreeMap<&str, Option<&'static str>> =
        footprint.writes.keys().map(|resource| (resource.path(), None)).collect();
    for (resource, fallback) in &footprint.fallbacks {
        files.insert(resource.path(), Some(fallback.as_str()));
    }
    files
}

impl WriteDocument {
    fn of(resource: &zit_model::Resource, write: &Write) -> Self {
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Self {
            resource: resource.to_string(),
            change: write.change.as_str(),
            interface: write.is_noticed(),
            breaking: write.is_breaking(),
            language: write.language.map(Language::as_str),
            name: owned(&write.name),
            container: owned(&write.container),
            module: module(resource.path(), write),
            old: write.old.map(|hash| hash.to_string()),
            new: write.new.map(|hash| hash.to_string()),
            old_signature: write.old_signature.clone(),
            new_signature: write.new_signature.clone(),
            lines: write.new_lines.or(write.old_lines),
            effects: write.effects.iter().map(EffectDocument::from).collect(),
            drops: write.drops.iter().map(ToString::to_string).collect(),
            uses: write.references.iter().take(MAX_USES).map(UseDocument::from).collect(),
        }
    }
}

/// The module that declares what is written, where its language has modules.
fn module(path: &str, write: &Write) -> Option<String> {
    let language = write.language.filter(|language| language.has_modules())?;
    write.name.as_ref()?;
    let file = modules_of(language, path).into_iter().next()?;
    Some(if write.inline.is_empty() { file } else { join(&file, &write.inline) })
}

impl From<&Effect> for EffectDocument {
    fn from(effect: &Effect) -> Self {
        let (subject, member) = match &effect.subject {
            Subject::Unit => ("unit", None),
            Subject::Member(name) => ("member", Some(name.to_string())),
            Subject::Container => ("container", None),
        };
        let breaking = effect.breaks == Break::Breaking;
        Self { subject, member, on: effect.uses.words(), breaking, why: why(effect.why) }
    }
}

impl From<&Reference> for UseDocument {
    fn from(reference: &Reference) -> Self {
        let is_other = reference.written != reference.name;
        Self {
            name: reference.name.to_string(),
            written: is_other.then(|| reference.written.to_string()),
            kinds: reference.uses.words(),
            places: reference.places.iter().take(MAX_PLACES).map(PlaceDocument::from).collect(),
            unresolved: reference.places.is_empty().then_some("type-not-known"),
        }
    }
}

impl From<&Place> for PlaceDocument {
    fn from(place: &Place) -> Self {
        let (module, package) = match &place.module {
            Module::At(path) => (Some(path.clone()), None),
            Module::Named(name) => (None, Some(name.clone())),
        };
        Self { module, package, container: place.container.as_deref().map(str::to_owned) }
    }
}

/// A reason in kebab case.
fn why(why: Why) -> &'static str {
    match why {
        Why::Removed => "removed",
        Why::Renamed => "renamed",
        Why::Moved => "moved",
        Why::Narrowed => "narrowed",
        Why::Widened => "widened",
        Why::Header => "header",
        Why::Parameters => "parameters",
        Why::OptionalParameter => "optional-parameter",
        Why::Default => "default",
        Why::Result => "result",
        Why::Annotated => "annotated",
        Why::Value => "value",
        Why::Member => "member",
        Why::MemberRemoved => "member-removed",
        Why::MemberRequired => "member-required",
        Why::MemberAdded => "member-added",
        Why::Reordered => "reordered",
    }
}

/// What is left of a document's size.
struct Room {
    left: usize,
    /// Something did not fit: what follows it is left out too.
    is_full: bool,
}

impl Room {
    /// The first of `all` that fit, and how many do not. What does not fit is not converted.
    fn fill<A, T: Serialize>(
        &mut self,
        mut all: impl Iterator<Item = A>,
        mut convert: impl FnMut(A) -> T,
    ) -> (Vec<T>, usize) {
        let mut kept = Vec::new();
        while !self.is_full {
            let Some(next) = all.next() else { return (kept, 0) };
            let next = convert(next);
            // With the comma after it.
            let size = size(&next) + 1;
            let Some(left) = self.left.checked_sub(size) else {
                self.is_full = true;
                return (kept, 1 + all.count());
            };
            self.left = left;
            kept.push(next);
        }
        (kept, all.count())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and lists are JSON")
}

/// How many bytes a value is as JSON.
fn size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("strings, numbers and lists are JSON");
    count.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}
