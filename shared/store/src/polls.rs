//! Lists of refs as they were sent, for clients that ask for the same again and again.
//!
//! An answer is good as long as what it was made of is: lists of refs that the cache of [`refs`](crate::refs) knows to be
//! as they were, the table of deferred refs, and the configuration. To look costs a few stats, so that it may be done where
//! nobody may wait; only a configuration that has changed is read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};

use crate::config::RepoConfig;
use crate::error::StoreError;
use crate::refs::{KnownList, Refs};
use crate::{Reading, Store};

/// How many answers are kept.
const MAX_ANSWERS: usize = 64;

/// The longest request whose answer is kept, in bytes.
const MAX_REQUEST: usize = 4 * 1024;

/// The longest answer that is kept, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// How many prefixes a request may name whose answer is kept.
const MAX_PREFIXES: usize = 8;

/// All that a list of some refs depends on, at one moment.
#[derive(Clone)]
pub struct Ground {
    lists: Vec<(BString, KnownList)>,
    /// The version of the deferred refs, where any of them is asked for.
    deferred: Option<u64>,
    config: Arc<RepoConfig>,
}

impl PartialEq for Ground {
    fn eq(&self, other: &Self) -> bool {
        self.lists == other.lists
            && self.deferred == other.deferred
            && Arc::ptr_eq(&self.config, &other.config)
    }
}

/// Answers by request.
#[derive(Default)]
pub(crate) struct Polls(Mutex<HashMap<Vec<u8>, Kept>>);

/// One answer, and what it was made of.
#[derive(Clone)]
struct Kept {
    ground: Ground,
    answer: Arc<[u8]>,
}

impl Reading<'_> {
    /// What a list of the refs below `prefixes` depends on now; `None` where that takes more than a few stats to know.
    ///
    /// # Errors
    /// [`StoreError`] when a file cannot be looked at.
    pub fn ground<'p>(
        &self,
        prefixes: impl IntoIterator<Item = &'p BStr>,
    ) -> Result<Option<Ground>, StoreError> {
        let prefixes: Vec<&BStr> = prefixes.into_iter().take(MAX_PREFIXES + 1).collect();
        let lists_refs = |prefix: &&BStr| prefix.starts_with(b"refs/");
        if prefixes.is_empty() || prefixes.len() > MAX_PREFIXES || !prefixes.iter().all(lists_refs)
        {
            return Ok(None);
        }
        self.store().ground(&prefixes)
    }

    /// The answer to `request` that was kept, if what it was made of is as it was.
    ///
    /// # Errors
    /// As [`Reading::ground`].
    pub fn kept_list(&self, request: &[u8]) -> Result<Option<Arc<[u8]>>, StoreError> {
        let store = self.store();
        let Some(Kept { ground, answer }) = store.polls().find(request) else { return Ok(None) };
        let prefixes: Vec<&BStr> =
            ground.lists.iter().map(|(prefix, _)| prefix.as_bstr()).collect();
        let holds = store.ground(&prefixes)?.is_some_and(|now| now == ground);
        Ok(holds.then_some(answer))
    }

    /// Keeps the answer to `request`, which was made after `before` had been its ground, if that is so still.
    ///
    /// # Errors
    /// As [`Reading::ground`].
    pub fn keep_list(
        &self,
        request: &[u8],
        before: Ground,
        answer: &[u8],
    ) -> Result<(), StoreError> {
        if request.len() > MAX_REQUEST || answer.len() > MAX_ANSWER {
            return Ok(());
        }
        let prefixes: Vec<&BStr> =
            before.lists.iter().map(|(prefix, _)| prefix.as_bstr()).collect();
        if self.store().ground(&prefixes)?.is_some_and(|now| now == before) {
            self.store().polls().keep(request, before, answer);
        }
        Ok(())
    }
}

impl Store {
    fn ground(&self, prefixes: &[&BStr]) -> Result<Option<Ground>, StoreError> {
        let config = self.config()?;
        let mut lists = Vec::with_capacity(prefixes.len());
        for &prefix in prefixes {
            let Some(list) = self.refs.known_list(prefix)? else { return Ok(None) };
            lists.push((prefix.to_owned(), list));
        }
        let any_deferred = prefixes.iter().any(|prefix| Refs::may_be_deferred(prefix));
        let deferred = match (any_deferred, self.refs.deferred_version()) {
            (false, _) => None,
            (true, Some(version)) => Some(version),
            (true, None) => return Ok(None),
        };
        Ok(Some(Ground { lists, deferred, config }))
    }
}

impl Polls {
    fn find(&self, request: &[u8]) -> Option<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(request).cloned()
    }

    fn keep(&self, request: &[u8], ground: Ground, answer: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_ANSWERS && !kept.contains_key(request) {
            kept.clear();
        }
        kept.insert(request.to_owned(), Kept { ground, answer: Arc::from(answer) });
    }
}
