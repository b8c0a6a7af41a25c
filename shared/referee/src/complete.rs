//! Whether what a push would make refs name is here whole, down to what the repository already reaches.
//!
//! The history of a shallow client may end where the repository's does not. Then `receive.shallowUpdate` decides whether
//! the refs concerned are refused, or the repository's history may end there too; the other refs of the push go on.
//!
//! Source: git's `builtin/receive-pack.c`, `update_shallow_info`, `update_shallow_ref` and `set_connectivity_errors`.

use std::collections::{BTreeMap, BTreeSet};

use zit_model::refs::{self, Address, Request};
use zit_model::{Oid, RefName};
use zit_store::{Connected, Quarantine, Store, StoreError, StoredRef};
use zit_wire::receive::PushRequest;

use crate::error::RefereeError;
use crate::push::{Ask, Push};
use crate::verdict::Refusal;

/// How many refs that are pushed to are asked first whether they vouch for what is pushed.
const MAX_NEAR: usize = 8;

/// The deferred refs whose history is others' work. The referee's documents vouch for nothing that is pushed.
const VOUCHING: [&str; 2] = ["refs/zit/changes/", "refs/zit/wip/"];

/// What was found out, by the place of the command.
#[derive(Debug, Default)]
pub(crate) struct Completeness {
    /// Commands whose objects are not all here, or that would make the repository shallow.
    pub(crate) refused: BTreeMap<usize, Refusal>,
    /// Where the repository's history would end too with a command.
    roots: BTreeMap<usize, BTreeSet<Oid>>,
}

/// Looks at each command of a push, but for those `except` that are refused already.
///
/// # Errors
/// [`RefereeError`] when refs or the configuration cannot be read.
pub(crate) fn look(
    store: &Store,
    request: &PushRequest,
    except: impl Fn(usize) -> bool,
    incoming: Option<&mut Quarantine>,
) -> Result<Completeness, RefereeError> {
    let tips: Vec<(usize, Oid)> = request
        .commands
        .iter()
        .enumerate()
        .filter(|(n, _)| !except(*n))
        .filter(|(_, command)| RefName::new(&command.name).is_ok_and(|name| stores(&name)))
        .filter_map(|(n, command)| Some((n, command.new?)))
        .collect();
    if tips.is_empty() {
        return Ok(Completeness::default());
    }
    let near = near(store, request)?;
    let values: Vec<Oid> = near.iter().map(|r| r.oid).collect();
    let mut unknown = Vec::new();
    for (n, tip) in tips {
        if !store.is_in_history(tip, &values)? {
            unknown.push((n, tip));
        }
    }
    if unknown.is_empty() {
        return Ok(Completeness::default());
    }
    let mut own = store.quarantine()?;
    let quarantine = incoming.unwrap_or(&mut own);
    let all: Vec<Oid> = unknown.iter().map(|(_, tip)| *tip).collect();
    if quarantine.connected(&all, &near) == Connected::Whole {
        return Ok(Completeness::default());
    }
    let refs = store.refs_with(&VOUCHING)?;
    if quarantine.check_connected(&all, &refs).is_ok() {
        return Ok(Completeness::default());
    }
    one_by_one(quarantine, &unknown, &refs, store.config()?.receive.shallow_update)
}

/// The refs on which what is pushed most likely builds, as they are now: those that are pushed to, and current.
fn near(store: &Store, request: &PushRequest) -> Result<Vec<StoredRef>, StoreError> {
    let names = request.commands.iter().filter_map(|command| RefName::new(&command.name).ok());
    let names = names.filter(|name| !name.is_zit()).take(MAX_NEAR);
    let mut near = Vec::new();
    for name in names.chain([refs::current()]) {
        if let Some(oid) = store.find_ref(&name)? {
            near.push(StoredRef { name, oid, peeled: None, symref_target: None });
        }
    }
    Ok(near)
}

fn one_by_one(
    quarantine: &mut Quarantine,
    tips: &[(usize, Oid)],
    refs: &[StoredRef],
    may_be_shallow: bool,
) -> Result<Completeness, RefereeError> {
    let mut gaps = Vec::new();
    for (n, tip) in tips {
        if let Err(error) = quarantine.check_connected(&[*tip], refs) {
            gaps.push((*n, *tip, error.to_string()));
        }
    }
    let broken: Vec<Oid> = gaps.iter().map(|(_, tip, _)| *tip).collect();
    let roots = quarantine.roots(&broken)?;
    let mut found = Completeness::default();
    for ((n, tip, why), roots) in gaps.into_iter().zip(roots) {
        if roots.is_empty() {
            found.refused.insert(n, Refusal::Incomplete { why });
        } else if !may_be_shallow {
            found.refused.insert(n, Refusal::ShallowUpdate);
        } else if let Err(error) = quarantine.check_connected_above(&roots, tip, refs) {
            found.refused.insert(n, Refusal::Incomplete { why: error.to_string() });
        } else {
            found.roots.insert(n, roots);
        }
    }
    Ok(found)
}

impl Completeness {
    /// Whether the repository's history would end where the pusher's does, with this command.
    pub(crate) fn shortens(&self, n: usize) -> bool {
        self.roots.contains_key(&n)
    }

    /// Tells the commands what was found out about them.
    pub(crate) fn tell(&self, push: &mut Push) {
        for (n, refusal) in &self.refused {
            if let Some(command) = push.commands.get_mut(*n) {
                command.ask = Ask::Broken(refusal.clone());
            }
        }
        for (n, roots) in &self.roots {
            if let Some(command) = push.commands.get_mut(*n) {
                command.roots.clone_from(roots);
            }
        }
    }
}

/// Whether a push to the name, if it is done, makes a stored ref name what was pushed.
fn stores(name: &RefName) -> bool {
    match refs::address(name) {
        Address::Head
        | Address::Tag
        | Address::Other
        | Address::Change(_)
        | Address::Wip(..)
        | Address::Request(Request::Accept | Request::For(_)) => true,
        Address::Current
        | Address::Claim(_)
        | Address::AgentState(_)
        | Address::Footprint(_)
        | Address::Request(Request::Claim(_) | Request::Release(_) | Request::Tell)
        | Address::Unknown => false,
    }
}
