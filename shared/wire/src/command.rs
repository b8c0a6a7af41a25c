//! The head of a protocol v2 request: which command, and the capabilities that go with it.
//!
//! [`read_head`] is given the bytes of a request that have arrived, always from the first, and is asked again with more
//! until it answers. What follows the head, up to the flush, belongs to the command: see [`crate::ls_refs`] and
//! [`crate::fetch`].
//!
//! Source: git's `gitprotocol-v2`, "Command Request".

use bstr::{BStr, BString, ByteSlice};
use gix_hash::Kind;

use crate::pkt::{self, Decoded, Packet, PktError};

/// The longest head, in bytes, and so the most that is ever kept before it is understood.
///
/// An agent, an object format and a session id take some hundred bytes; the rest is room for server options.
pub const MAX_HEAD: usize = 128 * 1024;

/// A command this server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Which refs are there.
    LsRefs,
    /// Send objects.
    Fetch,
    /// How big objects are. Only where it is advertised.
    ObjectInfo,
    /// Where bundles are. Only where it is advertised.
    BundleUri,
}

/// The head of a request, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The command.
    pub command: Command,
    /// The client's software.
    pub agent: Option<BString>,
    /// The id under which the client's own log has the session. Only where ids are advertised.
    pub session_id: Option<BString>,
    /// Values of `server-option`, in the order given.
    pub server_options: Vec<BString>,
    /// Bytes of the head: the command's arguments, or the final flush, come next.
    pub consumed: usize,
}

/// How far [`read_head`] got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadProgress {
    /// The head is not all there yet; at least `needed` more bytes are.
    Incomplete {
        /// At least 1.
        needed: usize,
    },
    /// A lone flush: the client wants nothing more, and the answer is empty.
    Empty,
    /// The head is there.
    Complete(RequestHead),
}

/// Why a request has no readable head.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommandError {
    /// The framing is broken.
    #[error(transparent)]
    Pkt(#[from] PktError),
    /// The request ends, or its arguments begin, before a command was named.
    #[error("no command requested")]
    NoCommand,
    /// A second command in one request.
    #[error("command {0:?} requested after another command")]
    SecondCommand(BString),
    /// A command this server has not.
    #[error("invalid command {0:?}")]
    UnknownCommand(BString),
    /// A capability that was not advertised.
    #[error("unknown capability {0:?}")]
    UnknownCapability(BString),
    /// The client counts on another hash function than the repository's.
    #[error("mismatched object format: server {server}, client {client:?}")]
    ObjectFormat {
        /// The repository's.
        server: Kind,
        /// What the client said.
        client: BString,
    },
    /// A packet that has no place in a head.
    #[error("unexpected response-end packet in a request")]
    ResponseEnd,
    /// Longer than [`MAX_HEAD`].
    #[error("request head is longer than {MAX_HEAD} bytes")]
    TooLong,
}

/// Reads the head of a request from the bytes that have arrived so far.
///
/// # Errors
/// [`CommandError`] when no further bytes can make it a request that this server answers.
pub fn read_head(bytes: &[u8], object_format: Kind) -> Result<HeadProgress, CommandError> {
    let mut keys = Keys::new(object_format);
    let mut consumed = 0;
    loop {
        let rest = bytes.get(consumed..).unwrap_or_default();
        let (packet, length) = match pkt::decode(rest)? {
            Decoded::Complete { packet, consumed: length } => (Some(packet), length),
            Decoded::Incomplete { needed } => (None, rest.len() + needed),
        };
        if consumed + length > MAX_HEAD {
            return Err(CommandError::TooLong);
        }
        let Some(packet) = packet else {
            return Ok(HeadProgress::Incomplete { needed: length - rest.len() });
        };
        match packet {
            Packet::Data(data) => keys.read(data.strip_suffix(b"\n").unwrap_or(data).as_bstr())?,
            Packet::Flush if consumed == 0 => return Ok(HeadProgress::Empty),
            // The flush is left for the command, which then sees the end of its arguments at once.
            Packet::Flush => return keys.finish(consumed),
            Packet::Delim => return keys.finish(consumed + length),
            Packet::ResponseEnd => return Err(CommandError::ResponseEnd),
        }
        consumed += length;
    }
}

/// What the lines of a head have said so far.
struct Keys {
    object_format: Kind,
    command: Option<Command>,
    agent: Option<BString>,
    session_id: Option<BString>,
    server_options: Vec<BString>,
}

impl Keys {
    fn new(object_format: Kind) -> Self {
        Self {
            object_format,
            command: None,
            agent: None,
            session_id: None,
            server_options: Vec::new(),
        }
    }

    fn read(&mut self, line: &BStr) -> Result<(), CommandError> {
        let (key, value) = line.split_once_str("=").unwrap_or((line, b""));
        match key {
            b"command" => self.read_command(value.as_bstr())?,
            b"agent" => self.agent = Some(value.into()),
            b"session-id" => self.session_id = Some(value.into()),
            b"server-option" => self.server_options.push(value.into()),
            b"object-format" if value == self.object_format.to_string().as_bytes() => {}
            b"object-format" => {
                return Err(CommandError::ObjectFormat {
                    server: self.object_format,
                    client: shown(value),
                });
            }
            _ => return Err(CommandError::UnknownCapability(shown(line))),
        }
        Ok(())
    }

    fn read_command(&mut self, name: &BStr) -> Result<(), CommandError> {
        if self.command.is_some() {
            return Err(CommandError::SecondCommand(shown(name)));
        }
        self.command = match name.as_bytes() {
            b"ls-refs" => Some(Command::LsRefs),
            b"fetch" => Some(Command::Fetch),
            b"object-info" => Some(Command::ObjectInfo),
            b"bundle-uri" => Some(Command::BundleUri),
            _ => return Err(CommandError::UnknownCommand(shown(name))),
        };
        Ok(())
    }

    fn finish(self, consumed: usize) -> Result<HeadProgress, CommandError> {
        let command = self.command.ok_or(CommandError::NoCommand)?;
        let Self { agent, session_id, server_options, .. } = self;
        let head = RequestHead { command, agent, session_id, server_options, consumed };
        Ok(HeadProgress::Complete(head))
    }
}

/// As much of a peer's bytes as an error repeats.
pub(crate) fn shown(bytes: &[u8]) -> BString {
    const MAX_SHOWN: usize = 120;
    bytes.get(..MAX_SHOWN).unwrap_or(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<HeadProgress, &str>) {
        let found = read_head(bytes, Kind::Sha1).map_err(|e| e.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{:?}", bytes.as_bstr());
    }

    fn lines(lines: &[&str], end: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            pkt::text(&mut out, line.as_bytes()).unwrap();
        }
        out.extend_from_slice(end.as_bytes());
        out
    }

    #[test]
    fn the_head_ends_at_the_delimiter_and_says_where_the_arguments_begin() {
        let bytes = lines(
            &[
                "command=fetch",
                "agent=git/2",
                "session-id=s1",
                "object-format=sha1",
                "server-option=a=b",
                "server-option=c",
            ],
            "0001rest",
        );
        let head = RequestHead {
            command: Command::Fetch,
            agent: Some("git/2".into()),
            session_id: Some("s1".into()),
            server_options: vec!["a=b".into(), "c".into()],
            consumed: bytes.len() - 4,
        };
        check(&bytes, Ok(HeadProgress::Complete(head)));
    }

    #[test]
    fn a_head_without_arguments_leaves_the_flush_to_its_command() {
        let bytes = lines(&["command=ls-refs"], "0000");
        let head = RequestHead {
            command: Command::LsRefs,
            agent: None,
            session_id: None,
            server_options: vec![],
            consumed: bytes.len() - 4,
        };
        check(&bytes, Ok(HeadProgress::Complete(head)));
    }

    #[test]
    fn a_head_that_has_not_arrived_asks_for_more() {
        let bytes = lines(&["command=fetch", "agent=git/2"], "0001");
        for n in 0..bytes.len() {
            let found = read_head(&bytes[..n], Kind::Sha1);
            assert!(
                matches!(found, Ok(HeadProgress::Incomplete { needed: 1.. })),
                "after {n} bytes: {found:?}"
            );
        }
    }

    #[test]
    fn a_lone_flush_is_an_empty_request() {
        check(b"0000", Ok(HeadProgress::Empty));
    }

    #[test]
    fn each_malformed_head_says_what_is_wrong_with_it() {
        let long = format!("server-option={}", "x".repeat(60_000));
        for (bytes, expected) in [
            (lines(&["command=nope"], ""), "invalid command \"nope\""),
            (lines(&["command"], ""), "invalid command \"\""),
            (lines(&["command=fetch\0"], ""), "invalid command \"fetch\\0\""),
            (
                lines(&["command=ls-refs", "command=fetch"], ""),
                "command \"fetch\" requested after another command",
            ),
            (lines(&["hm"], ""), "unknown capability \"hm\""),
            (
                lines(&["object-format=sha256"], ""),
                "mismatched object format: server sha1, client \"sha256\"",
            ),
            (lines(&["agent=x"], "0000"), "no command requested"),
            (lines(&[], "0001"), "no command requested"),
            (lines(&["command=fetch"], "0002"), "unexpected response-end packet in a request"),
            (lines(&[], "PACK"), "bad pkt-line length \"PACK\": not four hexadecimal digits"),
            (lines(&[long.as_str(); 3], ""), "request head is longer than 131072 bytes"),
        ] {
            check(&bytes, Err(expected));
        }
    }

    #[test]
    fn a_head_over_the_limit_is_refused_before_its_last_packet_is_there() {
        let fits = format!("server-option={}", "x".repeat(65_000));
        let bytes = lines(&[&fits, &fits], "");
        let announced =
            |length: usize| [bytes.as_slice(), format!("{length:04x}").as_bytes()].concat();
        let room = MAX_HEAD - bytes.len();
        check(&announced(room), Ok(HeadProgress::Incomplete { needed: room - 4 }));
        check(&announced(room + 1), Err("request head is longer than 131072 bytes"));
    }

    #[test]
    fn an_error_repeats_only_the_start_of_what_the_peer_sent() {
        let error = read_head(&lines(&[&"x".repeat(60_000)], ""), Kind::Sha1).unwrap_err();
        assert!(error.to_string().len() < 200);
    }
}
