//! Requests whose answer may be given again: [`repeatable`] tells them from others, and equal ones from each other.
//!
//! An answer may be given to a second client if it follows from the request, from objects, which never change, and from
//! the repository's tags, configuration and shallow file, which the caller compares by itself. A request that names a
//! ref, by `want-ref`, `deepen-not` or a filter's `sparse:oid=`, is none of these.
//!
//! Whether the wants may be had is not asked here: it has to be, each time.

use std::collections::BTreeSet;

use gix_hash::Kind;
use zit_model::Oid;

use super::{FetchError, FetchRequest, read_argument};
use crate::pkt::{self, Decoded, Packet};

/// A request whose answer may be given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeatable {
    /// The objects it wants, sorted, each once.
    pub wants: Vec<Oid>,
    /// Annotated tags of objects that are sent are wanted too, so that the answer depends on which there are.
    pub include_tag: bool,
    /// The same bytes for two requests exactly if they ask for the same in the same form. Who asks is no part of it.
    pub key: Vec<u8>,
}

/// Filters that name nothing but sizes, depths and kinds.
const CLOSED_FILTERS: &[&[u8]] = &[b"blob:none", b"blob:limit=", b"tree:", b"object:type="];

/// Reads a whole request of `fetch`; `None` when its answer must not be given again.
///
/// # Errors
/// [`FetchError`] for bytes that [`super::parse`] refuses.
pub fn repeatable(body: &[u8], object_format: Kind) -> Result<Option<Repeatable>, FetchError> {
    let mut request = FetchRequest::default();
    let mut key = Vec::new();
    let (mut rest, mut in_head) = (body, true);
    loop {
        let Decoded::Complete { packet, consumed } = pkt::decode(rest)? else {
            return Err(FetchError::Truncated);
        };
        rest = rest.get(consumed..).unwrap_or_default();
        let line = match packet {
            Packet::Delim if in_head => {
                in_head = false;
                continue;
            }
            Packet::Flush if rest.is_empty() => break,
            Packet::Flush => return Err(FetchError::Trailing(rest.len())),
            Packet::Delim | Packet::ResponseEnd => return Err(FetchError::NoFlush),
            Packet::Data(data) => data.strip_suffix(b"\n").unwrap_or(data),
        };
        if in_head {
            if !tells_who_asks(line) {
                push(&mut key, line);
            }
            continue;
        }
        if names_a_ref(line) {
            return Ok(None);
        }
        read_argument(line, object_format, &mut request)?;
        if !line.starts_with(b"want ") {
            push(&mut key, line);
        }
    }
    let wants: BTreeSet<Oid> = request.wants.into_iter().collect();
    for want in &wants {
        push(&mut key, want.as_bytes());
    }
    let wants = Vec::from_iter(wants);
    let include_tag = request.include_tag;
    Ok((!wants.is_empty()).then_some(Repeatable { wants, include_tag, key }))
}

/// Capabilities that say something of the client and change nothing in the answer.
fn tells_who_asks(line: &[u8]) -> bool {
    line.starts_with(b"agent=") || line.starts_with(b"session-id=")
}

/// Whether what an argument means depends on where a ref is, or on something that is not known here.
fn names_a_ref(line: &[u8]) -> bool {
    match line.strip_prefix(b"filter ") {
        Some(filter) => !CLOSED_FILTERS.iter().any(|closed| filter.starts_with(closed)),
        None => [b"want-ref ".as_slice(), b"deepen-not ", b"packfile-uris "]
            .iter()
            .any(|open| line.starts_with(open)),
    }
}

/// Lengths keep two lines from being taken for one.
fn push(key: &mut Vec<u8>, line: &[u8]) {
    key.extend_from_slice(format!("{:04x}", line.len()).as_bytes());
    key.extend_from_slice(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "want aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "want bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const HAVE: &str = "have cccccccccccccccccccccccccccccccccccccccc";

    fn read(head: &[&str], arguments: &[&str]) -> Option<Repeatable> {
        let mut body = Vec::new();
        pkt::text(&mut body, b"command=fetch").unwrap();
        for line in head {
            pkt::text(&mut body, line.as_bytes()).unwrap();
        }
        pkt::delim(&mut body);
        for line in arguments {
            pkt::text(&mut body, line.as_bytes()).unwrap();
        }
        pkt::flush(&mut body);
        repeatable(&body, Kind::Sha1).unwrap()
    }

    #[test]
    fn who_asks_and_in_which_order_makes_no_difference() {
        let one = read(&["agent=git/2.47.3", "session-id=1"], &["thin-pack", A, B, "done"]);
        let other = read(&["agent=jgit"], &["thin-pack", B, A, B, "done"]);
        assert!(one.is_some());
        assert_eq!(one, other);
    }

    #[test]
    fn whatever_shapes_the_answer_makes_a_difference() {
        let plain = read(&[], &[A, "done"]).unwrap();
        for arguments in [
            &[B, "done"][..],
            &[A, B, "done"],
            &[A],
            &[A, HAVE, "done"],
            &[A, "thin-pack", "done"],
            &[A, "no-progress", "done"],
            &[A, "include-tag", "done"],
            &[A, "ofs-delta", "done"],
            &[A, "sideband-all", "done"],
            &[A, "deepen 1", "done"],
            &[A, "deepen 2", "done"],
            &[A, "deepen 1", "deepen-relative", "done"],
            &[A, "deepen-since 1700000000", "done"],
            &[A, "filter blob:none", "done"],
            &[A, "filter blob:limit=1k", "done"],
            &[A, "filter tree:0", "done"],
            &[A, "shallow dddddddddddddddddddddddddddddddddddddddd", "done"],
        ] {
            let other = read(&[], arguments).unwrap();
            assert_ne!(plain.key, other.key, "{arguments:?}");
        }
        assert_ne!(plain.key, read(&["server-option=a"], &[A, "done"]).unwrap().key);
        assert!(read(&[], &[A, "include-tag", "done"]).unwrap().include_tag);
    }

    #[test]
    fn a_request_that_names_a_ref_or_wants_nothing_is_not_repeated() {
        for argument in [
            "want-ref refs/heads/main",
            "deepen-not refs/heads/main",
            "packfile-uris https",
            "filter sparse:oid=main:patterns",
            "filter combine:blob:none+sparse:oid=main",
        ] {
            assert_eq!(read(&[], &[A, argument, "done"]), None, "{argument}");
        }
        assert_eq!(read(&[], &[HAVE, "done"]), None);
    }

    #[test]
    fn a_broken_request_is_an_error() {
        let body = b"0011command=fetch0001000adone\n0000".as_slice();
        assert!(repeatable(body, Kind::Sha1).is_err());
        assert!(repeatable(b"0011command=fetch0001", Kind::Sha1).is_err());
    }
}
