//! Answers to fetches, read as a client reads them.

use std::collections::BTreeSet;

use zit_tests::http::Response;

use super::fetch::Fetch;

/// What a client learns from one answer. Progress is left out: no two runs print the same.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// The text of an `ERR` packet or of band 3.
    pub(super) error: Option<String>,
    /// `ACK`, `NAK` and `ready` lines, in order.
    pub(super) acks: Vec<String>,
    /// `shallow` and `unshallow` lines.
    pub(super) shallow: BTreeSet<String>,
    /// Lines of the section `wanted-refs`.
    pub(super) wanted_refs: BTreeSet<String>,
    /// Whether it ends as an answer must, with or without a pack.
    pub(super) ended: bool,
    /// The pack.
    pub(super) pack: Vec<u8>,
    /// What has no place in it.
    pub(super) odd: Vec<String>,
}

/// A packet.
#[derive(Debug)]
enum Packet<'a> {
    Data(&'a [u8]),
    Flush,
    Delim,
    Other,
}

impl Answer {
    pub(super) fn read(fetch: &Fetch, response: &Response) -> Self {
        let mut answer = Self { status: response.status, ..Self::default() };
        if response.status != 200 {
            return answer;
        }
        if fetch.version == 2 {
            answer.read_v2(&response.body, fetch.is("sideband-all"));
        } else {
            let bands = fetch.is("side-band") || fetch.is("side-band-64k");
            answer.read_v0(&response.body, bands);
        }
        answer
    }

    fn read_v2(&mut self, body: &[u8], sideband_all: bool) {
        let mut section = String::new();
        for packet in packets(body) {
            let data = match packet {
                Packet::Data(data) => data,
                Packet::Flush => {
                    self.ended = true;
                    continue;
                }
                Packet::Delim => {
                    section.clear();
                    continue;
                }
                Packet::Other => {
                    self.odd.push("special packet".to_owned());
                    continue;
                }
            };
            self.ended = false;
            if section == "packfile" {
                self.band(data);
                continue;
            }
            let line = match (sideband_all, data.split_first()) {
                (true, Some((1, line))) => line,
                (true, Some((2, _))) => continue,
                (true, Some((3, text))) => {
                    self.error = Some(lossy(text));
                    continue;
                }
                _ => data,
            };
            self.line(&lossy(line), &mut section);
        }
    }

    fn line(&mut self, line: &str, section: &mut String) {
        let line = line.trim_end_matches('\n');
        match section.as_str() {
            "" if line.starts_with("ERR ") => self.error = Some(line[4..].to_owned()),
            "" => line.clone_into(section),
            "acknowledgments" => self.acks.push(line.to_owned()),
            "shallow-info" => {
                self.shallow.insert(line.to_owned());
            }
            "wanted-refs" => {
                self.wanted_refs.insert(line.to_owned());
            }
            _ => self.odd.push(line.to_owned()),
        }
    }

    fn read_v0(&mut self, body: &[u8], bands: bool) {
        let mut rest = body;
        while let Some((packet, n)) = packet(rest) {
            rest = &rest[n..];
            let data = match packet {
                Packet::Data(data) => data,
                Packet::Flush => {
                    self.ended = true;
                    continue;
                }
                Packet::Delim | Packet::Other => {
                    self.odd.push("special packet".to_owned());
                    continue;
                }
            };
            self.ended = false;
            let line = lossy(data);
            let line = line.trim_end_matches('\n');
            if line.starts_with("ACK ") || line == "NAK" {
                self.acks.push(line.to_owned());
            } else if line.starts_with("shallow ") || line.starts_with("unshallow ") {
                self.shallow.insert(line.to_owned());
            } else if let Some(error) = line.strip_prefix("ERR ") {
                self.error = Some(error.to_owned());
            } else if bands {
                self.band(data);
            } else {
                self.odd.push(line.to_owned());
            }
        }
        if !bands && rest.starts_with(b"PACK") {
            self.pack = rest.to_vec();
            self.ended = true;
        } else if !rest.is_empty() {
            self.odd.push(format!("{} bytes", rest.len()));
        }
    }

    fn band(&mut self, data: &[u8]) {
        match data.split_first() {
            Some((1, data)) => self.pack.extend_from_slice(data),
            Some((2, _)) => {}
            Some((3, data)) => self.error = Some(lossy(data)),
            _ => self.odd.push(lossy(data)),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The packets of an answer, as far as it makes sense.
fn packets(mut body: &[u8]) -> Vec<Packet<'_>> {
    let mut packets = Vec::new();
    while let Some((packet, n)) = packet(body) {
        packets.push(packet);
        body = &body[n..];
    }
    packets
}

/// The first packet and its length in bytes.
fn packet(body: &[u8]) -> Option<(Packet<'_>, usize)> {
    let head = std::str::from_utf8(body.get(..4)?).ok()?;
    match usize::from_str_radix(head, 16).ok()? {
        0 => Some((Packet::Flush, 4)),
        1 => Some((Packet::Delim, 4)),
        2 | 3 => Some((Packet::Other, 4)),
        n => Some((Packet::Data(body.get(4..n)?), n)),
    }
}
