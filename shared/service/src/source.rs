//! [`FetchSource`]: what a fetch is answered from. A referee is one; so is a repository that is only read.

use zit_model::Namespace;
use zit_referee::{RefereeError, Repository};
use zit_store::{Reading, Store, StoredRef};
use zit_wire::ls_refs::Prefixes;

/// A repository that can be fetched from.
pub trait FetchSource {
    /// Its reading half.
    fn reading(&self) -> Reading<'_>;

    /// The namespace that alone is shown, by names of its own; `None` for the whole repository.
    fn namespace(&self) -> Option<&Namespace> {
        None
    }

    /// The refs shown to a fetcher: all, or at least those that start with one of `prefixes`, by name.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError>;
}

impl FetchSource for Repository {
    fn reading(&self) -> Reading<'_> {
        self.reading()
    }

    fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError> {
        self.refs_for_fetch(prefixes)
    }
}

/// Read without its lock: what other programs' referees write meanwhile is seen before or after each transaction's ref.
impl FetchSource for Store {
    fn reading(&self) -> Reading<'_> {
        self.reading()
    }

    fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError> {
        Ok(zit_referee::refs_for_fetch(self, prefixes)?)
    }
}
