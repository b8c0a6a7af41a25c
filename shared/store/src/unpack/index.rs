//! A pack for the disk: with the bases that a thin one lacks, and with its index.
//!
//! ```text
//! index    "\xfftOc"  version 2                 4 + 4 bytes
//!          256 numbers of ids up to a first byte
//!          ids in order; checksums of entries; offsets of entries
//!          checksum of the pack, checksum of the index
//! ```

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::ObjectId;

use super::{Object, Stop, Unpacked, bad_object, hash_of};
use crate::fetch::pack::write_header;

/// Where a pack's header has the number of objects.
const COUNT: std::ops::Range<usize> = 8..12;

/// A pack with its index.
pub(crate) struct Indexed {
    /// What both files are named after.
    pub(crate) id: ObjectId,
    pub(crate) pack: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

impl Unpacked {
    /// Completes `pack`, from which this was read, and indexes it.
    pub(crate) fn index(&mut self, mut pack: Vec<u8>) -> Result<Indexed, Stop> {
        let n_sum = self.hash.len_in_bytes();
        let mut objects = self.objects.iter().map(Place::of).collect::<Vec<_>>();
        if !self.bases.is_empty() {
            pack.truncate(pack.len().saturating_sub(n_sum));
            for base in &self.bases {
                objects.push(append(base, &mut pack)?);
            }
            let n_objects = number(objects.len())?.to_be_bytes();
            if let Some(count) = pack.get_mut(COUNT) {
                count.copy_from_slice(&n_objects);
            }
            pack.extend_from_slice(hash_of(self.hash, &pack)?.as_bytes());
        }
        let sum = pack.get(pack.len().saturating_sub(n_sum)..).unwrap_or_default();
        let id = ObjectId::try_from(sum).map_err(|error| bad_object(error.to_string()))?;
        let index = index(objects, &id)?;
        Ok(Indexed { id, pack, index })
    }
}

struct Place {
    id: ObjectId,
    offset: usize,
    crc32: u32,
}

impl Place {
    fn of(object: &Object) -> Self {
        Self { id: object.id, offset: object.offset, crc32: object.crc32 }
    }
}

/// Writes a whole object behind a pack.
fn append(base: &Object, pack: &mut Vec<u8>) -> Result<Place, Stop> {
    let offset = pack.len();
    write_header(base.kind, base.data.len(), pack);
    let mut encoder = ZlibEncoder::new(std::mem::take(pack), Compression::fast());
    let written = encoder.write_all(&base.data).and_then(|()| encoder.finish());
    *pack = written.map_err(|error| bad_object(error.to_string()))?;
    let crc32 = crc32fast::hash(pack.get(offset..).unwrap_or_default());
    Ok(Place { id: base.id, offset, crc32 })
}

fn index(mut objects: Vec<Place>, pack: &ObjectId) -> Result<Vec<u8>, Stop> {
    objects.sort_unstable_by_key(|object| object.id);
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    let mut up_to = [0_u32; 256];
    for object in &objects {
        if let Some(count) = up_to.get_mut(usize::from(object.id.first_byte())) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for count in up_to {
        sum += count;
        index.extend_from_slice(&sum.to_be_bytes());
    }
    for object in &objects {
        index.extend_from_slice(object.id.as_bytes());
    }
    for object in &objects {
        index.extend_from_slice(&object.crc32.to_be_bytes());
    }
    for object in &objects {
        // Far below the two gigabytes at which an offset has eight bytes.
        index.extend_from_slice(&number(object.offset)?.to_be_bytes());
    }
    index.extend_from_slice(pack.as_bytes());
    index.extend_from_slice(hash_of(pack.kind(), &index)?.as_bytes());
    Ok(index)
}

fn number(number: usize) -> Result<u32, Stop> {
    u32::try_from(number).map_err(|_| Stop::TooBig)
}
