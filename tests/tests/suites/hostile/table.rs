//! A table of bad input over HTTP: what is sent, and the answer that it gets.
//!
//! Each row is sent to one server, and then [`Target::unharmed`] looks whether the server lives and whether the
//! repository holds what it held. No answer may take longer than [`MAX_TIME`], and no row may make the server's memory
//! grow by more than [`MAX_GROWTH_KIB`]. A table tells all rows that went wrong at once.

mod fetches;
mod objects;
mod packs;
mod requests;

use std::time::{Duration, Instant};

use zit_tests::http::{self, Response};
use zit_tests::wire::{PushBody, Report, ZERO};

use super::{REPOSITORY, Target, pack};

/// How long an answer may take: far more than any needs, on a machine that is busy.
const MAX_TIME: Duration = Duration::from_secs(30);

/// By how much a request may raise what the server ever held: what a small pack may take, and what threads keep.
const MAX_GROWTH_KIB: u64 = 96 * 1024;

const PUSH: &str = "Content-Type: application/x-git-receive-pack-request";
const FETCH: &str = "Content-Type: application/x-git-upload-pack-request";

/// What is sent.
enum Sent {
    /// The body of a push.
    Push(Vec<u8>),
    /// The body of a fetch, with the version of the protocol.
    Fetch(u8, Vec<u8>),
    /// One request over a connection of its own, raw.
    Raw(Vec<u8>),
}

struct Row {
    name: String,
    sent: Sent,
    status: u16,
    /// What the answer says.
    says: &'static str,
}

/// A push that is refused with a report or on band 3.
fn push(name: &str, body: Vec<u8>, says: &'static str) -> Row {
    Row { name: name.to_owned(), sent: Sent::Push(body), status: 200, says }
}

/// A fetch of protocol 2 that is answered with an `ERR` packet.
fn fetch(name: &str, body: Vec<u8>, says: &'static str) -> Row {
    Row { name: name.to_owned(), sent: Sent::Fetch(2, body), status: 200, says }
}

/// Sends every row, and looks at the answers.
#[track_caller]
fn check(target: &mut Target, rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for row in rows {
        let held = target.server.peak_resident_kib();
        let begun = Instant::now();
        let (status, said) = send(target, row.sent);
        let took = begun.elapsed();
        target.unharmed(&row.name);
        let grown = target.server.peak_resident_kib() - held;
        let name = row.name;
        if status != row.status || !said.contains(row.says) {
            wrong.push(format!(
                "{name}: expected {} {:?}, got {status} {said:?}",
                row.status, row.says
            ));
        }
        if took > MAX_TIME || grown > MAX_GROWTH_KIB {
            wrong.push(format!("{name}: took {took:?} and {grown} KiB"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The status of the answer and what it says against the request.
fn send(target: &Target, sent: Sent) -> (u16, String) {
    let address = target.server.address();
    match sent {
        Sent::Push(body) => {
            let response = http::push(address, REPOSITORY, &body);
            let report = Report::read(&response.body);
            let refusals = report.refusals().join("\n");
            (response.status, if response.status == 200 { refusals } else { response.text() })
        }
        Sent::Fetch(version, body) => {
            let version = format!("Git-Protocol: version={version}");
            let headers = [FETCH, version.as_str()];
            refused(&http::request(address, "POST", "/app.git/git-upload-pack", &headers, &body))
        }
        Sent::Raw(bytes) => {
            let answer = http::exchange(address, &bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(&answer).into_owned();
            let status =
                text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
            (status.unwrap_or_default(), text)
        }
    }
}

/// An answer to a fetch; nothing is said against the request where there is a pack in it.
fn refused(response: &Response) -> (u16, String) {
    let text = response.text();
    (response.status, if text.contains("PACK") { String::new() } else { text })
}

/// A push of a new branch at the commit `new`, which `pack` holds.
fn branch(new: &str, pack: &[u8]) -> Vec<u8> {
    PushBody::of(ZERO, new, "refs/heads/x", pack).encode()
}
