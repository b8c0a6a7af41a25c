//! The pack of a push out of a stream that may stay open behind it.
//!
//! Over HTTP a request ends by itself. Over a pipe git closes its side behind the pack, but not every client does:
//! [`PackBody`] ends where the pack ends, so that whoever waits for the report gets it.
//!
//! Never reads past the pack's end, nor judges what it passes on.

use std::io::{self, BufRead, Read};

use zit_wire::pack_end::{PackEnd, Scan};

/// How much of an unwanted pack is read on, in bytes, so that its sender comes to read why it is not wanted.
const MAX_UNWANTED: u64 = 64 * 1024 * 1024;

/// What follows the commands of a push.
pub struct PackBody<R> {
    stream: R,
    rest: Rest,
}

/// How the stream goes on.
enum Rest {
    /// With a pack, up to its end.
    Pack(Box<PackEnd>),
    /// With something whose end is not known.
    Unknown,
    /// With nothing of ours.
    Nothing,
}

impl<R: BufRead> PackBody<R> {
    /// The pack that `stream` begins with, in a repository that names objects by `hash`.
    pub fn pack(stream: R, hash: gix_hash::Kind) -> Self {
        Self { stream, rest: Rest::Pack(Box::new(PackEnd::new(hash))) }
    }

    /// No pack: the push needs none.
    pub fn nothing(stream: R) -> Self {
        Self { stream, rest: Rest::Nothing }
    }

    /// No pack: what came before is no push, so that nobody knows what comes now.
    pub fn unknown(stream: R) -> Self {
        Self { stream, rest: Rest::Unknown }
    }

    /// Reads on what nobody wants, to its end or the client's. How it ends is the client's own business.
    pub fn drain(mut self) {
        let _ = io::copy(&mut self.by_ref().take(MAX_UNWANTED), &mut io::sink());
        if matches!(self.rest, Rest::Unknown) {
            let _ = io::copy(&mut self.stream.take(MAX_UNWANTED), &mut io::sink());
        }
    }
}

/// The pack to its end. What turns out to be no pack ends with the piece that shows it.
impl<R: BufRead> Read for PackBody<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Rest::Pack(end) = &mut self.rest else { return Ok(0) };
        let bytes = self.stream.fill_buf()?;
        let n = bytes.len().min(buffer.len());
        let bytes = bytes.get(..n).unwrap_or_default();
        let n = match end.feed(bytes) {
            Scan::More => n,
            Scan::End { consumed } => {
                self.rest = Rest::Nothing;
                consumed
            }
            Scan::Broken => {
                self.rest = Rest::Unknown;
                n
            }
        };
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), bytes.get(..n)) {
            to.copy_from_slice(from);
        }
        self.stream.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pack without objects; its checksum is nobody's business here.
    fn pack() -> Vec<u8> {
        [b"PACK\0\0\0\x02\0\0\0\0".to_vec(), vec![0xaa; 20]].concat()
    }

    /// Fails a test that reads further than it may.
    struct Open;

    impl Read for Open {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("nothing comes any more, and the stream stays open")
        }
    }

    #[test]
    fn a_pack_is_read_to_its_end_in_a_stream_that_stays_open() {
        let pack = pack();
        let stream = io::BufReader::new(pack.as_slice().chain(Open));
        let mut body = PackBody::pack(stream, gix_hash::Kind::Sha1);
        let mut read = Vec::new();
        body.read_to_end(&mut read).unwrap();
        assert_eq!(read, pack);
        body.drain();
    }

    #[test]
    fn what_nobody_read_of_a_pack_is_drained_and_nothing_behind_it() {
        let pack = pack();
        let stream = io::BufReader::with_capacity(8, pack.as_slice().chain(Open));
        PackBody::pack(stream, gix_hash::Kind::Sha1).drain();
        PackBody::nothing(io::BufReader::new(Open)).drain();
    }

    #[test]
    fn what_is_no_pack_is_drained_to_the_end_of_the_stream() {
        let stream = b"PACX".repeat(25_000);
        for is_pack in [true, false] {
            let mut rest = stream.as_slice();
            let reader = io::BufReader::with_capacity(8, &mut rest);
            let body = if is_pack {
                PackBody::pack(reader, gix_hash::Kind::Sha1)
            } else {
                PackBody::unknown(reader)
            };
            body.drain();
            assert!(rest.is_empty());
        }
    }
}
