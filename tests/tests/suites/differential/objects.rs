//! The objects of a repository held in memory: what is reachable from where, and what a pack brings.
//!
//! Written apart from the product's own readers, so that one mistake cannot hide in both.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use gix_hash::Kind as Format;
use gix_object::Kind;
use zit_tests::Git;

/// An oid in hexadecimal digits.
pub(super) type Oid = String;

/// Some objects.
pub(super) type Oids = BTreeSet<Oid>;

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) data: Vec<u8>,
}

/// Every object of one repository.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Oid, Object>,
}

/// What a pack holds.
#[derive(Debug, Default)]
pub(super) struct Pack {
    /// Its objects.
    pub(super) oids: Oids,
    /// What its deltas are made against and it does not hold.
    pub(super) bases: Oids,
}

impl Objects {
    /// Reads all objects of a repository, reachable or not.
    pub(super) fn read(git: &Git) -> Self {
        let args = ["cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer"];
        let listed = git.run(args).ok().stdout;
        let (mut all, mut rest) = (BTreeMap::new(), listed.as_slice());
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            let words = head.split(' ').collect::<Vec<_>>();
            let [oid, kind, size] = words[..] else { panic!("not a head of an object: {head:?}") };
            let size = size.parse::<usize>().expect("a size is a number");
            let data = rest[end + 1..][..size].to_vec();
            let kind = Kind::from_bytes(kind.as_bytes()).expect("git knows four kinds");
            all.insert(oid.to_owned(), Object { kind, data });
            rest = &rest[end + size + 2..];
        }
        Self { all }
    }

    /// Adds an object; its oid.
    pub(super) fn add(&mut self, kind: Kind, data: Vec<u8>, format: Format) -> Oid {
        let oid = gix_object::compute_hash(format, kind, &data).expect("the bytes are no attack");
        let oid = oid.to_string();
        self.all.insert(oid.clone(), Object { kind, data });
        oid
    }

    /// One object.
    pub(super) fn get(&self, oid: &str) -> Option<&Object> {
        self.all.get(oid)
    }

    /// All objects of a kind, in order.
    pub(super) fn of_kind(&self, kind: Kind) -> Vec<&Oid> {
        self.all.iter().filter(|(_, object)| object.kind == kind).map(|(oid, _)| oid).collect()
    }

    /// What an object names: a commit its tree and parents, a tree its entries, a tag its target.
    fn links(&self, oid: &str) -> Vec<Oid> {
        let Some(object) = self.all.get(oid) else { return Vec::new() };
        match object.kind {
            Kind::Blob => Vec::new(),
            Kind::Tree => entries(&object.data, oid.len() / 2),
            Kind::Commit => headers(&object.data, &["tree ", "parent "]),
            Kind::Tag => headers(&object.data, &["object "]),
        }
    }

    /// The parents of a commit.
    pub(super) fn parents(&self, oid: &str) -> Vec<Oid> {
        self.all.get(oid).map_or_else(Vec::new, |object| headers(&object.data, &["parent "]))
    }

    /// Everything that `tips` lead to, themselves included; the parents of what is in `cut` do not count.
    pub(super) fn closure<'a>(&self, tips: impl IntoIterator<Item = &'a Oid>, cut: &Oids) -> Oids {
        let mut open = tips.into_iter().cloned().collect::<Vec<_>>();
        let mut seen = Oids::new();
        while let Some(oid) = open.pop() {
            if !self.all.contains_key(&oid) || seen.contains(&oid) {
                continue;
            }
            let parents = if cut.contains(&oid) { self.parents(&oid) } else { Vec::new() };
            open.extend(self.links(&oid).into_iter().filter(|link| !parents.contains(link)));
            seen.insert(oid);
        }
        seen
    }

    /// Reads a pack, whose deltas may be made against these objects.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(super) fn read_pack(&self, pack: &[u8], format: Format) -> Result<Pack, String> {
        let end = pack.len().checked_sub(format.len_in_bytes()).ok_or("a pack without an end")?;
        let entries = read_entries(&pack[..end], format)?;
        let mut found = BTreeMap::<usize, (Oid, Object)>::new();
        let mut by_oid = BTreeMap::<Oid, usize>::new();
        let mut result = Pack::default();
        // A delta may stand before its base, so each round takes what has become possible.
        while found.len() < entries.len() {
            let before = found.len();
            for (at, entry) in &entries {
                if found.contains_key(at) {
                    continue;
                }
                let Some(object) = self.complete(entry, &found, &by_oid, &mut result.bases)? else {
                    continue;
                };
                let oid = gix_object::compute_hash(format, object.kind, &object.data)
                    .map_err(|error| error.to_string())?
                    .to_string();
                if !result.oids.insert(oid.clone()) {
                    return Err(format!("the pack holds {oid} twice"));
                }
                by_oid.insert(oid.clone(), *at);
                found.insert(*at, (oid, object));
            }
            if found.len() == before {
                return Err("the pack has deltas whose base is nowhere".to_owned());
            }
        }
        result.bases.retain(|base| !result.oids.contains(base));
        Ok(result)
    }

    /// The object of an entry, or `None` while its base is unknown.
    fn complete(
        &self,
        entry: &Entry,
        found: &BTreeMap<usize, (Oid, Object)>,
        by_oid: &BTreeMap<Oid, usize>,
        bases: &mut Oids,
    ) -> Result<Option<Object>, String> {
        let base = match &entry.base {
            Base::None(kind) => {
                return Ok(Some(Object { kind: *kind, data: entry.data.clone() }));
            }
            Base::At(at) => found.get(at).map(|(_, object)| object),
            Base::Oid(oid) => match by_oid.get(oid).and_then(|at| found.get(at)) {
                Some((_, object)) => Some(object),
                None => self.all.get(oid).inspect(|_| {
                    bases.insert(oid.clone());
                }),
            },
        };
        base.map(|base| Ok(Object { kind: base.kind, data: patch(&base.data, &entry.data)? }))
            .transpose()
    }
}

/// The values of those header lines of a commit or tag that begin with one of `names`.
fn headers(data: &[u8], names: &[&str]) -> Vec<Oid> {
    let text = String::from_utf8_lossy(data);
    let head = text.lines().take_while(|line| !line.is_empty());
    head.filter_map(|line| names.iter().find_map(|name| line.strip_prefix(name)))
        .map(str::to_owned)
        .collect()
}

/// The oids of a tree's entries, without those of other repositories' commits.
fn entries(mut data: &[u8], oid_len: usize) -> Vec<Oid> {
    let mut oids = Vec::new();
    while let Some(nul) = data.iter().position(|&byte| byte == 0) {
        let oid = &data[nul + 1..][..oid_len];
        if !data.starts_with(b"160000 ") {
            oids.push(hex(oid));
        }
        data = &data[nul + 1 + oid_len..];
    }
    oids
}

fn hex(bytes: &[u8]) -> Oid {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One entry of a pack, inflated.
struct Entry {
    base: Base,
    data: Vec<u8>,
}

enum Base {
    None(Kind),
    At(usize),
    Oid(Oid),
}

/// The entries of a pack without its trailer, by where they begin.
fn read_entries(pack: &[u8], format: Format) -> Result<BTreeMap<usize, Entry>, String> {
    let cut = || "the pack is cut off".to_owned();
    let head = pack.get(..12).ok_or_else(cut)?;
    if !head.starts_with(b"PACK\0\0\0\x02") {
        return Err(format!("not a pack: {:?}", String::from_utf8_lossy(head)));
    }
    let n_entries = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let (mut at, mut entries) = (12, BTreeMap::new());
    while entries.len() < n_entries {
        let start = at;
        let mut next = || {
            at += 1;
            pack.get(at - 1).copied().ok_or_else(cut)
        };
        let first = next()?;
        let mut byte = first;
        while byte & 0x80 != 0 {
            byte = next()?;
        }
        let base = match (first >> 4) & 7 {
            1 => Base::None(Kind::Commit),
            2 => Base::None(Kind::Tree),
            3 => Base::None(Kind::Blob),
            4 => Base::None(Kind::Tag),
            6 => {
                let mut byte = next()?;
                let mut distance = usize::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = next()?;
                    distance = ((distance + 1) << 7) | usize::from(byte & 0x7f);
                }
                Base::At(start.checked_sub(distance).ok_or("a base before the pack")?)
            }
            7 => {
                let oid = pack.get(at..at + format.len_in_bytes()).ok_or_else(cut)?;
                at += oid.len();
                Base::Oid(hex(oid))
            }
            other => return Err(format!("no such kind of entry: {other}")),
        };
        let mut inflate = flate2::bufread::ZlibDecoder::new(&pack[at..]);
        let mut data = Vec::new();
        inflate.read_to_end(&mut data).map_err(|error| error.to_string())?;
        at += usize::try_from(inflate.total_in()).expect("a pack fits into memory");
        entries.insert(start, Entry { base, data });
    }
    if at == pack.len() { Ok(entries) } else { Err("bytes follow the last entry".to_owned()) }
}

/// Applies a delta.
fn patch(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = delta.iter().copied();
    let mut size = || {
        let (mut size, mut shift) = (0_usize, 0);
        for byte in bytes.by_ref() {
            size |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        size
    };
    let (from, to) = (size(), size());
    if from != base.len() {
        return Err("a delta was made against another base".to_owned());
    }
    let mut out = Vec::with_capacity(to);
    while let Some(op) = bytes.next() {
        if op & 0x80 == 0 {
            out.extend(bytes.by_ref().take(usize::from(op)));
            continue;
        }
        let mut number = |bits: std::ops::Range<u8>| {
            bits.enumerate().fold(0_usize, |sum, (n, bit)| {
                let present = op & (1 << bit) != 0;
                let byte = if present { bytes.next().unwrap_or_default() } else { 0 };
                sum | usize::from(byte) << (8 * n)
            })
        };
        let (offset, len) = (number(0..4), number(4..7));
        let len = if len == 0 { 0x10000 } else { len };
        out.extend(base.get(offset..offset + len).ok_or("a delta copies from past its base")?);
    }
    if out.len() == to {
        Ok(out)
    } else {
        Err("a delta makes another size than it says".to_owned())
    }
}
