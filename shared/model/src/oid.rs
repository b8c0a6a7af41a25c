//! Object ids. The all-zero oid is wire syntax and has no value of this type.

use std::fmt;

/// The id of one git object: SHA-1 (40 hex) or SHA-256 (64 hex), never all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid(gix_hash::ObjectId);

/// Why bytes are not an object id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OidError {
    /// Neither 40 nor 64 lower-case hexadecimal digits.
    #[error("not an object id: {0:?}")]
    Malformed(String),
    /// The all-zero oid, which stands for "no object" on the wire.
    #[error("the all-zero object id names no object")]
    Null,
}

impl Oid {
    /// Reads 40 or 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`OidError::Malformed`] for anything else, [`OidError::Null`] for all zeroes.
    pub fn from_hex(hex: &[u8]) -> Result<Self, OidError> {
        let id = gix_hash::ObjectId::from_hex(hex)
            .map_err(|_| OidError::Malformed(String::from_utf8_lossy(hex).into_owned()))?;
        Self::from_gix(id).ok_or(OidError::Null)
    }

    /// Takes an id over from gix; `None` for the null id.
    #[must_use]
    pub fn from_gix(id: gix_hash::ObjectId) -> Option<Self> {
        (!id.is_null()).then_some(Self(id))
    }

    /// The id as gix knows it.
    #[must_use]
    pub fn as_gix(&self) -> &gix_hash::oid {
        &self.0
    }

    /// The raw digest: 20 or 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Which hash function made it.
    #[must_use]
    pub fn kind(&self) -> gix_hash::Kind {
        self.0.kind()
    }

    /// The first twelve hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.to_hex_with_len(12).to_string()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.to_hex())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({})", self.0.to_hex())
    }
}

impl std::str::FromStr for Oid {
    type Err = OidError;

    fn from_str(hex: &str) -> Result<Self, OidError> {
        Self::from_hex(hex.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_all_zero_oid_is_not_an_oid() {
        assert_eq!(Oid::from_hex(&[b'0'; 40]), Err(OidError::Null));
        assert_eq!(Oid::from_hex(&[b'0'; 64]), Err(OidError::Null));
    }

    #[test]
    fn anything_but_forty_or_sixty_four_hex_digits_is_malformed() {
        for hex in ["", "12", &"g".repeat(40), &"1".repeat(41), &"1".repeat(63)] {
            assert!(
                matches!(Oid::from_hex(hex.as_bytes()), Err(OidError::Malformed(_))),
                "{hex:?}"
            );
        }
    }

    #[test]
    fn hex_goes_in_and_the_same_hex_comes_out() {
        for hex in ["1".repeat(40), "a".repeat(64)] {
            assert_eq!(Oid::from_hex(hex.as_bytes()).unwrap().to_string(), hex);
        }
    }
}
