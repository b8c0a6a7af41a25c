//! Deferred refs: those below `refs/zit/` but current. The journal holds them and this table answers for them; their
//! files follow.
//!
//! A change is first staged, where only the writer sees it, and becomes visible once it is flushed: a reader never sees
//! what a crash could take back.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bstr::{BStr, BString, ByteSlice};

use super::StoredRef;

/// Whether a ref's file may follow its journal record. `refs/zit/current` moves with a branch, as that one does.
pub(crate) fn is_deferred(name: &[u8]) -> bool {
    name.starts_with(b"refs/zit/") && name != b"refs/zit/current"
}

/// Deferred refs by name.
#[derive(Default)]
pub(crate) struct Table {
    refs: RwLock<Inner>,
    /// Whether any of them may be symbolic: what such a one resolves to changes without the table.
    has_symbolic: bool,
    /// Another one after each change that readers see.
    version: AtomicU64,
}

#[derive(Default)]
struct Inner {
    visible: BTreeMap<BString, StoredRef>,
    /// What the writer has changed since; `None` for a ref that goes.
    staged: BTreeMap<BString, Option<StoredRef>>,
}

impl Table {
    pub(crate) fn new(refs: impl IntoIterator<Item = StoredRef>) -> Self {
        let visible = refs.into_iter().map(|stored| (stored.name.as_bstr().to_owned(), stored));
        let visible = visible.collect::<BTreeMap<_, _>>();
        let has_symbolic = visible.values().any(|stored| stored.symref_target.is_some());
        let refs = RwLock::new(Inner { visible, staged: BTreeMap::new() });
        Self { refs, has_symbolic, version: AtomicU64::default() }
    }

    /// The same number as before only if every list of them is as it was; `None` when no number can tell.
    pub(crate) fn version(&self) -> Option<u64> {
        (!self.has_symbolic).then(|| self.version.load(Ordering::Acquire))
    }

    pub(crate) fn find(&self, name: &BStr) -> Option<StoredRef> {
        self.read().visible.get(name).cloned()
    }

    /// What the ref will hold once everything staged is flushed.
    pub(crate) fn find_staged(&self, name: &BStr) -> Option<StoredRef> {
        let inner = self.read();
        inner.staged.get(name).cloned().unwrap_or_else(|| inner.visible.get(name).cloned())
    }

    /// The refs whose names start with `prefix`, in order.
    pub(crate) fn below(&self, prefix: &BStr) -> Vec<StoredRef> {
        let inner = self.read();
        let from = (Bound::Included(prefix.as_bytes()), Bound::Unbounded);
        let range = inner.visible.range::<[u8], _>(from);
        range.take_while(|(name, _)| name.starts_with(prefix)).map(|(_, r)| r.clone()).collect()
    }

    /// The first name below `folder/`, staged changes included.
    pub(crate) fn first_staged_below(&self, folder: &BStr) -> Option<BString> {
        let inner = self.read();
        let prefix = [folder.as_bytes(), b"/"].concat();
        let from = (Bound::Included(&prefix[..]), Bound::Unbounded);
        let is_below = |name: &BString| name.starts_with(&prefix);
        let staged = inner.staged.range::<[u8], _>(from).take_while(|(name, _)| is_below(name));
        let staged = staged.filter(|(_, r)| r.is_some()).map(|(name, _)| name).next();
        let visible = inner.visible.range::<[u8], _>(from).take_while(|(name, _)| is_below(name));
        let visible = visible.map(|(name, _)| name).find(|name| !inner.staged.contains_key(*name));
        staged.into_iter().chain(visible).min().cloned()
    }

    /// Changes what the writer sees.
    pub(crate) fn stage(&self, changes: impl IntoIterator<Item = (BString, Option<StoredRef>)>) {
        self.write().staged.extend(changes);
    }

    /// Shows everybody what is staged.
    pub(crate) fn publish(&self) {
        let mut inner = self.write();
        // Invariant: raised before anybody can read what changed, which takes the lock.
        self.version.fetch_add(1, Ordering::AcqRel);
        for (name, stored) in std::mem::take(&mut inner.staged) {
            match stored {
                Some(stored) => drop(inner.visible.insert(name, stored)),
                None => drop(inner.visible.remove(&name)),
            }
        }
    }

    /// Forgets what is staged.
    pub(crate) fn discard(&self) {
        self.write().staged.clear();
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.refs.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.refs.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use zit_model::{Oid, RefName};

    use super::*;

    fn stored(name: &str) -> StoredRef {
        let (name, oid) = (RefName::new(name.as_bytes()).unwrap(), Oid::from_hex(&[b'1'; 40]));
        StoredRef { name, oid: oid.unwrap(), peeled: None, symref_target: None }
    }

    fn names(table: &Table, prefix: &str) -> Vec<String> {
        table.below(prefix.into()).into_iter().map(|r| r.name.to_string()).collect()
    }

    #[test]
    fn what_is_staged_is_seen_by_the_writer_alone_until_it_is_published() {
        let table = Table::new([stored("refs/zit/a"), stored("refs/zit/b/c")]);
        let (a, new) = (BString::from("refs/zit/a"), BString::from("refs/zit/b/d"));
        table.stage([(a.clone(), None), (new.clone(), Some(stored("refs/zit/b/d")))]);
        assert!(table.find(a.as_bstr()).is_some() && table.find_staged(a.as_bstr()).is_none());
        assert!(table.find(new.as_bstr()).is_none() && table.find_staged(new.as_bstr()).is_some());
        assert_eq!(names(&table, "refs/zit/"), ["refs/zit/a", "refs/zit/b/c"]);
        table.publish();
        assert_eq!(names(&table, "refs/zit/"), ["refs/zit/b/c", "refs/zit/b/d"]);
        assert_eq!(names(&table, "refs/zit/b/d"), ["refs/zit/b/d"]);
    }

    #[test]
    fn what_is_discarded_was_never_there() {
        let table = Table::new([stored("refs/zit/a")]);
        table.stage([("refs/zit/a".into(), None)]);
        table.discard();
        table.publish();
        assert_eq!(names(&table, ""), ["refs/zit/a"]);
    }

    #[test]
    fn the_first_name_below_a_folder_counts_what_is_staged() {
        let table = Table::new([stored("refs/zit/a/b"), stored("refs/zit/ab")]);
        let first = || table.first_staged_below("refs/zit/a".into()).map(|name| name.to_string());
        assert_eq!(first().as_deref(), Some("refs/zit/a/b"));
        table.stage([("refs/zit/a/b".into(), None)]);
        assert_eq!(first(), None);
        table.stage([("refs/zit/a/a".into(), Some(stored("refs/zit/a/a")))]);
        assert_eq!(first().as_deref(), Some("refs/zit/a/a"));
    }
}
