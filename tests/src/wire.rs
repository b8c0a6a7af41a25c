//! Just enough of git's push protocol to send pushes that no git would, and to read the answers.
//!
//! Written apart from the product's own decoder, so that one mistake cannot hide in both.

/// The oid that stands for "no object".
pub const ZERO: &str = "0000000000000000000000000000000000000000";

/// A pack without objects.
pub const EMPTY_PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\0\
    \x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

/// What a stock client asks for.
pub const CAPABILITIES: &str =
    " report-status-v2 side-band-64k quiet push-options object-format=sha1 agent=git/test";

/// The body of one push.
#[derive(Clone, Debug, Default)]
pub struct PushBody {
    /// `<old> <new> <refname>`, raw, so that any of them may be nonsense.
    pub commands: Vec<Vec<u8>>,
    /// Push options, raw.
    pub options: Vec<Vec<u8>>,
    /// The pack, or nothing for a push that only deletes.
    pub pack: Vec<u8>,
    /// Whether all commands are to be done or none.
    pub atomic: bool,
}

impl PushBody {
    /// A push of one ref.
    pub fn of(old: &str, new: &str, refname: &str, pack: &[u8]) -> Self {
        let command = format!("{old} {new} {refname}").into_bytes();
        Self { commands: vec![command], pack: pack.to_vec(), ..Self::default() }
    }

    /// The same push with one more option.
    #[must_use = "the receiver is used up"]
    pub fn with_option(mut self, option: impl AsRef<[u8]>) -> Self {
        self.options.push(option.as_ref().to_vec());
        self
    }

    /// The bytes that go over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (index, command) in self.commands.iter().enumerate() {
            let mut line = command.clone();
            if index == 0 {
                line.push(0);
                line.extend_from_slice(CAPABILITIES.as_bytes());
                line.extend_from_slice(if self.atomic { b" atomic" } else { b"" });
            }
            body.extend(pkt(&line));
        }
        body.extend_from_slice(b"0000");
        for option in &self.options {
            body.extend(pkt(option));
        }
        body.extend_from_slice(b"0000");
        body.extend_from_slice(&self.pack);
        body
    }
}

/// One pkt-line.
pub fn pkt(payload: &[u8]) -> Vec<u8> {
    let mut line = format!("{:04x}", payload.len() + 4).into_bytes();
    line.extend_from_slice(payload);
    line
}

/// What the server answered to a push.
#[derive(Debug, Default)]
pub struct Report {
    /// The lines of report-status: `unpack …`, `ok …`, `ng …`, `option …`.
    pub lines: Vec<String>,
    /// What a person reads.
    pub progress: String,
    /// The fatal error of side-band 3.
    pub fatal: String,
}

impl Report {
    /// Reads the answer to a push that asked for side-band-64k.
    pub fn read(body: &[u8]) -> Self {
        let mut report = Self::default();
        let (mut status, mut progress, mut fatal) = (Vec::new(), Vec::new(), Vec::new());
        for packet in packets(body) {
            match packet.split_first() {
                Some((1, data)) => status.extend_from_slice(data),
                Some((2, data)) => progress.extend_from_slice(data),
                Some((3, data)) => fatal.extend_from_slice(data),
                Some(_) | None => {}
            }
        }
        for packet in packets(&status) {
            report.lines.push(String::from_utf8_lossy(packet).trim_end().to_owned());
        }
        report.progress = String::from_utf8_lossy(&progress).into_owned();
        report.fatal = String::from_utf8_lossy(&fatal).into_owned();
        report
    }

    /// Reads the answer to a push that asked for no side-band.
    pub fn read_bare(body: &[u8]) -> Self {
        let line = |packet: &[u8]| String::from_utf8_lossy(packet).trim_end().to_owned();
        Self { lines: packets(body).into_iter().map(line).collect(), ..Self::default() }
    }

    /// The lines that refuse something: `ng` lines, an `unpack` that is not ok, a fatal error.
    pub fn refusals(&self) -> Vec<&str> {
        let lines = self.lines.iter().map(String::as_str);
        let refused = |line: &&str| {
            line.starts_with("ng ") || (line.starts_with("unpack ") && *line != "unpack ok")
        };
        lines.filter(refused).chain(Some(self.fatal.as_str()).filter(|f| !f.is_empty())).collect()
    }
}

/// The names and oids in an answer to `ls-refs`, or nothing if the answer is cut off.
pub fn listed(body: &[u8]) -> Option<Vec<(String, String)>> {
    let end = body.len().checked_sub(4)?;
    let refs = packets(body).into_iter().filter_map(|packet| {
        let line = String::from_utf8_lossy(packet);
        let (oid, refname) = line.trim_end().split_once(' ')?;
        Some((refname.to_owned(), oid.to_owned()))
    });
    (&body[end..] == b"0000").then(|| refs.collect())
}

/// The packets of `bytes` up to the first flush, or up to where they stop making sense.
fn packets(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while let Some(size) = bytes.get(..4).and_then(|head| std::str::from_utf8(head).ok()) {
        let Ok(size @ 4..) = usize::from_str_radix(size, 16) else { break };
        let Some(packet) = bytes.get(4..size) else { break };
        packets.push(packet);
        bytes = &bytes[size..];
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_refs_that_is_cut_off_is_no_list() {
        let body = [pkt(b"01ab refs/heads/a\n"), b"0000".to_vec()].concat();
        assert_eq!(listed(&body), Some(vec![("refs/heads/a".to_owned(), "01ab".to_owned())]));
        assert_eq!(listed(&body[..body.len() - 4]), None);
    }

    #[test]
    fn a_report_inside_a_side_band_is_read() {
        let status = [pkt(b"unpack ok\n"), pkt(b"ng refs/heads/a no\n"), b"0000".to_vec()].concat();
        let body =
            [pkt(&[b"\x02hello\n".as_slice()].concat()), pkt(&[b"\x01", &status[..]].concat())];
        let report = Report::read(&body.concat());
        assert_eq!(report.lines, ["unpack ok", "ng refs/heads/a no"]);
        assert_eq!(report.progress, "hello\n");
        assert_eq!(report.refusals(), ["ng refs/heads/a no"]);
    }
}
