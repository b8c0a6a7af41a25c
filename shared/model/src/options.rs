//! Push options: `git push -o zit.<key>[=<value>]`.
//!
//! Each option is one row of [`TABLE`]. A key of ours that is not there is an error; other keys are passed on.
//!
//! Source: `spec/options.md`.

mod mend;

use bstr::{BString, ByteSlice};

pub use mend::mended;

use crate::{AgentId, ItemId, quote};

/// The longest intent kept, in bytes: one sentence. An agent's items must fit its state document.
pub const MAX_INTENT: usize = 300;

/// Everything a push said by its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `zit.agent=<id>`: who speaks.
    pub agent: Option<AgentId>,
    /// `zit.item=<12 hex>`: which task the push belongs to.
    pub item: Option<ItemId>,
    /// `zit.intent=<sentence>`: what the task is for.
    pub intent: Option<String>,
    /// `zit.claim=<resource>`: claims to take, as written.
    pub claims: Vec<String>,
    /// `zit.require-claim=<resource>`: claims without which nothing moves, as written.
    pub required_claims: Vec<String>,
    /// `zit.release=<resource>`: claims to drop, as written.
    pub releases: Vec<String>,
    /// `zit.status`: report the agent's state.
    pub status: bool,
    /// `zit.dry-run`: judge and report, move nothing.
    pub dry_run: bool,
    /// `zit.format=text|json`.
    pub format: Format,
    /// Options that are not zit's.
    pub passed: Vec<BString>,
}

/// How the answer is written on the side-band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people and agents.
    #[default]
    Text,
    /// One line of JSON.
    Json,
}

/// Why an option is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionError {
    /// No row of [`TABLE`] has this key.
    #[error("unknown option {0}; known: {list}", list = known())]
    Unknown(String),
    /// The option takes a value and got none, or the other way round.
    #[error("option {key} {what}: write {usage}")]
    Form {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        what: &'static str,
        /// How it is written.
        usage: &'static str,
    },
    /// The value is not what the option takes.
    #[error("option {key}: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with the value.
        why: String,
    },
}

/// One option: its key, how it is written, and how its value is taken.
pub struct Row {
    key: &'static str,
    usage: &'static str,
    take: Take,
}

enum Take {
    Value(fn(&mut Options, &str) -> Result<(), String>),
    List(fn(&mut Options) -> &mut Vec<String>),
    Flag(fn(&mut Options)),
}

/// Every option zit knows.
pub const TABLE: &[Row] = &[
    Row {
        key: "zit.agent",
        usage: "zit.agent=<id>",
        take: Take::Value(|o, v| once(&mut o.agent, AgentId::new(v))),
    },
    Row {
        key: "zit.item",
        usage: "zit.item=<12 hex digits>",
        take: Take::Value(|o, v| once(&mut o.item, ItemId::new(v))),
    },
    Row {
        key: "zit.intent",
        usage: "zit.intent=<one sentence>",
        take: Take::Value(|o, v| once(&mut o.intent, sentence(v))),
    },
    Row { key: "zit.claim", usage: "zit.claim=<resource>", take: Take::List(|o| &mut o.claims) },
    Row {
        key: "zit.require-claim",
        usage: "zit.require-claim=<resource>",
        take: Take::List(|o| &mut o.required_claims),
    },
    Row {
        key: "zit.release",
        usage: "zit.release=<resource>",
        take: Take::List(|o| &mut o.releases),
    },
    Row { key: "zit.status", usage: "zit.status", take: Take::Flag(|o| o.status = true) },
    Row { key: "zit.dry-run", usage: "zit.dry-run", take: Take::Flag(|o| o.dry_run = true) },
    Row {
        key: "zit.format",
        usage: "zit.format=text or zit.format=json",
        take: Take::Value(|o, v| {
            o.format = match v {
                "text" => Format::Text,
                "json" => Format::Json,
                _ => return Err(format!("{}: the formats are text and json", quote::quoted(v))),
            };
            Ok(())
        }),
    },
];

impl Options {
    /// Reads the options of one push, in the order sent.
    ///
    /// # Errors
    /// The first option that is unknown, malformed, or given twice with different values.
    pub fn parse(options: &[BString]) -> Result<Self, OptionError> {
        let mut parsed = Self::default();
        for option in options {
            if option.starts_with(b"zit.") {
                parsed.take(&option.to_str_lossy())?;
            } else {
                parsed.passed.push(option.clone());
            }
        }
        Ok(parsed)
    }

    fn take(&mut self, option: &str) -> Result<(), OptionError> {
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option, None),
        };
        let row = TABLE
            .iter()
            .find(|row| row.key == key)
            .ok_or_else(|| OptionError::Unknown(quote::cut(&quote::one_line(key), 80)))?;
        let form = |what| OptionError::Form { key: row.key, what, usage: row.usage };
        match (&row.take, value) {
            (Take::Value(take), Some(value)) => {
                take(self, value).map_err(|why| OptionError::Value { key: row.key, why })
            }
            (Take::List(list), Some(value)) => {
                let list = list(self);
                if !list.iter().any(|known| known == value) {
                    list.push(value.to_owned());
                }
                Ok(())
            }
            (Take::Value(_) | Take::List(_), None) => Err(form("takes a value")),
            (Take::Flag(take), None) => {
                take(self);
                Ok(())
            }
            (Take::Flag(_), Some(_)) => Err(form("takes no value")),
        }
    }
}

fn known() -> String {
    TABLE.iter().map(|row| row.key).collect::<Vec<_>>().join(", ")
}

fn once<T: PartialEq, E: ToString>(
    slot: &mut Option<T>,
    value: Result<T, E>,
) -> Result<(), String> {
    let value = value.map_err(|e| e.to_string())?;
    if slot.as_ref().is_some_and(|known| *known != value) {
        return Err("given twice with different values".into());
    }
    *slot = Some(value);
    Ok(())
}

fn sentence(text: &str) -> Result<String, &'static str> {
    let text = quote::cut(&quote::one_line(text), MAX_INTENT);
    if text.is_empty() { Err("it is empty") } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<Options, OptionError> {
        Options::parse(&options.iter().map(|&o| o.into()).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_others_are_passed_on_untouched() {
        let options = parse(&["ci.skip", "zit.status", "x=y"]).unwrap();
        assert_eq!(options.passed, ["ci.skip", "x=y"]);
        assert!(options.status);
    }

    #[test]
    fn an_unknown_key_of_ours_is_refused_with_the_list_of_known_ones() {
        let error = parse(&["zit.nope=1"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown option zit.nope; known: zit.agent, zit.item, zit.intent, zit.claim, \
             zit.require-claim, zit.release, zit.status, zit.dry-run, zit.format"
        );
    }

    #[test]
    fn a_malformed_option_says_how_it_is_written() {
        for (option, error) in [
            ("zit.claim", "option zit.claim takes a value: write zit.claim=<resource>"),
            ("zit.status=1", "option zit.status takes no value: write zit.status"),
            ("zit.format=xml", "option zit.format: \"xml\": the formats are text and json"),
            ("zit.intent=\n", "option zit.intent: it is empty"),
        ] {
            assert_eq!(parse(&[option]).unwrap_err().to_string(), error);
        }
        assert!(parse(&["zit.agent=A"]).is_err());
        assert!(parse(&["zit.item=1"]).is_err());
    }

    #[test]
    fn a_single_value_given_twice_must_be_the_same() {
        assert!(parse(&["zit.agent=a", "zit.agent=a"]).is_ok());
        assert!(parse(&["zit.agent=a", "zit.agent=b"]).is_err());
        assert_eq!(
            parse(&["zit.claim=a", "zit.claim=b", "zit.claim=a"]).unwrap().claims,
            ["a", "b"]
        );
    }
}
