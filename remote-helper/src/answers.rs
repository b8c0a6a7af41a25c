//! [`Answers`]: the answers of protocol 2 as git's HTTP transport hands them through, one after another as over a pair of
//! streams.
//!
//! The transport writes each answer packet by packet and a response-end packet behind it, which no client of such a pair
//! expects. Everything else is passed on as it came. What the packets say is not looked at.
//!
//! Source: gitremote-helpers(7), `stateless-connect`; gitprotocol-v2(5), "Packet-Line Framing".

use std::io::{self, Read};

use zit_wire::pkt::{self, Decoded, Packet};

/// A stream of answers without the packets by which each one's end is marked.
///
/// It ends where `stream` does, also within a packet, of which nothing is then passed on. What is no packet is an error.
/// No more is taken from `stream` than the packet needs that is read from next: who waits for one is not kept waiting for
/// another.
#[derive(Debug)]
pub struct Answers<R> {
    stream: R,
    /// The packet that is being read.
    packet: Vec<u8>,
    /// How much of it was read. Invariant: at most its length.
    n_read: usize,
}

impl<R: Read> Answers<R> {
    /// The answers in `stream`.
    pub fn new(stream: R) -> Self {
        Self { stream, packet: Vec::new(), n_read: 0 }
    }

    /// Takes the next packet that is passed on; whether there is one.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            self.n_read = 0;
            self.packet.clear();
            match next_packet(&mut self.stream, &mut self.packet)? {
                Some(Kind::ResponseEnd) => {}
                Some(Kind::Other) => return Ok(true),
                None => {
                    self.packet.clear();
                    return Ok(false);
                }
            }
        }
    }
}

impl<R: Read> Read for Answers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.n_read == self.packet.len() && !self.advance()? {
            return Ok(0);
        }
        let mut rest = self.packet.get(self.n_read..).unwrap_or_default();
        let n = rest.read(buffer)?;
        self.n_read += n;
        Ok(n)
    }
}

/// What becomes of a packet.
enum Kind {
    ResponseEnd,
    Other,
}

/// Reads one packet as it is; `None` at the end, also within one.
fn next_packet(stream: &mut impl Read, packet: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    loop {
        let needed = match pkt::decode(packet).map_err(io::Error::other)? {
            Decoded::Complete { packet: Packet::ResponseEnd, .. } => {
                return Ok(Some(Kind::ResponseEnd));
            }
            Decoded::Complete { .. } => return Ok(Some(Kind::Other)),
            Decoded::Incomplete { needed } => u64::try_from(needed).unwrap_or(u64::MAX),
        };
        if stream.by_ref().take(needed).read_to_end(packet)? == 0 {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads everything, `size` bytes at a time.
    fn read(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let (mut answers, mut buffer) = (Answers::new(bytes), vec![0; size]);
        let mut read = Vec::new();
        loop {
            match answers.read(&mut buffer)? {
                0 => return Ok(read),
                n => read.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[track_caller]
    fn check(bytes: &str, expected: &str) {
        for size in [1, 3, 5, 100] {
            let read = read(bytes.as_bytes(), size).unwrap();
            assert_eq!(String::from_utf8_lossy(&read), expected, "{size} at a time");
        }
    }

    #[test]
    fn answers_follow_each_other_without_the_packets_that_end_them() {
        check("", "");
        check("0002", "");
        check("0006a\n0000", "0006a\n0000");
        check("0006a\n00000002", "0006a\n0000");
        check("0006a\n000000020006b\n00010006c\n00000002", "0006a\n00000006b\n00010006c\n0000");
    }

    #[test]
    fn the_content_of_a_packet_may_look_like_an_end() {
        check("000800020002", "00080002");
    }

    #[test]
    fn a_stream_that_ends_within_a_packet_ends_before_it() {
        for cut in ["0", "000", "0009", "0009a"] {
            check(&format!("0005x{cut}"), "0005x");
        }
    }

    #[test]
    fn what_is_no_packet_is_an_error_once_it_is_reached() {
        for wrong in ["0003", "zzzz", "fff5"] {
            let bytes = format!("0005x{wrong}");
            let mut answers = Answers::new(bytes.as_bytes());
            let mut buffer = [0; 100];
            assert_eq!(answers.read(&mut buffer).unwrap(), 5, "{wrong}");
            assert!(answers.read(&mut buffer).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_taken_that_belongs_to_the_packet_after() {
        let mut stream = &b"0005x0005y"[..];
        let mut answers = Answers::new(&mut stream);
        assert_eq!(answers.read(&mut [0; 100]).unwrap(), 5);
        assert_eq!(stream, b"0005y");
    }
}
