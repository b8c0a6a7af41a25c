//! Checkpoints: the files flushed, so that records before need not be read again.

use std::fs::File;
use std::sync::Arc;

use super::Backlog;
use crate::crash::{crash_point, limit};
use crate::error::{Doing, StoreError};
use crate::journal::{Journal, Seq};
use crate::tx::encode_state;

/// How many bytes are journaled between two checkpoints. Opening reads at most about as many.
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// How many bytes of records are kept, for whoever asks what happened.
const KEPT_BYTES: u64 = 64 << 20;

/// The journal that the backlog belongs to.
#[derive(Clone)]
pub(super) struct Followed {
    journal: Arc<Journal>,
    /// See [`crate::tx::Ledger`].
    base: u64,
    /// The journal's size at the last checkpoint, in bytes.
    size: u64,
    /// The last checkpoint.
    seq: Seq,
}

impl Backlog {
    /// Takes checkpoints of `journal` from now on; the last was at `seq`, and what is up to `settled` is in the files.
    pub(crate) fn follow(&self, journal: Arc<Journal>, base: u64, seq: Seq, settled: u64) {
        // How much of the journal is after the checkpoint is not known; the next one comes early at worst.
        let size = if seq == Seq::NONE { 0 } else { journal.size() };
        let mut state = self.state();
        state.followed = Some(Followed { journal, base, size, seq });
        state.settled = state.settled.max(settled);
    }

    /// Takes a checkpoint if much was journaled since the last one, and drops records that are old.
    pub(crate) fn checkpoint_if_due(&self) -> Result<(), StoreError> {
        // One at a time, and nobody pays meanwhile.
        let _paying = self.packer();
        let (followed, settled) = {
            let state = self.state();
            (state.followed.clone(), Seq(state.settled))
        };
        let Some(Followed { journal, base, size, seq }) = followed else { return Ok(()) };
        let due = limit("ZIT_CHECKPOINT_BYTES", CHECKPOINT_BYTES);
        if journal.size().saturating_sub(size) < due || settled <= seq {
            return Ok(());
        }
        let folder = File::open(&self.git_dir).doing("open", &self.git_dir)?;
        rustix::fs::syncfs(&folder).map_err(std::io::Error::from).doing("flush", &self.git_dir)?;
        crash_point("checkpoint.flushed");
        journal.checkpoint(settled, &encode_state(base))?;
        crash_point("checkpoint.written");
        if journal.size() > limit("ZIT_KEPT_BYTES", KEPT_BYTES) {
            // The checkpoint before stays good to fall back to.
            journal.retire(seq)?;
        }
        let size = journal.size();
        self.state().followed = Some(Followed { journal, base, size, seq: settled });
        Ok(())
    }
}
