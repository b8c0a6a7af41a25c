//! Two versions of one file, compared unit by unit.
//!
//! Never panics, whatever the bytes; what cannot be taken apart is written as a whole, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use zit_model::{Resource, resource::Part};

use crate::{
    Fallback, FileFootprint, Language, UnitHash, Write, WriteKind,
    lang::{self, Analysis, Grammar},
    mention::Mentions,
    module::modules_of,
    parse::{self, parse},
    parsed::Parsed,
    plan::{Plan, Role},
    reference::{Imports, Reach, Reference, Resolver, Symbol},
    shape::{self, Break, Effect, Form, Shape, Subject, Uses, Why},
    unit::{Unit, Units, assemble},
    walk::{Keep, walk},
};

/// The largest version taken apart, in bytes. Source: `spec/footprints.md`.
pub const MAX_FILE: usize = 1024 * 1024;

/// How deep brackets of JSON and TOML may nest. Source: ours; `serde_json` takes 128.
const MAX_DATA_NESTING: usize = 100;

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
    imports: Imports,
}

impl Carved {
    /// Takes one version apart; `None` where a language names the units of two versions by looking at both.
    #[must_use]
    pub fn new(language: Language, side: Side<'_>) -> Option<Self> {
        Self::carve(language, side, None, Keep::Nothing).map(|(carved, _)| carved)
    }

    /// As [`Self::new`], faster if `before` is another version of the same file in the same language; also answers what
    /// the next version is taken apart from. That is none for what is not told apart by a syntax tree.
    #[must_use]
    pub fn after(
        language: Language,
        side: Side<'_>,
        before: Option<&Parsed>,
    ) -> Option<(Self, Option<Parsed>)> {
        Self::carve(language, side, before, Keep::Records)
    }

    fn carve(
        language: Language,
        side: Side<'_>,
        before: Option<&Parsed>,
        keep: Keep,
    ) -> Option<(Self, Option<Parsed>)> {
        let mut parsed = None;
        let carved = match lang::analysis(language) {
            Analysis::Prose(_) => return None,
            Analysis::Code(grammar) => Self::by(
                |source| {
                    let (units, imports, fresh) = code_units(grammar, source, before, keep)?;
                    parsed = Some(fresh);
                    Ok((units, imports))
                },
                side,
            ),
            Analysis::Data(units) => Self::by(|source| data_units(units, source), side),
        };
        Some((carved, parsed.filter(|_| keep == Keep::Records)))
    }

    /// How many units it has.
    #[must_use]
    pub fn n_units(&self) -> usize {
        self.units.as_ref().map_or(0, BTreeMap::len)
    }

    /// What the version declares, by unit.
    pub fn declarations(&self) -> impl Iterator<Item = Declaration<'_>> {
        let units = self.units.as_ref().ok().into_iter().flatten();
        units.filter_map(|(part, unit)| {
            let Part::Unit(unit_name) = part else { return None };
            Some(Declaration {
                unit: unit_name,
                name: unit.name.as_deref()?,
                container: unit.container.as_deref(),
                inline: &unit.inline,
                lines: unit.lines?,
                form: unit.shape.form,
                visibility: unit.shape.visibility,
                members: unit.shape.members.iter().map(|member| &*member.name).collect(),
            })
        })
    }

    /// Which of its declarations a name may mean as well as `symbol`, which is counted if it is one of them: all of
    /// the name, or with [`Reach::IfUniqueThere`] those that are members of a type of the same name, or of none.
    #[must_use]
    pub fn declarations_like(&self, symbol: &Symbol<'_>, reach: Reach) -> Alike {
        let Ok(units) = &self.units else { return Alike::default() };
        let there =
            |container: Option<&str>| reach == Reach::IfUnique || container == symbol.container;
        let mut alike = Alike::default();
        for (part, unit) in units {
            let implements = matches!(part, Part::Unit(name) if name.contains('@'));
            let own = unit.name.as_deref();
            let is_it = own == Some(symbol.name) && there(unit.container.as_deref());
            alike.declared += usize::from(is_it && !implements);
            alike.implemented += usize::from(is_it && implements);
            let members = unit.shape.members.iter();
            let members = members.filter(|member| *member.name == *symbol.name && there(own));
            alike.declared += members.count();
        }
        alike
    }

    fn by(carve: impl FnOnce(&str) -> Result<(Units, Imports), Fallback>, side: Side<'_>) -> Self {
        let text = text(side);
        let (units, imports) = match text.and_then(carve) {
            Ok((units, imports)) => (Ok(units), imports),
            Err(fallback) => (Err(fallback), Imports::default()),
        };
        Self { kind: side.kind, bytes: hash(side), text: text.map(drop), units, imports }
    }
}

/// How many declarations a name may mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    /// Declarations of their own.
    pub declared: usize,
    /// Those that implement a member of a trait.
    pub implemented: usize,
}

impl Alike {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let Self { declared, implemented } = self;
        Self { declared: declared + other.declared, implemented: implemented + other.implemented }
    }

    /// Whether they are one: what implements a trait's member counts with the trait, or, where that is declared outside
    /// of the repository, by itself.
    #[must_use]
    pub fn is_one(self) -> bool {
        self.declared == 1 || self.declared == 0 && self.implemented <= 1
    }
}

/// One declaration of a version.
#[derive(Clone, Debug)]
pub struct Declaration<'a> {
    /// The unit, as resources name it.
    pub unit: &'a str,
    /// The identifier by which other code mentions it.
    pub name: &'a str,
    /// The type that it is a member of.
    pub container: Option<&'a str>,
    /// The modules within the file that it is in, with `/` between them.
    pub inline: &'a str,
    /// First and last line, counted from one.
    pub lines: (u32, u32),
    /// What it is to those who use it.
    pub form: Form,
    /// How far it is seen; larger is wider.
    pub visibility: u8,
    /// The names of members that are no units: fields, variants.
    pub members: Vec<&'a str>,
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
        Some(Analysis::Code(_) | Analysis::Data(_)) => {
            let keep = if new.is_some() { Keep::Records } else { Keep::Nothing };
            let carved = |side: Option<Side<'_>>, before: Option<&Parsed>, keep| {
                Carved::carve(language?, side?, before, keep)
            };
            let (old, parsed) = carved(old, None, keep).unzip();
            let new = carved(new, parsed.flatten().as_ref(), Keep::Nothing);
            compare_carved(path, old.as_ref(), new.map(|(new, _)| new).as_ref())
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
        carved_writes(old, new, Paths { file, language, to: None })
    })
}

/// As [`compare`], of a file that lay at `from` and lies at `to` now.
///
/// Shape: units are compared by name, at `from`; what did not change is [`WriteKind::Moved`], with what that does to those
/// who look for it at the old place. The same units, without effects, are told at `to`.
///
/// # Source
/// `spec/footprints.md`, "Moves".
#[must_use]
pub fn compare_moved(
    from: &Resource,
    to: &Resource,
    old: Side<'_>,
    new: Side<'_>,
) -> FileFootprint {
    let carve = |path: &Resource, side| Carved::new(Language::of_path(path.path())?, side);
    if let (Some(old), Some(new)) = (carve(from, old), carve(to, new)) {
        return compare_moved_carved(from, to, &old, &new);
    }
    let units = match Language::of_path(from.path()).map(lang::analysis) {
        Some(Analysis::Prose(units)) => Some(units),
        Some(Analysis::Code(_) | Analysis::Data(_)) | None => None,
    };
    moved(from, to, Version::of(old), Version::of(new), |paths| {
        text_writes(Some(old), Some(new), paths, units)
    })
}

/// As [`compare_moved`], of versions that were taken apart as the languages of their paths are.
#[must_use]
pub fn compare_moved_carved(
    from: &Resource,
    to: &Resource,
    old: &Carved,
    new: &Carved,
) -> FileFootprint {
    let version = |carved: &Carved| Version { kind: carved.kind, bytes: carved.bytes };
    moved(from, to, version(old), version(new), |paths| carved_writes(Some(old), Some(new), paths))
}

fn moved(
    from: &Resource,
    to: &Resource,
    old: Version,
    new: Version,
    writes: impl FnOnce(Paths<'_>) -> Result<BTreeMap<Resource, Write>, Fallback>,
) -> FileFootprint {
    let (from, to) = (from.with(Part::File), to.with(Part::File));
    let language = Language::of_path(from.path());
    let (mut writes, fallback) = match writes(Paths { file: &from, language, to: Some(&to) }) {
        Ok(writes) if !writes.is_empty() => (writes, None),
        cut => {
            let fallback = cut.err().unwrap_or(Fallback::Empty);
            let mut write = file_write(language, Some(old), Some(new));
            if old == new {
                write.change = WriteKind::Moved;
            }
            (BTreeMap::from([(from.clone(), write)]), Some(fallback))
        }
    };
    let is_there = |write: &&Write| write.new.is_some();
    let there = writes.iter().filter(|(_, write)| is_there(write)).map(|(unit, write)| {
        let (effects, references) = (Vec::new(), Vec::new());
        let (names, drops) = (BTreeSet::new(), BTreeSet::new());
        let write = Write { effects, references, names, drops, ..write.clone() };
        (to.with(unit.part().clone()), write)
    });
    let there: Vec<_> = there.collect();
    writes.extend(there);
    FileFootprint { file: to, moved_from: Some(from), language, writes, fallback }
}

/// Which file is compared.
#[derive(Clone, Copy)]
struct Paths<'a> {
    file: &'a Resource,
    language: Option<Language>,
    /// Where it lies now, when it was moved.
    to: Option<&'a Resource>,
}

fn carved_writes(
    old: Option<&Carved>,
    new: Option<&Carved>,
    paths: Paths<'_>,
) -> Result<BTreeMap<Resource, Write>, Fallback> {
    old.map_or(Ok(()), |old| old.text)?;
    new.map_or(Ok(()), |new| new.text)?;
    same_mode(old.map(|old| old.kind), new.map(|new| new.kind))?;
    let none = (Units::new(), Imports::default());
    let (old, new) = (side_of(old, &none)?, side_of(new, &none)?);
    Ok(Comparison { paths, old, new }.writes())
}

fn text_writes(
    old: Option<Side<'_>>,
    new: Option<Side<'_>>,
    paths: Paths<'_>,
    units: Option<lang::UnitsOfTwo>,
) -> Result<BTreeMap<Resource, Write>, Fallback> {
    let kinds = (old.map(|old| old.kind), new.map(|new| new.kind));
    let (old, new) = (old.map(text).transpose()?, new.map(text).transpose()?);
    same_mode(kinds.0, kinds.1)?;
    let units = units.ok_or(Fallback::NoGrammar)?;
    let (old, new) = units(old.unwrap_or_default(), new.unwrap_or_default());
    let none = Imports::default();
    Ok(Comparison { paths, old: (&old, &none), new: (&new, &none) }.writes())
}

/// One version's units and imports.
type SideOf<'a> = (&'a Units, &'a Imports);

fn side_of<'a>(
    carved: Option<&'a Carved>,
    none: &'a (Units, Imports),
) -> Result<SideOf<'a>, Fallback> {
    match carved {
        None => Ok((&none.0, &none.1)),
        Some(carved) => match &carved.units {
            Ok(units) => Ok((units, &carved.imports)),
            Err(fallback) => Err(*fallback),
        },
    }
}

fn compare_texts(
    path: &Resource,
    old: Option<Side<'_>>,
    new: Option<Side<'_>>,
    units: Option<lang::UnitsOfTwo>,
) -> FileFootprint {
    footprint(path, old.map(Version::of), new.map(Version::of), |file, language| {
        text_writes(old, new, Paths { file, language, to: None }, units)
    })
}

/// What a version is, as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    kind: FileKind,
    bytes: UnitHash,
}

impl Version {
    fn of(side: Side<'_>) -> Self {
        Self { kind: side.kind, bytes: hash(side) }
    }
}

fn footprint(
    path: &Resource,
    old: Option<Version>,
    new: Option<Version>,
    writes: impl FnOnce(&Resource, Option<Language>) -> Result<BTreeMap<Resource, Write>, Fallback>,
) -> FileFootprint {
    let file = path.with(Part::File);
    let language = Language::of_path(file.path());
    let (moved_from, fallback) = (None, None);
    let mut footprint =
        FileFootprint { file, moved_from, language, writes: BTreeMap::new(), fallback };
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

fn same_mode(old: Option<FileKind>, new: Option<FileKind>) -> Result<(), Fallback> {
    match (old, new) {
        (Some(old), Some(new)) if old != new => Err(Fallback::ModeChange),
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
    let text = std::str::from_utf8(side.bytes).map_err(|_| Fallback::NotUtf8)?;
    // The mark of the byte order says nothing; readers of lines would take it for a part of a name.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn data_units(
    units: fn(&str) -> Result<Units, Fallback>,
    source: &str,
) -> Result<(Units, Imports), Fallback> {
    // A value may nest as deep as it is long, and those who read it recurse.
    if parse::nesting(source) > MAX_DATA_NESTING {
        return Err(Fallback::TooComplex);
    }
    Ok((units(source)?, Imports::default()))
}

fn code_units(
    grammar: &lang::Grammar,
    source: &str,
    before: Option<&Parsed>,
    keep: Keep,
) -> Result<(Units, Imports, Parsed), Fallback> {
    // What cannot be taken apart says so because of all its text, not because of what differs.
    let edited = before.and_then(|before| before.edited(source));
    let again = edited.and_then(|edited| parse(grammar, source, Some(&edited)).ok());
    let tree = again.map_or_else(|| parse(grammar, source, None), Ok)?;
    let mut plan = Plan::new(source);
    (grammar.carve)(&mut plan, tree.root_node());
    let known = before.map(|before| &before.records);
    let (plan, records) = walk(grammar, &tree, plan, known, keep);
    let units = assemble(plan.fragments, grammar.order);
    Ok((units, plan.imports, Parsed { source: source.into(), tree, records }))
}

/// Two versions of one file.
struct Comparison<'a> {
    paths: Paths<'a>,
    old: SideOf<'a>,
    new: SideOf<'a>,
}

impl Comparison<'_> {
    fn writes(&self) -> BTreeMap<Resource, Write> {
        let (old, new) = (self.old.0, self.new.0);
        let parts: BTreeSet<&Part> = old.keys().chain(new.keys()).collect();
        let mut writes = BTreeMap::new();
        for part in parts {
            let Some(mut write) = self.write(part, old.get(part), new.get(part)) else { continue };
            if *part == Part::Imports {
                self.imports(&mut write);
            }
            writes.insert(self.paths.file.with(part.clone()), write);
        }
        self.renamed(&mut writes);
        writes
    }

    fn write(&self, part: &Part, old: Option<&Unit>, new: Option<&Unit>) -> Option<Write> {
        let (change, mut effects) = match (old, new) {
            (None, None) => return None,
            (None, Some(new)) => (WriteKind::Added, self.added(new)),
            (Some(old), None) => (WriteKind::Removed, self.removed(old)),
            (Some(old), Some(new)) if old.whole == new.whole => {
                self.paths.to?;
                (WriteKind::Moved, Vec::new())
            }
            (Some(old), Some(new)) if old.code == new.code => (WriteKind::Docs, Vec::new()),
            (Some(old), Some(new)) => {
                let effects = self.changed(part, old, new);
                let seen = !effects.is_empty();
                (if seen { WriteKind::Signature } else { WriteKind::Body }, effects)
            }
        };
        effects.extend(old.filter(|_| new.is_some()).and_then(|old| self.elsewhere(old)));
        let either = new.or(old)?;
        let text = |unit: &Unit| Some(String::from(&*unit.signature)).filter(|t| !t.is_empty());
        Some(Write {
            change,
            old: old.map(|unit| unit.whole),
            new: new.map(|unit| unit.whole),
            effects,
            old_signature: old.and_then(text),
            new_signature: new.and_then(text),
            old_lines: old.and_then(|unit| unit.lines),
            new_lines: new.and_then(|unit| unit.lines),
            name: either.name.clone(),
            container: either.container.clone(),
            inline: either.inline.clone(),
            is_default: either.is_default,
            language: self.paths.language,
            references: self.references(old, new),
            names: new.into_iter().flat_map(|unit| unit.mentions.names()).map(Into::into).collect(),
            drops: BTreeSet::new(),
        })
    }

    fn grammar(&self) -> Option<&'static Grammar> {
        match lang::analysis(self.paths.language?) {
            Analysis::Code(grammar) => Some(grammar),
            Analysis::Prose(_) | Analysis::Data(_) => None,
        }
    }

    fn changed(&self, part: &Part, old: &Unit, new: &Unit) -> Vec<Effect> {
        let (Some(grammar), Part::Unit(_)) = (self.grammar(), part) else { return Vec::new() };
        let mut effects = shape::effects(&old.shape, &new.shape, grammar.habits);
        if new.shape.form == Form::Opaque && effects.is_empty() {
            effects = opaque(old);
        }
        let breaking = effects.iter().find(|effect| effect.breaks == Break::Breaking);
        if let Some(why) = breaking.map(|effect| effect.why).filter(|_| old.role != Role::Free) {
            effects.push(implementors(why));
        }
        self.constructed(old, &mut effects);
        effects
    }

    /// What is done to a constructor is done to whoever builds its type.
    fn constructed(&self, unit: &Unit, effects: &mut Vec<Effect>) {
        let name = unit.name.as_deref().unwrap_or_default();
        if unit.container.is_none() || !self.grammar().is_some_and(|g| g.is_constructor(name)) {
            return;
        }
        let own = effects.iter().filter(|effect| effect.subject == Subject::Unit);
        let uses = Uses::CALL.or(Uses::CONSTRUCT);
        let builds =
            |effect: &Effect| Effect { subject: Subject::Container, uses, ..effect.clone() };
        let container: Vec<_> = own.map(builds).collect();
        effects.extend(container);
    }

    /// What it does to those who look for a unit in its module that it is in another one now. Members are found by
    /// their type.
    fn elsewhere(&self, old: &Unit) -> Option<Effect> {
        let is_found_by_module = old.name.is_some() && old.container.is_none();
        (is_found_by_module && self.leaves_its_module()).then_some(Effect {
            subject: Subject::Unit,
            uses: Uses::ALL,
            breaks: Break::Breaking,
            why: Why::Moved,
        })
    }

    fn leaves_its_module(&self) -> bool {
        let (Some(to), Some(language)) = (self.paths.to, self.paths.language) else { return false };
        let now = modules_of(language, to.path());
        let before = modules_of(language, self.paths.file.path());
        language.has_modules() && before.iter().any(|module| !now.contains(module))
    }

    fn removed(&self, old: &Unit) -> Vec<Effect> {
        if self.grammar().is_none() || old.name.is_none() {
            return Vec::new();
        }
        let effect = |subject| Effect {
            subject,
            uses: Uses::ALL,
            breaks: Break::Breaking,
            why: Why::Removed,
        };
        let members = old.shape.members.iter();
        let mut effects: Vec<_> =
            members.map(|member| effect(Subject::Member(member.name.clone()))).collect();
        effects.push(effect(Subject::Unit));
        if old.role != Role::Free {
            effects.push(implementors(Why::MemberRemoved));
        }
        self.constructed(old, &mut effects);
        effects
    }

    /// What a new unit does: implementors of its container must have it now, and a constructor may ask for more than
    /// none does.
    fn added(&self, new: &Unit) -> Vec<Effect> {
        let mut effects = Vec::new();
        if new.role == Role::Required {
            effects.push(implementors(Why::MemberRequired));
        }
        let none = Shape { params: Vec::new(), ..new.shape.clone() };
        if let Some(grammar) = self.grammar() {
            let mut asks = shape::effects(&none, &new.shape, grammar.habits);
            self.constructed(new, &mut asks);
            effects.extend(asks.into_iter().filter(|effect| effect.subject == Subject::Container));
        }
        effects
    }

    /// What the file's imports do no more.
    fn imports(&self, write: &mut Write) {
        let (old, new) = (self.old.1, self.new.1);
        let gone = old.names.keys().filter(|name| !new.names.contains_key(*name));
        write.drops = gone.cloned().collect();
        let moves = self.leaves_its_module();
        let gone = |name: &str| !new.passed_on.contains(name) && !self.declares(name);
        let effect = |name: &str, why| Effect {
            subject: Subject::Member(name.into()),
            uses: Uses::ALL,
            breaks: Break::Breaking,
            why,
        };
        let effects = old.passed_on.iter().filter_map(|name| match (gone(name), moves) {
            (true, _) => Some(effect(name, Why::Removed)),
            (false, true) => Some(effect(name, Why::Moved)),
            (false, false) => None,
        });
        write.effects = effects.collect();
    }

    /// Whether the new version declares a name itself.
    fn declares(&self, name: &str) -> bool {
        self.new.0.contains_key(&Part::Unit(name.to_owned()))
    }

    /// What the new version of a unit uses more often than the old one.
    fn references(&self, old: Option<&Unit>, new: Option<&Unit>) -> Vec<Reference> {
        let (Some(language), Some(new)) = (self.paths.language, new) else { return Vec::new() };
        let none = Mentions::default();
        let mentions = new.mentions.beyond(old.map_or(&none, |old| &old.mentions));
        if mentions.is_empty() {
            return Vec::new();
        }
        let container = new.container.as_deref();
        let mut all: BTreeSet<Reference> = BTreeSet::new();
        // What is declared beside it is known to others by the old path, what it imports by the new one.
        for file in [Some(self.paths.file), self.paths.to].into_iter().flatten() {
            let resolver = Resolver::new(language, file.path(), &new.inline, self.new.1);
            all.extend(mentions.iter().filter_map(|m| resolver.resolve(m, container)));
        }
        all.into_iter().collect()
    }

    /// Tells what was removed from what has another name now: a unit that was added has its body.
    fn renamed(&self, writes: &mut BTreeMap<Resource, Write>) {
        let mut added: BTreeMap<UnitHash, usize> = BTreeMap::new();
        for (resource, _) in writes.iter().filter(|(_, write)| write.change == WriteKind::Added) {
            if let Some(unit) = self.new.0.get(resource.part()).filter(|unit| unit.has_body()) {
                *added.entry(unit.body).or_default() += 1;
            }
        }
        let gone = writes.iter_mut().filter(|(_, write)| write.change == WriteKind::Removed);
        for (resource, write) in gone {
            let body = self.old.0.get(resource.part()).filter(|unit| unit.has_body());
            if body.is_some_and(|unit| added.get(&unit.body) == Some(&1)) {
                write.change = WriteKind::Renamed;
                let renamed = write.effects.iter_mut().filter(|e| e.subject == Subject::Unit);
                renamed.for_each(|effect| effect.why = Why::Renamed);
            }
        }
    }
}

/// What a change does of which nothing more is known.
fn opaque(old: &Unit) -> Vec<Effect> {
    if old.name.is_none() {
        return Vec::new();
    }
    let (subject, uses) = (Subject::Unit, Uses::ALL);
    vec![Effect { subject, uses, breaks: Break::Breaking, why: Why::Header }]
}

fn implementors(why: Why) -> Effect {
    Effect { subject: Subject::Container, uses: Uses::EXTEND, breaks: Break::Breaking, why }
}

fn hash(side: Side<'_>) -> UnitHash {
    UnitHash::of([&[side.kind as u8][..], side.bytes])
}

fn file_write(language: Option<Language>, old: Option<Version>, new: Option<Version>) -> Write {
    Write {
        change: WriteKind::File,
        old: old.map(|version| version.bytes),
        new: new.map(|version| version.bytes),
        effects: Vec::new(),
        old_signature: None,
        new_signature: None,
        old_lines: None,
        new_lines: None,
        name: None,
        container: None,
        inline: "".into(),
        is_default: false,
        language,
        references: Vec::new(),
        names: BTreeSet::new(),
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
    fn a_moved_file_is_told_at_both_paths_and_says_what_it_cannot_tell() {
        use WriteKind::{Added, Moved, Removed};
        let (from, to) = (Resource::file("a.rs").unwrap(), Resource::file("b.rs").unwrap());
        let regular = |bytes| Side { kind: FileKind::Regular, bytes };
        let old = regular(b"fn f() {}\nfn g() { 1 }\nfn h() {}\n");
        let new = regular(b"fn f() {}\nfn g() { 2 }\n");
        let footprint = compare_moved(&from, &to, old, new);
        let shown: Vec<_> =
            footprint.writes.iter().map(|(r, w)| format!("{} {r}", w.change.as_str())).collect();
        let expected =
            ["moved a.rs#f", "body a.rs#g", "removed a.rs#h", "moved b.rs#f", "body b.rs#g"];
        assert_eq!(shown, expected);
        for (bytes, why) in [(&b"fn f("[..], Fallback::DoesNotParse), (b"// a\n", Fallback::Empty)]
        {
            let footprint = compare_moved(&from, &to, regular(bytes), regular(bytes));
            assert_eq!(footprint.fallback, Some(why));
            assert!(footprint.writes.values().all(|write| write.change == WriteKind::Moved));
            assert!(footprint.writes.keys().eq([&from, &to]));
            let fallbacks = crate::Footprint::from_files([footprint]).fallbacks;
            assert!(fallbacks.keys().eq([&from, &to]));
        }
        let (from, to) = (Resource::file("a.md").unwrap(), Resource::file("b.md").unwrap());
        let footprint = compare_moved(&from, &to, regular(b"# A\n# B\n"), regular(b"# A\n# C\n"));
        let changes: Vec<_> = footprint.writes.values().map(|write| write.change).collect();
        assert_eq!(changes, [Moved, Removed, Added, Moved, Added]);
    }

    #[test]
    fn lines_and_signatures_tell_where_and_what() {
        let old = b"use a;\n\n/// Doc.\npub fn f(\n    a: u8, // why\n) -> u8 {\n    1\n}\n";
        let new = b"use a;\n\n/// Doc.\npub fn f(\n    a: u16,\n) -> u8 {\n    1\n}\n";
        let path = Resource::file("x.rs").unwrap();
        let footprint = compare(&path, side(FileKind::Regular, old), side(FileKind::Regular, new));
        let write = &footprint.writes[&"x.rs#f".parse().unwrap()];
        assert_eq!(write.new_lines, Some((4, 8)));
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
