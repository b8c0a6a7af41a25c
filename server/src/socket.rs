//! The door beside an open repository: the socket through which other programs of this user reach its referee.
//!
//! A [`Door`] is there as long as its repository is open; dropping it takes the socket away. Each conversation has a
//! blocking thread of its own. The system says whose program it is that comes: another user's is told no.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zit_referee::Repository;
use zit_service::Hello;
use zit_service::hello::BadHello;
use zit_service::pipe::{self, Task};
use zit_service::socket::Socket;
use zit_store::PackLimits;
use zit_wire::pkt::{self, Decoded};
use zit_wire::service::Service;

/// How many conversations of one repository are held at once; more wait in the system's queue.
pub(crate) const MAX_CONVERSATIONS: usize = 128;

/// How long a program may take to say what it wants.
const MAX_HELLO_TIME: Duration = Duration::from_secs(30);

/// How long to wait when the system has no room for another conversation.
const BREATH: Duration = Duration::from_millis(100);

/// A socket that is listened to.
#[derive(Debug)]
pub(crate) struct Door {
    _socket: Socket,
    listening: JoinHandle<()>,
}

/// Why a program that came in is turned away.
#[derive(Debug, thiserror::Error)]
enum TurnedAway {
    #[error("the server that has this repository open serves user {ours} here, not user {theirs}")]
    OtherUser { ours: u32, theirs: u32 },
    #[error(transparent)]
    BadHello(#[from] BadHello),
    #[error("the repository was closed")]
    Closed,
    #[error("the conversation broke off")]
    Stream(#[from] io::Error),
}

impl Door {
    /// Opens the door of `repository`, whose git directory is `git_dir`.
    ///
    /// # Errors
    /// When there is no runtime on this thread to listen on, or as the system says.
    pub(crate) fn open(
        git_dir: &Path,
        repository: &Arc<Repository>,
        limits: PackLimits,
    ) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let socket = Socket::bind(git_dir)?;
        let listener = socket.listener()?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        // The door does not keep its repository open.
        let listening = accept(listener, Arc::downgrade(repository), limits);
        Ok(Self { _socket: socket, listening: runtime.spawn(listening) })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn accept(listener: UnixListener, repository: Weak<Repository>, limits: PackLimits) {
    let places = Arc::new(Semaphore::new(MAX_CONVERSATIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let repository = Weak::clone(&repository);
                tokio::task::spawn_blocking(move || {
                    let span = tracing::info_span!("conversation", agent = tracing::field::Empty);
                    let _inside = span.enter();
                    if let Err(error) = receive(stream, &repository, limits) {
                        tracing::info!(%error, "conversation refused");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a conversation");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// Lets a program in or turns it away, telling it why.
fn receive(
    stream: UnixStream,
    repository: &Weak<Repository>,
    limits: PackLimits,
) -> Result<(), TurnedAway> {
    let theirs = stream.peer_cred()?.uid();
    let mut stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let held = check_user(theirs).and_then(|()| {
        let hello = read_hello(&mut stream)?;
        let repository = repository.upgrade().ok_or(TurnedAway::Closed)?;
        converse(&repository, &hello, limits, &stream)
    });
    if let Err(error) = &held {
        // Whoever is gone needs no reason.
        let _ = pipe::tell(error, None, &mut stream);
    }
    // A thread that still reads what the client sends ends with it.
    let _ = stream.shutdown(Shutdown::Both);
    held
}

fn check_user(theirs: u32) -> Result<(), TurnedAway> {
    let ours = rustix::process::geteuid().as_raw();
    if theirs == ours { Ok(()) } else { Err(TurnedAway::OtherUser { ours, theirs }) }
}

/// Reads the packet that comes first.
fn read_hello(stream: &mut BlockingStream) -> Result<Hello, TurnedAway> {
    stream.set_read_timeout(Some(MAX_HELLO_TIME))?;
    let mut bytes = Vec::new();
    loop {
        let needed = match pkt::decode(&bytes).map_err(|_| BadHello)? {
            Decoded::Complete { packet, .. } => {
                let hello = Hello::read(packet.as_line().ok_or(BadHello)?)?;
                stream.set_read_timeout(None)?;
                return Ok(hello);
            }
            Decoded::Incomplete { needed } => u64::try_from(needed).unwrap_or(u64::MAX),
        };
        if stream.take(needed).read_to_end(&mut bytes)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

fn converse(
    repository: &Repository,
    hello: &Hello,
    limits: PackLimits,
    stream: &BlockingStream,
) -> Result<(), TurnedAway> {
    if let Some(agent) = &hello.agent {
        tracing::Span::current().record("agent", agent.as_str());
    }
    let input = Box::new(stream.try_clone()?);
    let mut output = File::from(OwnedFd::from(stream.try_clone()?));
    match hello.service {
        Service::UploadPack => hello.fetch(repository, input, &mut output),
        Service::ReceivePack => {
            let task = Task::Push { repository, caller: Box::new(hello.caller()), limits };
            pipe::serve(task, hello.version, input, &mut output);
        }
    }
    output.flush()?;
    tracing::info!(service = hello.service.name(), "conversation held");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_user_is_let_in() {
        let ours = rustix::process::geteuid().as_raw();
        assert!(check_user(ours).is_ok());
        let error = check_user(ours + 1).unwrap_err();
        assert!(matches!(error, TurnedAway::OtherUser { .. }));
        assert!(error.to_string().ends_with(&format!("not user {}", ours + 1)));
    }

    #[test]
    fn what_is_no_hello_is_turned_away() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"0000", b"0009hello", b"00"] {
            let (mut server, mut client) = BlockingStream::pair().unwrap();
            client.write_all(bytes).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert!(read_hello(&mut server).is_err(), "{bytes:?}");
        }
    }
}
