//! A checkpoint: what the caller knows after a record, with the chain's hash there, so that the chain verifies once the
//! records before are gone. The layout is in `spec/journal.md`, "Checkpoint".
//!
//! Never looks into the state, which is the caller's.

use sha2::{Digest, Sha256};

use super::error::JournalError;
use super::record::{ChainHash, Seq};

/// The largest state, in bytes: 1 GiB, some millions of refs.
pub const MAX_STATE: u64 = 1 << 30;

const MAGIC: &[u8; 4] = b"zitk";
const VERSION: u32 = 1;
const HASH: usize = 32;

/// What was known once a record was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last record that it holds.
    pub seq: Seq,
    /// The chain's hash after it.
    pub hash: ChainHash,
    /// What the caller knew.
    pub state: Vec<u8>,
}

/// Its bytes.
///
/// # Errors
/// [`JournalError::TooLarge`] past [`MAX_STATE`].
pub(super) fn encode(seq: Seq, hash: ChainHash, state: &[u8]) -> Result<Vec<u8>, JournalError> {
    let size = state.len() as u64;
    if size > MAX_STATE {
        return Err(JournalError::TooLarge { what: "a checkpoint", size, limit: MAX_STATE });
    }
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&seq.0.to_be_bytes());
    out.extend_from_slice(&hash.0);
    out.extend_from_slice(state);
    let digest = Sha256::digest(&out);
    out.extend_from_slice(&digest);
    Ok(out)
}

/// Reads it back; says what is wrong with anything that [`encode`] did not write whole.
pub(super) fn decode(bytes: &[u8]) -> Result<Checkpoint, &'static str> {
    const SHORT: &str = "the checkpoint ends early";
    let (body, digest) = bytes.split_last_chunk::<HASH>().ok_or(SHORT)?;
    if Sha256::digest(body)[..] != *digest {
        return Err("the checkpoint's hash does not match");
    }
    let (magic, rest) = body.split_first_chunk::<4>().ok_or(SHORT)?;
    let (version, rest) = rest.split_first_chunk().ok_or(SHORT)?;
    if magic != MAGIC || u32::from_be_bytes(*version) != VERSION {
        return Err("the checkpoint's layout is not known to this version of zit");
    }
    let (seq, rest) = rest.split_first_chunk().ok_or(SHORT)?;
    let (hash, state) = rest.split_first_chunk().ok_or(SHORT)?;
    let (seq, hash) = (Seq(u64::from_be_bytes(*seq)), ChainHash(*hash));
    Ok(Checkpoint { seq, hash, state: state.to_vec() })
}
