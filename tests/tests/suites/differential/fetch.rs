//! Random fetch requests, as a client of each protocol version writes them.

use fastrand::Rng;
use gix_hash::Kind as Format;
use gix_object::Kind;
use zit_tests::wire::pkt;

use super::objects::{Oid, Oids};
use super::twins::Twins;

/// One request.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetch {
    pub(super) version: u8,
    pub(super) format: Option<Format>,
    pub(super) wants: Vec<Oid>,
    pub(super) want_refs: Vec<String>,
    pub(super) haves: Vec<Oid>,
    pub(super) shallow: Vec<Oid>,
    /// Arguments of a word each in version 2, capabilities before it.
    pub(super) flags: Vec<String>,
    /// `deepen`, `deepen-since` and `deepen-not` with their values.
    pub(super) depth: Vec<String>,
    pub(super) filter: Option<String>,
    pub(super) done: bool,
}

impl Fetch {
    /// The request of case `random` in a protocol version.
    pub(super) fn random(twins: &Twins, version: u8, random: &mut Rng) -> Self {
        let mut fetch = Self { version, format: Some(twins.format), ..Self::default() };
        fetch.choose_wants(twins, random);
        fetch.choose_haves(twins, random);
        if random.u8(0..5) == 0 {
            fetch.choose_depth(twins, random);
        }
        if random.u8(0..4) == 0 {
            fetch.filter = Some(filter(twins, random, 2));
        }
        fetch.choose_flags(random);
        fetch.done = fetch.haves.is_empty() || random.u8(0..3) > 0;
        fetch
    }

    fn choose_wants(&mut self, twins: &Twins, random: &mut Rng) {
        let tips = twins.refs.iter().map(|(_, oid)| oid).collect::<Vec<_>>();
        for _ in 0..random.usize(1..4) {
            let oid = match random.u8(0..20) {
                0 => any_of(&twins.objects.of_kind(Kind::Tree), random),
                1 => any_of(&twins.objects.of_kind(Kind::Blob), random),
                2..5 => any_of(&twins.objects.of_kind(Kind::Commit), random),
                _ => any_of(&tips, random),
            };
            self.wants.push(oid);
        }
        if random.u8(0..40) == 0 {
            self.wants.push(nowhere(twins.format, random));
        }
        if self.version == 2 && random.u8(0..10) == 0 {
            self.want_refs
                .push(any_of(&twins.refs.iter().map(|r| &r.0).collect::<Vec<_>>(), random));
            if random.bool() {
                self.wants.clear();
            }
        }
    }

    /// Some commits and what of their history a client would name; a shallow client says where its own ends.
    fn choose_haves(&mut self, twins: &Twins, random: &mut Rng) {
        let commits = twins.objects.of_kind(Kind::Commit);
        let tips = (0..random.usize(0..4)).map(|_| any_of(&commits, random)).collect::<Vec<_>>();
        if random.u8(0..4) == 0 {
            self.shallow = boundary(twins, &tips, random);
        }
        let cut = self.shallow.iter().cloned().collect::<Oids>();
        let held = twins.objects.closure(&tips, &cut);
        self.haves.clone_from(&tips);
        for oid in held.iter().filter(|oid| commits.contains(oid)) {
            if random.u8(0..4) == 0 {
                self.haves.push(oid.clone());
            }
        }
        if random.u8(0..8) == 0 {
            let tags = twins.objects.of_kind(Kind::Tag);
            self.haves.push(any_of(&tags, random));
        }
        for _ in 0..random.usize(0..3) * random.usize(0..2) {
            let at = random.usize(0..=self.haves.len());
            self.haves.insert(at, nowhere(twins.format, random));
        }
    }

    fn choose_depth(&mut self, twins: &Twins, random: &mut Rng) {
        match random.u8(0..8) {
            0 => {
                let time = super::grow::EPOCH + random.u64(0..60 * 60);
                self.depth.push(format!("deepen-since {time}"));
            }
            1 => {
                let names = twins.refs.iter().map(|(name, _)| name).collect::<Vec<_>>();
                self.depth.push(format!("deepen-not {}", any_of(&names, random)));
            }
            2 => {
                let time = super::grow::EPOCH + random.u64(0..60 * 60);
                self.depth.push(format!("deepen-since {time}"));
                self.depth.push("deepen-not refs/heads/old".to_owned());
            }
            3 => self.depth.push(format!("deepen {}", u32::from(i16::MAX as u16) * 65536 + 65535)),
            4 if random.u8(0..4) == 0 => self.depth.push("deepen-not nothing".to_owned()),
            _ => self.depth.push(format!("deepen {}", random.u8(1..7))),
        }
        if random.u8(0..3) == 0 {
            self.flags.push("deepen-relative".to_owned());
        }
    }

    fn choose_flags(&mut self, random: &mut Rng) {
        let both = ["thin-pack", "ofs-delta", "no-progress", "include-tag"];
        self.flags.extend(both.iter().filter(|_| random.bool()).map(|&flag| flag.to_owned()));
        let mut one_in = |n: u8, flag: &str| {
            if random.u8(0..n) == 0 {
                self.flags.push(flag.to_owned());
            }
        };
        if self.version == 2 {
            one_in(6, "wait-for-done");
            one_in(6, "sideband-all");
            return;
        }
        one_in(2, "no-done");
        match random.u8(0..4) {
            0 => self.flags.push("side-band".to_owned()),
            1 => {}
            _ => self.flags.push("side-band-64k".to_owned()),
        }
        match random.u8(0..4) {
            0 => self.flags.push("multi_ack".to_owned()),
            1 => {}
            _ => self.flags.push("multi_ack_detailed".to_owned()),
        }
    }

    /// Whether the answer's packets carry bands.
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// Whether it asks for objects and for nothing else, so that our server may answer by itself.
    pub(super) fn is_plain(&self) -> bool {
        self.version == 2
            && self.want_refs.is_empty()
            && self.shallow.is_empty()
            && self.depth.is_empty()
            && self.filter.is_none()
            && !self.is("sideband-all")
            && !self.is("deepen-relative")
    }

    /// The body of the POST.
    pub(super) fn encode(&self) -> Vec<u8> {
        if self.version == 2 { self.encode_v2() } else { self.encode_v0() }
    }

    fn encode_v2(&self) -> Vec<u8> {
        let format = self.format.unwrap_or(Format::Sha1);
        let mut body =
            [pkt(b"command=fetch"), pkt(format!("object-format={format}").as_bytes())].concat();
        body.extend_from_slice(b"0001");
        let mut argument = |text: &str| body.extend(pkt(format!("{text}\n").as_bytes()));
        self.flags.iter().for_each(|flag| argument(flag));
        self.shallow.iter().for_each(|oid| argument(&format!("shallow {oid}")));
        self.depth.iter().for_each(|depth| argument(depth));
        self.filter.iter().for_each(|filter| argument(&format!("filter {filter}")));
        self.want_refs.iter().for_each(|name| argument(&format!("want-ref {name}")));
        self.wants.iter().for_each(|oid| argument(&format!("want {oid}")));
        self.haves.iter().for_each(|oid| argument(&format!("have {oid}")));
        if self.done {
            argument("done");
        }
        body.extend_from_slice(b"0000");
        body
    }

    fn encode_v0(&self) -> Vec<u8> {
        let format = self.format.unwrap_or(Format::Sha1);
        let mut body = Vec::new();
        let mut line = |text: &str| body.extend(pkt(format!("{text}\n").as_bytes()));
        for (n, oid) in self.wants.iter().enumerate() {
            if n > 0 {
                line(&format!("want {oid}"));
                continue;
            }
            let filter = if self.filter.is_some() { " filter" } else { "" };
            let flags = self.flags.join(" ");
            line(&format!("want {oid} {flags}{filter} object-format={format} agent=git/test"));
        }
        self.shallow.iter().for_each(|oid| line(&format!("shallow {oid}")));
        self.depth.iter().for_each(|depth| line(depth));
        self.filter.iter().for_each(|filter| line(&format!("filter {filter}")));
        body.extend_from_slice(b"0000");
        for oid in &self.haves {
            body.extend(pkt(format!("have {oid}\n").as_bytes()));
        }
        if self.done {
            body.extend(pkt(b"done\n"));
        } else {
            body.extend_from_slice(b"0000");
        }
        body
    }
}

/// An oid that names nothing.
fn nowhere(format: Format, random: &mut Rng) -> Oid {
    (0..format.len_in_hex()).map(|_| format!("{:x}", random.u8(1..16))).collect()
}

fn any_of(all: &[&String], random: &mut Rng) -> String {
    all[random.usize(0..all.len())].clone()
}

/// Where the history of a client ends that has `tips`: at a depth, or anywhere.
fn boundary(twins: &Twins, tips: &[Oid], random: &mut Rng) -> Vec<Oid> {
    let mut layer = tips.iter().cloned().collect::<Oids>();
    if random.bool() {
        for _ in 0..random.usize(0..4) {
            let parents = |oid: &Oid| twins.objects.parents(oid);
            let next = layer.iter().flat_map(parents).collect::<Oids>();
            layer = if next.is_empty() { layer } else { next };
        }
        layer.retain(|oid| !twins.objects.parents(oid).is_empty());
        return layer.into_iter().collect();
    }
    let commits = twins.objects.of_kind(Kind::Commit).into_iter().cloned().collect::<Oids>();
    let held = twins.objects.closure(tips, &Oids::new());
    held.intersection(&commits).filter(|_| random.u8(0..8) == 0).cloned().collect()
}

/// A filter of any kind that git's server takes.
fn filter(twins: &Twins, random: &mut Rng, room: u8) -> String {
    match random.u8(0..if room > 0 { 8 } else { 6 }) {
        0 | 1 => "blob:none".to_owned(),
        2 => format!("blob:limit={}", random.u16(0..3000)),
        3 => format!("tree:{}", random.u8(0..4)),
        4 => {
            let kinds = ["blob", "tree", "commit", "tag"];
            format!("object:type={}", kinds[random.usize(0..kinds.len())])
        }
        5 => {
            let blobs = twins.objects.of_kind(Kind::Blob);
            let blob = any_of(&blobs, random);
            // Any text is a list of patterns.
            format!("sparse:oid={blob}")
        }
        6 => format!(
            "combine:{}+{}",
            encode(&filter(twins, random, room - 1)),
            encode(&filter(twins, random, room - 1))
        ),
        _ => ["blob:some", "tree:x", "combine:", "sparse:path=x", "blob:limit=1k"]
            [random.usize(0..5)]
        .to_owned(),
    }
}

/// A filter as a part of another one.
fn encode(filter: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "-_.:=".contains(c);
    filter
        .chars()
        .map(|c| if kept(c) { c.to_string() } else { format!("%{:02X}", c as u32) })
        .collect()
}
