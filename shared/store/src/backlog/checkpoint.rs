//! Checkpoints: the files flushed, so that records before need not be read again, and what other programs do to refs
//! afterwards is not undone by reading them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Backlog;
use crate::crash::{crash_point, limit};
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::journal::{Journal, Seq};
use crate::tx::encode_state;

/// How many bytes are journaled between two checkpoints. Opening reads at most about as many.
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// After how long a checkpoint is taken although little was journaled.
const CHECKPOINT_AGE: Duration = Duration::from_mins(10);

/// How many files and folders are flushed one by one; where there are more, the file system is.
const MAX_FLUSHED: usize = 128;

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
    /// When that was taken, or the journal opened.
    since: Instant,
}

impl Followed {
    /// Whether it is time for a checkpoint.
    pub(super) fn is_due(&self) -> bool {
        let due = limit("ZIT_CHECKPOINT_BYTES", CHECKPOINT_BYTES);
        self.journal.size().saturating_sub(self.size) >= due
            || self.since.elapsed() >= CHECKPOINT_AGE
    }
}

impl Backlog {
    /// Takes checkpoints of `journal` from now on; the last was at `seq`, and what is up to `settled` is in the files.
    pub(crate) fn follow(&self, journal: Arc<Journal>, base: u64, seq: Seq, settled: u64) {
        // How much of the journal is after the checkpoint is not known; the next one comes early at worst.
        let size = if seq == Seq::NONE { 0 } else { journal.size() };
        let mut state = self.state();
        state.followed = Some(Followed { journal, base, size, seq, since: Instant::now() });
        state.settled = state.settled.max(settled);
    }

    /// Takes a checkpoint if it is time for one, and drops records that are old.
    pub(crate) fn checkpoint_if_due(&self) -> Result<(), StoreError> {
        // One at a time, and nobody pays meanwhile.
        let _paying = self.packer();
        let (followed, settled) = {
            let state = self.state();
            let followed = state.followed.clone().filter(|_| !state.closing);
            (followed, Seq(state.settled))
        };
        let Some(followed) = followed.filter(|it| it.is_due() && settled > it.seq) else {
            return Ok(());
        };
        self.flush_all()?;
        self.checkpoint(followed, settled)
    }

    /// Takes a checkpoint however little was journaled, and flushes no more than that.
    pub(super) fn checkpoint_refs(&self) -> Result<(), StoreError> {
        let _paying = self.packer();
        let (followed, settled) = {
            let state = self.state();
            (state.followed.clone(), Seq(state.settled))
        };
        let Some(followed) = followed.filter(|it| settled > it.seq) else { return Ok(()) };
        self.check_place()?;
        match self.written_since(&followed)? {
            Some(paths) => paths.iter().try_for_each(|path| fsio::sync_if_there(path))?,
            None => self.flush_all()?,
        }
        self.checkpoint(followed, settled)
    }

    /// The files of refs that were written since the last checkpoint, and their folders; `None` for too many.
    fn written_since(&self, followed: &Followed) -> Result<Option<BTreeSet<PathBuf>>, StoreError> {
        let mut paths = BTreeSet::new();
        for record in followed.journal.read_from(followed.seq.next())? {
            for update in &record?.changes {
                let path = self.path(&update.name);
                let folders = path.ancestors().take_while(|path| *path != self.git_dir);
                paths.extend(folders.map(Path::to_owned));
            }
            if paths.len() > MAX_FLUSHED {
                return Ok(None);
            }
        }
        Ok(Some(paths))
    }

    fn flush_all(&self) -> Result<(), StoreError> {
        let folder = File::open(&self.git_dir).doing("open", &self.git_dir)?;
        rustix::fs::syncfs(&folder).map_err(std::io::Error::from).doing("flush", &self.git_dir)
    }

    fn checkpoint(&self, followed: Followed, settled: Seq) -> Result<(), StoreError> {
        let Followed { journal, base, seq, .. } = followed;
        crash_point("checkpoint.flushed");
        journal.checkpoint(settled, &encode_state(base))?;
        crash_point("checkpoint.written");
        if journal.size() > limit("ZIT_KEPT_BYTES", KEPT_BYTES) {
            // The checkpoint before stays good to fall back to.
            journal.retire(seq)?;
        }
        let (size, since) = (journal.size(), Instant::now());
        self.state().followed = Some(Followed { journal, base, size, seq: settled, since });
        Ok(())
    }
}
