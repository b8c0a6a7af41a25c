//! The part of `zit.toml` that shapes claims, landing and tags, read from the state that is current.
//!
//! Source: `spec/settings.md`.

use std::time::Duration;

use serde::Deserialize;

/// What a repository settled in its `zit.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a claim lives without renewal.
    pub lease: Duration,
    /// How long unlanded work of another agent holds what it writes.
    pub inflight_ttl: Duration,
    /// Whether a claim that meets such work is refused.
    pub inflight: Policy,
    /// Whether an accept that writes what another agent claims is refused.
    pub bind: Policy,
    /// What makes a change meet what landed before it.
    pub judge: Judge,
    /// Whether tags may move and go.
    pub tags: Tags,
}

/// What makes a change meet what landed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// A use of what the other side alters, where it means that and may be wrong.
    Resolved,
    /// Any mention of its name.
    Names,
}

/// Whether a finding stops what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It does.
    Refuse,
    /// It is told, and nothing else.
    Advise,
}

/// Whether tags may move and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// A tag is created once.
    CreateOnly,
    /// Tags behave as in git.
    Movable,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(10),
            inflight_ttl: Duration::from_hours(24),
            inflight: Policy::Refuse,
            bind: Policy::Refuse,
            judge: Judge::Resolved,
            tags: Tags::CreateOnly,
        }
    }
}

/// Why a `zit.toml` cannot be followed; the defaults stand meanwhile.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("zit.toml: {0}")]
pub struct SettingsError(String);

impl Settings {
    /// Reads the text of a `zit.toml`. Tables that are not about claims, accepts or refs are left to their readers.
    ///
    /// # Errors
    /// [`SettingsError`] with the line, for broken TOML, an unknown key of `[claims]`, `[accept]` or `[refs]`, or a bad
    /// value.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let file: File = toml::from_str(text).map_err(|e| SettingsError(first_lines(&e)))?;
        let defaults = Self::default();
        let policy =
            |value: Option<String>, key: &str, refuse: &str, default| match value.as_deref() {
                None => Ok(default),
                Some(v) if v == refuse => Ok(Policy::Refuse),
                Some("advise") => Ok(Policy::Advise),
                Some(_) => Err(SettingsError(format!("{key} is \"{refuse}\" or \"advise\""))),
            };
        Ok(Self {
            lease: duration(file.claims.lease, "claims.lease", defaults.lease)?,
            inflight_ttl: duration(
                file.claims.inflight_ttl,
                "claims.inflight_ttl",
                defaults.inflight_ttl,
            )?,
            inflight: policy(file.claims.inflight, "claims.inflight", "refuse", defaults.inflight)?,
            bind: policy(file.claims.bind, "claims.bind", "accept", defaults.bind)?,
            judge: match file.accept.judge.as_deref() {
                None | Some("resolved") => Judge::Resolved,
                Some("names") => Judge::Names,
                Some(_) => {
                    return Err(SettingsError("accept.judge is \"resolved\" or \"names\"".into()));
                }
            },
            tags: match file.refs.tags.as_deref() {
                None | Some("create") => Tags::CreateOnly,
                Some("move") => Tags::Movable,
                Some(_) => {
                    return Err(SettingsError("refs.tags is \"create\" or \"move\"".into()));
                }
            },
        })
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    claims: Claims,
    #[serde(default)]
    accept: Accept,
    #[serde(default)]
    refs: Refs,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    lease: Option<String>,
    inflight_ttl: Option<String>,
    inflight: Option<String>,
    bind: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accept {
    judge: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refs {
    tags: Option<String>,
}

/// A number and `s`, `m`, `h` or `d`; from one second to one year.
fn duration(text: Option<String>, key: &str, default: Duration) -> Result<Duration, SettingsError> {
    let Some(text) = text else { return Ok(default) };
    let seconds = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]
        .iter()
        .find_map(|(unit, factor)| {
            text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*factor)
        })
        .filter(|seconds| (1..=366 * 86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        SettingsError(format!("{key} is a time such as \"90s\", \"10m\" or \"24h\""))
    })
}

fn first_lines(error: &toml::de::Error) -> String {
    crate::quote::one_line(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_gives_the_defaults() {
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
        assert_eq!(Settings::parse("[[check]]\nname='x'").unwrap(), Settings::default());
    }

    #[test]
    fn every_key_is_read() {
        let text = "[claims]\nlease='90s'\ninflight_ttl='2h'\ninflight='advise'\nbind='advise'\n[accept]\njudge='names'\n[refs]\ntags='move'";
        assert_eq!(
            Settings::parse(text).unwrap(),
            Settings {
                lease: Duration::from_secs(90),
                inflight_ttl: Duration::from_hours(2),
                inflight: Policy::Advise,
                bind: Policy::Advise,
                judge: Judge::Names,
                tags: Tags::Movable,
            }
        );
    }

    #[test]
    fn a_bad_key_or_value_is_named() {
        for (text, part) in [
            ("[claims]\nleese='1s'", "unknown field `leese`"),
            ("[claims]\nlease='0s'", "claims.lease is a time"),
            ("[claims]\nlease='99999999999999999999d'", "claims.lease is a time"),
            ("[claims]\nbind='no'", "claims.bind is \"accept\" or \"advise\""),
            ("[accept]\njudge='me'", "accept.judge is \"resolved\" or \"names\""),
            ("[accept]\njudges='names'", "unknown field `judges`"),
            ("[refs]\ntags='x'", "refs.tags is"),
            ("[claims\n", "line 1"),
        ] {
            let error = Settings::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?} gave {error:?}");
        }
    }
}
