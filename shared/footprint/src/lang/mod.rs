//! Languages. Each is one folder: a table of node kinds, a function that carves a file into units, and a
//! readable fixture that shows what it writes. Adding one: the folder, a row in [`LANGUAGES`], an arm in
//! [`analysis`].

mod go;
mod markdown;
mod python;
mod rust;
mod typescript;

use std::sync::LazyLock;

use tree_sitter::Node;

use crate::{
    plan::Plan,
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
}

/// Every language: the extensions of its files, its name, and the family whose names it shares.
const LANGUAGES: &[(Language, &[&str], &str, Language)] = &[
    (Language::Rust, &["rs"], "rust", Language::Rust),
    (Language::Python, &["py", "pyi"], "python", Language::Python),
    (Language::TypeScript, &["ts", "mts", "cts"], "typescript", Language::TypeScript),
    (Language::Tsx, &["tsx"], "tsx", Language::TypeScript),
    (Language::JavaScript, &["js", "mjs", "cjs", "jsx"], "javascript", Language::TypeScript),
    (Language::Go, &["go"], "go", Language::Go),
    (Language::Markdown, &["md", "markdown"], "markdown", Language::Markdown),
];

impl Language {
    /// The language that a file's extension stands for.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let (_, extension) = name.rsplit_once('.')?;
        let row = LANGUAGES.iter().find(|row| row.1.contains(&extension))?;
        Some(row.0)
    }

    /// The language's name in lower case, as documents spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        LANGUAGES.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// Whether code in one language may mention names of the other: `TypeScript`, TSX and `JavaScript` share.
    #[must_use]
    pub fn shares_names_with(self, other: Self) -> bool {
        let family = |of| LANGUAGES.iter().find(|row| row.0 == of).map(|row| row.3);
        family(self) == family(other)
    }
}

/// How a language is taken apart.
pub(crate) enum Analysis {
    /// By a syntax tree.
    Code(&'static Grammar),
    /// By a function of both versions, which names their units alike.
    Prose(UnitsOfBoth),
}

/// Takes apart both versions of a file.
pub(crate) type UnitsOfBoth = fn(&str, &str) -> (Units, Units);

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
    }
}

/// What a node kind means to the walk. A kind may mean several things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trait(u16);

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
    /// A member's name: mentions something only behind an imported module.
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

/// A language's table, before it is matched with its grammar.
pub(crate) struct Table {
    /// The parser.
    pub language: tree_sitter::Language,
    /// Kinds by what they mean; a kind may stand in several rows.
    pub kinds: &'static [(Trait, &'static [&'static str])],
    /// How children bind.
    pub binds: &'static [BindingRow],
    /// The field that holds what a member is of, by the member's parent kind.
    pub member_of: &'static [(&'static str, &'static str)],
    /// Whether fragments of one unit mean the same in another order.
    pub order: Order,
    /// Carves a file into units.
    pub carve: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
}

/// A language's table by node kind and field ids.
pub(crate) struct Grammar {
    /// The parser.
    pub language: tree_sitter::Language,
    /// What each kind means, by kind id.
    pub traits: Vec<Trait>,
    /// How children bind, by kind id of the parent: field id (zero for none) or any, and treatment.
    pub binds: Vec<Vec<(Option<u16>, Binds)>>,
    /// The field that holds what a member is of, by kind id of the member's parent.
    pub member_of: Vec<Option<&'static str>>,
    /// The id of the field `body`.
    pub body: Option<u16>,
    /// See [`Table::order`].
    pub order: Order,
    /// See [`Table::carve`].
    pub carve: for<'s, 't> fn(&mut Plan<'s>, Node<'t>),
}

impl From<Table> for Grammar {
    fn from(table: Table) -> Self {
        let language = table.language;
        let count = language.node_kind_count();
        let field = |name: &str| language.field_id_for_name(name).map(std::num::NonZero::get);
        let mut traits = vec![Trait::NONE; count];
        let mut binds = vec![Vec::new(); count];
        let mut member_of = vec![None; count];
        for id in 0..count {
            let Some(kind) = u16::try_from(id).ok().and_then(|id| language.node_kind_for_id(id))
            else {
                continue;
            };
            for (meaning, kinds) in table.kinds {
                if kinds.contains(&kind) {
                    traits[id] = traits[id].or(*meaning);
                }
            }
            for (parent, name, treatment) in table.binds {
                let id_of_field = match *name {
                    "*" => None,
                    "" => Some(0),
                    name => field(name),
                };
                if kind == *parent {
                    binds[id].push((id_of_field, *treatment));
                }
            }
            member_of[id] =
                table.member_of.iter().find(|(parent, _)| kind == *parent).map(|row| row.1);
        }
        Self {
            body: field("body"),
            traits,
            binds,
            member_of,
            order: table.order,
            carve: table.carve,
            language,
        }
    }
}

impl Grammar {
    /// What a node's kind means.
    pub(crate) fn traits_of(&self, node: Node<'_>) -> Trait {
        self.traits.get(usize::from(node.kind_id())).copied().unwrap_or(Trait::NONE)
    }

    /// How a child in `field` (zero for none) of a `parent` treats identifiers, if the table says.
    pub(crate) fn binding(&self, parent: Node<'_>, field: u16) -> Option<Binds> {
        let rows = self.binds.get(usize::from(parent.kind_id()))?;
        rows.iter().find(|row| row.0.is_none_or(|wanted| wanted == field)).map(|row| row.1)
    }
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
            let kinds = table.kinds.iter().flat_map(|row| row.1).copied();
            let parents = table.binds.iter().map(|row| row.0);
            let owners = table.member_of.iter().map(|row| row.0);
            for kind in kinds.chain(parents).chain(owners) {
                assert!(known(kind), "{kind} of {:?}", language.name());
            }
            let fields = table.binds.iter().map(|row| row.1).filter(|f| !matches!(*f, "" | "*"));
            for field in fields.chain(table.member_of.iter().map(|row| row.1)) {
                assert!(language.field_id_for_name(field).is_some(), "{field}");
            }
        }
    }

    #[test]
    fn a_language_is_told_by_the_last_extension() {
        assert_eq!(Language::of_path("a.b/c.d.ts"), Some(Language::TypeScript));
        assert_eq!(Language::of_path("a.rs/LICENSE"), None);
        assert_eq!(Language::of_path("rs"), None);
        assert!(Language::Tsx.shares_names_with(Language::JavaScript));
        assert!(!Language::Go.shares_names_with(Language::Rust));
    }
}
