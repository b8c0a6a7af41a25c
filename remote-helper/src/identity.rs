//! Which agent and item speak: the environment first, then git's configuration.
//!
//! | | environment | configuration |
//! | --- | --- | --- |
//! | agent | `ZIT_AGENT` | `zit.agent` |
//! | item | `ZIT_ITEM` | `zit.item` |
//!
//! An empty value counts as none. What is found here claims, it does not prove: the server takes an agent only from the
//! principal that owns it.

use zit_model::{
    AgentId, ItemId,
    agent::{AgentIdError, ItemIdError},
};

/// Who says to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The agent; without one the server takes the seat in the address, or the principal.
    pub agent: Option<AgentId>,
    /// The task that a push belongs to; without one the server takes the ref's.
    pub item: Option<ItemId>,
}

/// Why the identity cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IdentityError {
    /// The agent is not an agent id.
    #[error("{place}")]
    Agent {
        /// Where it was found.
        place: Place,
        /// What is wrong with it.
        source: AgentIdError,
    },
    /// The item is not an item id.
    #[error("{place}")]
    Item {
        /// Where it was found.
        place: Place,
        /// What is wrong with it.
        source: ItemIdError,
    },
}

/// Where a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The named environment variable.
    Environment(&'static str),
    /// The named key of git's configuration.
    Config(&'static str),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Config(key) => write!(f, "git config {key}"),
        }
    }
}

impl IdentityError {
    /// What to type instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Agent { place: Place::Environment(_), .. } => {
                "set it as in: export ZIT_AGENT=claude-laptop"
            }
            Self::Agent { place: Place::Config(_), .. } => {
                "set it as in: git config zit.agent claude-laptop"
            }
            Self::Item { place: Place::Environment(_), .. } => {
                "leave it unset, and the item follows the branch; or take 12 digits from: openssl rand -hex 6"
            }
            Self::Item { place: Place::Config(_), .. } => {
                "leave it unset (git config --unset zit.item), and the item follows the branch; or take 12 digits from: openssl rand -hex 6"
            }
        }
    }
}

impl Identity {
    /// Reads the identity. `env` gives a variable's value, `config` that of a key of git's configuration.
    ///
    /// # Errors
    /// [`IdentityError`] naming the place and what is wrong there.
    pub fn read(
        env: impl Fn(&str) -> Option<String>,
        config: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, IdentityError> {
        let find = |variable, key| {
            let from_env = env(variable).map(|value| (Place::Environment(variable), value));
            let set = |(_, value): &(Place, String)| !value.is_empty();
            let from_config = || config(key).map(|value| (Place::Config(key), value));
            from_env.filter(set).or_else(|| from_config().filter(set))
        };
        let agent = find("ZIT_AGENT", "zit.agent")
            .map(|(place, id)| {
                AgentId::new(&id).map_err(|source| IdentityError::Agent { place, source })
            })
            .transpose()?;
        let item = find("ZIT_ITEM", "zit.item")
            .map(|(place, id)| {
                ItemId::new(&id).map_err(|source| IdentityError::Item { place, source })
            })
            .transpose()?;
        Ok(Self { agent, item })
    }

    /// The header lines that tell the server, without line ends.
    ///
    /// # Source
    /// `spec/vocabulary.md`, "Which agent speaks".
    #[must_use]
    pub fn headers(&self) -> Vec<String> {
        let agent = self.agent.iter().map(|agent| format!("Zit-Agent: {agent}"));
        let item = self.item.iter().map(|item| format!("Zit-Item: {item}"));
        agent.chain(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(env: &[(&str, &str)], config: &[(&str, &str)]) -> Result<Identity, IdentityError> {
        let look = |pairs: &[(&str, &str)], name: &str| {
            pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        Identity::read(|name| look(env, name), |key| look(config, key))
    }

    #[test]
    fn the_environment_goes_before_the_configuration() {
        let config = [("zit.agent", "b"), ("zit.item", "0123456789ab")];
        for (env, headers) in [
            (vec![], ["Zit-Agent: b", "Zit-Item: 0123456789ab"]),
            (vec![("ZIT_AGENT", "a")], ["Zit-Agent: a", "Zit-Item: 0123456789ab"]),
            (vec![("ZIT_ITEM", "ffffffffffff")], ["Zit-Agent: b", "Zit-Item: ffffffffffff"]),
            (vec![("ZIT_AGENT", "")], ["Zit-Agent: b", "Zit-Item: 0123456789ab"]),
        ] {
            assert_eq!(read(&env, &config).unwrap().headers(), headers, "{env:?}");
        }
    }

    #[test]
    fn nothing_set_says_nothing() {
        assert_eq!(read(&[], &[]), Ok(Identity::default()));
        assert!(Identity::default().headers().is_empty());
    }

    #[test]
    fn a_bad_id_is_named_with_its_place_and_never_becomes_a_header() {
        let error = read(&[("ZIT_AGENT", "a\r\nX-Evil: 1")], &[]).unwrap_err();
        assert_eq!(error.to_string(), "environment variable ZIT_AGENT");
        let error = read(&[("ZIT_AGENT", "a")], &[("zit.item", "12")]).unwrap_err();
        assert_eq!(error.to_string(), "git config zit.item");
    }

    #[test]
    fn the_hint_mends_the_place_where_the_bad_id_was_found() {
        let bad = "A B";
        for (env, config, hint) in [
            (vec![("ZIT_AGENT", bad)], vec![], "set it as in: export ZIT_AGENT="),
            (vec![], vec![("zit.agent", bad)], "set it as in: git config zit.agent "),
            (vec![("ZIT_ITEM", bad)], vec![], "leave it unset"),
            (vec![], vec![("zit.item", bad)], "leave it unset (git config --unset zit.item)"),
        ] {
            let error = read(&env, &config).unwrap_err();
            assert!(error.hint().starts_with(hint), "{error}: {}", error.hint());
        }
    }
}
