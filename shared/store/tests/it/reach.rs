//! Which commits are known to be in the history of refs.

use zit_model::Oid;
use zit_store::Store;

use crate::support::Repo;

/// Says it twice: the second time it is remembered.
#[track_caller]
fn check(store: &Store, commit: Oid, values: &[Oid], expected: bool) {
    for _ in 0..2 {
        assert_eq!(store.is_in_history(commit, values).unwrap(), expected);
    }
}

#[test]
fn a_commit_is_in_the_history_of_the_values_that_reach_it_and_of_no_others() {
    let repo = Repo::new();
    let store = repo.referee();
    let root = repo.commit(&[], &[], "root");
    let left = repo.commit(&[("l", "1")], &[root], "left");
    let right = repo.commit(&[("r", "1")], &[root], "right");
    let merge = repo.commit(&[("m", "1")], &[left, right], "merge");
    let other = repo.commit(&[("o", "1")], &[], "other");
    for (commit, values, expected) in [
        (root, &[left][..], true),
        (left, &[left], true),
        (root, &[merge], true),
        (right, &[merge], true),
        (right, &[left], false),
        (right, &[left, merge], true),
        (merge, &[left, right], false),
        (other, &[merge], false),
        (root, &[other], false),
        (root, &[], false),
    ] {
        check(&store, commit, values, expected);
    }
    let absent = "1".repeat(40).parse().unwrap();
    check(&store, absent, &[merge], false);
    check(&store, root, &[absent, merge], true);
}

#[test]
fn what_is_no_commit_vouches_for_nothing() {
    let repo = Repo::new();
    let store = repo.referee();
    let commit = repo.commit(&[], &[], "a");
    let blob = repo.blob("x");
    check(&store, commit, &[blob], false);
    check(&store, blob, &[commit], false);
}

#[test]
fn nothing_is_known_where_histories_are_cut_off() {
    let repo = Repo::new();
    let root = repo.commit(&[], &[], "root");
    let tip = repo.commit(&[("a", "1")], &[root], "tip");
    let store = repo.referee();
    std::fs::write(repo.path.join("shallow"), format!("{tip}\n")).unwrap();
    check(&store, root, &[tip], false);
    check(&store, tip, &[tip], true);
}
