//! Packs made by hand to do harm: each is answered in words, in little memory, and leaves nothing on the disk. What git
//! says of the same pack is asked too.

use std::io::Write as _;

use fastrand::Rng;
use zit_model::Oid;
use zit_store::{Kind, PackError, PackLimits};

use crate::quarantine::{LIMITS, refused};
use crate::support::Repo;

const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;
const OFS_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;

/// A pack under way.
struct Pack {
    bytes: Vec<u8>,
    n_objects: u32,
}

impl Pack {
    fn new() -> Self {
        Self { bytes: b"PACK\0\0\0\x02\0\0\0\0".to_vec(), n_objects: 0 }
    }

    /// Adds an entry, which may lie about its size; where it begins.
    fn entry(&mut self, kind: u8, size: usize, base: &[u8], content: &[u8]) -> usize {
        let offset = self.bytes.len();
        let mut byte = kind << 4 | u8::try_from(size & 15).unwrap();
        let mut rest = size >> 4;
        while rest > 0 {
            self.bytes.push(byte | 0x80);
            byte = u8::try_from(rest & 0x7f).unwrap();
            rest >>= 7;
        }
        self.bytes.push(byte);
        self.bytes.extend_from_slice(base);
        let level = flate2::Compression::best();
        let mut encoder = flate2::write::ZlibEncoder::new(&mut self.bytes, level);
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap();
        self.n_objects += 1;
        offset
    }

    fn object(&mut self, kind: u8, content: &[u8]) -> usize {
        self.entry(kind, content.len(), b"", content)
    }

    fn ref_delta(&mut self, base: Oid, delta: &[u8]) {
        self.entry(REF_DELTA, delta.len(), base.as_bytes(), delta);
    }

    fn ofs_delta(&mut self, distance: usize, delta: &[u8]) -> usize {
        let mut coded = vec![u8::try_from(distance & 0x7f).unwrap()];
        let mut rest = distance >> 7;
        while rest > 0 {
            rest -= 1;
            coded.insert(0, 0x80 | u8::try_from(rest & 0x7f).unwrap());
            rest >>= 7;
        }
        self.entry(OFS_DELTA, delta.len(), &coded, delta)
    }

    fn finish(self) -> Vec<u8> {
        let n_objects = self.n_objects;
        self.announcing(n_objects)
    }

    fn announcing(mut self, n_objects: u32) -> Vec<u8> {
        self.bytes[8..12].copy_from_slice(&n_objects.to_be_bytes());
        signed(self.bytes)
    }
}

fn signed(mut body: Vec<u8>) -> Vec<u8> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&body);
    body.extend_from_slice(hasher.try_finalize().unwrap().as_bytes());
    body
}

fn id(kind: Kind, content: &[u8]) -> Oid {
    let id = gix_object::compute_hash(gix_hash::Kind::Sha1, kind, content).unwrap();
    Oid::from_gix(id).unwrap()
}

/// A size of a delta, and an instruction that copies `n` bytes from the start.
fn size(mut size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while size > 0x7f {
        bytes.push(0x80 | u8::try_from(size & 0x7f).unwrap());
        size >>= 7;
    }
    bytes.push(u8::try_from(size).unwrap());
    bytes
}

fn copy(n: usize) -> Vec<u8> {
    let n = u32::try_from(n).unwrap().to_le_bytes();
    vec![0xf0, n[0], n[1], n[2]]
}

fn git_takes(pack: &[u8]) -> bool {
    Repo::new().try_git(&["index-pack", "--stdin", "--strict", "--fix-thin"], pack).status.success()
}

/// A repository that has the files that opening it makes.
fn opened_once() -> Repo {
    let repo = Repo::new();
    drop(repo.referee());
    repo
}

#[track_caller]
fn refused_as(pack: &[u8], what: &str) {
    let error = refused(&opened_once(), pack, LIMITS);
    assert!(error.to_string().contains(what), "{error}");
    assert!(!git_takes(pack), "git takes it: {error}");
}

#[test]
fn a_tree_that_names_nothing_is_refused() {
    let mut pack = Pack::new();
    pack.object(TREE, &[b"100644 a\0".as_slice(), &[0; 20]].concat());
    refused_as(&pack.finish(), "nullSha1");
}

#[test]
fn an_object_that_comes_twice_is_refused() {
    let mut pack = Pack::new();
    pack.object(BLOB, b"x");
    pack.object(BLOB, b"x");
    refused_as(&pack.finish(), "appears twice");
}

#[test]
fn an_object_that_comes_twice_by_way_of_a_delta_is_refused() {
    let mut pack = Pack::new();
    pack.object(BLOB, b"x");
    let base = pack.object(BLOB, b"y");
    let distance = pack.bytes.len() - base;
    pack.ofs_delta(distance, b"\x01\x01\x01x");
    refused_as(&pack.finish(), "appears twice");
}

#[test]
fn a_delta_without_its_base_is_refused() {
    let mut pack = Pack::new();
    pack.ref_delta(id(Kind::Blob, b"nowhere"), b"\x07\x01\x01x");
    refused_as(&pack.finish(), "1 unresolved delta");
}

#[test]
fn deltas_that_build_on_each_other_are_refused() {
    let mut pack = Pack::new();
    pack.ref_delta(id(Kind::Blob, b"b"), b"\x01\x01\x01a");
    pack.ref_delta(id(Kind::Blob, b"a"), b"\x01\x01\x01b");
    pack.ref_delta(id(Kind::Blob, b"c"), b"\x01\x01\x01c");
    refused_as(&pack.finish(), "3 unresolved deltas");
}

#[test]
fn a_delta_whose_base_is_no_entry_is_refused() {
    for distance in [0, 1, 2, 5, 11, 12, 13, 1000, usize::MAX >> 1] {
        let mut pack = Pack::new();
        pack.object(BLOB, b"hello");
        pack.ofs_delta(distance, b"\x05\x01\x01x");
        let pack = pack.finish();
        let error = refused(&opened_once(), &pack, LIMITS).to_string();
        let is_told = error.contains("out of bound") || error.contains("unresolved");
        assert!(is_told || error.contains("Pack entry"), "{distance}: {error}");
        assert!(!git_takes(&pack), "{distance}");
    }
}

#[test]
fn a_delta_for_another_base_is_refused() {
    for (delta, what) in [
        (&b"\x04\x01\x01x"[..], "another size"),
        (b"\x05\x01\x91\x05\x01", "outside its base"),
        (b"\x05\x02\x01x", "less than it says"),
        (b"\x05\x01\x02xy", "more than it says"),
        (b"\x05\x01\x00", "reserved"),
        (b"\x05", "cut off"),
    ] {
        let mut pack = Pack::new();
        let base = pack.object(BLOB, b"hello");
        let distance = pack.bytes.len() - base;
        pack.ofs_delta(distance, delta);
        refused_as(&pack.finish(), what);
    }
}

#[test]
fn a_wrong_number_of_objects_is_refused() {
    let pack = || {
        let mut pack = Pack::new();
        pack.object(BLOB, b"x");
        pack.object(BLOB, b"y");
        pack
    };
    refused_as(&pack().announcing(3), "cut off");
    refused_as(&pack().announcing(1), "junk at the end");
}

#[test]
fn bytes_behind_a_pack_are_refused() {
    let mut pack = Pack::new();
    pack.object(BLOB, b"x");
    let mut bytes = pack.finish();
    bytes.extend_from_slice(b"and more");
    let error = refused(&opened_once(), &bytes, LIMITS);
    assert!(error.to_string().contains("junk at the end"), "{error}");
    let mut pack = Pack::new();
    pack.object(BLOB, b"x");
    pack.bytes.extend_from_slice(b"and more");
    refused_as(&pack.finish(), "junk at the end");
}

#[test]
fn a_wrong_checksum_is_refused() {
    let mut pack = Pack::new();
    pack.object(BLOB, b"x");
    let mut bytes = pack.finish();
    *bytes.last_mut().unwrap() ^= 1;
    refused_as(&bytes, "checksum does not match");
}

#[test]
fn a_pack_cut_anywhere_is_truncated() {
    let mut pack = Pack::new();
    let base = pack.object(BLOB, b"hello, hello");
    let distance = pack.bytes.len() - base;
    pack.ofs_delta(distance, b"\x0c\x01\x01x");
    pack.object(BLOB, &[7; 300]);
    let bytes = pack.finish();
    let repo = Repo::new();
    let store = repo.referee();
    let before = repo.files();
    for cut in 0..bytes.len() {
        let mut quarantine = store.quarantine().unwrap();
        let error = quarantine.receive_pack(&mut &bytes[..cut], &LIMITS).unwrap_err();
        assert!(matches!(error, PackError::Truncated), "{cut}: {error}");
        drop(quarantine);
        assert_eq!(repo.files(), before, "{cut}");
    }
}

#[test]
fn an_entry_of_another_size_than_it_says_is_refused() {
    for size in [0, 3, 4, 6] {
        let mut pack = Pack::new();
        pack.entry(BLOB, size, b"", b"hello");
        refused_as(&pack.finish(), "than it says");
    }
}

#[test]
fn an_entry_of_no_kind_is_refused() {
    for kind in [0, 5] {
        let mut pack = Pack::new();
        pack.object(kind, b"x");
        refused_as(&pack.finish(), "type");
    }
}

#[test]
fn a_commit_that_is_none_is_refused() {
    let mut pack = Pack::new();
    pack.object(COMMIT, b"tree 12\n");
    refused_as(&pack.finish(), "badTreeSha1");
}

/// The most memory that this process, which runs one test, ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_blob_that_inflates_past_what_it_says_is_refused_in_little_memory() {
    let zeroes = vec![0; 256 << 20];
    let mut pack = Pack::new();
    pack.entry(BLOB, 10, b"", &zeroes);
    drop(zeroes);
    let bytes = pack.finish();
    let before = peak();
    let error = refused(&opened_once(), &bytes, LIMITS);
    assert!(error.to_string().contains("larger than it says"), "{error}");
    assert!(peak() - before < 64 << 20);
}

#[test]
fn a_blob_that_says_it_is_huge_is_not_believed() {
    let mut pack = Pack::new();
    pack.entry(BLOB, 1 << 45, b"", b"small");
    let bytes = pack.finish();
    let before = peak();
    let error = refused(&opened_once(), &bytes, LIMITS);
    assert!(matches!(error, PackError::BadObject(_) | PackError::Refused(_)), "{error}");
    assert!(peak() - before < 64 << 20);
}

#[test]
fn deltas_that_double_and_double_are_refused_in_little_memory() {
    let mut pack = Pack::new();
    let mut at = pack.object(BLOB, &vec![b'x'; 0x1_0000]);
    let mut n = 0x1_0000;
    // In the end four gigabytes.
    for _ in 0..4 {
        let piece = n.min(8 << 20);
        let delta = [size(n), size(n * 16), copy(piece).repeat(n * 16 / piece)].concat();
        let distance = pack.bytes.len() - at;
        at = pack.ofs_delta(distance, &delta);
        n *= 16;
    }
    let bytes = pack.finish();
    assert!(bytes.len() < 1000);
    let before = peak();
    let error = refused(&opened_once(), &bytes, LIMITS);
    assert!(error.to_string().contains("over limit"), "{error}");
    assert!(peak() - before < 64 << 20);
}

#[test]
fn a_long_chain_of_deltas_is_resolved_without_recursion() {
    let mut pack = Pack::new();
    let mut at = pack.object(BLOB, b"00000000");
    for n in 1..15_000 {
        let text = format!("{n:08}");
        let distance = pack.bytes.len() - at;
        at = pack.ofs_delta(distance, &[b"\x08\x08\x08", text.as_bytes()].concat());
    }
    let bytes = pack.finish();
    let repo = Repo::new();
    let store = repo.referee();
    let limits = PackLimits { max_bytes: 1 << 24, max_objects: 20_000 };
    let mut quarantine = store.quarantine().unwrap();
    assert_eq!(quarantine.receive_pack(&mut bytes.as_slice(), &limits).unwrap().objects, 15_000);
    let last = id(Kind::Blob, b"00014999");
    assert_eq!(quarantine.objects().kind(last).unwrap(), Some(Kind::Blob));
}

#[test]
fn bytes_changed_anywhere_are_judged_as_git_judges_them() {
    let there = Repo::new();
    let base = there.commit(&[("a", "1\n2\n3\n4\n5\n6\n7\n8\n")], &[], "base");
    let tip = there.commit(&[("a", "1\n2\n3\n4\n5\n6\n7\n8\nx\n"), ("b", "y")], &[base], "tip");
    let pack = there.pack(&format!("{tip}\n"), false);
    let here = Repo::new();
    let store = here.referee();
    let before = here.files();
    let mut rng = Rng::with_seed(7);
    for round in 0..150 {
        let mut body = pack[..pack.len() - 20].to_vec();
        let at = rng.usize(8..body.len());
        body[at] ^= rng.u8(1..=255);
        let bytes = if rng.u8(0..4) == 0 { body } else { signed(body) };
        let mut quarantine = store.quarantine().unwrap();
        let zit = quarantine.receive_pack(&mut bytes.as_slice(), &LIMITS);
        drop(quarantine);
        assert_eq!(zit.is_ok(), git_takes(&bytes), "round {round}, byte {at}: {zit:?}");
        assert_eq!(here.files(), before, "round {round}");
    }
}
