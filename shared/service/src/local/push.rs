//! One push by a referee of this process.
//!
//! A client thinks between what it is told first and what it asks for: its hooks run, its pack is put together and sent.
//! The repository is not kept from others meanwhile. It is opened to advertise, let go while the request is read into a
//! file, and opened again to judge. Should a server have it open by then, the request goes there as it is.

use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tempfile::SpooledTempFile;
use zit_referee::Caller;
use zit_store::PackLimits;
use zit_wire::receive::{Progress, RequestReader};

use super::{LocalError, Referee, Turn};
use crate::ServiceError;
use crate::advertise;
use crate::hello::Hello;
use crate::pack_body::PackBody;
use crate::pipe::{self, PipeError};

/// How much of a request is kept in memory, in bytes; a longer one is in a file without a name.
const MAX_IN_MEMORY: usize = 1024 * 1024;

/// What a request may have besides its pack, in bytes.
const MAX_COMMANDS: u64 = 64 * 1024 * 1024;

/// How much is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Why a push ended early.
#[derive(Debug, thiserror::Error)]
enum PushError {
    #[error(transparent)]
    Pipe(#[from] PipeError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error("cannot keep the request")]
    Keep(#[source] io::Error),
    #[error("the server that has the repository open went away")]
    Server(#[source] io::Error),
}

impl From<ServiceError> for PushError {
    fn from(error: ServiceError) -> Self {
        Self::Pipe(error.into())
    }
}

/// Holds the conversation. Blocks until it is over.
pub(super) fn serve(
    referee: Referee,
    hello: &Hello,
    input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) {
    if let Err(error) = converse(referee, hello, input, output) {
        let hint = if let PushError::Local(error) = &error { error.hint() } else { None };
        pipe::end(&error, hint, output);
    }
}

fn converse(
    referee: Referee,
    hello: &Hello,
    input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) -> Result<(), PushError> {
    let Referee { git_dir, repository } = referee;
    let nonce = repository.push_nonce().map_err(ServiceError::from)?;
    let caller = Caller { nonce, ..hello.caller() };
    let advertisement = advertise::push_on_pipe(&repository, hello.version, &caller)?;
    let hash = repository.reading().hash_kind();
    drop(repository);
    pipe::say(output, &advertisement)?;
    let mut input = BufReader::with_capacity(PIECE, input);
    // A client that only wanted to see the refs sends nothing.
    if input.fill_buf().map_err(PipeError::Client)?.is_empty() {
        return Ok(());
    }
    let limits = PackLimits::default();
    let (request, rest) = keep(hash, input, &limits, &git_dir)?;
    match super::referee(&git_dir)? {
        Turn::Ours(repository) => {
            let request = BufReader::with_capacity(PIECE, request);
            pipe::carry_out(&repository, &caller, &limits, request, output)?;
        }
        Turn::Server(server) => {
            // The nonce is the one that the client has heard of.
            let hello = Hello { nonce: caller.nonce, ..hello.clone() };
            hand_over(&server, &hello, request, output)?;
        }
    }
    rest.drain();
    Ok(())
}

/// Reads a whole push: commands and options, and the pack if there is one; with it comes what is left of the stream. What
/// is no push is kept as far as it was read: whoever judges it says what is wrong with it.
fn keep<R: BufRead>(
    hash: gix_hash::Kind,
    mut input: R,
    limits: &PackLimits,
    git_dir: &Path,
) -> Result<(SpooledTempFile, PackBody<R>), PushError> {
    let mut kept = tempfile::spooled_tempfile_in(MAX_IN_MEMORY, git_dir.join("zit"));
    let mut reader = RequestReader::new(hash);
    let mut rest = loop {
        let piece = input.fill_buf().map_err(PipeError::Client)?;
        let progress = if piece.is_empty() { None } else { Some(reader.feed(piece)) };
        let n = match &progress {
            Some(Ok(Progress::Done { consumed, .. })) => *consumed,
            _ => piece.len(),
        };
        kept.write_all(piece.get(..n).unwrap_or_default()).map_err(PushError::Keep)?;
        input.consume(n);
        match progress {
            Some(Ok(Progress::More { .. })) => {}
            Some(Ok(Progress::Done { request, .. })) if request.expects_pack() => {
                break PackBody::pack(input, hash);
            }
            Some(Ok(Progress::Done { .. })) => break PackBody::nothing(input),
            Some(Err(_)) | None => break PackBody::unknown(input),
        }
    };
    // One that is longer is refused by what is read of it.
    let n_room = limits.max_bytes.saturating_add(MAX_COMMANDS);
    io::copy(&mut rest.by_ref().take(n_room), &mut kept).map_err(PushError::Keep)?;
    kept.rewind().map_err(PushError::Keep)?;
    Ok((kept, rest))
}

/// Lets the server judge that has come to have the repository open. What it tells first, the client was told already.
fn hand_over(
    mut server: &UnixStream,
    hello: &Hello,
    mut request: SpooledTempFile,
    output: &mut dyn Write,
) -> Result<(), PushError> {
    server.write_all(&hello.encode()).map_err(PushError::Server)?;
    if !pipe::skip_advertisement(&mut server).map_err(PushError::Server)? {
        return Err(PushError::Server(io::ErrorKind::UnexpectedEof.into()));
    }
    // One that stops listening says why.
    let _ = io::copy(&mut request, &mut server);
    server.shutdown(Shutdown::Write).map_err(PushError::Server)?;
    super::copy(server, output).map_err(PushError::Server)
}
