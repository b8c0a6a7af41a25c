//! Writes a pack: objects whole, or as deltas against others that are named by their ids.
//!
//! ```text
//! "PACK"  version 2  number of objects            4 + 4 + 4 bytes, big-endian
//! for each object: kind and size, then its bytes compressed by zlib; or
//!     kind 7 and the size of a delta, the base's id, then the delta compressed by zlib
//! checksum of all before, by the repository's hash function
//! ```
//!
//! Source: gitformat-pack(5).

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use zit_model::Oid;

use crate::error::StoreError;
use crate::objects::Kind;

/// A pack under way, in memory.
pub(super) struct Writer {
    /// Writes behind what there is of the pack. One for all objects: to set one up costs more than most objects do.
    encoder: ZlibEncoder<Vec<u8>>,
    kind: gix_hash::Kind,
}

impl Writer {
    /// Begins a pack that will have exactly `n_objects`.
    pub(super) fn new(kind: gix_hash::Kind, n_objects: usize) -> Self {
        // The number is bounded by the limits of a fetch.
        let n_objects = u32::try_from(n_objects).unwrap_or(u32::MAX);
        let mut bytes = b"PACK\0\0\0\x02".to_vec();
        bytes.extend_from_slice(&n_objects.to_be_bytes());
        Self { encoder: ZlibEncoder::new(bytes, Compression::fast()), kind }
    }

    /// Adds one object.
    pub(super) fn add(&mut self, kind: Kind, data: &[u8]) -> Result<(), StoreError> {
        write_header(kind, data.len(), self.encoder.get_mut());
        self.compress(data)
    }

    /// Adds one object as a delta against another, which comes before it in the pack or is the reader's already.
    pub(super) fn add_delta(&mut self, base: Oid, delta: &[u8]) -> Result<(), StoreError> {
        let bytes = self.encoder.get_mut();
        write_entry_header(REF_DELTA, delta.len(), bytes);
        bytes.extend_from_slice(base.as_bytes());
        self.compress(delta)
    }

    fn compress(&mut self, data: &[u8]) -> Result<(), StoreError> {
        let written = self.encoder.write_all(data).and_then(|()| self.encoder.reset(Vec::new()));
        *self.encoder.get_mut() = written.map_err(|error| failed(&error))?;
        Ok(())
    }

    /// The whole pack.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, StoreError> {
        let mut bytes = std::mem::take(self.encoder.get_mut());
        let mut hasher = gix_hash::hasher(self.kind);
        hasher.update(&bytes);
        let sum = hasher.try_finalize().map_err(|error| failed(&error))?;
        bytes.extend_from_slice(sum.as_bytes());
        Ok(bytes)
    }
}

/// The kind of a delta against an object that is named by its id.
const REF_DELTA: u8 = 7;

/// Writes the header of a whole object.
pub(crate) fn write_header(kind: Kind, size: usize, out: &mut Vec<u8>) {
    let kind = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    write_entry_header(kind, size, out);
}

/// Writes kind and four bits of the size, then seven bits a byte, the least first; the top bit says that more follow.
fn write_entry_header(kind: u8, size: usize, out: &mut Vec<u8>) {
    let low = |bits: usize, mask: u8| bits.to_le_bytes()[0] & mask;
    let mut byte = kind << 4 | low(size, 0x0f);
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = low(rest, 0x7f);
        rest >>= 7;
    }
    out.push(byte);
}

fn failed(why: &dyn std::fmt::Display) -> StoreError {
    StoreError::WriteObject(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_as_many_bytes_as_the_size_needs() {
        for (size, expected) in [
            (0, &[0x30][..]),
            (15, &[0x3f]),
            (16, &[0xb0, 0x01]),
            (2047, &[0xbf, 0x7f]),
            (2048, &[0xb0, 0x80, 0x01]),
        ] {
            let mut found = Vec::new();
            write_header(Kind::Blob, size, &mut found);
            assert_eq!(found, expected, "{size}");
        }
    }
}
