//! Maintenance: many small packs and loose objects become few packs, with what makes large fetches cheap beside them.
//!
//! [`Store::is_maintenance_due`] looks, [`Store::maintain`] does it, with stock git, at the lowest priority:
//!
//! 1. `git pack-refs`, all but what is below `refs/zit/`, which comes and goes; then each file of a ref that says the
//!    same is removed. A reftable is folded by each writer.
//! 2. `git repack --geometric=2`: the small packs and all loose objects into one, until each pack is twice as large as
//!    the next smaller one; then a multi-pack-index and its bitmaps.
//! 3. `git commit-graph write`, of what refs reach.
//!
//! Invariant: no object is ever thrown away, whether a ref reaches it or not, so that nothing has to be known of pushes
//! under way. That is left to the administrator's `git gc`.
//!
//! Readers and pushes go on meanwhile. Packs that vanish under a reader are looked for again, as git itself does it.
//! A run that dies leaves what [`mark`] and the next run, or the next opening, clean up.

mod due;
mod mark;
mod stop;

use bstr::ByteSlice;

use self::mark::{Mark, Phase};
pub use self::stop::Stop;
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::fsio;
use crate::git::{Finished, Git, GitError};
use crate::refs::{Files, Form};
use crate::store::Store;

pub(crate) use self::due::Folded;
pub(crate) use self::mark::recover;

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintained {
    /// All is done.
    Done,
    /// It was asked to stop.
    Stopped,
    /// Maintenance of git's own is under way, or an earlier run of ours that outlived its server.
    Busy,
}

impl Store {
    /// Folds packs, loose objects and refs together. Takes as long as it takes, on this thread.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] without the right to write; [`StoreError::Git`] when a step fails, which loses nothing.
    pub fn maintain(&self, stop: &Stop) -> Result<Maintained, StoreError> {
        self.must_write()?;
        let Some(mark) = Mark::take(self.common_dir())? else { return Ok(Maintained::Busy) };
        // Packs that are kept for refs to come are no packs to be folded.
        if let Err(error) = self.settle() {
            tracing::info!(%error, "some packs are left for the next time");
        }
        let run = self.run_steps(stop, &mark);
        mark.release();
        self.note_folded();
        match run {
            // Whatever an ended program says is of no interest.
            _ if stop.is_asked() => Ok(Maintained::Stopped),
            Err(error) => Err(error),
            Ok(()) => Ok(Maintained::Done),
        }
    }

    fn run_steps(&self, stop: &Stop, mark: &Mark) -> Result<(), StoreError> {
        mark.enter(Phase::Refs)?;
        if let Form::Files(files) = self.refs.form() {
            self.fold_refs(files, stop, mark)?;
        }
        crash_point("maintain.refs");
        mark.enter(Phase::Objects)?;
        self.repack(stop, mark)?;
        crash_point("maintain.objects");
        mark.enter(Phase::Graph)?;
        self.step("commit-graph", &["write", "--reachable", "--no-progress"], stop, mark)?;
        crash_point("maintain.graph");
        Ok(())
    }

    fn fold_refs(&self, files: &Files, stop: &Stop, mark: &Mark) -> Result<(), StoreError> {
        const PACK: [&str; 4] = ["--all", "--no-prune", "--exclude", "refs/zit/*"];
        if let Err(error) = self.step("pack-refs", &PACK, stop, mark) {
            // git before 2.42 cannot leave refs out, and does without.
            tracing::info!(%error, "refs stay loose");
            return Ok(());
        }
        // The lines are on the disk before the files go.
        fsio::sync_if_there(files.packed_path())?;
        fsio::sync(self.common_dir())?;
        for name in files.packed_too()? {
            if stop.is_asked() {
                break;
            }
            self.fold_ref(files, name.as_bstr())?;
        }
        Ok(())
    }

    fn repack(&self, stop: &Stop, mark: &Mark) -> Result<(), GitError> {
        const REPACK: [&str; 6] = ["--geometric=2", "-d", "-l", "-n", "-q", "--write-midx"];
        // A bitmap needs every object in one place.
        if !self.objects_dir().join("info/alternates").exists() {
            let repack = REPACK.into_iter().chain(["--write-bitmap-index"]).collect::<Vec<_>>();
            match self.step("repack", &repack, stop, mark) {
                Ok(()) => return Ok(()),
                // A push in the middle brings objects that are not yet in that place.
                Err(error) => tracing::info!(%error, "no bitmap this time"),
            }
        }
        self.step("repack", &REPACK, stop, mark)
    }

    fn step(&self, name: &str, args: &[&str], stop: &Stop, mark: &Mark) -> Result<(), GitError> {
        if stop.is_asked() {
            return Ok(());
        }
        let done = Git::at(self.common_dir(), &["safe.directory=*"], name)
            .args(args)
            .in_background(mark.file(), stop)
            .and_then(Finished::success);
        if done.is_err() {
            // A program that was ended may have had no time to tidy up, and the mark says where it was.
            mark.clean(self.common_dir());
        }
        done.map(drop)
    }
}
