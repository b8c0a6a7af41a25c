//! What failures and administrators do beside the journal: nothing acknowledged is lost, and nothing taken away returns.

use std::time::{Duration, Instant};

use zit_store::{Access, Store, StoreError};

use crate::support::{
    Repo, commit, copy, create, delete, document, draft, moved, name, reboot, write_document,
};

fn has_checkpoint(repo: &Repo) -> bool {
    let mut files = std::fs::read_dir(repo.path.join("zit/journal")).unwrap();
    files.any(|file| file.unwrap().path().extension().is_some_and(|it| it == "ckpt"))
}

#[test]
fn what_is_staged_outlives_a_later_transaction_whose_files_cannot_be_written() {
    let repo = Repo::new();
    let a = repo.commit(&[], &[], "a");
    let store = repo.referee();
    let (one, made) = document(&store, "one");
    let update = [create("refs/zit/claims/k", one)];
    let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
    prepared.stage(draft(), vec![made]).unwrap();
    let in_the_way = repo.path.join("zit/tx/0");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(store.prepare(&[create("refs/heads/x", a)]).is_err());
    std::fs::remove_dir(&in_the_way).unwrap();
    commit(&store, &[create("refs/heads/y", a)]).unwrap();
    store.flush().unwrap();
    assert_eq!(store.find_ref(&name("refs/zit/claims/k")).unwrap(), Some(one));
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
    assert_eq!(repo.git_refs().len(), 2);
}

#[test]
fn what_git_took_back_after_a_stop_is_not_brought_back_after_a_power_failure() {
    let repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/gone", a)]).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    write_document(&store, "refs/zit/claims/k");
    drop(store);
    repo.git(&["update-ref", "refs/heads/x", &a.to_string()]);
    repo.git(&["update-ref", "-d", "refs/heads/gone"]);
    repo.git(&["update-ref", "-d", "refs/zit/claims/k"]);
    let before = repo.git_refs();
    reboot(&repo);
    let store = repo.referee();
    store.settle().unwrap();
    assert_eq!(repo.git_refs(), before);
    assert_eq!(Repo::store_refs(&store), before);
}

#[test]
fn branches_alone_take_checkpoints_too() {
    let repo = Repo::new();
    let store = repo.referee();
    let big = "x".repeat(900 << 10);
    for n in 0..12 {
        let (oid, made) = document(&store, &format!("{n}{big}"));
        let update = [create(&format!("refs/heads/{n}"), oid)];
        let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
        prepared.commit(draft(), vec![made]).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while !has_checkpoint(&repo) {
        assert!(Instant::now() < deadline, "no checkpoint");
        std::thread::yield_now();
    }
}

#[test]
fn no_ref_is_made_of_a_folder_that_only_the_journal_knows() {
    let repo = Repo::new();
    let a = repo.commit(&[], &[], "a");
    let store = repo.referee();
    write_document(&store, "refs/zit/current/x");
    for refused in ["refs/zit", "refs/zit/current"] {
        let refused = store.prepare(&[create(refused, a)]).unwrap_err().to_string();
        assert!(refused.contains("conflicts with the ref refs/zit/current/x"), "{refused}");
    }
    store.settle().unwrap();
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
}

#[test]
fn a_deletion_that_waits_for_a_lock_does_not_hold_up_others() {
    let repo = Repo::new();
    let store = repo.referee();
    let refs = ["a", "b", "c"].map(|key| format!("refs/zit/claims/{key}"));
    let oids = refs.clone().map(|name| write_document(&store, &name));
    store.settle().unwrap();
    let lock = repo.path.join("refs/zit/claims/a.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    for (name, oid) in refs.iter().zip(oids) {
        store.prepare(&[delete(name, oid)]).unwrap().commit(draft(), Vec::new()).unwrap();
    }
    assert!(store.settle().is_err());
    assert_eq!(repo.git_refs().into_keys().collect::<Vec<_>>(), [refs[0].clone()]);
    std::fs::remove_file(&lock).unwrap();
    store.settle().unwrap();
    assert!(repo.git_refs().is_empty());
}

#[test]
fn a_symbolic_ref_below_refs_zit_is_listed_with_what_it_names_now() {
    let repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    repo.git(&["update-ref", "refs/heads/x", &a.to_string()]);
    repo.git(&["symbolic-ref", "refs/zit/link", "refs/heads/x"]);
    let store = repo.referee();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
    commit(&store, &[delete("refs/heads/x", b)]).unwrap();
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
}

#[test]
fn a_store_writes_nothing_to_where_its_repository_was() {
    let repo = Repo::new();
    let store = repo.referee();
    write_document(&store, "refs/zit/claims/before");
    store.settle().unwrap();
    let away = repo.folder.path().join("away.git");
    write_document(&store, "refs/zit/claims/k");
    std::fs::rename(&repo.path, &away).unwrap();
    assert!(store.settle().is_err());
    assert!(!repo.path.exists());
    // Another repository takes the place.
    Store::init(&repo.path).unwrap();
    let other = repo.referee();
    assert!(store.settle().is_err());
    drop(store);
    assert!(repo.git_refs().is_empty());
    drop(other);
    assert!(repo.referee().refs().unwrap().is_empty());
    let moved = Store::open(&away, Access::Referee).unwrap();
    assert!(moved.find_ref(&name("refs/zit/claims/k")).unwrap().is_some());
}

#[test]
fn a_copy_of_a_repository_in_use_opens_with_what_the_copied_journal_says() {
    let repo = Repo::new();
    let store = repo.referee();
    write_document(&store, "refs/heads/x");
    store.settle().unwrap();
    let copied = repo.folder.path().join("copy.git");
    for early in ["refs", "info"] {
        std::fs::create_dir_all(repo.path.join(early)).unwrap();
        copy(&repo.path.join(early), &copied.join(early));
    }
    let (k, y) =
        (write_document(&store, "refs/zit/claims/k"), write_document(&store, "refs/heads/y"));
    store.settle().unwrap();
    for late in ["objects", "zit"] {
        copy(&repo.path.join(late), &copied.join(late));
    }
    for file in ["HEAD", "config"] {
        std::fs::copy(repo.path.join(file), copied.join(file)).unwrap();
    }
    let copied = Store::open(&copied, Access::Referee).unwrap();
    assert_eq!(copied.find_ref(&name("refs/zit/claims/k")).unwrap(), Some(k));
    assert_eq!(copied.find_ref(&name("refs/heads/y")).unwrap(), Some(y));
}

#[test]
fn a_mark_of_a_journal_that_is_gone_settles_nothing_of_the_next() {
    let repo = Repo::new();
    let store = repo.referee();
    for n in 0..4 {
        write_document(&store, &format!("refs/zit/claims/{n}"));
    }
    store.settle().unwrap();
    let mark = std::fs::read(repo.path.join("zit/settled")).unwrap();
    drop(store);
    std::fs::remove_dir_all(repo.path.join("zit/journal")).unwrap();
    let store = repo.referee();
    let k = write_document(&store, "refs/zit/claims/k");
    drop(store);
    for file in std::fs::read_dir(repo.path.join("zit/journal")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "ckpt") {
            std::fs::remove_file(path).unwrap();
        }
    }
    // As if the process had died before the round that writes file and mark.
    std::fs::remove_file(repo.path.join("refs/zit/claims/k")).unwrap();
    std::fs::write(repo.path.join("zit/settled"), mark).unwrap();
    assert_eq!(repo.referee().find_ref(&name("refs/zit/claims/k")).unwrap(), Some(k));
}

#[test]
fn a_lock_that_stays_keeps_only_what_comes_after_it_from_a_checkpoint_and_is_named() {
    let repo = Repo::new();
    let store = repo.referee();
    write_document(&store, "refs/zit/claims/a");
    store.settle().unwrap();
    assert!(!has_checkpoint(&repo));
    std::fs::write(repo.path.join("refs/zit/claims/b.lock"), "").unwrap();
    write_document(&store, "refs/zit/claims/b");
    // More than is journaled between two checkpoints.
    for n in 0..9 {
        let (oid, made) = document(&store, &format!("{n}").repeat(1_000_000));
        let update = [create(&format!("refs/zit/claims/c{n}"), oid)];
        let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
        prepared.commit(draft(), vec![made]).unwrap();
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while !has_checkpoint(&repo) {
        assert!(Instant::now() < deadline, "no checkpoint is taken");
        std::thread::yield_now();
    }
    let error = store.settle().unwrap_err();
    assert!(error.to_string().contains("refs/zit/claims/b.lock"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_lock_on_the_file_shallow_is_left_alone_and_named() {
    let repo = Repo::new();
    let [a] = repo.commits();
    let store = repo.referee();
    let lock = repo.path.join("shallow.lock");
    std::fs::write(&lock, "").unwrap();
    let mut prepared = store.prepare(&[create("refs/heads/x", a)]).unwrap();
    let error = prepared.end_at(&[a].into()).unwrap_err();
    drop(prepared);
    assert!(matches!(&error, StoreError::Locked(path) if *path == lock), "{error}");
    assert!(lock.exists() && !repo.path.join("shallow").exists());
    drop(store);
    let findings = Store::open(&repo.path, Access::ReadOnly).unwrap().inspect().unwrap().findings;
    let named = |what: &str| what.contains("shallow.lock is the lock of another program");
    assert!(findings.iter().any(|finding| named(&finding.what)), "{findings:?}");
}
