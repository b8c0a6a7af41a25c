//! side-band-64k: three streams in one, each packet marked with the band it belongs to.
//!
//! The functions append to a buffer. The flush that ends the conversation is the caller's, with [`crate::pkt::flush`].
//! Text for people is written as it is: who quotes other people's words does it before.
//!
//! Source: git's `gitprotocol-pack`, "Packfile Data", and `sideband.h`.

use crate::pkt::{self, MAX_DATA};

/// The most payload one packet carries, in bytes: a packet's data less the band.
pub const MAX_PAYLOAD: usize = MAX_DATA - 1;

/// A stream within the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Band {
    /// The pack, or the report.
    Data = 1,
    /// Text for people, shown behind `remote:`.
    Progress = 2,
    /// Text for people, after which the client gives up.
    Error = 3,
}

/// Appends `payload` on a band, in as many packets as it needs; none for an empty one.
pub fn write(out: &mut Vec<u8>, band: Band, payload: &[u8]) {
    for chunk in payload.chunks(MAX_PAYLOAD) {
        pkt::frame(out, |out| {
            out.push(band as u8);
            out.extend_from_slice(chunk);
        });
    }
}

/// Appends lines for people to read now; a line feed is added where the last line has none.
pub fn progress(out: &mut Vec<u8>, text: &str) {
    write_lines(out, Band::Progress, text);
}

/// Appends the reason for which the conversation ends here.
pub fn error(out: &mut Vec<u8>, text: &str) {
    write_lines(out, Band::Error, text);
}

fn write_lines(out: &mut Vec<u8>, band: Band, text: &str) {
    let text = text.strip_suffix('\n').unwrap_or(text);
    write(out, band, format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;
    use crate::pkt::{Decoded, Packet, decode};

    #[test]
    fn a_long_payload_is_split_and_nothing_of_it_is_lost() {
        let payload: Vec<u8> = (0..=255).cycle().take(2 * MAX_PAYLOAD + 7).collect();
        let mut out = Vec::new();
        write(&mut out, Band::Data, &payload);
        let (mut joined, mut n_packets, mut rest) = (Vec::new(), 0, out.as_slice());
        while let Ok(Decoded::Complete { packet: Packet::Data(data), consumed }) = decode(rest) {
            assert_eq!(data[0], 1);
            joined.extend_from_slice(&data[1..]);
            n_packets += 1;
            rest = &rest[consumed..];
        }
        assert_eq!((n_packets, rest), (3, b"".as_slice()));
        assert!(joined == payload, "the payload comes back whole");
    }

    #[test]
    fn each_kind_of_text_goes_on_its_band_and_ends_its_line_once() {
        let mut out = Vec::new();
        progress(&mut out, "a");
        progress(&mut out, "b\n");
        error(&mut out, "no");
        write(&mut out, Band::Data, b"");
        assert_eq!(out.as_bstr(), "0007\x02a\n0007\x02b\n0008\x03no\n");
    }
}
