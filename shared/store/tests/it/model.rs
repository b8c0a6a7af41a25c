//! Random transactions against a map: the store takes what the map's rules take, and ends where the map ends.

use std::collections::BTreeMap;

use zit_model::{Oid, RefChange, RefUpdate};

use crate::support::{Repo, commit, name};

const NAMES: &[&str] = &["a", "a/b", "a/b/c", "a/d", "ab", "e/f", "e", "g"];

/// A generator with one seed per run, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

fn is_folder_of(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

fn update(dice: &mut Dice, refs: &BTreeMap<String, Oid>, commits: &[Oid]) -> RefUpdate {
    let full = format!("refs/heads/{}", dice.pick(NAMES));
    let held = refs.get(&full).copied();
    let old = if dice.below(5) == 0 { Some(dice.pick(commits)) } else { held };
    let new = dice.pick(commits);
    let change = match (dice.below(3), old) {
        (0, Some(old)) => RefChange::Delete { old },
        (1, _) | (_, None) => RefChange::Create { new },
        (_, Some(old)) => RefChange::Move { old, new },
    };
    RefUpdate { name: name(&full), change }
}

/// What the map becomes; `None` when the transaction may not be.
fn expected(refs: &BTreeMap<String, Oid>, updates: &[RefUpdate]) -> Option<BTreeMap<String, Oid>> {
    let names: Vec<String> = updates.iter().map(|update| update.name.to_string()).collect();
    let mut after = refs.clone();
    for (i, update) in updates.iter().enumerate() {
        let clash =
            |other: &String| is_folder_of(other, &names[i]) || is_folder_of(&names[i], other);
        let again = names.iter().skip(i + 1).any(|other| *other == names[i]);
        let held = refs.get(&names[i]).copied();
        let creates = update.change.old_value().is_none();
        if again
            || names.iter().any(clash)
            || held != update.change.old_value()
            || creates && refs.keys().any(clash)
        {
            return None;
        }
        match update.change.new_value() {
            Some(new) => after.insert(names[i].clone(), new),
            None => after.remove(&names[i]),
        };
    }
    Some(after)
}

/// Tries random transactions; how many were taken and refused.
fn compare(repo: &Repo, n_seeds: u64) -> (usize, usize) {
    let commits: [Oid; 3] = repo.commits();
    let mut store = repo.referee();
    let mut refs = BTreeMap::new();
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..n_seeds {
        let mut dice = Dice(seed);
        let count = 1 + dice.below(3);
        let updates: Vec<_> = (0..count).map(|_| update(&mut dice, &refs, &commits)).collect();
        match (expected(&refs, &updates), commit(&store, &updates)) {
            (Some(after), Ok(())) => {
                refs = after;
                taken += 1;
            }
            (None, Err(_)) => refused += 1,
            (map, store) => panic!("seed {seed}: {updates:?} on {refs:?}: {map:?}, {store:?}"),
        }
        if dice.below(10) == 0 {
            repo.git(&["pack-refs", "--all"]);
        }
        if dice.below(25) == 0 {
            drop(store);
            store = repo.referee();
        }
        let shown: BTreeMap<_, _> =
            refs.iter().map(|(name, oid)| (name.clone(), oid.to_string())).collect();
        assert_eq!(Repo::store_refs(&store), shown, "seed {seed}");
        if dice.below(10) == 0 {
            assert_eq!(repo.git_refs(), shown, "seed {seed}");
        }
    }
    (taken, refused)
}

#[test]
fn random_transactions_do_what_a_map_does() {
    let (taken, refused) = compare(&Repo::new(), 400);
    assert!(taken > 80 && refused > 80, "{taken} taken, {refused} refused");
}

#[test]
fn random_transactions_on_a_reftable_do_what_a_map_does() {
    let (taken, refused) = compare(&Repo::reftable(), 160);
    assert!(taken > 15 && refused > 15, "{taken} taken, {refused} refused");
}
