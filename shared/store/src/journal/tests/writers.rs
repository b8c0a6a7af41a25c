//! Several writers to the same slots, and slots that do not always answer.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn over(slots: &MemorySlots, writer: u8) -> Journal {
    Journal::over(Box::new(slots.clone()), [writer; 16]).unwrap().0
}

#[test]
fn of_two_writers_one_gets_the_number_and_the_other_reads_what_was_appended() {
    let slots = MemorySlots::default();
    let [a, b] = [1, 2].map(|writer| over(&slots, writer));
    a.append(&drafts(0..2)).unwrap();
    // The same drafts: only the writer tells the batches apart.
    let late = b.append(&drafts(0..2)).unwrap_err();
    assert!(matches!(late, JournalError::Overtaken(Seq(1))), "{late}");
    assert!(!late.may_have_happened());
    assert_eq!(b.catch_up().unwrap().len(), 2);
    assert_eq!(b.append(&drafts(2..3)).unwrap(), Seq(3)..Seq(4));
    assert_eq!(a.catch_up().unwrap(), all(&b)[2..]);
    assert_eq!(a.tail(), b.tail());
}

#[test]
fn racing_writers_make_one_chain() {
    let slots = MemorySlots::default();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let journal = over(&slots, writer);
            scope.spawn(move || {
                let mut done = 0;
                while done < 50 {
                    match journal.append(&[draft(u64::from(writer) * 100 + done, 0)]) {
                        Ok(_) => done += 1,
                        Err(JournalError::Overtaken(_)) => _ = journal.catch_up().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let journal = over(&slots, 9);
    let mut times: Vec<u64> = all(&journal).iter().map(|record| record.time_ms).collect();
    times.sort_unstable();
    let expected: Vec<u64> = (0..4).flat_map(|w| (0..50).map(move |n| w * 100 + n)).collect();
    assert_eq!(times, expected);
}

/// Slots whose answers get lost: before the batch is taken, or after.
struct Forgetful {
    slots: MemorySlots,
    takes: AtomicBool,
}

impl Slots for Forgetful {
    fn create(&self, first: Seq, frame: &[u8]) -> Result<Created, JournalError> {
        if self.takes.load(Ordering::Relaxed) {
            let _ = self.slots.create(first, frame)?;
        }
        Ok(Created::Unknown)
    }

    fn find(&self, seq: Seq) -> Result<Option<Slot>, JournalError> {
        self.slots.find(seq)
    }

    fn oldest(&self) -> Result<Option<Seq>, JournalError> {
        self.slots.oldest()
    }

    fn drop_before(&self, before: Seq) -> Result<(), JournalError> {
        self.slots.drop_before(before)
    }

    fn checkpoints(&self) -> Result<Vec<Seq>, JournalError> {
        self.slots.checkpoints()
    }

    fn read_checkpoint(&self, seq: Seq) -> Result<Option<Vec<u8>>, JournalError> {
        self.slots.read_checkpoint(seq)
    }

    fn put_checkpoint(&self, seq: Seq, bytes: &[u8]) -> Result<(), JournalError> {
        self.slots.put_checkpoint(seq, bytes)
    }

    fn drop_checkpoint(&self, seq: Seq) -> Result<(), JournalError> {
        self.slots.drop_checkpoint(seq)
    }

    fn size(&self) -> u64 {
        self.slots.size()
    }

    fn name(&self) -> &Path {
        self.slots.name()
    }
}

#[test]
fn a_lost_answer_is_found_out_by_reading_the_slot() {
    let slots = MemorySlots::default();
    let forgetful = Forgetful { slots: slots.clone(), takes: AtomicBool::new(true) };
    let (journal, _) = Journal::over(Box::new(forgetful), [1; 16]).unwrap();
    assert_eq!(journal.append(&drafts(0..1)).unwrap(), Seq(1)..Seq(2));
    over(&slots, 2).append(&drafts(1..2)).unwrap();
    let late = journal.append(&drafts(1..2)).unwrap_err();
    assert!(matches!(late, JournalError::Overtaken(Seq(2))), "{late}");
}

#[test]
fn a_batch_that_cannot_be_found_out_about_ends_appending() {
    let forgetful = Forgetful { slots: MemorySlots::default(), takes: AtomicBool::new(false) };
    let (journal, _) = Journal::over(Box::new(forgetful), [1; 16]).unwrap();
    let unknown = journal.append(&drafts(0..1)).unwrap_err();
    assert!(unknown.may_have_happened(), "{unknown}");
    assert!(matches!(journal.append(&drafts(0..1)), Err(JournalError::Poisoned(_))));
}

#[test]
fn a_reader_beside_a_writer_sees_whole_batches_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("journal");
    let (journal, _) = Journal::open(&path, JournalOptions::default()).unwrap();
    journal.append(&drafts(0..3)).unwrap();
    let (reader, _) = Journal::read_only(&path).unwrap();
    journal.append(&drafts(3..4)).unwrap();
    assert_eq!(all(&reader).len(), 3, "what was there when it was opened");
    assert!(matches!(reader.append(&drafts(0..1)), Err(JournalError::ReadOnly(_))));
    assert!(matches!(reader.checkpoint(Seq(1), b""), Err(JournalError::ReadOnly(_))));
    let segment = path.join("00000000000000000001.log");
    let whole = std::fs::read(&segment).unwrap();
    for cut in [1, 40, 100] {
        let torn = &whole[..whole.len() - cut];
        std::fs::write(&segment, torn).unwrap();
        let (reader, _) = Journal::read_only(&path).unwrap();
        assert_eq!(all(&reader).len(), 3, "cut by {cut}");
        reader.verify().unwrap();
        assert_eq!(std::fs::read(&segment).unwrap(), torn, "cut by {cut}");
    }
}
