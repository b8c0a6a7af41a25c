//! When maintenance is due: what piled up is counted, now and then, up to a limit.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::error::StoreError;
use crate::store::Store;

/// How many questions are answered without looking for each one that is.
const ASKED_PER_LOOK: u32 = 16;

/// How many loose refs are too many.
const MAX_LOOSE_REFS: usize = 200;

/// What the last run left.
#[derive(Default)]
pub(crate) struct Folded {
    n_asked: AtomicU32,
    n_packs: AtomicUsize,
}

impl Store {
    /// Whether enough has piled up. Looks at the first of every sixteen times that it is asked.
    ///
    /// # Errors
    /// [`StoreError`] when the configuration cannot be read.
    pub fn is_maintenance_due(&self) -> Result<bool, StoreError> {
        let asked = self.folded().n_asked.fetch_add(1, Ordering::Relaxed);
        if !asked.is_multiple_of(ASKED_PER_LOOK) {
            return Ok(false);
        }
        let limits = self.config()?.maintenance;
        let Some(limits) = limits else { return Ok(false) };
        // Packs that a run could not fold are no reason for another one.
        let left = self.folded().n_packs.load(Ordering::Relaxed);
        let too_many = limits.max_packs.max(left + limits.max_packs.div_ceil(2));
        let packs = limits.max_packs > 0 && n_packs(&self.objects_dir()) >= too_many;
        Ok(packs
            || n_loose(&self.objects_dir(), limits.max_loose) >= limits.max_loose
            || n_loose_refs(&self.common_dir().join("refs")) >= MAX_LOOSE_REFS)
    }

    pub(super) fn note_folded(&self) {
        self.folded().n_packs.store(n_packs(&self.objects_dir()), Ordering::Relaxed);
    }
}

/// How many packs a repack may fold.
fn n_packs(objects: &Path) -> usize {
    let entries = fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
    let packs = entries.map(|entry| entry.path());
    packs
        .filter(|path| {
            path.extension() == Some(OsStr::new("pack")) && !path.with_extension("keep").exists()
        })
        .count()
}

/// How many loose objects there are, counted up to `max`.
fn n_loose(objects: &Path, max: usize) -> usize {
    let folders = fs::read_dir(objects).into_iter().flatten().flatten();
    let fan_out = folders.filter(|folder| folder.file_name().len() == 2);
    let files = fan_out.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
    files.take(max).count()
}

/// How many refs have a file of their own, but for those below `refs/zit/`; counted up to the limit.
fn n_loose_refs(refs: &Path) -> usize {
    let mut folders = vec![refs.to_owned()];
    let mut n = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path() == refs.join("zit") {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else {
                n += 1;
            }
            if n >= MAX_LOOSE_REFS {
                return n;
            }
        }
    }
    n
}
