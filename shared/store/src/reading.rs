//! What a store gives to those who may not write: [`Reading`], and [`Glance`] to those who may not wait either. A referee
//! hands them out, so that it stays the only writer.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use zit_model::{Namespace, Oid, RefName};

use crate::fetch::{FetchError, FetchLimits, FetchQuery, Fetched};
use crate::{
    AnswerQuery, Head, PackStream, RepoConfig, ResolvedHead, SharedAnswer, Store, StoreError,
    StoredRef, UploadPack,
};

/// A store without its writing half.
#[derive(Clone, Copy)]
pub struct Reading<'a>(&'a Store);

/// What is known of a store at a glance. It costs a few stats, so that it may be taken on a thread that serves many: no
/// file is read, no program is started, and nobody who does either is waited for.
#[derive(Clone)]
pub struct Glance<'a> {
    store: &'a Store,
    config: Arc<RepoConfig>,
}

impl Store {
    /// The reading half.
    #[must_use]
    pub fn reading(&self) -> Reading<'_> {
        Reading(self)
    }

    /// A glance; `None` where the configuration has changed, and so would have to be read.
    #[must_use]
    pub fn glance(&self) -> Option<Glance<'_>> {
        self.known_config().map(|config| Glance { store: self, config })
    }
}

impl Glance<'_> {
    pub(crate) fn store(&self) -> &Store {
        self.store
    }

    /// The repository's configuration as it is now.
    #[must_use]
    pub fn config(&self) -> &Arc<RepoConfig> {
        &self.config
    }
}

impl Reading<'_> {
    pub(crate) fn store(&self) -> &Store {
        self.0
    }

    /// The repository's hash function.
    #[must_use]
    pub fn hash_kind(&self) -> gix_hash::Kind {
        self.0.hash_kind()
    }

    /// The repository's configuration as it is now.
    ///
    /// # Errors
    /// As [`Store::config`].
    pub fn config(&self) -> Result<Arc<RepoConfig>, StoreError> {
        self.0.config()
    }

    /// What HEAD is.
    ///
    /// # Errors
    /// As [`Store::head`].
    pub fn head(&self) -> Result<Head, StoreError> {
        self.0.head()
    }

    /// What HEAD leads to.
    ///
    /// # Errors
    /// As [`Store::resolved_head`].
    pub fn resolved_head(&self) -> Result<ResolvedHead, StoreError> {
        self.0.resolved_head()
    }

    /// What the HEAD of a namespace leads to, as the repository names it; `None` when there is none.
    ///
    /// # Errors
    /// As [`Store::head`].
    pub fn resolved_head_of(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<ResolvedHead>, StoreError> {
        self.0.resolved_head_of(namespace)
    }

    /// The refs whose names start with `prefix`, also those that the configuration hides.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub fn refs_below(&self, prefix: impl AsRef<[u8]>) -> Result<Vec<StoredRef>, StoreError> {
        self.0.refs_below(prefix)
    }

    /// Every ref, also those that the configuration hides.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub fn refs(&self) -> Result<Vec<StoredRef>, StoreError> {
        self.0.refs()
    }

    /// The commits whose parents the repository lacks because it is shallow.
    #[must_use]
    pub fn shallow(&self) -> BTreeSet<Oid> {
        crate::shallow::shallow(self.0.common_dir()).into_iter().collect()
    }

    /// What the refs of the repositories that this one borrows objects from name.
    ///
    /// # Errors
    /// As [`Store::alternate_refs`].
    pub fn alternate_refs(&self) -> Result<BTreeSet<Oid>, StoreError> {
        self.0.alternate_refs()
    }

    /// What a ref resolves to.
    ///
    /// # Errors
    /// As [`Store::find_ref`].
    pub fn find_ref(&self, name: &RefName) -> Result<Option<Oid>, StoreError> {
        self.0.visible_ref(name)
    }

    /// The sizes in bytes of those of `oids` that are here and can be read.
    ///
    /// # Errors
    /// As [`Store::objects`].
    pub fn sizes(&self, oids: &[Oid]) -> Result<HashMap<Oid, u64>, StoreError> {
        Ok(self.0.objects()?.sizes(oids))
    }

    /// Answers a small fetch.
    ///
    /// # Errors
    /// As [`Store::fetch`].
    pub fn fetch(&self, query: &FetchQuery, limits: &FetchLimits) -> Result<Fetched, FetchError> {
        self.0.fetch(query, limits)
    }

    /// An answer that is made once for all who ask for the same.
    ///
    /// # Errors
    /// As [`Store::answer`].
    pub fn answer(&self, query: AnswerQuery) -> Result<Option<SharedAnswer>, StoreError> {
        self.0.answer(query)
    }

    /// The folder of the repository's own objects.
    #[must_use]
    pub fn objects_dir(&self) -> PathBuf {
        self.0.objects_dir()
    }

    /// Begins one request for an archive.
    ///
    /// # Errors
    /// [`StoreError`] when the program cannot be started.
    pub fn archive(&self) -> Result<PackStream, StoreError> {
        PackStream::archive(self.0.common_dir())
    }

    /// What answers every other fetch.
    #[must_use]
    pub fn pack_source(&self) -> UploadPack {
        self.0.pack_source()
    }
}
