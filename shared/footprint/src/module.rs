//! Modules: under which names a file's code is reached from elsewhere, and which file an import means.
//!
//! A module is a path of the repository with `/` between its parts: `shared/model/src/oid` for Rust's
//! `shared/model/src/oid.rs`, the folder for a Go package. [`modules_of`] says what a file stands for; a [`Layout`]
//! knows the repository's files and manifests and says what a name like `zit_model::oid` or `@scope/pkg` means.
//! Never reads a file: whoever has the repository gives paths and the bytes of manifests.
//!
//! Source: `spec/footprints.md`, "Names".

use std::collections::{BTreeMap, BTreeSet};

use crate::{Language, mention::MAX_PATH};

/// Where the file of a language can be reached.
///
/// Rust's `lib.rs`, `main.rs` and `mod.rs`, Python's `__init__.py` and TypeScript's `index` files stand for their
/// folder; a Go file for its package.
#[must_use]
pub(crate) fn modules_of(language: Language, path: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let family = language.family();
    // Those who import `a.b.ts` write `a.b`, and `a` for `a.d.ts`.
    let dotted = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let stem = if family == Language::TypeScript {
        dotted.strip_suffix(".d").unwrap_or(dotted)
    } else {
        name.split('.').next().unwrap_or(name)
    };
    let own = join(folder, stem);
    let is_root = |stems: &[&str]| stems.contains(&stem);
    if family == Language::Go
        || family == Language::Rust && is_root(&["lib", "main", "mod"])
        || family == Language::Python && is_root(&["__init__"])
    {
        return vec![folder.to_owned()];
    }
    if family == Language::TypeScript && is_root(&["index"]) {
        return vec![folder.to_owned(), own];
    }
    if family == Language::TypeScript && dotted != stem {
        return vec![own, join(folder, dotted)];
    }
    vec![own]
}

/// A module as an import names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// A path of the repository: of the file itself, or reached from it.
    At(String),
    /// A name that only the repository's [`Layout`] can place: a crate, a package, an absolute import.
    Named(String),
}

impl Module {
    /// A module below this one.
    #[must_use]
    pub(crate) fn child(&self, name: &str) -> Self {
        match self {
            Self::At(path) => Self::At(join(path, name)),
            Self::Named(path) => Self::Named(join(path, name)),
        }
    }
}

/// Joins two parts of a path, the first of which may be empty.
#[must_use]
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Resolves `./` and `../` of a path that starts at `folder`; `None` when it leaves the repository.
#[must_use]
pub(crate) fn relative(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// What a repository's files say about names: its modules, and the packages its manifests declare.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Modules by their last part, with the language family of each.
    modules: BTreeMap<String, BTreeSet<(Language, String)>>,
    /// Crates by name (with `_`), Go modules by path, npm packages by name: the folder that their names start at.
    packages: BTreeMap<(Language, String), String>,
}

impl Layout {
    /// Adds a file of the repository.
    pub fn add_file(&mut self, path: &str) {
        let Some(language) = Language::of_path(path) else { return };
        for module in modules_of(language, path) {
            let last = module.rsplit('/').next().unwrap_or_default().to_owned();
            self.modules.entry(last).or_default().insert((language.family(), module));
        }
    }

    /// Whether the file of the name declares packages, and is to be given to [`Self::add_manifest`].
    #[must_use]
    pub fn is_manifest(path: &str) -> bool {
        matches!(path.rsplit('/').next(), Some("Cargo.toml" | "go.mod" | "package.json"))
    }

    /// Adds what a manifest declares; one that cannot be read declares nothing.
    pub fn add_manifest(&mut self, path: &str, text: &str) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let declared = match name {
            "Cargo.toml" => {
                crate_name(text).map(|name| (Language::Rust, name, join(folder, "src")))
            }
            "go.mod" => go_module(text).map(|name| (Language::Go, name, folder.to_owned())),
            _ => npm_name(text).map(|name| (Language::TypeScript, name, folder.to_owned())),
        };
        if let Some((language, name, folder)) = declared {
            self.packages.insert((language, name), folder);
        }
    }

    /// Where a module lies in the repository; `None` when it is none of the repository's.
    #[must_use]
    pub(crate) fn place(&self, language: Language, module: &Module) -> Option<String> {
        match module {
            Module::At(path) => Some(path.clone()),
            Module::Named(name) => {
                self.in_package(language.family(), name).or_else(|| self.by_end(language, name))
            }
        }
    }

    /// The longest package whose name `name` begins with, and the rest below its folder.
    fn in_package(&self, family: Language, name: &str) -> Option<String> {
        if name.len() > MAX_PATH {
            return None;
        }
        let mut head = name;
        loop {
            if let Some(folder) = self.packages.get(&(family, head.to_owned())) {
                let rest = name.get(head.len()..)?.trim_start_matches('/');
                return Some(if rest.is_empty() { folder.clone() } else { join(folder, rest) });
            }
            head = head.rsplit_once('/')?.0;
        }
    }

    /// The only module that is `name` or ends with it, for languages whose absolute names start at some folder.
    fn by_end(&self, language: Language, name: &str) -> Option<String> {
        if language.family() != Language::Python {
            return None;
        }
        let last = name.rsplit('/').next()?;
        let ending = format!("/{name}");
        let mut found = self.modules.get(last)?.iter().filter(|(family, module)| {
            *family == language.family() && (module == name || module.ends_with(&ending))
        });
        // The shortest, as a search path would find it first.
        found.by_ref().map(|(_, module)| module).min_by_key(|module| module.len()).cloned()
    }

    /// Whether the repository has a module there.
    #[must_use]
    pub(crate) fn has(&self, language: Language, module: &str) -> bool {
        let last = module.rsplit('/').next().unwrap_or_default();
        self.modules
            .get(last)
            .is_some_and(|modules| modules.contains(&(language.family(), module.to_owned())))
    }
}

fn crate_name(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let name = |of: &str| table.get(of)?.get("name")?.as_str().map(|name| name.replace('-', "_"));
    name("lib").or_else(|| name("package"))
}

fn go_module(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    Some(line.split("//").next()?.trim().trim_matches('"').to_owned())
}

fn npm_name(text: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).ok()?;
    manifest.get("name")?.as_str().map(str::to_owned)
}
