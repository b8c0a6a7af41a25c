//! [`Slots`]: where a journal keeps its batches. A numbered slot is created once and never changed; whoever creates it
//! first has it. [`MemorySlots`] keeps them in memory.
//!
//! The trait asks for no more than an object store with create-only writes gives: one object a batch, named by its first
//! record. It never looks at what a batch says beyond how many records it holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::JournalError;
use super::frame::Header;
use super::record::Seq;

/// How an attempt to create a slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "only a created slot holds the batch"]
pub enum Created {
    /// The slot holds the batch, durably.
    Created,
    /// The slot was taken, or lies before the end.
    Taken,
    /// The answer was lost. Reading the slot tells.
    Unknown,
}

/// A batch as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its bytes, as they were created.
    pub frame: Vec<u8>,
    /// Where it was found.
    pub place: Place,
}

/// Where bytes were found, for errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of the object.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
}

/// Where a journal keeps its batches and checkpoints.
pub trait Slots: Send + Sync {
    /// Makes the slot that starts with record `first`, durably.
    ///
    /// # Errors
    /// [`JournalError::Full`] only when nothing was written. Otherwise the batch may have been.
    fn create(&self, first: Seq, frame: &[u8]) -> Result<Created, JournalError>;

    /// The slot that holds record `seq`; `None` past the end and before the oldest.
    ///
    /// # Errors
    /// [`JournalError`] when it cannot be read, or cannot be found for damage.
    fn find(&self, seq: Seq) -> Result<Option<Slot>, JournalError>;

    /// The first record of the oldest slot.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn oldest(&self) -> Result<Option<Seq>, JournalError>;

    /// Drops slots of which every record is before `before`, from the oldest on. The newest stays; some others may.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn drop_before(&self, before: Seq) -> Result<(), JournalError>;

    /// The checkpoints there are, ascending.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn checkpoints(&self) -> Result<Vec<Seq>, JournalError>;

    /// A checkpoint's bytes; `None` when there is none of that record.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn read_checkpoint(&self, seq: Seq) -> Result<Option<Vec<u8>>, JournalError>;

    /// Keeps a checkpoint, durably and wholly or not at all. Takes the place of one of the same record.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn put_checkpoint(&self, seq: Seq, bytes: &[u8]) -> Result<(), JournalError>;

    /// Drops a checkpoint.
    ///
    /// # Errors
    /// As [`Slots::find`].
    fn drop_checkpoint(&self, seq: Seq) -> Result<(), JournalError>;

    /// How many bytes slots and checkpoints take.
    fn size(&self) -> u64;

    /// What the journal is called in errors.
    fn name(&self) -> &Path;

    /// Where a checkpoint is, for errors.
    fn checkpoint_place(&self, seq: Seq) -> PathBuf {
        self.name().join(checkpoint_name(seq))
    }
}

/// The name of a checkpoint's file or object.
pub(super) fn checkpoint_name(seq: Seq) -> String {
    format!("{:020}.ckpt", seq.0)
}

/// Slots in memory. A clone is another door to the same slots.
#[derive(Clone, Debug, Default)]
pub struct MemorySlots(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    /// By first record: the number after the last, and the batch.
    slots: BTreeMap<Seq, (Seq, Vec<u8>)>,
    checkpoints: BTreeMap<Seq, Vec<u8>>,
}

impl MemorySlots {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots for MemorySlots {
    fn create(&self, first: Seq, frame: &[u8]) -> Result<Created, JournalError> {
        let mut memory = self.lock();
        let taken = memory.slots.last_key_value().is_some_and(|(_, (end, _))| first < *end);
        if taken {
            return Ok(Created::Taken);
        }
        let end = Header::parse(frame).map_or(first.next(), |header| header.end());
        memory.slots.insert(first, (end, frame.to_vec()));
        Ok(Created::Created)
    }

    fn find(&self, seq: Seq) -> Result<Option<Slot>, JournalError> {
        let memory = self.lock();
        let found = memory.slots.range(..=seq).next_back().filter(|(_, (end, _))| seq < *end);
        Ok(found.map(|(first, (_, frame))| Slot {
            frame: frame.clone(),
            place: Place { path: self.name().join(first.to_string()), offset: 0 },
        }))
    }

    fn oldest(&self) -> Result<Option<Seq>, JournalError> {
        Ok(self.lock().slots.keys().next().copied())
    }

    fn drop_before(&self, before: Seq) -> Result<(), JournalError> {
        let mut memory = self.lock();
        let newest = memory.slots.keys().next_back().copied();
        memory.slots.retain(|first, (end, _)| *end > before || Some(*first) == newest);
        Ok(())
    }

    fn checkpoints(&self) -> Result<Vec<Seq>, JournalError> {
        Ok(self.lock().checkpoints.keys().copied().collect())
    }

    fn read_checkpoint(&self, seq: Seq) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.lock().checkpoints.get(&seq).cloned())
    }

    fn put_checkpoint(&self, seq: Seq, bytes: &[u8]) -> Result<(), JournalError> {
        self.lock().checkpoints.insert(seq, bytes.to_vec());
        Ok(())
    }

    fn drop_checkpoint(&self, seq: Seq) -> Result<(), JournalError> {
        self.lock().checkpoints.remove(&seq);
        Ok(())
    }

    fn size(&self) -> u64 {
        let memory = self.lock();
        let slots = memory.slots.values().map(|(_, frame)| frame.len() as u64);
        slots.chain(memory.checkpoints.values().map(|bytes| bytes.len() as u64)).sum()
    }

    fn name(&self) -> &Path {
        Path::new("memory")
    }
}
