//! `POST git-upload-pack` between the reactor and [`zit_service::upload_pack`].

use hyper::Response;
use hyper::body::Bytes;
use zit_model::Namespace;
use zit_referee::Repository;
use zit_service::View;
use zit_service::relay::Relay;
use zit_service::shared_fetch::SharedFetch;
use zit_service::upload_pack::{self, Answer};
use zit_store::Glance;
use zit_wire::service::{ProtocolVersion, Service};

use super::body::{Outlet, RequestBody, ResponseBody};
use super::respond::{self, EdgeError};

/// Answers what is known at a glance; `None` for anything else.
pub(crate) fn at_once(
    glance: &Glance<'_>,
    version: ProtocolVersion,
    body: &RequestBody,
) -> Option<Response<ResponseBody>> {
    let request = body.whole().filter(|_| version == ProtocolVersion::V2)?;
    let answer = upload_pack::at_once(glance, request)?;
    Some(respond::whole(Service::UploadPack.result_type(), Bytes::from_owner(answer)))
}

/// Answers one request. Blocks; on the reactor's blocking threads only.
///
/// # Errors
/// [`EdgeError`] when the body stops or the repository cannot be read.
pub(crate) fn answer(
    repository: &Repository,
    namespace: Option<&Namespace>,
    version: ProtocolVersion,
    body: RequestBody,
) -> Result<Response<ResponseBody>, EdgeError> {
    let content_type = Service::UploadPack.result_type();
    let body = body.into_read();
    let answer = match namespace {
        Some(namespace) => upload_pack::answer(&View::new(repository, namespace), version, body),
        None => upload_pack::answer(repository, version, body),
    };
    Ok(match answer? {
        Answer::Whole(body) => respond::whole(content_type, body),
        Answer::Shared(answer) => respond::with_body(content_type, send_shared(answer)),
        Answer::Relayed(relay) => respond::with_body(content_type, send(relay)),
    })
}

/// Sends the answer on a thread of its own; the body is what comes back.
fn send_shared(answer: SharedFetch) -> ResponseBody {
    let (mut outlet, body) = Outlet::open();
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(|| answer.send(&mut outlet)));
    body
}

/// Moves both halves on threads of their own; the body is what comes back.
pub(super) fn send(relay: Relay) -> ResponseBody {
    let (request, answer) = relay.split();
    let (mut outlet, body) = Outlet::open();
    let span = tracing::Span::current();
    let writing = span.clone();
    tokio::task::spawn_blocking(move || writing.in_scope(|| request.send()));
    // The end of the body says how it ended, too.
    tokio::task::spawn_blocking(move || span.in_scope(|| answer.send(&mut outlet)));
    body
}
