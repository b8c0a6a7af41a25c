//! The request of `git-receive-pack`: what a client wants moved, up to where its pack begins.
//!
//! The stages, in order; each consumes the one before:
//!
//! ```text
//! ReadCommands   shallow lines, and commands or a certificate of them; capabilities behind the first; a flush ends it
//! ReadOptions    push options, if the client said it sends some; a flush ends it
//! Done           the request; what follows is the pack, if `PushRequest::expects_pack`
//! ```
//!
//! [`Receive::step`] is the machine, one packet at a time. [`RequestReader::feed`] drives it with bytes as they arrive.
//! Refnames are not judged here: a bad one costs its command an `ng`, not the client its connection.
//!
//! Source: git's `gitprotocol-pack`, "Reference Update Request and Packfile Transfer".

mod cert;
mod read;
mod request;

use bstr::BString;
use gix_hash::Kind;

pub use self::cert::PushCert;
pub use self::read::{ReadCommands, ReadOptions};
pub use self::request::{ClientCapabilities, Command, PushRequest, Report};
use crate::pkt::{self, Decoded, Packet, PktError};

/// The most commands in one push.
///
/// A mirror of a large repository has some ten thousand refs; each command costs about 200 bytes until it is judged.
pub const MAX_COMMANDS: usize = 100_000;

/// The most bytes of commands and shallow lines together: [`MAX_COMMANDS`] of an ordinary length.
pub const MAX_COMMAND_BYTES: usize = 32 * 1024 * 1024;

/// The most push options. People type them or a helper does, one for each claim or note.
pub const MAX_OPTIONS: usize = 1_000;

/// The most bytes of push options together. They are judged and recorded with the push.
pub const MAX_OPTION_BYTES: usize = 64 * 1024;

/// Where in its request a client is.
#[derive(Debug)]
#[must_use = "the state that a step consumed is gone; go on with this one"]
pub enum Receive {
    /// Commands are being read.
    Commands(ReadCommands),
    /// Push options are being read.
    Options(ReadOptions),
    /// The request is there, and the pack follows.
    Done(PushRequest),
}

/// Why bytes are not a push request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReceiveError {
    // The peer broke the protocol.
    /// The framing is broken.
    #[error(transparent)]
    Pkt(#[from] PktError),
    /// A line that is no command.
    #[error("expected old-oid, new-oid and refname, got {0:?}")]
    Command(BString),
    /// A shallow line without an oid of this repository's format.
    #[error("expected an object id after shallow, got {0:?}")]
    Shallow(BString),
    /// Capabilities behind another command than the first.
    #[error("capabilities belong behind the first command, found them behind {0:?}")]
    LateCapabilities(BString),
    /// A special packet that has no place in this request.
    #[error("unexpected {0} in a push request")]
    UnexpectedPacket(&'static str),
    /// A packet after the end of the request.
    #[error("push request goes on after its end")]
    AfterEnd,
    /// The connection ends within the request.
    #[error("push request ends early, while reading {0}")]
    Truncated(&'static str),

    /// A certificate that cannot be taken apart.
    #[error("malformed push certificate {0:?}")]
    Cert(BString),
    /// Commands beside those of a certificate.
    #[error("got both push certificate and unsigned commands")]
    CertAndCommands,

    // The peer asked for something we lack.
    /// The client made its oids with another hash function than the repository's.
    #[error("mismatched object format: server {server}, client {client:?}")]
    ObjectFormat {
        /// The repository's.
        server: Kind,
        /// What the client said, or left to be understood.
        client: BString,
    },
    /// More than one of the limits of this module allows.
    #[error("push request has more than {limit} {of}")]
    TooMuch {
        /// The limit.
        limit: usize,
        /// What it counts.
        of: &'static str,
    },
}

impl ReceiveError {
    /// What the client may do about it, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ObjectFormat { .. } => Some(
                "clone the repository anew; histories of different object formats cannot be joined",
            ),
            Self::TooMuch { of: COMMANDS | COMMAND_BYTES, .. } => {
                Some("push in several steps, fewer refs at a time")
            }
            Self::TooMuch { .. } => Some("push in several steps, fewer options at a time"),
            Self::Pkt(_)
            | Self::Command(_)
            | Self::Shallow(_)
            | Self::LateCapabilities(_)
            | Self::UnexpectedPacket(_)
            | Self::AfterEnd
            | Self::Truncated(_)
            | Self::Cert(_)
            | Self::CertAndCommands => None,
        }
    }
}

impl Receive {
    /// The state before the first packet, for a repository of the given format.
    pub fn new(object_format: Kind) -> Self {
        Self::Commands(ReadCommands::new(object_format))
    }

    /// Consumes one packet.
    ///
    /// # Errors
    /// [`ReceiveError`] when the packet has no place here; the request is lost then.
    pub fn step(self, packet: Packet<'_>) -> Result<Self, ReceiveError> {
        let line = match packet {
            Packet::Data(data) => Some(data),
            Packet::Flush => None,
            Packet::Delim => return Err(ReceiveError::UnexpectedPacket("delim packet")),
            Packet::ResponseEnd => {
                return Err(ReceiveError::UnexpectedPacket("response-end packet"));
            }
        };
        match (self, line) {
            (Self::Commands(state), Some(data)) => state.line(data).map(Self::Commands),
            (Self::Commands(state), None) => state.end(),
            (Self::Options(state), Some(data)) => state.line(data).map(Self::Options),
            (Self::Options(state), None) => Ok(Self::Done(state.end())),
            (Self::Done(_), _) => Err(ReceiveError::AfterEnd),
        }
    }

    fn stage(&self) -> &'static str {
        match self {
            Self::Commands(_) => "commands",
            Self::Options(_) => "push options",
            Self::Done(_) => "the pack",
        }
    }
}

/// Reads a request from bytes in pieces of any size.
///
/// It keeps at most one packet that has not arrived whole. After an error it is of no further use.
#[derive(Debug)]
pub struct RequestReader {
    // Invariant: `None` only after an error or after `Progress::Done` was answered.
    state: Option<Receive>,
    /// The start of a packet whose rest has not arrived.
    partial: Vec<u8>,
}

/// How far [`RequestReader::feed`] got.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and at least `needed` more are.
    More {
        /// At least 1.
        needed: usize,
    },
    /// The request is there.
    Done {
        /// The request.
        request: PushRequest,
        /// How many of the bytes just fed belong to it; the others begin the pack.
        consumed: usize,
    },
}

impl RequestReader {
    /// A reader for a repository of the given format.
    #[must_use]
    pub fn new(object_format: Kind) -> Self {
        Self { state: Some(Receive::new(object_format)), partial: Vec::new() }
    }

    /// Takes the bytes that have arrived since the last call.
    ///
    /// # Errors
    /// [`ReceiveError`] when they are not a request, or when the request has ended already.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, ReceiveError> {
        let mut state = self.state.take().ok_or(ReceiveError::AfterEnd)?;
        let mut consumed = 0;
        loop {
            let rest = bytes.get(consumed..).unwrap_or_default();
            let (next, taken) = match self.next_packet(state, rest)? {
                Fed::Stepped { state, taken } => (state, taken),
                Fed::Starved { state, needed } => {
                    self.state = Some(state);
                    return Ok(Progress::More { needed });
                }
            };
            consumed += taken;
            match next {
                Receive::Done(request) => return Ok(Progress::Done { request, consumed }),
                Receive::Commands(_) | Receive::Options(_) => state = next,
            }
        }
    }

    /// Says that no more bytes will come, before [`Progress::Done`] was answered.
    ///
    /// Answers the empty request when nothing at all had come.
    ///
    /// # Errors
    /// [`ReceiveError::Truncated`] when the request had begun.
    pub fn finish(self) -> Result<PushRequest, ReceiveError> {
        match self.state {
            Some(Receive::Commands(state)) if self.partial.is_empty() && state.is_untouched() => {
                Ok(PushRequest::default())
            }
            Some(state) => Err(ReceiveError::Truncated(state.stage())),
            None => Err(ReceiveError::AfterEnd),
        }
    }

    /// Steps by one packet, made of the partial one and `bytes`; sets aside what is not a whole packet.
    fn next_packet(&mut self, state: Receive, bytes: &[u8]) -> Result<Fed, ReceiveError> {
        if self.partial.is_empty() {
            return Ok(match pkt::decode(bytes)? {
                Decoded::Complete { packet, consumed } => {
                    Fed::Stepped { state: state.step(packet)?, taken: consumed }
                }
                Decoded::Incomplete { needed } => {
                    self.partial.extend_from_slice(bytes);
                    Fed::Starved { state, needed }
                }
            });
        }
        let mut taken = 0;
        loop {
            match pkt::decode(&self.partial)? {
                Decoded::Complete { packet, .. } => {
                    let state = state.step(packet)?;
                    self.partial.clear();
                    return Ok(Fed::Stepped { state, taken });
                }
                Decoded::Incomplete { needed } => {
                    // Invariant: `partial` never grows past one packet, since only what that packet lacks is added.
                    let rest = bytes.get(taken..).unwrap_or_default();
                    let piece = rest.get(..needed).unwrap_or(rest);
                    self.partial.extend_from_slice(piece);
                    taken += piece.len();
                    if piece.len() < needed {
                        return Ok(Fed::Starved { state, needed: needed - piece.len() });
                    }
                }
            }
        }
    }
}

enum Fed {
    Stepped { state: Receive, taken: usize },
    Starved { state: Receive, needed: usize },
}

// What the limits count, as errors say it.
const COMMANDS: &str = "commands and shallow lines";
const COMMAND_BYTES: &str = "bytes of commands and shallow lines";
const OPTIONS: &str = "push options";
const OPTION_BYTES: &str = "bytes of push options";

#[cfg(test)]
mod tests;
