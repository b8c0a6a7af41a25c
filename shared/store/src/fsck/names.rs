//! Names that some file system takes for `.git` or another of git's own files.
//!
//! HFS+ ignores letter case and some invisible characters. NTFS ignores letter case, trailing spaces and dots and what is
//! behind a colon, and gives files a short name; Windows takes a backslash for a slash.
//!
//! # Source
//! `core.protectHFS` and `core.protectNTFS` in git-config(1); [MS-FSCC] 2.1.5.2.1 for short names.

use bstr::ByteSlice as _;

/// One of git's own files.
pub(super) struct Special {
    /// Its name without the dot, in lower case.
    name: &'static str,
    /// How the short name begins that NTFS makes up once the plain ones are taken.
    short: &'static str,
}

pub(super) const MODULES: Special = Special { name: "gitmodules", short: "gi7eba" };
pub(super) const ATTRIBUTES: Special = Special { name: "gitattributes", short: "gi7d29" };
pub(super) const IGNORE: Special = Special { name: "gitignore", short: "gi250a" };
pub(super) const MAILMAP: Special = Special { name: "mailmap", short: "maba30" };

/// How many characters of a name a short name keeps.
const SHORT_LEN: usize = 6;

/// Whether the name, or a part of it behind a backslash, is `.git` somewhere.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    is_hfs(name, "git") || name.split(|byte| *byte == b'\\').any(is_ntfs_dot_git)
}

/// Whether the name is that of a special file somewhere.
pub(super) fn is_special(name: &[u8], special: &Special) -> bool {
    is_hfs(name, special.name) || is_ntfs(name, special)
}

/// The parts of a name that Windows would take for folders and a file, without the first.
pub(super) fn behind_backslashes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.find_iter(b"\\").map(|at| name.get(at + 1..).unwrap_or_default())
}

pub(super) fn is_ntfs(name: &[u8], special: &Special) -> bool {
    if let Some(rest) = strip(name, b".").and_then(|rest| strip(rest, special.name.as_bytes())) {
        return is_padding(rest, b":");
    }
    let kept = special.name.as_bytes().get(..SHORT_LEN).unwrap_or_default();
    if let Some([b'1'..=b'4', rest @ ..]) = strip(name, kept).and_then(|rest| strip(rest, b"~")) {
        return is_padding(rest, b":");
    }
    is_made_up(name, special.short)
}

/// Whether a name is a prefix of `short`, a tilde and digits, eight characters in all.
fn is_made_up(name: &[u8], short: &str) -> bool {
    let Some((name, rest)) = name.split_at_checked(8) else { return false };
    let Some((prefix, number)) = name.split_once_str("~") else { return false };
    let is_number = |number: &[u8]| {
        number.iter().all(u8::is_ascii_digit) && number.first().is_some_and(|first| *first != b'0')
    };
    prefix.len() <= SHORT_LEN
        && strip(short.as_bytes(), prefix).is_some()
        && is_number(number)
        && is_padding(rest, b":")
}

fn is_ntfs_dot_git(name: &[u8]) -> bool {
    let rest = strip(name, b".git").or_else(|| strip(name, b"git~1"));
    rest.is_some_and(|rest| is_padding(rest, b":/\\"))
}

/// Whether only dots and spaces are there, as far as one of `ends` or the end.
fn is_padding(rest: &[u8], ends: &[u8]) -> bool {
    let rest = rest.trim_start_with(|c| c == '.' || c == ' ');
    rest.first().is_none_or(|byte| ends.contains(byte))
}

fn strip<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether the name is a dot and `wanted` to HFS+. What is behind invalid UTF-8 is not seen.
fn is_hfs(name: &[u8], wanted: &str) -> bool {
    let valid = name.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
    let mut seen = valid.chars().filter(|c| !is_invisible(*c)).map(|c| c.to_ascii_lowercase());
    let is_named = seen.next() == Some('.') && wanted.chars().all(|c| seen.next() == Some(c));
    is_named && seen.next().is_none_or(|c| c == '/')
}

/// Characters that HFS+ leaves out of a comparison.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_git_are_seen_through_what_file_systems_make_of_them() {
        for name in [
            ".git",
            ".GIT",
            ".git ",
            ".git...",
            "git~1",
            "GIT~1. ",
            ".git::$INDEX",
            "a\\.git",
            ".g\u{200c}it",
            ".git\u{feff}",
            ".git\\x",
            "..\\.git ",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name:?}");
        }
        for name in [".gitx", "git", ".gi", "git~2", ".git x", "x.git", ".gıt", ""] {
            assert!(!is_dot_git(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn short_names_of_special_files_are_seen() {
        for name in [".gitmodules", ".GITMODULES .", "gitmod~1", "GITMOD~4", "gi7eba~1", "gi7eb~10"]
        {
            assert!(is_special(name.as_bytes(), &MODULES), "{name:?}");
        }
        for name in ["gitmodules", "gitmod~5", "gi7eba~0", "gi7eba~1x", "gi7ebb~1", ".gitmodule"] {
            assert!(!is_special(name.as_bytes(), &MODULES), "{name:?}");
        }
    }
}
