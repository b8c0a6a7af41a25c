//! Governance: the topics by which trust, roles and lanes are scoped.
//!
//! A [`Topic`] is a path prefix; [`topic_of`] says under which of the known ones a path falls.
//!
//! Invariant: no clock, file, environment or network. Nothing here decides whether somebody may do something.

use std::collections::BTreeSet;
use std::fmt;

/// The topic of everything that no other topic covers.
const ANY: &str = "*";

/// A part of the tree that trust, roles and lanes speak about: a path prefix, or `*` for everything.
///
/// Invariant: `*`, or a relative path of non-empty components, none of them `.` or `..`, without `/` at its end.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(String);

/// Why text is not a topic.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a topic: {0:?}: it is a path from the root of the repository, such as src/auth, or *")]
pub struct TopicError(pub String);

impl Topic {
    /// Reads a topic. One `/` at the end is taken and dropped: `src/` and `src` are the same topic.
    ///
    /// # Errors
    /// [`TopicError`] for an absolute path, an empty one, or one with empty, `.` or `..` components.
    pub fn new(text: &str) -> Result<Self, TopicError> {
        let prefix = text.strip_suffix('/').unwrap_or(text);
        let named = |component: &str| !matches!(component, "" | "." | "..");
        let ok = prefix.split('/').all(named) && !prefix.contains(char::is_control);
        if ok && (prefix != ANY || text == ANY) {
            Ok(Self(prefix.to_owned()))
        } else {
            Err(TopicError(text.chars().take(80).collect()))
        }
    }

    /// The topic `*`, which covers every path.
    #[must_use]
    pub fn any() -> Self {
        Self(ANY.to_owned())
    }

    /// Whether `path` is the topic's own or lies below it. Prefixes end at a component: `src/a` does not cover `src/ab`.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.0 == ANY
            || path
                .strip_prefix(&self.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The topic as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        Self::new(text)
    }
}

/// The topic that `path` falls under: the longest known one that covers it, else `*`.
#[must_use]
pub fn topic_of(path: &str, known: &BTreeSet<Topic>) -> Topic {
    let prefixes = known.iter().filter(|topic| topic.0 != ANY && topic.covers(path));
    prefixes.max_by_key(|topic| topic.0.len()).cloned().unwrap_or_else(Topic::any)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topics(texts: &[&str]) -> BTreeSet<Topic> {
        texts.iter().map(|text| Topic::new(text).unwrap()).collect()
    }

    #[test]
    fn a_topic_is_a_relative_path_or_a_star() {
        for (text, topic) in
            [("*", "*"), ("src", "src"), ("src/", "src"), ("src/é/b.rs", "src/é/b.rs")]
        {
            assert_eq!(Topic::new(text).unwrap().as_str(), topic, "{text:?}");
        }
        for bad in ["", "/", "/src", "src//a", "src//", "./a", "a/..", "a/./b", "*/", "a\nb"] {
            assert!(Topic::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_path_falls_under_the_longest_known_prefix_that_ends_at_a_component() {
        let known = topics(&["*", "src", "src/auth", "docs/"]);
        for (path, topic) in [
            ("src/auth/login.rs", "src/auth"),
            ("src/auth", "src/auth"),
            ("src/authority.rs", "src"),
            ("src2/auth/login.rs", "*"),
            ("docs/a.md", "docs"),
            ("README.md", "*"),
            ("", "*"),
        ] {
            assert_eq!(topic_of(path, &known).as_str(), topic, "{path:?}");
        }
    }

    #[test]
    fn without_known_topics_every_path_falls_under_the_star() {
        assert_eq!(topic_of("src/a.rs", &BTreeSet::new()), Topic::any());
    }

    proptest! {
        #[test]
        fn the_topic_of_a_path_covers_it_and_no_longer_one_does(
            path in "[ab]{1,2}(/[ab]{1,2}){0,3}",
            known in prop::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,2}", 0..6),
        ) {
            let known: BTreeSet<Topic> = known.iter().map(|text| Topic::new(text).unwrap()).collect();
            let topic = topic_of(&path, &known);
            prop_assert!(topic.covers(&path));
            for other in known.iter().filter(|other| other.covers(&path)) {
                prop_assert!(topic != Topic::any() && other.as_str().len() <= topic.as_str().len());
            }
        }
    }
}
