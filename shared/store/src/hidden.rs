//! Refs that a repository's configuration keeps from those who fetch or push: `transfer.hideRefs`, `uploadpack.hideRefs`
//! and `receive.hideRefs`.
//!
//! Hiding is no protection of objects: whoever knows an oid may want it by protocol 2, as with git's server.
//!
//! Source: git-config(1), `transfer.hideRefs`; git's `refs.c`, `ref_is_hidden`.

use bstr::{BStr, BString, ByteSlice};

/// The patterns that hold for one service, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenRefs(Vec<BString>);

impl HiddenRefs {
    /// Reads what is said for all services and for the one whose section is `section`.
    pub(crate) fn read(file: &gix_config::File, section: &str) -> Self {
        let mut patterns = Vec::new();
        for part in file.sections() {
            let header = part.header();
            let name = header.name();
            let is_meant = [b"transfer", section.as_bytes()]
                .iter()
                .any(|wanted| name.eq_ignore_ascii_case(wanted));
            if is_meant && header.subsection_name().is_none() {
                patterns.extend(
                    part.values("hideRefs")
                        .into_iter()
                        .map(|value| BString::from(value.trim_end_with(|c| c == '/'))),
                );
            }
        }
        Self(patterns)
    }

    /// Whether a ref, or `HEAD`, is hidden. Of several patterns that match, the last one counts.
    #[must_use]
    pub fn hides(&self, name: &BStr) -> bool {
        self.hides_in(Some(name), name)
    }

    /// The same in a namespace, which calls the ref `name`, if it is one of its own, and the repository `full`.
    #[must_use]
    pub fn hides_in(&self, name: Option<&BStr>, full: &BStr) -> bool {
        let verdict = self.0.iter().rev().find_map(|pattern| {
            let (hides, prefix) = match pattern.strip_prefix(b"!") {
                Some(prefix) => (false, prefix),
                None => (true, pattern.as_slice()),
            };
            let rest = match prefix.strip_prefix(b"^") {
                Some(prefix) => full.strip_prefix(prefix)?,
                None => name?.strip_prefix(prefix)?,
            };
            (rest.is_empty() || rest.starts_with(b"/")).then_some(hides)
        });
        verdict.unwrap_or(false)
    }

    /// Whether no ref is hidden, whatever its name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> HiddenRefs {
        let file = gix_config::File::try_from(text).unwrap();
        HiddenRefs::read(&file, "uploadpack")
    }

    #[track_caller]
    fn check(text: &str, shown: &[&str], hides: &[&str]) {
        let hidden = hidden(text);
        for name in shown {
            assert!(!hidden.hides((*name).into()), "{name} is hidden by {text:?}");
        }
        for name in hides {
            assert!(hidden.hides((*name).into()), "{name} is shown by {text:?}");
        }
    }

    #[test]
    fn a_pattern_is_a_whole_name_or_the_folders_above_it() {
        check(
            "[transfer]\nhideRefs = refs/pull/\n",
            &["refs/pulls/1", "refs/heads/refs/pull/1", "HEAD"],
            &["refs/pull", "refs/pull/1/head"],
        );
        check("[transfer]\nhideRefs = HEAD\n", &["refs/heads/HEAD"], &["HEAD"]);
        check("[transfer]\nhideRefs = \n", &["HEAD", "refs/heads/x"], &[]);
    }

    #[test]
    fn the_last_pattern_that_matches_counts_whichever_section_it_is_in() {
        let text = "[uploadpack]\nhideRefs = !refs/a/b\n[transfer]\nhideRefs = refs/a\n";
        check(text, &[], &["refs/a/b"]);
        let text = "[Transfer]\nHIDEREFS = refs/a\n[uploadPack]\nhiderefs = !refs/a/b\n";
        check(text, &["refs/a/b", "refs/a/b/c"], &["refs/a/c"]);
    }

    #[test]
    fn a_name_in_full_is_marked_by_a_caret() {
        check("[transfer]\nhideRefs = refs\nhideRefs = !^refs/a\n", &["refs/a"], &["refs/b"]);
    }

    #[test]
    fn in_a_namespace_a_caret_tells_its_name_from_the_repositorys() {
        let text = "[transfer]\nhideRefs = refs/a\nhideRefs = ^refs/namespaces/n/refs/b\nhideRefs = refs/namespaces\n";
        let hidden = hidden(text);
        let hides = |name: &str| {
            let full = format!("refs/namespaces/n/{name}");
            hidden.hides_in(Some(name.into()), full.as_str().into())
        };
        assert_eq!(
            ["refs/a/x", "refs/b/x", "refs/c", "refs/namespaces/m"].map(hides),
            [true, true, false, true]
        );
        assert!(!hidden.hides_in(None, "refs/namespaces/m/refs/a".into()));
        assert!(hidden.hides_in(None, "refs/namespaces/n/refs/b".into()));
        assert!(hidden.hides("refs/namespaces/n/refs/c".into()));
    }

    #[test]
    fn what_is_said_for_pushers_is_nothing_to_fetchers() {
        check(
            "[receive]\nhideRefs = refs/a\n[transfer \"x\"]\nhideRefs = refs\n",
            &["refs/a"],
            &[],
        );
    }
}
