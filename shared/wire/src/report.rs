//! report-status: what became of each command of a push.
//!
//! [`encode`] writes the report as packets ending in a flush. Where the client asked for side-band-64k the whole of it is
//! the payload of band 1; see [`crate::side_band`].
//!
//! Source: git's `gitprotocol-pack`, "Report Status". `spec/refs.md` says which refs and oids a request reports.

use bstr::BString;
use gix_hash::Kind;
use zit_model::{Oid, RefName};

use crate::pkt;
use crate::receive::Report;
use crate::refs::push_oid_or_zero;

/// The longest reason for a refusal, in characters. It is one line of a terminal; the full text is progress.
pub const MAX_REASON: usize = 500;

/// The longest refname that a report repeats, in bytes; no valid name is longer than a packet by far.
const MAX_NAME: usize = 4096;

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandReport {
    /// The name as the client sent it: it finds its command by these bytes.
    pub name: BString,
    /// Done, and what it really did where that is not what the command says; or why not.
    pub result: Result<Vec<Rewritten>, String>,
}

/// An update that a command really made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The ref that moved, if not the one named.
    pub refname: Option<RefName>,
    /// Its value before; `None` when there was none.
    pub old: Option<Oid>,
    /// Its value now; `None` when it is gone.
    pub new: Option<Oid>,
    /// Whether the move was no fast-forward.
    pub forced: bool,
}

/// Writes a report in the form the client asked for; nothing at all when it asked for none.
///
/// `unpack` says whether the pack was taken in. The first form of the report has no place for [`Rewritten`].
#[must_use]
pub fn encode(
    form: Report,
    unpack: Result<(), &str>,
    commands: &[CommandReport],
    object_format: Kind,
) -> Vec<u8> {
    let mut out = Vec::new();
    if form == Report::None {
        return out;
    }
    line(&mut out, &[b"unpack ", unpack.err().map_or("ok".into(), one_line).as_bytes()]);
    for command in commands {
        write_command(&mut out, form, command, object_format);
    }
    pkt::flush(&mut out);
    out
}

fn write_command(out: &mut Vec<u8>, form: Report, command: &CommandReport, object_format: Kind) {
    let name = command.name.get(..MAX_NAME).unwrap_or(&command.name);
    match &command.result {
        Err(reason) => line(out, &[b"ng ", name, b" ", one_line(reason).as_bytes()]),
        Ok(rewritten) if form == Report::V2 && !rewritten.is_empty() => {
            // Each update is a group of its own, opened by the command's `ok`.
            for update in rewritten {
                line(out, &[b"ok ", name]);
                write_rewritten(out, update, object_format);
            }
        }
        Ok(_) => line(out, &[b"ok ", name]),
    }
}

fn write_rewritten(out: &mut Vec<u8>, update: &Rewritten, object_format: Kind) {
    if let Some(refname) = &update.refname {
        line(out, &[b"option refname ", refname.as_bstr()]);
    }
    for (option, oid) in [("old", update.old), ("new", update.new)] {
        pkt::text_with(out, |out| {
            out.extend_from_slice(format!("option {option}-oid ").as_bytes());
            push_oid_or_zero(out, oid, object_format);
        });
    }
    if update.forced {
        line(out, &[b"option forced-update"]);
    }
}

fn line(out: &mut Vec<u8>, parts: &[&[u8]]) {
    pkt::text_with(out, |out| parts.iter().for_each(|part| out.extend_from_slice(part)));
}

/// Folds text to one line that can neither end its packet's line nor steer a terminal.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return "refused".to_owned();
    }
    words.join(" ").chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;

    fn oid(digit: u8) -> Oid {
        Oid::from_hex(&[digit; 40]).unwrap()
    }

    /// The report's lines, their framing taken off.
    fn lines(report: &[u8]) -> Vec<String> {
        let (mut lines, mut rest) = (Vec::new(), report);
        while let Ok(pkt::Decoded::Complete { packet, consumed }) = pkt::decode(rest) {
            lines.push(packet.as_line().map_or("flush".to_owned(), |line| format!("{line:?}")));
            rest = &rest[consumed..];
        }
        assert!(rest.is_empty());
        lines
    }

    fn updates() -> Vec<CommandReport> {
        let current = Rewritten {
            refname: Some("refs/zit/current".parse().unwrap()),
            old: Some(oid(b'1')),
            new: Some(oid(b'2')),
            forced: false,
        };
        let gone = Rewritten { refname: None, old: Some(oid(b'1')), new: None, forced: true };
        vec![
            CommandReport { name: "refs/heads/a".into(), result: Ok(vec![]) },
            CommandReport { name: "refs/for/main".into(), result: Ok(vec![current, gone]) },
            CommandReport {
                name: "refs/heads/b".into(),
                result: Err("held by\n\tclaude\u{1b}[31m".into()),
            },
        ]
    }

    #[test]
    fn the_second_form_says_what_really_moved() {
        let report = encode(Report::V2, Ok(()), &updates(), Kind::Sha1);
        let expected = [
            r#""unpack ok""#,
            r#""ok refs/heads/a""#,
            r#""ok refs/for/main""#,
            r#""option refname refs/zit/current""#,
            r#""option old-oid 1111111111111111111111111111111111111111""#,
            r#""option new-oid 2222222222222222222222222222222222222222""#,
            r#""ok refs/for/main""#,
            r#""option old-oid 1111111111111111111111111111111111111111""#,
            r#""option new-oid 0000000000000000000000000000000000000000""#,
            r#""option forced-update""#,
            r#""ng refs/heads/b held by claude [31m""#,
            "flush",
        ];
        assert_eq!(lines(&report), expected);
    }

    #[test]
    fn the_first_form_says_ok_once_and_no_options() {
        let report = encode(Report::V1, Err("index-pack\nfailed"), &updates(), Kind::Sha1);
        let expected = [
            r#""unpack index-pack failed""#,
            r#""ok refs/heads/a""#,
            r#""ok refs/for/main""#,
            r#""ng refs/heads/b held by claude [31m""#,
            "flush",
        ];
        assert_eq!(lines(&report), expected);
    }

    #[test]
    fn a_client_that_asked_for_no_report_gets_no_byte() {
        assert_eq!(encode(Report::None, Ok(()), &updates(), Kind::Sha1), b"");
    }

    #[test]
    fn an_empty_reason_still_says_that_the_ref_was_refused() {
        let command = CommandReport { name: "refs/x".into(), result: Err(" \n".into()) };
        let report = encode(Report::V2, Ok(()), &[command], Kind::Sha1);
        assert!(report.contains_str("ng refs/x refused\n"));
    }

    #[test]
    fn a_name_and_a_reason_of_any_length_stay_one_whole_line() {
        let name = BString::from(vec![b'a'; 70_000]);
        let command = CommandReport { name, result: Err("é".repeat(70_000)) };
        let report = encode(Report::V2, Ok(()), &[command], Kind::Sha1);
        let expected = format!("ng {} {}\n", "a".repeat(MAX_NAME), "é".repeat(MAX_REASON));
        assert!(report.contains_str(expected));
    }
}
