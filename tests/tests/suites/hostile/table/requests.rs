//! Requests of a push whose lines are bad, and HTTP that is none.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use zit_tests::wire::{CAPABILITIES, pkt};

use super::super::{Target, empty_pack};
use super::{PUSH, PushBody, REPOSITORY, Row, Sent, ZERO, check, push};

/// The first command with its capabilities, and whatever follows.
fn first(target: &Target, capabilities: &str, rest: &[u8]) -> Vec<u8> {
    let line = format!("{ZERO} {} refs/heads/x\0{capabilities}", target.base);
    [&pkt(line.as_bytes()), rest].concat()
}

/// A push of these commands, all to the commit that is there.
fn commands(target: &Target, names: impl IntoIterator<Item = String>) -> PushBody {
    let commands =
        names.into_iter().map(|name| format!("{ZERO} {} {name}", target.base).into_bytes());
    PushBody {
        commands: commands.collect(),
        pack: empty_pack(&target.clone),
        ..PushBody::default()
    }
}

#[test]
fn bad_commands_are_refused() {
    let mut target = Target::new();
    let t = &target;
    let base = t.base.clone();
    let first = |capabilities: &str, rest: &[u8]| first(t, capabilities, rest);
    let late = format!("{ZERO} {base} refs/heads/y\0 atomic");
    let names = |names: &[&str]| commands(t, names.iter().map(|&name| name.to_owned())).encode();
    let option =
        |option: Vec<u8>| commands(t, ["refs/heads/x".to_owned()]).with_option(option).encode();
    let cert = [pkt(b"push-cert\0 report-status side-band-64k"), b"0000".to_vec()].concat();
    let mut bytes = commands(t, ["refs/heads/".to_owned()]);
    bytes.commands[0].extend_from_slice(b"\xff\xfe\x07");
    let rows = vec![
        push("a certificate without an end", cert, "malformed push certificate"),
        push(
            "another object format",
            first(" side-band-64k object-format=sha256", b"0000"),
            "object format",
        ),
        push(
            "an unknown object format",
            first(" side-band-64k object-format=md5", b"0000"),
            "object format",
        ),
        push(
            "capabilities behind the second command",
            first(CAPABILITIES, &[&pkt(late.as_bytes())[..], b"0000"].concat()),
            "capabilities belong",
        ),
        push(
            "a shallow line of no oid",
            [&pkt(b"shallow nothing")[..], &first(CAPABILITIES, b"0000")].concat(),
            "after shallow",
        ),
        push("a response-end", first(CAPABILITIES, b"0002"), "response-end"),
        push(
            "an old oid of sha256",
            [
                pkt(format!("{} {base} refs/heads/x\0{CAPABILITIES}", "1".repeat(64)).as_bytes()),
                b"0000".to_vec(),
            ]
            .concat(),
            "expected old-oid",
        ),
        push("nothing to nothing", PushBody::of(ZERO, ZERO, "refs/heads/x", b"").encode(), ""),
        push("a name below a ref", names(&["refs/heads/taken/x"]), "refs/heads/taken"),
        push("a name above a ref", names(&["refs/heads"]), ""),
        push(
            "a name and one below it",
            PushBody {
                atomic: true,
                ..commands(t, ["refs/heads/d", "refs/heads/d/e"].map(str::to_owned))
            }
            .encode(),
            "refs/heads/d",
        ),
        push(
            "a name of 4,000 bytes",
            names(&[&format!("refs/heads/{}", "n".repeat(4000))]),
            "name",
        ),
        push(
            "a name of 900 folders",
            names(&[&format!("refs/heads/{}", ["a"; 900].join("/"))]),
            "",
        ),
        push("a name that is not utf-8", bytes.encode(), "ng"),
        push(
            "two options of 65,516 bytes",
            commands(t, ["refs/heads/x".to_owned()])
                .with_option(vec![b'o'; 65_516])
                .with_option(vec![b'o'; 65_516])
                .encode(),
            "bytes of push options",
        ),
        push("an option that is not utf-8", option(b"zit.\xff=1".to_vec()), ""),
        push("an item that is a path", option(b"zit.item=../../etc".to_vec()), ""),
    ];
    check(&mut target, rows);
}

#[test]
fn a_million_refs_in_one_push_are_refused_early() {
    let mut target = Target::new();
    let body = commands(&target, (0..1_000_000).map(|n| format!("refs/heads/{n}"))).encode();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&body).unwrap();
    let zipped = encoder.finish().unwrap();
    let head = format!(
        "POST /{REPOSITORY}/git-receive-pack HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{PUSH}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        zipped.len()
    );
    let zipped = Row {
        name: "a million commands, compressed".to_owned(),
        sent: Sent::Raw([head.into_bytes(), zipped].concat()),
        status: 200,
        says: "more than 100000 commands",
    };
    let long =
        commands(&target, (0..1000).map(|n| format!("refs/heads/{n}/{}", "n".repeat(65_000))));
    let says = "more than 100000 commands";
    let rows = vec![
        push("a million commands", body, says),
        zipped,
        // Its capabilities are not read before it is refused, so it is not known to read bands.
        Row { status: 400, ..push("commands of 65 MB", long.encode(), "bytes of commands") },
    ];
    check(&mut target, rows);
}

/// One request, raw.
fn raw(name: &str, request: &[u8], status: u16) -> Row {
    Row { name: name.to_owned(), sent: Sent::Raw(request.to_vec()), status, says: "" }
}

#[test]
fn what_is_not_http_is_refused() {
    let mut target = Target::new();
    let path = format!("/{REPOSITORY}/git-receive-pack");
    let post = |headers: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{PUSH}\r\n{headers}\r\n\r\n{body}")
            .into_bytes()
    };
    let long = format!("X-Long: {}", "x".repeat(200_000));
    let many = (0..2000).map(|n| format!("X-{n}: y")).collect::<Vec<_>>().join("\r\n");
    let hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[7; 500]].concat();
    let rows = vec![
        raw("a greeting of TLS", &hello, 400),
        raw("no HTTP", b"git-upload-pack /app.git\0host=x\0\r\n\r\n", 400),
        raw("an unknown version", b"GET / HTTP/7.3\r\nHost: x\r\n\r\n", 400),
        raw("a line feed in a path", b"GET /a\nb HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        raw("a header without a colon", b"GET / HTTP/1.1\r\nHost\r\n\r\n", 400),
        raw("a header of 200,000 bytes", &post(&long, ""), 431),
        raw("2,000 headers", &post(&many, ""), 431),
        raw("a length that is negative", &post("Content-Length: -1", ""), 400),
        raw(
            "a length beyond all numbers",
            &post("Content-Length: 99999999999999999999999", ""),
            400,
        ),
        raw("two lengths", &post("Content-Length: 4\r\nContent-Length: 5", "0000"), 400),
        raw(
            "a length and chunks",
            &post("Content-Length: 4\r\nTransfer-Encoding: chunked", "4\r\n0000\r\n0\r\n\r\n"),
            200,
        ),
        raw("an unknown transfer encoding", &post("Transfer-Encoding: gzip", "0000"), 400),
        raw("a chunk of no size", &post("Transfer-Encoding: chunked", "zz\r\n0000\r\n"), 400),
        raw(
            "a chunk beyond all numbers",
            &post("Transfer-Encoding: chunked", "fffffffffffffffff\r\n"),
            400,
        ),
        raw(
            "an unknown compression",
            &post("Content-Encoding: zstd\r\nContent-Length: 4", "0000"),
            415,
        ),
        raw(
            "half of gzip",
            &post("Content-Encoding: gzip\r\nContent-Length: 4", "\x1f\x0b\x08\x00"),
            400,
        ),
    ];
    check(&mut target, rows);
}
