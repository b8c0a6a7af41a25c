//! The preconditions of a transaction: what git checks, and the five things that a loose reading of it forgets.
//!
//! A create fails on an existing ref whatever it holds; `p/q` fails while `p` exists, loose or packed; `d` fails while
//! `d/e` does; the new value must be an object; and a branch's must be a commit.
//!
//! # Source
//! git-update-ref(1); each compared with it in this crate's tests.

use std::collections::BTreeSet;
use std::ops::Bound;

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, RefChange, RefName, RefUpdate};

use super::lock::LockError;
use super::{PrepareError, RefusedUpdate, RefusedUpdates};
use crate::Store;
use crate::error::StoreError;
use crate::objects::{Kind, Objects};
use crate::refs::{Refs, Value};

/// Checks every update on its own and against the others.
pub(crate) fn all(
    store: &Store,
    updates: &[RefUpdate],
    quarantined: &[&Objects],
) -> Result<(), PrepareError> {
    let own = store.objects()?;
    let objects = if quarantined.is_empty() { &[&own][..] } else { quarantined };
    let mut refused = Vec::new();
    let mut others = BTreeSet::new();
    for (i, update) in updates.iter().enumerate() {
        // One that cannot be in any case is in nobody's way.
        let found = match object(update, objects)? {
            Some(found) => Some(found),
            None => one(&store.refs, update)?,
        };
        match found.or_else(|| beside(&others, update)) {
            Some(found) => refused.push((i, found)),
            None => {
                others.insert(update.name.as_bstr());
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(PrepareError::Refused(RefusedUpdates(refused))) }
}

/// Whether a ref can move beside those before it: none is named twice, and none is the folder of another.
fn beside(others: &BTreeSet<&BStr>, update: &RefUpdate) -> Option<RefusedUpdate> {
    let (name, own) = (update.name.clone(), update.name.as_bstr());
    if others.contains(own) {
        return Some(RefusedUpdate::Duplicate { name });
    }
    let below = || {
        let folder = [own.as_bytes(), b"/"].concat();
        let from = (Bound::Included(folder.as_bstr()), Bound::Unbounded);
        let next = others.range::<BStr, _>(from).next().copied();
        next.filter(|other| other.starts_with(&folder))
    };
    let with = folders(own).find(|folder| others.contains(folder)).or_else(below)?;
    RefName::new(with).ok().map(|with| RefusedUpdate::NameConflict { name, with })
}

/// Whether the new value may be the ref's at all.
fn object(update: &RefUpdate, objects: &[&Objects]) -> Result<Option<RefusedUpdate>, StoreError> {
    let Some(oid) = update.change.new_value() else { return Ok(None) };
    let name = update.name.clone();
    let mut kind = None;
    for objects in objects {
        kind = objects.kind(oid)?;
        if kind.is_some() {
            break;
        }
    }
    Ok(match kind {
        None => Some(RefusedUpdate::MissingObject { name, oid }),
        Some(kind) if kind != Kind::Commit && name.branch().is_some() => {
            Some(RefusedUpdate::NotACommit { name, oid, kind })
        }
        Some(_) => None,
    })
}

/// Whether the ref holds what it must.
fn one(refs: &Refs, update: &RefUpdate) -> Result<Option<RefusedUpdate>, StoreError> {
    let name = update.name.clone();
    let found = match refs.staged(name.as_bstr())? {
        Some(Value::Symbolic(target)) => return Ok(Some(RefusedUpdate::Symbolic { name, target })),
        Some(Value::Broken) => return Ok(Some(RefusedUpdate::Broken { name })),
        Some(Value::Oid(oid)) => Some(oid),
        None => None,
    };
    match (update.change, found) {
        (RefChange::Create { .. }, Some(found)) => Ok(Some(RefusedUpdate::Exists { name, found })),
        (RefChange::Create { .. }, None) => name_conflict(refs, &name),
        (RefChange::Move { old, .. } | RefChange::Delete { old }, found) => {
            Ok(stale(name, old, found))
        }
    }
}

fn stale(name: RefName, expected: Oid, found: Option<Oid>) -> Option<RefusedUpdate> {
    match found {
        None => Some(RefusedUpdate::Missing { name, expected }),
        Some(found) if found != expected => Some(RefusedUpdate::Stale { name, expected, found }),
        Some(_) => None,
    }
}

/// Whether a ref exists that would have to be a folder of `name`, or that `name` would have to be a folder of.
pub(crate) fn name_conflict(
    refs: &Refs,
    name: &RefName,
) -> Result<Option<RefusedUpdate>, StoreError> {
    let conflict = |with: &BStr| {
        RefName::new(with).ok().map(|with| RefusedUpdate::NameConflict { name: name.clone(), with })
    };
    for folder in folders(name.as_bstr()) {
        if refs.staged(folder)?.is_some() {
            return Ok(conflict(folder));
        }
    }
    let below = refs.first_staged_below(name.as_bstr())?;
    Ok(below.and_then(|found| conflict(found.as_bstr())))
}

/// The names that are folders of a refname, below `refs/`: of `refs/a/b/c` they are `refs/a` and `refs/a/b`.
fn folders(name: &BStr) -> impl Iterator<Item = &BStr> {
    let start = b"refs/".len();
    let slashes = name.iter().enumerate().skip(start).filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(move |(end, _)| name.get(..end)).map(ByteSlice::as_bstr)
}

/// A lock that was not to be had, as the refusal of its ref.
pub(crate) fn unlocked(
    store: &Store,
    name: &RefName,
    error: LockError,
) -> Result<RefusedUpdate, StoreError> {
    let locked = |suffix: &str| {
        let mut lock: BString = name.as_bstr().to_owned();
        lock.extend_from_slice(suffix.as_bytes());
        RefusedUpdate::Locked { name: name.clone(), lock }
    };
    match error {
        LockError::Held(_) => Ok(locked(".lock")),
        LockError::Blocked(_) => {
            Ok(name_conflict(&store.refs, name)?.unwrap_or_else(|| locked("")))
        }
        LockError::Io(error) => Err(error),
    }
}

/// Refusals by name as refusals by index.
pub(crate) fn refused(updates: &[RefUpdate], refused: Vec<RefusedUpdate>) -> PrepareError {
    let index =
        |name: &RefName| updates.iter().position(|update| update.name == *name).unwrap_or(0);
    let mut refused: Vec<_> =
        refused.into_iter().map(|refused| (index(refused.name()), refused)).collect();
    refused.sort_by_key(|(index, _)| *index);
    PrepareError::Refused(RefusedUpdates(refused))
}
