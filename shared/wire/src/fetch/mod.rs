//! `fetch`: its arguments, and the answer to those requests that need nothing but objects.
//!
//! [`parse`] reads a whole request body, which the edge has bounded by [`MAX_REQUEST`]. A request that
//! [`FetchRequest::is_plain`] is told in full by the value; of any other, only that is known, and its bytes go to
//! whoever can answer it. [`respond`] writes the answer. Which objects to send, and when the two sides know enough of
//! each other, is decided elsewhere.
//!
//! Source: git's `gitprotocol-v2`, "fetch".

mod answer;
mod repeat;

use bstr::BString;
use gix_hash::Kind;
use zit_model::Oid;
use zit_model::oid::OidError;

pub use self::answer::{Answer, respond};
pub use self::repeat::{Repeatable, repeatable};
use crate::command::{self, Command, CommandError, HeadProgress, shown};
use crate::pkt::{self, Decoded, Packet, PktError};

/// The longest request that is read here, in bytes: about five thousand wants and haves.
///
/// git's clients begin with 16 haves and double them from round to round; whoever is still asking then has a history
/// too far away for a small answer.
pub const MAX_REQUEST: usize = 256 * 1024;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one argument of the protocol")]
pub struct FetchRequest {
    /// The objects it wants, in the order given, each once.
    pub wants: Vec<Oid>,
    /// The objects it has, in the order given.
    pub haves: Vec<Oid>,
    /// It has said all it will, and the pack comes next.
    pub done: bool,
    /// The pack may have deltas against objects that the client has.
    pub thin_pack: bool,
    /// No progress text is wanted.
    pub no_progress: bool,
    /// Annotated tags of objects that are sent are wanted too.
    pub include_tag: bool,
    /// The pack may have deltas that name their base by its distance.
    pub ofs_delta: bool,
    /// No pack before `done`, however much is known.
    pub wait_for_done: bool,
    // Invariant: true if an argument was met that none of the fields tells of.
    asks_for_more: bool,
}

impl FetchRequest {
    /// Whether the fields say all there is to it: something is wanted, and neither the depth of history, nor a filter,
    /// nor refs, nor another form of answer.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.asks_for_more && !self.wants.is_empty()
    }
}

/// Why bytes are not a request of `fetch`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FetchError {
    /// The head is broken.
    #[error(transparent)]
    Head(#[from] CommandError),
    /// The framing of the arguments is broken.
    #[error(transparent)]
    Pkt(#[from] PktError),
    /// An argument that fetch has not.
    #[error("unexpected fetch argument {0:?}")]
    UnknownArgument(BString),
    /// A want or a have without an oid of the repository's hash function.
    #[error("expected an object id of {object_format} in {line:?}")]
    BadOid {
        /// The repository's hash function.
        object_format: Kind,
        /// The argument.
        line: BString,
    },
    /// The arguments end in something else than a flush.
    #[error("expected flush after fetch arguments")]
    NoFlush,
    /// The body ends within the request.
    #[error("fetch request ends early")]
    Truncated,
    /// The body goes on after the request.
    #[error("{0} bytes follow the fetch request")]
    Trailing(usize),
    /// Longer than [`MAX_REQUEST`].
    #[error("fetch request of {0} bytes is longer than {MAX_REQUEST}")]
    TooLong(usize),
    /// The request is of another command; the caller looked at its head before.
    #[error("not a fetch request")]
    NotFetch,
}

/// Reads a whole request, from its head to its flush.
///
/// # Errors
/// [`FetchError`] for anything but exactly one request of `fetch`.
pub fn parse(body: &[u8], object_format: Kind) -> Result<FetchRequest, FetchError> {
    if body.len() > MAX_REQUEST {
        return Err(FetchError::TooLong(body.len()));
    }
    match command::read_head(body, object_format)? {
        HeadProgress::Complete(head) if head.command == Command::Fetch => {
            parse_arguments(body.get(head.consumed..).unwrap_or_default(), object_format)
        }
        HeadProgress::Complete(_) | HeadProgress::Empty => Err(FetchError::NotFetch),
        HeadProgress::Incomplete { .. } => Err(FetchError::Truncated),
    }
}

fn parse_arguments(mut bytes: &[u8], object_format: Kind) -> Result<FetchRequest, FetchError> {
    let mut request = FetchRequest::default();
    let mut wanted = std::collections::HashSet::new();
    loop {
        let Decoded::Complete { packet, consumed } = pkt::decode(bytes)? else {
            return Err(FetchError::Truncated);
        };
        bytes = bytes.get(consumed..).unwrap_or_default();
        match packet {
            Packet::Data(data) => {
                let line = data.strip_suffix(b"\n").unwrap_or(data);
                read_argument(line, object_format, &mut request)?;
            }
            Packet::Flush if bytes.is_empty() => break,
            Packet::Flush => return Err(FetchError::Trailing(bytes.len())),
            Packet::Delim | Packet::ResponseEnd => return Err(FetchError::NoFlush),
        }
    }
    request.wants.retain(|oid| wanted.insert(*oid));
    Ok(request)
}

fn read_argument(
    line: &[u8],
    object_format: Kind,
    request: &mut FetchRequest,
) -> Result<(), FetchError> {
    let bad = || FetchError::BadOid { object_format, line: shown(line) };
    match line {
        b"done" => request.done = true,
        b"thin-pack" => request.thin_pack = true,
        b"no-progress" => request.no_progress = true,
        b"include-tag" => request.include_tag = true,
        b"ofs-delta" => request.ofs_delta = true,
        b"wait-for-done" => request.wait_for_done = true,
        _ => {
            if let Some(hex) = line.strip_prefix(b"want ") {
                request.wants.push(oid(hex, object_format).ok().flatten().ok_or_else(bad)?);
            } else if let Some(hex) = line.strip_prefix(b"have ") {
                // Nobody has the all-zero oid, so that a client that names it says nothing.
                request.haves.extend(oid(hex, object_format).map_err(|()| bad())?);
            } else if BEYOND.iter().any(|known| known.is(line)) {
                request.asks_for_more = true;
            } else {
                return Err(FetchError::UnknownArgument(shown(line)));
            }
        }
    }
    Ok(())
}

/// An oid of the hash function; `None` for the all-zero oid.
fn oid(hex: &[u8], object_format: Kind) -> Result<Option<Oid>, ()> {
    match Oid::from_hex(hex) {
        Ok(oid) if oid.kind() == object_format => Ok(Some(oid)),
        Err(OidError::Null) if hex.len() == object_format.len_in_hex() => Ok(None),
        Ok(_) | Err(OidError::Malformed(_) | OidError::Null) => Err(()),
    }
}

/// An argument that makes a request more than plain.
enum Beyond {
    Bare(&'static [u8]),
    WithValue(&'static [u8]),
}

impl Beyond {
    fn is(&self, line: &[u8]) -> bool {
        match self {
            Self::Bare(name) => line == *name,
            Self::WithValue(name) => {
                line.strip_prefix(*name).is_some_and(|rest| rest.starts_with(b" "))
            }
        }
    }
}

/// Every argument of `gitprotocol-v2` that is not a field of [`FetchRequest`].
const BEYOND: &[Beyond] = &[
    Beyond::WithValue(b"shallow"),
    Beyond::WithValue(b"deepen"),
    Beyond::Bare(b"deepen-relative"),
    Beyond::WithValue(b"deepen-since"),
    Beyond::WithValue(b"deepen-not"),
    Beyond::WithValue(b"filter"),
    Beyond::WithValue(b"want-ref"),
    Beyond::Bare(b"sideband-all"),
    Beyond::WithValue(b"packfile-uris"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn request(arguments: &[String], end: &str) -> Vec<u8> {
        let mut out = Vec::new();
        pkt::text(&mut out, b"command=fetch").unwrap();
        pkt::delim(&mut out);
        for argument in arguments {
            pkt::text(&mut out, argument.as_bytes()).unwrap();
        }
        out.extend_from_slice(end.as_bytes());
        out
    }

    fn oid(hex: &str) -> Oid {
        Oid::from_hex(hex.as_bytes()).unwrap()
    }

    #[test]
    fn every_plain_argument_is_read() {
        let arguments = [
            &format!("want {A}"),
            &format!("want {B}"),
            &format!("want {A}"),
            &format!("have {B}"),
            &format!("have {}", "0".repeat(40)),
            "done",
            "thin-pack",
            "no-progress",
            "include-tag",
            "ofs-delta",
            "wait-for-done",
        ]
        .map(str::to_owned);
        let found = parse(&request(&arguments, "0000"), Kind::Sha1).unwrap();
        let expected = FetchRequest {
            wants: vec![oid(A), oid(B)],
            haves: vec![oid(B)],
            done: true,
            thin_pack: true,
            no_progress: true,
            include_tag: true,
            ofs_delta: true,
            wait_for_done: true,
            asks_for_more: false,
        };
        assert_eq!(found, expected);
        assert!(found.is_plain());
    }

    #[test]
    fn a_request_that_asks_for_more_than_objects_is_known_but_not_plain() {
        for argument in [
            &format!("shallow {A}"),
            "deepen 1",
            "deepen-relative",
            "deepen-since 1700000000",
            "deepen-not refs/heads/main",
            "filter blob:none",
            "want-ref refs/heads/main",
            "sideband-all",
            "packfile-uris https",
        ] {
            let arguments = [format!("want {A}"), argument.to_owned()];
            let found = parse(&request(&arguments, "0000"), Kind::Sha1);
            assert_eq!(found.map(|request| request.is_plain()), Ok(false), "{argument}");
        }
    }

    #[test]
    fn a_request_that_wants_nothing_is_not_plain() {
        let bytes = request(&[format!("have {A}"), "done".to_owned()], "0000");
        assert!(!parse(&bytes, Kind::Sha1).unwrap().is_plain());
    }

    #[test]
    fn each_malformed_request_says_what_is_wrong_with_it() {
        let one = |argument: &str, end: &str| request(&[argument.to_owned()], end);
        let sha256 = format!("want {}", "a".repeat(64));
        for (bytes, expected) in [
            (one("hm", "0000"), "unexpected fetch argument \"hm\"".to_owned()),
            (one("shallow", "0000"), "unexpected fetch argument \"shallow\"".to_owned()),
            (one("deepen-", "0000"), "unexpected fetch argument \"deepen-\"".to_owned()),
            (one("want", "0000"), "unexpected fetch argument \"want\"".to_owned()),
            (one("done ", "0000"), "unexpected fetch argument \"done \"".to_owned()),
            (one("want ", "0000"), "expected an object id of sha1 in \"want \"".to_owned()),
            (one("have xyz", "0000"), "expected an object id of sha1 in \"have xyz\"".to_owned()),
            (one(&sha256, "0000"), format!("expected an object id of sha1 in \"{sha256}\"")),
            (
                one(&format!("want {}", "0".repeat(40)), "0000"),
                format!("expected an object id of sha1 in \"want {}\"", "0".repeat(40)),
            ),
            (one("done", ""), "fetch request ends early".to_owned()),
            (one("done", "00"), "fetch request ends early".to_owned()),
            (one("done", "0001"), "expected flush after fetch arguments".to_owned()),
            (one("done", "0002"), "expected flush after fetch arguments".to_owned()),
            (one("done", "0000x"), "1 bytes follow the fetch request".to_owned()),
            (b"0014command=ls-refs\n0000".to_vec(), "not a fetch request".to_owned()),
            (b"0000".to_vec(), "not a fetch request".to_owned()),
            (
                vec![b'0'; MAX_REQUEST + 1],
                "fetch request of 262145 bytes is longer than 262144".to_owned(),
            ),
        ] {
            let found = parse(&bytes, Kind::Sha1).map_err(|e| e.to_string());
            assert_eq!(found, Err(expected));
        }
    }

    proptest! {
        #[test]
        fn wants_and_haves_come_back_in_order(
            wants in proptest::collection::btree_set(1_u8.., 1..6),
            haves in proptest::collection::vec(1_u8.., 0..6),
        ) {
            let hex = |n: &u8| format!("{n:02x}").repeat(20);
            let oids = |all: Vec<&u8>| all.into_iter().map(|n| oid(&hex(n))).collect::<Vec<_>>();
            let mut arguments = wants.iter().map(|n| format!("want {}", hex(n))).collect::<Vec<_>>();
            arguments.extend(haves.iter().map(|n| format!("have {}", hex(n))));
            let found = parse(&request(&arguments, "0000"), Kind::Sha1).unwrap();
            prop_assert_eq!(found.wants, oids(wants.iter().collect()));
            prop_assert_eq!(found.haves, oids(haves.iter().collect()));
        }

        #[test]
        fn any_bytes_are_a_request_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            whole in any::<bool>(),
        ) {
            let mut body = if whole { request(&[], "") } else { Vec::new() };
            body.extend_from_slice(&bytes);
            // That it returns is the property.
            let _ = parse(&body, Kind::Sha1);
        }

        #[test]
        fn a_request_cut_anywhere_is_an_error(cut in 0_usize..100) {
            let bytes = request(&[format!("want {A}"), "done".to_owned()], "0000");
            let cut = cut.min(bytes.len() - 1);
            prop_assert!(parse(&bytes[..cut], Kind::Sha1).is_err(), "cut at {}", cut);
        }
    }
}
