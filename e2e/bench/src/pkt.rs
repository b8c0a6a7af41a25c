//! Just enough of git's protocol to send the measured requests and to see that the answers are what was asked for.
//!
//! Pure. It shares no code with the server, so that one mistake cannot hide in both.

use anyhow::{Result, bail};

/// The oid that stands for "no object".
pub(crate) const ZERO: &str = "0000000000000000000000000000000000000000";

/// A pack without objects, as `git pack-objects` writes it.
const EMPTY_PACK: [u8; 32] = *b"PACK\0\0\0\x02\0\0\0\0\
    \x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

const FLUSH: &str = "0000";
const DELIMITER: &str = "0001";

/// `ls-refs` of protocol v2 for the refs that begin with `prefix`.
pub(crate) fn ls_refs(prefix: &str) -> Vec<u8> {
    let head = command("ls-refs");
    let prefix = line(&format!("ref-prefix {prefix}\n"));
    [&head, DELIMITER, &line("peel\n"), &line("symrefs\n"), &prefix, FLUSH].concat().into_bytes()
}

/// `fetch` of protocol v2: `want` for a client that has `have`, in one round.
pub(crate) fn fetch(want: &str, have: &str) -> Vec<u8> {
    let head = command("fetch");
    let (want, have) = (line(&format!("want {want}\n")), line(&format!("have {have}\n")));
    let words = ["thin-pack\n", "no-progress\n", "ofs-delta\n"].map(line).concat();
    [&head, DELIMITER, &words, &want, &have, &line("done\n"), FLUSH].concat().into_bytes()
}

/// A push of one ref whose new value the server already has.
pub(crate) fn push(old: &str, new: &str, refname: &str) -> Vec<u8> {
    let capabilities = "report-status-v2 side-band-64k object-format=sha1 agent=zit-bench";
    let command = line(&format!("{old} {new} {refname}\0 {capabilities}"));
    [command.as_bytes(), FLUSH.as_bytes(), &EMPTY_PACK].concat()
}

/// A push that creates refs, whose value the server has.
pub(crate) fn push_all(new: &str, names: &[String]) -> Vec<u8> {
    let capabilities = "\0 report-status-v2 side-band-64k object-format=sha1 agent=zit-bench";
    let command = |(n, name): (usize, &String)| {
        line(&format!("{ZERO} {new} {name}{}", if n == 0 { capabilities } else { "" }))
    };
    let commands = names.iter().enumerate().map(command).collect::<String>();
    [commands.as_bytes(), FLUSH.as_bytes(), &EMPTY_PACK].concat()
}

/// What became of a push of one ref.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The ref was moved, or the request carried out.
    Ok,
    /// It was refused, with this reason.
    Ng(String),
}

/// Reads the answer to [`push`].
///
/// # Errors
/// When it is not a report on one ref.
pub(crate) fn report(body: &[u8]) -> Result<Report> {
    let mut status = Vec::new();
    for packet in packets(body) {
        match packet.split_first() {
            Some((1, data)) => status.extend_from_slice(data),
            Some((3, data)) => bail!("push refused: {}", String::from_utf8_lossy(data)),
            Some(_) | None => {}
        }
    }
    for packet in packets(&status) {
        let text = String::from_utf8_lossy(packet);
        if text.starts_with("ok ") {
            return Ok(Report::Ok);
        }
        if let Some(reason) = text.strip_prefix("ng ") {
            return Ok(Report::Ng(reason.trim_end().to_owned()));
        }
    }
    bail!("no report on the ref in {:?}", String::from_utf8_lossy(body))
}

/// How many packets `body` has before its flush.
pub(crate) fn count(body: &[u8]) -> usize {
    packets(body).count()
}

/// The oid that `ls-refs` gave for its first ref.
pub(crate) fn first_oid(body: &[u8]) -> Option<String> {
    let packet = packets(body).next()?;
    Some(String::from_utf8_lossy(packet.get(..ZERO.len())?).into_owned())
}

/// Whether an answer to [`fetch`] carries a pack up to its flush.
pub(crate) fn has_pack(body: &[u8]) -> bool {
    let mut packets = packets(body);
    packets.any(|packet| packet == b"packfile\n")
        && packets.any(|data| data.starts_with(b"\x01PACK"))
}

fn command(name: &str) -> String {
    let command = line(&format!("command={name}\n"));
    [command, line("agent=zit-bench\n"), line("object-format=sha1\n")].concat()
}

fn line(text: &str) -> String {
    format!("{:04x}{text}", text.len() + FLUSH.len())
}

/// The packets of `bytes` up to the first flush, or up to where they stop making sense.
fn packets(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let size = std::str::from_utf8(bytes.get(..4)?).ok()?;
        let size = usize::from_str_radix(size, 16).ok()?;
        let packet = bytes.get(4..size)?;
        bytes = bytes.get(size..)?;
        Some(packet)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer whose side-band 1 carries `lines`.
    fn answer(lines: &[&str]) -> Vec<u8> {
        let status = lines.iter().map(|text| line(text)).collect::<String>();
        let banded = [line("\u{2}hello\n"), line(&format!("\u{1}{status}{FLUSH}"))];
        (banded.concat() + FLUSH).into_bytes()
    }

    #[test]
    fn a_report_tells_what_became_of_the_ref() {
        let read = |lines: &[&str]| report(&answer(lines)).map_err(|error| error.to_string());
        assert_eq!(read(&["unpack ok\n", "ok refs/heads/a\n"]), Ok(Report::Ok));
        let refused = Report::Ng("refs/heads/a held".to_owned());
        assert_eq!(read(&["unpack ok\n", "ng refs/heads/a held\n"]), Ok(refused));
        assert!(read(&["unpack ok\n"]).is_err());
    }

    #[test]
    fn a_request_is_written_as_git_writes_it() {
        let head = "0014command=ls-refs\n0014agent=zit-bench\n0017object-format=sha1\n";
        let rest = "00010009peel\n000csymrefs\n0017ref-prefix refs/a/\n0000";
        assert_eq!(String::from_utf8(ls_refs("refs/a/")).unwrap(), [head, rest].concat());
    }

    #[test]
    fn the_refs_of_a_listing_are_counted_up_to_its_flush() {
        let oid = "1".repeat(40);
        let body = line(&format!("{oid} refs/a\n")) + &line("x") + FLUSH + &line("y");
        assert_eq!(count(body.as_bytes()), 2);
        assert_eq!(first_oid(body.as_bytes()), Some(oid));
    }
}
