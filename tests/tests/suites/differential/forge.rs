//! New objects and the packs that carry them, made without git.

use fastrand::Rng;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::Kind as Format;
use gix_object::Kind;
use std::io::Write;

use super::objects::{Object, Objects, Oid};

/// A commit on `parents` with files of its own among those of the first one; the new objects, itself last.
pub(super) fn commit(
    objects: &mut Objects,
    parents: &[Oid],
    format: Format,
    random: &mut Rng,
) -> Vec<Oid> {
    let mut made = Vec::new();
    let text = format!("{}\n", random.u64(..));
    made.push(objects.add(Kind::Blob, text.into_bytes(), format));
    let mut tree = Vec::new();
    for name in ["file", "other"] {
        tree.extend_from_slice(format!("100644 {name}\0").as_bytes());
        tree.extend_from_slice(&raw(&made[0]));
    }
    made.push(objects.add(Kind::Tree, tree, format));
    let mut text = format!("tree {}\n", made[1]);
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    let who = format!("A <a@example.com> {} +0000", 1_800_000_000 + random.u32(0..9999));
    text.push_str(&format!("author {who}\ncommitter {who}\n\nForged {}\n", random.u32(..)));
    made.push(objects.add(Kind::Commit, text.into_bytes(), format));
    made
}

/// An annotated tag of anything.
pub(super) fn tag(objects: &mut Objects, target: &Oid, format: Format, random: &mut Rng) -> Oid {
    let kind = objects.get(target).map_or(Kind::Commit, |object| object.kind);
    let text = format!(
        "object {target}\ntype {kind}\ntag t\ntagger A <a@example.com> 1800000000 +0000\n\nForged {}\n",
        random.u32(..)
    );
    objects.add(Kind::Tag, text.into_bytes(), format)
}

/// A pack of `oids`. With `bases`, some blobs are deltas against one of these.
pub(super) fn pack(
    objects: &Objects,
    oids: &[Oid],
    bases: &[Oid],
    format: Format,
    random: &mut Rng,
) -> Vec<u8> {
    let n_objects = u32::try_from(oids.len()).expect("a push of a test is small");
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend_from_slice(&n_objects.to_be_bytes());
    for oid in oids {
        let object = objects.get(oid).expect("only objects that were made are packed");
        let base = (object.kind == Kind::Blob && !bases.is_empty() && random.bool())
            .then(|| &bases[random.usize(0..bases.len())]);
        match base.and_then(|base| Some((base, objects.get(base)?))) {
            Some((base, against)) => {
                let delta = delta(against, object);
                entry(&mut pack, 7, &delta, &raw(base));
            }
            None => entry(&mut pack, number(object.kind), &object.data, b""),
        }
    }
    let mut hasher = gix_hash::hasher(format);
    hasher.update(&pack);
    let trailer = hasher.try_finalize().expect("the bytes are no attack");
    pack.extend_from_slice(trailer.as_slice());
    pack
}

fn entry(pack: &mut Vec<u8>, kind: u8, data: &[u8], base: &[u8]) {
    let mut size = data.len();
    let mut byte = (kind << 4) | u8::try_from(size & 15).expect("four bits");
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = u8::try_from(size & 0x7f).expect("seven bits");
        size >>= 7;
    }
    pack.push(byte);
    pack.extend_from_slice(base);
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(data).expect("memory takes all");
    pack.extend_from_slice(&deflate.finish().expect("memory takes all"));
}

/// A delta that only inserts.
fn delta(base: &Object, object: &Object) -> Vec<u8> {
    let mut delta = Vec::new();
    for mut size in [base.data.len(), object.data.len()] {
        while size > 0x7f {
            delta.push(0x80 | u8::try_from(size & 0x7f).expect("seven bits"));
            size >>= 7;
        }
        delta.push(u8::try_from(size).expect("seven bits"));
    }
    for piece in object.data.chunks(0x7f) {
        delta.push(u8::try_from(piece.len()).expect("seven bits"));
        delta.extend_from_slice(piece);
    }
    delta
}

fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

fn raw(oid: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&oid[at..at + 2], 16).expect("hexadecimal");
    (0..oid.len()).step_by(2).map(digit).collect()
}
