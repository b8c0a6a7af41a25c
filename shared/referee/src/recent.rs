//! A bounded map that forgets what nobody has asked for lately.
//!
//! Use [`Recent::get`] and [`Recent::insert`]; what is forgotten has to be computed again. Never shared by itself: its
//! owner locks it.

use std::collections::HashMap;
use std::hash::Hash;

/// Entries in two generations. Once the young ones weigh half of what is allowed, the old ones are forgotten and the
/// young ones are old; an old entry that is asked for is young again.
pub(crate) struct Recent<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    /// What the young entries weigh.
    weight: usize,
    max: usize,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// An empty map whose entries may weigh `max` in all.
    pub(crate) fn new(max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, max }
    }

    /// The entry of a key.
    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = self.old.remove_entry(key)?;
        self.put(key, value.clone(), weight);
        Some(value)
    }

    /// Keeps an entry, unless it alone weighs more than half of what is allowed. Each counts for one more than its
    /// weight.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        let weight = weight + 1;
        if weight <= self.max / 2 && !self.young.contains_key(&key) {
            self.old.remove(&key);
            self.put(key, value, weight);
        }
    }

    fn put(&mut self, key: K, value: V, weight: usize) {
        if self.weight + weight > self.max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.young.insert(key, (value, weight));
        self.weight += weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_forgets_what_was_not_asked_for_and_never_keeps_what_alone_is_too_much() {
        let mut recent = Recent::new(60);
        for n in 0..20 {
            recent.insert(n, n, 9);
            assert_eq!(recent.get(&0), Some(0), "asked for each time");
            let weight = |of: &HashMap<i32, (i32, usize)>| of.values().map(|e| e.1).sum::<usize>();
            assert!(weight(&recent.young) + weight(&recent.old) <= 60, "after {n}");
        }
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.get(&19), Some(19));
        recent.insert(100, 100, 30);
        assert_eq!(recent.get(&100), None);
    }
}
