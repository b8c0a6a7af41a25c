//! `ls-refs`: its arguments, which refs it asks for, and the answer.
//!
//! [`parse`] reads a whole request body, which the edge has bounded by [`MAX_REQUEST`]; [`respond`] writes the answer.
//! Which refs the client may see at all is decided before.
//!
//! Source: git's `gitprotocol-v2`, "ls-refs".

use bstr::{BStr, BString, ByteSlice};
use gix_hash::Kind;
use zit_model::{Oid, RefName};

use crate::command::{self, Command, CommandError, HeadProgress, shown};
use crate::pkt::{self, Decoded, Packet, PktError};
use crate::refs::{AdvertisedRef, Head, push_oid};

/// The longest request, in bytes: [`MAX_PREFIXES`] prefixes of some hundred bytes each. git's clients send a handful.
pub const MAX_REQUEST: usize = 8 * 1024 * 1024;

/// From this many prefixes on, all are forgotten and every ref is sent. Source: git's `ls-refs.c`.
pub const MAX_PREFIXES: usize = 65_536;

/// What a client wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LsRefs {
    /// Also what annotated tags point at.
    pub peel: bool,
    /// Also what symrefs point at.
    pub symrefs: bool,
    /// Also HEAD when it does not resolve. Takes effect together with `symrefs`.
    pub unborn: bool,
    /// Of which refs.
    pub prefixes: Prefixes,
}

/// The `ref-prefix` arguments of a request; none of them means every ref.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefixes(
    // Invariant: sorted, and none is a prefix of another, so that at most one can match a name.
    Vec<BString>,
);

impl Prefixes {
    /// Keeps of `prefixes` those that are not implied by a shorter one.
    #[must_use]
    pub fn new(mut prefixes: Vec<BString>) -> Self {
        prefixes.sort_unstable();
        prefixes.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self(prefixes)
    }

    /// Whether the client asked for the ref `name`.
    ///
    /// A binary search, because the peer chooses the number of prefixes and the repository that of refs.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        let n_not_after = self.0.partition_point(|prefix| prefix.as_slice() <= name);
        match n_not_after.checked_sub(1) {
            // Whatever sorts between a prefix and a name that starts with it starts with it too, and is not here.
            Some(last) => self.0.get(last).is_some_and(|prefix| name.starts_with(prefix)),
            None => self.0.is_empty(),
        }
    }

    /// The prefixes in order, for a caller that can look up ranges of names.
    pub fn iter(&self) -> impl Iterator<Item = &BStr> {
        self.0.iter().map(|prefix| prefix.as_bstr())
    }
}

/// Why bytes are not a request of `ls-refs`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LsRefsError {
    /// The head is broken.
    #[error(transparent)]
    Head(#[from] CommandError),
    /// The framing of the arguments is broken.
    #[error(transparent)]
    Pkt(#[from] PktError),
    /// An argument that ls-refs has not.
    #[error("unexpected ls-refs argument {0:?}")]
    UnknownArgument(BString),
    /// The arguments end in something else than a flush.
    #[error("expected flush after ls-refs arguments")]
    NoFlush,
    /// The body ends within the request.
    #[error("ls-refs request ends early")]
    Truncated,
    /// The body goes on after the request.
    #[error("{0} bytes follow the ls-refs request")]
    Trailing(usize),
    /// Longer than [`MAX_REQUEST`].
    #[error("ls-refs request of {0} bytes is longer than {MAX_REQUEST}")]
    TooLong(usize),
    /// The request is of another command; the caller looked at its head before.
    #[error("not an ls-refs request")]
    NotLsRefs,
}

/// Reads a whole request, from its head to its flush.
///
/// # Errors
/// [`LsRefsError`] for anything but exactly one request of `ls-refs`.
pub fn parse(body: &[u8], object_format: Kind) -> Result<LsRefs, LsRefsError> {
    if body.len() > MAX_REQUEST {
        return Err(LsRefsError::TooLong(body.len()));
    }
    match command::read_head(body, object_format)? {
        HeadProgress::Complete(head) if head.command == Command::LsRefs => {
            parse_arguments(body.get(head.consumed..).unwrap_or_default())
        }
        HeadProgress::Complete(_) | HeadProgress::Empty => Err(LsRefsError::NotLsRefs),
        HeadProgress::Incomplete { .. } => Err(LsRefsError::Truncated),
    }
}

/// Writes the answer: HEAD first, then the refs in the order given, those alone that the client asked for.
#[must_use]
pub fn respond<'r>(
    request: &LsRefs,
    head: Option<&Head>,
    refs: impl IntoIterator<Item = &'r AdvertisedRef>,
) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(head) = head.filter(|_| request.prefixes.matches(b"HEAD")) {
        write_head(request, head, &mut out);
    }
    for r in refs {
        if request.prefixes.matches(r.name.as_bstr()) {
            write_ref(request, r, &mut out);
        }
    }
    pkt::flush(&mut out);
    out
}

fn parse_arguments(mut bytes: &[u8]) -> Result<LsRefs, LsRefsError> {
    let mut request = LsRefs::default();
    let mut prefixes = Vec::new();
    loop {
        let Decoded::Complete { packet, consumed } = pkt::decode(bytes)? else {
            return Err(LsRefsError::Truncated);
        };
        bytes = bytes.get(consumed..).unwrap_or_default();
        match packet {
            Packet::Data(data) => {
                let line = data.strip_suffix(b"\n").unwrap_or(data);
                read_argument(line, &mut request, &mut prefixes)?;
            }
            Packet::Flush if bytes.is_empty() => break,
            Packet::Flush => return Err(LsRefsError::Trailing(bytes.len())),
            Packet::Delim | Packet::ResponseEnd => return Err(LsRefsError::NoFlush),
        }
    }
    if prefixes.len() < MAX_PREFIXES {
        request.prefixes = Prefixes::new(prefixes);
    }
    Ok(request)
}

fn read_argument(
    line: &[u8],
    request: &mut LsRefs,
    prefixes: &mut Vec<BString>,
) -> Result<(), LsRefsError> {
    match line {
        b"peel" => request.peel = true,
        b"symrefs" => request.symrefs = true,
        b"unborn" => request.unborn = true,
        _ => {
            let prefix = line
                .strip_prefix(b"ref-prefix ")
                .ok_or_else(|| LsRefsError::UnknownArgument(shown(line)))?;
            if prefixes.len() < MAX_PREFIXES {
                prefixes.push(prefix.into());
            }
        }
    }
    Ok(())
}

fn write_head(request: &LsRefs, head: &Head, out: &mut Vec<u8>) {
    let target = head.target().filter(|_| request.symrefs);
    let Some(oid) = head.oid() else {
        if let Some(target) = target.filter(|_| request.unborn) {
            pkt::text_with(out, |out| {
                out.extend_from_slice(b"unborn HEAD symref-target:");
                out.extend_from_slice(target.as_bstr());
            });
        }
        return;
    };
    pkt::text_with(out, |out| {
        push_oid(out, oid);
        out.extend_from_slice(b" HEAD");
        write_symref(target.map(RefName::as_bstr), out);
        write_peeled(head.peeled().filter(|_| request.peel), out);
    });
}

fn write_ref(request: &LsRefs, r: &AdvertisedRef, out: &mut Vec<u8>) {
    pkt::text_with(out, |out| {
        push_oid(out, r.oid);
        out.push(b' ');
        out.extend_from_slice(r.name.as_bstr());
        let target = r.symref_target.as_ref().filter(|_| request.symrefs);
        write_symref(target.map(RefName::as_bstr), out);
        write_peeled(r.peeled.filter(|_| request.peel), out);
    });
}

fn write_peeled(peeled: Option<Oid>, out: &mut Vec<u8>) {
    if let Some(peeled) = peeled {
        out.extend_from_slice(b" peeled:");
        push_oid(out, peeled);
    }
}

fn write_symref(target: Option<&BStr>, out: &mut Vec<u8>) {
    if let Some(target) = target {
        out.extend_from_slice(b" symref-target:");
        out.extend_from_slice(target);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(arguments: &[&str], end: &str) -> Vec<u8> {
        let mut out = Vec::new();
        pkt::text(&mut out, b"command=ls-refs").unwrap();
        pkt::delim(&mut out);
        for argument in arguments {
            pkt::text(&mut out, argument.as_bytes()).unwrap();
        }
        out.extend_from_slice(end.as_bytes());
        out
    }

    fn prefixes(prefixes: &[&str]) -> Prefixes {
        Prefixes::new(prefixes.iter().map(|&prefix| prefix.into()).collect())
    }

    #[test]
    fn every_argument_is_read() {
        let bytes = request(
            &["peel", "symrefs", "unborn", "ref-prefix refs/heads/", "ref-prefix HEAD"],
            "0000",
        );
        let expected = LsRefs {
            peel: true,
            symrefs: true,
            unborn: true,
            prefixes: prefixes(&["HEAD", "refs/heads/"]),
        };
        assert_eq!(parse(&bytes, Kind::Sha1), Ok(expected));
    }

    #[test]
    fn a_request_without_arguments_asks_for_every_ref() {
        let request = parse(b"0013command=ls-refs0000", Kind::Sha1).unwrap();
        assert_eq!(request, LsRefs::default());
        assert!(request.prefixes.matches(b"refs/heads/main"));
        assert!(request.prefixes.matches(b""));
    }

    #[test]
    fn each_malformed_request_says_what_is_wrong_with_it() {
        for (bytes, expected) in [
            (request(&["hm"], "0000"), "unexpected ls-refs argument \"hm\""),
            (request(&["ref-prefix"], "0000"), "unexpected ls-refs argument \"ref-prefix\""),
            (request(&["peel"], ""), "ls-refs request ends early"),
            (request(&["peel"], "0001"), "expected flush after ls-refs arguments"),
            (request(&["peel"], "0000x"), "1 bytes follow the ls-refs request"),
            (
                request(&["peel"], "zzzz"),
                "bad pkt-line length \"zzzz\": not four hexadecimal digits",
            ),
            (b"0012command=fetch\n0000".to_vec(), "not an ls-refs request"),
            (b"0000".to_vec(), "not an ls-refs request"),
            (b"00".to_vec(), "ls-refs request ends early"),
            (b"0009nope\n".to_vec(), "unknown capability \"nope\""),
            (
                vec![b'0'; MAX_REQUEST + 1],
                "ls-refs request of 8388609 bytes is longer than 8388608",
            ),
        ] {
            let found = parse(&bytes, Kind::Sha1).map_err(|e| e.to_string());
            assert_eq!(found, Err(expected.to_owned()));
        }
    }

    #[test]
    fn more_prefixes_than_are_kept_ask_for_every_ref() {
        let arguments = vec!["ref-prefix refs/x"; MAX_PREFIXES];
        let at_the_limit = parse(&request(&arguments, "0000"), Kind::Sha1).unwrap();
        assert!(at_the_limit.prefixes.matches(b"refs/heads/main"));
        let below = parse(&request(&arguments[1..], "0000"), Kind::Sha1).unwrap();
        assert!(!below.prefixes.matches(b"refs/heads/main"));
    }

    #[test]
    fn a_prefix_need_not_end_at_a_slash() {
        let prefixes = prefixes(&["refs/heads/ma", "refs/tags/"]);
        for (name, expected) in [
            ("refs/heads/main", true),
            ("refs/heads/ma", true),
            ("refs/heads/m", false),
            ("refs/heads/mb", false),
            ("refs/tags/v1", true),
            ("HEAD", false),
        ] {
            assert_eq!(prefixes.matches(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn an_unborn_head_is_told_only_to_those_who_ask_for_it_and_for_symrefs() {
        let head = Head::Unborn("refs/heads/main".parse().unwrap());
        for (symrefs, unborn, expected) in [
            (true, true, "002eunborn HEAD symref-target:refs/heads/main\n0000"),
            (true, false, "0000"),
            (false, true, "0000"),
        ] {
            let request = LsRefs { symrefs, unborn, ..LsRefs::default() };
            let body = respond(&request, Some(&head), []);
            assert_eq!(body.as_bstr(), expected, "symrefs {symrefs}, unborn {unborn}");
        }
    }

    proptest! {
        #[test]
        fn a_name_matches_when_any_prefix_starts_it(
            all in proptest::collection::vec("[abc]{0,4}", 1..8),
            name in "[abc]{0,6}",
        ) {
            let expected = all.iter().any(|prefix| name.starts_with(prefix.as_str()));
            let prefixes = Prefixes::new(all.iter().map(|prefix| prefix.as_str().into()).collect());
            prop_assert_eq!(prefixes.matches(name.as_bytes()), expected);
        }
    }
}
