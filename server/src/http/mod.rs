//! The HTTP edge: each request is understood, handed to one repository's referee, and its answer converted.
//!
//! [`Edge::handle`] takes a request and always gives an answer. Repositories work on blocking threads, since the core
//! is synchronous; nothing here holds a lock over an await, and nothing here judges. What is answered is
//! [`zit_service`]'s; here is how it travels.
//!
//! ```text
//! route, headers   what is asked for, and by whom
//! body             bodies between the reactor and blocking threads
//! upload_pack      POST git-upload-pack: an answer that grows while it is sent
//! respond          headers of answers, and errors to status codes
//! ```

mod body;
mod headers;
mod receive_pack;
mod respond;
pub(crate) mod route;
mod upload_pack;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use tracing::Instrument;
use zit_referee::{Caller, Repository};
use zit_service::advertise;
use zit_store::PackLimits;
use zit_wire::service::{ProtocolVersion, Service};

use self::body::RequestBody;
pub(crate) use self::body::ResponseBody;
use self::headers::Encoding;
use self::respond::EdgeError;
use self::route::{RepositoryPath, Route, Target};
use crate::registry::Registry;

/// What all requests share.
pub(crate) struct Edge {
    registry: Registry,
    limits: PackLimits,
    n_requests: AtomicU64,
}

impl Edge {
    /// An edge in front of the repositories of `registry`.
    pub(crate) fn new(registry: Registry, limits: PackLimits) -> Self {
        Self { registry, limits, n_requests: AtomicU64::new(0) }
    }

    /// Answers one request.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let request_id = self.n_requests.fetch_add(1, Ordering::Relaxed) + 1;
        let span = tracing::info_span!(
            "request",
            request_id,
            repo = tracing::field::Empty,
            agent = tracing::field::Empty,
            service = tracing::field::Empty,
        );
        self.answer(request).instrument(span).await
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<ResponseBody> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let answer = match self.understand(&parts).await {
            Ok(Understood::Answered(response)) => Ok(response),
            Ok(Understood::Request(request)) => request.answer(body).await,
            Err(error) => {
                // A client that waits to be told to go on has sent no body.
                if !parts.headers.contains_key(EXPECT) {
                    tokio::spawn(body::discard(body));
                }
                Err(error)
            }
        };
        let response = answer.unwrap_or_else(|error| respond::error(&error));
        let (status, millis) = (response.status().as_u16(), started.elapsed().as_millis());
        tracing::info!(method = %parts.method, status, millis, "answered");
        response
    }

    /// Finds out what is asked for, and answers it if that takes no body.
    async fn understand(self: Arc<Self>, parts: &Parts) -> Result<Understood, EdgeError> {
        let uri = &parts.uri;
        headers::check_host(uri, &parts.headers)?;
        let response = match route::route(&parts.method, uri.path(), uri.query())? {
            Route::Live | Route::Ready => respond::whole("text/plain", b"ok\n".to_vec()),
            Route::InfoRefs(target, service) => {
                let (caller, name) = caller(parts, target, service)?;
                self.info_refs(headers::protocol(&parts.headers), service, caller, name).await?
            }
            Route::Request(target, service) => {
                let (caller, name) = caller(parts, target, service)?;
                let encoding = headers::encoding(&parts.headers, service)?;
                let version = headers::protocol(&parts.headers);
                let limits = self.limits;
                let repository = blocking(move || Ok(self.registry.open(&name)?)).await?;
                let request =
                    ServiceRequest { service, repository, caller, version, encoding, limits };
                return Ok(Understood::Request(request));
            }
        };
        Ok(Understood::Answered(response))
    }

    async fn info_refs(
        self: Arc<Self>,
        version: ProtocolVersion,
        service: Service,
        caller: Caller,
        name: RepositoryPath,
    ) -> Result<Response<ResponseBody>, EdgeError> {
        let body = blocking(move || {
            let repository = self.registry.open(&name)?;
            Ok(advertise::info_refs(&repository, service, version, &caller)?)
        });
        Ok(respond::whole(service.advertisement_type(), body.await?))
    }
}

/// A request whose head is understood.
enum Understood {
    /// It is answered.
    Answered(Response<ResponseBody>),
    /// Its body says the rest.
    Request(ServiceRequest),
}

/// A request of a service, all but its body.
struct ServiceRequest {
    service: Service,
    repository: Arc<Repository>,
    caller: Caller,
    version: ProtocolVersion,
    encoding: Encoding,
    limits: PackLimits,
}

impl ServiceRequest {
    async fn answer(self, body: Incoming) -> Result<Response<ResponseBody>, EdgeError> {
        let Self { service, repository, caller, version, encoding, limits } = self;
        let body = RequestBody::receive(body, encoding);
        blocking(move || match service {
            Service::UploadPack => upload_pack::answer(&repository, version, body),
            Service::ReceivePack => receive_pack::answer(repository, caller, limits, body),
        })
        .await
    }
}

/// Who asks, of which repository; the request's span learns both.
fn caller(
    parts: &Parts,
    target: Target,
    service: Service,
) -> Result<(Caller, RepositoryPath), EdgeError> {
    let Target { seat, repository } = target;
    let span = tracing::Span::current();
    span.record("repo", tracing::field::display(&repository));
    span.record("service", service.name());
    let caller = headers::caller(&parts.headers, seat)?;
    if let Some(agent) = caller.agent() {
        span.record("agent", agent.as_str());
    }
    Ok((caller, repository))
}

/// Runs `work` where it may block, within the request's span.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EdgeError> + Send + 'static,
) -> Result<T, EdgeError> {
    let span = tracing::Span::current();
    let task = tokio::task::spawn_blocking(move || span.in_scope(work));
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request's thread ended early");
        Err(EdgeError::Panicked)
    })
}
