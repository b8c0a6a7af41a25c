//! Bodies between the reactor and the threads that work on them.
//!
//! [`Incoming`] becomes a blocking [`Read`] by way of a [`RequestBody`]; an answer that grows while it is sent is written through
//! an [`Outlet`]. Both hold a few pieces at most, so that neither side can make the other's memory grow.
//!
//! A body whose reader lets go of it early is read on and thrown away, within bounds: a client that is still sending
//! would otherwise meet a closed connection before it reads why it was refused.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::read::GzDecoder;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::headers::Encoding;

/// The body of an answer: known whole, or still growing.
pub(crate) type ResponseBody = Either<Full<Bytes>, Channel<Bytes>>;

/// How long a client may send or take nothing before it is given up.
///
/// A person's network recovers within this, and a client that never will holds a connection no longer.
const MAX_SILENCE: Duration = Duration::from_mins(2);

/// How many pieces wait between a reactor and a thread; hyper's pieces have at most its buffer's size.
const PIECES: usize = 4;

/// The longest body that is received before a thread is given to it, in bytes. Agents' requests are shorter, and a piece
/// that comes by itself costs more than its bytes.
const MAX_AWAITED: u64 = 16 * 1024;

/// How much of an unwanted body is read on, in bytes: what a client may have sent by the time it can read the answer.
const MAX_UNWANTED: u64 = 64 * 1024 * 1024;

/// How long an unwanted body is read on.
const MAX_UNWANTED_TIME: Duration = Duration::from_secs(20);

/// Why a body ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// Nothing came for [`MAX_SILENCE`].
    #[error("the client sent nothing for {} seconds", MAX_SILENCE.as_secs())]
    Silent,
    /// The connection ended, or what came was not HTTP.
    #[error("the client went away within its request")]
    Lost,
}

/// The body of a request, on its way to a thread.
pub(crate) struct RequestBody {
    reader: Reader,
    encoding: Encoding,
    received: Received,
}

/// Whether all of a body has come.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<AtomicBool>);

impl Received {
    /// It has.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it has.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl RequestBody {
    /// Receives a short body, and begins to receive any other. To be called on the reactor.
    pub(crate) async fn receive(incoming: Incoming, encoding: Encoding) -> Self {
        let received = Received::default();
        let is_short = incoming.size_hint().exact().is_some_and(|n| n <= MAX_AWAITED);
        let reader = if is_short {
            gather(incoming, &received).await
        } else {
            let (sender, pieces) = mpsc::channel(PIECES);
            tokio::spawn(pump(incoming, sender, received.clone()));
            Reader { current: Bytes::new(), rest: Rest::Comes(pieces) }
        };
        Self { reader, encoding, received }
    }

    /// The body as it is read, where all of it is here and need not be decoded.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        let is_whole =
            self.encoding == Encoding::Identity && matches!(self.reader.rest, Rest::Nothing);
        is_whole.then_some(&self.reader.current)
    }

    /// Tells from now on whether all of the body has come.
    pub(crate) fn received(&self) -> Received {
        self.received.clone()
    }

    /// The body decoded, for a thread that may block: a decoder reads its header at once.
    ///
    /// Errors of the reader are [`BodyError`]s, or the decoder's.
    pub(crate) fn into_read(self) -> Box<dyn Read + Send> {
        match self.encoding {
            Encoding::Identity => Box::new(self.reader),
            Encoding::Gzip => Box::new(GzDecoder::new(self.reader)),
        }
    }
}

/// Reads a body that nobody wants, within bounds.
pub(crate) async fn discard(mut incoming: Incoming) {
    let deadline = Instant::now() + MAX_UNWANTED_TIME;
    let mut n_bytes = 0;
    // A body that fails has ended, too.
    while n_bytes <= MAX_UNWANTED
        && let Ok(Some(Ok(frame))) = timeout_at(deadline, incoming.frame()).await
    {
        n_bytes += frame.data_ref().map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
    }
}

/// Where a thread writes an answer that is sent meanwhile.
pub(crate) struct Outlet {
    sender: Sender<Bytes>,
    handle: Handle,
}

/// The client is gone, or takes nothing any more.
#[derive(Debug, thiserror::Error)]
#[error("the client went away within its answer")]
struct Gone;

impl Outlet {
    /// An outlet, and the body that comes out of it. To be called on the reactor or one of its threads.
    pub(crate) fn open() -> (Self, ResponseBody) {
        let (sender, channel) = Channel::new(PIECES);
        (Self { sender, handle: Handle::current() }, Either::Right(channel))
    }
}

/// Sends one piece a call, waiting until there is room for it. Dropping the outlet ends the answer.
impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = async { timeout(MAX_SILENCE, self.sender.send_data(piece)).await };
        match self.handle.block_on(sent) {
            Ok(Ok(())) => Ok(bytes.len()),
            Ok(Err(_)) | Err(_) => Err(io::Error::new(io::ErrorKind::BrokenPipe, Gone)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An answer that grows on the reactor. Dropping it ends the answer.
pub(crate) struct Growing(Sender<Bytes>);

impl Growing {
    /// One that is empty, and the body that comes out of it.
    pub(crate) fn open() -> (Self, ResponseBody) {
        let (sender, channel) = Channel::new(PIECES);
        (Self(sender), Either::Right(channel))
    }

    /// Sends one piece, waiting until there is room for it; whether anybody takes it.
    pub(crate) async fn send(&mut self, piece: Bytes) -> bool {
        matches!(timeout(MAX_SILENCE, self.0.send_data(piece)).await, Ok(Ok(())))
    }
}

/// What travels from the reactor to the reader. A channel that ends without `End` is a request that was lost.
enum Piece {
    Data(Bytes),
    End,
    Failed(BodyError),
}

/// Receives all of a body; what came of one that stops is followed by the reason.
async fn gather(mut incoming: Incoming, received: &Received) -> Reader {
    let mut current = Bytes::new();
    loop {
        let rest = match timeout(MAX_SILENCE, incoming.frame()).await {
            Err(_) => Rest::Failed(BodyError::Silent),
            Ok(None) => {
                received.end();
                Rest::Nothing
            }
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "request body failed");
                Rest::Failed(BodyError::Lost)
            }
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                current = if current.is_empty() { data } else { [current, data].concat().into() };
                continue;
            }
        };
        return Reader { current, rest };
    }
}

async fn pump(mut incoming: Incoming, sender: mpsc::Sender<Piece>, received: Received) {
    loop {
        let piece = match timeout(MAX_SILENCE, incoming.frame()).await {
            Err(_) => Piece::Failed(BodyError::Silent),
            Ok(None) => {
                received.end();
                Piece::End
            }
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "request body failed");
                Piece::Failed(BodyError::Lost)
            }
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => Piece::Data(data),
                // Trailers say nothing that matters here.
                Err(_) => continue,
            },
        };
        let goes_on = matches!(piece, Piece::Data(_));
        if sender.send(piece).await.is_err() {
            return discard(incoming).await;
        }
        if !goes_on {
            return;
        }
    }
}

/// The blocking end of a request's body. Not to be read on the reactor.
struct Reader {
    current: Bytes,
    rest: Rest,
}

/// What follows the bytes that are here.
enum Rest {
    Comes(mpsc::Receiver<Piece>),
    Nothing,
    Failed(BodyError),
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let pieces = match &mut self.rest {
                Rest::Comes(pieces) => pieces,
                Rest::Nothing => break,
                Rest::Failed(error) => return Err(io::Error::other(*error)),
            };
            match pieces.blocking_recv() {
                Some(Piece::Data(data)) => self.current = data,
                Some(Piece::End) => self.rest = Rest::Nothing,
                Some(Piece::Failed(error)) => self.rest = Rest::Failed(error),
                None => self.rest = Rest::Failed(BodyError::Lost),
            }
        }
        let n = buffer.len().min(self.current.len());
        let piece = self.current.split_to(n);
        if let Some(target) = buffer.get_mut(..n) {
            target.copy_from_slice(&piece);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: Vec<Piece>) -> io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(PIECES);
        let reader = Reader { current: Bytes::new(), rest: Rest::Comes(receiver) };
        let whole = Received::default();
        let body = RequestBody { reader, encoding: Encoding::Identity, received: whole };
        let mut body = body.into_read();
        for piece in pieces {
            assert!(sender.try_send(piece).is_ok(), "the channel has room");
        }
        drop(sender);
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).map(|_| bytes)
    }

    fn data(bytes: &'static [u8]) -> Piece {
        Piece::Data(Bytes::from_static(bytes))
    }

    #[test]
    fn pieces_are_read_as_one_body_and_empty_ones_do_not_end_it() {
        let body = read(vec![data(b"ab"), data(b""), data(b"c"), Piece::End]).unwrap();
        assert_eq!(body, b"abc");
    }

    #[test]
    fn a_body_that_stops_without_its_end_is_an_error_and_no_shorter_body() {
        for pieces in [vec![data(b"ab")], vec![data(b"ab"), Piece::Failed(BodyError::Lost)]] {
            let error = read(pieces).unwrap_err();
            assert_eq!(error.to_string(), BodyError::Lost.to_string());
        }
    }

    #[test]
    fn an_answer_nobody_takes_ends_its_writer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let guard = runtime.enter();
        let (mut outlet, body) = Outlet::open();
        drop(body);
        drop(guard);
        assert!(outlet.write_all(b"x").is_err());
    }
}
