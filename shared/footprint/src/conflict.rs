//! Whether two changes meet: by writing the same thing, or by one starting to use what the other alters.
//!
//! Use: [`conflicts`]. What a name means is told from the two footprints alone where that is possible; where it is not,
//! [`Surroundings`] answers for the rest of the repository. Never reads anything by itself.
//!
//! Source: `spec/footprints.md`, "Conflicts".

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zit_model::{Resource, resource::Part};

use crate::{
    Footprint, Language, Layout, Write, WriteKind, lang,
    reference::{Reach, Reference, Symbol},
    shape::{Break, Effect, Why},
};

/// How two footprints meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConflictKind {
    /// Both write it.
    WriteWrite,
    /// Mine reads or uses what theirs writes.
    ReadWrite,
    /// Mine writes what theirs reads or uses.
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

/// Whether a text merge may settle a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prose {
    /// Both write prose, or both write imports: whoever merges the text decides.
    LeaveToTextMerge,
    /// The conflict stands.
    Stands,
}

/// Whether a conflict is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Weight {
    /// What one side wrote may be wrong on top of the other.
    Refuses,
    /// Worth knowing: old uses stay right, or it cannot be told whether the name means the symbol.
    Informs,
}

/// Why two writes meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Because {
    /// They write the same, or one writes the whole of what the other writes a part of.
    Overlap,
    /// They write the same, but other parts of it, and neither uses what the other makes there.
    Apart,
    /// Both add a declaration of one name to one package.
    SameName,
    /// One declares to have read what the other writes.
    Declared,
    /// One starts to use a name of its file that the other stops importing.
    Import {
        /// The name.
        name: String,
    },
    /// One starts to use a name whose declaration the other alters.
    Reference {
        /// The name.
        name: String,
        /// What the alteration is.
        why: Why,
        /// Whether old uses stay right.
        breaks: Break,
        /// How sure it is that the name means the declaration.
        reach: Reach,
    },
    /// One mentions a name whose declaration the other alters, whatever it means.
    Name {
        /// The name.
        name: String,
    },
}

/// One way in which two footprints meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// How.
    pub kind: ConflictKind,
    /// What mine writes or reads.
    pub mine: Resource,
    /// What theirs writes or reads.
    pub theirs: Resource,
    /// Whether it refuses.
    pub weight: Weight,
    /// Why.
    pub because: Because,
}

impl Conflict {
    /// The name through which they meet, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.because {
            Because::Overlap | Because::Apart | Because::SameName | Because::Declared => None,
            Because::Import { name } | Because::Reference { name, .. } | Because::Name { name } => {
                Some(name)
            }
        }
    }

    /// Whether a text merge may settle it. Source: `spec/footprints.md`, "Prose and imports".
    #[must_use]
    pub fn prose(&self) -> Prose {
        let is_prose = |of: &Resource| lang::is_prose(of.path());
        let is_import = |of: &Resource| *of.part() == Part::Imports;
        let both = |by: fn(&Resource) -> bool| by(&self.mine) && by(&self.theirs);
        match self.kind {
            ConflictKind::WriteWrite if both(is_prose) || both(is_import) => {
                Prose::LeaveToTextMerge
            }
            ConflictKind::WriteWrite | ConflictKind::ReadWrite | ConflictKind::WriteRead => {
                Prose::Stands
            }
        }
    }
}

/// What is to be known of the repository beside two changes, as it was before either.
pub trait Surroundings {
    /// Its modules and packages.
    fn layout(&self) -> &Layout;

    /// Whether no other declaration of the symbol's language family has its name: none that is a member of a type of
    /// the same name (or of none, as the symbol), or, with [`Reach::IfUnique`], none at all.
    fn is_unique(&self, symbol: &Symbol<'_>, reach: Reach) -> bool;

    /// Whether what the two sides alter in a unit that both write lies [apart](crate::apart()). Who does not have both
    /// sides' versions cannot tell.
    fn is_apart(&self, unit: &Resource) -> bool {
        let _ = unit;
        false
    }
}

/// A repository of which nothing is known: every name is taken to be unique.
#[derive(Debug, Default)]
pub struct Unknown(Layout);

impl Surroundings for Unknown {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn is_unique(&self, _: &Symbol<'_>, _: Reach) -> bool {
        true
    }
}

/// Where and how `mine` and `theirs` meet, sorted. For each write of one side at most one conflict with the other's
/// uses is answered, the gravest.
///
/// Symmetric but for [`ConflictKind`]: exchanging the sides exchanges `mine` and `theirs`, read and write.
///
/// # Source
/// `spec/footprints.md`, "Conflicts".
#[must_use]
pub fn conflicts(mine: &Footprint, theirs: &Footprint, around: &dyn Surroundings) -> Vec<Conflict> {
    let uses: &Uses<'_> = &|index, write, path| index.gravest(write, path, around);
    meet(mine, theirs, uses, &|unit| around.is_apart(unit))
}

/// As [`conflicts`], but whatever a name means: a mention of the name of anything whose declaration differs refuses.
///
/// # Source
/// `spec/footprints.md`, "Names alone".
#[must_use]
pub fn conflicts_by_name(mine: &Footprint, theirs: &Footprint) -> Vec<Conflict> {
    meet(mine, theirs, &|index, write, _| index.by_name(write), &|_| false)
}

/// What of a side uses a write of the other.
type Uses<'f> = dyn for<'a> Fn(&Index<'a>, &Write, &str) -> Option<Use<'a>> + 'f;

fn meet(
    mine: &Footprint,
    theirs: &Footprint,
    uses: &Uses<'_>,
    is_apart: &dyn Fn(&Resource) -> bool,
) -> Vec<Conflict> {
    let mut found = Vec::new();
    let my_index = Index::of(mine);
    let mut apart = BTreeSet::new();
    for (resource, write) in theirs.writes.iter().filter(|(r, w)| !same_edit(mine, r, w)) {
        if let Some((own, because)) = same_write(mine, resource, write) {
            let is_apart = both_alter(mine, resource, write) && is_apart(resource);
            let (weight, because) = if is_apart {
                (Weight::Informs, Because::Apart)
            } else {
                (Weight::Refuses, because)
            };
            // Who writes the whole of a file meets each of its parts, whichever side is which.
            let whole = (*resource.part() == Part::File && own.part() != resource.part())
                .then(|| written_in(mine, resource).filter(|part| *part != own));
            for own in std::iter::once(own).chain(whole.into_iter().flatten()) {
                let (kind, because) = (ConflictKind::WriteWrite, because.clone());
                let (mine, theirs) = (own.clone(), resource.clone());
                found.push(Conflict { kind, mine, theirs, weight, because });
            }
            if !is_apart {
                continue;
            }
            apart.insert(resource);
        }
        if let Some(Use { by, weight, because }) = relies_on(mine, &my_index, resource, write, uses)
        {
            let (mine, theirs) = (by.clone(), resource.clone());
            let kind = ConflictKind::ReadWrite;
            found.push(Conflict { kind, mine, theirs, weight, because });
        }
    }
    let their_index = Index::of(theirs);
    for (resource, write) in mine.writes.iter().filter(|(r, w)| !same_edit(theirs, r, w)) {
        if (apart.contains(resource) || same_write(theirs, resource, write).is_none())
            && let Some(Use { by, weight, because }) =
                relies_on(theirs, &their_index, resource, write, uses)
        {
            let (mine, theirs) = (resource.clone(), by.clone());
            let kind = ConflictKind::WriteRead;
            found.push(Conflict { kind, mine, theirs, weight, because });
        }
    }
    found.sort();
    found
}

/// Whether `other` writes the very resource to the same effect.
fn same_edit(other: &Footprint, resource: &Resource, write: &Write) -> bool {
    other.writes.get(resource).is_some_and(|own| own.new == write.new)
}

/// Whether `other` writes the very resource, and it is there before and after both writes.
fn both_alter(other: &Footprint, resource: &Resource, write: &Write) -> bool {
    let is_part = matches!(resource.part(), Part::Unit(_) | Part::Module);
    is_part
        && other.writes.get(resource).is_some_and(|own| {
            own.old.is_some() && own.old == write.old && own.new.is_some() && write.new.is_some()
        })
}

/// What of a footprint writes the file of `resource`, or a part of it.
fn written_in<'a>(
    footprint: &'a Footprint,
    resource: &Resource,
) -> impl Iterator<Item = &'a Resource> {
    // The file sorts before its parts, so the range holds exactly what can overlap.
    let near = footprint.writes.range(resource.with(Part::File)..);
    near.take_while(|(own, _)| own.path() == resource.path())
        .filter(|(_, write)| write.change != WriteKind::Moved)
        .map(|(own, _)| own)
}

/// What of a footprint writes the same as `write`, and why it is the same.
fn same_write<'a>(
    footprint: &'a Footprint,
    resource: &Resource,
    write: &Write,
) -> Option<(&'a Resource, Because)> {
    if write.change == WriteKind::Moved {
        return None;
    }
    if let Some(own) = written_in(footprint, resource).find(|own| own.overlaps(resource)) {
        return Some((own, Because::Overlap));
    }
    if write.language != Some(Language::Go) || write.change != WriteKind::Added {
        return None;
    }
    let package = |of: &Resource| of.path().rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let (unit, folder) = (resource.unit()?, package(resource));
    let numbered = |name: &str| matches!(name.split('#').next(), Some("init"));
    let twin = footprint.writes.iter().find(|(own, own_write)| {
        own_write.change == WriteKind::Added
            && own.unit() == Some(unit)
            && own.path() != resource.path()
            && own_write.language == Some(Language::Go)
            && package(own) == folder
            && !numbered(unit)
    });
    twin.map(|(own, _)| (own, Because::SameName))
}

/// A use of something that the other side writes.
struct Use<'a> {
    by: &'a Resource,
    weight: Weight,
    because: Because,
}

/// What of `footprint` relies on a resource that the other side writes.
fn relies_on<'a>(
    footprint: &'a Footprint,
    index: &Index<'a>,
    resource: &Resource,
    write: &Write,
    uses: &Uses<'_>,
) -> Option<Use<'a>> {
    if write.change != WriteKind::Moved {
        let mut near = footprint.reads.range(resource.with(Part::File)..);
        let read = near
            .by_ref()
            .take_while(|read| read.path() == resource.path())
            .find(|read| read.overlaps(resource));
        if let Some(by) = read {
            return Some(Use { by, weight: Weight::Refuses, because: Because::Declared });
        }
    }
    relies_on_import(footprint, resource, write).or_else(|| uses(index, write, resource.path()))
}

/// What of the same file starts to use a name that its imports drop.
fn relies_on_import<'a>(
    footprint: &'a Footprint,
    imports: &Resource,
    write: &Write,
) -> Option<Use<'a>> {
    if write.drops.is_empty() {
        return None;
    }
    let near = footprint.writes.range(imports.with(Part::File)..);
    let mut near = near.take_while(|(own, _)| own.path() == imports.path());
    near.find_map(|(by, own)| {
        let reference = own.references.iter().find(|r| write.drops.contains(&r.written))?;
        let name = reference.written.to_string();
        Some(Use { by, weight: Weight::Refuses, because: Because::Import { name } })
    })
}

/// What a footprint starts to use, by name.
struct Index<'a> {
    references: HashMap<&'a str, Vec<(&'a Resource, &'a Write, &'a Reference)>>,
    names: BTreeMap<&'a str, Vec<(Language, &'a Resource)>>,
}

impl<'a> Index<'a> {
    fn of(footprint: &'a Footprint) -> Self {
        let mut references: HashMap<_, Vec<_>> = HashMap::new();
        let mut names: BTreeMap<&str, Vec<(Language, &Resource)>> = BTreeMap::new();
        for (resource, write) in &footprint.writes {
            for reference in &write.references {
                references.entry(&*reference.name).or_default().push((resource, write, reference));
            }
            let Some(language) = write.language else { continue };
            for name in &write.names {
                names.entry(name).or_default().push((language, resource));
            }
        }
        Self { references, names }
    }

    /// The gravest use of what `write`, in the file at `path`, alters; of equal ones code before an import.
    fn gravest(&self, write: &Write, path: &str, around: &dyn Surroundings) -> Option<Use<'a>> {
        let rank = |found: &Use<'_>| (found.weight, *found.by.part() == Part::Imports);
        let mut gravest: Option<Use<'a>> = None;
        for (symbol, effect) in write.symbols(path) {
            let named = self.references.get(symbol.name).into_iter().flatten();
            let default = self.references.get("default").into_iter().flatten();
            for (by, own, reference) in named.chain(default.filter(|_| symbol.is_default)) {
                // What is added to a moved file moves with it.
                if effect.why == Why::Moved && by.path() == path {
                    continue;
                }
                let Some(found) = met(by, own, reference, &symbol, effect, around) else {
                    continue;
                };
                if gravest.as_ref().is_none_or(|known| rank(&found) < rank(known)) {
                    gravest = Some(found);
                }
                if gravest.as_ref().is_some_and(|g| rank(g) == (Weight::Refuses, false)) {
                    return gravest;
                }
            }
        }
        gravest
    }

    /// The first mention of the name of what `write` declares differently; of a method, of its type's.
    fn by_name(&self, write: &Write) -> Option<Use<'a>> {
        let declares = match write.change {
            WriteKind::Added | WriteKind::Removed | WriteKind::Renamed | WriteKind::Signature => {
                true
            }
            WriteKind::Body | WriteKind::Moved | WriteKind::Docs | WriteKind::File => false,
        };
        let name = write.container.as_deref().or(write.name.as_deref()).filter(|_| declares)?;
        let language = write.language?;
        let (_, by) =
            self.names.get(name)?.iter().find(|(other, _)| other.shares_names_with(language))?;
        let because = Because::Name { name: name.to_owned() };
        Some(Use { by, weight: Weight::Refuses, because })
    }
}

fn met<'a>(
    by: &'a Resource,
    own: &Write,
    reference: &Reference,
    symbol: &Symbol<'_>,
    effect: &Effect,
    around: &dyn Surroundings,
) -> Option<Use<'a>> {
    if !own.language?.shares_names_with(symbol.language) || !reference.uses.meets(effect.uses) {
        return None;
    }
    let reach = reference.reaches(symbol, around.layout());
    let certain = match reach {
        Reach::No => return None,
        Reach::Yes => true,
        Reach::IfUnique | Reach::IfUniqueThere => {
            effect.breaks == Break::Breaking && around.is_unique(symbol, reach)
        }
    };
    let refuses = certain && effect.breaks == Break::Breaking;
    let weight = if refuses { Weight::Refuses } else { Weight::Informs };
    let (name, Effect { why, breaks, .. }) = (symbol.name.to_owned(), effect);
    let because = Because::Reference { name, why: *why, breaks: *breaks, reach };
    Some(Use { by, weight, because })
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
            let name = conflict.name().unwrap_or("-");
            let Conflict { kind, mine, theirs, .. } = conflict;
            format!("{} {mine} {theirs} {name}", kind.as_str())
        };
        let found = conflicts(mine, theirs, &Unknown::default());
        let found = found.iter().filter(|conflict| conflict.weight == Weight::Refuses);
        let found: Vec<_> = found.map(shown).collect();
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
        let user = change(&[(
            "y.rs",
            "use crate::x::a;\nfn c() {}\n",
            "use crate::x::a;\nfn c() { a() }\n",
        )]);
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
        let user =
            change(&[("y.rs", "use crate::x::T;\n", "use crate::x::T;\nfn c() { T::m(&T) }\n")]);
        check(&user, &changed, &["read-write y.rs#c x.rs#T::m m"]);
    }

    #[test]
    fn by_names_alone_any_mention_meets_whatever_is_declared_differently() {
        let wider = change(&[("x.rs", BASE, "fn a(x: u8) {}\nfn b() {}\n")]);
        let added = change(&[("z.rs", BASE, "fn a() {}\nfn b() {}\nfn c() {}\n")]);
        let body = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() {}\n")]);
        // It has an `a` and a `c` of its own, which are meant.
        let user = change(&[("y.rs", "fn u() {}\n", "use q::{a, c};\nfn u() { a(); c() }\n")]);
        let other = change(&[("y.py", "def u(): pass\n", "def u(): a()\n")]);
        let by_name = |theirs: &Footprint, mine: &Footprint| {
            let named = |conflict: &Conflict| (conflict.kind, conflict.name().map(str::to_owned));
            conflicts_by_name(mine, theirs).iter().map(named).collect::<Vec<_>>()
        };
        let read = |name: &str| vec![(ConflictKind::ReadWrite, Some(name.to_owned()))];
        assert_eq!(by_name(&wider, &user), read("a"));
        assert_eq!(by_name(&added, &user), read("c"));
        assert_eq!(by_name(&user, &wider), [(ConflictKind::WriteRead, Some("a".to_owned()))]);
        assert_eq!(by_name(&body, &user), []);
        assert_eq!(by_name(&wider, &other), []);
        assert_eq!(conflicts(&user, &added, &Unknown::default()), []);
    }

    #[test]
    fn a_new_required_member_meets_a_new_implementor() {
        let theirs = change(&[("x.rs", "trait T {}\n", "trait T { fn m(&self); }\n")]);
        let mine =
            change(&[("y.rs", "struct S;\n", "use super::x::T;\nstruct S;\nimpl T for S {}\n")]);
        check(&mine, &theirs, &["read-write y.rs#S x.rs#T::m T"]);
    }

    #[test]
    fn a_whole_file_meets_every_part_of_it() {
        let mine = change(&[("x.rs", BASE, "fn a( {}\n")]);
        let theirs = change(&[("x.rs", BASE, "fn a() { 1; }\nfn b() { 2; }\n")]);
        check(&mine, &theirs, &["write-write x.rs x.rs#a -", "write-write x.rs x.rs#b -"]);
        check(&theirs, &mine, &["write-write x.rs#a x.rs -", "write-write x.rs#b x.rs -"]);
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
        let found = conflicts(&mine, &theirs, &Unknown::default());
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|conflict| conflict.prose() == Prose::LeaveToTextMerge));
        let whole = change(&[("x.rs", "use a::b;\n", "use (\n")]);
        assert!(
            conflicts(&whole, &theirs, &Unknown::default())
                .iter()
                .all(|conflict| conflict.prose() == Prose::Stands)
        );
    }
}
