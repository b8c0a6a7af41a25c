//! Lists of refs that were read before, for clients that ask for the same again and again.
//!
//! Git changes a ref by renaming a file into a folder, or by replacing `packed-refs`; either leaves another time on the
//! folder or the file. A list is good as long as the stamps of every folder that was walked, and of `packed-refs`, are
//! those from before it was read.
//!
//! Times of a file system are coarse: a change right after another one may leave the same. So a list is only trusted if
//! it was read when its stamps had been the same for [`COARSE`] already.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bstr::{BStr, BString};

use super::StoredRef;
use crate::error::StoreError;
use crate::fsio::Stamp;

/// Longer than any tick by which file systems count.
const COARSE: Duration = Duration::from_millis(30);

/// How many lists are kept, and the longest prefix of one, in bytes.
const MAX_LISTS: usize = 64;
const MAX_PREFIX: usize = 256;

/// How many folders are looked at where nobody may wait.
const MAX_FOLDERS: usize = 16;

/// What was read under which stamps.
pub(super) struct List {
    pub(super) folders: Vec<PathBuf>,
    pub(super) refs: Vec<StoredRef>,
    /// Whether symbolic refs were met, also those that lead nowhere yet: what they lead to may lie elsewhere.
    pub(super) has_symbolic: bool,
}

#[derive(Clone)]
struct Entry {
    stamps: Arc<[Option<Stamp>]>,
    /// Since when these stamps are known.
    since: Instant,
    /// Whether the list was read when the stamps were old enough.
    trusted: bool,
    list: Arc<List>,
}

/// Lists by prefix.
#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<BString, Entry>>);

impl Cache {
    /// The list of a prefix, read anew with `read` unless it is known to be as it was.
    pub(super) fn list(
        &self,
        prefix: &BStr,
        packed: &Path,
        read: impl Fn() -> Result<List, StoreError>,
    ) -> Result<Arc<List>, StoreError> {
        // As one: another thread may keep another list meanwhile, and what is known of that says nothing of this one.
        let known = {
            let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            entries.get(prefix).cloned()
        };
        let Some(known) = known else { return self.keep(prefix, packed, read()?, None) };
        let stamps = stamps(packed, &known.list.folders)?;
        let same = *known.stamps == *stamps;
        if same && known.trusted {
            return Ok(known.list);
        }
        let since = known.since.elapsed() >= COARSE && same;
        self.keep(prefix, packed, read()?, since.then_some(stamps))
    }

    /// The list of a prefix that is in memory and known to be as it was; `None` where it would have to be read, or has
    /// more than [`MAX_FOLDERS`] to look at.
    pub(super) fn known(
        &self,
        prefix: &BStr,
        packed: &Path,
    ) -> Result<Option<Arc<List>>, StoreError> {
        let found = {
            let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = entries.get(prefix).filter(|entry| entry.trusted);
            entry.map(|entry| (Arc::clone(&entry.list), Arc::clone(&entry.stamps)))
        };
        let few = found.filter(|(list, _)| list.folders.len() <= MAX_FOLDERS);
        let Some((list, seen)) = few else { return Ok(None) };
        Ok((stamps(packed, &list.folders)? == *seen).then_some(list))
    }

    /// Keeps a list that was read after `before` had been the stamps for long enough, if it is known that they were.
    fn keep(
        &self,
        prefix: &BStr,
        packed: &Path,
        list: List,
        before: Option<Vec<Option<Stamp>>>,
    ) -> Result<Arc<List>, StoreError> {
        let stamps = stamps(packed, &list.folders)?;
        let trusted = before.is_some_and(|before| before == stamps);
        let list = Arc::new(list);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match entries.get(prefix) {
            Some(entry) if *entry.stamps == *stamps => entry.since,
            _ => Instant::now(),
        };
        if prefix.len() > MAX_PREFIX || list.has_symbolic {
            entries.remove(prefix);
            return Ok(list);
        }
        if entries.len() >= MAX_LISTS && !entries.contains_key(prefix) {
            entries.clear();
        }
        let stamps = Arc::from(stamps);
        let entry = Entry { stamps, since, trusted, list: Arc::clone(&list) };
        entries.insert(prefix.to_owned(), entry);
        Ok(list)
    }
}

fn stamps(packed: &Path, folders: &[PathBuf]) -> Result<Vec<Option<Stamp>>, StoreError> {
    std::iter::once(packed).chain(folders.iter().map(PathBuf::as_path)).map(Stamp::of).collect()
}
