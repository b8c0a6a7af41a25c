//! Writes a pack of whole objects, without deltas.
//!
//! ```text
//! "PACK"  version 2  number of objects            4 + 4 + 4 bytes, big-endian
//! for each object: kind and size, then its bytes compressed by zlib
//! checksum of all before, by the repository's hash function
//! ```
//!
//! Source: gitformat-pack(5).

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::error::StoreError;
use crate::objects::Kind;

/// A pack under way, in memory.
pub(super) struct Writer {
    bytes: Vec<u8>,
    kind: gix_hash::Kind,
}

impl Writer {
    /// Begins a pack that will have exactly `n_objects`.
    pub(super) fn new(kind: gix_hash::Kind, n_objects: usize) -> Self {
        // The number is bounded by the limits of a fetch.
        let n_objects = u32::try_from(n_objects).unwrap_or(u32::MAX);
        let mut bytes = b"PACK\0\0\0\x02".to_vec();
        bytes.extend_from_slice(&n_objects.to_be_bytes());
        Self { bytes, kind }
    }

    /// Adds one object.
    pub(super) fn add(&mut self, kind: Kind, data: &[u8]) -> Result<(), StoreError> {
        self.add_header(kind, data.len());
        let mut encoder = ZlibEncoder::new(&mut self.bytes, Compression::fast());
        let written = encoder.write_all(data).and_then(|()| encoder.finish().map(|_| ()));
        written.map_err(|error| StoreError::WriteObject(error.to_string()))
    }

    /// The whole pack.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, StoreError> {
        let mut hasher = gix_hash::hasher(self.kind);
        hasher.update(&self.bytes);
        let sum =
            hasher.try_finalize().map_err(|error| StoreError::WriteObject(error.to_string()))?;
        self.bytes.extend_from_slice(sum.as_bytes());
        Ok(self.bytes)
    }

    /// Kind and four bits of the size, then seven bits a byte, the least first; the top bit says that more follow.
    fn add_header(&mut self, kind: Kind, size: usize) {
        let kind = match kind {
            Kind::Commit => 1,
            Kind::Tree => 2,
            Kind::Blob => 3,
            Kind::Tag => 4,
        };
        let low = |bits: usize, mask: u8| bits.to_le_bytes()[0] & mask;
        let mut byte = kind << 4 | low(size, 0x0f);
        let mut rest = size >> 4;
        while rest > 0 {
            self.bytes.push(byte | 0x80);
            byte = low(rest, 0x7f);
            rest >>= 7;
        }
        self.bytes.push(byte);
    }
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
            let mut writer = Writer::new(gix_hash::Kind::Sha1, 1);
            writer.add_header(Kind::Blob, size);
            assert_eq!(&writer.bytes[12..], expected, "{size}");
        }
    }
}
