//! Other names for the sample's symbols, so that a test can see the output follow them.
//!
//! A [`Renames`] changes whole words only: `berth` leaves `berths` and `stern_berth` alone. It knows no language; the
//! same words change in code, in comments, in paths and in what the agents say.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::{DemoError, sample};

/// One word and its new spelling, written `OLD=NEW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rename {
    old: String,
    new: String,
}

/// The text is no `OLD=NEW` of two identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected OLD=NEW, both made of letters, digits and _, not starting with a digit")]
pub(crate) struct NotARename;

impl FromStr for Rename {
    type Err = NotARename;

    fn from_str(text: &str) -> Result<Self, NotARename> {
        let (old, new) = text.split_once('=').ok_or(NotARename)?;
        let identifier = |word: &str| {
            word.starts_with(|c: char| is_word(c) && !c.is_ascii_digit())
                && word.chars().all(is_word)
        };
        if !identifier(old) || !identifier(new) {
            return Err(NotARename);
        }
        Ok(Self { old: old.to_owned(), new: new.to_owned() })
    }
}

/// All words that change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renames(BTreeMap<String, String>);

impl Renames {
    /// Takes the words over; for a word given twice, the last spelling counts.
    ///
    /// # Errors
    /// [`DemoError::NoSymbol`] for a word that stands nowhere in the sample.
    pub(crate) fn new(renames: &[Rename]) -> Result<Self, DemoError> {
        let known = |word: &str| {
            sample::FILES.iter().any(|file| words(file.text).any(|found| found == word))
        };
        if let Some(rename) = renames.iter().find(|rename| !known(&rename.old)) {
            return Err(DemoError::NoSymbol { word: rename.old.clone() });
        }
        Ok(Self(renames.iter().map(|rename| (rename.old.clone(), rename.new.clone())).collect()))
    }

    /// The text with every word that changes in its new spelling.
    pub(crate) fn apply(&self, text: &str) -> String {
        words(text).map(|word| self.0.get(word).map_or(word, String::as_str)).collect()
    }
}

/// Cuts a text into words and what is between them; joined again they are the text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inside = is_word(rest.chars().next()?);
        let end = rest.find(|c| is_word(c) != inside).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renames(given: &[&str]) -> Result<Renames, DemoError> {
        let given: Vec<Rename> = given.iter().map(|text| text.parse().unwrap()).collect();
        Renames::new(&given)
    }

    #[test]
    fn whole_words_change_and_nothing_else_does() {
        let renames = renames(&["berth=slot", "describe=berth"]).unwrap();
        assert_eq!(
            renames.apply("berth berths a_berth berth2 describe(berth) ä berth"),
            "slot berths a_berth berth2 berth(slot) ä slot"
        );
        assert_eq!(renames.apply(""), "");
    }

    #[test]
    fn a_word_that_the_sample_does_not_have_is_refused_by_name() {
        let error = renames(&["berth=slot", "nosuchword=x"]).unwrap_err();
        assert_eq!(error.to_string(), "the sample has no symbol nosuchword");
    }

    #[test]
    fn only_two_identifiers_make_a_rename() {
        for text in ["", "a", "a=", "=b", "a=1", "a b=c", "a=b=c", "a=b-c"] {
            assert_eq!(text.parse::<Rename>(), Err(NotARename), "{text:?}");
        }
        assert!("_a1=B".parse::<Rename>().is_ok());
    }
}
