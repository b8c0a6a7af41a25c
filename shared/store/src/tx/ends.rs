//! Where the repository's history ends after a transaction: the file `shallow`, locked as git locks it.
//!
//! The commits are facts of the record, so that the append to the journal decides over them as it does over refs: before it
//! nobody sees them, after it recovery puts into the file what a crash kept out of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice as _;
use zit_model::Oid;

use super::ledger::Ledger;
use super::lock::{Lock, LockError};
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::journal::{Fact, Record};
use crate::objects::Objects;
use crate::shallow::{FILE, lines, shallow};
use crate::{Store, fsio};

/// The locked file, and what is added to it. Dropping it lets go.
pub(crate) struct Ends {
    lock: Lock,
    added: BTreeSet<Oid>,
}

impl Ends {
    /// Locks the file and writes beside it, flushed, what it shall hold; `None` where it lists all of `roots`.
    pub(super) fn take(
        store: &Store,
        ledger: &mut Ledger,
        roots: &BTreeSet<Oid>,
    ) -> Result<Option<Self>, StoreError> {
        let file = ledger.folder.join(FILE);
        ledger.noting(fsio::write_unflushed(&file, b""))?;
        let config = store.config()?;
        let lock = lock(store, file, config.ref_lock_wait)?;
        // Nobody else writes it from here on.
        let mut ends = shallow(store.common_dir());
        let added: BTreeSet<Oid> =
            roots.iter().copied().filter(|root| ends.insert(*root)).collect();
        if added.is_empty() {
            return Ok(None);
        }
        let mut held = Self { lock, added };
        ledger.noting(held.write(&lines(ends)))?;
        crash_point("shallow.locked");
        Ok(Some(held))
    }

    /// Through the lock's other name, so that it holds the same.
    fn write(&mut self, content: &[u8]) -> Result<(), StoreError> {
        let file = self.lock.file();
        fsio::write_unflushed(file, content)?;
        fsio::sync(file)
    }

    /// What the journal says of them.
    pub(super) fn facts(&self) -> impl Iterator<Item = Fact> {
        self.added.iter().map(|root| Fact::new(Fact::SHALLOW, "", root.to_string()))
    }

    /// Lets history end there, durably, and lets go.
    pub(super) fn publish(&mut self, store: &Store) -> Result<(), StoreError> {
        self.lock.publish()?;
        crash_point("shallow.renamed");
        fsio::sync(store.common_dir())
    }
}

fn lock(store: &Store, file: PathBuf, wait: Duration) -> Result<Lock, StoreError> {
    let (sharing, target) = (store.config()?.sharing, store.common_dir().join(FILE));
    let mut lock = Lock::planned(store.common_dir(), file, target).shared(sharing);
    lock.take(wait).map_err(LockError::into_store)?;
    Ok(lock)
}

/// The commits at which history ends since a record.
pub(super) fn of(record: &Record) -> impl Iterator<Item = Oid> {
    let facts = record.facts.iter().filter(|fact| fact.kind == Fact::SHALLOW);
    facts.filter_map(|fact| Oid::from_hex(fact.value.as_bytes()).ok())
}

/// Puts into the file what is not there. Where somebody has brought what lies before a commit since, history goes on.
pub(super) fn again(
    store: &Store,
    ledger: &mut Ledger,
    mut roots: BTreeSet<Oid>,
) -> Result<(), StoreError> {
    let known = shallow(store.common_dir());
    roots.retain(|root| !known.contains(root));
    if roots.is_empty() {
        return Ok(());
    }
    let objects = store.objects()?;
    let mut needed = BTreeSet::new();
    for root in roots {
        if is_cut(&objects, root)? {
            needed.insert(root);
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    tracing::info!(roots = needed.len(), "finishes what a crash interrupted: the file shallow");
    match Ends::take(store, ledger, &needed)? {
        Some(mut ends) => ends.publish(store),
        None => Ok(()),
    }
}

/// Whether the commit is there, and one of its parents is not.
fn is_cut(objects: &Objects, root: Oid) -> Result<bool, StoreError> {
    if objects.kind(root)?.is_none() {
        return Ok(false);
    }
    for parent in objects.commit(root)?.parents {
        if objects.kind(parent)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}
