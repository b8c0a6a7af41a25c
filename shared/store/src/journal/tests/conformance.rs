//! What every kind of slots does, once over files of the file system, files of the simulated disk, and memory.

use super::super::slots::checkpoint_name;
use super::sim::SimDisk;
use super::*;

/// Opens the same journal again and again.
type Reopen = Box<dyn Fn() -> (Journal, Option<Checkpoint>)>;

/// Runs `check` on an empty journal of each kind.
#[track_caller]
fn on_each(check: impl Fn(&str, &Reopen)) {
    let memory = MemorySlots::default();
    check(
        "memory",
        &(Box::new(move || Journal::over(Box::new(memory.clone()), [1; 16]).unwrap()) as Reopen),
    );
    let disk = SimDisk::new(7);
    check("sim", &(Box::new(move || open_on(Box::new(disk.clone())).unwrap()) as Reopen));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zit/journal");
    let options = JournalOptions { segment_bytes: SEGMENT };
    check("files", &(Box::new(move || Journal::open(&path, options).unwrap()) as Reopen));
}

#[test]
fn records_are_numbered_from_one_and_read_back_as_appended() {
    on_each(|kind, open| {
        let (journal, checkpoint) = open();
        assert_eq!((journal.tail().0, checkpoint), (Seq::NONE, None), "{kind}");
        assert_eq!(journal.append(&drafts(0..3)).unwrap(), Seq(1)..Seq(4), "{kind}");
        assert_eq!(journal.append(&drafts(3..4)).unwrap(), Seq(4)..Seq(5), "{kind}");
        assert_eq!(journal.append(&[]).unwrap(), Seq(5)..Seq(5), "{kind}");
        let records = all(&journal);
        let read: Vec<Draft> = records.iter().map(|record| record.draft.clone()).collect();
        assert_eq!(read, drafts(0..4), "{kind}");
        assert_eq!(records.iter().map(|r| r.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4], "{kind}");
    });
}

#[test]
fn opening_anew_continues_the_chain() {
    on_each(|kind, open| {
        let mut tail = (Seq::NONE, ChainHash::default());
        for n in 0..20 {
            let (journal, _) = open();
            assert_eq!(journal.tail(), tail, "{kind}");
            journal.append(&drafts(n..n + 1)).unwrap();
            tail = journal.tail();
        }
        let (journal, _) = open();
        let read: Vec<Draft> = all(&journal).into_iter().map(|record| record.draft).collect();
        assert_eq!(read, drafts(0..20), "{kind}");
        let verified = journal.verify().unwrap();
        assert_eq!(verified.records, (Seq(1), Seq(21)), "{kind}");
    });
}

#[test]
fn reading_starts_inside_a_batch_as_well_as_at_its_border() {
    on_each(|kind, open| {
        let (journal, _) = open();
        for n in 0..9 {
            journal.append(&drafts(n * 3..n * 3 + 3)).unwrap();
        }
        for from in (1..=28).rev().chain(1..=28) {
            let read = journal.read_from(Seq(from)).unwrap().map(|r| r.unwrap().seq.0);
            assert_eq!(read.collect::<Vec<_>>(), (from..28).collect::<Vec<_>>(), "{kind}");
        }
    });
}

#[test]
fn a_checkpoint_lets_old_records_go_and_the_chain_still_verifies() {
    on_each(|kind, open| {
        let (journal, _) = open();
        for n in 0..40 {
            journal.append(&drafts(n..n + 1)).unwrap();
        }
        assert_eq!(journal.retire(Seq(30)).unwrap(), 0, "{kind}: nothing without a checkpoint");
        journal.checkpoint(Seq(25), b"at 25").unwrap();
        let size = journal.size();
        let freed = journal.retire(Seq(99)).unwrap();
        assert!(freed > 0, "{kind}");
        assert_eq!(journal.size(), size - freed, "{kind}");
        let oldest = journal.oldest().unwrap().unwrap();
        assert!(oldest > Seq(1) && oldest <= Seq(26), "{kind}: {oldest}");
        let gone = journal.read_from(Seq(1)).unwrap_err();
        assert!(matches!(gone, JournalError::Retired { .. }), "{kind}: {gone}");
        let tail = journal.tail();
        let (journal, checkpoint) = open();
        let checkpoint = checkpoint.unwrap();
        assert_eq!((checkpoint.seq, &checkpoint.state[..]), (Seq(25), &b"at 25"[..]), "{kind}");
        assert_eq!(journal.tail(), tail, "{kind}");
        assert_eq!(journal.verify().unwrap().records, (oldest, Seq(41)), "{kind}");
        assert_eq!(journal.append(&drafts(40..41)).unwrap(), Seq(41)..Seq(42), "{kind}");
    });
}

#[test]
fn the_two_newest_checkpoints_are_kept() {
    on_each(|kind, open| {
        let (journal, _) = open();
        for n in 0..5 {
            journal.append(&drafts(n..n + 1)).unwrap();
            journal.checkpoint(Seq(n + 1), b"state").unwrap();
        }
        assert_eq!(journal.verify().unwrap().checkpoints, 2, "{kind}");
        let ahead = journal.checkpoint(Seq(6), b"").unwrap_err();
        assert!(matches!(ahead, JournalError::Ahead { .. }), "{kind}: {ahead}");
        assert_eq!(open().1.unwrap().seq, Seq(5), "{kind}");
    });
}

#[test]
fn a_checkpoint_before_the_first_record_is_one() {
    on_each(|kind, open| {
        open().0.checkpoint(Seq::NONE, b"imported").unwrap();
        let (journal, checkpoint) = open();
        assert_eq!(checkpoint.unwrap().state, b"imported", "{kind}");
        assert_eq!(journal.append(&drafts(0..1)).unwrap(), Seq(1)..Seq(2), "{kind}");
    });
}

#[test]
fn a_record_or_batch_past_the_limit_is_refused_and_the_journal_goes_on() {
    let (journal, _) = Journal::over(Box::new(MemorySlots::default()), [1; 16]).unwrap();
    let limit = usize::try_from(MAX_RECORD).unwrap();
    let most = draft(0, limit - usize::try_from(draft(0, 0).size()).unwrap());
    assert_eq!(most.size(), MAX_RECORD);
    for batch in [vec![draft(0, limit)], vec![most.clone(), draft(1, 0)]] {
        let error = journal.append(&batch).unwrap_err();
        assert!(matches!(error, JournalError::TooLarge { .. }), "{error}");
    }
    assert_eq!(journal.append(&[most]).unwrap(), Seq(1)..Seq(2));
    assert_eq!(journal.append(&drafts(1..2)).unwrap(), Seq(2)..Seq(3));
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let disk = SimDisk::new(0);
    let open = || open_on(Box::new(disk.clone()));
    let (journal, _) = open().unwrap();
    for n in 0..40 {
        journal.append(&drafts(n..n + 1)).unwrap();
        if n == 20 || n == 30 {
            journal.checkpoint(Seq(n), n.to_string().as_bytes()).unwrap();
        }
    }
    journal.retire(Seq(20)).unwrap();
    disk.damage(&checkpoint_name(Seq(30)), |bytes| bytes[60] ^= 1);
    let (journal, checkpoint) = open().unwrap();
    assert_eq!(checkpoint.unwrap().seq, Seq(20));
    assert_eq!(journal.tail().0, Seq(40));
    disk.damage(&checkpoint_name(Seq(20)), |bytes| bytes.truncate(9));
    let error = open().unwrap_err();
    assert!(error.to_string().contains(".ckpt is damaged"), "{error}");
}

#[test]
fn without_any_valid_checkpoint_the_records_are_enough_if_all_are_there() {
    let disk = SimDisk::new(0);
    let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
    journal.append(&drafts(0..5)).unwrap();
    journal.checkpoint(Seq(3), b"three").unwrap();
    disk.damage(&checkpoint_name(Seq(3)), Vec::clear);
    let (journal, checkpoint) = open_on(Box::new(disk)).unwrap();
    assert_eq!((checkpoint, journal.tail().0), (None, Seq(5)));
}
