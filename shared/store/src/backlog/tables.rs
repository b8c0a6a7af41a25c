//! Deferred refs into a reftable: one transaction a round.
//!
//! Something may be in the way of one of them, a ref of another program's with its name as a folder. Git does not say
//! which it is; so what fails is tried again by halves, and that one waits alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bstr::ByteSlice as _;
use zit_model::{Oid, RefName};

use super::Backlog;
use super::files::Unpaid;
use crate::error::StoreError;
use crate::git::GitError;
use crate::refs::TABLES;
use crate::tx::lock_path;
use crate::update_ref::{Change, Expected, Plan, UpdateRef};

/// A ref and what it is to hold.
type Owed<'a> = (&'a RefName, Option<Oid>);

impl Backlog {
    /// Writes the refs; what comes back could not be written.
    pub(super) fn write_tables(
        &self,
        folder: &Path,
        refs: &BTreeMap<RefName, Option<Oid>>,
    ) -> Result<Unpaid, StoreError> {
        // Those that go make way, where one is a folder of another.
        let (gone, kept): (Vec<Owed<'_>>, Vec<Owed<'_>>) =
            refs.iter().map(|(name, new)| (name, *new)).partition(|(_, new)| new.is_none());
        let rounds =
            if make_way(&gone, &kept) { vec![gone, kept] } else { vec![[gone, kept].concat()] };
        let mut unpaid = Unpaid::default();
        let mut rounds = rounds.into_iter().rev().collect::<Vec<_>>();
        while let Some(round) = rounds.pop() {
            let Err(error) = self.write_round(folder, &round)? else { continue };
            let lock = lock_path(&self.git_dir.join(TABLES));
            if lock.exists() {
                let error = StoreError::Locked(lock);
                for (name, new) in round {
                    unpaid.add(name, new, &error);
                }
            } else if let [(name, new)] = round[..] {
                unpaid.add(name, new, &error);
            } else {
                let (first, second) = round.split_at(round.len() / 2);
                rounds.extend([second.to_vec(), first.to_vec()]);
            }
        }
        Ok(unpaid)
    }

    fn write_round(
        &self,
        folder: &Path,
        refs: &[Owed<'_>],
    ) -> Result<Result<(), GitError>, StoreError> {
        if refs.is_empty() {
            return Ok(Ok(()));
        }
        let plan = Plan {
            git_dir: &self.git_dir,
            tables: self.git_dir.join(TABLES),
            folder,
            kind: self.kind,
            wait: self.config.current()?.ref_lock_wait,
            log: None,
            objects: None,
        };
        let changes =
            refs.iter().map(|(name, new)| Change { name, old: Expected::Anything, new: *new });
        let prepared = UpdateRef::prepare(plan, changes);
        Ok(prepared.and_then(|mut prepared| {
            prepared.commit()?;
            prepared.finish()
        }))
    }
}

/// Whether one of the refs that go is a folder of one that is written, or the other way round.
fn make_way(gone: &[Owed<'_>], kept: &[Owed<'_>]) -> bool {
    let is_below_any = |names: &[Owed<'_>], others: &[Owed<'_>]| {
        let others: BTreeSet<&[u8]> =
            others.iter().map(|(name, _)| name.as_bstr().as_ref()).collect();
        names.iter().any(|(name, _)| {
            let name = name.as_bstr();
            let ends = name.find_iter("/");
            ends.filter_map(|end| name.get(..end)).any(|folder| others.contains(folder))
        })
    };
    is_below_any(gone, kept) || is_below_any(kept, gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_that_go_make_way_only_for_a_folder() {
        let name = |name: &str| RefName::new(name).unwrap();
        let (a, ab, b) = (name("refs/zit/a"), name("refs/zit/a/b"), name("refs/zit/ab"));
        let owed = |name| [(name, None)];
        assert!(make_way(&owed(&a), &owed(&ab)) && make_way(&owed(&ab), &owed(&a)));
        assert!(!make_way(&owed(&a), &owed(&b)) && !make_way(&owed(&b), &owed(&ab)));
    }
}
