//! Agent sessions: the identity of a transcript, and the trailer by which a commit names it.
//!
//! [`SessionId::claim`] makes the identity from a session's first bytes; [`sessions_of`] reads the ones that a commit
//! message names.
//!
//! Invariant: no clock, file, environment or network. A trailer claims, it never proves: nothing here says that a
//! session exists, or whose it is.

use std::fmt;

use sha2::{Digest, Sha256};
use zit_model::trailers;

/// The trailer by which a commit names the session it came from.
pub const SESSION_TRAILER: &str = "Zit-Session";

/// What every session id starts with.
const PREFIX: &str = "agit-";

/// Hexadecimal digits in a session id.
const DIGITS: usize = 40;

/// The identity of one session: `agit-` and 40 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

/// Why text is not a session id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a session id: {0:?}: it is agit- and 40 digits of 0-9 and a-f")]
pub struct SessionIdError(pub String);

impl SessionId {
    /// Reads a session id.
    ///
    /// # Errors
    /// [`SessionIdError`] for anything but `agit-` and 40 lower-case hexadecimal digits.
    pub fn new(id: &str) -> Result<Self, SessionIdError> {
        let ok = id.strip_prefix(PREFIX).is_some_and(|digits| {
            digits.len() == DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        });
        if ok {
            Ok(Self(id.to_owned()))
        } else {
            Err(SessionIdError(id.chars().take(80).collect()))
        }
    }

    /// The identity that a session claims with its first settled turn.
    ///
    /// Shape: the first 40 hex of `sha256(cwd NUL transcript)`, over the bytes as they are, not over canonical lines.
    /// What comes later inherits the identity and never claims again.
    #[must_use]
    pub fn claim(cwd: &[u8], transcript: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(cwd);
        hash.update([0]);
        hash.update(transcript);
        let mut digits = hex::encode(hash.finalize());
        digits.truncate(DIGITS);
        Self(format!("{PREFIX}{digits}"))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(id: &str) -> Result<Self, SessionIdError> {
        Self::new(id)
    }
}

/// The sessions that a commit message's last trailer block names, in order.
///
/// A value that is no session id comes back as its error: the trailer is optional, so the caller decides whether a
/// bad one matters.
#[must_use]
pub fn sessions_of(message: &str) -> Vec<Result<SessionId, SessionIdError>> {
    let trailers = trailers::parse(message);
    trailers::values(&trailers, SESSION_TRAILER).map(SessionId::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "agit-0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_session_id_is_agit_and_forty_lower_case_hex_digits() {
        assert_eq!(SessionId::new(ID).unwrap().to_string(), ID);
        for bad in [
            "",
            "agit-",
            &ID[..ID.len() - 1],
            &format!("{ID}0"),
            &ID["agit-".len()..],
            &ID.to_uppercase(),
            "agit-0123456789ABCDEF0123456789abcdef01234567",
            "agit-0123456789abcdef0123456789abcdef0123456g",
            &format!("{ID}\n"),
        ] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_claim_is_a_hash_of_folder_and_transcript() {
        // Pinned with sha256sum: the id is written into refs and commits, and must not change between versions.
        let id = SessionId::claim(b"/home/ada/repo", b"{\"type\":\"user\"}\n");
        assert_eq!(id.as_str(), "agit-9d9ebb1c3334c83787411f088fef3fcea7120a39");
        assert_eq!(SessionId::new(id.as_str()), Ok(id));
    }

    #[test]
    fn the_border_between_folder_and_transcript_counts() {
        assert_ne!(SessionId::claim(b"/a", b"b"), SessionId::claim(b"/", b"ab"));
    }

    #[test]
    fn only_the_last_trailer_block_names_sessions() {
        let message = format!(
            "subject\n\nZit-Session: {}\n\nbody\n\nZit-Agent: ada\nzit-session: {ID}\nZit-Session: x\n",
            ID.replace('0', "f")
        );
        assert_eq!(
            sessions_of(&message),
            [SessionId::new(ID), Err(SessionIdError("x".to_owned()))]
        );
        assert_eq!(sessions_of(&format!("Zit-Session: {ID}\n")), []);
    }
}
