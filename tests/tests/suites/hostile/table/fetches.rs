//! Requests of a fetch for what is not there, or that make no sense.

use zit_tests::wire::pkt;

use super::super::Target;
use super::{Row, Sent, check, fetch};

/// A request of protocol 2: a command, its capabilities, a delimiter, arguments and a flush.
fn request(command: &str, capabilities: &[&str], arguments: &[String]) -> Vec<u8> {
    let mut body = pkt(format!("command={command}\n").as_bytes());
    for capability in capabilities {
        body.extend(pkt(format!("{capability}\n").as_bytes()));
    }
    body.extend_from_slice(b"0001");
    for argument in arguments {
        body.extend(pkt(format!("{argument}\n").as_bytes()));
    }
    body.extend_from_slice(b"0000");
    body
}

/// A fetch of the mainline with one more argument.
fn with(target: &Target, argument: &str, says: &'static str) -> Row {
    let arguments = [format!("want {}", target.base), argument.to_owned(), "done".to_owned()];
    fetch(&format!("a fetch with {argument:?}"), request("fetch", &[], &arguments), says)
}

#[test]
fn fetches_that_make_no_sense_are_refused() {
    let mut target = Target::new();
    for (name, value) in [("uploadpack.allowFilter", "true"), ("uploadpack.allowRefInWant", "true")]
    {
        target.bare.ok(["config", name, value]);
    }
    let t = &target;
    let absent = "1234567890".repeat(4);
    let want = format!("want {}", t.base);
    let long = format!("agent={}", "a".repeat(200_000 / 4));
    let head =
        |capability: &str| request("fetch", &[capability], &[want.clone(), "done".to_owned()]);
    let rows = vec![
        with(t, &format!("want {absent}"), "not our ref"),
        with(t, "want 12", "want 12"),
        with(t, &format!("want {}", "1".repeat(64)), "want 11"),
        with(t, "have 12", "have 12"),
        with(t, "deepen -1", "deepen"),
        with(t, "deepen 0", "deepen"),
        with(t, "deepen 99999999999999999999", "deepen"),
        with(t, "deepen many", "deepen"),
        with(t, "deepen-since yesterday", "deepen"),
        with(t, "deepen-not refs/heads/none", "deepen"),
        with(t, "shallow 12", "shallow"),
        with(t, "filter nonsense:1", "filter"),
        with(t, "filter combine:", "after combine:"),
        with(t, "filter sparse:path=x", "sparse"),
        with(t, "filter blob:limit=-1", "filter"),
        with(t, "want-ref refs/heads/none", "unknown ref"),
        with(t, "want-ref ../../etc/passwd", "unknown ref"),
        with(t, "evil", "unexpected"),
        with(t, "want\0", "unexpected"),
        fetch("a capability of 50,000 bytes", head(&long), ""),
        fetch("another object format", head("object-format=sha256"), "object format"),
        fetch("an unknown object format", head("object-format=md5"), "object format"),
        fetch("no arguments", request("fetch", &[], &[]), ""),
        fetch("an unknown command", request("evil", &[], &[]), "evil"),
        fetch("no command", b"00010000".to_vec(), ""),
        fetch(
            "two commands",
            [pkt(b"command=fetch\n"), pkt(b"command=ls-refs\n"), b"0000".to_vec()].concat(),
            "",
        ),
        fetch("half a request", pkt(b"command=fetch\n"), "early"),
        fetch(
            "a request that goes on",
            [request("fetch", &[], std::slice::from_ref(&want)), b"0000".to_vec()].concat(),
            "follow",
        ),
        fetch(
            "a list of refs with an unknown argument",
            request("ls-refs", &[], &["evil".to_owned()]),
            "evil",
        ),
        fetch(
            "a list of refs for ten megabytes of prefixes",
            request("ls-refs", &[], &vec![format!("ref-prefix {}", "p".repeat(60_000)); 170]),
            "",
        ),
    ];
    check(&mut target, rows);
}

#[test]
fn many_wants_that_are_not_there_are_refused() {
    let mut target = Target::new();
    let wants: Vec<_> = (1..=100_000).map(|n| format!("want {n:040x}")).collect();
    let rows = vec![
        fetch("a hundred thousand wants", request("fetch", &[], &wants), "not our ref"),
        fetch("four thousand wants", request("fetch", &[], &wants[..4000]), "not our ref"),
    ];
    check(&mut target, rows);
}

/// A fetch of protocol 0.
fn old(name: &str, lines: &[&str]) -> Row {
    let mut body: Vec<u8> = lines.iter().flat_map(|line| pkt(line.as_bytes())).collect();
    body.extend_from_slice(b"0000");
    body.extend(pkt(b"done\n"));
    Row {
        name: format!("{name}, protocol 0"),
        sent: Sent::Fetch(0, body),
        status: 200,
        says: "ERR ",
    }
}

#[test]
fn old_fetches_that_make_no_sense_are_refused() {
    let mut target = Target::new();
    let want = format!("want {} side-band-64k", target.base);
    let rows = vec![
        old("a want that is not there", &[&format!("want {}", "1234567890".repeat(4))]),
        old("a want that is no oid", &["want nothing"]),
        old("a depth that is negative", &[&want, "deepen -1"]),
        old("a filter that is not offered", &[&want, "filter nonsense"]),
        old("an unknown line", &[&want, "evil"]),
    ];
    check(&mut target, rows);
}
