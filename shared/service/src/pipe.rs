//! A whole conversation over one pair of streams, as git has it over pipes, sockets and ssh.
//!
//! [`serve`] speaks first and goes on until the client has what it wants. Each request of protocol 2 is read whole and
//! answered as over HTTP; versions 0 and 1 keep state between their messages and are handed to the pack source from the
//! start, whose advertisement is passed on with our own name in it.
//!
//! Whatever keeps the client from being answered is told to it in an `ERR` packet, which git shows its user as
//! `fatal: remote error: …`.

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::thread;

use bstr::ByteSlice;
use zit_model::failure;
use zit_referee::{Caller, Repository};
use zit_store::{Exchange, PackLimits, PackSource, ProtocolVersion as StoreVersion};
use zit_wire::pkt::{self, Decoded, Packet};
use zit_wire::service::ProtocolVersion;

use crate::ServiceError;
use crate::advertise;
use crate::pack_body::PackBody;
use crate::receive_pack::{self, Begun};
use crate::relay::{RelayedAnswer, Sent};
use crate::source::FetchSource;
use crate::upload_pack::{self, Answer};

/// The longest request of protocol 2, in bytes: a million wants and haves of 64 bytes each.
const MAX_REQUEST: usize = 64 * 1024 * 1024;

/// How much of a push is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// What a client wants of which repository.
pub enum Task<'a> {
    /// To fetch.
    Fetch(&'a dyn FetchSource),
    /// To push.
    Push {
        /// The referee.
        repository: &'a Repository,
        /// Who pushes.
        caller: Box<Caller>,
        /// What its pack may cost.
        limits: PackLimits,
    },
}

/// Why a conversation ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipeError {
    /// There is no answer.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The client sent what is no protocol of git's.
    #[error(transparent)]
    Packet(#[from] pkt::PktError),
    /// The client sent more than is read.
    #[error("the request is longer than {MAX_REQUEST} bytes")]
    TooLong,
    /// The client went away.
    #[error("the client went away")]
    Client(#[source] io::Error),
}

/// Holds one conversation. Blocks until it is over.
///
/// A thread may go on reading `input` for as long as the client keeps it open.
pub fn serve(
    task: Task<'_>,
    version: ProtocolVersion,
    input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) {
    let served = match task {
        Task::Fetch(source) if version == ProtocolVersion::V2 => fetch(source, input, output),
        Task::Fetch(source) => hand_on(source, version, input, output),
        Task::Push { repository, caller, limits } => {
            push(repository, &caller, &limits, version, input, output)
        }
    };
    if let Err(error) = served {
        end(&error, None, output);
    }
}

/// Ends a conversation that cannot go on.
pub(crate) fn end(error: &dyn std::error::Error, hint: Option<&str>, output: &mut dyn Write) {
    tracing::info!(%error, "conversation ended early");
    // Whoever is gone needs no reason.
    let _ = tell(error, hint, output);
}

/// Tells a client that it is not answered, why, and what to do about it.
///
/// # Errors
/// When the client is gone.
pub fn tell(
    error: &dyn std::error::Error,
    hint: Option<&str>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut text = failure::chain(error);
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    let mut packet = Vec::new();
    pkt::err(&mut packet, &text);
    output.write_all(&packet)?;
    output.flush()
}

/// Answers requests of protocol 2 until the client sends no more.
fn fetch(
    source: &dyn FetchSource,
    mut input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) -> Result<(), PipeError> {
    say(output, &advertise::fetch_v2(source.reading())?)?;
    while let Some(request) = read_request(&mut input)? {
        let request = Box::new(Cursor::new(request));
        let sent = match upload_pack::answer(source, ProtocolVersion::V2, request)? {
            Answer::Whole(answer) => {
                say(output, &answer)?;
                Sent::Whole
            }
            Answer::Shared(answer) => answer.send(output),
            Answer::Relayed(relay) => {
                let (request, answer) = relay.split();
                thread::scope(|scope| {
                    scope.spawn(|| request.send());
                    answer.send(output)
                })
            }
        };
        if sent == Sent::Cut {
            return Ok(());
        }
        output.flush().map_err(PipeError::Client)?;
    }
    Ok(())
}

/// Lets the pack source hold the conversation.
fn hand_on(
    source: &dyn FetchSource,
    version: ProtocolVersion,
    mut input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) -> Result<(), PipeError> {
    let version = match version {
        ProtocolVersion::V0 => StoreVersion::V0,
        ProtocolVersion::V1 | ProtocolVersion::V2 => StoreVersion::V1,
    };
    let started =
        source.reading().pack_source().of(source.namespace()).start(version, Exchange::Converse);
    let mut stream = started.map_err(ServiceError::Store)?;
    if let Some(mut stdin) = stream.take_stdin() {
        // Not waited for: it ends when the client closes its side, which may be later than the last answer.
        thread::spawn(move || io::copy(&mut input, &mut stdin));
    }
    let first = read_first_line(&mut stream).map_err(ServiceError::Read)?;
    say(output, &with_our_name(&first))?;
    RelayedAnswer::new(stream).send(output);
    output.flush().map_err(PipeError::Client)
}

/// Reads up to the end of the line that carries capabilities, or whatever comes instead of one.
fn read_first_line(stream: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        if !read_packet(stream, &mut bytes)? {
            return Ok(bytes);
        }
        let packet = bytes.get(before..).unwrap_or_default();
        if packet.contains(&0) || packet == b"0000" {
            return Ok(bytes);
        }
    }
}

/// Reads past an advertisement; whether it was whole.
///
/// # Errors
/// Those of the stream.
pub fn skip_advertisement(stream: &mut dyn Read) -> io::Result<bool> {
    loop {
        let mut packet = Vec::new();
        if !read_packet(stream, &mut packet)? {
            return Ok(false);
        }
        if packet == b"0000" {
            return Ok(true);
        }
    }
}

/// Reads one packet to the end of `bytes`; whether there was one. What is no packet is passed on as it is.
fn read_packet(stream: &mut dyn Read, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let before = bytes.len();
    loop {
        let needed = match pkt::decode(bytes.get(before..).unwrap_or_default()) {
            Ok(Decoded::Complete { .. }) => return Ok(true),
            Ok(Decoded::Incomplete { needed }) => needed,
            Err(_) => return Ok(false),
        };
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        if stream.take(needed).read_to_end(bytes)? == 0 {
            return Ok(false);
        }
    }
}

/// The lines up to the capabilities, with our name in place of git's, and `zit=1`.
fn with_our_name(lines: &[u8]) -> Vec<u8> {
    let Some((head, words)) = lines.split_once_str(b"\0") else { return lines.to_vec() };
    let mut out = head.to_vec();
    // The packet that the capabilities end begins behind the one before, which is `version 1` or nothing.
    let start = match pkt::decode(head) {
        Ok(Decoded::Complete { consumed, .. }) => consumed,
        Ok(Decoded::Incomplete { .. }) | Err(_) => 0,
    };
    let mut line = out.split_off(start).split_off(4);
    line.push(0);
    for word in words.trim_end().split_str(b" ").filter(|word| !word.is_empty()) {
        if !word.starts_with(b"agent=") {
            line.extend_from_slice(word);
            line.push(b' ');
        }
        if let Some(id) = word.strip_prefix(b"session-id=") {
            tracing::info!(session_id = ?id.as_bstr(), "a client is told the id of this session");
        }
    }
    line.extend_from_slice(format!("agent={} zit=1", advertise::agent()).as_bytes());
    match pkt::text(&mut out, &line) {
        Ok(()) => out,
        Err(_) => lines.to_vec(),
    }
}

/// Advertises, takes one push, and answers it.
fn push(
    repository: &Repository,
    caller: &Caller,
    limits: &PackLimits,
    version: ProtocolVersion,
    input: Box<dyn Read + Send>,
    output: &mut dyn Write,
) -> Result<(), PipeError> {
    let nonce = match caller.nonce.clone() {
        Some(given) => Some(given),
        None => repository.push_nonce().map_err(ServiceError::from)?,
    };
    let caller = &Caller { nonce, ..caller.clone() };
    say(output, &advertise::push_on_pipe(repository, version, caller)?)?;
    let mut input = BufReader::with_capacity(PIECE, input);
    // A client that only wanted to see the refs sends nothing.
    if input.fill_buf().map_err(PipeError::Client)?.is_empty() {
        return Ok(());
    }
    carry_out(repository, caller, limits, input, output)
}

/// Takes one push and answers it. Returns once all of it has come, or the client has ended.
pub(crate) fn carry_out(
    repository: &Repository,
    caller: &Caller,
    limits: &PackLimits,
    mut input: impl BufRead,
    output: &mut dyn Write,
) -> Result<(), PipeError> {
    match receive_pack::begin(repository, &mut input)? {
        Begun::Answered(answer) => {
            say(output, &answer)?;
            PackBody::unknown(input).drain();
        }
        Begun::Push(incoming) => {
            let incoming = incoming.of_open_body(repository);
            let pack = incoming.carry_out(repository, caller, limits, output);
            output.flush().map_err(PipeError::Client)?;
            pack.drain();
        }
    }
    Ok(())
}

/// Reads one request of protocol 2, its flush included; `None` at the end of the conversation.
fn read_request(input: &mut dyn Read) -> Result<Option<Vec<u8>>, PipeError> {
    let mut request = Vec::new();
    loop {
        let before = request.len();
        if !read_packet(input, &mut request).map_err(PipeError::Client)? {
            let rest = request.get(before..).unwrap_or_default();
            return match pkt::decode(rest) {
                Err(error) => Err(error.into()),
                Ok(_) if request.is_empty() => Ok(None),
                Ok(_) => Err(PipeError::Client(io::ErrorKind::UnexpectedEof.into())),
            };
        }
        if request.len() > MAX_REQUEST {
            return Err(PipeError::TooLong);
        }
        let packet = pkt::decode(request.get(before..).unwrap_or_default())?;
        if matches!(packet, Decoded::Complete { packet: Packet::Flush, .. }) {
            return Ok((before > 0).then_some(request));
        }
    }
}

pub(crate) fn say(output: &mut dyn Write, bytes: &[u8]) -> Result<(), PipeError> {
    output.write_all(bytes).and_then(|()| output.flush()).map_err(PipeError::Client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut found = Vec::new();
        while let Some(request) = read_request(&mut bytes).map_err(|error| error.to_string())? {
            found.push(request);
        }
        Ok(found)
    }

    #[test]
    fn each_request_ends_with_its_flush_and_the_conversation_with_a_lone_one() {
        let (a, b) = (b"0005a00010005b0000".to_vec(), b"0005c0000".to_vec());
        let both = [a.as_slice(), &b].concat();
        assert_eq!(requests(&both), Ok(vec![a.clone(), b.clone()]));
        assert_eq!(requests(&[&both[..], b"00000005x"].concat()), Ok(vec![a, b]));
        assert_eq!(requests(b""), Ok(vec![]));
    }

    #[test]
    fn a_request_that_breaks_off_or_is_no_packet_is_an_error() {
        assert!(requests(b"0005a").is_err());
        assert!(requests(b"0005a000").is_err());
        assert!(requests(b"0009a").is_err());
        let bad = requests(b"0005aGET / HTTP/1.1");
        assert!(bad.is_err_and(|error| error.contains("not four hexadecimal digits")));
    }

    #[test]
    fn the_capabilities_of_the_pack_source_carry_our_name() {
        let ours = format!("agent={} zit=1\n", advertise::agent());
        for before in ["", "000eversion 1\n"] {
            let line = format!("{} HEAD", "1".repeat(40));
            let theirs = format!("{line}\0multi_ack agent=git/2.47 thin-pack symref=HEAD:refs/x\n");
            let theirs = format!("{before}{:04x}{theirs}", theirs.len() + 4);
            let mut stream = theirs.as_bytes().chain(b"0000".as_slice());
            let found = with_our_name(&read_first_line(&mut stream).unwrap());
            let expected = format!("{line}\0multi_ack thin-pack symref=HEAD:refs/x {ours}");
            let expected = format!("{before}{:04x}{expected}", expected.len() + 4);
            assert_eq!(String::from_utf8(found).unwrap(), expected);
        }
        assert_eq!(with_our_name(b"0009ERR x"), b"0009ERR x");
    }
}
