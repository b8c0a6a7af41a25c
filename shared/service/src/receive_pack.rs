//! `git-receive-pack`: one push.
//!
//! The commands and options are read here; the pack is left in the body for the referee, which reads it as it
//! arrives. What the referee answers is sent as it is: whole, or while it is made where the repository has hooks that speak.
//!
//! A request that is no push is answered in band 3 when the client has said that it reads bands: git prints that as
//! `remote: …`, while of an HTTP error to a POST it prints the number alone. Any other client gets the edge's error.

use std::io::{BufRead, Chain, Cursor, Read, Write};

use zit_referee::{Caller, Repository};
use zit_store::{Audience, Gone, PackLimits};
use zit_wire::pkt;
use zit_wire::receive::{Progress, PushRequest, ReceiveError, RequestReader};
use zit_wire::side_band::{self, Band};

use crate::ServiceError;
use crate::advertise;
use crate::pack_body::PackBody;

/// How much of a request is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// How much of the start of a request is kept to find the client's capabilities in: any first command has less.
const MAX_START: usize = 8 * 1024;

/// An empty packet of band 1: git's sign that work goes on.
const KEEP_ALIVE: &[u8] = b"0005\x01";

/// A body from where its pack begins: what was read of it already, and the rest.
pub type FromPack<R> = Chain<Cursor<Vec<u8>>, R>;

/// What a request turned out to be.
#[must_use = "a push that is begun has not been answered"]
pub enum Begun<P> {
    /// No push; this is the answer.
    Answered(Vec<u8>),
    /// A push, whose pack has not been read.
    Push(Incoming<P>),
}

/// A push that has been read up to its pack.
pub struct Incoming<P> {
    request: PushRequest,
    pack: P,
}

/// Reads a request up to its pack; a request of nothing, by which a client tries the way, has an empty answer.
///
/// # Errors
/// [`ServiceError`] when the body stops before its pack, or is no push and the client reads no bands.
pub fn begin<R: Read>(
    repository: &Repository,
    mut body: R,
) -> Result<Begun<FromPack<R>>, ServiceError> {
    let mut start = Vec::new();
    let reader = RequestReader::new(repository.reading().hash_kind());
    let (request, rest) = match read_request(reader, &mut body, &mut start)? {
        Ok(read) => read,
        Err(error) if reads_bands(&start) => return Ok(Begun::Answered(refuse(&error))),
        Err(error) => return Err(error.into()),
    };
    if request.is_probe() {
        return Ok(Begun::Answered(Vec::new()));
    }
    advertise::note_session(request.capabilities.session_id.as_ref());
    Ok(Begun::Push(Incoming { request, pack: Cursor::new(rest).chain(body) }))
}

impl<P: BufRead> Incoming<P> {
    /// With a pack that ends by itself, in a body that goes on.
    #[must_use]
    pub fn of_open_body(self, repository: &Repository) -> Incoming<PackBody<P>> {
        let Self { request, pack } = self;
        let pack = if request.expects_pack() {
            PackBody::pack(pack, repository.reading().hash_kind())
        } else {
            PackBody::nothing(pack)
        };
        Incoming { request, pack }
    }
}

impl<P: Read> Incoming<P> {
    /// Whether the client hears what hooks say, and there are some: the answer then grows while the push is worked on.
    #[must_use]
    pub fn speaks(&self, repository: &Repository) -> bool {
        self.request.capabilities.side_band_64k && repository.runs_hooks()
    }

    /// Whether the client reads bands.
    #[must_use]
    pub fn reads_bands(&self) -> bool {
        self.request.capabilities.side_band_64k
    }

    /// Carries the push out; the answer is whole when all is done.
    #[must_use]
    pub fn answer(self, repository: &Repository, caller: &Caller, limits: &PackLimits) -> Vec<u8> {
        let mut answer = Vec::new();
        self.carry_out(repository, caller, limits, &mut answer);
        answer
    }

    /// Carries the push out, and writes the answer piece by piece. What is done is done, also if nobody takes it. What
    /// comes back is left of the pack.
    pub fn carry_out(
        mut self,
        repository: &Repository,
        caller: &Caller,
        limits: &PackLimits,
        out: &mut dyn Write,
    ) -> P {
        let capabilities = &self.request.capabilities;
        let mut bands = Bands { speaks: capabilities.side_band_64k, out };
        let answer =
            repository.push_heard(caller, &self.request, &mut self.pack, limits, &mut bands);
        // Whoever has gone needs no report, but the hooks that follow need to run.
        let mut packets = answer.encode_open(capabilities);
        let mut reported = Ok(());
        if answer.has_post_hooks() {
            reported = bands.send(&packets);
            packets.clear();
            answer.run_post_hooks(&mut bands);
        }
        if bands.speaks {
            pkt::flush(&mut packets);
        }
        if let Err(error) = reported.and_then(|()| bands.send(&packets)) {
            tracing::info!(%error, "push carried out, and its report lost");
        }
        self.pack
    }
}

/// The bands of an answer that is sent while it is made. Without bands nothing is heard but the report.
struct Bands<'a> {
    speaks: bool,
    out: &'a mut dyn Write,
}

impl Bands<'_> {
    fn send(&mut self, packets: &[u8]) -> Result<(), Gone> {
        self.out.write_all(packets).map_err(|_| Gone)
    }
}

impl Audience for Bands<'_> {
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone> {
        if !self.speaks {
            return Ok(());
        }
        let mut packets = Vec::new();
        side_band::write(&mut packets, Band::Progress, words);
        self.send(&packets)
    }

    fn wait(&mut self) -> Result<(), Gone> {
        if self.speaks { self.send(KEEP_ALIVE) } else { Ok(()) }
    }
}

/// Reads up to where the pack begins; with the request comes what was read of the pack.
fn read_request(
    mut reader: RequestReader,
    body: &mut dyn Read,
    start: &mut Vec<u8>,
) -> Result<Result<(PushRequest, Vec<u8>), ReceiveError>, ServiceError> {
    let mut buffer = vec![0; PIECE];
    loop {
        let n = body.read(&mut buffer).map_err(ServiceError::Read)?;
        if n == 0 {
            return Ok(reader.finish().map(|request| (request, Vec::new())));
        }
        let bytes = buffer.get(..n).unwrap_or_default();
        let n_room = MAX_START.saturating_sub(start.len()).min(n);
        start.extend_from_slice(bytes.get(..n_room).unwrap_or_default());
        match reader.feed(bytes) {
            Err(error) => return Ok(Err(error)),
            Ok(Progress::More { .. }) => {}
            Ok(Progress::Done { request, consumed }) => {
                let rest = bytes.get(consumed..).unwrap_or_default().to_vec();
                return Ok(Ok((request, rest)));
            }
        }
    }
}

/// Whether the first command, from which `start` begins, carries the word `side-band-64k`.
///
/// It is looked for in the bytes because a request that cannot be read has no capabilities.
fn reads_bands(start: &[u8]) -> bool {
    let capabilities = start.split(|&byte| byte == 0).nth(1).unwrap_or_default();
    let end_of_word = |&byte: &u8| byte == b' ' || byte == b'\n';
    // The last word may have the next packet behind it.
    capabilities.split(end_of_word).any(|word| {
        word.strip_prefix(b"side-band-64k")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"0"))
    })
}

fn refuse(error: &ReceiveError) -> Vec<u8> {
    tracing::info!(%error, "push refused");
    // One line: git puts `remote:` before the first line of band 3 alone.
    let mut text = format!("error: {error}");
    if let Some(hint) = error.hint() {
        text.push_str(&format!("; hint: {hint}"));
    }
    let mut body = Vec::new();
    side_band::write(&mut body, Band::Error, text.as_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes one at a time, as a slow network does.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = buffer.len().min(1);
            self.0.read(&mut buffer[..n])
        }
    }

    fn body(capabilities: &str) -> Vec<u8> {
        let oid = "1".repeat(40);
        let line = format!("{} {oid} refs/heads/x\0{capabilities}", "0".repeat(40));
        format!("{:04x}{line}0000PACK", line.len() + 4).into_bytes()
    }

    #[test]
    fn what_is_read_of_the_pack_comes_with_the_request() {
        let bytes = body(" report-status-v2");
        let reader = RequestReader::new(gix_hash::Kind::Sha1);
        let (request, rest) =
            read_request(reader, &mut bytes.as_slice(), &mut Vec::new()).unwrap().unwrap();
        assert_eq!((request.commands.len(), rest.as_slice()), (1, b"PACK".as_slice()));
    }

    #[test]
    fn a_request_may_come_byte_by_byte_and_the_pack_stays_in_the_body() {
        let bytes = body(" report-status-v2");
        let mut slow = Slow(&bytes);
        let reader = RequestReader::new(gix_hash::Kind::Sha1);
        let (request, rest) = read_request(reader, &mut slow, &mut Vec::new()).unwrap().unwrap();
        assert_eq!((request.commands.len(), rest.len(), slow.0), (1, 0, b"PACK".as_slice()));
    }

    #[test]
    fn whether_a_client_reads_bands_is_seen_behind_its_first_command() {
        for (capabilities, expected) in [
            (" report-status-v2 side-band-64k atomic", true),
            (" side-band-64k", true),
            (" side-band-64k\n", true),
            (" side-band-64", false),
            (" xside-band-64k", false),
            ("", false),
        ] {
            assert_eq!(reads_bands(&body(capabilities)), expected, "{capabilities:?}");
        }
        assert!(!reads_bands(b"side-band-64k"));
    }
}
