//! [`Claims`]: every claim that stands, by key, by the path that it is on, and by its agent.
//!
//! Two claims overlap on one path only, so what is in the way of one is found without looking at all. Nor is what a push
//! renews or ends: it is the pusher's.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Deref;

use zit_model::AgentId;

use crate::view::Claim;

/// Claims by key. Reads as a map; what changes it keeps the paths up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    by_key: BTreeMap<String, Claim>,
    /// The keys of the claims on each path.
    on: HashMap<String, BTreeSet<String>>,
    /// The keys of each agent's claims.
    of: HashMap<AgentId, BTreeSet<String>>,
}

impl Claims {
    pub(crate) fn insert(&mut self, key: String, claim: Claim) {
        self.remove(&key);
        let path = claim.record.resource.path().to_owned();
        self.on.entry(path).or_default().insert(key.clone());
        self.of.entry(claim.record.agent.clone()).or_default().insert(key.clone());
        self.by_key.insert(key, claim);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let Some(claim) = self.by_key.remove(key) else { return };
        forget(&mut self.on, claim.record.resource.path(), key);
        forget(&mut self.of, &claim.record.agent, key);
    }

    /// The claims on a path and on parts of it, by key.
    pub(crate) fn on<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a String, &'a Claim)> {
        let keys = self.on.get(path).into_iter().flatten();
        keys.filter_map(|key| self.by_key.get_key_value(key))
    }

    /// The claims of an agent, by key.
    pub(crate) fn of<'a>(
        &'a self,
        agent: &AgentId,
    ) -> impl Iterator<Item = (&'a String, &'a Claim)> {
        let keys = self.of.get(agent).into_iter().flatten();
        keys.filter_map(|key| self.by_key.get_key_value(key))
    }

    /// Lets the lease of each claim start anew. What a claim is on must not be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&String, &mut Claim)> {
        self.by_key.iter_mut()
    }

    /// One claim, to let its lease start anew. What it is on must not be changed.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Claim> {
        self.by_key.get_mut(key)
    }
}

/// Takes a key out of an index.
fn forget<K, Q>(index: &mut HashMap<K, BTreeSet<String>>, place: &Q, key: &str)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    if let Some(keys) = index.get_mut(place) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(place);
        }
    }
}

impl Deref for Claims {
    type Target = BTreeMap<String, Claim>;

    fn deref(&self) -> &Self::Target {
        &self.by_key
    }
}

impl FromIterator<(String, Claim)> for Claims {
    fn from_iter<I: IntoIterator<Item = (String, Claim)>>(claims: I) -> Self {
        let mut all = Self::default();
        claims.into_iter().for_each(|(key, claim)| all.insert(key, claim));
        all
    }
}
