//! `bundle-uri`: where a client finds bundles to begin with.
//!
//! [`parse`] reads a whole request body, which has no arguments and is bounded by [`MAX_REQUEST`]; [`respond`] writes
//! what the repository's configuration says. What a key means is the client's business.
//!
//! Source: git's `gitprotocol-v2`, "bundle-uri"; its `bundle-uri.c`, `bundle_uri_command`.

use bstr::{BString, ByteSlice};
use gix_hash::Kind;

use crate::arguments::{self, ArgumentsError};
use crate::command::{self, Command, CommandError, HeadProgress, MAX_HEAD, shown};
use crate::pkt;

/// The longest request, in bytes: a head, and a flush.
pub const MAX_REQUEST: usize = MAX_HEAD + 4;

/// Why bytes are not a request of `bundle-uri`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BundleUriError {
    /// The head is broken.
    #[error(transparent)]
    Head(#[from] CommandError),
    /// What follows it is no end.
    #[error("bundle-uri: {0}")]
    Arguments(#[from] ArgumentsError),
    /// An argument; the command has none.
    #[error("bundle-uri: unexpected argument: {0:?}")]
    UnexpectedArgument(BString),
    /// The request is of another command; the caller looked at its head before.
    #[error("not a bundle-uri request")]
    NotBundleUri,
}

/// Reads a whole request, from its head to its flush.
///
/// # Errors
/// [`BundleUriError`] for anything but exactly one request of `bundle-uri`.
pub fn parse(body: &[u8], object_format: Kind) -> Result<(), BundleUriError> {
    let HeadProgress::Complete(head) = command::read_head(body, object_format)? else {
        return Err(BundleUriError::NotBundleUri);
    };
    if head.command != Command::BundleUri {
        return Err(BundleUriError::NotBundleUri);
    }
    match arguments::lines(body.get(head.consumed..).unwrap_or_default())?.first() {
        Some(line) => Err(BundleUriError::UnexpectedArgument(shown(line))),
        None => Ok(()),
    }
}

/// Writes the answer: one line `<key>=<value>` each. One that does not fit into a packet is left out.
#[must_use]
pub fn respond(keys: &[(BString, BString)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in keys {
        let line = [key.as_bytes(), b"=", value].concat();
        // git's own server dies of such a line.
        let _ = pkt::data(&mut out, &line);
    }
    pkt::flush(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_no_arguments() {
        let head = b"0017command=bundle-uri\n";
        for (rest, expected) in [
            ("0000", Ok(())),
            ("00010000", Ok(())),
            ("0001000ahello\n0000", Err("bundle-uri: unexpected argument: \"hello\"")),
            ("00010001", Err("bundle-uri: expected flush after arguments")),
            ("0000x", Err("bundle-uri: 1 bytes follow the request")),
        ] {
            let found = parse(&[head, rest.as_bytes()].concat(), Kind::Sha1);
            assert_eq!(found.map_err(|e| e.to_string()), expected.map_err(str::to_owned), "{rest}");
        }
        let other = parse(b"0014command=ls-refs\n0000", Kind::Sha1);
        assert_eq!(other, Err(BundleUriError::NotBundleUri));
    }

    #[test]
    fn each_key_is_a_line_that_fits_a_packet() {
        let keys = [("bundle.version", "1".to_owned()), ("bundle.a.uri", "x".repeat(70_000))];
        let keys = keys.map(|(key, value)| (key.into(), value.into()));
        assert_eq!(respond(&keys).as_bstr(), "0014bundle.version=10000");
    }
}
