//! The HTTP edge: each request is understood, handed to one repository's referee, and its answer converted.
//!
//! [`Edge::handle`] takes a request and always gives an answer. Repositories work on blocking threads, since the core
//! is synchronous; nothing here holds a lock over an await, and nothing here judges. What is answered is
//! [`zit_service`]'s; here is how it travels.
//!
//! ```text
//! route, headers   what is asked for, and by whom
//! namespaces       which URLs mean a namespace of a repository
//! body             bodies between the reactor and blocking threads
//! ways             which services a repository offers
//! upload_pack      POST git-upload-pack: an answer that grows while it is sent
//! receive_pack     POST git-receive-pack: signs of life while a push takes long
//! files            GET of refs and objects as files
//! respond          headers of answers, and errors to status codes
//! ```

mod body;
mod files;
mod headers;
pub(crate) mod namespaces;
mod receive_pack;
mod respond;
pub(crate) mod route;
mod upload_pack;
mod ways;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use tracing::Instrument;
use zit_referee::{Caller, Repository};
use zit_service::{advertise, archive};
use zit_store::{PackLimits, RepoConfig};
use zit_wire::service::{ProtocolVersion, Service};

use self::body::RequestBody;
pub(crate) use self::body::ResponseBody;
use self::headers::Encoding;
use self::namespaces::{Meant, Rule};
use self::respond::EdgeError;
use self::route::{RepositoryPath, Route, Target};
use self::ways::{ClosedError, Way};
use crate::maintenance::Nudges;
use crate::registry::Registry;

/// How often repositories that nobody uses are looked for.
const SWEEP: Duration = Duration::from_mins(1);

/// Where a request comes from: the connection adds it to the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// What all requests share.
pub(crate) struct Edge {
    registry: Registry,
    limits: PackLimits,
    nudges: Option<Nudges>,
    namespaces: Vec<Rule>,
    n_requests: AtomicU64,
}

impl Edge {
    /// An edge in front of the repositories of `registry`.
    pub(crate) fn new(registry: Registry, limits: PackLimits) -> Self {
        let (nudges, namespaces) = (None, Vec::new());
        Self { registry, limits, nudges, namespaces, n_requests: AtomicU64::new(0) }
    }

    /// The same, with somebody who is told of pushes.
    pub(crate) fn maintained(self, nudges: Nudges) -> Self {
        Self { nudges: Some(nudges), ..self }
    }

    /// The same, with URLs that are views of a namespace.
    pub(crate) fn with_namespaces(self, namespaces: Vec<Rule>) -> Self {
        Self { namespaces, ..self }
    }

    /// Closes repositories that nobody uses, now and then, for ever.
    pub(crate) async fn keep_tidy(self: Arc<Self>) {
        let mut interval = tokio::time::interval(SWEEP);
        loop {
            interval.tick().await;
            let edge = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || edge.registry.sweep()).await {
                tracing::error!(%error, "repositories are not closed");
            }
        }
    }

    /// Lets go of every repository.
    pub(crate) fn close(&self) {
        self.registry.close();
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
        let mut response = answer.unwrap_or_else(|error| respond::error(&error));
        if parts.method == Method::HEAD {
            response = respond::without_body(response);
        }
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
                let (caller, name) = self.caller(parts, target, Way::Service(service))?;
                self.info_refs(headers::protocol(&parts.headers), service, caller, name).await?
            }
            Route::Unknown(target, service) => {
                let name = namespaces::apply(&self.namespaces, target.repository)?.repository;
                let open = move || Ok(self.registry.open(&name)?);
                blocking(open).await?;
                return Err(ClosedError::Unknown(service).into());
            }
            Route::File(target, file) => {
                let (caller, name) = self.caller(parts, target, Way::Files)?;
                let answer = move || {
                    let (repository, _) = self.open(&name, Way::Files)?;
                    files::answer(
                        &repository,
                        caller.namespace.as_ref(),
                        &file,
                        self.registry.wall(),
                    )
                };
                blocking(answer).await?
            }
            Route::Request(target, way) => {
                let (caller, name) = self.caller(parts, target, way)?;
                let version = headers::protocol(&parts.headers);
                let (limits, nudges) = (self.limits, self.nudges.clone());
                let (repository, config) = self.open_soon(name, way).await?;
                // A repository that is not there, or closed, matters more than how it is asked.
                let encoding = match way.request_type() {
                    Some(expected) => headers::encoding(&parts.headers, expected)?,
                    None => Encoding::Identity,
                };
                let keep_alive = config.hooks.keep_alive;
                return Ok(Understood::Request(PostedRequest {
                    way,
                    repository,
                    keep_alive,
                    caller,
                    version,
                    encoding,
                    limits,
                    nudges,
                }));
            }
        };
        Ok(Understood::Answered(response))
    }

    /// As [`Edge::open`], on the reactor. One that is open already, and of which enough is known at a glance, is found
    /// there.
    async fn open_soon(
        self: Arc<Self>,
        name: RepositoryPath,
        way: Way,
    ) -> Result<(Arc<Repository>, Arc<RepoConfig>), EdgeError> {
        if let Some(repository) = self.registry.opened(&name)
            && let Some(config) = repository.glance().map(|glance| Arc::clone(glance.config()))
        {
            way.check(config.http)?;
            return Ok((repository, config));
        }
        blocking(move || self.open(&name, way)).await
    }

    /// Who asks, of which repository; the request's span learns both.
    fn caller(
        &self,
        parts: &Parts,
        target: Target,
        way: Way,
    ) -> Result<(Caller, RepositoryPath), EdgeError> {
        let Target { seat, repository } = target;
        let span = tracing::Span::current();
        span.record("repo", tracing::field::display(&repository));
        span.record("service", way.name());
        let Meant { repository, namespace } = namespaces::apply(&self.namespaces, repository)?;
        let address = parts.extensions.get::<PeerAddress>().map(|PeerAddress(address)| *address);
        let caller = Caller { namespace, address, ..headers::caller(&parts.headers, seat)? };
        if let Some(agent) = caller.agent() {
            span.record("agent", agent.as_str());
        }
        Ok((caller, repository))
    }

    /// Opens a repository for those who come by `way`; with it comes its configuration. Blocks.
    fn open(
        &self,
        name: &RepositoryPath,
        way: Way,
    ) -> Result<(Arc<Repository>, Arc<RepoConfig>), EdgeError> {
        let repository = self.registry.open(name)?;
        let config = repository.reading().config().map_err(EdgeError::Store)?;
        way.check(config.http)?;
        Ok((repository, config))
    }

    async fn info_refs(
        self: Arc<Self>,
        version: ProtocolVersion,
        service: Service,
        caller: Caller,
        name: RepositoryPath,
    ) -> Result<Response<ResponseBody>, EdgeError> {
        let body = blocking(move || {
            let (repository, _) = self.open(&name, Way::Service(service))?;
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
    Request(PostedRequest),
}

/// A request by POST, all but its body.
struct PostedRequest {
    way: Way,
    repository: Arc<Repository>,
    /// How often a push that takes long gives a sign of life.
    keep_alive: Option<Duration>,
    caller: Caller,
    version: ProtocolVersion,
    encoding: Encoding,
    limits: PackLimits,
    nudges: Option<Nudges>,
}

impl PostedRequest {
    async fn answer(self, body: Incoming) -> Result<Response<ResponseBody>, EdgeError> {
        let Self { way, repository, keep_alive, caller, version, encoding, limits, nudges } = self;
        let body = RequestBody::receive(body, encoding).await;
        match way {
            Way::Service(Service::UploadPack) => {
                let namespace = caller.namespace;
                if namespace.is_none()
                    && let Some(glance) = repository.glance()
                    && let Some(response) = upload_pack::at_once(&glance, version, &body)
                {
                    return Ok(response);
                }
                let answer =
                    move || upload_pack::answer(&repository, namespace.as_ref(), version, body);
                blocking(answer).await
            }
            Way::Service(Service::ReceivePack) => {
                if let Some(nudges) = nudges {
                    nudges.pushed(&repository);
                }
                receive_pack::answer(repository, caller, limits, keep_alive, body).await
            }
            Way::Archive => {
                let relay = move || Ok(archive::answer(&repository, body.into_read())?);
                let body = upload_pack::send(blocking(relay).await?);
                Ok(respond::with_body(archive::RESULT_TYPE, body))
            }
            Way::Files => Err(ClosedError::Files.into()),
        }
    }
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
