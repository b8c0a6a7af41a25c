//! Who speaks: principals, agents and their items.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::RefName;

/// One seat of work: `[a-z0-9][a-z0-9-]{0,47}`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(String);

/// Why text is not an agent id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an agent id: {0:?}: it has 1 to 48 of a-z, 0-9 and '-', and does not start with '-'")]
pub struct AgentIdError(pub String);

impl AgentId {
    /// Reads an agent id.
    ///
    /// # Errors
    /// [`AgentIdError`] when the text is not of the form `[a-z0-9][a-z0-9-]{0,47}`.
    pub fn new(id: &str) -> Result<Self, AgentIdError> {
        let ok = (1..=48).contains(&id.len())
            && !id.starts_with('-')
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if ok { Ok(Self(id.to_owned())) } else { Err(AgentIdError(id.chars().take(80).collect())) }
    }

    /// The agent id that a person's name stands for: lower case, every other run of characters one `-`.
    ///
    /// `None` when nothing of the name is left.
    #[must_use]
    pub fn slug(name: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in name.chars() {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
            if slug.len() == 48 {
                break;
            }
        }
        Self::new(slug.trim_end_matches('-')).ok()
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(id: &str) -> Result<Self, AgentIdError> {
        Self::new(id)
    }
}

/// One task of one agent: 12 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(String);

/// Why text is not an item id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an item id: {0:?}: it has 12 digits of 0-9 and a-f")]
pub struct ItemIdError(pub String);

impl ItemId {
    /// Reads an item id.
    ///
    /// # Errors
    /// [`ItemIdError`] for anything but 12 lower-case hexadecimal digits.
    pub fn new(id: &str) -> Result<Self, ItemIdError> {
        let ok = id.len() == 12 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if ok { Ok(Self(id.to_owned())) } else { Err(ItemIdError(id.chars().take(80).collect())) }
    }

    /// The item that a push belongs to when it names none.
    ///
    /// Shape: the first 12 hex of `sha256(agent NUL refname)`.
    #[must_use]
    pub fn default_for(agent: &AgentId, name: &RefName) -> Self {
        let mut hash = Sha256::new();
        hash.update(agent.as_str());
        hash.update([0]);
        hash.update(name.as_bstr());
        Self(hex::encode(&hash.finalize()[..6]))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What sort of principal a credential belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PrincipalKind {
    /// A person.
    Human,
    /// A program with a credential of its own.
    Bot,
}

/// Who the credential says is speaking.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    /// The name the credential belongs to.
    pub name: String,
    /// Person or program.
    pub kind: PrincipalKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_id_is_lower_case_letters_digits_and_inner_dashes() {
        for good in ["a", "0", "claude-laptop-3fa9c1", &"x".repeat(48), "a-"] {
            assert!(AgentId::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "-a", "A", "a_b", "a.b", "a/b", "a b", "é", "a\n", &"x".repeat(49)] {
            assert!(AgentId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_persons_name_becomes_a_slug() {
        for (name, slug) in
            [("Ada Lovelace", "ada-lovelace"), ("  Zoë  K. ", "zo-k"), ("bot[7]", "bot-7")]
        {
            assert_eq!(AgentId::slug(name).unwrap().as_str(), slug, "{name:?}");
        }
        assert_eq!(AgentId::slug("☃"), None);
        assert!(AgentId::slug(&"long name ".repeat(20)).unwrap().as_str().len() <= 48);
    }

    #[test]
    fn the_default_item_depends_on_the_agent_and_on_the_ref() {
        let [a, b] = ["a", "b"].map(|id| AgentId::new(id).unwrap());
        let [x, y] = ["refs/heads/x", "refs/heads/y"].map(|name| RefName::new(name).unwrap());
        let ids = [(&a, &x), (&a, &y), (&b, &x)].map(|(a, n)| ItemId::default_for(a, n));
        assert_ne!(ids[0], ids[1]);
        assert_ne!(ids[0], ids[2]);
        // Pinned: the id is written into refs and must not change between versions.
        let digest = hex::encode(Sha256::digest(b"a\0refs/heads/x"));
        assert_eq!(ids[0].as_str(), &digest[..12]);
    }
}
