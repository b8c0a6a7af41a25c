//! The entries of a pack, one after the other, each inflated.

use flate2::{Decompress, FlushDecompress, Status};
use gix_pack::data::Entry as Header;
use gix_pack::data::entry::Header as What;

use super::{Stop, bad_object, hash_of, reserve};
use crate::pack::{HEADER_LEN, PackError};

/// The most bytes that the header of an entry has: a size and a distance of ten bytes each, or an oid.
const MAX_HEADER: usize = 10 + 32;

/// An object or a delta.
pub(super) struct Entry {
    pub(super) offset: usize,
    pub(super) what: What,
    pub(super) data: Vec<u8>,
    pub(super) crc32: u32,
}

/// Reads all entries. Exactly as many as announced, and nothing but the checksum behind them.
pub(super) fn entries(
    pack: &[u8],
    n_objects: u32,
    hash: gix_hash::Kind,
    room: &mut usize,
) -> Result<Vec<Entry>, Stop> {
    let n_body = pack.len().checked_sub(hash.len_in_bytes());
    let (body, sum) = n_body.and_then(|n| pack.split_at_checked(n)).unwrap_or((pack, b""));
    let is_whole = hash_of(hash, body)?.as_bytes() == sum;
    // Of a pack that is whole, nothing is behind the body; of another, anything may be where the checksum is taken for.
    let bytes = if is_whole { body } else { pack };
    let mut inflate = Decompress::new(true);
    let mut entries = Vec::new();
    let mut at = HEADER_LEN;
    for _ in 0..n_objects {
        let read = read(bytes, at, hash, &mut inflate, room);
        let (entry, end) = match read {
            Err(Cut::Short) if is_whole => return Err(bad_object("an entry is cut off")),
            Err(Cut::Short) => return Err(PackError::Truncated.into()),
            Err(Cut::Stop(stop)) => return Err(stop),
            Ok(read) => read,
        };
        entries.push(entry);
        at = end;
    }
    match (is_whole, pack.len().saturating_sub(at).cmp(&hash.len_in_bytes())) {
        (true, std::cmp::Ordering::Equal) => Ok(entries),
        (false, std::cmp::Ordering::Equal) => Err(PackError::Checksum.into()),
        (_, std::cmp::Ordering::Less) => Err(PackError::Truncated.into()),
        (_, std::cmp::Ordering::Greater) => {
            Err(PackError::Refused("pack has junk at the end".to_owned()).into())
        }
    }
}

enum Cut {
    /// The bytes end.
    Short,
    Stop(Stop),
}

/// Reads the entry at an offset; with it comes where the next one is.
fn read(
    bytes: &[u8],
    offset: usize,
    hash: gix_hash::Kind,
    inflate: &mut Decompress,
    room: &mut usize,
) -> Result<(Entry, usize), Cut> {
    let rest = bytes.get(offset..).unwrap_or_default();
    if let Some(kind @ (0 | 5)) = rest.first().map(|byte| byte >> 4 & 7) {
        return Err(Cut::Stop(bad_object(format!("unknown object type {kind}"))));
    }
    let header = Header::from_bytes(rest, offset as u64, hash).map_err(|error| {
        if rest.len() < MAX_HEADER { Cut::Short } else { Cut::Stop(bad_object(error.to_string())) }
    })?;
    let size = usize::try_from(header.decompressed_size).map_err(|_| Cut::Stop(Stop::TooBig))?;
    reserve(room, size).map_err(Cut::Stop)?;
    let compressed = rest.get(header.header_size()..).ok_or(Cut::Short)?;
    let (data, n_read) = inflated(compressed, size, inflate)?;
    let n_entry = header.header_size() + n_read;
    let crc32 = crc32fast::hash(rest.get(..n_entry).unwrap_or_default());
    Ok((Entry { offset, what: header.header, data, crc32 }, offset + n_entry))
}

/// Inflates exactly `size` bytes; with them comes how many there were compressed.
fn inflated(
    compressed: &[u8],
    size: usize,
    inflate: &mut Decompress,
) -> Result<(Vec<u8>, usize), Cut> {
    let bad = |what: &str| Cut::Stop(bad_object(format!("inflate: {what}")));
    inflate.reset(true);
    // One byte more than announced shows whether there is more.
    let mut data = vec![0; size + 1];
    loop {
        let before = (inflate.total_in(), inflate.total_out());
        let n_in = usize::try_from(before.0).unwrap_or(usize::MAX);
        let n_out = usize::try_from(before.1).unwrap_or(usize::MAX);
        let input = compressed.get(n_in..).unwrap_or_default();
        let output = data.get_mut(n_out..).unwrap_or_default();
        let status = inflate
            .decompress(input, output, FlushDecompress::None)
            .map_err(|error| bad(&error.to_string()))?;
        let is_stuck = before == (inflate.total_in(), inflate.total_out());
        let n_out = usize::try_from(inflate.total_out()).unwrap_or(usize::MAX);
        match status {
            Status::StreamEnd if n_out == size => break,
            Status::StreamEnd => return Err(bad("an object has another size than it says")),
            _ if n_out > size => return Err(bad("an object is larger than it says")),
            _ if is_stuck => return Err(Cut::Short),
            Status::Ok | Status::BufError => {}
        }
    }
    data.truncate(size);
    Ok((data, usize::try_from(inflate.total_in()).unwrap_or(usize::MAX)))
}
