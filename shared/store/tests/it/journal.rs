//! The journal behind the transactions: what is staged, what survives, and what the files may say meanwhile.

use std::path::{Path, PathBuf};

use zit_model::Oid;
use zit_store::Store;
use zit_store::journal::{Journal, Origin, Record};

use crate::support::{
    Repo, commit, copy, create, delete, document, draft, moved, name, reboot, write_document,
};

/// Journals a deferred ref that names a document, and leaves the files behind.
fn claim(store: &Store, key: &str) -> Oid {
    write_document(store, &format!("refs/zit/claims/{key}"))
}

fn records(repo: &Repo) -> Vec<Record> {
    let (journal, _) = Journal::read_only(&repo.path.join("zit/journal")).unwrap();
    journal.verify().unwrap();
    let first = journal.oldest().unwrap().unwrap();
    journal.read_from(first).unwrap().map(Result::unwrap).collect()
}

/// What a power failure leaves of a repository in use: `lost` files are torn, and the machine has started again.
fn power_failure(repo: &mut Repo, store: Store, lost: impl Fn(&str) -> bool) {
    let left = repo.path.with_extension("left.git");
    copy(&repo.path, &left);
    drop(store);
    let lost = |path: &Path| path.strip_prefix(&left).unwrap().to_str().is_some_and(&lost);
    repo.path.clone_from(&left);
    let torn: Vec<PathBuf> = repo.files().into_iter().filter(|path| lost(path)).collect();
    for path in torn {
        // Objects are read-only.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
    }
    reboot(repo);
}

#[test]
fn what_is_staged_is_seen_by_the_next_transaction_and_by_no_reader_until_it_is_flushed() {
    let repo = Repo::new();
    let store = repo.referee();
    let (one, made) = document(&store, "one");
    let update = [create("refs/zit/claims/k", one)];
    let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
    prepared.stage(draft(), vec![made]).unwrap();
    let (claimed, reading) = (name("refs/zit/claims/k"), store.reading());
    assert_eq!(store.find_ref(&claimed).unwrap(), Some(one));
    assert_eq!(reading.find_ref(&claimed).unwrap(), None);
    assert!(store.refs().unwrap().is_empty());
    assert!(commit(&store, &update).is_err(), "it exists for whoever comes next");
    assert!(!repo.path.join("zit/journal/00000000000000000001.log").exists());
    store.flush().unwrap();
    assert_eq!(reading.find_ref(&claimed).unwrap(), Some(one));
    assert_eq!(records(&repo).len(), 1);
}

#[test]
fn what_was_staged_and_not_flushed_is_gone_after_a_restart() {
    let repo = Repo::new();
    let store = repo.referee();
    let (one, made) = document(&store, "one");
    let update = [create("refs/zit/claims/k", one)];
    let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
    prepared.stage(draft(), vec![made]).unwrap();
    drop(store);
    assert!(repo.referee().refs().unwrap().is_empty());
    assert!(repo.git_refs().is_empty());
}

#[test]
fn a_ref_that_is_not_deferred_takes_what_is_staged_with_it() {
    let repo = Repo::new();
    let a = repo.commit(&[], &[], "a");
    let store = repo.referee();
    let (one, made) = document(&store, "one");
    let update = [create("refs/zit/claims/k", one)];
    let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
    prepared.stage(draft(), vec![made]).unwrap();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    let names: Vec<_> = store.refs().unwrap().into_iter().map(|r| r.name.to_string()).collect();
    assert_eq!(names, ["refs/heads/x", "refs/zit/claims/k"]);
    let seqs: Vec<u64> = records(&repo).iter().map(|record| record.seq.0).collect();
    assert_eq!(seqs, [1, 2]);
}

#[test]
fn a_deferred_ref_and_its_objects_are_read_before_they_are_in_files_and_are_in_files_soon() {
    let repo = Repo::new();
    let store = repo.referee();
    let before = store.objects().unwrap();
    let oid = claim(&store, "k");
    assert_eq!(before.commit(oid).unwrap().parents, [], "an old handle sees it, too");
    assert_eq!(store.find_ref(&name("refs/zit/claims/k")).unwrap(), Some(oid));
    store.settle().unwrap();
    assert_eq!(repo.git_refs()["refs/zit/claims/k"], oid.to_string());
    repo.git(&["fsck", "--strict"]);
    assert_eq!(before.commit(oid).unwrap().parents, []);
    commit(&store, &[delete("refs/zit/claims/k", oid)]).unwrap();
    assert!(repo.git_refs().is_empty());
    assert!(!repo.path.join("refs/zit/claims").exists(), "nor a folder");
}

#[test]
fn the_journal_says_who_did_what_with_which_objects() {
    let repo = Repo::new();
    let store = repo.referee();
    let oid = claim(&store, "k");
    commit(&store, &[delete("refs/zit/claims/k", oid)]).unwrap();
    let records = records(&repo);
    assert_eq!(records[0].principal, "somebody");
    assert_eq!(records[0].origin, Origin::Push);
    assert_eq!(records[0].changes, [create("refs/zit/claims/k", oid)]);
    assert_eq!(records[0].objects.len(), 3, "commit, tree and file");
    assert_eq!(records[1].changes, [delete("refs/zit/claims/k", oid)]);
    assert_eq!(store.next_seq().unwrap(), 3);
}

#[test]
fn numbers_go_on_above_what_a_lost_journal_gave_out() {
    let repo = Repo::new();
    let store = repo.referee();
    store.skip_to(5000, 0).unwrap();
    assert_eq!(store.next_seq().unwrap(), 5001);
    store.skip_to(17, 0).unwrap();
    assert_eq!(store.next_seq().unwrap(), 5001);
    drop(store);
    assert_eq!(repo.referee().next_seq().unwrap(), 5001);
}

#[test]
fn after_a_power_failure_torn_refs_are_written_anew() {
    let mut repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/y", a)]).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    let oid = claim(&store, "k");
    store.settle().unwrap();
    let hex = oid.to_string();
    let torn = ["refs/heads/x", "refs/heads/y", "refs/zit/claims/k"];
    power_failure(&mut repo, store, |path| torn.contains(&path));
    let store = repo.referee();
    store.settle().unwrap();
    let refs = repo.git_refs();
    assert_eq!(refs["refs/heads/x"], b.to_string());
    assert_eq!(refs["refs/heads/y"], a.to_string());
    assert_eq!(refs["refs/zit/claims/k"], hex);
    assert_eq!(Repo::store_refs(&store), refs);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn after_a_power_failure_refs_whose_renames_were_lost_are_moved_again() {
    let mut repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/gone", a)]).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b), delete("refs/heads/gone", a)]).unwrap();
    power_failure(&mut repo, store, |_| false);
    std::fs::write(repo.path.join("refs/heads/x"), format!("{a}\n")).unwrap();
    std::fs::write(repo.path.join("refs/heads/gone"), format!("{a}\n")).unwrap();
    let store = repo.referee();
    assert_eq!(
        repo.git_refs().into_iter().collect::<Vec<_>>(),
        [("refs/heads/x".to_owned(), b.to_string())]
    );
    drop(store);
}

#[test]
fn after_a_power_failure_a_torn_file_of_a_deleted_ref_goes() {
    let mut repo = Repo::new();
    let a = repo.commit(&[], &[], "a");
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    commit(&store, &[delete("refs/heads/x", a)]).unwrap();
    power_failure(&mut repo, store, |_| false);
    let file = repo.path.join("refs/heads/x");
    std::fs::write(&file, "").unwrap();
    drop(repo.referee());
    assert!(!file.exists());
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_ref_that_another_program_moved_is_left_and_journaled_as_overridden() {
    let mut repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let other = repo.commit(&[("f", "2")], &[], "other");
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    power_failure(&mut repo, store, |_| false);
    repo.git(&["update-ref", "refs/heads/x", &other.to_string()]);
    let store = repo.referee();
    assert_eq!(repo.git_refs()["refs/heads/x"], other.to_string());
    let last = records(&repo).pop().unwrap();
    assert_eq!(last.origin, Origin::Override);
    assert_eq!(last.changes, [moved("refs/heads/x", b, other)]);
    // Once it is journaled, it is what the ref holds.
    let n_records = records(&repo).len();
    power_failure(&mut repo, store, |_| false);
    drop(repo.referee());
    assert_eq!(records(&repo).len(), n_records);
}

#[test]
fn a_restart_of_the_server_alone_leaves_alone_what_git_moved_since() {
    let repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    drop(store);
    // Back to a value that the journal knows: nobody may take it for a lost rename.
    repo.git(&["update-ref", "refs/heads/x", &a.to_string()]);
    drop(repo.referee());
    assert_eq!(repo.git_refs()["refs/heads/x"], a.to_string());
}

#[test]
fn a_ref_whose_lock_another_program_holds_follows_once_it_is_free() {
    let repo = Repo::new();
    let store = repo.referee();
    let folder = repo.path.join("refs/zit/claims");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.lock"), "").unwrap();
    let (a, b) = (claim(&store, "a"), claim(&store, "b"));
    assert!(store.settle().is_err());
    assert_eq!(repo.git_refs().len(), 1, "the others do not wait for it");
    assert_eq!(Repo::store_refs(&store).len(), 2);
    std::fs::remove_file(folder.join("a.lock")).unwrap();
    store.settle().unwrap();
    assert_eq!(repo.git_refs()["refs/zit/claims/a"], a.to_string());
    assert_eq!(repo.git_refs()["refs/zit/claims/b"], b.to_string());
}

#[test]
fn packing_refs_beside_the_store_loses_nothing_and_brings_nothing_back() {
    let repo = Repo::new();
    let store = repo.referee();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                // It fails while a ref is locked, as it does beside git itself.
                drop(repo.try_git(&["pack-refs", "--all"], b""));
            }
        });
        for round in 0..30 {
            let oid = claim(&store, &round.to_string());
            let _ = store.settle();
            if round % 3 == 0 {
                let gone = [delete(&format!("refs/zit/claims/{round}"), oid)];
                store.prepare(&gone).unwrap().commit(draft(), Vec::new()).unwrap();
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    store.settle().unwrap();
    let refs = repo.git_refs();
    assert_eq!(refs.len(), 20);
    assert_eq!(Repo::store_refs(&store), refs);
    drop(store);
    assert_eq!(Repo::store_refs(&repo.referee()), refs);
}

#[test]
fn a_long_journal_is_cut_at_a_checkpoint_and_opens_with_everything() {
    let repo = Repo::new();
    let store = repo.referee();
    let big = "x".repeat(900 << 10);
    for n in 0..100 {
        let (oid, made) = document(&store, &format!("{n}{big}"));
        let update = [create(&format!("refs/zit/claims/{n:03}"), oid)];
        let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
        prepared.commit(draft(), vec![made]).unwrap();
        store.checkpoint().unwrap();
    }
    let size = std::fs::read_dir(repo.path.join("zit/journal")).unwrap();
    let size: u64 = size.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 84 << 20, "{size} bytes are kept of 88 MiB");
    assert_eq!(store.next_seq().unwrap(), 101);
    drop(store);
    let store = repo.referee();
    assert_eq!(store.next_seq().unwrap(), 101);
    assert_eq!(store.refs().unwrap().len(), 100);
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
}
