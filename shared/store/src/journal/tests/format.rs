//! The bytes: what is written reads back, everything else is told apart.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{codec, frame};
use super::*;

fn text() -> impl Strategy<Value = BString> {
    vec(any::<u8>(), 0..20).prop_map(BString::from)
}

fn some_oid() -> impl Strategy<Value = Oid> {
    prop_oneof!["[0-9a-f]{39}1", "[0-9a-f]{63}1"].prop_map(|hex| hex.parse().unwrap())
}

fn change() -> impl Strategy<Value = RefUpdate> {
    let change = prop_oneof![
        some_oid().prop_map(|new| RefChange::Create { new }),
        (some_oid(), some_oid()).prop_map(|(old, new)| RefChange::Move { old, new }),
        some_oid().prop_map(|old| RefChange::Delete { old }),
    ];
    ("refs/[a-z]{1,9}/[a-zé]{1,9}", change)
        .prop_map(|(name, change)| RefUpdate { name: name.parse().unwrap(), change })
}

fn object() -> impl Strategy<Value = InlineObject> {
    let kind = prop_oneof![Just(Kind::Commit), Just(Kind::Tree), Just(Kind::Blob), Just(Kind::Tag)];
    (kind, some_oid(), vec(any::<u8>(), 0..50)).prop_map(|(kind, oid, bytes)| InlineObject {
        kind,
        oid,
        bytes,
    })
}

fn any_draft() -> impl Strategy<Value = Draft> {
    let origin = prop_oneof![
        Just(Origin::Push),
        Just(Origin::Referee),
        Just(Origin::External),
        Just(Origin::Override)
    ];
    let pack = (text(), vec(any::<u8>(), 0..50), vec(any::<u8>(), 0..50))
        .prop_map(|(name, pack, idx)| InlinePack { name, pack, idx });
    let fact = (text(), text(), text()).prop_map(|(kind, key, value)| Fact { kind, key, value });
    let who = (any::<u64>(), text(), text(), origin);
    let what = (
        vec(change(), 0..4),
        vec(object(), 0..3),
        vec(pack, 0..3),
        vec(text(), 0..3),
        vec(fact, 0..3),
    );
    (who, what).prop_map(|((time_ms, principal, agent, origin), what)| {
        let (changes, objects, packs, named_packs, facts) = what;
        Draft { time_ms, principal, agent, origin, changes, objects, packs, named_packs, facts }
    })
}

fn framed(drafts: &[Draft]) -> Vec<u8> {
    frame::Payload::encode(drafts).unwrap().frame(Seq(5), ChainHash([7; 32]), [9; 16]).0
}

proptest! {
    #[test]
    fn a_draft_reads_back_as_written_and_its_size_is_known_before(draft in any_draft()) {
        let bytes = codec::encode(&draft).unwrap();
        prop_assert_eq!(bytes.len() as u64, draft.size());
        prop_assert_eq!(codec::decode(&bytes), Ok(draft));
    }

    #[test]
    fn any_bytes_decode_to_an_error_or_to_what_encodes_to_them(
        draft in any_draft(),
        harm in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = codec::encode(&draft).unwrap();
        for (at, byte) in harm {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok(draft) = codec::decode(bytes) {
                prop_assert_eq!(codec::encode(&draft).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn a_batch_reads_back_as_written(drafts in vec(any_draft(), 1..5)) {
        let read = frame::decode(&framed(&drafts)).unwrap();
        let seqs: Vec<u64> = read.iter().map(|(record, _)| record.seq.0).collect();
        prop_assert_eq!(seqs, (5..5 + drafts.len() as u64).collect::<Vec<_>>());
        let chained = read.windows(2).all(|pair| pair[0].1 == pair[1].0.prev);
        prop_assert!(chained && read[0].0.prev == ChainHash([7; 32]));
        let back: Vec<Draft> = read.into_iter().map(|(record, _)| record.draft).collect();
        prop_assert_eq!(back, drafts);
    }

    #[test]
    fn any_bytes_are_looked_at_without_a_panic(bytes in vec(any::<u8>(), 0..300), offset in 0u64..2000) {
        let mut framed = frame::MAGIC.to_vec();
        framed.extend_from_slice(&bytes);
        for bytes in [bytes, framed] {
            prop_assert!(!matches!(frame::look(&bytes, offset), frame::Look::Whole(_)));
            prop_assert!(frame::decode(&bytes).is_err());
        }
    }
}

#[test]
fn every_flipped_bit_of_a_batch_is_noticed() {
    let whole = framed(&drafts(0..2));
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut harmed = whole.clone();
            harmed[at] ^= 1 << bit;
            assert!(frame::decode(&harmed).is_err(), "byte {at}, bit {bit}");
            let look = frame::look(&harmed, 0);
            assert!(matches!(look, frame::Look::Damaged(_)), "byte {at}, bit {bit}: {look:?}");
        }
    }
}

#[test]
fn every_cut_of_a_batch_is_a_torn_end() {
    let whole = framed(&drafts(0..2));
    for end in 0..whole.len() {
        assert_eq!(frame::look(&whole[..end], 77), frame::Look::Torn, "cut at {end}");
    }
    assert!(matches!(frame::look(&whole, 77), frame::Look::Whole(_)));
}

#[test]
fn a_lost_sector_is_a_torn_end_unless_something_follows() {
    let batch = framed(&[draft(0, 3000)]);
    for offset in [0, 40, 500] {
        let borders = (1..).map(|n| n * 512 - offset).take_while(|&at| at < batch.len());
        let borders: Vec<usize> = std::iter::once(0).chain(borders).chain([batch.len()]).collect();
        for pair in borders.windows(2) {
            let mut torn = batch.clone();
            torn[pair[0]..pair[1]].fill(0);
            assert_eq!(frame::look(&torn, offset as u64), frame::Look::Torn, "{offset}, {pair:?}");
            torn.extend(framed(&drafts(0..1)));
            let look = frame::look(&torn, offset as u64);
            assert!(matches!(look, frame::Look::Damaged(_)), "{offset}, {pair:?}: {look:?}");
        }
    }
}

#[test]
fn a_newer_layout_is_refused_and_never_cut_off() {
    let mut record = codec::encode(&draft(0, 0)).unwrap();
    record[0] = 2;
    assert_eq!(codec::decode(&record), Err(codec::DecodeError::Version(2)));
    let mut batch = framed(&drafts(0..1));
    batch[5] = 2;
    let check = <sha2::Sha256 as sha2::Digest>::digest(&batch[..72]);
    batch[72..80].copy_from_slice(&check[..8]);
    let newer = frame::FrameError::Version(2);
    assert_eq!(frame::look(&batch, 0), frame::Look::Damaged(newer));
}

#[test]
fn the_format_is_pinned() {
    // Written into files: these bytes do not change without a new version.
    let mut draft = Draft::new(1_700_000_000_000, "alice", Origin::Push);
    draft.agent = "a7".into();
    let change = RefChange::Move { old: oid(b'1'), new: oid(b'2') };
    draft.changes = vec![RefUpdate { name: RefName::new("refs/heads/x").unwrap(), change }];
    draft.facts = vec![Fact::epoch(3)];
    let (bytes, hash) =
        frame::Payload::encode(&[draft]).unwrap().frame(Seq(1), ChainHash::default(), [0; 16]);
    let first = frame::decode(&bytes).unwrap();
    assert_eq!(first[0].1, hash);
    assert_eq!(hex(&bytes[..24]), "7a69746a000100000000007e000000010000000000000001");
    assert_eq!(
        hex(&bytes[80..111]),
        "0000007a010000018bcfe568000100000005616c6963650000000261370000"
    );
    assert_eq!(
        hash.to_string(),
        "f52d54434662f0b78f6f70fbed1b893084c99cd063292edb458887869a8206e8"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
