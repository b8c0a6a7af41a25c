//! Alterations of a declaration, as text.

use zit_footprint::{Declaration, Form, Language};
use zit_model::Resource;

use super::Source;

/// What is done to a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alteration {
    /// Its lines are removed.
    Remove,
    /// It has another name.
    Rename,
    /// Its lines go to another file.
    Move,
    /// It takes one more parameter.
    Parameter,
    /// It gives back something else, or is of another type.
    Retype,
    /// It has another value, or another default.
    Value,
    /// One of its members is removed.
    RemoveMember,
    /// One of its members has another name.
    RenameMember,
}

/// A file after an alteration.
pub(crate) struct Altered {
    pub(crate) text: String,
    /// A file that is new.
    pub(crate) beside: Option<(Resource, String)>,
    /// The member concerned.
    pub(crate) member: Option<String>,
}

impl Alteration {
    pub(crate) const ALL: [Self; 8] = [
        Self::Remove,
        Self::Rename,
        Self::Move,
        Self::Parameter,
        Self::Retype,
        Self::Value,
        Self::RemoveMember,
        Self::RenameMember,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "removed",
            Self::Rename => "renamed",
            Self::Move => "moved",
            Self::Parameter => "parameter more",
            Self::Retype => "re-typed",
            Self::Value => "other value",
            Self::RemoveMember => "member removed",
            Self::RenameMember => "member renamed",
        }
    }

    /// The file with the declaration altered; `None` where it cannot be.
    pub(crate) fn apply(self, source: &Source, declaration: &Declaration<'_>) -> Option<Altered> {
        let lines: Vec<&str> = source.text.split_inclusive('\n').collect();
        let (first, last) = declaration.lines;
        let (first, last) = (first as usize - 1, last as usize);
        let (before, own, after) = (
            lines.get(..first)?.concat(),
            lines.get(first..last)?.concat(),
            lines.get(last..)?.concat(),
        );
        // Lines that others share cannot be cut out.
        let whole = |text: String, beside, member| {
            (text != source.text).then_some(Altered { text, beside, member })
        };
        let put = |own: String| whole(format!("{before}{own}{after}"), None, None);
        match self {
            Self::Remove => put(String::new()),
            Self::Rename => put(renamed(&own, declaration.name)?),
            Self::Move => {
                let path = beside(source)?;
                whole(format!("{before}{after}"), Some((path, own.clone())), None)
            }
            Self::Parameter => put(parameter(source.language, &own, declaration)?),
            Self::Retype => put(retyped(source.language, &own, declaration)?),
            Self::Value => put(revalued(source.language, &own, declaration)?),
            Self::RemoveMember | Self::RenameMember => {
                let member = declaration.members.iter().find(|name| is_name(name))?;
                let line = line_of(&own, member)?;
                let with = match self {
                    Self::RemoveMember => String::new(),
                    _ => line.replacen(member, &format!("{member}Other"), 1),
                };
                let own = own.replacen(line, &with, 1);
                whole(format!("{before}{own}{after}"), None, Some((*member).to_owned()))
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// The line of a type's body that declares a member and nothing else.
fn line_of<'a>(own: &'a str, member: &str) -> Option<&'a str> {
    let body = || own.lines().skip(1).filter(|line| !line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start().len();
    let step = body().map(indent).find(|indent| *indent > 0)?;
    body().filter(|line| indent(line) == step).find(|line| declares(line, member))
}

fn declares(line: &str, member: &str) -> bool {
    let line = ["pub(crate) ", "pub ", "readonly ", "static "]
        .iter()
        .fold(line.trim(), |line, word| line.trim_start_matches(word));
    let Some(rest) = line.strip_prefix(member) else { return false };
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    let opens = |c: char| matches!(c, '(' | '[' | '{');
    let closes = |c: char| matches!(c, ')' | ']' | '}');
    // What is put into a member does not declare it.
    let is_part = rest.starts_with(['[', '.']);
    !rest.starts_with(goes_on)
        && !is_part
        && line.matches(opens).count() == line.matches(closes).count()
}

/// The declaration with another name.
fn renamed(own: &str, name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    let at = word(own, name)?;
    Some(format!("{}{name}Other{}", &own[..at], &own[at + name.len()..]))
}

/// Where a name stands as a word of its own.
fn word(text: &str, name: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// A new file beside the source's, of the same language.
fn beside(source: &Source) -> Option<Resource> {
    let (folder, name) = source.path.path().rsplit_once('/').unwrap_or(("", source.path.path()));
    let extension = name.rsplit('.').next()?;
    // In one Go package a declaration may be in any file.
    let folder = if source.language == Language::Go {
        format!("{folder}/elsewhere")
    } else {
        folder.to_owned()
    };
    Resource::file(format!("{folder}/zit_moved.{extension}").trim_start_matches('/'))
}

fn parameter(language: Language, own: &str, declaration: &Declaration<'_>) -> Option<String> {
    if declaration.form != Form::Function {
        return None;
    }
    let at = word(own, declaration.name)? + declaration.name.len();
    let open = at + own.get(at..)?.find('(')?;
    let between = own.get(at..open)?;
    if between.contains(['\n', '=', '{']) {
        return None;
    }
    let rest = own.get(open + 1..)?;
    let (skip, new) = match language.family() {
        Language::Rust => {
            (receiver(rest, &["&mut self", "&self", "mut self", "self"]), "extra: u8")
        }
        Language::Python => (receiver(rest, &["self", "cls"]), "extra"),
        Language::Go => (0, "extra int"),
        _ => (0, "extra: number"),
    };
    let new = if language == Language::JavaScript { "extra" } else { new };
    let (kept, rest) = rest.split_at(skip);
    let new = match (kept.is_empty(), rest.trim_start().starts_with(')')) {
        (true, true) => new.to_owned(),
        (true, false) => format!("{new}, "),
        (false, _) => format!(", {new}"),
    };
    Some(format!("{}{kept}{new}{rest}", own.get(..=open)?))
}

/// How long the receiver at the start of a list of parameters is.
fn receiver(rest: &str, receivers: &[&str]) -> usize {
    let end = |len: usize| rest[len..].starts_with([',', ')', ':']);
    let found = receivers.iter().find(|text| rest.starts_with(**text) && end(text.len()));
    found.map_or(0, |text| text.len())
}

fn retyped(language: Language, own: &str, declaration: &Declaration<'_>) -> Option<String> {
    let line_end = own.find(['{', ';']).unwrap_or(own.len());
    let head = own.get(..line_end)?;
    match (language, declaration.form) {
        (Language::Rust, Form::Function) => {
            let at = head.find(" -> ")? + 4;
            Some(format!(
                "{}Other<{}>{}",
                &own[..at],
                own[at..line_end].trim_end(),
                &own[line_end.min(own.len())..]
            ))
        }
        (Language::Python, Form::Function) => own
            .contains("def ")
            .then(|| own.replacen("def ", "async def ", 1))
            .filter(|_| !own.contains("async def")),
        (Language::Go, Form::Function) => {
            let at = head.trim_end().len();
            Some(format!("{} otherResult {}", own[..at].trim_end(), &own[line_end..])).filter(
                |_| head.trim_end().ends_with(')') && declares_nothing_back(head, declaration.name),
            )
        }
        (_, Form::Function) => own
            .get(..word(own, declaration.name)?)?
            .contains("function ")
            .then(|| own.replacen("function ", "async function ", 1))
            .filter(|_| !own.contains("async ")),
        _ => None,
    }
}

/// Whether a Go function's head ends with its parameters.
fn declares_nothing_back(head: &str, name: &str) -> bool {
    word(head, name).is_some_and(|at| head[at..].matches('(').count() == 1)
}

fn revalued(language: Language, own: &str, declaration: &Declaration<'_>) -> Option<String> {
    if declaration.form != Form::Value || own.lines().count() != 1 {
        return None;
    }
    let at = own.find('=')?;
    let end = own.trim_end().trim_end_matches([';', ',']).len();
    let value = match language.family() {
        Language::Go | Language::Python => " 987654",
        _ => " 987654 as any",
    };
    let value =
        if matches!(language, Language::Rust | Language::JavaScript) { " 987654" } else { value };
    (end > at).then(|| format!("{}={value}{}", &own[..at], &own[end..]))
}
