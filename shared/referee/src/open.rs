//! Opening a repository: the view rebuilt from refs.
//!
//! A document that cannot be read costs only itself and is reported; nothing another program wrote keeps a repository
//! from opening.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use zit_model::document::{AgentState, CLAIM_FILE, ClaimRecord, MAX_DOCUMENT, STATE_FILE};
use zit_model::refs::{self, Address};
use zit_model::settings::Settings;
use zit_model::{Instant, Oid, RefChange, RefName, RefUpdate};
use zit_store::{Blob, Head, Objects, PrepareError, Store, StoreError};

use crate::footprints::Footprinter;
use crate::view::{AgentRecord, Claim, OpenItem, View};

/// Rebuilds the view. `refs/zit/current` is made from the mainline where it is missing.
pub(crate) fn view(
    store: &Store,
    footprinter: &Footprinter,
    now: Instant,
) -> Result<View, StoreError> {
    let mainline = mainline(store)?;
    let current = current(store, mainline.as_ref())?;
    let mut view =
        View { settings: settings(store, current)?, mainline, current, ..View::default() };
    let objects = store.objects()?;
    for stored in store.refs_below("refs/zit/")? {
        match refs::address(&stored.name) {
            Address::Claim(key) => match claim(&objects, &key, stored.oid, now) {
                Ok(claim) => drop(view.claims.insert(key, claim)),
                Err(error) => tracing::warn!(name = %stored.name, error, "claim skipped"),
            },
            Address::AgentState(_) => match state(&objects, stored.oid) {
                Ok(state) => {
                    items(store, &objects, footprinter, &mut view, state, stored.oid, now)?;
                }
                Err(error) => tracing::warn!(name = %stored.name, error, "state skipped"),
            },
            Address::Head
            | Address::Tag
            | Address::Other
            | Address::Current
            | Address::Change(_)
            | Address::Wip(..)
            | Address::Request(_)
            | Address::Unknown => {}
        }
    }
    Ok(view)
}

/// The mainline: `zit.mainline`, else HEAD's target unless the repository has no branch at all.
///
/// # Source
/// `spec/refs.md`, "Mainline".
pub(crate) fn mainline(store: &Store) -> Result<Option<RefName>, StoreError> {
    if let Some(configured) = store.config()?.mainline.clone() {
        return Ok(Some(configured));
    }
    let Some(target) = head_target(store)? else { return Ok(None) };
    let any = store.find_ref(&target)?.is_some() || !store.refs_below("refs/heads/")?.is_empty();
    Ok(any.then_some(target))
}

/// The branch that HEAD names, born or not.
pub(crate) fn head_target(store: &Store) -> Result<Option<RefName>, StoreError> {
    Ok(match store.head()? {
        Head::Symbolic(name) => Some(name),
        Head::Detached(_) => None,
    })
}

/// Where `refs/zit/current` stands; made from the mainline when it is missing.
fn current(store: &Store, mainline: Option<&RefName>) -> Result<Option<Oid>, StoreError> {
    if let Some(found) = store.find_ref(&refs::current())? {
        return Ok(Some(found));
    }
    let Some(mainline) = mainline else { return Ok(None) };
    let Some(new) = store.find_ref(mainline)? else { return Ok(None) };
    let update = RefUpdate { name: refs::current(), change: RefChange::Create { new } };
    match store.prepare(&[update]) {
        Ok(prepared) => prepared.commit()?,
        Err(PrepareError::Store(error)) => return Err(error),
        Err(PrepareError::Refused(refused)) => {
            tracing::warn!(%refused, "refs/zit/current cannot be made");
            return Ok(None);
        }
    }
    Ok(Some(new))
}

/// What `zit.toml` of a state settles; the defaults where it has none, or a broken one.
pub(crate) fn settings(store: &Store, current: Option<Oid>) -> Result<Settings, StoreError> {
    let Some(current) = current else { return Ok(Settings::default()) };
    let objects = store.objects()?;
    let tree = objects.commit(current)?.tree;
    let Some(bytes) = file(&objects, tree, "zit.toml")? else { return Ok(Settings::default()) };
    Ok(Settings::parse(&bytes.to_str_lossy()).unwrap_or_else(|error| {
        tracing::warn!(%error, "the defaults stand");
        Settings::default()
    }))
}

/// One file of a tree; `None` when it is absent or over the size of a document.
pub(crate) fn file(
    objects: &Objects,
    tree: Oid,
    path: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(entry) = objects.entry_at(tree, path.into())? else { return Ok(None) };
    Ok(match objects.blob(entry.oid, MAX_DOCUMENT)? {
        Blob::Bytes(bytes) => Some(bytes),
        Blob::TooLarge(_) => None,
    })
}

/// The document that a commit's tree holds.
pub(crate) fn document(objects: &Objects, commit: Oid, name: &str) -> Result<Vec<u8>, String> {
    let tree = objects.commit(commit).map_err(|e| e.to_string())?.tree;
    file(objects, tree, name)
        .map_err(|e| e.to_string())?
        .ok_or_else(|| format!("the commit holds no {name} of at most {MAX_DOCUMENT} bytes"))
}

fn claim(objects: &Objects, key: &str, oid: Oid, now: Instant) -> Result<Claim, String> {
    let json = document(objects, oid, CLAIM_FILE)?;
    let record = ClaimRecord::from_json(&json).map_err(|e| e.to_string())?;
    if record.resource.key() != key {
        return Err(format!("{} does not belong here", record.resource));
    }
    Ok(Claim {
        resource: record.resource,
        agent: record.agent,
        item: record.item,
        intent: record.intent,
        lease: record.lease,
        epoch: record.epoch,
        oid,
        renewed: now,
    })
}

fn state(objects: &Objects, oid: Oid) -> Result<AgentState, String> {
    let json = document(objects, oid, STATE_FILE)?;
    AgentState::from_json(&json).map_err(|e| e.to_string())
}

/// Takes an agent's items over: those whose ref still stands, and that have not landed.
fn items(
    store: &Store,
    objects: &Objects,
    footprinter: &Footprinter,
    view: &mut View,
    state: AgentState,
    oid: Oid,
    now: Instant,
) -> Result<(), StoreError> {
    let mut open = BTreeMap::new();
    for item in &state.items {
        let Some(head) = store.find_ref(&item.name)? else { continue };
        let Some(study) = footprinter.study(objects, view.current, head)? else { continue };
        if study.merged || view.current.is_none() {
            continue;
        }
        let item = OpenItem {
            agent: state.agent.clone(),
            item: item.id.clone(),
            intent: item.intent.clone(),
            name: item.name.clone(),
            head,
            footprint: study.footprint,
            pushed: now,
        };
        open.insert(item.name.clone(), item);
    }
    view.items.extend(open);
    let record = AgentRecord { principal: state.principal, intent: state.intent, state: Some(oid) };
    view.agents.insert(state.agent, record);
    Ok(())
}
