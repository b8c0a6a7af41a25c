//! Tests of the push request: what git sends, pieces of any size, and what a hostile peer may send.

use bstr::ByteSlice;
use proptest::prelude::*;
use zit_model::Oid;

use super::*;

const ZERO: &str = "0000000000000000000000000000000000000000";
const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";

fn oid(hex: &str) -> Oid {
    hex.parse().unwrap()
}

fn command(name: &str, old: Option<Oid>, new: Option<Oid>) -> Command {
    Command { name: name.into(), old, new }
}

/// Frames each line; `--` is a flush.
fn body(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        match *line {
            "--" => pkt::flush(&mut out),
            line => pkt::data(&mut out, line.as_bytes()).unwrap(),
        }
    }
    out
}

/// Feeds `bytes` in one piece.
fn read(bytes: &[u8]) -> Result<Progress, ReceiveError> {
    RequestReader::new(Kind::Sha1).feed(bytes)
}

#[track_caller]
fn read_whole(bytes: &[u8]) -> (PushRequest, usize) {
    match read(bytes) {
        Ok(Progress::Done { request, consumed }) => (request, consumed),
        other => panic!("not a whole request: {other:?}"),
    }
}

#[test]
fn a_push_of_a_shallow_clone_with_options_is_read_up_to_its_pack() {
    let bytes = body(&[
        &format!("shallow {TWO}"),
        &format!(
            "{ZERO} {ONE} refs/heads/a\0 report-status-v2 report-status side-band-64k atomic quiet push-options \
             object-format=sha1 agent=git/2.47.3 session-id=x unknown=y"
        ),
        &format!("{ONE} {TWO} refs/heads/b c\n"),
        &format!("{ONE} {ZERO} refs/heads/d"),
        &format!("{ZERO} {ZERO} refs/zit/release/a"),
        "--",
        "zit.claim=src/a.rs",
        "",
        "--",
    ]);
    let (request, consumed) = read_whole(&[&bytes, b"PACK".as_slice()].concat());
    let expected = PushRequest {
        cert: None,
        shallow: vec![oid(TWO)],
        commands: vec![
            command("refs/heads/a", None, Some(oid(ONE))),
            command("refs/heads/b c", Some(oid(ONE)), Some(oid(TWO))),
            command("refs/heads/d", Some(oid(ONE)), None),
            command("refs/zit/release/a", None, None),
        ],
        capabilities: ClientCapabilities {
            report: Report::V2,
            side_band_64k: true,
            atomic: true,
            quiet: true,
            push_options: true,
            agent: Some("git/2.47.3".into()),
            session_id: Some("x".into()),
        },
        options: vec!["zit.claim=src/a.rs".into(), "".into()],
    };
    assert_eq!((request, consumed), (expected, bytes.len()));
}

#[test]
fn the_pack_follows_the_commands_at_once_when_no_options_were_announced() {
    let bytes = body(&[&format!("{ZERO} {ONE} refs/heads/a\0report-status"), "--"]);
    let (request, consumed) = read_whole(&[&bytes, b"PACK".as_slice()].concat());
    assert_eq!(consumed, bytes.len());
    assert_eq!(request.capabilities.report, Report::V1);
    assert!(request.expects_pack());
}

#[test]
fn a_push_that_also_deletes_sends_a_pack() {
    let (request, _) = read_whole(&body(&[
        &format!("{ONE} {ZERO} refs/heads/a\0"),
        &format!("{ZERO} {ONE} refs/heads/b"),
        "--",
    ]));
    assert!(request.expects_pack());
}

#[test]
fn a_push_that_only_deletes_sends_no_pack() {
    for old in [ONE, ZERO] {
        let (request, _) = read_whole(&body(&[&format!("{old} {ZERO} refs/heads/a\0"), "--"]));
        assert!(!request.expects_pack(), "old {old}");
        assert!(!request.is_probe(), "old {old}");
    }
}

#[test]
fn a_lone_flush_is_a_probe() {
    let (request, consumed) = read_whole(b"0000");
    assert_eq!((&request, consumed), (&PushRequest::default(), 4));
    assert!(request.is_probe());
}

#[test]
fn names_that_repeat_are_told() {
    let line = |name| format!("{ZERO} {ONE} {name}");
    let (request, _) =
        read_whole(&body(&[&line("b"), &line("a"), &line("c"), &line("b"), &line("b"), "--"]));
    assert_eq!(request.duplicates().into_iter().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_repository_of_sha256_wants_its_own_oids_and_that_the_client_says_so() {
    let (zero, one) = ("0".repeat(64), "1".repeat(64));
    let feed = |line: &str| RequestReader::new(Kind::Sha256).feed(&body(&[line, "--"]));
    let told = feed(&format!("{zero} {one} refs/x\0object-format=sha256"));
    assert!(matches!(told, Ok(Progress::Done { .. })), "{told:?}");
    let untold = feed(&format!("{zero} {one} refs/x\0report-status")).unwrap_err();
    assert_eq!(untold.to_string(), "mismatched object format: server sha256, client \"sha1\"");
    let short = feed(&format!("{ZERO} {ONE} refs/x\0object-format=sha256")).unwrap_err();
    assert!(matches!(short, ReceiveError::Command(_)), "{short}");
}

#[test]
fn the_commands_of_a_certificate_are_those_of_the_push() {
    let bytes = body(&[
        "push-cert\0report-status-v2 push-options\n",
        "certificate version 0.1\n",
        "nonce 1-a\n",
        "push-option a b\n",
        "\n",
        &format!("{ZERO} {ONE} refs/heads/a\n"),
        &format!("{ONE} {ZERO} refs/heads/b\n"),
        "-----BEGIN SSH SIGNATURE-----\n",
        "x\n",
        "push-cert-end\n",
        "--",
        "a b",
        "--",
    ]);
    let (request, consumed) = read_whole(&bytes);
    assert_eq!(consumed, bytes.len());
    let expected = [
        command("refs/heads/a", None, Some(oid(ONE))),
        command("refs/heads/b", Some(oid(ONE)), None),
    ];
    assert_eq!(request.commands, expected);
    assert!(request.signs_its_options() && request.capabilities.push_options);
    let unsigned = PushRequest { options: vec!["a".into(), "b".into()], ..request.clone() };
    assert!(!unsigned.signs_its_options());
    let cert = request.cert.unwrap();
    assert_eq!(cert.nonce(), Some("1-a".into()));
    assert_eq!(cert.signature(), b"-----BEGIN SSH SIGNATURE-----\nx\n");
    assert_eq!([cert.payload(), cert.signature()].concat(), cert.text());
}

#[test]
fn a_certificate_signs_every_byte_of_its_lines() {
    let bytes = body(&[
        "push-cert\0report-status-v2 push-options\n",
        "nonce 1-a\r\n",
        "push-option a\r\n",
        "\n",
        &format!("{ZERO} {ONE} refs/heads/a\r\n"),
        "-----BEGIN SSH SIGNATURE-----\n",
        "push-cert-end\n",
        "--",
        "a\r",
        "--",
    ]);
    let (request, _) = read_whole(&bytes);
    assert_eq!(request.commands, [command("refs/heads/a\r", None, Some(oid(ONE)))]);
    assert!(request.signs_its_options());
    let other = PushRequest { options: vec!["a".into()], ..request.clone() };
    assert!(!other.signs_its_options());
    assert_eq!(request.cert.unwrap().nonce(), Some("1-a\r".into()));
}

#[test]
fn each_malformed_request_says_what_is_wrong_with_it() {
    let line = |rest: &str| body(&[&format!("{ZERO} {ONE} {rest}"), "--"]);
    let first = format!("{ZERO} {ONE} refs/a\0push-options");
    let cases: &[(Vec<u8>, &str)] = &[
        (body(&[""]), "expected old-oid, new-oid and refname, got \"\""),
        (body(&["hello"]), "expected old-oid, new-oid and refname, got \"hello\""),
        (
            body(&[&format!("{ZERO} {ONE}")]),
            &format!("expected old-oid, new-oid and refname, got \"{ZERO} {ONE}\""),
        ),
        (
            body(&[&format!("{ZERO}  {ONE} a")]),
            &format!("expected old-oid, new-oid and refname, got \"{ZERO}  {ONE} a\""),
        ),
        (
            body(&[&format!("{} {ONE} a", "g".repeat(40))]),
            &format!("expected old-oid, new-oid and refname, got \"{} {ONE} a\"", "g".repeat(40)),
        ),
        (body(&["shallow"]), "expected old-oid, new-oid and refname, got \"shallow\""),
        (body(&["shallow 12"]), "expected an object id after shallow, got \"12\""),
        (
            body(&[&format!("shallow {ZERO}")]),
            &format!("expected an object id after shallow, got \"{ZERO}\""),
        ),
        (
            body(&[&format!("shallow {ONE} ")]),
            &format!("expected an object id after shallow, got \"{ONE} \""),
        ),
        (body(&["push-cert\0report-status", "--"]), "malformed push certificate \"\""),
        (
            body(&["push-cert\0", "a\n", "\n", "x\0y\n", "--"]),
            "malformed push certificate \"a\\n\\nx\\0y\\n\"",
        ),
        (
            body(&["push-cert\0", "a\n", "\n", "push-cert-end\n", &format!("{ZERO} {ONE} b")]),
            "got both push certificate and unsigned commands",
        ),
        (
            body(&[&first, "push-cert\0", "a\n", "\n", "push-cert-end\n"]),
            "capabilities belong behind the first command, found them behind \"push-cert\"",
        ),
        (
            body(&["push-cert\0", "a\n", "\n", "no command\n", "push-cert-end\n", "--"]),
            "expected old-oid, new-oid and refname, got \"no command\"",
        ),
        (
            line("a\0object-format=sha256"),
            "mismatched object format: server sha1, client \"sha256\"",
        ),
        (line("a\0object-format"), "mismatched object format: server sha1, client \"\""),
        (
            body(&[&first, &format!("{ZERO} {ONE} b\0quiet")]),
            &format!(
                "capabilities belong behind the first command, found them behind \"{ZERO} {ONE} b\""
            ),
        ),
        (b"0001".to_vec(), "unexpected delim packet in a push request"),
        (b"0002".to_vec(), "unexpected response-end packet in a push request"),
        (
            [body(&[&first, "--"]), b"0001".to_vec()].concat(),
            "unexpected delim packet in a push request",
        ),
        (b"PACK".to_vec(), "bad pkt-line length \"PACK\": not four hexadecimal digits"),
        (b"ffff".to_vec(), "bad pkt-line length 65535: the longest packet has 65520 bytes"),
        ([body(&[&first, "--"]), b"0003".to_vec()].concat(), "bad pkt-line length 0003: reserved"),
    ];
    for (bytes, expected) in cases {
        let found = read(bytes).map_err(|e| e.to_string());
        assert_eq!(found, Err((*expected).to_owned()), "{:?}", bytes.as_bstr());
    }
}

#[test]
fn a_request_that_ends_early_says_where() {
    let commands = body(&[&format!("{ZERO} {ONE} refs/a\0push-options")]);
    for (bytes, expected) in [
        (b"00".to_vec(), "push request ends early, while reading commands"),
        (commands.clone(), "push request ends early, while reading commands"),
        (
            [commands, b"0000".to_vec()].concat(),
            "push request ends early, while reading push options",
        ),
    ] {
        let mut reader = RequestReader::new(Kind::Sha1);
        reader.feed(&bytes).unwrap();
        assert_eq!(reader.finish().unwrap_err().to_string(), expected);
    }
    assert_eq!(RequestReader::new(Kind::Sha1).finish(), Ok(PushRequest::default()));
}

#[test]
fn a_request_that_has_ended_takes_no_more() {
    let mut reader = RequestReader::new(Kind::Sha1);
    assert!(matches!(reader.feed(b"0000"), Ok(Progress::Done { .. })));
    assert_eq!(reader.feed(b"0000"), Err(ReceiveError::AfterEnd));
    let done = Receive::Done(PushRequest::default());
    assert_eq!(done.step(Packet::Flush).unwrap_err(), ReceiveError::AfterEnd);
}

/// Steps with the same line until it is refused, and says how many were taken.
fn steps_until_refused(mut state: Receive, line: &[u8]) -> (usize, ReceiveError) {
    for n_taken in 0.. {
        state = match state.step(Packet::Data(line)) {
            Ok(state) => state,
            Err(error) => return (n_taken, error),
        };
    }
    unreachable!("a limit ends the loop")
}

#[test]
fn each_limit_refuses_the_first_line_beyond_it() {
    let reading_options = || {
        let line = format!("{ZERO} {ONE} refs/a\0push-options");
        Receive::new(Kind::Sha1)
            .step(Packet::Data(line.as_bytes()))
            .unwrap()
            .step(Packet::Flush)
            .unwrap()
    };
    let command = format!("{ZERO} {ONE} refs/a");
    let shallow = format!("shallow {ONE}");
    let long = format!("{ZERO} {ONE} {}", "x".repeat(60_000));
    for (state, line, n_taken, expected) in [
        (Receive::new(Kind::Sha1), command.as_str(), MAX_COMMANDS, COMMANDS),
        (Receive::new(Kind::Sha1), &shallow, MAX_COMMANDS, COMMANDS),
        (Receive::new(Kind::Sha1), &long, MAX_COMMAND_BYTES / long.len(), COMMAND_BYTES),
        (reading_options(), "", MAX_OPTIONS, OPTIONS),
        (reading_options(), &"x".repeat(1000), MAX_OPTION_BYTES / 1000, OPTION_BYTES),
    ] {
        let (found, error) = steps_until_refused(state, line.as_bytes());
        assert!(
            matches!(error, ReceiveError::TooMuch { of, .. } if of == expected),
            "{expected}: {error}"
        );
        assert_eq!(found, n_taken, "{expected}");
        assert!(
            error.hint().is_some_and(|hint| hint.starts_with("push in several steps")),
            "{expected}"
        );
    }
}

fn any_oid() -> impl Strategy<Value = Option<Oid>> {
    proptest::option::of("[0-9a-f]{39}1".prop_map(|hex| hex.parse().unwrap()))
}

fn any_request() -> impl Strategy<Value = PushRequest> {
    let command = ("[^\0\n]{0,40}", any_oid(), any_oid()).prop_map(|(name, old, new)| Command {
        name: name.into(),
        old,
        new,
    });
    let commands = proptest::collection::vec(command, 1..6);
    let options = proptest::collection::vec("[^\n]{0,40}", 0..4);
    let shallow = proptest::collection::vec("[0-9a-f]{39}1", 0..3);
    (commands, options, shallow, any::<bool>()).prop_map(|(commands, options, shallow, atomic)| {
        PushRequest {
            cert: None,
            shallow: shallow.iter().map(|hex| hex.parse().unwrap()).collect(),
            commands,
            capabilities: ClientCapabilities {
                report: Report::V2,
                push_options: !options.is_empty(),
                atomic,
                ..ClientCapabilities::default()
            },
            options: options.into_iter().map(BString::from).collect(),
        }
    })
}

/// Writes a request as git's client does.
fn encode(request: &PushRequest) -> Vec<u8> {
    let mut out = Vec::new();
    for oid in &request.shallow {
        pkt::text(&mut out, format!("shallow {oid}").as_bytes()).unwrap();
    }
    let hex = |oid: Option<Oid>| oid.map_or(ZERO.to_owned(), |oid| oid.to_string());
    for (i, command) in request.commands.iter().enumerate() {
        let mut line = format!("{} {} {}", hex(command.old), hex(command.new), command.name);
        if i == 0 {
            line.push_str("\0 report-status-v2");
            for (chosen, name) in [
                (request.capabilities.atomic, " atomic"),
                (request.capabilities.push_options, " push-options"),
            ] {
                line.push_str(if chosen { name } else { "" });
            }
        }
        pkt::data(&mut out, line.as_bytes()).unwrap();
    }
    pkt::flush(&mut out);
    if request.capabilities.push_options {
        for option in &request.options {
            pkt::data(&mut out, option).unwrap();
        }
        pkt::flush(&mut out);
    }
    out
}

proptest! {
    #[test]
    fn a_request_reads_the_same_whatever_pieces_it_arrives_in(
        request in any_request(),
        pieces in proptest::collection::vec(0usize..40, 0..30),
    ) {
        let head = encode(&request);
        let bytes = [&head, b"PACK\0\0\0\x02".as_slice()].concat();
        let mut reader = RequestReader::new(Kind::Sha1);
        let mut start = 0_usize;
        let mut pieces = pieces.into_iter().chain(std::iter::once(usize::MAX));
        loop {
            let end = start.saturating_add(pieces.next().unwrap()).min(bytes.len());
            match reader.feed(&bytes[start..end]).unwrap() {
                Progress::More { needed } => {
                    prop_assert!(needed > 0);
                    start = end;
                }
                Progress::Done { request: found, consumed } => {
                    prop_assert_eq!(&found, &request);
                    prop_assert_eq!(start + consumed, head.len());
                    break;
                }
            }
        }
    }

    #[test]
    fn a_request_with_bytes_changed_is_read_or_refused_without_panic(
        request in any_request(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&request);
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(Progress::Done { consumed, .. }) = read(&bytes) {
            prop_assert!(consumed <= bytes.len());
        }
    }
}
