//! The journal: an append-only, hash-chained log of acknowledged transactions.
//!
//! # Use
//!
//! 1. [`Journal::open`] gives the newest valid [`Checkpoint`]; [`Journal::read_from`] the number after it gives what is to be
//!    replayed.
//! 2. [`Journal::append`] makes a batch of drafts durable with one flush: all of them or none. What it has returned for
//!    is acknowledged.
//! 3. As [`Journal::size`] grows, [`Journal::checkpoint`] keeps what is known by then, and [`Journal::retire`] drops what lies
//!    before.
//!
//! [`Journal::read_only`] reads beside a writer, without a lock; [`Journal::verify`] reads everything there is.
//!
//! # What holds
//!
//! - Records are numbered from 1 without gaps ([`Seq`]); each carries the SHA-256 of the one before it.
//! - After a crash at any moment every acknowledged batch is there, and one that was not acknowledged is there wholly or
//!   not at all.
//! - After a failed write or flush nothing more is appended until the journal is opened anew, which reads the end from
//!   disk and flushes it again. A full disk alone is refused and leaves the journal as it was.
//! - Only what a cut-short write can leave is cut off, and only at the end. All other damage is an error that names file
//!   and byte.
//!
//! The format is in `spec/journal.md`. Batches are kept by [`Slots`]: files in a folder, memory, or anything that can
//! create a numbered object once.
//!
//! Never reads a clock, applies a record, or decides what is worth keeping. Of several writers to the same files at
//! most one may have them open; the caller holds a lock.

mod checkpoint;
mod codec;
mod disk;
mod error;
mod file;
mod frame;
mod record;
mod slots;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use checkpoint::{Checkpoint, MAX_STATE};
pub use codec::MAX_RECORD;
pub use error::JournalError;
pub use frame::{MAX_BATCH, WriterId};
pub use record::{ChainHash, Draft, Fact, InlineObject, InlinePack, Origin, Record, Seq};
pub use slots::{Created, MemorySlots, Place, Slot, Slots};

use disk::Folder;
use error::Doing;
use file::{FileSlots, Mode};
use frame::Payload;

/// Where a repository's journal is, below its git directory.
pub const JOURNAL_FOLDER: &str = "zit/journal";

/// How many checkpoints are kept: the newest, and the one to fall back to.
const KEPT_CHECKPOINTS: usize = 2;

/// How a journal in files is kept.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// A new segment begins past this many bytes.
    pub segment_bytes: u64,
}

impl Default for JournalOptions {
    /// Segments of 16 MiB.
    fn default() -> Self {
        Self { segment_bytes: crate::crash::limit("ZIT_SEGMENT_BYTES", 16 << 20) }
    }
}

/// An append-only, hash-chained log. Shared freely between threads; appends wait for each other.
pub struct Journal {
    slots: Box<dyn Slots>,
    writer: WriterId,
    tail: Mutex<Tail>,
    /// The newest valid checkpoint. Locked while one is written.
    checkpoint: Mutex<Seq>,
}

#[derive(Clone, Copy, Default)]
struct Tail {
    seq: Seq,
    hash: ChainHash,
    poisoned: bool,
}

/// What [`Journal::verify`] has found in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The first and the number after the last record.
    pub records: (Seq, Seq),
    /// How many checkpoints agree with them.
    pub checkpoints: usize,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seq, hash) = self.tail();
        f.debug_struct("Journal").field("seq", &seq).field("hash", &hash).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the journal in `folder` for writing, or starts one. The caller holds the repository's lock.
    ///
    /// The checkpoint is the newest that is valid, and everything after it is verified; `None` means that records are
    /// replayed from the first.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] or [`JournalError::Missing`] when records cannot be had, else as the file system says.
    pub fn open(
        folder: &Path,
        options: JournalOptions,
    ) -> Result<(Self, Option<Checkpoint>), JournalError> {
        let disk = Folder::create(folder).doing("create", folder)?;
        let mode = Mode::Write { segment_bytes: options.segment_bytes };
        Self::over(Box::new(FileSlots::open(Box::new(disk), mode)?), WriterId::default())
    }

    /// Opens the journal in `folder` as it is now, for reading, also while a server appends to it. Passes over a torn
    /// end. Never writes.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn read_only(folder: &Path) -> Result<(Self, Option<Checkpoint>), JournalError> {
        let slots = FileSlots::open(Box::new(Folder::at(folder)), Mode::Read)?;
        Self::over(Box::new(slots), WriterId::default())
    }

    /// Opens the journal in `slots`. Where several may write, each has a `writer` id of its own.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn over(
        slots: Box<dyn Slots>,
        writer: WriterId,
    ) -> Result<(Self, Option<Checkpoint>), JournalError> {
        let journal =
            Self { slots, writer, tail: Mutex::default(), checkpoint: Mutex::new(Seq::NONE) };
        let checkpoint = journal.newest_checkpoint()?;
        let base = checkpoint.as_ref().map_or(Tail::default(), |checkpoint| Tail {
            seq: checkpoint.seq,
            hash: checkpoint.hash,
            poisoned: false,
        });
        *lock(&journal.checkpoint) = base.seq;
        journal.check_base(base)?;
        *lock(&journal.tail) = base;
        journal.follow(drop)?;
        Ok((journal, checkpoint))
    }

    /// Appends the drafts as one batch, with one flush, and says which numbers they got. Without drafts does nothing.
    ///
    /// # Errors
    /// Nothing was appended, unless [`JournalError::may_have_happened`].
    /// [`JournalError::Full`] and [`JournalError::TooLarge`] leave the journal as it was, [`JournalError::Overtaken`]
    /// wants [`Journal::catch_up`], and all others end appending until the journal is opened anew.
    pub fn append(&self, drafts: &[Draft]) -> Result<Range<Seq>, JournalError> {
        let payload = Payload::encode(drafts)?;
        let mut tail = lock(&self.tail);
        let first = tail.seq.next();
        if drafts.is_empty() {
            return Ok(first..first);
        }
        if tail.poisoned {
            return Err(JournalError::Poisoned(self.slots.name().to_owned()));
        }
        let (frame, hash) = payload.frame(first, tail.hash, self.writer);
        match self.create(first, &frame) {
            Ok(()) => {}
            Err(
                error @ (JournalError::Full { .. }
                | JournalError::Overtaken(_)
                | JournalError::ReadOnly(_)),
            ) => return Err(error),
            Err(error) => {
                tail.poisoned = true;
                return Err(error);
            }
        }
        let end = first.plus(drafts.len() as u64);
        *tail = Tail { seq: Seq(end.0 - 1), hash, poisoned: false };
        Ok(first..end)
    }

    /// Reads what other writers have appended since, and takes it as this journal's end.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] when it does not continue the chain, else as the slots say.
    pub fn catch_up(&self) -> Result<Vec<Record>, JournalError> {
        let mut records = Vec::new();
        self.follow(|record| records.push(record))?;
        Ok(records)
    }

    /// The last record's number and the chain's hash after it.
    #[must_use]
    pub fn tail(&self) -> (Seq, ChainHash) {
        let tail = lock(&self.tail);
        (tail.seq, tail.hash)
    }

    /// The oldest record that is kept; `None` when there is none.
    ///
    /// # Errors
    /// As the slots say.
    pub fn oldest(&self) -> Result<Option<Seq>, JournalError> {
        self.slots.oldest()
    }

    /// The records from `seq` to what is the last one now, verified on the way. Ends at the first error.
    ///
    /// # Errors
    /// [`JournalError::Retired`] when `seq` was dropped; each item as [`Journal::catch_up`].
    pub fn read_from(&self, seq: Seq) -> Result<Records<'_>, JournalError> {
        let seq = seq.max(Seq::NONE.next());
        let last = self.tail().0;
        if let Some(oldest) = self.oldest()?.filter(|oldest| *oldest > seq && seq <= last) {
            return Err(JournalError::Retired { seq, oldest });
        }
        let walk = Walk { journal: self, next: seq, prev: None };
        Ok(Records { walk, batch: Vec::new().into_iter(), from: seq, last })
    }

    /// Keeps `state` as what is known once record `upto` is applied, durably. The two newest checkpoints stay.
    ///
    /// # Errors
    /// [`JournalError::Ahead`] of the last record, [`JournalError::TooLarge`], else as the slots say. The journal
    /// goes on as before.
    pub fn checkpoint(&self, upto: Seq, state: &[u8]) -> Result<(), JournalError> {
        let hash = self.hash_at(upto)?;
        let bytes = checkpoint::encode(upto, hash, state)?;
        let mut newest = lock(&self.checkpoint);
        self.slots.put_checkpoint(upto, &bytes)?;
        *newest = upto.max(*newest);
        let kept = self.slots.checkpoints()?;
        let old = kept.len().saturating_sub(KEPT_CHECKPOINTS);
        kept.iter().take(old).try_for_each(|seq| self.slots.drop_checkpoint(*seq))
    }

    /// Drops old segments of which every record is before `before` and in the newest checkpoint. Says how many bytes
    /// that freed.
    ///
    /// Passing a number that the older checkpoint has reached too keeps it good to fall back to.
    ///
    /// # Errors
    /// As the slots say.
    pub fn retire(&self, before: Seq) -> Result<u64, JournalError> {
        let newest = lock(&self.checkpoint);
        let size = self.size();
        self.slots.drop_before(before.min(newest.next()))?;
        Ok(size.saturating_sub(self.size()))
    }

    /// How many bytes the journal takes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.slots.size()
    }

    /// Reads every record and checkpoint there is.
    ///
    /// # Errors
    /// The first damage.
    pub fn verify(&self) -> Result<Verified, JournalError> {
        let last = self.tail().0;
        let first = self.oldest()?.unwrap_or(last.next());
        let mut checkpoints = self.checkpoints()?;
        checkpoints.retain(|checkpoint| checkpoint.seq.next() >= first);
        let count = checkpoints.len();
        let mut walk = Walk { journal: self, next: first, prev: None };
        if first == Seq::NONE.next() {
            walk.prev = Some(ChainHash::default());
        } else if let Some(base) = checkpoints.iter().find(|it| it.seq.next() == first) {
            walk.prev = Some(base.hash);
        }
        while walk.next <= last {
            let Some(batch) = walk.next_batch()? else { return Err(self.missing(walk.next)) };
            for (record, hash) in batch {
                let here = checkpoints.iter().find(|checkpoint| checkpoint.seq == record.seq);
                if let Some(checkpoint) = here.filter(|checkpoint| checkpoint.hash != hash) {
                    return Err(self.foreign(checkpoint.seq));
                }
            }
        }
        Ok(Verified { records: (first, last.next()), checkpoints: count })
    }

    /// Moves the tail to the end of what is there, past each record.
    fn follow(&self, mut pass: impl FnMut(Record)) -> Result<(), JournalError> {
        let mut tail = lock(&self.tail);
        let mut walk = Walk { journal: self, next: tail.seq.next(), prev: Some(tail.hash) };
        while let Some(batch) = walk.next_batch()? {
            for (record, hash) in batch {
                (tail.seq, tail.hash) = (record.seq, hash);
                pass(record);
            }
        }
        Ok(())
    }

    fn create(&self, first: Seq, frame: &[u8]) -> Result<(), JournalError> {
        match self.slots.create(first, frame)? {
            Created::Created => Ok(()),
            Created::Taken | Created::Unknown => match self.slots.find(first)? {
                Some(slot) if slot.frame == frame => Ok(()),
                Some(_) => Err(JournalError::Overtaken(first)),
                None => {
                    let path = self.slots.name().to_owned();
                    Err(JournalError::Unknown { path, seq: first })
                }
            },
        }
    }

    /// The newest checkpoint that can be read. One that is damaged is passed over if another one, or the records
    /// themselves, reach far enough.
    fn newest_checkpoint(&self) -> Result<Option<Checkpoint>, JournalError> {
        let mut damage = None;
        for seq in self.slots.checkpoints()?.into_iter().rev() {
            match self.read_checkpoint(seq) {
                Ok(found) => return Ok(Some(found)),
                Err(error @ JournalError::Damaged { .. }) => {
                    tracing::warn!(%error, "passing over a checkpoint");
                    damage = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match damage {
            Some(error) if self.oldest()? != Some(Seq::NONE.next()) => Err(error),
            Some(_) | None => Ok(None),
        }
    }

    fn read_checkpoint(&self, seq: Seq) -> Result<Checkpoint, JournalError> {
        let bytes = self.slots.read_checkpoint(seq)?.ok_or_else(|| self.missing(seq))?;
        let damaged = |why: &str| JournalError::Damaged {
            path: self.slots.checkpoint_place(seq),
            offset: 0,
            why: why.to_owned(),
        };
        let found = checkpoint::decode(&bytes).map_err(damaged)?;
        if found.seq == seq { Ok(found) } else { Err(damaged("it is of another record")) }
    }

    fn checkpoints(&self) -> Result<Vec<Checkpoint>, JournalError> {
        self.slots.checkpoints()?.into_iter().map(|seq| self.read_checkpoint(seq)).collect()
    }

    /// Whether the records continue what the checkpoint says, without a gap.
    fn check_base(&self, base: Tail) -> Result<(), JournalError> {
        let oldest = self.slots.oldest()?;
        if oldest.is_some_and(|oldest| oldest > base.seq.next()) {
            return Err(self.missing(base.seq.next()));
        }
        if base.seq == Seq::NONE || oldest == Some(base.seq.next()) {
            return Ok(());
        }
        // The record of the checkpoint itself, or the ones after it, are always kept.
        if self.find_hash(base.seq)? == base.hash { Ok(()) } else { Err(self.foreign(base.seq)) }
    }

    fn hash_at(&self, seq: Seq) -> Result<ChainHash, JournalError> {
        let tail = *lock(&self.tail);
        if seq > tail.seq {
            return Err(JournalError::Ahead { upto: seq, last: tail.seq });
        }
        match seq {
            Seq::NONE => Ok(ChainHash::default()),
            seq if seq == tail.seq => Ok(tail.hash),
            seq => self.find_hash(seq),
        }
    }

    fn find_hash(&self, seq: Seq) -> Result<ChainHash, JournalError> {
        let batch = Walk { journal: self, next: seq, prev: None }.next_batch()?;
        let found = batch.into_iter().flatten().find(|(record, _)| record.seq == seq);
        found.map(|(_, hash)| hash).ok_or_else(|| self.missing(seq))
    }

    fn missing(&self, seq: Seq) -> JournalError {
        JournalError::Missing { path: self.slots.name().to_owned(), seq }
    }

    fn foreign(&self, checkpoint: Seq) -> JournalError {
        let path = self.slots.checkpoint_place(checkpoint);
        let why = "its chain hash is not the record's".to_owned();
        JournalError::Damaged { path, offset: 0, why }
    }
}

/// Records in order. See [`Journal::read_from`].
#[derive(Debug)]
pub struct Records<'a> {
    walk: Walk<'a>,
    batch: std::vec::IntoIter<(Record, ChainHash)>,
    from: Seq,
    last: Seq,
}

impl Iterator for Records<'_> {
    type Item = Result<Record, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((record, _)) = self.batch.next() {
                if record.seq < self.from {
                    continue;
                }
                return (record.seq <= self.last).then_some(Ok(record));
            }
            if self.walk.next > self.last {
                return None;
            }
            match self.walk.next_batch() {
                Ok(Some(batch)) => self.batch = batch.into_iter(),
                Ok(None) => return Some(Err(self.end(self.walk.journal.missing(self.walk.next)))),
                Err(error) => return Some(Err(self.end(error))),
            }
        }
    }
}

impl Records<'_> {
    /// Nothing follows the error.
    fn end(&mut self, error: JournalError) -> JournalError {
        self.walk.next = self.last.next();
        error
    }
}

/// A way through the batches that checks the chain.
#[derive(Debug)]
struct Walk<'a> {
    journal: &'a Journal,
    /// The record that is wanted next.
    next: Seq,
    /// The chain's hash before it; not known at first when the walk begins in the middle.
    prev: Option<ChainHash>,
}

impl Walk<'_> {
    /// The batch that holds the record wanted next; `None` when there is none.
    fn next_batch(&mut self) -> Result<Option<Vec<(Record, ChainHash)>>, JournalError> {
        let Some(Slot { frame, place }) = self.journal.slots.find(self.next)? else {
            return Ok(None);
        };
        let damaged = |why: String| JournalError::Damaged {
            path: place.path.clone(),
            offset: place.offset,
            why,
        };
        let batch = frame::decode(&frame).map_err(|why| damaged(why.to_string()))?;
        let next = self.next;
        let Some((here, _)) = batch.iter().find(|(record, _)| record.seq == next) else {
            return Err(damaged(format!("it does not hold record {next}")));
        };
        if self.prev.is_some_and(|prev| prev != here.prev) {
            return Err(damaged(format!("record {next} does not continue the chain")));
        }
        if let Some((last, hash)) = batch.last() {
            (self.next, self.prev) = (last.seq.next(), Some(*hash));
        }
        Ok(Some(batch))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
