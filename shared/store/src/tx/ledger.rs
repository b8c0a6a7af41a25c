//! The ledger: transactions that are staged, and the one way by which they happen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::ByteSlice;
use gix_odb::memory::Storage;
use zit_model::{Oid, RefUpdate};

use super::ends::Ends;
use super::held::Held;
use crate::Store;
use crate::backlog::{Content, Debt};
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::journal::{
    Checkpoint, Draft, Fact, InlineObject, Journal, JournalOptions, Origin, Record, Seq,
};
use crate::objects::Objects;
use crate::quarantine::Kept;
use crate::refs::{StoredRef, is_deferred, peeled};

/// How many transactions wait for one flush.
const MAX_STAGED: usize = 64;

/// What the one transaction at a time that may write holds.
pub(crate) struct Ledger {
    /// `zit/tx`, where locks are made.
    pub(super) folder: PathBuf,
    pub(super) journal: Arc<Journal>,
    /// The last record whose every effect is in the files, flushed.
    pub(super) checkpoint: Seq,
    /// A transaction failed half way; recovery comes before the next.
    pub(super) unfinished: bool,
    /// What is added to a record's number to make it higher than what a lost journal gave out.
    base: u64,
    drafts: Vec<Draft>,
    debt: Debt,
}

impl Ledger {
    /// Opens the journal in the folder `zit` of a git directory.
    pub(crate) fn open(zit: &Path) -> Result<Self, StoreError> {
        let (journal, checkpoint) = Journal::open(&zit.join("journal"), JournalOptions::default())?;
        let mut ledger = Self {
            folder: zit.join("tx"),
            journal: Arc::new(journal),
            checkpoint: Seq::NONE,
            unfinished: false,
            base: 0,
            drafts: Vec::new(),
            debt: Debt::default(),
        };
        ledger.start_from(checkpoint.as_ref());
        Ok(ledger)
    }

    /// Opens the journal again: after a failed append only the disk knows how it ends.
    pub(super) fn reopen(&mut self, zit: &Path) -> Result<(), StoreError> {
        let (journal, checkpoint) = Journal::open(&zit.join("journal"), JournalOptions::default())?;
        self.journal = Arc::new(journal);
        self.start_from(checkpoint.as_ref());
        Ok(())
    }

    fn start_from(&mut self, checkpoint: Option<&Checkpoint>) {
        self.checkpoint = checkpoint.map_or(Seq::NONE, |checkpoint| checkpoint.seq);
        self.base = checkpoint.map_or(0, |checkpoint| decode_state(&checkpoint.state));
    }

    /// Takes what refs cannot carry from a record.
    pub(super) fn learn(&mut self, record: &Record) {
        for fact in record.facts.iter().filter(|fact| fact.kind == Fact::EPOCH) {
            let base = fact.value.to_str().ok().and_then(|text| text.parse().ok());
            self.base = self.base.max(base.unwrap_or(0));
        }
    }

    /// The number that is given to the transaction entered next.
    pub(crate) fn next_seq(&self) -> u64 {
        let n_staged = self.drafts.len() as u64;
        self.last_seq().saturating_add(self.base).saturating_add(n_staged).saturating_add(1)
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The number of the last record.
    pub(super) fn last_seq(&self) -> u64 {
        self.journal.tail().0.0
    }

    /// Numbers go on above `seq`, which something in the repository carries already.
    pub(crate) fn skip_to(
        &mut self,
        store: &Store,
        seq: u64,
        time_ms: u64,
    ) -> Result<(), StoreError> {
        // The record that says so takes a number of its own.
        let next = self.next_seq();
        let Some(missing) = seq.checked_sub(next) else { return Ok(()) };
        let base = self.base.saturating_add(missing);
        let mut draft = Draft::new(time_ms, "", Origin::Referee);
        draft.facts = vec![Fact::epoch(base)];
        self.enter(store, draft)?;
        self.flush(store, None, None)?;
        self.base = base;
        store.backlog()?.follow(Arc::clone(&self.journal), base, self.checkpoint, 0);
        Ok(())
    }

    /// Holds packs until refs name what is in them.
    pub(super) fn keep(&mut self, kept: Vec<Kept>) {
        self.debt.kept.extend(kept);
    }

    /// Stages a transaction: later ones see it, readers do not.
    pub(super) fn enter(&mut self, store: &Store, draft: Draft) -> Result<(), StoreError> {
        if self.drafts.len() >= MAX_STAGED {
            self.flush(store, None, None)?;
        }
        self.owe(store, &draft)?;
        self.drafts.push(draft);
        self.debt.seq = self.last_seq().saturating_add(self.drafts.len() as u64);
        Ok(())
    }

    fn owe(&mut self, store: &Store, draft: &Draft) -> Result<(), StoreError> {
        let objects = draft.objects.iter().map(|object| {
            let content: Content = (object.kind, Arc::from(object.bytes.as_slice()));
            (object.oid.as_gix().to_owned(), content)
        });
        let objects: Vec<_> = objects.collect();
        let handle = store.objects()?;
        store.backlog()?.pending().insert(objects.iter().cloned());
        self.debt.objects.extend(objects);
        let deferred = || draft.changes.iter().filter(|update| is_deferred(update.name.as_bstr()));
        // All of them or none: what is staged without a record would be shown with the next one.
        let staged = deferred().map(|update| {
            let stored = stored(update, &handle)?;
            Ok((update.name.as_bstr().to_owned(), stored))
        });
        store.refs.table().stage(staged.collect::<Result<Vec<_>, StoreError>>()?);
        let owed = deferred().map(|update| (update.name.clone(), update.change.new_value()));
        self.debt.refs.extend(owed);
        Ok(())
    }

    /// Remembers a failure to write in the folder, which recovery must then look at.
    pub(super) fn noting(&mut self, written: Result<(), StoreError>) -> Result<(), StoreError> {
        self.unfinished |= written.is_err();
        written
    }

    /// Appends what is staged, then lets history end where it now does, moves the refs that are held, and shows the
    /// deferred ones.
    pub(super) fn flush(
        &mut self,
        store: &Store,
        ends: Option<&mut Ends>,
        held: Option<&mut Held>,
    ) -> Result<(), StoreError> {
        if self.drafts.is_empty() {
            return Ok(());
        }
        let drafts = std::mem::take(&mut self.drafts);
        let mut debt = std::mem::take(&mut self.debt);
        if let Err(error) = self.journal.append(&drafts) {
            forget(store, &debt)?;
            self.unfinished = true;
            return Err(error.into());
        }
        crash_point("tx.journaled");
        let ended = ends.map_or(Ok(()), |ends| ends.publish(store));
        let applied = ended.and_then(|()| match held {
            None => Ok(()),
            Some(held) => {
                // Stock git sees these refs at once, and must find their objects.
                store.backlog()?.place(&mut debt)?;
                held.apply(store)
            }
        });
        if let Err(error) = applied {
            // It has happened, and recovery carries it out: from the journal, as after a crash.
            forget(store, &debt)?;
            self.unfinished = true;
            return Err(error);
        }
        store.refs.table().publish();
        store.backlog()?.owe(debt);
        crash_point("tx.done");
        Ok(())
    }
}

/// Forgets what was staged.
fn forget(store: &Store, debt: &Debt) -> Result<(), StoreError> {
    store.refs.table().discard();
    store.backlog()?.forget(debt.objects.keys());
    Ok(())
}

/// What the table says of a ref after an update.
pub(super) fn stored(
    update: &RefUpdate,
    objects: &Objects,
) -> Result<Option<StoredRef>, StoreError> {
    let Some(oid) = update.change.new_value() else { return Ok(None) };
    let peeled = peeled(oid, objects)?;
    Ok(Some(StoredRef { name: update.name.clone(), oid, peeled, symref_target: None }))
}

/// Objects in memory, as a record holds them: by id.
pub(super) fn inline(written: &Storage) -> Vec<InlineObject> {
    let mut objects: Vec<InlineObject> = Vec::with_capacity(written.len());
    for (id, (kind, bytes)) in written.iter() {
        if let Some(oid) = Oid::from_gix(*id) {
            objects.push(InlineObject { kind: *kind, oid, bytes: bytes.clone() });
        }
    }
    objects.sort_by_key(|object| object.oid);
    objects
}

/// What a checkpoint carries beside what is in the files: the base of the numbers given out, in decimal.
pub(crate) fn encode_state(base: u64) -> Vec<u8> {
    format!("base {base}\n").into_bytes()
}

/// Zero where it says nothing of the kind.
pub(crate) fn decode_state(state: &[u8]) -> u64 {
    let base = state.to_str().ok().and_then(|text| text.strip_prefix("base "));
    base.and_then(|base| base.trim_end().parse().ok()).unwrap_or(0)
}
