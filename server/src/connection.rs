//! One connection: HTTP/1.1 or HTTP/2 by what the client begins with, and how long it may take.
//!
//! [`Protocols::drive`] answers what comes in by [`Edge::handle`] until the connection ends. HTTP/2 is spoken with prior
//! knowledge, as there is no TLS to agree on it by; an `Upgrade: h2c` is passed over, and the client goes on in
//! HTTP/1.1.
//!
//! A connection that answers nothing and writes nothing is closed after a while, whatever trickles in. Requests of all
//! connections together are bounded; within its bounds no client can keep another from being served.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::http::{Edge, PeerAddress, ResponseBody};

/// How long a client may take to send the head of a request, or its first one altogether.
const MAX_HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a connection stays open that has nothing to answer and takes nothing of its answers.
const MAX_IDLE: Duration = Duration::from_mins(2);

/// The longest head of a request, and the largest piece of a body, in bytes.
const MAX_BUFFER: usize = 64 * 1024;

/// As [`MAX_BUFFER`], for the headers of an HTTP/2 request, each counted with 32 bytes more. Source: RFC 9113, 6.5.2.
const MAX_HEADER_LIST: u32 = 64 * 1024;

/// How many requests one HTTP/2 connection has open at once: as few as clients are told to expect. Source: RFC 9113, 6.5.2.
const MAX_STREAMS: u32 = 100;

/// How many bytes of one request's body may be on their way, and of all in one connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How many bytes of one answer wait in an HTTP/2 connection.
const MAX_SEND_BUFFER: usize = 256 * 1024;

/// How connections are spoken, and the places that their requests share.
pub(crate) struct Protocols {
    builder: auto::Builder<TokioExecutor>,
    requests: Arc<Semaphore>,
}

impl Protocols {
    /// With room for `max_requests` at once.
    pub(crate) fn new(max_requests: usize) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(MAX_HEAD_TIME)
            .max_buf_size(MAX_BUFFER);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADER_LIST)
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER);
        Self { builder, requests: Arc::new(Semaphore::new(max_requests)) }
    }

    /// Drives one connection to its end; at a shutdown it ends after the requests under way.
    pub(crate) fn drive(
        &self,
        stream: TcpStream,
        edge: Arc<Edge>,
        shutdown: Watcher,
    ) -> impl Future<Output = ()> + use<> {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small packets may wait");
        }
        let mut peer = Extensions::new();
        // A connection that is gone by now asks nothing.
        if let Ok(address) = stream.peer_addr() {
            peer.insert(PeerAddress(address.ip()));
        }
        let activity = Activity::default();
        let io = WatchedStream { io: TokioIo::new(stream), activity: activity.clone() };
        let (requests, working) = (Arc::clone(&self.requests), activity.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().extend(peer.clone());
            answer(Arc::clone(&edge), request, working.begin(), Arc::clone(&requests))
        });
        let connection = self.builder.serve_connection(io, service).into_owned();
        let connection = shutdown.watch(connection);
        async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                },
                () = activity.ceased() => tracing::debug!("idle connection closed"),
            }
        }
    }
}

async fn answer(
    edge: Arc<Edge>,
    request: Request<Incoming>,
    work: Work,
    requests: Arc<Semaphore>,
) -> Result<Response<WorkedBody>, Infallible> {
    // The semaphore is never closed; if it were, a request without a place is still a request.
    let place = requests.acquire_owned().await.ok();
    let response = edge.handle(request).await;
    Ok(response.map(|body| WorkedBody { body, held: Some((work, place)) }))
}

/// What a connection is doing; all clones tell of the same one.
#[derive(Clone)]
struct Activity(Arc<Mutex<Doing>>);

struct Doing {
    /// Requests whose answer is not complete.
    n_answering: usize,
    /// When the last answer was complete, or some of one was taken.
    last: Instant,
    /// How long it may do nothing from then on.
    patience: Duration,
}

impl Default for Activity {
    fn default() -> Self {
        let doing = Doing { n_answering: 0, last: Instant::now(), patience: MAX_HEAD_TIME };
        Self(Arc::new(Mutex::new(doing)))
    }
}

impl Activity {
    fn begin(&self) -> Work {
        self.change(|doing| doing.n_answering += 1);
        Work(self.clone())
    }

    /// Returns once nothing has happened for too long.
    async fn ceased(&self) {
        loop {
            let until = self.change(|doing| {
                let busy = doing.n_answering > 0;
                (if busy { Instant::now() } else { doing.last }) + doing.patience
            });
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Doing) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One request being answered, until dropped.
struct Work(Activity);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.change(|doing| {
            doing.n_answering -= 1;
            (doing.last, doing.patience) = (Instant::now(), MAX_IDLE);
        });
    }
}

/// The body of an answer, whose request is worked on until it ends.
struct WorkedBody {
    body: ResponseBody,
    held: Option<(Work, Option<OwnedSemaphorePermit>)>,
}

impl Body for WorkedBody {
    type Data = Bytes;
    type Error = <ResponseBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that notes when its peer takes something.
struct WatchedStream {
    io: TokioIo<TcpStream>,
    activity: Activity,
}

impl WatchedStream {
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.change(|doing| doing.last = Instant::now());
        }
        written
    }
}

impl Read for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, buffer);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, buffers);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::server::graceful::GracefulShutdown;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use zit_referee::SystemClock;
    use zit_store::PackLimits;

    use super::*;
    use crate::registry::Registry;

    /// A server without repositories for one connection, and its client's end.
    async fn connection() -> (TcpStream, GracefulShutdown) {
        let limits = PackLimits { max_bytes: 1, max_objects: 1 };
        let registry = Registry::new("/nonexistent".into(), Arc::new(SystemClock::start()), limits);
        let edge = Arc::new(Edge::new(registry, limits));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let shutdown = GracefulShutdown::new();
        tokio::spawn(Protocols::new(1).drive(server, edge, shutdown.watcher()));
        (client, shutdown)
    }

    /// What `client` reads until the server closes.
    async fn read_all(mut client: TcpStream) -> String {
        let mut answer = Vec::new();
        // A connection that is cut off may be reset.
        let _ = client.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    // The clock stands still but for leaps to the next timer whenever nothing else can go on.

    #[tokio::test(start_paused = true)]
    async fn a_client_that_begins_no_request_is_let_go() {
        for start in ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost:"] {
            let started = Instant::now();
            let (mut client, _shutdown) = connection().await;
            client.write_all(start.as_bytes()).await.unwrap();
            let answer = read_all(client).await;
            assert!(!answer.contains("200"), "{start:?}: {answer}");
            let patience = started.elapsed();
            assert!((MAX_HEAD_TIME..MAX_IDLE).contains(&patience), "{start:?}: {patience:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_http2_connection_is_let_go_whatever_trickles_in() {
        let (mut client, _shutdown) = connection().await;
        // The preface and an empty SETTINGS frame.
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // The start of a HEADERS frame of 32 bytes, a byte now and then.
        client.write_all(b"\0\0\x20\x01\x04\0\0\0\x01").await.unwrap();
        let started = Instant::now();
        let (mut reader, mut writer) = client.into_split();
        let trickle = tokio::spawn(async move {
            while writer.write_all(b"\0").await.is_ok() && started.elapsed() < 2 * MAX_IDLE {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        });
        let mut answer = Vec::new();
        let _ = reader.read_to_end(&mut answer).await;
        assert!(started.elapsed() < MAX_IDLE, "{:?}", started.elapsed());
        trickle.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_answered_is_not_let_go() {
        let activity = Activity::default();
        let work = activity.begin();
        let ceased = tokio::time::timeout(10 * MAX_IDLE, activity.ceased()).await;
        assert!(ceased.is_err(), "a request is under way");
        drop(work);
        let ended = Instant::now();
        activity.ceased().await;
        assert!(ended.elapsed() >= MAX_IDLE);
    }
}
