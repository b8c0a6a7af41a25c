//! Deltas: an object told as pieces of another one and new bytes.

use super::{Stop, bad_object, reserve};

/// Builds the object that `delta` makes of `base`.
pub(super) fn apply(base: &[u8], delta: &[u8], room: &mut usize) -> Result<Vec<u8>, Stop> {
    let mut rest = delta;
    if size(&mut rest)? != base.len() {
        return Err(bad_object("a delta is for a base of another size"));
    }
    let n_result = size(&mut rest)?;
    reserve(room, n_result)?;
    let mut result = Vec::with_capacity(n_result);
    while !rest.is_empty() {
        let piece = match byte(&mut rest)? {
            0 => return Err(bad_object("a delta has an instruction that is reserved")),
            copy @ 0x80.. => copied(copy, &mut rest, base)?,
            n_new => {
                let (new, behind) = rest.split_at_checked(n_new.into()).ok_or_else(cut)?;
                rest = behind;
                new
            }
        };
        if piece.len() > n_result.saturating_sub(result.len()) {
            return Err(bad_object("a delta makes more than it says"));
        }
        result.extend_from_slice(piece);
    }
    if result.len() < n_result {
        return Err(bad_object("a delta makes less than it says"));
    }
    Ok(result)
}

/// The piece of the base that a copy names: four bits say which bytes of an offset follow, three which of a size.
fn copied<'a>(copy: u8, rest: &mut &[u8], base: &'a [u8]) -> Result<&'a [u8], Stop> {
    let mut fields = [0; 7];
    for (bit, field) in fields.iter_mut().enumerate() {
        if copy & (1 << bit) != 0 {
            *field = byte(rest)?;
        }
    }
    let [a, b, c, d, sizes @ ..] = fields;
    let offset = u32::from_le_bytes([a, b, c, d]) as usize;
    let [a, b, c] = sizes;
    let size = match u32::from_le_bytes([a, b, c, 0]) {
        0 => 0x1_0000,
        size => size as usize,
    };
    let piece = offset.checked_add(size).and_then(|end| base.get(offset..end));
    piece.ok_or_else(|| bad_object("a delta copies from outside its base"))
}

/// Seven bits a byte, the least first; the top bit says that more follow.
fn size(rest: &mut &[u8]) -> Result<usize, Stop> {
    let mut size = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = byte(rest)?;
        let bits = usize::from(byte & 0x7f);
        size |= bits.checked_shl(shift).filter(|part| part >> shift == bits).ok_or(Stop::TooBig)?;
        if byte & 0x80 == 0 {
            return Ok(size);
        }
    }
    Err(bad_object("a delta has a size without end"))
}

fn byte(rest: &mut &[u8]) -> Result<u8, Stop> {
    let (byte, behind) = rest.split_first().ok_or_else(cut)?;
    *rest = behind;
    Ok(*byte)
}

fn cut() -> Stop {
    bad_object("a delta is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, String> {
        apply(base, delta, &mut 1000).map_err(|stop| format!("{stop:?}"))
    }

    #[test]
    fn copies_and_new_bytes_make_an_object() {
        assert_eq!(applied(b"hello", b"\x05\x07\x91\x01\x04\x03 yo").unwrap(), b"ello yo");
        let base = vec![7; 0x1_0000];
        assert_eq!(apply(&base, b"\x80\x80\x04\x80\x80\x04\x80", &mut (1 << 20)).unwrap(), base);
    }

    #[test]
    fn what_is_wrong_with_a_delta_is_found_before_it_does_harm() {
        for (delta, what) in [
            (&b""[..], "cut off"),
            (b"\x05", "cut off"),
            (b"\x04\x01\x01x", "another size"),
            (b"\x05\x01\x00", "reserved"),
            (b"\x05\x01\x91\x05\x01", "outside"),
            (b"\x05\x01\x9f\xff\xff\xff\xff\x01", "outside"),
            (b"\x05\x01\x02xy", "more than"),
            (b"\x05\x03\x02xy", "less than"),
            (b"\x05\x03\x03xy", "cut off"),
            (b"\x05\xff\xff\xff\xff\x0f", "TooBig"),
            (b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "TooBig"),
        ] {
            let error = applied(b"hello", delta).unwrap_err();
            assert!(error.contains(what), "{delta:x?}: {error}");
        }
    }
}
