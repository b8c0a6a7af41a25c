//! Languages. Each is one folder: a table of node kinds, a function that carves a file into units, and a
//! readable fixture that shows what it writes. Adding one: the folder, a row in [`LANGUAGES`], an arm in
//! [`analysis`].

mod go;
mod gomod;
mod ini;
mod json;
mod keys;
mod lines;
mod markdown;
mod python;
mod rust;
mod toml;
mod typescript;
mod yaml;

use std::sync::LazyLock;

use tree_sitter::Node;

use crate::{
    Fallback,
    plan::Plan,
    shape::{Habits, Uses},
    unit::{Order, Units},
};

/// A language whose files are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Rust.
    Rust,
    /// Python, and its stubs.
    Python,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// JavaScript, with JSX or without.
    JavaScript,
    /// Go.
    Go,
    /// Markdown.
    Markdown,
    /// TOML.
    Toml,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// INI and its like.
    Ini,
    /// `go.mod` and `go.work`.
    GoMod,
}

/// One language: which files it is told by, and what it is called.
struct Row {
    language: Language,
    /// In lower case, as documents spell it.
    name: &'static str,
    /// The language that stands for all those whose names it shares.
    family: Language,
    /// How its files' names end, behind the last dot.
    endings: &'static [&'static str],
    /// Whole names of files, where the ending says nothing.
    files: &'static [&'static str],
}

const fn row(
    language: Language,
    name: &'static str,
    family: Language,
    endings: &'static [&'static str],
    files: &'static [&'static str],
) -> Row {
    Row { language, name, family, endings, files }
}

/// Every language.
const LANGUAGES: &[Row] = &[
    row(Language::Rust, "rust", Language::Rust, &["rs"], &[]),
    row(Language::Python, "python", Language::Python, &["py", "pyi"], &[]),
    row(Language::TypeScript, "typescript", Language::TypeScript, &["ts", "mts", "cts"], &[]),
    row(Language::Tsx, "tsx", Language::TypeScript, &["tsx"], &[]),
    row(
        Language::JavaScript,
        "javascript",
        Language::TypeScript,
        &["js", "mjs", "cjs", "jsx"],
        &[],
    ),
    row(Language::Go, "go", Language::Go, &["go"], &[]),
    row(Language::Markdown, "markdown", Language::Markdown, &["md", "markdown"], &[]),
    row(Language::Toml, "toml", Language::Toml, &["toml"], &[]),
    row(Language::Json, "json", Language::Json, &["json"], &[]),
    row(Language::Yaml, "yaml", Language::Yaml, &["yml", "yaml"], &[]),
    row(Language::Ini, "ini", Language::Ini, &["ini", "cfg"], &[".editorconfig"]),
    row(Language::GoMod, "go.mod", Language::GoMod, &[], &["go.mod", "go.work"]),
];

impl Language {
    /// The language that a file's name stands for: the whole of it, or else its ending.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        let by_name = LANGUAGES.iter().find(|row| row.files.contains(&name));
        let by_ending =
            || LANGUAGES.iter().find(|row| ending.is_some_and(|e| row.endings.contains(&e)));
        Some(by_name.or_else(by_ending)?.language)
    }

    /// The language's name in lower case, as documents spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        LANGUAGES.iter().find(|row| row.language == self).map_or("", |row| row.name)
    }

    /// The language that stands for all those whose names this one shares.
    #[must_use]
    pub fn family(self) -> Self {
        LANGUAGES.iter().find(|row| row.language == self).map_or(self, |row| row.family)
    }

    /// Whether code reaches other files by the names of modules.
    #[must_use]
    pub(crate) fn has_modules(self) -> bool {
        matches!(self.family(), Self::Rust | Self::Python | Self::TypeScript | Self::Go)
    }

    /// Whether code in one language may mention names of the other: `TypeScript`, TSX and `JavaScript` share.
    #[must_use]
    pub fn shares_names_with(self, other: Self) -> bool {
        self.family() == other.family()
    }
}

/// Whether a text merge may settle a file: Markdown, text for people that is told by its name, and lock files, which say
/// nothing that a tool would not write again.
pub(crate) fn is_prose(path: &str) -> bool {
    /// How the names of files end that hold text for people.
    const ENDINGS: &[&str] = &["rst", "txt", "adoc", "asciidoc", "org", "tex", "textile"];
    /// Files that end so and do not.
    const NOT: &[&str] = &["CMakeLists.txt", "requirements.txt", "constraints.txt", "robots.txt"];
    /// Files without an ending that do.
    const NAMES: &[&str] = &[
        "AUTHORS",
        "CHANGELOG",
        "CHANGES",
        "CONTRIBUTORS",
        "COPYING",
        "CREDITS",
        "HISTORY",
        "LICENSE",
        "MAINTAINERS",
        "NEWS",
        "NOTICE",
        "README",
        "THANKS",
        "TODO",
    ];
    /// What tools write about packages, and write again after a merge.
    const LOCKS: &[&str] = &[
        "Cargo.lock",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "poetry.lock",
        "uv.lock",
        "Pipfile.lock",
        "go.sum",
        "go.work.sum",
        "Gemfile.lock",
        "composer.lock",
        "flake.lock",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    if Language::of_path(path) == Some(Language::Markdown) || LOCKS.contains(&name) {
        return true;
    }
    match name.rsplit_once('.') {
        Some((_, ending)) => ENDINGS.contains(&ending) && !NOT.contains(&name),
        None => NAMES.contains(&name),
    }
}

/// The units of two versions, named alike.
pub(crate) type UnitsOfTwo = fn(&str, &str) -> (Units, Units);

/// How a language is taken apart.
pub(crate) enum Analysis {
    /// By a syntax tree.
    Code(&'static Grammar),
    /// By a function of both versions, which names their units alike.
    Prose(UnitsOfTwo),
    /// By a function of each version, which mentions nothing.
    Data(fn(&str) -> Result<Units, Fallback>),
}

/// The analysis of `language`.
pub(crate) fn analysis(language: Language) -> Analysis {
    static RUST: LazyLock<Grammar> = LazyLock::new(rust::grammar);
    static PYTHON: LazyLock<Grammar> = LazyLock::new(python::grammar);
    static TYPESCRIPT: LazyLock<Grammar> = LazyLock::new(typescript::typescript);
    static TSX: LazyLock<Grammar> = LazyLock::new(typescript::tsx);
    static GO: LazyLock<Grammar> = LazyLock::new(go::grammar);
    match language {
        Language::Rust => Analysis::Code(&RUST),
        Language::Python => Analysis::Code(&PYTHON),
        Language::TypeScript => Analysis::Code(&TYPESCRIPT),
        Language::Tsx | Language::JavaScript => Analysis::Code(&TSX),
        Language::Go => Analysis::Code(&GO),
        Language::Markdown => Analysis::Prose(markdown::units),
        Language::Toml => Analysis::Data(toml::units),
        Language::Json => Analysis::Data(json::units),
        Language::Yaml => Analysis::Data(yaml::units),
        Language::Ini => Analysis::Data(ini::units),
        Language::GoMod => Analysis::Data(gomod::units),
    }
}

/// What a node kind means to the walk. A kind may mean several things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trait(u32);

impl Trait {
    /// Nothing in particular.
    pub(crate) const NONE: Self = Self(0);
    /// A comment: its tokens do not count.
    pub(crate) const COMMENT: Self = Self(1);
    /// Taken as one token, whatever it holds.
    pub(crate) const ATOM: Self = Self(1 << 1);
    /// A function: its field `body` is a function body.
    pub(crate) const FUNCTION: Self = Self(1 << 2);
    /// Names bound inside are unknown outside.
    pub(crate) const SCOPE: Self = Self(1 << 3);
    /// An identifier that mentions something, or binds it.
    pub(crate) const IDENTIFIER: Self = Self(1 << 4);
    /// A member's name: mentions something only behind what it is a member of.
    pub(crate) const MEMBER: Self = Self(1 << 5);
    /// Where it starts and ends counts though no token says so.
    pub(crate) const BLOCK: Self = Self(1 << 6);
    /// Where it ends counts; separators do not.
    pub(crate) const STATEMENT: Self = Self(1 << 7);
    /// Identifiers inside are neither mentions nor bindings: labels, lifetimes.
    pub(crate) const SILENT: Self = Self(1 << 8);
    /// Identifiers inside mention, even where names are being bound around it.
    pub(crate) const MENTIONS: Self = Self(1 << 9);
    /// Separates statements, which need not be written.
    pub(crate) const SEPARATOR: Self = Self(1 << 10);
    /// Separators and trailing commas directly inside count: the header of a loop, a tuple.
    pub(crate) const KEEPS_SEPARATORS: Self = Self(1 << 11);
    /// Raw tokens of a macro: an identifier after `.` is a member.
    pub(crate) const TOKENS: Self = Self(1 << 12);
    /// Text in which white space is one space.
    pub(crate) const PROSE: Self = Self(1 << 13);
    /// Where names are bound, one in upper case is a mention: patterns name variants and constants.
    pub(crate) const CASED: Self = Self(1 << 14);
    /// An import, or what may be one.
    pub(crate) const IMPORT: Self = Self(1 << 15);
    /// An identifier that names a type.
    pub(crate) const TYPE_NAME: Self = Self(1 << 16);
    /// A keyword that a path may start with.
    pub(crate) const ROOT: Self = Self(1 << 17);
    /// A path with type arguments, which do not matter for what it names.
    pub(crate) const TYPE_ARGUMENTS: Self = Self(1 << 18);
    /// An expression that builds a value of the type inside it.
    pub(crate) const BUILDS: Self = Self(1 << 19);
    /// A call; what is called is inside it.
    pub(crate) const CALLS: Self = Self(1 << 20);
    /// The alternatives of a match.
    pub(crate) const ALTERNATIVES: Self = Self(1 << 21);

    /// Whether this is, among others, `other`.
    pub(crate) fn is(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a child in some field of some parent treats identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binds {
    /// Binds them at once.
    Now,
    /// Binds them once the parent ends, or once its body begins.
    After,
    /// Binds them around the parent, once it ends.
    Outside,
    /// As `After` inside function bodies, elsewhere as `Never`.
    InBody,
    /// Ignores them.
    Never,
    /// Mentions them, though the parent binds.
    Mentions,
}

/// One row about a child: parent kind, field (`""` for none, `"*"` for any), treatment.
pub(crate) type BindingRow = (&'static str, &'static str, Binds);

/// How a name in some field of some parent hangs on what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link<F = u16, K = u16> {
    /// It ends a path; the field holds the path before it.
    Path(F),
    /// It is a member; the field holds what it is a member of, perhaps a value.
    Member(F),
    /// It is a field or variant of the type that the nearest parent of the kind has in the field.
    Field(K, F),
    /// It is all that the parent is.
    Wrap,
}

/// One row about a name: parent kind, field, link.
pub(crate) type LinkRow = (&'static str, &'static str, Link<&'static str, &'static str>);

/// One row about use: parent kind, field (`"*"` for any), use.
pub(crate) type UseRow = (&'static str, &'static str, Uses);

/// How a language writes references. The empty table mentions bare names only.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names {
    /// How names hang on what stands before them.
    pub links: &'static [LinkRow],
    /// How the name, or the path that ends with it, in a field is used.
    pub uses: &'static [UseRow],
    /// How everything below a field is used, besides.
    pub uses_inside: &'static [UseRow],
    /// Kinds that bind, with the fields in which they write a type and give a value.
    pub typed: &'static [(&'static str, &'static str, &'static str)],
    /// Kinds around a type or value, with the field it is in; `""` for the first named child.
    pub around: &'static [(&'static str, &'static str)],
    /// Names of the value whose method is running.
    pub own: &'static [&'static str],
    /// Types whose members are those of what they hold.
    pub transparent: &'static [&'static str],
    /// Whether what a value's member is called through is never a module.
    pub values_apart: bool,
    /// The method that runs where a type is called or built; empty for none.
    pub constructor: &'static str,
}

/// How a piece of a unit stands beside the others of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// After those before it.
    Steps,
    /// At most one of them runs.
    Choices,
    /// Each by itself, told from the others by a key.
    Members,
    /// Each by itself for what is inside, all of them together for those who call.
    Parameters,
}

/// What a unit is made of, where two sides write it. The empty table says: of nothing smaller.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parts {
    /// Kinds whose named children are pieces: all (`"*"`), those in no field (`""`), or those in one.
    pub lists: &'static [(&'static str, &'static str, Among)],
    /// Kinds that bind names for what follows them, not only for what is inside.
    pub lets: &'static [&'static str],
    /// Kinds that give a name another value, with the field that holds it.
    pub assigns: &'static [(&'static str, &'static str)],
    /// Kinds in such a field that hold several.
    pub several: &'static [&'static str],
    /// Kinds that lend a value to be changed: the token that says so, the field with the value.
    pub lends: &'static [(&'static str, &'static str, &'static str)],
    /// Statements that are nothing but an expression: a method that is called in one may change its value.
    pub runs: &'static [&'static str],
    /// Words that leave a function or loop.
    pub jumps: &'static [&'static str],
}

/// A language's table, before it is matched with its grammar.
pub(crate) struct Table {
    /// The parser.
    pub language: tree_sitter::Language,
    /// Kinds by what they mean; a kind may stand in several rows.
    pub kinds: &'static [(Trait, &'static [&'static str])],
    /// How children bind.
    pub binds: &'static [BindingRow],
    /// How references are written.
    pub names: Names,
    /// Whether fragments of one unit mean the same in another order.
    pub order: Order,
    /// What users of a type see of its changes.
    pub habits: Habits,
    /// What units are made of.
    pub parts: Parts,
    /// Carves a file into units.
    pub carve: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
    /// Notes what a node of the trait [`Trait::IMPORT`] binds.
    pub note: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
    /// Whether a node of the trait [`Trait::ALTERNATIVES`] leaves nothing over.
    pub is_exhaustive: for<'s, 't> fn(&Plan<'s>, Node<'t>) -> bool,
}

/// A language's table by node kind and field ids.
pub(crate) struct Grammar {
    /// The parser.
    pub language: tree_sitter::Language,
    /// The id of the field `body`.
    pub body: Option<u16>,
    /// See [`Table::order`].
    pub order: Order,
    /// See [`Table::habits`].
    pub habits: Habits,
    /// See [`Table::parts`].
    pub parts: Parts,
    /// See [`Table::carve`].
    pub carve: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
    /// See [`Table::note`].
    pub note: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
    /// See [`Table::is_exhaustive`].
    pub is_exhaustive: for<'s, 't> fn(&Plan<'s>, Node<'t>) -> bool,
    /// See [`Names::values_apart`].
    pub values_apart: bool,
    names: Names,
    kinds: Vec<KindTable>,
}

/// What a grammar's table says of one kind of node. Fields are ids; zero is none.
#[derive(Clone, Default)]
struct KindTable {
    traits: Trait,
    /// How children bind: field or any, and treatment.
    binds: Vec<(Option<u16>, Binds)>,
    links: Vec<(u16, Link)>,
    uses: Vec<(Option<u16>, Uses)>,
    uses_inside: Vec<(Option<u16>, Uses)>,
    typed: Option<(u16, u16)>,
    around: Option<u16>,
}

impl From<Table> for Grammar {
    fn from(table: Table) -> Self {
        let language = &table.language;
        let kinds = (0..language.node_kind_count()).map(|id| {
            let kind = u16::try_from(id).ok().and_then(|id| language.node_kind_for_id(id));
            kind.map_or_else(KindTable::default, |kind| KindTable::new(&table, kind))
        });
        Self {
            kinds: kinds.collect(),
            body: language.field_id_for_name("body").map(std::num::NonZero::get),
            order: table.order,
            habits: table.habits,
            parts: table.parts,
            carve: table.carve,
            note: table.note,
            is_exhaustive: table.is_exhaustive,
            values_apart: table.names.values_apart,
            names: table.names,
            language: table.language,
        }
    }
}

impl KindTable {
    fn new(table: &Table, kind: &str) -> Self {
        let language = &table.language;
        let field = |name: &str| language.field_id_for_name(name).map_or(0, std::num::NonZero::get);
        let any = |name: &str| (name != "*").then(|| field(name));
        let traits = table.kinds.iter().filter(|row| row.1.contains(&kind)).map(|row| row.0);
        let names = &table.names;
        let link = |link: Link<&str, &str>| match link {
            Link::Path(of) => Link::Path(field(of)),
            Link::Member(of) => Link::Member(field(of)),
            Link::Field(kind, of) => Link::Field(language.id_for_node_kind(kind, true), field(of)),
            Link::Wrap => Link::Wrap,
        };
        let uses = |rows: &[UseRow]| {
            rows.iter().filter(|row| row.0 == kind).map(|row| (any(row.1), row.2)).collect()
        };
        let typed = names.typed.iter().find(|row| row.0 == kind);
        let links = names.links.iter().filter(|row| row.0 == kind);
        let binds = table.binds.iter().filter(|row| row.0 == kind);
        Self {
            traits: traits.fold(Trait::NONE, Trait::or),
            binds: binds.map(|row| (any(row.1), row.2)).collect(),
            links: links.map(|row| (field(row.1), link(row.2))).collect(),
            uses: uses(names.uses),
            uses_inside: uses(names.uses_inside),
            typed: typed.map(|row| (field(row.1), field(row.2))),
            around: names.around.iter().find(|row| row.0 == kind).map(|row| field(row.1)),
        }
    }
}

impl Grammar {
    fn kind(&self, node: Node<'_>) -> Option<&KindTable> {
        self.kinds.get(usize::from(node.kind_id()))
    }

    /// What a node's kind means.
    pub(crate) fn traits_of(&self, node: Node<'_>) -> Trait {
        self.kind(node).map_or(Trait::NONE, |kind| kind.traits)
    }

    /// How a child in `field` (zero for none) of a `parent` treats identifiers, if the table says.
    pub(crate) fn binding(&self, parent: Node<'_>, field: u16) -> Option<Binds> {
        of_field(&self.kind(parent)?.binds, field)
    }

    /// How a name in `field` of a `parent` hangs on what stands before it.
    pub(crate) fn link(&self, parent: Node<'_>, field: u16) -> Option<Link> {
        self.kind(parent)?.links.iter().find(|row| row.0 == field).map(|row| row.1)
    }

    /// The field of a path or member in which it has what stands before its name.
    pub(crate) fn before_of(&self, node: Node<'_>) -> Option<u16> {
        self.kind(node)?.links.iter().find_map(|row| match row.1 {
            Link::Path(field) | Link::Member(field) => Some(field),
            Link::Field(..) | Link::Wrap => None,
        })
    }

    /// How the name in `field` of a `parent` is used.
    pub(crate) fn uses_of(&self, parent: Node<'_>, field: u16) -> Option<Uses> {
        of_field(&self.kind(parent)?.uses, field)
    }

    /// How everything in `field` of a `parent` is used, besides.
    pub(crate) fn uses_inside(&self, parent: Node<'_>, field: u16) -> Uses {
        let uses = self.kind(parent).and_then(|kind| of_field(&kind.uses_inside, field));
        uses.unwrap_or(Uses::NONE)
    }

    /// The fields in which a node that binds writes a type and gives a value.
    pub(crate) fn typed_by(&self, node: Node<'_>) -> Option<(u16, u16)> {
        self.kind(node)?.typed
    }

    /// The type or value that a node is around.
    pub(crate) fn inner<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        match self.kind(node)?.around? {
            0 => node.named_child(0),
            field => node.child_by_field_id(field),
        }
    }

    /// Whether a method of the name runs where its type is called or built.
    pub(crate) fn is_constructor(&self, name: &str) -> bool {
        !name.is_empty() && self.names.constructor == name
    }

    /// What a call calls; `None` when the node is no call.
    pub(crate) fn called<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        self.inner(node).filter(|_| self.traits_of(node).is(Trait::CALLS))
    }

    /// Whether a node builds a value of the type inside it.
    pub(crate) fn builds(&self, node: Node<'_>) -> bool {
        self.traits_of(node).is(Trait::BUILDS)
    }

    /// Whether a name is that of the value whose method is running.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.names.own.contains(&name)
    }

    /// Whether a type's members are those of what it holds.
    pub(crate) fn is_transparent(&self, ty: &str) -> bool {
        let name = ty.split('<').next().unwrap_or(ty).rsplit("::").next().unwrap_or(ty);
        self.names.transparent.contains(&name)
    }
}

fn of_field<T: Copy>(rows: &[(Option<u16>, T)], field: u16) -> Option<T> {
    rows.iter().find(|row| row.0.is_none_or(|wanted| wanted == field)).map(|row| row.1)
}

/// Visits what `first` adds and all that it leads to, without recursion.
pub(crate) fn work_off<T>(first: T, mut step: impl FnMut(T, &mut Vec<T>)) {
    let mut todo = vec![first];
    while let Some(next) = todo.pop() {
        step(next, &mut todo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_field_in_a_table_exists_in_its_grammar() {
        for table in [rust::table(), python::table(), typescript::table_tsx(), go::table()] {
            let language = &table.language;
            let known = |kind: &str| {
                language.id_for_node_kind(kind, true) != 0
                    || language.id_for_node_kind(kind, false) != 0
            };
            let names = table.names;
            let kinds = table.kinds.iter().flat_map(|row| row.1).copied();
            let rows = names.uses.iter().chain(names.uses_inside).map(|row| (row.0, row.1));
            let rows = rows.chain(table.binds.iter().map(|row| (row.0, row.1)));
            let rows = rows.chain(names.links.iter().map(|row| (row.0, row.1)));
            let rows = rows.chain(names.around.iter().copied());
            let parts = table.parts;
            let kinds = kinds.chain(parts.lets.iter().chain(parts.several).copied());
            let kinds = kinds.chain(parts.runs.iter().copied());
            let rows = rows.chain(parts.lists.iter().map(|row| (row.0, row.1)));
            let rows = rows.chain(parts.assigns.iter().copied());
            let rows = rows.chain(parts.lends.iter().map(|row| (row.0, row.2)));
            let rows = rows.chain(names.typed.iter().flat_map(|r| [(r.0, r.1), (r.0, r.2)]));
            let rows: Vec<_> = rows.collect();
            for kind in kinds.chain(rows.iter().map(|row| row.0)) {
                assert!(known(kind), "{kind} of {:?}", language.name());
            }
            for field in rows.iter().map(|row| row.1).filter(|field| !matches!(*field, "" | "*")) {
                assert!(language.field_id_for_name(field).is_some(), "{field}");
            }
        }
    }

    #[test]
    fn a_language_is_told_by_the_whole_name_or_by_its_ending() {
        assert_eq!(Language::of_path("a/go.mod"), Some(Language::GoMod));
        assert_eq!(Language::of_path("a/go.work"), Some(Language::GoMod));
        for other in ["kernel.mod", "x.go.mod", "a.work", ".mod", "x.editorconfig"] {
            assert_eq!(Language::of_path(other), None, "{other}");
        }
        assert_eq!(Language::of_path("a/.editorconfig"), Some(Language::Ini));
        assert_eq!(Language::of_path("a.b/c.d.ts"), Some(Language::TypeScript));
        assert_eq!(Language::of_path("a.rs/LICENSE"), None);
        assert_eq!(Language::of_path("rs"), None);
        assert!(Language::Tsx.shares_names_with(Language::JavaScript));
        assert!(!Language::Go.shares_names_with(Language::Rust));
    }
}
