//! Options that cannot be taken, as they were probably meant.
//!
//! Use [`mended`] for the push that is printed to whoever sent them. Nothing is ever done by a mended option unless it is
//! sent again.

use bstr::{BString, ByteSlice};

use super::{Options, Row, TABLE, Take};
use crate::AgentId;

/// The options of one push as they were probably meant: a key of ours that does not exist is the closest one that does,
/// and what cannot be mended is left out. `None` where an option is not text.
#[must_use]
pub fn mended(options: &[BString]) -> Option<Vec<String>> {
    let (mut taken, mut kept) = (Options::default(), Vec::new());
    for option in options {
        let option = option.to_str().ok()?;
        if !option.starts_with("zit.") {
            kept.push(option.to_owned());
            continue;
        }
        let written = std::iter::once(option.to_owned()).chain(mend(option));
        let works = written.into_iter().find(|option| taken.take(option).is_ok());
        kept.extend(works.filter(|option| !kept.contains(option)));
    }
    Some(kept)
}

/// One option of ours, mended.
fn mend(option: &str) -> Option<String> {
    let (key, value) = match option.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (option, None),
    };
    let Row { key, take, .. } = closest(key, TABLE, |row| row.key)?;
    if matches!(take, Take::Flag(_)) {
        return Some((*key).to_owned());
    }
    let value = value?;
    let value = match *key {
        "zit.agent" if AgentId::new(value).is_err() => AgentId::slug(value)?.as_str().to_owned(),
        "zit.format" => (*closest(value, &["text", "json"], |format| format)?).to_owned(),
        _ => value.to_owned(),
    };
    Some(format!("{key}={value}"))
}

/// What is written almost as `text` is: with one letter in three changed, swapped, added or left out, at most.
fn closest<'a, T>(text: &str, all: &'a [T], name: impl Fn(&T) -> &str) -> Option<&'a T> {
    let text = text.to_lowercase();
    let distance = |name: &str| {
        let bound = name.trim_start_matches("zit.").len() / 3;
        // A text of another length is none of these, however long it is.
        let near = text.len().abs_diff(name.len()) <= bound;
        near.then(|| strsim::osa_distance(&text, name)).filter(|n| *n <= bound)
    };
    let known = all.iter().filter_map(|one| Some((distance(name(one))?, one)));
    known.min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &[&str], expected: &[&str]) {
        let options: Vec<BString> = options.iter().map(|&option| option.into()).collect();
        let mended = mended(&options).unwrap();
        assert_eq!(mended, expected, "{options:?}");
        let again: Vec<BString> = mended.iter().map(|option| option.as_str().into()).collect();
        assert!(Options::parse(&again).is_ok(), "{mended:?}");
    }

    #[test]
    fn a_misspelt_key_is_the_closest_that_there_is() {
        check(&["zit.clam=a#x"], &["zit.claim=a#x"]);
        check(&["zit.claims=a", "zit.claim=b"], &["zit.claim=a", "zit.claim=b"]);
        check(&["zit.requireclaim=a"], &["zit.require-claim=a"]);
        check(&["zit.Intent=Say it"], &["zit.intent=Say it"]);
        check(&["zit.dryrun=true"], &["zit.dry-run"]);
        check(&["zit.formt=josn"], &["zit.format=json"]);
    }

    #[test]
    fn what_resembles_nothing_is_left_out_and_the_rest_is_kept() {
        check(&["zit.nope=1", "ci.skip", "zit.status"], &["ci.skip", "zit.status"]);
        check(&["zit.claim", "zit.item=1", "zit.intent="], &[]);
        check(&["zit.agent=ada", "zit.agent=eve"], &["zit.agent=ada"]);
        check(&["zit.format=xml", &format!("zit.{}", "x".repeat(5000))], &[]);
    }

    #[test]
    fn a_value_is_brought_into_its_form() {
        check(&["zit.agent=Ada Lovelace"], &["zit.agent=ada-lovelace"]);
        check(&["zit.status=1", "zit.status"], &["zit.status"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_not_mended() {
        assert_eq!(mended(&["zit.claim=\u{e9}".into(), b"\xff".as_slice().into()]), None);
    }
}
