//! The thread that makes an answer: what `git upload-pack` says, piece by piece, until its end or until nobody listens.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use super::growing::{Answer, PIECE, Went};
use super::{AnswerError, Key, Shelf};
use crate::error::StoreError;
use crate::upload::{Exchange, PackSource as _, PackStream, ProtocolVersion, UploadPack};

/// Shorter answers are not kept, in bytes: a round of negotiation is only asked for once.
const MIN_KEPT: u64 = 4 * 1024;

/// What one thread works on. Dropping it ends the answer, for whoever waits.
pub(super) struct Making {
    pub(super) shelf: Arc<Shelf>,
    pub(super) key: Key,
    pub(super) answer: Arc<Answer>,
}

/// Starts to make an answer.
pub(super) fn start(
    making: Making,
    source: UploadPack,
    request: Vec<u8>,
) -> Result<(), StoreError> {
    let span = tracing::Span::current();
    let thread = std::thread::Builder::new().name("answer".into());
    let started = thread.spawn(move || span.in_scope(|| making.run(&source, &request)));
    started.map(drop).map_err(StoreError::Thread)
}

impl Making {
    fn run(self, source: &UploadPack, request: &[u8]) {
        let made = source
            .start(ProtocolVersion::V2, Exchange::Respond)
            .and_then(|stream| self.make(stream, request));
        let n_bytes = self.answer.len();
        match made {
            Ok(Made::Kept) => {
                tracing::debug!(n_bytes, "answer kept");
                self.answer.end(Ok(()));
            }
            Ok(Made::Passed) => {
                tracing::debug!(n_bytes, "answer passed on");
                self.shelf.forget(&self.key, &self.answer);
                self.answer.end(Ok(()));
            }
            Ok(Made::Unread) => tracing::info!(n_bytes, "fetch given up"),
            Err(error) => {
                tracing::warn!(%error, n_bytes, "fetch failed");
                self.shelf.forget(&self.key, &self.answer);
                self.answer.end(Err(AnswerError::Making(error.to_string())));
            }
        }
    }

    fn make(&self, mut stream: PackStream, request: &[u8]) -> Result<Made, StoreError> {
        let lost = |source| StoreError::Answer { source };
        if let Some(mut stdin) = stream.take_stdin() {
            match stdin.write_all(request) {
                // It stopped listening, and its answer says why.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(lost(error)),
                Ok(()) | Err(_) => {}
            }
        }
        let mut buffer = vec![0; PIECE];
        let mut went = Went::Filed;
        loop {
            let n = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(error)),
            };
            let bytes = buffer.get(..n).unwrap_or_default();
            if self.shelf.forget_unread(&self.key, &self.answer) {
                return Ok(Made::Unread);
            }
            if went == Went::Filed && self.answer.fits(n) {
                went = self.answer.file(bytes);
            } else if went == Went::Filed {
                went = Went::Past;
            }
            if went == Went::Past {
                self.shelf.forget(&self.key, &self.answer);
                if !self.answer.pass_on(bytes) {
                    return Ok(Made::Unread);
                }
            }
        }
        stream.finish()?;
        let keeps = went == Went::Filed && self.answer.len() >= MIN_KEPT;
        Ok(if keeps { Made::Kept } else { Made::Passed })
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if self.answer.has_ended() {
            return;
        }
        self.shelf.forget(&self.key, &self.answer);
        self.answer.end(Err(AnswerError::Making("its thread has ended".to_owned())));
    }
}

/// How making an answer ended.
enum Made {
    Kept,
    /// It is whole, and gone with its last reader.
    Passed,
    /// Nobody was left to read it.
    Unread,
}
