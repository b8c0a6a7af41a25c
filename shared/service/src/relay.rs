//! A request that the store's pack source answers: one side writes the request to it while another reads the answer.
//!
//! An edge splits a [`Relay`] and runs [`RelayedRequest::send`] and [`RelayedAnswer::send`] on two threads, since neither
//! ends before the other has begun.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ChildStdin;

use zit_store::PackStream;
use zit_wire::pkt;

/// The longest request that is handed on, in bytes, decoded: a million wants and haves of 64 bytes each.
const MAX_REQUEST: u64 = 64 * 1024 * 1024;

/// How much of a pack is read at once, in bytes. git writes packets of nearly this size.
const PIECE: usize = 64 * 1024;

/// An exchange with the pack source that has begun. Dropping it ends the program.
#[must_use = "nobody is answered until both halves have been sent"]
pub struct Relay {
    start: Vec<u8>,
    body: Box<dyn Read + Send>,
    stream: PackStream,
}

/// The half that goes to the pack source.
pub struct RelayedRequest {
    start: Vec<u8>,
    body: Box<dyn Read + Send>,
    stdin: Option<ChildStdin>,
}

/// The half that comes from it.
pub struct RelayedAnswer(PackStream);

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The client has all of it.
    Whole,
    /// It broke off, or the client went away: nothing can follow.
    Cut,
}

impl Relay {
    /// A request of which `start` was read, and the rest is still in `body`.
    pub(crate) fn new(start: Vec<u8>, body: Box<dyn Read + Send>, stream: PackStream) -> Self {
        Self { start, body, stream }
    }

    /// The two halves.
    #[must_use]
    pub fn split(mut self) -> (RelayedRequest, RelayedAnswer) {
        let stdin = self.stream.take_stdin();
        let request = RelayedRequest { start: self.start, body: self.body, stdin };
        (request, RelayedAnswer(self.stream))
    }
}

impl RelayedRequest {
    /// Writes the request to the pack source, whose input is closed at its end, and early when the request is no good.
    pub fn send(self) {
        if let Some(stdin) = self.stdin {
            send_request(self.start, self.body, stdin);
        }
    }
}

impl RelayedAnswer {
    /// What the pack source says in `stream`.
    pub(crate) fn new(stream: PackStream) -> Self {
        Self(stream)
    }

    /// Writes the answer to `client`; one that goes away ends the pack source with it.
    pub fn send(self, client: &mut dyn Write) -> Sent {
        send_answer(self.0, client)
    }
}

fn send_request(start: Vec<u8>, body: Box<dyn Read + Send>, mut stdin: impl Write) {
    let mut request = io::Cursor::new(start).chain(body).take(MAX_REQUEST);
    match io::copy(&mut request, &mut stdin) {
        Ok(MAX_REQUEST) => tracing::warn!(limit = MAX_REQUEST, "oversized fetch request cut off"),
        Ok(n_bytes) => tracing::debug!(n_bytes, "fetch request handed on"),
        // It stopped listening, and its answer says why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => tracing::info!(%error, "fetch request lost"),
    }
}

fn send_answer(mut stream: PackStream, client: &mut dyn Write) -> Sent {
    let mut buffer = vec![0; PIECE];
    let mut n_bytes = 0;
    loop {
        let n = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                tracing::error!(%error, "lost the pack source");
                break;
            }
        };
        if let Err(error) = client.write_all(buffer.get(..n).unwrap_or_default()) {
            tracing::info!(%error, n_bytes, "fetch given up");
            return Sent::Cut;
        }
        n_bytes += n;
    }
    match stream.finish() {
        Ok(()) => {
            tracing::debug!(n_bytes, "fetch answered");
            Sent::Whole
        }
        Err(error) => {
            report_failure(&error, n_bytes, client);
            Sent::Cut
        }
    }
}

/// Tells a client that has read nothing yet why there is nothing. Within an answer its own framing shows the end.
pub(crate) fn report_failure(error: &dyn Error, n_bytes: usize, client: &mut dyn Write) {
    tracing::warn!(%error, n_bytes, "fetch failed");
    if n_bytes == 0 {
        let mut packet = Vec::new();
        pkt::err(&mut packet, &error.to_string());
        // Whoever is gone needs no reason.
        let _ = client.write_all(&packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what is written.
    struct Count(u64);

    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_is_cut_off_at_its_limit() {
        let mut count = Count(0);
        send_request(b"start".to_vec(), Box::new(io::repeat(b'0')), &mut count);
        assert_eq!(count.0, MAX_REQUEST);
    }
}
