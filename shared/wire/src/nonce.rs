//! The nonce by which a server knows that a push certificate was made for it, and lately.
//!
//! [`issue`] makes one from a secret, the repository and the time; nothing is kept. [`check`] makes it again.
//!
//! ```text
//! nonce = seconds "-" hmac(seed, path ":" seconds)
//! ```
//!
//! Source: git's `builtin/receive-pack.c`, `prepare_push_cert_nonce` and `check_nonce`.

use bstr::{BStr, ByteSlice as _};
use gix_hash::Kind;
use zit_model::UnixSeconds;

/// The length of a block of both hash functions, in bytes. Source: RFC 2104.
const BLOCK: usize = 64;

/// What nonces are made of.
#[derive(Clone, Copy)]
pub struct Seed<'a> {
    /// The repository's hash function.
    pub kind: Kind,
    /// `receive.certNonceSeed`.
    pub secret: &'a [u8],
    /// What tells the repository from others with the same secret.
    pub path: &'a [u8],
}

/// How a nonce that comes back stands to the one that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceStatus {
    /// There is one, and none was given.
    Unsolicited,
    /// Nobody with the secret has made it for this repository.
    Bad,
    /// There is none.
    Missing,
    /// It is the one.
    Ok,
    /// It was given so many seconds before the present, or after it where clocks differ.
    Slop(i64),
}

impl NonceStatus {
    /// The word that hooks are told.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unsolicited => "UNSOLICITED",
            Self::Bad => "BAD",
            Self::Missing => "MISSING",
            Self::Ok => "OK",
            Self::Slop(_) => "SLOP",
        }
    }
}

/// Makes the nonce of a moment; `None` only where the hash function refuses what it is given.
#[must_use]
pub fn issue(seed: Seed<'_>, at: UnixSeconds) -> Option<String> {
    let text = [seed.path, format!(":{}", at.0).as_bytes()].concat();
    Some(format!("{}-{}", at.0, hmac(seed.kind, seed.secret, &text)?))
}

/// Looks at a nonce that comes back `now`. One that is at most `slop` seconds off is as good as the one of now.
#[must_use]
pub fn check(seed: Seed<'_>, found: Option<&BStr>, now: UnixSeconds, slop: u64) -> NonceStatus {
    let Some(found) = found else { return NonceStatus::Missing };
    let stamp = found.split(|byte| *byte == b'-').next().unwrap_or_default();
    let stamp = stamp.to_str().ok().filter(|text| !text.starts_with(['0', '+']));
    let Some(stamp) = stamp.and_then(|text| text.parse::<u64>().ok()) else {
        return NonceStatus::Bad;
    };
    let expected = issue(seed, UnixSeconds(stamp));
    if !expected.is_some_and(|expected| is_same(expected.as_bytes(), found)) {
        return NonceStatus::Bad;
    }
    if stamp.abs_diff(now.0) <= slop {
        return NonceStatus::Ok;
    }
    let off = i64::try_from(stamp.abs_diff(now.0)).unwrap_or(i64::MAX);
    NonceStatus::Slop(if stamp <= now.0 { off } else { -off })
}

/// Compares in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// A hash of `text` that only those can make who have the secret. Source: RFC 2104.
fn hmac(kind: Kind, secret: &[u8], text: &[u8]) -> Option<gix_hash::ObjectId> {
    let hash = |parts: [&[u8]; 2]| {
        let mut hasher = gix_hash::hasher(kind);
        for part in parts {
            hasher.update(part);
        }
        hasher.try_finalize().ok()
    };
    let mut key = if secret.len() > BLOCK {
        hash([secret, b""])?.as_bytes().to_vec()
    } else {
        secret.to_vec()
    };
    key.resize(BLOCK, 0);
    let padded = |with: u8| key.iter().map(|byte| byte ^ with).collect::<Vec<_>>();
    let inner = hash([&padded(0x36), text])?;
    hash([&padded(0x5c), inner.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(secret: &[u8]) -> Seed<'_> {
        Seed { kind: Kind::Sha1, secret, path: b"." }
    }

    #[test]
    fn the_hash_is_the_one_of_the_standard() {
        // RFC 2202, test cases 1, 2 and 6.
        for (secret, text, expected) in [
            (&[0x0b; 20][..], &b"Hi There"[..], "b617318655057264e28bc0b6fb378c8ef146be00"),
            (b"Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "aa4ae5e15272d00e95705637ce8a3b55ed402112",
            ),
        ] {
            assert_eq!(hmac(Kind::Sha1, secret, text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_nonce_is_good_for_its_repository_and_its_time() {
        let given = issue(seed(b"s"), UnixSeconds(1000)).unwrap();
        let with =
            |found: &str, now, slop| check(seed(b"s"), Some(found.into()), UnixSeconds(now), slop);
        assert_eq!(with(&given, 1000, 0), NonceStatus::Ok);
        assert_eq!(with(&given, 1030, 30), NonceStatus::Ok);
        assert_eq!(with(&given, 1031, 30), NonceStatus::Slop(31));
        assert_eq!(with(&given, 990, 0), NonceStatus::Slop(-10));
        let other = Seed { path: b"/other", ..seed(b"s") };
        assert_eq!(
            check(other, Some(given.as_str().into()), UnixSeconds(1000), 0),
            NonceStatus::Bad
        );
        let long = "9".repeat(30);
        for bad in ["", "1000", "1000-", "x-y", "+1000-0", "01000-0", &long, "\u{e9}"] {
            assert_eq!(with(bad, 1000, 9), NonceStatus::Bad, "{bad:?}");
        }
        assert_eq!(check(seed(b"s"), None, UnixSeconds(1000), 0), NonceStatus::Missing);
    }
}
