//! Seeded crashes: whatever fails and whenever, an acknowledged batch is there afterwards, another one wholly or not at
//! all, the chain verifies, and the next append continues it.

use super::sim::{Fault, SimDisk};
use super::*;

/// What must be there.
#[derive(Default)]
struct Model {
    acknowledged: Vec<Draft>,
    /// A batch whose append failed in a way that leaves open whether it happened.
    open: Vec<Draft>,
    next: u64,
}

/// How often things went which way, so that the suite can see that it tries what it means to.
#[derive(Debug, Default)]
struct Tally {
    failed: u32,
    full: u32,
    kept: u32,
    lost: u32,
    powerless: u32,
    killed: u32,
}

/// One journal on one disk, through several lives.
struct Run {
    seed: u64,
    dice: fastrand::Rng,
    disk: SimDisk,
    model: Model,
    tally: Tally,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            dice: fastrand::Rng::with_seed(!seed),
            disk: SimDisk::new(seed),
            model: Model::default(),
            tally: Tally::default(),
        }
    }

    fn plan_a_fault(&mut self) {
        let fault = self.dice.choice([Fault::Error, Fault::Full, Fault::Crash]).unwrap();
        self.disk.plan(self.dice.u64(..25), fault);
    }

    /// Opens the journal and compares it with the model. Opening may fail for injected errors, never for damage.
    fn open(&mut self) -> Journal {
        for attempt in 0.. {
            if attempt > 0 {
                self.end_of_life();
            }
            if attempt < 3 && self.dice.u8(..3) == 0 {
                self.plan_a_fault();
            } else {
                self.disk.calm();
            }
            match open_on(Box::new(self.disk.clone())) {
                Ok((journal, checkpoint)) => {
                    self.disk.calm();
                    if self.disk.is_down() {
                        continue;
                    }
                    self.compare(&journal, checkpoint.as_ref());
                    return journal;
                }
                Err(JournalError::Io { .. } | JournalError::Full { .. }) => {}
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
        unreachable!("calm attempts do not fail")
    }

    fn end_of_life(&mut self) {
        if self.disk.is_down() || self.dice.bool() {
            self.tally.powerless += 1;
            self.disk.power_loss();
        } else {
            self.tally.killed += 1;
        }
    }

    fn compare(&mut self, journal: &Journal, checkpoint: Option<&Checkpoint>) {
        let seed = self.seed;
        let there = usize::try_from(journal.tail().0.0).unwrap();
        let both = self.model.acknowledged.len() + self.model.open.len();
        if !self.model.open.is_empty() && there == both {
            let open = std::mem::take(&mut self.model.open);
            self.model.acknowledged.extend(open);
            self.tally.kept += 1;
        } else if !self.model.open.is_empty() {
            self.model.open.clear();
            self.tally.lost += 1;
        }
        assert_eq!(there, self.model.acknowledged.len(), "seed {seed}");
        journal.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let oldest = journal.oldest().unwrap().map_or(1, |seq| seq.0);
        let at = usize::try_from(oldest - 1).unwrap();
        let found: Vec<Draft> = all(journal).into_iter().map(|record| record.draft).collect();
        assert_eq!(found, self.model.acknowledged[at..], "seed {seed}");
        if let Some(checkpoint) = checkpoint {
            assert_eq!(checkpoint.state, checkpoint.seq.0.to_string().as_bytes(), "seed {seed}");
        } else {
            assert_eq!(oldest, 1, "seed {seed}");
        }
    }

    fn append(&mut self, journal: &Journal) -> bool {
        let count = self.dice.u64(1..4);
        let size = self.dice.choice([0, 40, 700, 3000]).unwrap();
        let batch: Vec<Draft> =
            (self.model.next..self.model.next + count).map(|n| draft(n, size)).collect();
        self.model.next += count;
        match journal.append(&batch) {
            Ok(range) => {
                assert_eq!(range.start.0, self.model.acknowledged.len() as u64 + 1);
                self.model.acknowledged.extend(batch);
                true
            }
            Err(JournalError::Full { .. }) => {
                self.tally.full += 1;
                self.disk.calm();
                true
            }
            Err(error) => {
                assert!(error.may_have_happened(), "seed {}: {error}", self.seed);
                self.tally.failed += 1;
                self.model.open = batch;
                let again = journal.append(&drafts(0..1)).unwrap_err();
                assert!(matches!(again, JournalError::Poisoned(_)), "seed {}: {again}", self.seed);
                false
            }
        }
    }

    /// Works until something fails for good, or for long enough.
    fn live(&mut self) {
        let journal = self.open();
        self.plan_a_fault();
        for _ in 0..12 {
            let tail = journal.tail().0;
            match self.dice.u8(..8) {
                0 => {
                    // A checkpoint that fails harms nothing.
                    let _ = journal.checkpoint(tail, tail.to_string().as_bytes());
                }
                1 => {
                    let _ = journal.retire(Seq(self.dice.u64(..=tail.0 + 1)));
                }
                _ => {
                    if !self.append(&journal) {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn an_acknowledged_batch_survives_every_crash_and_another_is_there_wholly_or_not_at_all() {
    let mut tally = Tally::default();
    for seed in 0..600 {
        let mut run = Run::new(seed);
        for _ in 0..4 {
            run.live();
            run.end_of_life();
        }
        let journal = run.open();
        assert!(run.append(&journal), "seed {seed}");
        let Tally { failed, full, kept, lost, powerless, killed } = run.tally;
        tally.failed += failed;
        tally.full += full;
        tally.kept += kept;
        tally.lost += lost;
        tally.powerless += powerless;
        tally.killed += killed;
    }
    let least = [tally.failed, tally.full, tally.kept, tally.lost, tally.powerless, tally.killed];
    assert!(least.iter().all(|&count| count >= 100), "{tally:?}");
}

#[test]
fn a_batch_seen_after_a_failed_flush_survives_the_next_power_loss() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
        journal.append(&drafts(0..2)).unwrap();
        // The write works, the flush does not.
        disk.plan(1, Fault::Error);
        assert!(journal.append(&drafts(2..4)).unwrap_err().may_have_happened(), "seed {seed}");
        let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
        let seen = all(&journal);
        assert_eq!(seen.len(), 4, "seed {seed}: the cache still has it");
        disk.power_loss();
        let (journal, _) = open_on(Box::new(disk)).unwrap();
        assert_eq!(all(&journal), seen, "seed {seed}");
    }
}

#[test]
fn a_full_disk_refuses_a_batch_and_leaves_the_journal_as_it_was() {
    for seed in 0..100 {
        let disk = SimDisk::new(seed);
        let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
        // Also in the first batch of a segment, which the third is.
        for filled in [0, 1, 4] {
            let before = (journal.tail(), journal.size(), disk.names());
            disk.plan(0, Fault::Full);
            let refused = journal.append(&drafts(0..3)).unwrap_err();
            assert!(matches!(refused, JournalError::Full { .. }), "seed {seed}: {refused}");
            assert!(!refused.may_have_happened());
            assert_eq!((journal.tail(), journal.size(), disk.names()), before, "seed {seed}");
            disk.calm();
            journal.append(&drafts(filled..filled + 9)).unwrap();
        }
        disk.power_loss();
        let (journal, _) = open_on(Box::new(disk)).unwrap();
        assert_eq!(all(&journal).len(), 27, "seed {seed}");
    }
}

#[test]
fn where_a_full_disk_cannot_be_tidied_nothing_more_is_appended() {
    let disk = SimDisk::new(1);
    let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
    journal.append(&drafts(0..1)).unwrap();
    disk.plan(0, Fault::Full);
    journal.append(&drafts(1..2)).unwrap_err();
    disk.plan(0, Fault::Crash);
    let error = journal.append(&drafts(1..2)).unwrap_err();
    assert!(error.may_have_happened(), "{error}");
    assert!(matches!(journal.append(&drafts(1..2)), Err(JournalError::Poisoned(_))));
}
