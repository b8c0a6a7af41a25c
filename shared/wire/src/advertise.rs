//! The body of an answer to `GET info/refs`, for each service and protocol version.
//!
//! The caller decides which refs a client may see and gives them in order; nothing here filters or sorts.
//!
//! Source: git's `gitprotocol-http`, "Discovering References", and `gitprotocol-v2`, "Capability Advertisement".

use std::collections::BTreeSet;

use gix_hash::Kind;
use zit_model::Oid;

use crate::capability::{self, Agent, Extras, Offer, Row};
use crate::pkt;
use crate::refs::{AdvertisedRef, Head, push_oid_or_zero};
use crate::service::{ProtocolVersion, Service};

/// What does not depend on the refs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offering {
    /// The repository's hash function.
    pub object_format: Kind,
    /// This server.
    pub agent: Agent,
    /// What the repository's configuration adds for those who fetch.
    pub extras: Extras,
    /// Objects that a pusher need not send although no ref of the repository names them.
    pub haves: BTreeSet<Oid>,
    /// The nonce for a push certificate, if pushers may sign.
    pub nonce: Option<String>,
    /// The id under which this server's log has the session, where clients are told it: printable, without spaces.
    pub session_id: Option<String>,
    /// The commits whose parents the repository lacks because it is shallow.
    pub shallow: BTreeSet<Oid>,
}

/// Writes the advertisement of `git-receive-pack`.
///
/// Shape: the service line, a flush, one line a ref with the capabilities behind the first, a `.have` line for each of
/// the offering's that no ref names, its `shallow` lines, a flush. HEAD and peeled values are not part of it. There is no version 2 of pushing; whoever asks for it is answered in version 0, without
/// the service line, as by git's `http-backend`.
#[must_use]
pub fn receive_pack<'r>(
    offering: &Offering,
    version: ProtocolVersion,
    refs: impl IntoIterator<Item = &'r AdvertisedRef>,
) -> Vec<u8> {
    let out = service_line(Service::ReceivePack, version);
    push_refs(RefLines::open(out, Service::ReceivePack, version, offering, None), offering, refs)
}

/// Writes the advertisement of `git-receive-pack` for a pipe, which is as [`receive_pack`]'s without the service line and
/// its flush.
#[must_use]
pub fn receive_pack_on_pipe<'r>(
    offering: &Offering,
    version: ProtocolVersion,
    refs: impl IntoIterator<Item = &'r AdvertisedRef>,
) -> Vec<u8> {
    let lines = RefLines::open(Vec::new(), Service::ReceivePack, version, offering, None);
    push_refs(lines, offering, refs)
}

/// Writes the advertisement of `git-upload-pack` in version 0 or 1, or that of version 2 if it is asked for.
///
/// Shape, versions 0 and 1: as [`receive_pack`], with HEAD first when it resolves, and a `^{}` line after each
/// annotated tag and the `shallow` lines before the last flush. Version 2: [`upload_pack_v2`], which names no refs.
#[must_use]
pub fn upload_pack<'r>(
    offering: &Offering,
    version: ProtocolVersion,
    head: Option<&Head>,
    refs: impl IntoIterator<Item = &'r AdvertisedRef>,
) -> Vec<u8> {
    if version == ProtocolVersion::V2 {
        return upload_pack_v2(offering);
    }
    let out = service_line(Service::UploadPack, version);
    let mut lines = RefLines::open(out, Service::UploadPack, version, offering, head);
    if let Some(oid) = head.and_then(Head::oid) {
        lines.line(Some(oid), &[b"HEAD"]);
    }
    if let Some(peeled) = head.and_then(Head::peeled) {
        lines.line(Some(peeled), &[b"HEAD^{}"]);
    }
    for r in refs {
        lines.push(r, Peel::Yes);
    }
    lines.close(&offering.shallow)
}

/// Writes the capability advertisement of version 2: one packet a capability. There is no service line before it.
#[must_use]
pub fn upload_pack_v2(offering: &Offering) -> Vec<u8> {
    let mut out = Vec::new();
    let offer = offer(offering, None);
    pkt::text_with(&mut out, |out| out.extend_from_slice(b"version 2"));
    for row in capability::UPLOAD_PACK_V2 {
        let before = out.len();
        let mut offered = false;
        pkt::text_with(&mut out, |out| offered = row.write(&offer, out));
        if !offered {
            out.truncate(before);
        }
    }
    pkt::flush(&mut out);
    out
}

/// What goes before an advertisement over HTTP, but for whoever asks for version 2.
fn service_line(service: Service, version: ProtocolVersion) -> Vec<u8> {
    let mut out = Vec::new();
    if version == ProtocolVersion::V2 {
        return out;
    }
    pkt::text_with(&mut out, |out| {
        out.extend_from_slice(b"# service=");
        out.extend_from_slice(service.name().as_bytes());
    });
    pkt::flush(&mut out);
    out
}

fn push_refs<'r>(
    mut lines: RefLines<'_>,
    offering: &Offering,
    refs: impl IntoIterator<Item = &'r AdvertisedRef>,
) -> Vec<u8> {
    let mut named = BTreeSet::new();
    for r in refs {
        lines.push(r, Peel::No);
        named.insert(r.oid);
    }
    for have in offering.haves.difference(&named) {
        lines.line(Some(*have), &[b".have"]);
    }
    lines.close(&offering.shallow)
}

/// The lines of refs, the first of which carries the capabilities.
struct RefLines<'a> {
    out: Vec<u8>,
    offer: Offer<'a>,
    table: &'static [Row],
    // Invariant: true until the first line is written.
    capabilities_due: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peel {
    Yes,
    No,
}

impl<'a> RefLines<'a> {
    fn open(
        mut out: Vec<u8>,
        service: Service,
        version: ProtocolVersion,
        offering: &'a Offering,
        head: Option<&'a Head>,
    ) -> Self {
        if version == ProtocolVersion::V1 {
            pkt::text_with(&mut out, |out| out.extend_from_slice(b"version 1"));
        }
        let table = match service {
            Service::UploadPack => capability::UPLOAD_PACK,
            Service::ReceivePack => capability::RECEIVE_PACK,
        };
        Self { out, offer: offer(offering, head), table, capabilities_due: true }
    }

    fn push(&mut self, r: &AdvertisedRef, peel: Peel) {
        self.line(Some(r.oid), &[r.name.as_bstr()]);
        if let (Peel::Yes, Some(peeled)) = (peel, r.peeled) {
            self.line(Some(peeled), &[r.name.as_bstr(), b"^{}"]);
        }
    }

    fn line(&mut self, oid: Option<Oid>, name: &[&[u8]]) {
        let Self { out, offer, table, capabilities_due } = self;
        pkt::text_with(out, |out| {
            push_oid_or_zero(out, oid, offer.object_format);
            out.push(b' ');
            for part in name {
                out.extend_from_slice(part);
            }
            if std::mem::take(capabilities_due) {
                out.push(0);
                capability::write_list(table, offer, out);
            }
        });
    }

    fn close(mut self, shallow: &BTreeSet<Oid>) -> Vec<u8> {
        if self.capabilities_due {
            self.line(None, &[b"capabilities^{}"]);
        }
        for oid in shallow {
            pkt::text_with(&mut self.out, |out| {
                out.extend_from_slice(format!("shallow {oid}").as_bytes());
            });
        }
        pkt::flush(&mut self.out);
        self.out
    }
}

/// A symref is offered only when it resolves: an unborn HEAD shows in version 2 alone.
fn offer<'a>(offering: &'a Offering, head: Option<&'a Head>) -> Offer<'a> {
    Offer {
        object_format: offering.object_format,
        agent: &offering.agent,
        head: head.filter(|head| head.oid().is_some()).and_then(Head::target),
        extras: offering.extras,
        nonce: offering.nonce.as_deref(),
        session_id: offering.session_id.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;
    use zit_model::RefName;

    use super::*;

    fn offering() -> Offering {
        Offering {
            object_format: Kind::Sha1,
            agent: Agent::new("zit/test"),
            extras: Extras::default(),
            haves: BTreeSet::new(),
            nonce: None,
            session_id: None,
            shallow: BTreeSet::new(),
        }
    }

    #[test]
    fn a_pipe_is_told_the_same_without_the_service_line() {
        for version in [ProtocolVersion::V0, ProtocolVersion::V1] {
            let over_http = receive_pack(&offering(), version, &[]);
            let on_pipe = receive_pack_on_pipe(&offering(), version, &[]);
            let line = b"001f# service=git-receive-pack\n0000";
            assert_eq!(over_http.strip_prefix(line), Some(on_pipe.as_slice()));
        }
    }

    #[test]
    fn a_pusher_sees_each_ref_and_no_peeled_value() {
        let oid = Oid::from_hex(&[b'1'; 40]).unwrap();
        let tag = AdvertisedRef {
            name: RefName::new("refs/tags/v1").unwrap(),
            oid,
            peeled: Some(oid),
            symref_target: None,
        };
        let body = receive_pack(&offering(), ProtocolVersion::V0, [&tag, &tag]);
        let expected = "001f# service=git-receive-pack\n0000\
            00bf1111111111111111111111111111111111111111 refs/tags/v1\0report-status report-status-v2 delete-refs \
            side-band-64k quiet atomic ofs-delta push-options object-format=sha1 agent=zit/test zit=1\n\
            003a1111111111111111111111111111111111111111 refs/tags/v1\n0000";
        assert_eq!(body.as_bstr(), expected);
    }

    #[test]
    fn a_repository_of_sha256_writes_its_own_zero_oid() {
        let offering = Offering { object_format: Kind::Sha256, ..offering() };
        let body = receive_pack(&offering, ProtocolVersion::V2, []);
        assert!(body.contains_str(format!("{} capabilities^{{}}\0", "0".repeat(64))));
        assert!(body.contains_str(" object-format=sha256 "));
        assert!(!body.contains_str("version "), "there is no version 2 of pushing");
        assert!(!body.contains_str("# service="), "git leaves it out");
    }
}
