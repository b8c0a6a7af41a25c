//! Refs as a client is told of them, and how oids are written.
//!
//! Which refs a client may see, and in which order, is the caller's decision; git's order is by name, bytewise.

use gix_hash::Kind;
use zit_model::{Oid, RefName};

/// One ref of an advertisement or of an answer to `ls-refs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedRef {
    /// Its full name.
    pub name: RefName,
    /// The object it resolves to.
    pub oid: Oid,
    /// What an annotated tag finally points at; `None` when `oid` is not a tag.
    pub peeled: Option<Oid>,
    /// The ref it points at, for a symref.
    pub symref_target: Option<RefName>,
}

impl AdvertisedRef {
    /// A ref that is neither a symref nor a tag object.
    #[must_use]
    pub fn direct(name: RefName, oid: Oid) -> Self {
        Self { name, oid, peeled: None, symref_target: None }
    }
}

/// What HEAD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A symref to a ref that exists.
    Attached {
        /// The ref; of a chain of symrefs, the last one.
        target: RefName,
        /// The object it resolves to.
        oid: Oid,
        /// What that finally points at, should it be a tag.
        peeled: Option<Oid>,
    },
    /// An oid.
    Detached {
        /// The oid.
        oid: Oid,
        /// What it finally points at, should it be a tag.
        peeled: Option<Oid>,
    },
    /// A symref to a ref that does not exist yet.
    Unborn(RefName),
}

impl Head {
    /// What HEAD resolves to.
    #[must_use]
    pub fn oid(&self) -> Option<Oid> {
        match self {
            Self::Attached { oid, .. } | Self::Detached { oid, .. } => Some(*oid),
            Self::Unborn(_) => None,
        }
    }

    /// What HEAD finally points at, where it resolves to a tag.
    #[must_use]
    pub fn peeled(&self) -> Option<Oid> {
        match self {
            Self::Attached { peeled, .. } | Self::Detached { peeled, .. } => *peeled,
            Self::Unborn(_) => None,
        }
    }

    /// The ref that HEAD names, whether or not it exists.
    #[must_use]
    pub fn target(&self) -> Option<&RefName> {
        match self {
            Self::Attached { target, .. } | Self::Unborn(target) => Some(target),
            Self::Detached { .. } => None,
        }
    }
}

/// Appends an oid in hexadecimal.
pub(crate) fn push_oid(out: &mut Vec<u8>, oid: Oid) {
    let mut hex = [0; MAX_HEX];
    out.extend_from_slice(oid.as_gix().hex_to_buf(&mut hex).as_bytes());
}

/// Appends an oid in hexadecimal, or zeroes for none.
pub(crate) fn push_oid_or_zero(out: &mut Vec<u8>, oid: Option<Oid>, object_format: Kind) {
    match oid {
        Some(oid) => push_oid(out, oid),
        None => out.extend(std::iter::repeat_n(b'0', object_format.len_in_hex())),
    }
}

/// The hexadecimal digits of a SHA-256.
const MAX_HEX: usize = 64;
