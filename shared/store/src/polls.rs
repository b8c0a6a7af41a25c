//! Lists of refs as they were sent, for clients that ask for the same again and again.
//!
//! An answer is good as long as what it was made of is: lists of refs that the cache of [`refs`](crate::refs) knows to be
//! as they were, the table of deferred refs, and the configuration. To look costs a few stats: a
//! [`Glance`](crate::Glance) does it where nobody may wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};

use crate::config::RepoConfig;
use crate::error::StoreError;
use crate::refs::{KnownList, Refs};
use crate::{Glance, Reading, Store};

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
        let store = self.store();
        store.ground(&prefixes, store.config()?)
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
        let store = self.store();
        if store.ground(&before.prefixes(), store.config()?)?.is_some_and(|now| now == before) {
            store.polls().keep(request, before, answer);
        }
        Ok(())
    }
}

impl Glance<'_> {
    /// The answer to `request` that was kept, if what it was made of is known to be as it was.
    #[must_use]
    pub fn kept_list(&self, request: &[u8]) -> Option<Arc<[u8]>> {
        let Kept { ground, answer } = self.store().polls().find(request)?;
        let now = self.store().ground(&ground.prefixes(), Arc::clone(self.config())).ok()??;
        (now == ground).then_some(answer)
    }
}

impl Ground {
    fn prefixes(&self) -> Vec<&BStr> {
        self.lists.iter().map(|(prefix, _)| prefix.as_bstr()).collect()
    }
}

impl Store {
    /// What a list of the refs below `prefixes` depends on, the configuration being `config`. Takes a few stats.
    fn ground(
        &self,
        prefixes: &[&BStr],
        config: Arc<RepoConfig>,
    ) -> Result<Option<Ground>, StoreError> {
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
