//! pkt-line: the framing of every git protocol.
//!
//! [`decode`] takes whatever bytes have arrived and answers with one packet, with how many more bytes it needs, or with
//! an error. The encoders append to a buffer. An empty data packet (`0004`) is data: an empty push option is sent so.
//!
//! Source: git's `gitprotocol-common`, "pkt-line Format", and `gitprotocol-v2`, "Packet-Line Framing".

use bstr::{BStr, BString, ByteSlice};

/// The longest packet, in bytes, its four length digits included. Source: git's `pkt-line.h`, `LARGE_PACKET_MAX`.
pub const MAX_PACKET: usize = 65_520;

/// The most data one packet carries, in bytes.
pub const MAX_DATA: usize = MAX_PACKET - LENGTH_DIGITS;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Data, possibly empty, at most [`MAX_DATA`] bytes.
    Data(&'a [u8]),
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the border between sections of a v2 message.
    Delim,
    /// `0002`: the end of a response on a stateless connection.
    ResponseEnd,
}

impl<'a> Packet<'a> {
    /// The data less one final line feed; `None` for the special packets.
    #[must_use]
    pub fn as_line(&self) -> Option<&'a BStr> {
        match *self {
            Self::Data(data) => Some(data.strip_suffix(b"\n").unwrap_or(data).as_bstr()),
            Self::Flush | Self::Delim | Self::ResponseEnd => None,
        }
    }
}

/// What [`decode`] found at the start of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole packet.
    Complete {
        /// The packet.
        packet: Packet<'a>,
        /// How many bytes it took, its length digits included.
        consumed: usize,
    },
    /// The packet is not all there yet.
    Incomplete {
        /// How many more bytes are needed before another attempt can get further; at least 1.
        needed: usize,
    },
}

/// Why bytes are not a packet: the peer broke the framing, and nothing after it can be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PktError {
    /// The first four bytes are not hexadecimal digits.
    #[error("bad pkt-line length {0:?}: not four hexadecimal digits")]
    NotHex(BString),
    /// Length 3, which is reserved.
    #[error("bad pkt-line length 0003: reserved")]
    Reserved,
    /// More than [`MAX_PACKET`].
    #[error("bad pkt-line length {0}: the longest packet has {MAX_PACKET} bytes")]
    TooLong(usize),
}

/// The caller gave more data than one packet carries.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot put {0} bytes into one packet: it carries at most {MAX_DATA}")]
pub struct DataTooLong(pub usize);

/// Decodes the packet at the start of `bytes`.
///
/// # Errors
/// [`PktError`] as soon as the length digits show the fault, before the data is there.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, PktError> {
    let Some((digits, rest)) = bytes.split_first_chunk::<LENGTH_DIGITS>() else {
        return Ok(Decoded::Incomplete { needed: LENGTH_DIGITS - bytes.len() });
    };
    let packet = match length(*digits)? {
        0 => Packet::Flush,
        1 => Packet::Delim,
        2 => Packet::ResponseEnd,
        3 => return Err(PktError::Reserved),
        length if length > MAX_PACKET => return Err(PktError::TooLong(length)),
        length => {
            let n_data = length - LENGTH_DIGITS;
            let Some(data) = rest.get(..n_data) else {
                return Ok(Decoded::Incomplete { needed: n_data - rest.len() });
            };
            return Ok(Decoded::Complete { packet: Packet::Data(data), consumed: length });
        }
    };
    Ok(Decoded::Complete { packet, consumed: LENGTH_DIGITS })
}

/// Appends `bytes` as one data packet.
///
/// # Errors
/// [`DataTooLong`] past [`MAX_DATA`]; nothing is appended then.
pub fn data(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), DataTooLong> {
    if bytes.len() > MAX_DATA {
        return Err(DataTooLong(bytes.len()));
    }
    frame(out, |out| out.extend_from_slice(bytes));
    Ok(())
}

/// Appends `line` and a line feed as one data packet.
///
/// # Errors
/// [`DataTooLong`] when the two together are past [`MAX_DATA`]; nothing is appended then.
pub fn text(out: &mut Vec<u8>, line: &[u8]) -> Result<(), DataTooLong> {
    if line.len() >= MAX_DATA {
        return Err(DataTooLong(line.len().saturating_add(1)));
    }
    text_with(out, |out| out.extend_from_slice(line));
    Ok(())
}

/// Appends `ERR <message>`, which ends the conversation; what does not fit into one packet is cut off.
///
/// Source: git's `gitprotocol-pack`, "pkt-line Format", error-line.
pub fn err(out: &mut Vec<u8>, message: &str) {
    text_with(out, |out| {
        out.extend_from_slice(b"ERR ");
        out.extend_from_slice(message.as_bytes());
    });
}

/// Appends a flush-pkt.
pub fn flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0000");
}

/// Appends a delim-pkt.
pub fn delim(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0001");
}

/// Appends what `write` appends, and a line feed, as one data packet, cut where it does not fit.
pub(crate) fn text_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    frame(out, |out| {
        let start = out.len();
        write(out);
        out.truncate(start + MAX_DATA - 1);
        out.push(b'\n');
    });
}

/// Appends what `write` appends as one data packet, cut where it does not fit.
///
/// The data is written in place and its length filled in afterwards, so that a line of many parts is never copied.
pub(crate) fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(b"0000");
    write(out);
    out.truncate(start + MAX_PACKET);
    let length = out.len() - start;
    let digits = format!("{length:04x}");
    out[start..start + LENGTH_DIGITS].copy_from_slice(digits.as_bytes());
}

fn length(digits: [u8; LENGTH_DIGITS]) -> Result<usize, PktError> {
    digits.iter().try_fold(0, |length, &digit| {
        let value = char::from(digit).to_digit(16);
        let value = value.ok_or_else(|| PktError::NotHex(digits.as_slice().into()))?;
        Ok(length * 16 + value as usize)
    })
}

const LENGTH_DIGITS: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<Decoded<'_>, &str>) {
        let found = decode(bytes).map_err(|e| e.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{:?}", bytes.as_bstr());
    }

    fn complete(packet: Packet<'_>, consumed: usize) -> Decoded<'_> {
        Decoded::Complete { packet, consumed }
    }

    #[test]
    fn each_kind_of_packet_is_told_from_its_length() {
        check(b"0000rest", Ok(complete(Packet::Flush, 4)));
        check(b"0001", Ok(complete(Packet::Delim, 4)));
        check(b"0002", Ok(complete(Packet::ResponseEnd, 4)));
        check(b"0004", Ok(complete(Packet::Data(b""), 4)));
        check(b"0006a\nrest", Ok(complete(Packet::Data(b"a\n"), 6)));
        check(b"000Ahello\n", Ok(complete(Packet::Data(b"hello\n"), 10)));
    }

    #[test]
    fn a_partial_packet_says_how_many_bytes_it_lacks() {
        check(b"", Ok(Decoded::Incomplete { needed: 4 }));
        check(b"00", Ok(Decoded::Incomplete { needed: 2 }));
        check(b"000a", Ok(Decoded::Incomplete { needed: 6 }));
        check(b"000ahell", Ok(Decoded::Incomplete { needed: 2 }));
    }

    #[test]
    fn a_bad_length_is_an_error_before_any_data_arrives() {
        check(b"0003", Err("bad pkt-line length 0003: reserved"));
        check(b"fff1", Err("bad pkt-line length 65521: the longest packet has 65520 bytes"));
        check(b"fff0", Ok(Decoded::Incomplete { needed: 65_516 }));
        for bytes in [b"PACK", b"+004", b"-001", b"00 4", b"0x10", b"\xff\xff\xff\xff"] {
            let digits = bytes.as_bstr();
            let expected = format!("bad pkt-line length {digits:?}: not four hexadecimal digits");
            check(bytes, Err(&expected));
        }
    }

    #[test]
    fn only_one_final_line_feed_is_taken_off_a_line() {
        assert_eq!(Packet::Data(b"a\n\n").as_line(), Some(b"a\n".as_bstr()));
        assert_eq!(Packet::Data(b"a").as_line(), Some(b"a".as_bstr()));
        assert_eq!(Packet::Flush.as_line(), None);
    }

    #[test]
    fn what_one_packet_cannot_carry_is_refused_and_leaves_the_buffer_alone() {
        let mut out = Vec::new();
        assert_eq!(data(&mut out, &vec![0; MAX_DATA + 1]), Err(DataTooLong(MAX_DATA + 1)));
        assert_eq!(text(&mut out, &vec![0; MAX_DATA]), Err(DataTooLong(MAX_DATA + 1)));
        assert!(out.is_empty());
        data(&mut out, &vec![0; MAX_DATA]).unwrap();
        assert!(out.starts_with(b"fff0"));
        assert_eq!(out.len(), MAX_PACKET);
    }

    #[test]
    fn an_error_line_too_long_for_a_packet_is_cut_and_still_ends_its_line() {
        let mut out = Vec::new();
        err(&mut out, &"x".repeat(MAX_PACKET));
        assert!(out.starts_with(b"fff0ERR x"));
        assert!(out.ends_with(b"x\n"));
        assert_eq!(out.len(), MAX_PACKET);
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_the_same_data(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            rest in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let mut out = Vec::new();
            data(&mut out, &bytes).unwrap();
            let consumed = out.len();
            out.extend_from_slice(&rest);
            prop_assert_eq!(
                decode(&out),
                Ok(Decoded::Complete { packet: Packet::Data(&bytes), consumed })
            );
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Decoded::Complete { consumed, .. }) = decode(&bytes) {
                prop_assert!(consumed <= bytes.len());
            }
        }
    }
}
