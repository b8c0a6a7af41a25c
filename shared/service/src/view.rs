//! [`View`]: a repository as those see it who fetch from one of its namespaces.
//!
//! Refs and HEAD are the namespace's, by the names that it has for them; objects are the repository's. Which refs are
//! hidden is asked with both names.
//!
//! Source: gitnamespaces(7); git's `ls-refs.c` and `upload-pack.c`, where they strip names.

use bstr::ByteSlice;
use zit_model::Namespace;
use zit_referee::RefereeError;
use zit_store::{Reading, StoredRef};
use zit_wire::ls_refs::Prefixes;

use crate::source::FetchSource;

/// One namespace of a repository.
#[derive(Clone, Copy)]
pub struct View<'a> {
    source: &'a dyn FetchSource,
    namespace: &'a Namespace,
}

impl<'a> View<'a> {
    /// The namespace `namespace` of `source`.
    #[must_use]
    pub fn new(source: &'a dyn FetchSource, namespace: &'a Namespace) -> Self {
        Self { source, namespace }
    }
}

impl FetchSource for View<'_> {
    fn reading(&self) -> Reading<'_> {
        self.source.reading()
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(self.namespace)
    }

    fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError> {
        let (store, prefix) = (self.reading(), self.namespace.prefix());
        let mut found = Vec::new();
        for asked in starts(prefixes) {
            found.extend(store.refs_below([prefix.as_bytes(), asked].concat())?);
        }
        let config = store.config()?;
        let hides = |r: &StoredRef| {
            config.hidden_from_fetch.hides_in(self.namespace.strip(&r.name), r.name.as_bstr())
        };
        found.retain(|r| !hides(r));
        Ok(found.into_iter().filter_map(|r| stripped(r, self.namespace)).collect())
    }
}

/// What the names begin with that have to be read: sorted, and none is a prefix of another.
fn starts(prefixes: &Prefixes) -> Vec<&[u8]> {
    let asked: Vec<&[u8]> = prefixes.iter().map(|prefix| prefix.as_bytes()).collect();
    if asked.is_empty() || asked.iter().any(|prefix| b"refs/".starts_with(prefix)) {
        return vec![b"refs/"];
    }
    asked.into_iter().filter(|prefix| prefix.starts_with(b"refs/")).collect()
}

/// The ref as the namespace names it; `None` for one outside. A symbolic ref that leads out of it shows no target.
pub(crate) fn stripped(stored: StoredRef, namespace: &Namespace) -> Option<StoredRef> {
    let name = namespace.strip_ref(&stored.name)?;
    let symref_target = stored.symref_target.and_then(|target| namespace.strip_ref(&target));
    Some(StoredRef { name, symref_target, ..stored })
}
