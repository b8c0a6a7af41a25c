//! Which refs are shown to whom: to pushers, to pushers of a namespace, to fetchers.

use std::collections::BTreeSet;

use bstr::BStr;
use zit_model::{AgentId, Namespace, Oid, RefName};
use zit_store::{Store, StoreError, StoredRef};
use zit_wire::ls_refs::Prefixes;

use super::Repository;
use crate::actor::Event;
use crate::error::RefereeError;

/// How many prefixes of a fetcher are looked up one by one; with more, all refs are read once.
const MAX_PREFIXES: usize = 64;

impl Repository {
    /// The refs advertised to a pusher: everything outside `refs/zit/`, current, and the agent's own, less what the
    /// configuration hides.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    ///
    /// # Source
    /// `spec/refs.md`, "Scoped advertisement".
    pub fn refs_for_push(&self, agent: Option<&AgentId>) -> Result<Vec<StoredRef>, RefereeError> {
        let own = match agent {
            Some(agent) => self.ask(|back| Event::Own(agent.clone(), back))?,
            None => BTreeSet::new(),
        };
        // Of the refs of all agents, only the agent's own are looked at.
        let mut shown = self.store.refs_with(&[])?;
        for name in own.into_iter().filter(RefName::is_zit) {
            if let Some(oid) = self.reading().find_ref(&name)? {
                shown.push(StoredRef { name, oid, peeled: None, symref_target: None });
            }
        }
        let config = self.store.config()?;
        shown.retain(|r| !config.hidden_from_push.hides(r.name.as_bstr()));
        shown.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(shown)
    }

    /// The refs advertised to a pusher of a namespace, as it names them, and what the repository's other refs name that
    /// may be told: git's `.have` lines.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    ///
    /// # Source
    /// git's `builtin/receive-pack.c`, `show_ref_cb`.
    pub fn view_for_push(
        &self,
        namespace: &Namespace,
    ) -> Result<(Vec<StoredRef>, BTreeSet<Oid>), RefereeError> {
        let config = self.store.config()?;
        let (mut shown, mut haves) = (Vec::new(), BTreeSet::new());
        for stored in self.store.refs()? {
            let name = namespace.strip(&stored.name);
            let is_referees = stored.name.is_zit() && stored.name != zit_model::refs::current();
            if is_referees || config.hidden_from_push.hides_in(name, stored.name.as_bstr()) {
                continue;
            }
            match namespace.strip_ref(&stored.name) {
                Some(name) => shown.push(StoredRef { name, ..stored }),
                None => {
                    haves.insert(stored.oid);
                }
            }
        }
        Ok((shown, haves))
    }

    /// The refs shown to a fetcher: all that the configuration does not hide, or of these at least those that start with one of `prefixes`, by name.
    ///
    /// A poll of a few refs among many reads no others.
    ///
    /// # Errors
    /// [`RefereeError`] when refs cannot be read.
    pub fn refs_for_fetch(&self, prefixes: &Prefixes) -> Result<Vec<StoredRef>, RefereeError> {
        Ok(refs_for_fetch(&self.store, prefixes)?)
    }
}

/// The refs shown to a fetcher by a repository that has no referee at the moment; as [`Repository::refs_for_fetch`].
///
/// # Errors
/// [`StoreError`] when refs cannot be read.
pub fn refs_for_fetch(store: &Store, prefixes: &Prefixes) -> Result<Vec<StoredRef>, StoreError> {
    let mut refs = refs_by_prefix(store, prefixes)?;
    let config = store.config()?;
    if !config.hidden_from_fetch.is_empty() {
        refs.retain(|r| !config.hidden_from_fetch.hides(r.name.as_bstr()));
    }
    Ok(refs)
}

fn refs_by_prefix(store: &Store, prefixes: &Prefixes) -> Result<Vec<StoredRef>, StoreError> {
    let mut of: Vec<&BStr> = prefixes.iter().collect();
    let all = of.is_empty() || of.len() > MAX_PREFIXES;
    if all || of.iter().any(|prefix| b"refs/".starts_with(prefix)) {
        return store.refs();
    }
    of.retain(|prefix| prefix.starts_with(b"refs/"));
    // They are sorted and disjoint, and so is what they give.
    let mut found = Vec::new();
    for prefix in of {
        found.extend(store.refs_below(prefix)?);
    }
    Ok(found)
}
