//! Mentions: names that code uses and does not bind, as one version of a file says them.
//!
//! While a file is walked a [`Mention`] borrows from its text. [`Mentions`] are those of one unit, in one piece of memory
//! that outlives the text; [`Mentions::beyond`] answers what one version says more often than another.

use std::sync::Arc;

use crate::shape::Uses;

/// Stands for a value whose type is not known.
pub(crate) const VALUE: &str = "\u{1}";

/// The longest path before a name that is followed, in bytes. Source: ours; each name of a path is a mention with all that
/// stands before it, so without a bound one path takes the square of its length.
pub(crate) const MAX_PATH: usize = 512;

/// Stands for the type that a method belongs to: `self`, `this`, `Self`.
pub(crate) const OWN: &str = "\u{2}";

/// A name that code uses and does not bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention<'s> {
    /// The name.
    pub name: &'s str,
    /// What stands before it, as the file writes it: nothing, a path, [`VALUE`] or [`OWN`]. A value whose type is
    /// written counts as its type.
    pub of: &'s str,
    /// How it is used.
    pub uses: Uses,
}

impl Mention<'_> {
    /// The names that stand before the name, outermost first, without type arguments; `None` for a value of which
    /// nothing is known. `container` is the type that the mentioning code belongs to.
    pub(crate) fn path(&self, container: Option<&str>) -> Option<Vec<Box<str>>> {
        match self.of {
            VALUE => None,
            OWN => container.map(|container| vec![container.into()]),
            "" => Some(Vec::new()),
            path => Some(names(path)),
        }
    }
}

/// The names of a path as code writes it: `a::b<T>::C`, `a.b`.
fn names(path: &str) -> Vec<Box<str>> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut depth = 0_usize;
    for char in path.chars() {
        match char {
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            _ if depth > 0 || char.is_whitespace() => {}
            ':' | '.' | '?' | '!' => {
                if !name.is_empty() {
                    names.push(std::mem::take(&mut name).into());
                }
            }
            _ => name.push(char),
        }
    }
    if !name.is_empty() {
        names.push(name.into());
    }
    names
}

/// The mentions of one unit, sorted, as often as they occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions(Arc<str>);

impl Mentions {
    /// Packs mentions.
    pub(crate) fn of(mut mentions: Vec<Mention<'_>>) -> Self {
        mentions.sort_unstable();
        let len = mentions.iter().map(|m| m.name.len() + m.of.len() + 3).sum();
        let mut all = String::with_capacity(len);
        for Mention { name, of, uses } in mentions {
            // Invariant: sources have no NUL, so it ends fields unambiguously.
            all.push_str(name);
            all.push('\0');
            all.push_str(of);
            all.push('\0');
            all.push(char::from(uses.bits()));
        }
        Self(all.into())
    }

    /// The mentions, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Mention<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (name, after) = rest.split_once('\0')?;
            let (of, after) = after.split_once('\0')?;
            let (uses, after) = after.split_at_checked(1)?;
            rest = after;
            let uses = Uses::from_bits(uses.bytes().next()?);
            Some(Mention { name, of, uses })
        })
    }

    /// The names, but those of members of values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|mention| !matches!(mention.of, VALUE | OWN)).map(|mention| mention.name)
    }

    /// Those that occur here more often than in `other`, each once.
    pub(crate) fn beyond<'a>(&'a self, other: &'a Self) -> Vec<Mention<'a>> {
        let mut others = other.iter().peekable();
        let mut found: Vec<Mention<'a>> = Vec::new();
        for mention in self.iter() {
            while others.next_if(|other| *other < mention).is_some() {}
            if others.next_if_eq(&mention).is_none() && found.last() != Some(&mention) {
                found.push(mention);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention(name: &str) -> Mention<'_> {
        Mention { name, of: "", uses: Uses::CALL }
    }

    #[test]
    fn what_is_said_more_often_than_before_is_new() {
        let of = |names: &[&'static str]| Mentions::of(names.iter().map(|n| mention(n)).collect());
        let names = |of: &[Mention<'_>]| of.iter().map(|m| m.name.to_owned()).collect::<Vec<_>>();
        let (old, new) = (of(&["b", "a", "a"]), of(&["a", "a", "a", "a", "c", "b"]));
        assert_eq!(names(&new.beyond(&old)), ["a", "c"]);
        assert!(old.beyond(&new).is_empty());
        assert!(new.beyond(&new).is_empty());
    }

    #[test]
    fn a_path_is_its_names_without_type_arguments() {
        for (path, expected) in [
            ("a::b", &["a", "b"][..]),
            ("Vec::<Option<T>>", &["Vec"]),
            ("crate :: a", &["crate", "a"]),
            ("a.b?.c", &["a", "b", "c"]),
            ("List[int]", &["List"]),
        ] {
            assert_eq!(names(path).iter().map(|n| &**n).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
