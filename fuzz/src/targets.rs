//! The targets. Each is a few lines: decode, and check what the decoder promises of what it gave.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;

use bstr::{BString, ByteSlice as _};
use gix_hash::Kind;
use zit_footprint::{FileKind, Footprint, Side, Unknown, compare, conflicts};
use zit_helper::address::Remote;
use zit_helper::answers::Answers;
use zit_model::document::{AgentState, ClaimRecord, ClaimRequest};
use zit_model::options::Options;
use zit_model::overheard::Overheard;
use zit_model::settings::Settings;
use zit_model::{AgentId, ItemId, Oid, RefName, Resource, quote, refs, trailers};
use zit_service::{Hello, pipe};
use zit_wire::pack_end::{PackEnd, Scan};
use zit_wire::pkt::{self, Decoded, Packet};
use zit_wire::receive::{Progress, RequestReader};
use zit_wire::service::ProtocolVersion;
use zit_wire::side_band::{self, Band};
use zit_wire::{bundle_uri, command, fetch, ls_refs, object_info};

use crate::{Target, repository, seeds};

macro_rules! targets {
    ($($name:literal: $seeds:expr, $decode:expr;)*) => {
        /// Every decoder of bytes that somebody else wrote.
        pub const TARGETS: &[Target] = &[$(Target { name: $name, seeds: $seeds, decode: $decode }),*];
    };
}

targets! {
    "pkt-line": seeds::packet_lines, packet_lines;
    "push-request": seeds::push, push_request;
    "ls-refs": seeds::list, list;
    "fetch": seeds::fetch, fetch_request;
    "protocol-version": seeds::versions, version;
    "refname": seeds::refnames, refname;
    "resource": seeds::resources, resource;
    "push-options": seeds::options, options;
    "documents": seeds::documents, documents;
    "settings": seeds::settings, settings;
    "trailers": seeds::messages, messages;
    "hello": seeds::hellos, hello;
    "advertisement": seeds::advertisements, advertisement;
    "address": seeds::addresses, address;
    "answers": seeds::answers, answers;
    "overheard": seeds::overheard, overheard;
    "quote": seeds::messages, quoted;
    "pack": seeds::packs, repository::pack;
    "pack-end": seeds::packs, pack_end;
    "objects": seeds::objects, repository::objects;
    "journal": seeds::journals, repository::journal;
    "journal-file": seeds::journals, repository::journal_file;
    "config": seeds::configs, |bytes| repository::file("config", bytes);
    "packed-refs": seeds::packed_refs, |bytes| repository::file("packed-refs", bytes);
    "ref-file": seeds::ref_files, |bytes| repository::file("refs/heads/main", bytes);
    "head": seeds::ref_files, |bytes| repository::file("HEAD", bytes);
    "mark": seeds::marks, |bytes| repository::file("zit/settled", bytes);
    "rust": || seeds::sources("a.rs"), |bytes| source("a.rs", bytes);
    "go": || seeds::sources("a.go"), |bytes| source("a.go", bytes);
    "python": || seeds::sources("a.py"), |bytes| source("a.py", bytes);
    "typescript": || seeds::sources("a.ts"), |bytes| source("a.ts", bytes);
    "tsx": || seeds::sources("a.tsx"), |bytes| source("a.tsx", bytes);
    "javascript": || seeds::sources("a.js"), |bytes| source("a.js", bytes);
    "markdown": || seeds::sources("a.md"), |bytes| source("a.md", bytes);
    "toml": || seeds::sources("a.toml"), |bytes| source("a.toml", bytes);
    "json": || seeds::sources("a.json"), |bytes| source("a.json", bytes);
    "yaml": || seeds::sources("a.yml"), |bytes| source("a.yml", bytes);
    "ini": || seeds::sources("a.ini"), |bytes| source("a.ini", bytes);
    "gomod": || seeds::sources("go.mod"), |bytes| source("go.mod", bytes);
}

/// What is read can be written and gives the same bytes, and no packet is longer than it may be.
fn packet_lines(mut bytes: &[u8]) {
    while let Ok(Decoded::Complete { packet, consumed }) = pkt::decode(bytes) {
        assert!(consumed > 0 && consumed <= pkt::MAX_PACKET);
        let mut written = Vec::new();
        match packet {
            Packet::Data(data) => {
                pkt::data(&mut written, data).expect("it came in one packet");
                side_bands(data);
            }
            Packet::Flush => pkt::flush(&mut written),
            Packet::Delim => pkt::delim(&mut written),
            Packet::ResponseEnd => written.extend_from_slice(b"0002"),
        }
        assert!(written.eq_ignore_ascii_case(&bytes[..consumed]));
        bytes = &bytes[consumed..];
    }
}

/// What git's transport hands through is what the server said, less the ends of its answers, however it is read.
fn answers(bytes: &[u8]) {
    let (mut rest, mut said) = (bytes, Vec::new());
    let is_broken = loop {
        match pkt::decode(rest) {
            Ok(Decoded::Complete { packet, consumed }) => {
                if packet != Packet::ResponseEnd {
                    said.extend_from_slice(&rest[..consumed]);
                }
                rest = &rest[consumed..];
            }
            Ok(Decoded::Incomplete { .. }) => break false,
            Err(_) => break true,
        }
    };
    for size in [1, 7, 1 << 16] {
        let (mut answers, mut buffer, mut heard) = (Answers::new(bytes), vec![0; size], Vec::new());
        let broke = loop {
            match answers.read(&mut buffer) {
                Ok(0) => break false,
                Ok(n) => heard.extend_from_slice(&buffer[..n]),
                Err(_) => break true,
            }
        };
        assert!(heard == said && broke == is_broken);
    }
}

/// A pack ends in the same place however it arrives.
fn pack_end(bytes: &[u8]) {
    for hash in [Kind::Sha1, Kind::Sha256] {
        let whole = PackEnd::new(hash).feed(bytes);
        let (mut end, mut n_read, mut found) = (PackEnd::new(hash), 0, Scan::More);
        for piece in bytes.chunks(3) {
            found = end.feed(piece);
            if let Scan::End { consumed } = &mut found {
                *consumed += n_read;
            }
            if found != Scan::More {
                break;
            }
            n_read += piece.len();
        }
        assert_eq!(found, whole);
    }
}

/// Whatever is said on a band arrives whole.
fn side_bands(data: &[u8]) {
    let mut written = Vec::new();
    side_band::write(&mut written, Band::Progress, data);
    let (mut rest, mut heard) = (&written[..], Vec::new());
    while let Ok(Decoded::Complete { packet: Packet::Data(data), consumed }) = pkt::decode(rest) {
        heard.extend_from_slice(&data[1..]);
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty() && heard == data);
}

/// A request reads the same whole and in pieces.
fn push_request(bytes: &[u8]) {
    let whole = RequestReader::new(Kind::Sha1).feed(bytes);
    let mut reader = RequestReader::new(Kind::Sha1);
    let mut pieces = Ok(Progress::More { needed: 4 });
    let mut before = 0;
    for piece in bytes.chunks(7) {
        pieces = reader.feed(piece);
        match &mut pieces {
            Ok(Progress::More { .. }) => before += piece.len(),
            Ok(Progress::Done { consumed, .. }) => {
                *consumed += before;
                break;
            }
            Err(_) => break,
        }
    }
    match (whole, pieces) {
        (Ok(Progress::More { .. }), Ok(Progress::More { .. })) => {}
        (whole, pieces) => assert_eq!(whole, pieces),
    }
}

fn list(bytes: &[u8]) {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let _ = command::read_head(bytes, kind);
        if let Ok(request) = ls_refs::parse(bytes, kind) {
            let _ = request.prefixes.matches(b"refs/heads/main");
            let _ = ls_refs::respond(&request, None, &[]);
        }
        if let Ok(request) = object_info::parse(bytes, kind) {
            let oids = request.oids();
            let _ = object_info::respond(&request, |oid| {
                assert!(oids.contains(&oid), "it is looked up");
                Some(1)
            });
        }
        let _ = bundle_uri::parse(bytes, kind);
    }
}

/// Of a request that is plain, another one can be told by its bytes.
fn fetch_request(bytes: &[u8]) {
    for kind in [Kind::Sha1, Kind::Sha256] {
        if let Ok(request) = fetch::parse(bytes, kind) {
            assert!(request.wants.iter().chain(&request.haves).all(|oid| oid.kind() == kind));
        }
        let _ = fetch::repeatable(bytes, kind);
    }
}

fn version(bytes: &[u8]) {
    let _ = ProtocolVersion::from_header(bytes);
}

fn refname(bytes: &[u8]) {
    let _ = Oid::from_hex(bytes)
        .map(|oid| assert!(oid.to_string().eq_ignore_ascii_case(&bytes.to_str_lossy())));
    let _ = refs::head(bytes);
    if let Ok(name) = RefName::new(bytes) {
        assert_eq!(name.as_bstr(), bytes);
        let _ = (refs::address(&name), name.branch(), name.is_one_level());
        if let Ok(agent) = AgentId::new("a") {
            let _ = ItemId::default_for(&agent, &name);
        }
    }
    let text = bytes.to_str_lossy();
    let _ = (AgentId::new(&text), AgentId::slug(&text), ItemId::new(&text));
}

/// A resource that was read is written so that it is read the same again.
fn resource(bytes: &[u8]) {
    let nothing = |_: &str| false;
    let encoded = Resource::decode(bytes, &nothing);
    for resource in encoded.into_iter().chain(Resource::parse(&bytes.to_str_lossy(), &nothing)) {
        let again = Resource::decode(resource.encode().as_bytes(), &nothing);
        assert_eq!(again.as_ref(), Ok(&resource));
        assert!(RefName::new(refs::claim(&resource.key()).as_bstr()).is_ok());
        assert!(resource.overlaps(&resource) && !resource.shown().contains('\n'));
    }
}

fn options(bytes: &[u8]) {
    let options: Vec<BString> = bytes.lines().map(BString::from).collect();
    let _ = Options::parse(&options);
}

fn documents(bytes: &[u8]) {
    let _ = ClaimRequest::from_json(bytes);
    if let Ok(record) = ClaimRecord::from_json(bytes) {
        let again = ClaimRecord::from_json(&record.to_json(zit_model::UnixSeconds(0)));
        assert_eq!(again.expect("what we write can be read"), record);
    }
    if let Ok(state) = AgentState::from_json(bytes) {
        let again = AgentState::from_json(&state.to_json(zit_model::UnixSeconds(0)));
        assert_eq!(again.expect("what we write can be read"), state);
    }
}

fn settings(bytes: &[u8]) {
    let _ = Settings::parse(&bytes.to_str_lossy());
}

fn messages(bytes: &[u8]) {
    let message = bytes.to_str_lossy();
    for trailer in trailers::parse(&message) {
        assert!(message.len() >= trailer.key.len());
    }
    let _ = zit_session::sessions_of(&message);
    let _ = zit_governance::Topic::new(&message);
}

/// A hello that was read is written so that it is read the same again.
fn hello(bytes: &[u8]) {
    if let Ok(hello) = Hello::read(bytes) {
        let packet = hello.encode();
        let line = packet.get(4..).unwrap_or_default();
        assert_eq!(Hello::read(line.trim_end()), Ok(hello));
    }
}

/// What the helper reads of a server's answer before it sends what git said; nothing behind it is read.
fn advertisement(bytes: &[u8]) {
    let mut rest = bytes;
    let whole = pipe::skip_advertisement(&mut rest).expect("memory can be read");
    let read = &bytes[..bytes.len() - rest.len()];
    assert!(!whole || read.ends_with(b"0000"));
}

/// Nothing in an address becomes an option of ssh, and no address of a server has a line break in it.
fn address(bytes: &[u8]) {
    match Remote::parse(OsStr::from_bytes(bytes)) {
        Ok(Remote::Ssh(ssh)) => {
            assert!(!ssh.destination().starts_with('-'));
            assert!(ssh.port().is_none_or(|port| !port.starts_with('-')));
            assert!(!ssh.path().as_bytes().contains(&0));
        }
        Ok(Remote::Server(address)) => {
            assert!(!address.to_string().contains(char::is_control));
        }
        Ok(Remote::Path(path)) => assert!(path.is_absolute()),
        Err(error) => assert!(!error.to_string().contains('\n') && !error.hint().is_empty()),
    }
}

/// Text of another program reads the same however it is cut, and ends its last line.
fn overheard(bytes: &[u8]) {
    let shown = |size: usize| {
        let mut overheard = Overheard::default();
        let mut shown: String = bytes.chunks(size).map(|piece| overheard.pass(piece)).collect();
        shown.push_str(&overheard.end());
        shown
    };
    let whole = shown(bytes.len().max(1));
    assert_eq!(whole, shown(1));
    assert_eq!(whole, shown(3));
    assert!(whole.is_empty() || whole.ends_with(['\n', '\r']));
    let ours = |line: &str| line.trim_start().starts_with(['{', '[']);
    assert!(!whole.lines().any(ours), "{whole:?}");
}

/// Nothing breaks out of its line or its quotes, and a shell reads one word.
fn quoted(bytes: &[u8]) {
    let text = bytes.to_str_lossy();
    let line = quote::one_line(&text);
    assert!(!line.contains(char::is_control) && !line.contains("\"\"\""));
    assert!(quote::cut(&text, 20).len() <= 20);
    let quoted = quote::quoted(&text);
    assert_eq!(quoted.matches('"').count(), 2);
    let word = quote::shell_word(&text);
    let within = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    match within {
        Some(within) => assert!(!within.replace(r"'\''", "").contains('\'')),
        None => assert!(!word.is_empty() && !word.contains([' ', '$', '`', '\\', ';', '\''])),
    }
}

/// Any text has a footprint against nothing, against itself, and against its seed; and footprints are compared.
fn source(path: &str, bytes: &[u8]) {
    let file = Resource::file(path).expect("a path");
    let side = |bytes| Some(Side { kind: FileKind::Regular, bytes });
    let seed = seeds::sources(path).swap_remove(0);
    let added = compare(&file, None, side(bytes));
    let changed = compare(&file, side(&seed), side(bytes));
    assert!(compare(&file, side(bytes), side(bytes)).writes.is_empty());
    assert_eq!(compare(&file, None, side(bytes)), added, "a footprint is a function of bytes");
    let _ = conflicts(
        &Footprint::from_files([added]),
        &Footprint::from_files([changed]),
        &Unknown::default(),
    );
}
