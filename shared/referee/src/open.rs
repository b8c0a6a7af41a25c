//! Opening a repository: the view rebuilt from refs.
//!
//! A document that cannot be read costs only itself and is reported; nothing another program wrote keeps a repository
//! from opening.

use bstr::ByteSlice;
use zit_model::document::{
    AgentState, CLAIM_FILE, ClaimRecord, ItemState, MAX_DOCUMENT, STATE_FILE,
};
use zit_model::refs::{self, Address};
use zit_model::settings::Settings;
use zit_model::{AgentId, Instant, Now, Oid, RefChange, RefName, RefUpdate};
use zit_store::journal::{Draft, Origin};
use zit_store::{Blob, EntryMode, Head, Objects, PrepareError, Store, StoreError};

use crate::carry_out::millis;
use crate::footprints::Footprinter;
use crate::view::{AgentRecord, Claim, OpenItem, View};

/// Rebuilds the view. `refs/zit/current` is made from the mainline where it is missing.
pub(crate) fn view(store: &Store, footprinter: &Footprinter, now: Now) -> Result<View, StoreError> {
    let mainline = mainline(store)?;
    let current = current(store, mainline.as_ref(), now)?;
    let now = now.monotonic;
    let objects = store.objects()?;
    let settings = current.map(|oid| settings(&objects, oid)).unwrap_or_default();
    let mut view = View { mainline, current, settings, ..View::default() };
    for stored in store.refs_below("refs/zit/")? {
        match refs::address(&stored.name) {
            Address::Claim(key) => match claim(&objects, &key, stored.oid, now) {
                Ok(claim) => view.claims.insert(key, claim),
                Err(error) => tracing::warn!(name = %stored.name, error, "claim skipped"),
            },
            Address::AgentState(agent) => {
                if let Ok(state) = state(&objects, &agent, stored.oid) {
                    let look = Look { store, objects: &objects, footprinter, now };
                    let open = state.items.iter().filter_map(|item| look.item(&view, &agent, item));
                    let open: Vec<OpenItem> = open.collect();
                    view.items.extend(open.into_iter().map(|item| (item.name.clone(), item)));
                }
                view.agents.insert(agent.clone(), agent_record(&objects, &agent, stored.oid));
            }
            Address::Footprint(head) => view.footprints.set(head, Some(stored.oid)),
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
    view.footprints.find_adrift(view.items.values());
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
fn current(store: &Store, mainline: Option<&RefName>, now: Now) -> Result<Option<Oid>, StoreError> {
    if let Some(found) = store.find_ref(&refs::current())? {
        return Ok(Some(found));
    }
    let Some(mainline) = mainline else { return Ok(None) };
    let Some(new) = store.find_ref(mainline)? else { return Ok(None) };
    let update = RefUpdate { name: refs::current(), change: RefChange::Create { new } };
    let draft = Draft::new(millis(now), "", Origin::External);
    match store.prepare(&[update]) {
        Ok(prepared) => prepared.commit(draft, Vec::new())?,
        Err(PrepareError::Store(error)) => return Err(error),
        Err(PrepareError::Refused(refused)) => {
            tracing::warn!(%refused, "refs/zit/current cannot be made");
            return Ok(None);
        }
    }
    Ok(Some(new))
}

/// What `zit.toml` of a commit settles; the defaults where it has none, or one that cannot be read.
pub(crate) fn settings(objects: &Objects, current: Oid) -> Settings {
    let file = objects.commit(current).and_then(|commit| file(objects, commit.tree, "zit.toml"));
    let text = match file {
        Ok(Some(bytes)) => bytes.to_str_lossy().into_owned(),
        Ok(None) => return Settings::default(),
        Err(error) => {
            tracing::warn!(%error, "zit.toml cannot be read; the defaults stand");
            return Settings::default();
        }
    };
    Settings::parse(&text).unwrap_or_else(|error| {
        tracing::warn!(%error, "the defaults stand");
        Settings::default()
    })
}

/// One regular file of a tree; `None` when it is absent, something else, or over the size of a document.
pub(crate) fn file(
    objects: &Objects,
    tree: Oid,
    path: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(entry) = objects.entry_at(tree, path.into())? else { return Ok(None) };
    match entry.mode {
        EntryMode::Regular | EntryMode::Executable => {}
        EntryMode::Symlink | EntryMode::Submodule => return Ok(None),
    }
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
    Ok(Claim { record, oid, renewed: now })
}

fn state(objects: &Objects, agent: &AgentId, oid: Oid) -> Result<AgentState, String> {
    let json = document(objects, oid, STATE_FILE)?;
    let state = AgentState::from_json(&json).map_err(|e| e.to_string())?;
    if state.agent == *agent {
        Ok(state)
    } else {
        Err(format!("it is the state of {}", state.agent))
    }
}

/// What is remembered of an agent. One whose state cannot be read belongs to nobody, so that nobody takes it over.
pub(crate) fn agent_record(objects: &Objects, agent: &AgentId, oid: Oid) -> AgentRecord {
    match state(objects, agent, oid) {
        Ok(state) => {
            AgentRecord { principal: state.principal, intent: state.intent, state: Some(oid) }
        }
        Err(error) => {
            tracing::warn!(%agent, error, "the agent's state cannot be read");
            let principal = UNREADABLE.to_owned();
            AgentRecord { principal, intent: None, state: Some(oid) }
        }
    }
}

/// Stands for the owner of an agent whose state cannot be read. No principal has such a name.
const UNREADABLE: &str = "(unknown: its state cannot be read)";

/// What rebuilding an item looks at.
struct Look<'a> {
    store: &'a Store,
    objects: &'a Objects,
    footprinter: &'a Footprinter,
    now: Instant,
}

impl Look<'_> {
    /// An item as it stands now; `None` when its ref is gone, it has landed, or it cannot be read.
    fn item(&self, view: &View, agent: &AgentId, item: &ItemState) -> Option<OpenItem> {
        let study = |head| self.footprinter.study(self.objects, view.current, head);
        let found = self.store.find_ref(&item.name).and_then(|head| {
            head.map(|head| Ok::<_, StoreError>((head, study(head)?))).transpose()
        });
        let (head, study) = match found {
            Ok(found) => found?,
            Err(error) => {
                tracing::warn!(name = %item.name, %error, "item skipped");
                return None;
            }
        };
        let study = study.filter(|study| !study.merged && view.current.is_some())?;
        Some(OpenItem {
            agent: agent.clone(),
            item: item.id.clone(),
            intent: item.intent.clone(),
            name: item.name.clone(),
            head,
            footprint: study.footprint,
            pushed: self.now,
        })
    }
}
