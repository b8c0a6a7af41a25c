//! The refs of a transaction that stock git sees at once, locked: in either of the forms that they are stored in.

use zit_model::RefUpdate;

use super::ledger::Ledger;
use super::locks::Locks;
use super::tables::Tables;
use super::{PrepareError, apply};
use crate::Store;
use crate::error::StoreError;
use crate::objects::Objects;
use crate::reflog::LogEntry;
use crate::refs::Form;

/// Refs that nobody else may move. Dropping it lets go.
pub(crate) enum Held {
    Files(Locks),
    Reftable(Tables),
}

impl Held {
    /// Locks the refs of `at_once`; `updates` is the whole transaction, and the new values are in `objects`.
    pub(super) fn take(
        store: &Store,
        ledger: &mut Ledger,
        at_once: Vec<&RefUpdate>,
        updates: &[RefUpdate],
        objects: &[&Objects],
        log: Option<&LogEntry>,
    ) -> Result<Self, PrepareError> {
        match store.refs.form() {
            Form::Files(files) => {
                Locks::take(store, files, ledger, at_once, updates).map(Self::Files)
            }
            Form::Reftable(tables) => {
                Tables::take(store, tables, ledger, at_once, updates, objects, log)
                    .map(Self::Reftable)
            }
        }
    }

    /// Does what can be done ahead of the moves, once every precondition is verified under the locks.
    pub(super) fn make_ready(
        &mut self,
        ledger: &mut Ledger,
        updates: &[RefUpdate],
    ) -> Result<(), PrepareError> {
        match self {
            Self::Files(locks) => locks.make_ready(ledger, updates),
            Self::Reftable(_) => Ok(()),
        }
    }

    /// Moves the refs, then lets go.
    pub(super) fn apply(&mut self, store: &Store) -> Result<(), StoreError> {
        match self {
            Self::Files(locks) => {
                apply::apply(store.common_dir(), &mut locks.steps, locks.packed.as_mut())
            }
            Self::Reftable(tables) => tables.apply(),
        }
    }

    pub(super) fn updates(&self) -> Box<dyn Iterator<Item = &RefUpdate> + '_> {
        match self {
            Self::Files(locks) => Box::new(locks.steps.iter().map(|step| &step.update)),
            Self::Reftable(tables) => Box::new(tables.updates.iter()),
        }
    }
}
