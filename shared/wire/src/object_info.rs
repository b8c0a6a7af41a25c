//! `object-info`: what a client asks of objects, and the answer.
//!
//! [`parse`] reads a whole request body, which the edge has bounded by [`MAX_REQUEST`]; [`ObjectInfo::oids`] are to be
//! looked up, and [`respond`] writes what was found. Where a client is told that it is wrong, the answer goes on all the
//! same, as git's does. Nothing here knows an object.
//!
//! Source: git's `gitprotocol-v2`, "object-info"; its `protocol-caps.c`, `cap_object_info`.

use bstr::{BStr, BString, ByteSlice};
use gix_hash::Kind;
use zit_model::Oid;

use crate::arguments::{self, ArgumentsError};
use crate::command::{self, Command, CommandError, HeadProgress};
use crate::pkt;

/// The longest request that is read here, in bytes: some twenty thousand objects.
pub const MAX_REQUEST: usize = 1024 * 1024;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    object_format: Kind,
    /// It wants sizes. All other attributes are unknown.
    size: bool,
    /// What it names as oids, as it wrote them, in the order given.
    named: Vec<BString>,
    /// Lines that are no argument of the command.
    unexpected: Vec<BString>,
}

/// Why bytes are not a request of `object-info`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectInfoError {
    /// The head is broken.
    #[error(transparent)]
    Head(#[from] CommandError),
    /// The arguments are.
    #[error("object-info: {0}")]
    Arguments(#[from] ArgumentsError),
    /// The request is of another command; the caller looked at its head before.
    #[error("not an object-info request")]
    NotObjectInfo,
}

/// Reads a whole request, from its head to its flush.
///
/// # Errors
/// [`ObjectInfoError`] for anything but exactly one request of `object-info`.
pub fn parse(body: &[u8], object_format: Kind) -> Result<ObjectInfo, ObjectInfoError> {
    let HeadProgress::Complete(head) = command::read_head(body, object_format)? else {
        return Err(ObjectInfoError::NotObjectInfo);
    };
    if head.command != Command::ObjectInfo {
        return Err(ObjectInfoError::NotObjectInfo);
    }
    let mut request =
        ObjectInfo { object_format, size: false, named: Vec::new(), unexpected: Vec::new() };
    for line in arguments::lines(body.get(head.consumed..).unwrap_or_default())? {
        match line.strip_prefix(b"oid ") {
            Some(oid) => request.named.push(oid.into()),
            None if line == b"size" => request.size = true,
            None => request.unexpected.push(line.into()),
        }
    }
    Ok(request)
}

impl ObjectInfo {
    /// The objects that have to be looked up, each once; none where nothing is asked of them.
    #[must_use]
    pub fn oids(&self) -> Vec<Oid> {
        let mut oids: Vec<Oid> = if self.size {
            self.named
                .iter()
                .filter_map(|named| self.read(named.as_bstr()).ok().flatten())
                .collect()
        } else {
            Vec::new()
        };
        oids.sort_unstable();
        oids.dedup();
        oids
    }

    /// The object that a word names: whatever follows the digits is passed over, and the all-zero oid is no object.
    fn read(&self, word: &BStr) -> Result<Option<Oid>, ()> {
        let hex = word.get(..self.object_format.len_in_hex()).ok_or(())?;
        if hex.iter().all(|digit| *digit == b'0') {
            return Ok(None);
        }
        Oid::from_hex(&hex.to_ascii_lowercase()).map(Some).map_err(|_| ())
    }
}

/// Writes the answer; `size` is that of an object in bytes, if it is there.
#[must_use]
pub fn respond(request: &ObjectInfo, size: impl Fn(Oid) -> Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for line in &request.unexpected {
        pkt::err(&mut out, &format!("object-info: unexpected line: '{line}'"));
    }
    if request.size && !request.named.is_empty() {
        pkt::frame(&mut out, |out| out.extend_from_slice(b"size"));
    }
    for word in &request.named {
        let Ok(oid) = request.read(word.as_bstr()) else {
            let why = format!("object-info: protocol error, expected to get oid, not '{word}'");
            pkt::err(&mut out, &why);
            continue;
        };
        pkt::frame(&mut out, |out| {
            out.extend_from_slice(word);
            if request.size {
                out.push(b' ');
                if let Some(size) = oid.and_then(&size) {
                    out.extend_from_slice(size.to_string().as_bytes());
                }
            }
        });
    }
    pkt::flush(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn request(arguments: &[&str], end: &str) -> Vec<u8> {
        let mut out = Vec::new();
        pkt::text(&mut out, b"command=object-info").unwrap();
        pkt::delim(&mut out);
        for argument in arguments {
            pkt::text(&mut out, argument.as_bytes()).unwrap();
        }
        out.extend_from_slice(end.as_bytes());
        out
    }

    #[test]
    fn sizes_are_told_in_the_order_asked_and_what_is_missing_has_none() {
        let (zero, upper) =
            (format!("oid {}", "0".repeat(40)), format!("oid {}", A.to_uppercase()));
        let lines = [&format!("oid {A}"), &zero, "size", &upper, "oid x"];
        let request = parse(&request(&lines, "0000"), Kind::Sha1).unwrap();
        let oid = Oid::from_hex(A.as_bytes()).unwrap();
        assert_eq!(request.oids(), [oid]);
        let answer = respond(&request, |asked| (asked == oid).then_some(12));
        let expected = format!(
            "0008size002f{A} 12002d{} 002f{} 120042ERR object-info: protocol error, expected to get oid, not 'x'\n0000",
            "0".repeat(40),
            A.to_uppercase()
        );
        assert_eq!(answer.as_bstr(), expected);
    }

    #[test]
    fn nothing_is_looked_up_for_whoever_asks_for_nothing() {
        let request = parse(&request(&[&format!("oid {A}")], "0000"), Kind::Sha1).unwrap();
        assert_eq!(request.oids(), []);
        assert_eq!(respond(&request, |_| None).as_bstr(), format!("002c{A}0000"));
    }

    #[test]
    fn each_malformed_request_says_what_is_wrong_with_it() {
        for (bytes, expected) in [
            (request(&["size"], ""), "object-info: expected flush after arguments"),
            (request(&["size"], "0001"), "object-info: expected flush after arguments"),
            (request(&["size"], "0000x"), "object-info: 1 bytes follow the request"),
            (b"0014command=ls-refs\n0000".to_vec(), "not an object-info request"),
            (b"0000".to_vec(), "not an object-info request"),
        ] {
            let found = parse(&bytes, Kind::Sha1).map_err(|error| error.to_string());
            assert_eq!(found, Err(expected.to_owned()));
        }
        let odd = parse(&request(&["hm"], "0000"), Kind::Sha1).unwrap();
        let answer = respond(&odd, |_| None);
        assert_eq!(answer.as_bstr(), "002bERR object-info: unexpected line: 'hm'\n0000");
    }
}
