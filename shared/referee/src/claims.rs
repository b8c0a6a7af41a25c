//! [`Claims`]: every claim that stands, by key and by the path that it is on.
//!
//! Two claims overlap on one path only, so what is in the way of one is found without looking at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;

use crate::view::Claim;

/// Claims by key. Reads as a map; what changes it keeps the paths up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    by_key: BTreeMap<String, Claim>,
    /// The keys of the claims on each path.
    on: HashMap<String, BTreeSet<String>>,
}

impl Claims {
    pub(crate) fn insert(&mut self, key: String, claim: Claim) {
        self.remove(&key);
        let path = claim.record.resource.path().to_owned();
        self.on.entry(path).or_default().insert(key.clone());
        self.by_key.insert(key, claim);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let Some(claim) = self.by_key.remove(key) else { return };
        let path = claim.record.resource.path();
        if let Some(keys) = self.on.get_mut(path) {
            keys.remove(key);
            if keys.is_empty() {
                self.on.remove(path);
            }
        }
    }

    /// The claims on a path and on parts of it, by key.
    pub(crate) fn on<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a String, &'a Claim)> {
        let keys = self.on.get(path).into_iter().flatten();
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
