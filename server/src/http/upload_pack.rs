//! `POST git-upload-pack`: a fetch.
//!
//! `ls-refs` of protocol v2 is answered here, from the referee's refs, and a small `fetch` by [`small_fetch`]. Every
//! other request goes to the store's pack source as it is: what was read of it to tell them apart first, then the rest
//! as it arrives.
//!
//! Errors that a fetching client can be told of go as an `ERR` packet, which git shows its user as
//! `fatal: remote error: …`; of an HTTP error it shows the number alone.

use std::io::{self, Read, Write};

use hyper::Response;
use hyper::body::Bytes;
use zit_referee::Repository;
use zit_store::{Exchange, PackSource, PackStream, ProtocolVersion as StoreVersion, StoreError};
use zit_wire::command::{self, Command, HeadProgress};
use zit_wire::fetch;
use zit_wire::ls_refs;
use zit_wire::pkt;
use zit_wire::service::{ProtocolVersion, Service};

use super::advertise;
use super::body::{Outlet, RequestBody, ResponseBody};
use super::respond::{self, EdgeError};
use super::small_fetch;

/// The longest request that is handed on, in bytes, decoded: a million wants and haves of 64 bytes each.
const MAX_REQUEST: u64 = 64 * 1024 * 1024;

/// How much of a pack is read at once, in bytes. git writes packets of nearly this size.
const PIECE: usize = 64 * 1024;

/// Answers one request. Blocks; on the reactor's blocking threads only.
///
/// # Errors
/// [`EdgeError`] when the body stops or the repository cannot be read. What the client asked in a wrong way is told
/// to it in the answer.
pub(crate) fn answer(
    repository: &Repository,
    version: ProtocolVersion,
    body: RequestBody,
) -> Result<Response<ResponseBody>, EdgeError> {
    let mut body = body.into_read();
    if version != ProtocolVersion::V2 {
        return hand_on(repository, version, Vec::new(), body);
    }
    let object_format = repository.reading().hash_kind();
    let mut start = Vec::new();
    loop {
        match command::read_head(&start, object_format) {
            Err(error) => return Ok(refuse(&error.to_string())),
            Ok(HeadProgress::Empty) => return Ok(result(Vec::new())),
            Ok(HeadProgress::Incomplete { needed }) => {
                if read_more(&mut body, &mut start, needed)? == 0 {
                    return Ok(refuse("fetch request ends early"));
                }
            }
            Ok(HeadProgress::Complete(head)) => {
                return match head.command {
                    Command::LsRefs => list_refs(repository, start, &mut body),
                    Command::Fetch => fetch(repository, start, body),
                };
            }
        }
    }
}

/// Reads up to `needed` more bytes; 0 at the end.
fn read_more(body: &mut dyn Read, into: &mut Vec<u8>, needed: usize) -> Result<usize, EdgeError> {
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    body.take(needed).read_to_end(into).map_err(EdgeError::reading)
}

fn list_refs(
    repository: &Repository,
    mut request: Vec<u8>,
    body: &mut dyn Read,
) -> Result<Response<ResponseBody>, EdgeError> {
    // One byte more than may be shows that there are too many.
    let n_room = (ls_refs::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(body, &mut request, n_room)?;
    let request = match ls_refs::parse(&request, repository.reading().hash_kind()) {
        Ok(request) => request,
        Err(error) => return Ok(refuse(&error.to_string())),
    };
    let refs = advertise::advertised(repository.refs_for_fetch(&request.prefixes)?);
    let head = advertise::head(repository)?;
    Ok(result(ls_refs::respond(&request, Some(&head), &refs)))
}

/// Answers a small fetch, and hands on any other.
fn fetch(
    repository: &Repository,
    mut request: Vec<u8>,
    mut body: Box<dyn Read + Send>,
) -> Result<Response<ResponseBody>, EdgeError> {
    // One byte more than may be shows that it is no small one.
    let n_room = (fetch::MAX_REQUEST + 1).saturating_sub(request.len());
    read_more(&mut body, &mut request, n_room)?;
    if request.len() <= fetch::MAX_REQUEST {
        let parsed = match fetch::parse(&request, repository.reading().hash_kind()) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(refuse(&error.to_string())),
        };
        if let Some(answer) = small_fetch::answer(repository.reading(), parsed) {
            return Ok(result(answer));
        }
    }
    hand_on(repository, ProtocolVersion::V2, request, body)
}

/// Lets the pack source answer: one thread writes the request to it while another reads the answer.
fn hand_on(
    repository: &Repository,
    version: ProtocolVersion,
    start: Vec<u8>,
    body: Box<dyn Read + Send>,
) -> Result<Response<ResponseBody>, EdgeError> {
    let version = match version {
        ProtocolVersion::V0 => StoreVersion::V0,
        ProtocolVersion::V1 => StoreVersion::V1,
        ProtocolVersion::V2 => StoreVersion::V2,
    };
    let mut stream = repository.reading().pack_source().start(version, Exchange::Respond)?;
    let stdin = stream.take_stdin();
    let (outlet, response_body) = Outlet::open();
    let span = tracing::Span::current();
    let writing = span.clone();
    tokio::task::spawn_blocking(move || {
        writing.in_scope(|| send_request(start, body, stdin));
    });
    tokio::task::spawn_blocking(move || span.in_scope(|| send_answer(stream, outlet)));
    Ok(respond::with_body(Service::UploadPack.result_type(), response_body))
}

/// Writes the request to the pack source; `stdin` is closed at its end, and early when the request is no good.
fn send_request(start: Vec<u8>, body: Box<dyn Read + Send>, stdin: Option<impl Write>) {
    let Some(mut stdin) = stdin else { return };
    let mut request = io::Cursor::new(start).chain(body).take(MAX_REQUEST);
    match io::copy(&mut request, &mut stdin) {
        Ok(MAX_REQUEST) => tracing::warn!(limit = MAX_REQUEST, "oversized fetch request cut off"),
        Ok(n_bytes) => tracing::debug!(n_bytes, "fetch request handed on"),
        // It stopped listening, and its answer says why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => tracing::info!(%error, "fetch request lost"),
    }
}

/// Sends the answer of the pack source on; a client that goes away ends the pack source with it.
fn send_answer(mut stream: PackStream, mut outlet: Outlet) {
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
        let piece = Bytes::copy_from_slice(buffer.get(..n).unwrap_or_default());
        if let Err(error) = outlet.send(piece) {
            tracing::info!(%error, n_bytes, "fetch given up");
            return;
        }
        n_bytes += n;
    }
    match stream.finish() {
        Ok(()) => tracing::debug!(n_bytes, "fetch answered"),
        Err(error) => report_failure(&error, n_bytes, outlet),
    }
}

/// Tells a client that has read nothing yet why there is nothing. Within an answer its own framing shows the end.
fn report_failure(error: &StoreError, n_bytes: usize, mut outlet: Outlet) {
    tracing::warn!(%error, n_bytes, "fetch failed");
    if n_bytes == 0 {
        let mut packet = Vec::new();
        pkt::err(&mut packet, &error.to_string());
        // Whoever is gone needs no reason.
        let _ = outlet.send(Bytes::from(packet));
    }
}

fn refuse(reason: &str) -> Response<ResponseBody> {
    tracing::info!(reason, "fetch refused");
    let mut packet = Vec::new();
    pkt::err(&mut packet, reason);
    result(packet)
}

fn result(body: Vec<u8>) -> Response<ResponseBody> {
    respond::whole(Service::UploadPack.result_type(), body)
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
        send_request(b"start".to_vec(), Box::new(io::repeat(b'0')), Some(&mut count));
        assert_eq!(count.0, MAX_REQUEST);
    }
}
