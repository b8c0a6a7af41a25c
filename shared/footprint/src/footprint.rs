//! The answer's types: writes, fallbacks, the footprint of one file and of a whole change.
//!
//! They hold facts only; the text for people is made at the edges.

use std::collections::{BTreeMap, BTreeSet};

use zit_model::Resource;

use crate::{
    Language, UnitHash,
    reference::{Reference, Symbol},
    shape::{Break, Effect, Subject},
};

/// Longest signature text kept, in characters.
pub(crate) const MAX_SIGNATURE: usize = 200;

/// In which way a unit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteKind {
    /// The unit is new.
    Added,
    /// The unit is gone.
    Removed,
    /// It is gone, and another of the same file has its body.
    Renamed,
    /// What those who use it depend on differs.
    Signature,
    /// Its code differs in other ways.
    Body,
    /// Only its file's path differs.
    Moved,
    /// Only the documentation, attributes or decorators directly above it differ.
    Docs,
    /// The whole file, because it could not be taken apart.
    File,
}

impl WriteKind {
    /// The kind in one lower-case word, as documents spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Signature => "signature",
            Self::Body => "body",
            Self::Moved => "moved",
            Self::Docs => "docs",
            Self::File => "file",
        }
    }
}

/// Why a changed file stayed at file level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fallback {
    /// The file's name belongs to no language known here.
    NoGrammar,
    /// A version has NUL bytes.
    Binary,
    /// A version is not UTF-8.
    NotUtf8,
    /// A version is larger than [`crate::MAX_FILE`] bytes.
    TooLarge,
    /// A version is a symlink or a submodule.
    NotRegular,
    /// The file became executable, or ceased to be.
    ModeChange,
    /// A version has syntax errors.
    DoesNotParse,
    /// Parsing a version took more steps than its size allows.
    TooComplex,
    /// The file appeared or went away, and holds nothing that has a name.
    Empty,
    /// The change has more files than are taken apart of one.
    TooMany,
}

impl Fallback {
    /// The reason in kebab case, as documents spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoGrammar => "no-grammar",
            Self::Binary => "binary",
            Self::NotUtf8 => "not-utf8",
            Self::TooLarge => "too-large",
            Self::NotRegular => "not-regular",
            Self::ModeChange => "mode-change",
            Self::DoesNotParse => "does-not-parse",
            Self::TooComplex => "too-complex",
            Self::Empty => "empty",
            Self::TooMany => "too-many",
        }
    }
}

/// One written resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// In which way.
    pub change: WriteKind,
    /// The unit's hash before; `None` when it is new.
    pub old: Option<UnitHash>,
    /// The unit's hash after; `None` when it is gone.
    pub new: Option<UnitHash>,
    /// What it does to those who use the unit.
    pub effects: Vec<Effect>,
    /// The declaration before, on one line, at most 200 characters.
    pub old_signature: Option<String>,
    /// The declaration after, on one line, at most 200 characters.
    pub new_signature: Option<String>,
    /// First and last line before, counted from one.
    pub old_lines: Option<(u32, u32)>,
    /// First and last line after, counted from one.
    pub new_lines: Option<(u32, u32)>,
    /// The identifier by which other code mentions the unit.
    pub name: Option<Box<str>>,
    /// The type that it is a member of.
    pub container: Option<Box<str>>,
    /// The modules within its file that it is in, outermost first, with `/` between them.
    pub inline: Box<str>,
    /// Whether it is what its module gives to those who import no name.
    pub is_default: bool,
    /// The language the unit is written in.
    pub language: Option<Language>,
    /// What the new version uses that the old one did not, or not as often.
    pub references: Vec<Reference>,
    /// Every name that the new version mentions, but members of values.
    pub names: BTreeSet<Box<str>>,
    /// Of the file's imports: the names they bind no more, which code of the same file may rely on.
    pub drops: BTreeSet<Box<str>>,
}

impl Write {
    /// Whether code that uses the unit may notice.
    #[must_use]
    pub fn is_noticed(&self) -> bool {
        !self.effects.is_empty() || !self.drops.is_empty()
    }

    /// Whether code that uses the unit may be wrong now.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        self.effects.iter().any(|effect| effect.breaks == Break::Breaking) || !self.drops.is_empty()
    }

    /// The declarations that the write alters for others, each with what it does to whose uses.
    pub fn symbols<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (Symbol<'a>, &'a Effect)> {
        self.effects.iter().filter_map(move |effect| {
            let own = self.name.as_deref();
            let (name, container) = match &effect.subject {
                Subject::Unit => (own?, self.container.as_deref()),
                // What a file passes on is no member of anything.
                Subject::Member(name) => (&**name, own),
                Subject::Container => (self.container.as_deref()?, None),
            };
            let is_default = self.is_default && effect.subject == Subject::Unit;
            let (language, inline) = (self.language?, &*self.inline);
            let is_passed_on = own.is_none();
            let symbol =
                Symbol { name, container, language, path, inline, is_default, is_passed_on };
            Some((symbol, effect))
        })
    }
}

/// What one file's change touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFootprint {
    /// The file compared.
    pub file: Resource,
    /// Where it lay before, when it was moved.
    pub moved_from: Option<Resource>,
    /// The language of its name.
    pub language: Option<Language>,
    /// What is written, all within the file; of one that was moved, at both paths.
    pub writes: BTreeMap<Resource, Write>,
    /// Why the whole file is written, when it is.
    pub fallback: Option<Fallback>,
}

/// What a change touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// What it writes.
    pub writes: BTreeMap<Resource, Write>,
    /// What its author declares to have read.
    pub reads: BTreeSet<Resource>,
    /// Files that stayed at file level, and why.
    pub fallbacks: BTreeMap<Resource, Fallback>,
}

impl Footprint {
    /// Gathers the footprints of a change's files. `reads` starts empty.
    #[must_use]
    pub fn from_files(files: impl IntoIterator<Item = FileFootprint>) -> Self {
        let mut footprint = Self::default();
        for file in files {
            if let Some(fallback) = file.fallback {
                let files = file.moved_from.into_iter().chain([file.file]);
                footprint.fallbacks.extend(files.map(|file| (file, fallback)));
            }
            footprint.writes.extend(file.writes);
        }
        footprint
    }

    /// Whether it writes and reads nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.reads.is_empty()
    }

    /// The writes that code elsewhere may notice.
    pub fn signatures(&self) -> impl Iterator<Item = (&Resource, &Write)> {
        self.writes.iter().filter(|(_, write)| write.is_noticed())
    }
}
