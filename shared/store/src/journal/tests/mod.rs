//! The journal's suites: the format, one conformance suite for every kind of slots, several writers, and crashes.

mod conformance;
mod crash;
mod damage;
mod format;
mod sim;
mod writers;

use bstr::BString;
use zit_model::{Oid, RefChange, RefName, RefUpdate};

use super::disk::Disk;
use super::file::{FileSlots, Mode};
use super::*;
use crate::Kind;

/// Small, so that a few batches fill a segment.
const SEGMENT: u64 = 2000;

fn oid(digit: u8) -> Oid {
    Oid::from_hex(&[digit; 40]).unwrap()
}

/// A draft that is told from others by `n`, with an object of `size` bytes.
fn draft(n: u64, size: usize) -> Draft {
    let name = RefName::new(format!("refs/heads/{n}")).unwrap();
    let mut draft = Draft::new(n, "alice", Origin::Push);
    draft.agent = BString::from("agent-7");
    draft.changes = vec![RefUpdate { name, change: RefChange::Create { new: oid(b'1') } }];
    draft.objects =
        vec![InlineObject { kind: Kind::Blob, oid: oid(b'2'), bytes: vec![0x5a; size] }];
    draft.facts = vec![Fact::epoch(n)];
    draft
}

fn drafts(numbers: std::ops::Range<u64>) -> Vec<Draft> {
    numbers.map(|n| draft(n, 100)).collect()
}

fn open_on(disk: Box<dyn Disk>) -> Result<(Journal, Option<Checkpoint>), JournalError> {
    let slots = FileSlots::open(disk, Mode::Write { segment_bytes: SEGMENT })?;
    Journal::over(Box::new(slots), WriterId::default())
}

fn all(journal: &Journal) -> Vec<Record> {
    let oldest = journal.oldest().unwrap().unwrap_or(Seq(1));
    journal.read_from(oldest).unwrap().collect::<Result<_, _>>().unwrap()
}
