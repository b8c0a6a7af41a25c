//! References: what code names without binding it, and whether that is a changed symbol.
//!
//! A mention is what one version of a file says, wherever the file lies: a name, what stands before it, how it is used.
//! Together with the file's [`Imports`] and its path it becomes a [`Reference`]: the places where the name may be
//! declared. [`Reference::reaches`] tells whether a [`Symbol`] is what is meant: yes, no, or only if no other symbol of
//! the repository has its name. Never looks at a syntax tree.
//!
//! Source: `spec/footprints.md`, "Names".

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Language,
    mention::Mention,
    module::{Layout, Module, join, modules_of, relative},
    shape::Uses,
};

/// What a file imports, as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Imports {
    /// By the name they bind.
    pub names: BTreeMap<Box<str>, Import>,
    /// Modules of which every name is bound.
    pub globs: Vec<Source>,
    /// Modules that the file declares below itself: Rust's `mod x;`.
    pub children: Vec<Box<str>>,
    /// Imported names that others may import from this file.
    pub passed_on: BTreeSet<Box<str>>,
}

/// One imported name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Where it comes from.
    pub source: Source,
    /// Its name there; `None` for the module itself, `default` for TypeScript's default export.
    pub name: Option<Box<str>>,
}

/// A module as an import statement writes it, without its language's punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A path from the file's folder: TypeScript's `./a`.
    FromFolder(Box<str>),
    /// So many levels above the file's own module, then a path: Rust's `super::a` is one level, `self::a` none; Python's
    /// `.a` is one level.
    Above(usize, Box<str>),
    /// A path from the root of the file's crate: Rust's `crate::a`.
    FromCrate(Box<str>),
    /// A name that starts with a package.
    Package(Box<str>),
}

/// What a reference may mean.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The first name that the code writes: the name itself, or what stands before it.
    pub written: Box<str>,
    /// The name, as the place where it is declared calls it.
    pub name: Box<str>,
    /// How it is used.
    pub uses: Uses,
    /// Where it may be declared; empty for a member of a value whose type is not known.
    pub places: Vec<Place>,
}

/// A place where a name may be declared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The module.
    pub module: Module,
    /// The type or inline module within it, if any.
    pub container: Option<Box<str>>,
    /// Whether the module may pass on what another one declares, because the name was imported from it.
    pub passes_on: bool,
}

/// A declaration that a change alters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The name by which other code mentions it.
    pub name: &'a str,
    /// The type or inline module that it is a member of.
    pub container: Option<&'a str>,
    /// The language it is written in.
    pub language: Language,
    /// The file it stands in.
    pub path: &'a str,
    /// The modules within the file that it is in, outermost first, with `/` between them.
    pub inline: &'a str,
    /// Whether it is what its module gives to those who import no name.
    pub is_default: bool,
    /// Whether its file only passes on what another one declares.
    pub is_passed_on: bool,
}

/// Whether a reference means a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// It means something else.
    No,
    /// It does, if no other declaration of the repository has that name, whatever it is a member of.
    IfUnique,
    /// It does, if no other member of that name is in a type, or outside of types, of that name.
    IfUniqueThere,
    /// It does.
    Yes,
}

/// Turns what a part of a file mentions into references.
pub(crate) struct Resolver<'a> {
    language: Language,
    path: &'a str,
    imports: &'a Imports,
    /// The module that bare names are declared in.
    own: String,
    /// The module that the file is.
    file: String,
}

impl<'a> Resolver<'a> {
    /// The resolver of code that is in the modules `inline` of the file at `path`.
    pub(crate) fn new(
        language: Language,
        path: &'a str,
        inline: &str,
        imports: &'a Imports,
    ) -> Self {
        let file = modules_of(language, path).into_iter().next().unwrap_or_default();
        let own = if inline.is_empty() { file.clone() } else { join(&file, inline) };
        Self { language, path, imports, own, file }
    }

    /// Where a mention's name may be declared; `None` when that is outside the repository for certain. `container` is
    /// the type that the mentioning code belongs to.
    pub(crate) fn resolve(
        &self,
        mention: &Mention<'_>,
        container: Option<&str>,
    ) -> Option<Reference> {
        let (name, uses): (Box<str>, _) = (mention.name.into(), mention.uses);
        let Some(path) = mention.path(container) else {
            return Some(Reference { written: name.clone(), name, uses, places: Vec::new() });
        };
        let written = path.first().cloned().unwrap_or_else(|| name.clone());
        let (name, places) = match path.split_first() {
            None => self.bare(mention.name),
            Some((first, rest)) => (name, self.qualified(first, rest)),
        };
        (!places.is_empty()).then_some(Reference { written, name, uses, places })
    }

    fn own(&self) -> Module {
        Module::At(self.own.clone())
    }

    /// A name without anything before it: imported, or of the file's own module, or of a module imported whole.
    fn bare(&self, name: &str) -> (Box<str>, Vec<Place>) {
        if let Some(import) = self.imports.names.get(name) {
            let Some(module) = self.module(&import.source) else {
                return (name.into(), Vec::new());
            };
            return match &import.name {
                Some(original) => (original.clone(), within(&module, &[], true)),
                None => (name.into(), Vec::new()),
            };
        }
        (name.into(), self.own_and_globs(&[]))
    }

    fn qualified(&self, first: &str, rest: &[Box<str>]) -> Vec<Place> {
        if let Some(import) = self.imports.names.get(first) {
            let Some(module) = self.module(&import.source) else { return Vec::new() };
            let names = import.name.iter().chain(rest).cloned().collect::<Vec<_>>();
            return within(&module, &names, true);
        }
        let all =
            || std::iter::once(Box::from(first)).chain(rest.iter().cloned()).collect::<Vec<_>>();
        if self.language.family() != Language::Rust {
            return self.own_and_globs(&all());
        }
        match first {
            "crate" => self
                .module(&Source::FromCrate("".into()))
                .map_or_else(Vec::new, |m| within(&m, rest, true)),
            "self" => within(&self.own(), rest, true),
            "super" => {
                let depth = 1 + rest.iter().take_while(|part| &***part == "super").count();
                let above = (0..depth).try_fold(self.own.clone(), |module, _| parent(&module));
                let rest = rest.get(depth - 1..).unwrap_or_default();
                above.map_or_else(Vec::new, |module| within(&Module::At(module), rest, true))
            }
            _ if self.imports.children.iter().any(|child| &**child == first) => {
                within(&self.own(), &all(), true)
            }
            _ if first.starts_with(char::is_uppercase) => self.own_and_globs(&all()),
            _ => {
                // A crate, or a module declared inline in this file.
                let mut places = within(&Module::Named(first.to_owned()), rest, true);
                places.extend(within(&self.own(), &all(), true));
                places
            }
        }
    }

    fn own_and_globs(&self, names: &[Box<str>]) -> Vec<Place> {
        let mut places = within(&self.own(), names, false);
        let globs = self.imports.globs.iter().filter_map(|source| self.module(source));
        places.extend(globs.flat_map(|module| within(&module, names, true)));
        places
    }

    /// The module that an import statement of this file means; `None` when it leaves the repository.
    fn module(&self, source: &Source) -> Option<Module> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match source {
            Source::FromFolder(path) => {
                relative(folder, path).map(without_extension).map(Module::At)
            }
            Source::Above(levels, path) => {
                let mut module = self.base_of_levels();
                for _ in 0..*levels {
                    module = parent(&module)?;
                }
                Some(Module::At(if path.is_empty() { module } else { join(&module, path) }))
            }
            Source::FromCrate(path) => {
                let root = self.crate_root();
                Some(Module::At(if path.is_empty() { root } else { join(&root, path) }))
            }
            Source::Package(path) => {
                let first = path.split('/').next().unwrap_or_default();
                let is_child = self.imports.children.iter().any(|child| &**child == first);
                let at = || Module::At(join(&self.file, path));
                Some(if is_child { at() } else { Module::Named(path.to_string()) })
            }
        }
    }

    /// The module that levels are counted from. A Python package's own module is its `__init__`, one level below it.
    fn base_of_levels(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let is_package = name.starts_with("__init__.");
        if is_package { join(&self.file, "__init__") } else { self.file.clone() }
    }

    /// The folder of the crate's root: the nearest `src`, else the file's folder for a program of its own.
    fn crate_root(&self) -> String {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut at = folder;
        loop {
            if at == "src" || at.ends_with("/src") {
                return at.to_owned();
            }
            match at.rsplit_once('/') {
                Some((above, _)) => at = above,
                None => return folder.to_owned(),
            }
        }
    }
}

fn parent(module: &str) -> Option<String> {
    (!module.is_empty()).then(|| module.rsplit_once('/').map_or("", |(above, _)| above).to_owned())
}

/// A specifier's path without the extension of a source file.
fn without_extension(path: String) -> String {
    let Some((stem, extension)) = path.rsplit_once('.') else { return path };
    if matches!(extension, "ts" | "tsx" | "js" | "jsx" | "mjs" | "cjs" | "mts" | "cts") {
        return stem.to_owned();
    }
    path
}

/// The places that `names` below a module may be: all of them modules, or the last one a type or an inline module.
fn within(module: &Module, names: &[Box<str>], passes_on: bool) -> Vec<Place> {
    let Some((last, before)) = names.split_last() else {
        return vec![Place { module: module.clone(), container: None, passes_on }];
    };
    let outer = before.iter().fold(module.clone(), |module, name| module.child(name));
    let inner = Place { module: outer.child(last), container: None, passes_on };
    vec![inner, Place { module: outer, container: Some(last.clone()), passes_on }]
}

impl Reference {
    /// Whether the reference means `symbol`.
    #[must_use]
    pub fn reaches(&self, symbol: &Symbol<'_>, layout: &Layout) -> Reach {
        let named = *self.name == *symbol.name || symbol.is_default && *self.name == *"default";
        if !named {
            return Reach::No;
        }
        if self.places.is_empty() {
            return if symbol.container.is_some() { Reach::IfUnique } else { Reach::No };
        }
        let mut modules = modules_of(symbol.language, symbol.path);
        if !symbol.inline.is_empty() {
            for module in &mut modules {
                *module = join(module, symbol.inline);
            }
        }
        let reach = |place: &Place| place.reaches(symbol, &modules, layout);
        match self.places.iter().map(reach).max().unwrap_or(Reach::No) {
            // What others declare has other names to be unique among.
            Reach::IfUnique | Reach::IfUniqueThere if symbol.is_passed_on => Reach::No,
            reach @ (Reach::No | Reach::IfUnique | Reach::IfUniqueThere | Reach::Yes) => reach,
        }
    }
}

impl Place {
    fn reaches(&self, symbol: &Symbol<'_>, modules: &[String], layout: &Layout) -> Reach {
        let Some(at) = layout.place(symbol.language, &self.module) else { return Reach::No };
        match (self.container.as_deref(), symbol.container) {
            (own, its) if own == its && modules.contains(&at) => Reach::Yes,
            (own, its) if own == its && self.passes_on && layout.has(symbol.language, &at) => {
                Reach::IfUniqueThere
            }
            (own, its) if own == its => Reach::No,
            // A member that a type has from its trait, interface or base.
            (Some(_), Some(_)) => Reach::IfUnique,
            (None, _) | (Some(_), None) => Reach::No,
        }
    }
}
