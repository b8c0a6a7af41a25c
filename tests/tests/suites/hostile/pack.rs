//! Packs and objects made by hand, so that each may lie as it likes.
//!
//! A [`Pack`] takes entries one by one and is finished with a checksum that is right, whatever is before it. Nothing
//! here is checked: that is what the server is for.

use std::io::Write as _;

pub(super) const COMMIT: u8 = 1;
pub(super) const TREE: u8 = 2;
pub(super) const BLOB: u8 = 3;
pub(super) const TAG: u8 = 4;
const OFS_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;

/// A pack under way.
pub(super) struct Pack {
    bytes: Vec<u8>,
    n_objects: u32,
}

impl Pack {
    pub(super) fn new() -> Self {
        Self { bytes: b"PACK\0\0\0\x02\0\0\0\0".to_vec(), n_objects: 0 }
    }

    /// Adds an entry of raw deflated bytes, whose size may be a lie; where it begins.
    fn raw(&mut self, kind: u8, size: usize, base: &[u8], deflated: &[u8]) -> usize {
        let offset = self.bytes.len();
        let mut byte = kind << 4 | low(size, 0xf);
        let mut rest = size >> 4;
        while rest > 0 {
            self.bytes.push(byte | 0x80);
            byte = low(rest, 0x7f);
            rest >>= 7;
        }
        self.bytes.push(byte);
        self.bytes.extend_from_slice(base);
        self.bytes.extend_from_slice(deflated);
        self.n_objects += 1;
        offset
    }

    /// An object that says it has `size` bytes.
    pub(super) fn says(mut self, kind: u8, size: usize, content: &[u8]) -> Self {
        self.raw(kind, size, b"", &deflate(content));
        self
    }

    /// An object whose compressed bytes are what is given.
    pub(super) fn undeflated(mut self, kind: u8, size: usize, bytes: &[u8]) -> Self {
        self.raw(kind, size, b"", bytes);
        self
    }

    pub(super) fn object(self, kind: u8, content: &[u8]) -> Self {
        let size = content.len();
        self.says(kind, size, content)
    }

    pub(super) fn ref_delta(mut self, base: &[u8; 20], delta: &[u8]) -> Self {
        self.raw(REF_DELTA, delta.len(), base, &deflate(delta));
        self
    }

    /// A delta whose base begins `distance` bytes before it.
    pub(super) fn ofs_delta(mut self, distance: usize, delta: &[u8]) -> Self {
        let mut coded = vec![low(distance, 0x7f)];
        let mut rest = distance >> 7;
        while rest > 0 {
            rest -= 1;
            coded.insert(0, 0x80 | low(rest, 0x7f));
            rest >>= 7;
        }
        self.raw(OFS_DELTA, delta.len(), &coded, &deflate(delta));
        self
    }

    /// How many bytes there are so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes between the last entry and the checksum.
    pub(super) fn junk(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let n_objects = self.n_objects;
        self.announcing(n_objects)
    }

    /// Says that it has `n_objects`.
    pub(super) fn announcing(mut self, n_objects: u32) -> Vec<u8> {
        self.bytes[8..12].copy_from_slice(&n_objects.to_be_bytes());
        let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
        hasher.update(&self.bytes);
        self.bytes.extend_from_slice(
            hasher.try_finalize().expect("no collision is made here").as_bytes(),
        );
        self.bytes
    }
}

/// A delta whose base has 64 KiB and that doubles it four times a step, until it is four gigabytes.
pub(super) fn delta_bomb() -> Vec<u8> {
    let mut n = 0x1_0000;
    let mut pack = Pack::new();
    let mut at = pack.len();
    pack = pack.object(BLOB, &vec![b'x'; n]);
    for _ in 0..4 {
        let piece = n.min(8 << 20);
        let delta = [size(n), size(n * 16), copy(piece).repeat(n * 16 / piece)].concat();
        let distance = pack.len() - at;
        at = pack.len();
        pack = pack.ofs_delta(distance, &delta);
        n *= 16;
    }
    pack.finish()
}

/// A size as deltas write it.
fn size(mut size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while size > 0x7f {
        bytes.push(0x80 | low(size, 0x7f));
        size >>= 7;
    }
    bytes.push(low(size, 0x7f));
    bytes
}

/// The instruction that copies `n` bytes from the start of the base.
fn copy(n: usize) -> Vec<u8> {
    vec![0xf0, low(n, 0xff), low(n >> 8, 0xff), low(n >> 16, 0xff)]
}

fn low(n: usize, mask: usize) -> u8 {
    u8::try_from(n & mask).expect("a mask of at most eight bits")
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("memory takes what it is given");
    encoder.finish().expect("memory takes what it is given")
}

/// The oid of an object.
pub(super) fn id(kind: u8, content: &[u8]) -> [u8; 20] {
    let kind = match kind {
        COMMIT => gix_object::Kind::Commit,
        TREE => gix_object::Kind::Tree,
        TAG => gix_object::Kind::Tag,
        _ => gix_object::Kind::Blob,
    };
    let id = gix_object::compute_hash(gix_hash::Kind::Sha1, kind, content);
    let id = id.expect("no collision is made here");
    id.as_bytes().try_into().expect("sha-1 has twenty bytes")
}

/// As git prints it.
pub(super) fn hex(id: [u8; 20]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A tree of entries, in the order given.
pub(super) fn tree(entries: &[(&str, &str, [u8; 20])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        bytes.extend_from_slice(id);
    }
    bytes
}

/// A commit of a tree, its other lines as given.
pub(super) fn commit(tree: [u8; 20], rest: &str) -> Vec<u8> {
    format!("tree {}\n{rest}", hex(tree)).into_bytes()
}

/// What a good commit has behind its tree.
pub(super) const SIGNED: &str =
    "author A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000\n\nBad\n";
