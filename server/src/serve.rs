//! `zit-server serve`: the listener, its connections, and how they end.
//!
//! [`serve`] returns when the process is asked to stop: no connection is taken any more, requests under way are given
//! [`MAX_FAREWELL`] to finish, and a second signal ends the wait.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use zit_referee::SystemClock;
use zit_store::PackLimits;

use crate::config::Config;
use crate::connection::Protocols;
use crate::http::Edge;
use crate::maintenance::Maintainer;
use crate::registry::Registry;
use crate::socket;

/// How many connections are open at once; more wait in the system's queue.
///
/// A hundred agents with a few connections each; what one holds while it is slow is its own.
const MAX_CONNECTIONS: usize = 512;

/// How many requests are answered at once, over all connections; more wait. HTTP/2 has several in one connection.
const MAX_REQUESTS: usize = 512;

/// How many blocking threads a request can occupy: a fetch has one to write to git and one to read from it, and one
/// may still be ending. With as many for each request no slow client keeps another from its turn.
const THREADS_PER_REQUEST: usize = 3;

/// How long requests under way may go on after the signal to stop.
const MAX_FAREWELL: Duration = Duration::from_secs(10);

/// How long to wait when the system has no room for another connection.
const BREATH: Duration = Duration::from_millis(100);

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// No threads, or no signals.
    #[error("cannot start the server's runtime")]
    Runtime(#[source] io::Error),
    /// The address is not to be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody can be told that the server is ready.
    #[error("cannot write to standard output")]
    Announce(#[source] io::Error),
}

impl ServeError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => Some(
                "stop the other program, or choose another port with --listen 127.0.0.1:<port>",
            ),
            Self::Listen { .. } | Self::Runtime(_) | Self::Announce(_) => None,
        }
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// [`ServeError`] when it cannot begin.
pub(crate) fn serve(config: &Config) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads((MAX_REQUESTS + socket::MAX_CONVERSATIONS) * THREADS_PER_REQUEST)
        .build()
        .map_err(ServeError::Runtime)?;
    let maintainer = Maintainer::start().map_err(ServeError::Runtime)?;
    let served = runtime.block_on(run(config, &maintainer));
    drop(maintainer);
    // A push whose client has gone may still be at work; it is recovered at the next start if it is cut off.
    runtime.shutdown_timeout(MAX_FAREWELL);
    served
}

async fn run(config: &Config, maintainer: &Maintainer) -> Result<(), ServeError> {
    let address = config.listen();
    let listen = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let mut stop = Stop::new().map_err(ServeError::Runtime)?;
    announce(listener.local_addr().map_err(listen)?).map_err(ServeError::Announce)?;

    let limits = PackLimits { max_bytes: config.max_pack, ..PackLimits::default() };
    let clock = Arc::new(SystemClock::start());
    let registry =
        Registry::new(config.root().to_owned(), clock, limits).marked_only(config.marked_only);
    let edge = Edge::new(registry, limits)
        .maintained(maintainer.nudges())
        .with_namespaces(config.namespaces.clone());
    let edge = Arc::new(edge);
    let connections = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &edge, &connections) => {}
        () = Arc::clone(&edge).keep_tidy() => {}
        () = stop.asked() => {}
    }
    drop(listener);
    maintainer.stop();
    tracing::info!(connections = connections.count(), "stopping");
    tokio::select! {
        () = connections.shutdown() => {}
        () = tokio::time::sleep(MAX_FAREWELL) => tracing::warn!("requests cut off"),
        () = stop.asked() => tracing::warn!("requests cut off"),
    }
    edge.close();
    Ok(())
}

/// Says on standard output, on the only line there is, that requests are taken now.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on http://{address}")?;
    stdout.flush()
}

/// Takes connections for ever.
async fn accept(listener: &TcpListener, edge: &Arc<Edge>, connections: &GracefulShutdown) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let protocols = Protocols::new(MAX_REQUESTS);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = protocols.drive(stream, Arc::clone(edge), connections.watcher());
                tokio::spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// The signals that ask the server to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net;

    use super::*;

    /// Starts a server for one empty repository `app.git`, and lets `test` talk to it.
    fn with_server(test: impl FnOnce(SocketAddr)) {
        let root = tempfile::tempdir().unwrap();
        zit_store::Store::init(&root.path().join("app.git")).unwrap();
        let registry = Registry::new(
            root.path().canonicalize().unwrap(),
            Arc::new(SystemClock::start()),
            PackLimits::default(),
        );
        let limits = PackLimits { max_bytes: 1 << 20, max_objects: 1000 };
        let edge = Arc::new(Edge::new(registry, limits));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { accept(&listener, &edge, &GracefulShutdown::new()).await });
        test(address);
    }

    /// Sends one request and reads all of the answer.
    fn ask(address: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> String {
        let mut head = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut stream = net::TcpStream::connect(address).unwrap();
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    const PUSH: &str = "POST /app/git-receive-pack";
    const PUSH_TYPE: &str = "Content-Type: application/x-git-receive-pack-request";

    #[test]
    fn each_request_gets_its_status_and_says_what_was_wrong() {
        let refs = "GET /app/info/refs?service=git-receive-pack";
        let gzip = "Content-Encoding: gzip";
        let cases: &[(&str, &[&str], &str, &str)] = &[
            ("GET /livez", &[], "200", "ok"),
            ("GET /readyz", &[], "200", "ok"),
            (refs, &[], "200", "001f# service=git-receive-pack\n0000"),
            (refs, &["Zit-Agent: A B"], "400", "bad Zit-Agent header: not an agent id: \"A B\""),
            ("GET /@A/app/info/refs?service=git-upload-pack", &[], "400", "bad seat"),
            (
                "GET /no/info/refs?service=git-upload-pack",
                &[],
                "404",
                "no git repository at \"no\"",
            ),
            ("GET /app/git-receive-pack", &[], "405", "allow: POST"),
            (PUSH, &["Content-Type: text/plain"], "415", "but received 'text/plain' instead."),
            (PUSH, &[PUSH_TYPE, "Content-Encoding: br"], "415", "content encoding \"br\""),
            (PUSH, &[PUSH_TYPE, gzip], "400", "cannot decode the request body"),
            (PUSH, &[PUSH_TYPE], "400", "bad pkt-line length \"no p\""),
        ];
        with_server(|address| {
            for &(line, headers, status, text) in cases {
                let answer = ask(address, line, headers, b"no pkt-line");
                let case = format!("{line} {headers:?}: {answer}");
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{case}");
                assert!(answer.contains(text), "{case}");
                assert!(answer.contains("cache-control: no-cache"), "{case}");
            }
        });
    }

    #[test]
    fn a_probe_before_a_large_push_gets_an_empty_answer() {
        with_server(|address| {
            let answer = ask(address, PUSH, &[PUSH_TYPE], b"0000");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        });
    }

    #[test]
    fn a_refusal_reaches_a_client_that_is_still_sending() {
        with_server(|address| {
            let body = vec![b'x'; 8 << 20];
            let answer = ask(address, "POST /no/git-receive-pack", &[PUSH_TYPE], &body);
            assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        });
    }

    #[test]
    fn a_client_that_waits_to_be_told_to_go_on_is_told_so() {
        with_server(|address| {
            let mut stream = net::TcpStream::connect(address).unwrap();
            let head = format!(
                "{PUSH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{PUSH_TYPE}\r\n\
                 Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut go_on = [0; 25];
            stream.read_exact(&mut go_on).unwrap();
            assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
            stream.write_all(b"0000").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        });
    }
}
