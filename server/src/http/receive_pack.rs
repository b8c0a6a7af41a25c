//! `POST git-receive-pack` between the reactor and [`zit_service::receive_pack`].

use std::sync::Arc;

use hyper::Response;
use zit_referee::{Caller, Repository};
use zit_service::receive_pack::{self, Begun};
use zit_store::PackLimits;
use zit_wire::service::Service;

use super::body::{Outlet, RequestBody, ResponseBody};
use super::respond::{self, EdgeError};

/// Answers one push. Blocks; on the reactor's blocking threads only.
///
/// # Errors
/// [`EdgeError`] when the body stops before its pack, or is no push and the client reads no bands.
pub(crate) fn answer(
    repository: Arc<Repository>,
    caller: Caller,
    limits: PackLimits,
    body: RequestBody,
) -> Result<Response<ResponseBody>, EdgeError> {
    let content_type = Service::ReceivePack.result_type();
    let incoming = match receive_pack::begin(&repository, body.into_read())? {
        Begun::Answered(answer) => return Ok(respond::whole(content_type, answer)),
        Begun::Push(incoming) => incoming,
    };
    if !incoming.speaks(&repository) {
        let answer = incoming.answer(&repository, &caller, &limits);
        return Ok(respond::whole(content_type, answer));
    }
    let (mut outlet, body) = Outlet::open();
    let span = tracing::Span::current();
    let work = move || incoming.carry_out(&repository, &caller, &limits, &mut outlet);
    tokio::task::spawn_blocking(move || span.in_scope(work));
    Ok(respond::with_body(content_type, body))
}
