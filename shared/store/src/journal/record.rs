//! What the journal holds: [`Record`], one acknowledged transaction, and [`Draft`], a record that has no number yet.
//!
//! Plain data. Never interprets a ref, an object or a fact.

use std::fmt;

use bstr::{BStr, BString};
use zit_model::{Oid, RefUpdate};

use crate::Kind;

/// The number of a record: from 1, without gaps, never reused. Zero stands for "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first record.
    pub const NONE: Self = Self(0);

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        self.plus(1)
    }

    pub(super) fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// SHA-256 of a record and, through it, of every record before. All zero before the first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

/// Where a transaction came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A push that was judged.
    Push,
    /// The referee itself: a landing, a claim that lapsed.
    Referee,
    /// Another program moved refs, and this records what was found.
    External,
    /// A replay met a ref that another program had moved meanwhile, and left it so.
    Override,
}

impl Origin {
    /// The word for it, as the log shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Referee => "referee",
            Self::External => "external",
            Self::Override => "override",
        }
    }
}

/// A transaction to be appended; [`Journal::append`](super::Journal::append) gives it its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// When, in milliseconds since 1970-01-01T00:00:00Z. For people; nothing is decided by it.
    pub time_ms: u64,
    /// Whose credential it was.
    pub principal: BString,
    /// The agent that spoke; may be empty.
    pub agent: BString,
    /// Where it came from.
    pub origin: Origin,
    /// The refs that moved.
    pub changes: Vec<RefUpdate>,
    /// Loose objects that it wrote.
    pub objects: Vec<InlineObject>,
    /// Small packs that it brought.
    pub packs: Vec<InlinePack>,
    /// Larger packs that it brought, by name; each was flushed, file and folder, before the append.
    pub named_packs: Vec<BString>,
    /// What refs cannot carry.
    pub facts: Vec<Fact>,
}

impl Draft {
    /// A draft that changes nothing yet.
    #[must_use]
    pub fn new(time_ms: u64, principal: impl Into<BString>, origin: Origin) -> Self {
        Self {
            time_ms,
            principal: principal.into(),
            agent: BString::default(),
            origin,
            changes: Vec::new(),
            objects: Vec::new(),
            packs: Vec::new(),
            named_packs: Vec::new(),
            facts: Vec::new(),
        }
    }
}

/// A transaction with its place in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// The hash of the record before.
    pub prev: ChainHash,
    /// What was appended.
    pub draft: Draft,
}

impl std::ops::Deref for Record {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

/// A loose object, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct InlineObject {
    /// What it is.
    pub kind: Kind,
    /// Its id. Whoever writes it out checks that the content hashes to it.
    pub oid: Oid,
    /// Its content, without header, not compressed.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for InlineObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.kind, self.oid, self.bytes.len())
    }
}

/// A pack with its index, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct InlinePack {
    /// The name without folder and ending: `pack-<hex>`.
    pub name: BString,
    /// The pack.
    pub pack: Vec<u8>,
    /// Its index.
    pub idx: Vec<u8>,
}

impl fmt::Debug for InlinePack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} + {} bytes)", self.name, self.pack.len(), self.idx.len())
    }
}

/// Something that refs cannot carry. Kinds are added without a change of the format; a reader passes over kinds that
/// it does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Which kind, such as [`Fact::EPOCH`].
    pub kind: BString,
    /// What it is about; may be empty.
    pub key: BString,
    /// What holds of it.
    pub value: BString,
}

impl Fact {
    /// The kind of the highest epoch given out. No key; the value is decimal.
    pub const EPOCH: &str = "epoch";
    /// The kind of an agent's owner: key the agent, value the principal.
    pub const OWNER: &str = "owner";
    /// The kind of a claim's renewal: key the resource, value as the referee writes it.
    pub const RENEWAL: &str = "renewal";
    /// The kind of a proven signature: key the blob with the push certificate, value who signed.
    pub const SIGNER: &str = "signer";
    /// The kind of a commit at which the repository's history ends since: no key, value the commit.
    pub const SHALLOW: &str = "shallow";

    /// Any fact.
    #[must_use]
    pub fn new(kind: &str, key: impl Into<BString>, value: impl Into<BString>) -> Self {
        Self { kind: kind.into(), key: key.into(), value: value.into() }
    }

    /// The highest epoch given out.
    #[must_use]
    pub fn epoch(epoch: u64) -> Self {
        Self::new(Self::EPOCH, "", epoch.to_string())
    }

    /// Whose agent this is.
    #[must_use]
    pub fn owner(agent: &BStr, principal: &BStr) -> Self {
        Self::new(Self::OWNER, agent, principal)
    }

    /// A claim was renewed.
    #[must_use]
    pub fn renewal(resource: &BStr, value: impl Into<BString>) -> Self {
        Self::new(Self::RENEWAL, resource, value)
    }
}
