//! Resources: the one address form for what is claimed, read and written.
//!
//! ```text
//! resource = path                 ; whole file
//!          | path "#" name        ; a unit: top-level symbol, `Type::method`, heading
//!          | path "#(imports)"    ; the file's imports
//!          | path "#"             ; module-level code outside symbols
//! ```
//!
//! The path is everything before the first `#`; in it a literal `#` is written `%23` and `%` is written `%25`.
//!
//! Source: `spec/resources.md`.

use std::fmt;

use sha2::{Digest, Sha256};

/// The longest resource taken, in bytes of its canonical form. Source: git's path limit of 4,096.
pub const MAX_RESOURCE: usize = 4096;

/// How the paths of code end, in which a name's dot joins a type and its member.
const CODE: [&str; 9] = [".rs", ".py", ".pyi", ".go", ".ts", ".tsx", ".js", ".jsx", ".mjs"];

/// How the paths of prose end, in which a name is a heading's.
const PROSE: [&str; 2] = [".md", ".markdown"];

/// A file, or a part of one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    // Invariant: relative, clean, without control characters.
    path: String,
    part: Part,
}

/// Which part of a file a resource names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The whole file.
    File,
    /// `path#`: code outside symbols.
    Module,
    /// `path#(imports)`.
    Imports,
    /// `path#name`; the name is never empty, one line, without control characters.
    Unit(String),
}

/// Why text is not a resource.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ResourceError {
    /// The path part breaks a rule.
    #[error("not a resource: {text:?}: {why}")]
    Path {
        /// What was given, shortened.
        text: String,
        /// Which rule.
        why: &'static str,
    },
    /// A percent escape that is not `%XX`, or not UTF-8 once decoded.
    #[error("not an encoded resource: {0:?}: a byte is written %XX")]
    Escape(String),
}

impl ResourceError {
    /// What to type instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Path { .. } => {
                "write path, path#Symbol, path#Type::method, path#(imports) or path#; \
                 in the path '#' is %23 and '%' is %25"
            }
            Self::Escape(_) => {
                "in a refname, write every byte outside A-Z a-z 0-9 _ . / # ( ) - as %XX, \
                 or use git push -o zit.claim=<resource>"
            }
        }
    }
}

impl Resource {
    /// A whole file; `None` when the path is not relative, clean and free of control characters.
    #[must_use]
    pub fn file(path: &str) -> Option<Self> {
        path_fault(path).is_none().then(|| Self { path: path.to_owned(), part: Part::File })
    }

    /// Another part of the same file. Control characters in a unit's name become spaces.
    #[must_use]
    pub fn with(&self, part: Part) -> Self {
        let part = match part {
            Part::Unit(name) => unit_part(&name),
            Part::File | Part::Module | Part::Imports => part,
        };
        Self { path: self.path.clone(), part }
    }

    /// Reads a resource, canonical or in one of the accepted spellings.
    ///
    /// `path:A.b`, `path#A.b` in code, `path#(*T).M` and `path#T->m` are answered as `path#A::b`, `path#T::M` and
    /// `path#T::m`.
    /// `is_path` says whether a text names a file that exists; a text with `:` that does is taken as that file.
    ///
    /// # Errors
    /// [`ResourceError::Path`] naming the broken rule.
    pub fn parse(text: &str, is_path: &dyn Fn(&str) -> bool) -> Result<Self, ResourceError> {
        if !text.contains('#')
            && !is_path(text)
            && let Some((path, name)) = text.split_once(':')
            && !path.is_empty()
            && !name.is_empty()
        {
            let canonical = format!("{path}#{}", qualified(name));
            return canonical.parse();
        }
        let resource: Self = text.parse()?;
        // Code has no names with dots inside; a heading may.
        let code = CODE.iter().any(|ending| resource.path.ends_with(ending));
        Ok(match resource.unit() {
            Some(name) if code && name.contains('.') && name.split('.').all(is_word) => {
                resource.with(Part::Unit(qualified(name)))
            }
            Some(_) | None => resource,
        })
    }

    /// Reads the part of a request refname that encodes a resource. Decodes exactly once.
    ///
    /// # Errors
    /// [`ResourceError::Escape`] for a broken escape, else as [`Resource::parse`].
    pub fn decode(encoded: &[u8], is_path: &dyn Fn(&str) -> bool) -> Result<Self, ResourceError> {
        let refuse = || ResourceError::Escape(shorten(&String::from_utf8_lossy(encoded)));
        let mut bytes = Vec::with_capacity(encoded.len());
        let mut rest = encoded;
        while let [first, tail @ ..] = rest {
            rest = tail;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let [high, low, tail @ ..] = tail else { return Err(refuse()) };
            let mut byte = [0];
            hex::decode_to_slice([*high, *low], &mut byte).map_err(|_| refuse())?;
            bytes.push(byte[0]);
            rest = tail;
        }
        let text = String::from_utf8(bytes).map_err(|_| refuse())?;
        Self::parse(&text, is_path)
    }

    /// The canonical form, encoded so that it can end a refname.
    ///
    /// # Source
    /// `spec/refs.md`, "Request refs"; git-check-ref-format(1).
    #[must_use]
    pub fn encode(&self) -> String {
        use fmt::Write as _;
        let canonical = self.to_string();
        let bytes = canonical.as_bytes();
        let mut out = String::with_capacity(bytes.len());
        for (i, &byte) in bytes.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| bytes[i]);
            let after = bytes.get(i + 1).copied();
            let ends_component = matches!(after, None | Some(b'/'));
            let plain = match byte {
                b'.' => {
                    let starts_lock = bytes[i..].starts_with(b".lock")
                        && matches!(bytes.get(i + 5), None | Some(b'/'));
                    !(matches!(before, None | Some(b'/' | b'.')) || ends_component || starts_lock)
                }
                b'/' => !ends_component && before.is_some(),
                b'_' | b'#' | b'(' | b')' | b'-' => true,
                _ => byte.is_ascii_alphanumeric(),
            };
            if plain {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    }

    /// The address of the resource's claim: the first 16 hex of sha256 of the canonical form.
    #[must_use]
    pub fn key(&self) -> String {
        hex::encode(&Sha256::digest(self.to_string().as_bytes())[..8])
    }

    /// The file's path, without escapes.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Which part of the file.
    #[must_use]
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The unit's name, where the resource names a unit.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        match &self.part {
            Part::Unit(name) => Some(name),
            Part::File | Part::Module | Part::Imports => None,
        }
    }

    /// The canonical form as it stands in a sentence: in quotes where it could be read as more than a name.
    #[must_use]
    pub fn shown(&self) -> String {
        let canonical = self.to_string();
        let plain = |c: char| c.is_alphanumeric() || "_./:#@()<>-".contains(c);
        if canonical.chars().all(plain) { canonical } else { crate::quote::quoted(&canonical) }
    }

    /// Whether both name the same thing, or one is the whole file of the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.path == other.path
            && (self.part == other.part || self.part == Part::File || other.part == Part::File)
    }

    /// Whether a claim on one covers something of the other: as [`Resource::overlaps`], and a type holds its methods.
    #[must_use]
    pub fn claim_overlaps(&self, other: &Self) -> bool {
        let holds = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"))
        };
        self.overlaps(other)
            || self.path == other.path
                && match (self.unit(), other.unit()) {
                    (Some(a), Some(b)) => holds(a, b) || holds(b, a),
                    _ => false,
                }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.path.chars() {
            match c {
                '#' => f.write_str("%23")?,
                '%' => f.write_str("%25")?,
                c => write!(f, "{c}")?,
            }
        }
        match &self.part {
            Part::File => Ok(()),
            Part::Module => f.write_str("#"),
            Part::Imports => f.write_str("#(imports)"),
            Part::Unit(name) => write!(f, "#{name}"),
        }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for Resource {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<Self, ResourceError> {
        let refuse = |why| ResourceError::Path { text: shorten(text), why };
        if text.len() > MAX_RESOURCE {
            return Err(refuse("longer than 4096 bytes"));
        }
        let (path, name) = match text.split_once('#') {
            Some((path, name)) => (path, Some(name)),
            None => (text, None),
        };
        let path = unescape(path).ok_or_else(|| refuse("in the path '%' is written %25"))?;
        if let Some(why) = path_fault(&path) {
            return Err(refuse(why));
        }
        let part = match name {
            None => Part::File,
            Some(name) if name.chars().any(char::is_control) => {
                return Err(refuse("a name has no control characters"));
            }
            // A heading may be any text.
            Some(name) if PROSE.iter().any(|ending| path.ends_with(ending)) => unit_part(name),
            Some(name) => unit_part(&method_spelling(name.trim())),
        };
        Ok(Self { path, part })
    }
}

/// Undoes `%23` and `%25`; any other escape is an error.
fn unescape(path: &str) -> Option<String> {
    let mut pieces = path.split('%');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        let (escape, rest) = piece.split_at_checked(2)?;
        out.push(match escape {
            "23" => '#',
            "25" => '%',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}

fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("the path is empty");
    }
    if path.len() > MAX_RESOURCE {
        return Some("longer than 4096 bytes");
    }
    if path.chars().any(char::is_control) {
        return Some("a path has no control characters");
    }
    if path.split('/').any(|component| matches!(component, "" | "." | "..")) {
        return Some("a path is relative to the root, without '.', '..' or empty components");
    }
    None
}

fn unit_part(name: &str) -> Part {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match name.trim() {
        "" => Part::Module,
        "(imports)" => Part::Imports,
        name => Part::Unit(name.to_owned()),
    }
}

/// `(*T).M` and `T->m` as `T::M` and `T::m`.
fn method_spelling(name: &str) -> String {
    if let Some((ty, method)) = name.strip_prefix("(*").and_then(|rest| rest.split_once(")."))
        && !ty.contains('(')
    {
        return format!("{ty}::{method}");
    }
    match name.split_once("->") {
        Some((ty, method)) if is_word(ty) && is_word(method) => format!("{ty}::{method}"),
        _ => name.to_owned(),
    }
}

/// `A.b` as `A::b`, for the form with a colon.
fn qualified(name: &str) -> String {
    if name.starts_with("(*") { method_spelling(name) } else { name.replace('.', "::") }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FILE: &dyn Fn(&str) -> bool = &|_| false;

    #[track_caller]
    fn check(input: &str, canonical: &str) {
        assert_eq!(Resource::parse(input, NO_FILE).unwrap().to_string(), canonical, "{input:?}");
    }

    #[test]
    fn every_form_has_one_canonical_spelling() {
        check("src/a.rs", "src/a.rs");
        check("src/a.rs#", "src/a.rs#");
        check("src/a.rs#(imports)", "src/a.rs#(imports)");
        check("src/a.rs#T::m", "src/a.rs#T::m");
        check("src/a.rs#  T->m ", "src/a.rs#T::m");
        check("notes.md#a->b", "notes.md#a->b");
        check("a.go#(*(*T).M).x", "a.go#(*(*T).M).x");
        check("src/a.ts:Config.load", "src/a.ts#Config::load");
        check("src/a.ts:parse", "src/a.ts#parse");
        check("src/a.rs:T::m", "src/a.rs#T::m");
        check("src/a.ts#Config.load", "src/a.ts#Config::load");
        check("a.go#(*T).M", "a.go#T::M");
        check("a.go:(*T).M", "a.go#T::M");
        check("a.c#T->m", "a.c#T::m");
        check("README.md#1.2 Install", "README.md#1.2 Install");
        check("a%23b%25.md#x#y", "a%23b%25.md#x#y");
    }

    #[test]
    fn a_file_with_a_colon_in_its_name_is_that_file_where_it_exists() {
        let found = Resource::parse("a:b", &|path| path == "a:b").unwrap();
        assert_eq!(found.path(), "a:b");
        assert_eq!(found.part(), &Part::File);
    }

    #[test]
    fn hashes_and_percent_signs_in_paths_round_trip() {
        let file = Resource::file("a#b%23.rs").unwrap();
        assert_eq!(file.to_string(), "a%23b%2523.rs");
        assert_eq!(file.to_string().parse::<Resource>().unwrap(), file);
        // `a%23b#X` is sent as `a%2523b#X`: encoded once more, decoded exactly once.
        let unit: Resource = "a%23b#X".parse().unwrap();
        assert_eq!(unit.encode(), "a%2523b#X");
        assert_eq!(Resource::decode(b"a%2523b#X", NO_FILE).unwrap(), unit);
    }

    #[test]
    fn what_is_not_a_resource_is_refused() {
        for text in [
            "",
            "#x",
            "/a",
            "a//b",
            "a/",
            "./a",
            "../a",
            "a/../b",
            "a\nb",
            "a#b\nc",
            "a%zz",
            "a%2",
            "a#\u{1b}[31m",
            &"x".repeat(5000),
        ] {
            assert!(text.parse::<Resource>().is_err(), "{text:?}");
        }
        for text in ["a%", "a%2", "a%zz", "a%FF"] {
            assert!(Resource::decode(text.as_bytes(), NO_FILE).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_encoded_resource_is_a_valid_refname_and_decodes_to_itself() {
        for text in [
            "src/a.rs#T::m",
            ".github/x.lock/y..z",
            "a.lock",
            "a.",
            "x#1.2 Install: déjà @{vu}",
            "x#a//b/",
            "x#/",
            "x#T::f@Display<A, B>",
            "a%23b#~^:?*[\\",
            "x#..",
            "x#.lock",
        ] {
            let resource: Resource = text.parse().unwrap();
            let name = format!("refs/zit/claim/{}", resource.encode());
            assert!(crate::RefName::new(&name).is_ok(), "{name}");
            assert_eq!(Resource::decode(resource.encode().as_bytes(), NO_FILE).unwrap(), resource);
        }
    }

    #[test]
    fn a_name_that_reads_as_a_sentence_stands_in_quotes() {
        let shown = |text: &str| text.parse::<Resource>().unwrap().shown();
        assert_eq!(shown("src/a.rs#T::m@Trait<A>"), "src/a.rs#T::m@Trait<A>");
        assert_eq!(shown("README.md#run: curl x"), "\"README.md#run: curl x\"");
        assert_eq!(shown("a#x\" and \"y"), "\"a#x' and 'y\"");
    }

    #[test]
    fn a_file_overlaps_its_parts_and_units_overlap_only_themselves() {
        let r = |text: &str| text.parse::<Resource>().unwrap();
        assert!(r("a#x").overlaps(&r("a")));
        assert!(r("a").overlaps(&r("a#")));
        assert!(!r("a#x").overlaps(&r("b#x")));
        assert!(!r("a#T").overlaps(&r("a#T::m")));
        assert!(r("a#T").claim_overlaps(&r("a#T::m")));
        assert!(r("a#T::m").claim_overlaps(&r("a#T")));
        assert!(!r("a#T::m").claim_overlaps(&r("a#T::n")));
        assert!(!r("a#T").claim_overlaps(&r("a#Tx::n")));
    }
}
