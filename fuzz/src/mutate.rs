//! One random change of an input. What to change is drawn from what breaks decoders: bits, lengths, pieces twice, pieces
//! of another input, and the bytes that formats give a meaning to.

use fastrand::Rng;

/// Bytes that some format reads as more than text.
const MEANINGFUL: &[&[u8]] = &[
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"/",
    b"..",
    b":",
    b"=",
    b"#",
    b"%2e",
    b"%00",
    b"%",
    b"{",
    b"}",
    b"[",
    b"(",
    b"\"",
    b"\\",
    b"//",
    b"/*",
    b"\xff",
    b"\xc3\x28",
    b"\xe2\x80\x8b",
    b"\xef\xbb\xbf",
    b"0000",
    b"0001",
    b"0002",
    b"0003",
    b"0004",
    b"fff0",
    b"fff1",
    b"ffff",
    b"-1",
    b"18446744073709551615",
    b"99999999999999999999",
    b"\x80",
    b"\x7f",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"0000000000000000000000000000000000000000",
    b"refs/zit/",
    b".lock",
    b"null",
    b"1e999",
];

/// Changes `input` in one place.
pub(crate) fn once(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.usize(..=input.len());
    let until = at + rng.usize(..=(input.len() - at).min(64));
    match rng.u8(..9) {
        0 => flip(input, rng),
        1 => input.truncate(at),
        2 => drop(input.drain(at..until)),
        3 => insert(input, at, MEANINGFUL[rng.usize(..MEANINGFUL.len())]),
        4 => {
            let piece = MEANINGFUL[rng.usize(..MEANINGFUL.len())];
            drop(input.splice(at..until, piece.iter().copied()));
        }
        5 => {
            let piece = input[at..until].to_vec();
            let most = if rng.u8(..8) == 0 { 200 } else { 3 };
            let times = rng.usize(1..=most);
            insert(input, at, &piece.repeat(times));
        }
        6 => {
            let from = rng.usize(..=other.len());
            let to = from + rng.usize(..=other.len() - from);
            insert(input, at, &other[from..to]);
        }
        7 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.u8(..);
            }
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add(if rng.bool() { 1 } else { 255 });
            }
        }
    }
}

fn flip(input: &mut [u8], rng: &mut Rng) {
    if !input.is_empty() {
        let at = rng.usize(..input.len());
        input[at] ^= 1 << rng.u8(..8);
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    drop(input.splice(at..at, piece.iter().copied()));
}
