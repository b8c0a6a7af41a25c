//! Updates of one ref. Every kind carries its own precondition; an unconditional update cannot be expressed.

use crate::{Oid, RefName};

/// What is to become of one ref, and what it must hold for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefChange {
    /// The ref must not exist.
    Create {
        /// The value it gets.
        new: Oid,
    },
    /// The ref must hold `old`.
    Move {
        /// The value it must hold.
        old: Oid,
        /// The value it gets.
        new: Oid,
    },
    /// The ref must hold `old`, and goes away.
    Delete {
        /// The value it must hold.
        old: Oid,
    },
}

impl RefChange {
    /// The change from what was to what shall be; `None` when neither is a value.
    #[must_use]
    pub fn between(old: Option<Oid>, new: Option<Oid>) -> Option<Self> {
        match (old, new) {
            (None, Some(new)) => Some(Self::Create { new }),
            (Some(old), Some(new)) => Some(Self::Move { old, new }),
            (Some(old), None) => Some(Self::Delete { old }),
            (None, None) => None,
        }
    }

    /// The value the ref must hold before; `None` for "must not exist".
    #[must_use]
    pub fn old_value(&self) -> Option<Oid> {
        match *self {
            Self::Create { .. } => None,
            Self::Move { old, .. } | Self::Delete { old } => Some(old),
        }
    }

    /// The value the ref holds afterwards; `None` once deleted.
    #[must_use]
    pub fn new_value(&self) -> Option<Oid> {
        match *self {
            Self::Create { new } | Self::Move { new, .. } => Some(new),
            Self::Delete { .. } => None,
        }
    }
}

/// A change of a named ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    /// Which ref.
    pub name: RefName,
    /// What becomes of it.
    pub change: RefChange,
}
