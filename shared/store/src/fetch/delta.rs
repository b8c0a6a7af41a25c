//! One object told as a delta against another: which of its bytes the other has, and what is new.
//!
//! What is the same is found by blocks of the base: the place of each is kept, and every piece of the target that holds
//! a block's bytes is compared from there in both directions. Bytes are compared before they are called the same; what
//! is not found is sent as new, so the worst is a delta that is no shorter than its target.
//!
//! Source: gitformat-pack(5), "Deltified representation".

/// How many bytes a block has, and so the shortest piece that is found.
const BLOCK: usize = 16;

/// How many bytes one instruction copies at most. Source: git's `delta.h`; a size of zero stands for it.
const MAX_COPY: usize = 0x1_0000;

/// How many new bytes one instruction brings at most.
const MAX_NEW: usize = 0x7f;

/// What [`crate::unpack`] and every git make `target` of, given `base`. Both are shorter than 4 GiB.
pub(crate) fn encode(base: &[u8], target: &[u8]) -> Vec<u8> {
    let places = Places::of(base);
    let mut delta = Vec::new();
    size(base.len(), &mut delta);
    size(target.len(), &mut delta);
    // Of the target, what is before `told` is in the delta, and what is before `at` has been looked at.
    let (mut told, mut at) = (0, 0);
    while let Some(block) = block_at(target, at) {
        let found = places.find(base, block).map(|place| {
            let before = (piece(base, 0..place), piece(target, told..at));
            let back = alike(before.0.iter().rev(), before.1.iter().rev());
            (place - back, at - back)
        });
        let Some((from, start)) = found else {
            at += 1;
            continue;
        };
        let rest = (piece(base, from..base.len()), piece(target, start..target.len()));
        let n = alike(rest.0.iter(), rest.1.iter());
        new(piece(target, told..start), &mut delta);
        copy(from, n, &mut delta);
        told = start + n;
        at = told;
    }
    new(piece(target, told..target.len()), &mut delta);
    delta
}

/// Where the blocks of a base are.
struct Places {
    /// By a number made of the bytes, where the first block of that number begins, in blocks and counted from one.
    // Invariant: the length is a power of two.
    slots: Vec<u32>,
}

impl Places {
    fn of(base: &[u8]) -> Self {
        let n_blocks = base.len() / BLOCK;
        let mut places = Self { slots: vec![0; (n_blocks * 2).next_power_of_two()] };
        for (n, block) in (1..).zip(base.as_chunks().0) {
            // The first of blocks that are alike, so that a run of them is copied from its start.
            let slot = places.slot(block);
            if let Some(free @ 0) = places.slots.get_mut(slot) {
                *free = n;
            }
        }
        places
    }

    fn find(&self, base: &[u8], block: &[u8; BLOCK]) -> Option<usize> {
        let n = usize::try_from(*self.slots.get(self.slot(block))?).ok()?.checked_sub(1)?;
        let place = n * BLOCK;
        (block_at(base, place) == Some(block)).then_some(place)
    }

    /// Every bit of the block counts: the blocks of a table with fixed columns differ in few bytes.
    fn slot(&self, block: &[u8; BLOCK]) -> usize {
        let half = |at: usize| {
            block.get(at..).and_then(<[u8]>::first_chunk).map(|b| u64::from_le_bytes(*b))
        };
        let mix = |number: u64| (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [low, high] = [half(0), half(8)].map(Option::unwrap_or_default);
        let mixed = mix(mix(low) ^ high);
        usize::try_from(mixed >> 32).unwrap_or_default() & (self.slots.len() - 1)
    }
}

fn piece(bytes: &[u8], range: std::ops::Range<usize>) -> &[u8] {
    bytes.get(range).unwrap_or_default()
}

fn block_at(bytes: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    bytes.get(at..)?.first_chunk()
}

/// How many bytes are the same from the start on.
fn alike<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

fn new(bytes: &[u8], delta: &mut Vec<u8>) {
    for piece in bytes.chunks(MAX_NEW) {
        delta.extend(u8::try_from(piece.len()));
        delta.extend_from_slice(piece);
    }
}

/// Four bits say which bytes of the offset follow, three which of the size.
fn copy(mut from: usize, mut n: usize, delta: &mut Vec<u8>) {
    while n > 0 {
        let size = n.min(MAX_COPY);
        // A size that has no bytes is the most there may be.
        let shown = if size == MAX_COPY { 0 } else { size };
        let (offset, shown) = (from.to_le_bytes(), shown.to_le_bytes());
        let bytes = offset.iter().take(4).chain(shown.iter().take(3)).copied();
        let bytes = bytes.collect::<Vec<_>>();
        let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 1 | u8::from(*byte != 0));
        delta.push(0x80 | bits);
        delta.extend(bytes.iter().filter(|byte| **byte != 0));
        from += size;
        n -= size;
    }
}

/// Seven bits a byte, the least first; the top bit says that more follow.
fn size(mut size: usize, delta: &mut Vec<u8>) {
    loop {
        let low = size.to_le_bytes()[0] & 0x7f;
        size >>= 7;
        if size == 0 {
            return delta.push(low);
        }
        delta.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unpack::apply_delta;

    #[track_caller]
    fn check(base: &[u8], target: &[u8]) -> usize {
        let delta = encode(base, target);
        assert_eq!(apply_delta(base, &delta).unwrap(), target);
        delta.len()
    }

    #[test]
    fn a_delta_makes_its_target_whatever_the_two_are() {
        for (base, target) in
            [("", ""), ("a", ""), ("", "a"), ("0123456789abcdef", "0123456789abcdef")]
        {
            check(base.as_bytes(), target.as_bytes());
        }
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..400 {
            let letters = if round % 2 == 0 { 2 } else { 255 };
            let mut bytes = |most| -> Vec<u8> {
                (0..random.usize(..most)).map(|_| random.u8(..letters)).collect()
            };
            let base = bytes(3000);
            let mut target = base.clone();
            for _ in 0..3 {
                let (new, cut) = (bytes(200), bytes(target.len() + 1).len());
                target.splice(cut..(cut + new.len() / 2).min(target.len()), new);
            }
            check(&base, &target);
            check(&target, &bytes(3000));
        }
    }

    #[test]
    fn what_is_the_same_costs_next_to_nothing() {
        let base = (0..20_000).map(|n| format!("line {n} of it\n")).collect::<String>();
        let target = base.replace("line 7000 of it", "another line").replace("line 9 of it\n", "");
        assert!(check(base.as_bytes(), target.as_bytes()) < 100);
        let zeros = vec![0; 3 << 20];
        assert!(check(&zeros, &zeros[..2 << 20]) < 400);
    }
}
