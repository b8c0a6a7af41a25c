//! Where a pack ends in a stream that goes on.
//!
//! Over a pipe nothing tells the length of a pack, and its sender may keep the stream open while it waits for the
//! report. [`PackEnd`] is fed whatever arrives, and finds the end by what a pack says of itself: the number of entries,
//! the end of each one's compressed data, and the checksum behind them.
//!
//! Never judges a pack: checksums, bases and objects are for whoever unpacks it. What an entry inflates to is thrown away
//! piece by piece.
//!
//! # Source
//! gitformat-pack(5).

use flate2::{Decompress, FlushDecompress, Status};

/// Magic, version and number of entries, in bytes.
const HEADER_LEN: u64 = 12;

/// How much is inflated at once, in bytes.
const PIECE: usize = 32 * 1024;

/// The longest size or distance in the header of an entry, in bytes: 64 bits, seven in each byte but the first.
const MAX_NUMBER: u32 = 10;

/// What some bytes of a stream say of the end of the pack in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// All of them belong to the pack, which goes on.
    More,
    /// The pack ends after so many of them.
    End {
        /// A number of bytes.
        consumed: usize,
    },
    /// They are no pack, so that nobody can say where it ends. Whoever unpacks it finds the same error.
    Broken,
}

/// Looks for the end of one pack, from its first byte on.
pub struct PackEnd {
    place: Place,
    n_oid: u64,
    entries: u32,
    inflate: Decompress,
    scratch: Vec<u8>,
}

/// What comes next. Invariant: what is left to read is never zero.
enum Place {
    Header { left: u64 },
    Entry,
    Size { kind: u8, size: u64, read: u32 },
    Distance { size: u64, read: u32 },
    Base { size: u64, left: u64 },
    Data { size: u64 },
    Trailer { left: u64 },
    End,
    Broken,
}

impl PackEnd {
    /// Begins with a pack whose objects have names of `hash`.
    #[must_use]
    pub fn new(hash: gix_hash::Kind) -> Self {
        Self {
            place: Place::Header { left: HEADER_LEN },
            n_oid: hash.len_in_bytes() as u64,
            entries: 0,
            inflate: Decompress::new(true),
            scratch: vec![0; PIECE],
        }
    }

    /// Takes the next bytes of the stream. Bytes behind the end are not looked at.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> Scan {
        let mut rest = bytes;
        loop {
            match (&self.place, rest.first()) {
                (Place::End, _) => return Scan::End { consumed: bytes.len() - rest.len() },
                (Place::Broken, _) => return Scan::Broken,
                (_, None) => return Scan::More,
                (_, Some(&next)) => {
                    let n = self.step(next, rest);
                    rest = rest.get(n..).unwrap_or_default();
                }
            }
        }
    }

    /// Takes some of the bytes that are there, of which `next` is the first; how many.
    fn step(&mut self, next: u8, rest: &[u8]) -> usize {
        match self.place {
            Place::Base { size, left } => {
                let (n, left) = skipped(left, rest);
                self.place =
                    if left == 0 { Place::Data { size } } else { Place::Base { size, left } };
                n
            }
            Place::Data { size } => self.skip_data(rest, size),
            Place::Trailer { left } => {
                let (n, left) = skipped(left, rest);
                self.place = if left == 0 { Place::End } else { Place::Trailer { left } };
                n
            }
            Place::Header { .. }
            | Place::Entry
            | Place::Size { .. }
            | Place::Distance { .. }
            | Place::End
            | Place::Broken => {
                self.byte(next);
                1
            }
        }
    }

    /// Takes one byte of the pack's header or of an entry's.
    fn byte(&mut self, byte: u8) {
        let goes_on = byte & 0x80 != 0;
        self.place = match self.place {
            Place::Header { left } => self.header(byte, left),
            Place::Entry => {
                self.inflate.reset(true);
                let (kind, size) = (byte >> 4 & 7, u64::from(byte & 0xf));
                if goes_on { Place::Size { kind, size, read: 1 } } else { self.sized(kind, size) }
            }
            Place::Size { kind, size, read } if read < MAX_NUMBER => {
                let size = size | u64::from(byte & 0x7f) << (4 + 7 * (read - 1)).min(63);
                if goes_on {
                    Place::Size { kind, size, read: read + 1 }
                } else {
                    self.sized(kind, size)
                }
            }
            Place::Distance { size, read } if read < MAX_NUMBER => {
                if goes_on {
                    Place::Distance { size, read: read + 1 }
                } else {
                    Place::Data { size }
                }
            }
            Place::Size { .. }
            | Place::Distance { .. }
            | Place::Base { .. }
            | Place::Data { .. }
            | Place::Trailer { .. }
            | Place::End
            | Place::Broken => Place::Broken,
        };
    }

    /// Takes the byte of the pack's header that has so many to come, itself included.
    fn header(&mut self, byte: u8, left: u64) -> Place {
        let is_right = match left {
            12 => byte == b'P',
            11 => byte == b'A',
            10 => byte == b'C',
            9 => byte == b'K',
            6..=8 => byte == 0,
            5 => byte == 2 || byte == 3,
            _ => {
                self.entries = self.entries << 8 | u32::from(byte);
                true
            }
        };
        match left {
            _ if !is_right => Place::Broken,
            1 => self.between(),
            left => Place::Header { left: left - 1 },
        }
    }

    /// What comes behind a whole entry, or the header.
    fn between(&self) -> Place {
        if self.entries == 0 { Place::Trailer { left: self.n_oid } } else { Place::Entry }
    }

    /// What comes behind the size of an entry.
    fn sized(&self, kind: u8, size: u64) -> Place {
        match kind {
            1..=4 => Place::Data { size },
            6 => Place::Distance { size, read: 0 },
            7 => Place::Base { size, left: self.n_oid },
            _ => Place::Broken,
        }
    }

    /// Passes over compressed data; how many bytes of it there were.
    fn skip_data(&mut self, rest: &[u8], size: u64) -> usize {
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(rest, &mut self.scratch, FlushDecompress::None);
        let now = (self.inflate.total_in(), self.inflate.total_out());
        match status {
            Ok(Status::StreamEnd) if now.1 == size => {
                self.entries -= 1;
                self.place = self.between();
            }
            // No entry is larger than it says; nor does one that wants more bytes leave some of them.
            Ok(Status::Ok | Status::BufError) if now.1 <= size && now != before => {}
            Ok(_) | Err(_) => self.place = Place::Broken,
        }
        usize::try_from(now.0 - before.0).unwrap_or(usize::MAX)
    }
}

/// How many bytes of `left` are in `rest`, and how many then are left.
fn skipped(left: u64, rest: &[u8]) -> (usize, u64) {
    let n = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
    (n, left - n as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn deflated(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// An entry of a type, with what stands between its size and its data.
    fn entry(kind: u8, base: &[u8], data: &[u8]) -> Vec<u8> {
        let mut size = data.len() >> 4;
        let mut bytes = vec![kind << 4 | u8::try_from(data.len() & 0xf).unwrap()];
        while size > 0 {
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(u8::try_from(size & 0x7f).unwrap());
            size >>= 7;
        }
        [bytes, base.to_vec(), deflated(data)].concat()
    }

    fn pack(entries: &[Vec<u8>], hash: gix_hash::Kind) -> Vec<u8> {
        let n = u32::try_from(entries.len()).unwrap().to_be_bytes();
        let sum = vec![0xaa; hash.len_in_bytes()];
        [b"PACK\0\0\0\x02".to_vec(), n.to_vec(), entries.concat(), sum].concat()
    }

    fn packs() -> Vec<(gix_hash::Kind, Vec<u8>)> {
        let large: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut packs = Vec::new();
        for hash in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            let base = vec![0x11; hash.len_in_bytes()];
            let entries = [
                entry(3, b"", b""),
                entry(1, b"", b"commit"),
                entry(6, &[0x85, 0x02], b"delta"),
                entry(7, &base, b"delta"),
                entry(3, b"", &large),
            ];
            packs.push((hash, pack(&entries, hash)));
            packs.push((hash, pack(&[], hash)));
        }
        packs
    }

    #[test]
    fn a_pack_ends_behind_its_checksum_however_it_arrives() {
        for (hash, pack) in packs() {
            let stream = [pack.as_slice(), b"and more"].concat();
            let whole = PackEnd::new(hash).feed(&stream);
            assert_eq!(whole, Scan::End { consumed: pack.len() });
            for piece in [1, 7, 4096] {
                let mut end = PackEnd::new(hash);
                let mut n_read = 0;
                let found = stream.chunks(piece).find_map(|bytes| match end.feed(bytes) {
                    Scan::End { consumed } => Some(n_read + consumed),
                    Scan::More => {
                        n_read += bytes.len();
                        None
                    }
                    Scan::Broken => panic!("broken at {n_read}"),
                });
                assert_eq!(found, Some(pack.len()), "in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_pack_that_is_cut_off_goes_on() {
        for (hash, pack) in packs() {
            for n in [0, 1, 11, 12, 13, pack.len() - 21, pack.len() - 1] {
                assert_eq!(PackEnd::new(hash).feed(&pack[..n]), Scan::More, "{n}");
            }
        }
    }

    #[test]
    fn what_is_no_pack_is_broken_and_stays_so() {
        let hash = gix_hash::Kind::Sha1;
        let lies = [vec![0x31], deflated(b"longer than it says")].concat();
        let short = [vec![0x3f], deflated(b"shorter")].concat();
        let endless = [vec![0xbf], vec![0xff; 20]].concat();
        for bytes in [
            b"0000".to_vec(),
            b"PACK\0\0\0\x04\0\0\0\0".to_vec(),
            pack(&[vec![0x51, 0]], hash),
            pack(&[vec![0x31, 0xff, 0xff]], hash),
            pack(&[lies], hash),
            pack(&[short], hash),
            pack(&[endless], hash),
        ] {
            let mut end = PackEnd::new(hash);
            assert_eq!(end.feed(&bytes), Scan::Broken, "{bytes:?}");
            assert_eq!(end.feed(b"PACK"), Scan::Broken);
        }
    }
}
