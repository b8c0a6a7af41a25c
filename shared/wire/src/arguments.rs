//! The arguments of a request of protocol v2 that the edge has read whole: lines up to a flush.
//!
//! Knows no command: what a line means is for whoever reads it.
//!
//! Source: git's `gitprotocol-v2`, "Command Request".

use crate::pkt::{self, Decoded, Packet, PktError};

/// Why bytes are no arguments.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgumentsError {
    /// The framing is broken.
    #[error(transparent)]
    Pkt(#[from] PktError),
    /// They end, or are followed by something else, before a flush.
    #[error("expected flush after arguments")]
    NoFlush,
    /// The body goes on after the flush.
    #[error("{0} bytes follow the request")]
    Trailing(usize),
}

/// The lines, without their line ends.
pub(crate) fn lines(mut bytes: &[u8]) -> Result<Vec<&[u8]>, ArgumentsError> {
    let mut lines = Vec::new();
    loop {
        let Decoded::Complete { packet, consumed } = pkt::decode(bytes)? else {
            return Err(ArgumentsError::NoFlush);
        };
        bytes = bytes.get(consumed..).unwrap_or_default();
        match packet {
            Packet::Data(data) => lines.push(data.strip_suffix(b"\n").unwrap_or(data)),
            Packet::Flush if bytes.is_empty() => return Ok(lines),
            Packet::Flush => return Err(ArgumentsError::Trailing(bytes.len())),
            Packet::Delim | Packet::ResponseEnd => return Err(ArgumentsError::NoFlush),
        }
    }
}
