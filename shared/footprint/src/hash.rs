//! Unit hashes: what two versions of a unit are compared by. Never an object id.

use std::fmt;

use sha2::{Digest, Sha256};

/// The hash of a unit's tokens: the first 16 bytes of a SHA-256.
///
/// Shape: equal hashes mean equal tokens; whitespace, line endings and comments inside a unit do not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitHash([u8; 16]);

impl UnitHash {
    /// Hashes parts; where one part ends and the next begins counts.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hash.finalize()[..16]);
        Self(short)
    }

    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for UnitHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for UnitHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnitHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_part_ends_counts() {
        assert_ne!(UnitHash::of([&b"ab"[..], b"c"]), UnitHash::of([&b"a"[..], b"bc"]));
        assert_ne!(UnitHash::of([&b""[..]]), UnitHash::of([]));
    }
}
