//! `git-upload-pack`: one request of a fetch.
//!
//! `ls-refs`, `object-info` and `bundle-uri` of protocol v2 are answered here, and a small `fetch` by `small_fetch`; one
//! that others may repeat by [`shared_fetch`]. Every other request goes to the store's pack source as it is: what was read
//! of it to tell them apart first, then the rest as it arrives.
//!
//! Errors that a fetching client can be told of go as an `ERR` packet, which git shows its user as
//! `fatal: remote error: …`; of an HTTP error it shows the number alone.

use std::io::Read;
use std::sync::Arc;

use zit_store::{Exchange, Glance, PackSource, ProtocolVersion as StoreVersion, Reading, Unborn};
use zit_wire::bundle_uri;
use zit_wire::command::{self, Command, HeadProgress};
use zit_wire::fetch;
use zit_wire::ls_refs;
use zit_wire::object_info;
use zit_wire::pkt;
use zit_wire::service::ProtocolVersion;

use crate::ServiceError;
use crate::advertise;
use crate::relay::Relay;
use crate::shared_fetch::{self, SharedFetch};
use crate::small_fetch;
use crate::source::FetchSource;

/// An answer, or who gives it.
#[must_use = "nobody is answered until it is sent"]
pub enum Answer {
    /// All of it.
    Whole(Vec<u8>),
    /// It is kept or being made, for others too.
    Shared(SharedFetch),
    /// The pack source gives it.
    Relayed(Relay),
}

/// Answers one request.
///
/// # Errors
/// [`ServiceError`] when the body stops or the repository cannot be read. What the client asked in a wrong way is told
/// to it in the answer.
pub fn answer(
    source: &dyn FetchSource,
    version: ProtocolVersion,
    mut body: Box<dyn Read + Send>,
) -> Result<Answer, ServiceError> {
    if version != ProtocolVersion::V2 {
        return hand_on(source, version, Vec::new(), body);
    }
    let store = source.reading();
    let mut start = Vec::new();
    loop {
        match command::read_head(&start, store.hash_kind()) {
            Err(error) => return Ok(refuse(&error.to_string())),
            Ok(HeadProgress::Empty) => return Ok(Answer::Whole(Vec::new())),
            Ok(HeadProgress::Incomplete { needed }) => {
                if read_more(&mut body, &mut start, needed)? == 0 {
                    return Ok(refuse("fetch request ends early"));
                }
            }
            Ok(HeadProgress::Complete(head)) => {
                if head.session_id.is_some() && !store.config()?.advertise_sid {
                    // As git says it of what it has not offered.
                    return Ok(refuse("unknown capability \"session-id\""));
                }
                advertise::note_session(head.session_id.as_ref());
                return match head.command {
                    Command::LsRefs => list_refs(source, start, &mut body),
                    Command::Fetch => fetch(source, start, body),
                    Command::ObjectInfo => object_info(source, start, body),
                    Command::BundleUri => bundle_uri(store, start, &mut body),
                };
            }
        }
    }
}

/// The answer to a whole request of protocol v2, if it is a list of refs that was sent before and is known to be as it was.
/// It need not be asked where threads may block.
#[must_use]
pub fn at_once(glance: &Glance<'_>, request: &[u8]) -> Option<Arc<[u8]>> {
    glance.kept_list(request)
}

/// Reads up to `needed` more bytes; 0 at the end.
fn read_more(
    body: &mut dyn Read,
    into: &mut Vec<u8>,
    needed: usize,
) -> Result<usize, ServiceError> {
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    body.take(needed).read_to_end(into).map_err(ServiceError::Read)
}

fn list_refs(
    source: &dyn FetchSource,
    mut request: Vec<u8>,
    body: &mut dyn Read,
) -> Result<Answer, ServiceError> {
    // One byte more than may be shows that there are too many.
    let n_room = (ls_refs::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(body, &mut request, n_room)?;
    let store = source.reading();
    let body = request;
    let mut request = match ls_refs::parse(&body, store.hash_kind()) {
        Ok(request) => request,
        Err(error) => return Ok(refuse(&error.to_string())),
    };
    // What is kept is the whole repository's, and found by the request alone.
    let ground = match source.namespace() {
        Some(_) => None,
        None => store.ground(request.prefixes.iter())?,
    };
    request.unborn &= store.config()?.unborn != Unborn::Ignore;
    let refs = advertise::advertised(source.refs_for_fetch(&request.prefixes)?);
    // Whoever polls for a few refs of theirs does not pay for HEAD.
    let head = if request.prefixes.matches(b"HEAD") { advertise::head(source)? } else { None };
    let answer = ls_refs::respond(&request, head.as_ref(), &refs);
    // What is asked for without a prefix depends on HEAD, too.
    if let Some(ground) = ground.filter(|_| !request.prefixes.matches(b"HEAD")) {
        store.keep_list(&body, ground, &answer)?;
    }
    Ok(Answer::Whole(answer))
}

/// Tells the sizes of objects, where the repository is configured for it.
fn object_info(
    source: &dyn FetchSource,
    mut request: Vec<u8>,
    mut body: Box<dyn Read + Send>,
) -> Result<Answer, ServiceError> {
    let store = source.reading();
    if !store.config()?.object_info {
        return Ok(refuse("invalid command \"object-info\""));
    }
    let n_room = (object_info::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(&mut body, &mut request, n_room)?;
    if request.len() > object_info::MAX_REQUEST {
        return hand_on(source, ProtocolVersion::V2, request, body);
    }
    Ok(match object_info::parse(&request, store.hash_kind()) {
        Ok(request) => {
            let sizes = store.sizes(&request.oids())?;
            Answer::Whole(object_info::respond(&request, |oid| sizes.get(&oid).copied()))
        }
        Err(error) => refuse(&error.to_string()),
    })
}

/// Tells where bundles are, where the repository is configured for it.
fn bundle_uri(
    store: Reading<'_>,
    mut request: Vec<u8>,
    body: &mut dyn Read,
) -> Result<Answer, ServiceError> {
    let config = store.config()?;
    let Some(bundles) = &config.bundles else {
        return Ok(refuse("invalid command \"bundle-uri\""));
    };
    let n_room = (bundle_uri::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(body, &mut request, n_room)?;
    Ok(match bundle_uri::parse(&request, store.hash_kind()) {
        Ok(()) => Answer::Whole(bundle_uri::respond(bundles)),
        Err(error) => refuse(&error.to_string()),
    })
}

/// Answers a small fetch, or one that others ask for too, and hands on any other.
fn fetch(
    source: &dyn FetchSource,
    mut request: Vec<u8>,
    mut body: Box<dyn Read + Send>,
) -> Result<Answer, ServiceError> {
    let store = source.reading();
    // One byte more than may be shows that it is no small one.
    let n_room = (fetch::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(&mut body, &mut request, n_room)?;
    if request.len() <= fetch::MAX_REQUEST {
        let parsed = match fetch::parse(&request, store.hash_kind()) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(refuse(&error.to_string())),
        };
        if let Some(answer) = small_fetch::answer(store, parsed) {
            return Ok(Answer::Whole(answer));
        }
        if let Some(answer) = shared_fetch::answer(store, &request) {
            return Ok(Answer::Shared(answer));
        }
    }
    hand_on(source, ProtocolVersion::V2, request, body)
}

/// Lets the pack source answer.
fn hand_on(
    source: &dyn FetchSource,
    version: ProtocolVersion,
    start: Vec<u8>,
    body: Box<dyn Read + Send>,
) -> Result<Answer, ServiceError> {
    let version = match version {
        ProtocolVersion::V0 => StoreVersion::V0,
        ProtocolVersion::V1 => StoreVersion::V1,
        ProtocolVersion::V2 => StoreVersion::V2,
    };
    let stream =
        source.reading().pack_source().of(source.namespace()).start(version, Exchange::Respond)?;
    Ok(Answer::Relayed(Relay::new(start, body, stream)))
}

fn refuse(reason: &str) -> Answer {
    tracing::info!(reason, "fetch refused");
    let mut packet = Vec::new();
    pkt::err(&mut packet, reason);
    Answer::Whole(packet)
}
