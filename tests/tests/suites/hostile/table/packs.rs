//! Packs that lie about themselves: sizes, counts, deltas, compression.

use super::super::Target;
use super::pack::{BLOB, Pack, delta_bomb, hex, id};
use super::{Row, branch, check, push};

/// A push of a ref to a blob of the pack, which is refused for the pack.
fn lie(name: &str, pack: impl AsRef<[u8]>, says: &'static str) -> Row {
    push(name, branch(&hex(id(BLOB, b"hello")), pack.as_ref()), says)
}

fn hello() -> Pack {
    Pack::new().object(BLOB, b"hello")
}

/// A delta behind the blob `hello`.
fn delta(name: &str, delta: &[u8], says: &'static str) -> Row {
    let pack = hello();
    let distance = pack.len() - Pack::new().len();
    lie(name, pack.ofs_delta(distance, delta).finish(), says)
}

#[test]
fn packs_that_lie_are_refused() {
    let (a, b) = (id(BLOB, b"a"), id(BLOB, b"b"));
    let far = |distance| hello().ofs_delta(distance, b"\x05\x01\x01x").finish();
    let rows = vec![
        lie("an object twice", hello().object(BLOB, b"hello").finish(), "appears twice"),
        lie(
            "a delta without its base",
            hello().ref_delta(&a, b"\x01\x01\x01a").finish(),
            "unresolved",
        ),
        lie(
            "deltas in a circle",
            Pack::new().ref_delta(&b, b"\x01\x01\x01a").ref_delta(&a, b"\x01\x01\x01b").finish(),
            "unresolved",
        ),
        lie("a base before the pack", far(1 << 40), "out of bound"),
        lie("a base within the header", far(25), ""),
        lie("a delta of itself", far(0), ""),
        lie("a base between two objects", far(3), ""),
        delta("a delta for a base of another size", b"\x04\x01\x01x", "another size"),
        delta("a delta that copies from outside", b"\x05\x01\x91\x05\x01", "outside its base"),
        delta("a delta that makes less", b"\x05\x02\x01x", "less than it says"),
        delta("a delta that makes more", b"\x05\x01\x02xy", "more than it says"),
        delta("a delta with a reserved instruction", b"\x05\x01\x00", "reserved"),
        delta("a delta of no bytes", b"", "cut off"),
        lie("fewer objects than announced", hello().announcing(3), "cut off"),
        lie("four billion objects announced", hello().announcing(u32::MAX), ""),
        lie("more objects than announced", hello().object(BLOB, b"x").announcing(1), "junk"),
        lie("no objects announced", hello().announcing(0), "checksum does not match"),
        lie("bytes before the checksum", hello().junk(b"more").finish(), "junk"),
        lie("bytes behind the checksum", [hello().finish(), b"more".to_vec()].concat(), "junk"),
        lie("an entry of kind 0", Pack::new().object(0, b"hello").finish(), "type"),
        lie("an entry of kind 5", Pack::new().object(5, b"hello").finish(), "type"),
        lie("bytes that are not deflated", Pack::new().undeflated(BLOB, 5, b"hello").finish(), ""),
        lie("a deflated stream cut off", Pack::new().undeflated(BLOB, 5, b"\x78\x9c").finish(), ""),
        lie("a size that does not end", Pack::new().junk(&[0xbf; 40]).announcing(1), ""),
        lie("less than it says", Pack::new().says(BLOB, 9, b"hello").finish(), "than it says"),
        lie("more than it says", Pack::new().says(BLOB, 2, b"hello").finish(), "than it says"),
    ];
    check(&mut Target::new(), rows);
}

#[test]
fn bombs_are_refused_in_little_memory() {
    let zeroes = vec![0; 256 << 20];
    let rows = vec![
        lie(
            "a blob that inflates past what it says",
            Pack::new().says(BLOB, 10, &zeroes).finish(),
            "larger than it says",
        ),
        lie("a blob that says it is huge", Pack::new().says(BLOB, 1 << 45, b"small").finish(), ""),
        lie("deltas that grow to four gigabytes", delta_bomb(), "over limit"),
    ];
    drop(zeroes);
    check(&mut Target::new(), rows);
}
