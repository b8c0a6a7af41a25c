//! Small packs, read in memory: every object whole, and the pack completed and indexed as git does it.
//!
//! ```text
//! entry    one entry after the other: header, inflated bytes, checksum
//! delta    a base and a delta to an object
//! resolve  deltas to objects, from bases in the pack or the repository
//! index    the pack with the bases that it lacked, and its .idx
//! ```
//!
//! Whatever is not worth the memory ends with [`Stop::TooBig`] before it is allocated, and git has a look at it. Sizes
//! that a pack announces are never believed: they only bound what is read. Nothing here recurses, reads a file or
//! writes one.
//!
//! # Source
//! gitformat-pack(5).

mod delta;
mod entry;
mod index;
mod resolve;

use gix_hash::ObjectId;

use crate::objects::Kind;
use crate::pack::PackError;

pub(crate) use index::Indexed;

/// How many bytes all objects of a pack and all its deltas may have together.
pub(crate) const MAX_MEMORY: usize = 32 << 20;

/// Why a pack was not unpacked.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It takes more memory than is given to it.
    TooBig,
    /// It is no good.
    Refused(PackError),
}

impl From<PackError> for Stop {
    fn from(error: PackError) -> Self {
        Self::Refused(error)
    }
}

/// One object and where in the pack it is.
pub(crate) struct Object {
    pub(crate) id: ObjectId,
    pub(crate) kind: Kind,
    pub(crate) data: Vec<u8>,
    offset: usize,
    /// Of the entry as it is in the pack.
    crc32: u32,
}

/// An object of the repository that deltas build on.
pub(crate) struct Base {
    pub(crate) kind: Kind,
    pub(crate) data: Vec<u8>,
}

/// The content of a pack.
pub(crate) struct Unpacked {
    /// What the pack brings, in its order.
    pub(crate) objects: Vec<Object>,
    /// What it builds on and the repository has.
    bases: Vec<Object>,
    hash: gix_hash::Kind,
}

/// Unpacks a whole pack that announces `n_objects`; `base` reads an object of the repository that has at most so many
/// bytes.
pub(crate) fn unpack(
    pack: &[u8],
    n_objects: u32,
    hash: gix_hash::Kind,
    base: &mut dyn FnMut(ObjectId, usize) -> Result<Option<Base>, Stop>,
) -> Result<Unpacked, Stop> {
    let mut room = MAX_MEMORY;
    let entries = entry::entries(pack, n_objects, hash, &mut room)?;
    resolve::resolve(entries, hash, &mut room, base)
}

/// What a delta makes of its base.
#[cfg(test)]
pub(crate) fn apply_delta(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, Stop> {
    delta::apply(base, delta, &mut MAX_MEMORY.clone())
}

fn bad_object(what: impl Into<String>) -> Stop {
    Stop::Refused(PackError::BadObject(what.into()))
}

/// Takes `size` off the room that is left.
fn reserve(room: &mut usize, size: usize) -> Result<(), Stop> {
    *room = room.checked_sub(size).ok_or(Stop::TooBig)?;
    Ok(())
}

/// The hash of some bytes; of hostile ones it may be refused.
fn hash_of(hash: gix_hash::Kind, bytes: &[u8]) -> Result<ObjectId, Stop> {
    let mut hasher = gix_hash::hasher(hash);
    hasher.update(bytes);
    hasher.try_finalize().map_err(|error| bad_object(error.to_string()))
}
