//! Crashes: a process dies at every crash point, and whoever opens the repository next finds all of it or nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use zit_model::Oid;
use zit_store::{Access, CRASH_POINTS, PackLimits, SHALLOW_CRASH_POINTS, Store, StoreError};

use crate::support::{Repo, commit, create, delete, draft, moved, run, wait_until_gone};

const LIMITS: PackLimits = PackLimits { max_bytes: 1 << 20, max_objects: 100 };

/// What the process that is to die does; by the name that [`victim`] reads.
const PUSH: &str = "push";
const ONE: &str = "one";
const REMOVE: &str = "remove";
const CUT: &str = "cut";
const OPEN: &str = "open";

/// Not a test on its own: the process that dies. It does nothing unless a test starts it with its instructions.
#[test]
fn victim() {
    let Ok(task) = std::env::var("ZIT_STORE_VICTIM") else { return };
    let repo = std::env::var("ZIT_STORE_REPO").unwrap();
    let path = Path::new(&repo);
    let store = Store::open(path, Access::Referee).unwrap();
    let held = |name: &str| store.find_ref(&crate::support::name(name)).unwrap().unwrap();
    match task.as_str() {
        PUSH => {
            let mut quarantine = store.quarantine().unwrap();
            let pack = std::fs::read(path.with_file_name("pack")).unwrap();
            let new: Oid =
                std::fs::read_to_string(path.with_file_name("new")).unwrap().parse().unwrap();
            quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
            quarantine.write_blob("a note").unwrap();
            let old = held("refs/heads/x");
            let updates = [
                moved("refs/heads/x", old, new),
                delete("refs/heads/y", held("refs/heads/y")),
                create("refs/zit/n/m", new),
            ];
            let objects = quarantine.objects();
            let prepared = store.prepare_seeing(&updates, &[&objects]).unwrap();
            prepared.commit(draft(), vec![quarantine]).unwrap();
        }
        ONE => {
            let (old, new) = (held("refs/heads/x"), held("refs/heads/z"));
            store
                .prepare(&[moved("refs/heads/x", old, new)])
                .unwrap()
                .commit(draft(), Vec::new())
                .unwrap();
        }
        REMOVE => {
            let old = held("refs/heads/y");
            store
                .prepare(&[delete("refs/heads/y", old)])
                .unwrap()
                .commit(draft(), Vec::new())
                .unwrap();
        }
        CUT => {
            let beside = |name: &str| std::fs::read(path.with_file_name(name)).unwrap();
            let oid = |name| Oid::from_hex(&beside(name)).unwrap();
            let (root, tip) = (oid("cut-root"), oid("cut"));
            let mut quarantine = store.quarantine().unwrap();
            quarantine.ends_at(&[root]);
            quarantine.receive_pack(&mut beside("cut-pack").as_slice(), &LIMITS).unwrap();
            quarantine.write_blob("a note").unwrap();
            let roots = quarantine.roots(&[tip]).unwrap().remove(0);
            let updates = [create("refs/heads/cut", tip), create("refs/zit/n/m", tip)];
            let objects = quarantine.objects();
            let mut prepared = store.prepare_seeing(&updates, &[&objects]).unwrap();
            prepared.end_at(&roots).unwrap();
            prepared.commit(draft(), vec![quarantine]).unwrap();
        }
        OPEN => {}
        other => panic!("no task {other}"),
    }
}

/// Runs [`victim`] until it dies at the crash point. Whether it did.
fn dies(repo: &Repo, task: &str, at: &str) -> bool {
    #[allow(clippy::disallowed_methods, reason = "this test again, to be killed")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash::victim", "--nocapture"])
        .env("ZIT_STORE_VICTIM", task)
        .env("ZIT_STORE_REPO", &repo.path)
        .env("ZIT_CRASH_AT", at);
    let output = run(command, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    !output.status.success()
}

/// `x` and `z` loose, `y` packed; beside it a pack with one commit that `x` moves to.
fn repository() -> (Repo, Oid) {
    repository_in(Repo::new())
}

fn repository_in(repo: Repo) -> (Repo, Oid) {
    // Also a small pack goes by way of files.
    repo.git(&["config", "receive.unpackLimit", "1"]);
    let a = repo.commit(&[("f", "1")], &[], "a");
    let z = repo.commit(&[("f", "2")], &[a], "z");
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/y", a)]).unwrap();
    repo.git(&["pack-refs", "--all"]);
    commit(&store, &[create("refs/heads/z", z)]).unwrap();
    let other = Repo::new();
    other.commit(&[("f", "1")], &[], "a");
    let new = other.commit(&[("f", "3"), ("g", "3")], &[a], "new");
    std::fs::write(repo.path.with_file_name("pack"), other.pack(&format!("{new}\n^{a}\n"), false))
        .unwrap();
    std::fs::write(repo.path.with_file_name("new"), new.to_string()).unwrap();
    let before = other.commit(&[("f", "4")], &[new], "before the root");
    let root = other.commit(&[("f", "5")], &[before], "root");
    let tip = other.commit(&[("f", "6")], &[root], "tip");
    for (name, tips) in
        [("cut-pack", format!("{tip}\n^{before}\n")), ("before-pack", format!("{before}\n^{a}\n"))]
    {
        std::fs::write(repo.path.with_file_name(name), other.pack(&tips, false)).unwrap();
    }
    for (name, oid) in [("cut", tip), ("cut-root", root)] {
        std::fs::write(repo.path.with_file_name(name), oid.to_string()).unwrap();
    }
    (repo, new)
}

/// Opens the repository and checks that no trace of a crash is left but its outcome.
#[track_caller]
fn opened(repo: &Repo) -> BTreeMap<String, String> {
    let store = repo.referee();
    // A git that outlived its parent may be folding tables still.
    wait_until_gone(&repo.path.join("reftable/tables.list.lock"));
    let left: Vec<_> = repo
        .files()
        .into_iter()
        .filter(|path| {
            let path = path.to_string_lossy();
            // Of the same git: the lock of a table.
            (path.ends_with(".lock") && !path.ends_with(".ref.lock"))
                || path.contains("/zit/tx/")
                || path.contains("/zit/settle/")
                || path.contains("incoming-zit")
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let is_index = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "idx");
    for index in repo.files().iter().filter(is_index) {
        assert!(index.with_extension("pack").exists(), "{} came before its pack", index.display());
    }
    store.settle().unwrap();
    repo.git(&["fsck", "--strict"]);
    let refs = repo.git_refs();
    assert_eq!(Repo::store_refs(&store), refs);
    refs
}

/// Whether a transaction that died there has happened.
fn is_committed(point: &str) -> bool {
    let after = [
        "journal.written",
        "tx.journaled",
        "shallow.renamed",
        "tx.renamed",
        "tx.done",
        "settle.packed",
        "settle.objects",
        "settle.refs",
    ];
    after.contains(&point)
}

#[test]
fn a_push_that_dies_anywhere_happened_wholly_or_not_at_all() {
    dies_everywhere(Repo::new);
}

#[test]
fn a_push_to_a_reftable_that_dies_anywhere_happened_wholly_or_not_at_all() {
    dies_everywhere(Repo::reftable);
}

fn dies_everywhere(new_repo: impl Fn() -> Repo) {
    let visits = |point: &str| match point {
        "quarantine.migrating" | "tx.renamed" => 2,
        _ => 1,
    };
    for point in CRASH_POINTS.iter().filter(|point| !point.starts_with("checkpoint.")) {
        for visit in 1..=visits(point) {
            let (repo, new) = repository_in(new_repo());
            let before = repo.git_refs();
            let mut after = before.clone();
            after.remove("refs/heads/y");
            after.insert("refs/heads/x".to_owned(), new.to_string());
            after.insert("refs/zit/n/m".to_owned(), new.to_string());
            let at = format!("{point}:{visit}");
            assert!(dies(&repo, PUSH, &at), "nothing dies at {at}");
            let committed = is_committed(point);
            assert_eq!(opened(&repo), if committed { after } else { before }, "{at}");
            assert_eq!(opened(&repo).len(), 3, "{at}, opened again");
        }
    }
}

#[test]
fn a_push_that_makes_the_repository_shallow_and_dies_anywhere_leaves_no_root_that_nothing_needs() {
    for new_repo in [Repo::new, Repo::reftable] {
        for point in CRASH_POINTS.iter().chain(SHALLOW_CRASH_POINTS) {
            if point.starts_with("checkpoint.") || point.starts_with("settle.") {
                continue;
            }
            let (repo, _) = repository_in(new_repo());
            assert!(dies(&repo, CUT, point), "nothing dies at {point}");
            let is_there = opened(&repo).contains_key("refs/heads/cut");
            assert_eq!(is_there, is_committed(point), "{point}");
            let root = repo.path.with_file_name("cut-root");
            let expected = is_there.then(|| std::fs::read_to_string(root).unwrap() + "\n");
            assert_eq!(shallow(&repo), expected, "{point}");
            let said = repo.git(&["rev-parse", "--is-shallow-repository"]);
            assert_eq!(said, is_there.to_string(), "{point}");
            assert_eq!(opened(&repo).contains_key("refs/heads/cut"), is_there, "{point}, again");
            assert_eq!(shallow(&repo), expected, "{point}, again");
        }
    }
}

#[test]
fn the_file_shallow_that_power_loss_took_is_written_again() {
    let (repo, _) = repository();
    assert!(dies(&repo, CUT, "tx.done"));
    let was = shallow(&repo);
    assert!(was.is_some());
    std::fs::remove_file(repo.path.join("shallow")).unwrap();
    assert!(dies(&repo, OPEN, "shallow.renamed"));
    opened(&repo);
    assert_eq!(shallow(&repo), was);
}

#[test]
fn history_that_has_come_since_a_crash_is_not_cut_again() {
    let (repo, _) = repository();
    assert!(dies(&repo, CUT, "tx.journaled"));
    let pack = std::fs::read(repo.path.with_file_name("before-pack")).unwrap();
    repo.git_with(&["unpack-objects", "-q"], &pack);
    opened(&repo);
    assert_eq!(shallow(&repo), None);
    assert_eq!(repo.git(&["rev-list", "--count", "refs/heads/cut"]), "5");
}

/// What the file says.
fn shallow(repo: &Repo) -> Option<String> {
    std::fs::read_to_string(repo.path.join("shallow")).ok()
}

#[test]
fn a_recovery_of_a_reftable_that_dies_is_finished_by_the_next() {
    let (repo, new) = repository_in(Repo::reftable());
    assert!(dies(&repo, PUSH, "tx.journaled"));
    // What git was told to commit it commits, beside whoever opens the repository next.
    assert!(dies(&repo, OPEN, "tx.renamed"));
    let refs = opened(&repo);
    assert_eq!(refs["refs/heads/x"], new.to_string());
    assert!(!refs.contains_key("refs/heads/y"));
}

#[test]
fn the_lock_of_a_reftable_that_a_power_failure_left_is_removed_and_a_foreign_one_is_not() {
    let (repo, new) = repository_in(Repo::reftable());
    assert!(dies(&repo, PUSH, "tx.journaled"));
    let lock = repo.path.join("reftable/tables.list.lock");
    wait_until_gone(&lock);
    let mark = repo.path.join("zit/tx/tables-another-boot");
    std::fs::write(&mark, "").unwrap();
    std::fs::hard_link(&mark, &lock).unwrap();
    assert_eq!(opened(&repo)["refs/heads/x"], new.to_string());
    let (repo, _) = repository_in(Repo::reftable());
    assert!(dies(&repo, ONE, "tx.journaled"));
    let lock = repo.path.join("reftable/tables.list.lock");
    wait_until_gone(&lock);
    std::fs::write(&lock, "").unwrap();
    let Err(error) = Store::open(&repo.path, Access::Referee) else { panic!("opened") };
    assert!(matches!(&error, StoreError::Locked(path) if *path == lock), "{error}");
    std::fs::remove_file(&lock).unwrap();
    opened(&repo);
}

#[test]
fn one_ref_that_dies_anywhere_is_moved_or_not() {
    for task in [ONE, REMOVE] {
        for point in CRASH_POINTS.iter().filter(|point| point.starts_with("tx.")) {
            let (repo, _) = repository();
            let before = repo.git_refs();
            assert!(dies(&repo, task, point), "nothing dies at {point}");
            assert_eq!(opened(&repo) != before, is_committed(point), "{task} {point}");
        }
    }
}

#[test]
fn a_recovery_that_dies_is_finished_by_the_next() {
    for visit in 1..=2 {
        let (repo, new) = repository();
        assert!(dies(&repo, PUSH, "tx.journaled"));
        assert!(dies(&repo, OPEN, &format!("tx.renamed:{visit}")), "visit {visit}");
        let refs = opened(&repo);
        assert_eq!(refs["refs/heads/x"], new.to_string());
        assert_eq!(refs["refs/zit/n/m"], new.to_string());
        assert!(!refs.contains_key("refs/heads/y"));
    }
}

#[test]
fn the_journal_suffices_when_power_loss_took_the_files() {
    let (repo, new) = repository();
    assert!(dies(&repo, PUSH, "tx.journaled"));
    for path in repo.files() {
        let lost = path.to_string_lossy().ends_with(".lock")
            || path.to_string_lossy().contains("/zit/tx/");
        if lost {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(opened(&repo)["refs/heads/x"], new.to_string());
}

#[test]
fn a_ref_that_stock_git_moved_after_the_crash_stays_as_git_left_it() {
    let (repo, new) = repository();
    assert!(dies(&repo, PUSH, "tx.renamed:2"));
    let z = repo.git(&["rev-parse", "refs/heads/z"]);
    repo.git(&["update-ref", "refs/heads/x", &z]);
    let refs = opened(&repo);
    assert_eq!(refs["refs/heads/x"], z);
    assert_eq!(refs["refs/zit/n/m"], new.to_string());
}

#[test]
fn a_lock_of_a_running_git_survives_recovery() {
    let (repo, _) = repository();
    assert!(dies(&repo, ONE, "tx.locked"));
    let foreign = repo.path.join("refs/heads/z.lock");
    std::fs::write(&foreign, "").unwrap();
    assert!(repo.path.join("refs/heads/x.lock").exists());
    drop(repo.referee());
    assert!(foreign.exists());
    assert!(!repo.path.join("refs/heads/x.lock").exists());
}

#[test]
fn recovery_waits_for_a_foreign_lock_and_then_says_which() {
    let (repo, _) = repository();
    assert!(dies(&repo, PUSH, "tx.journaled"));
    let lock = repo.path.join("refs/heads/x.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::write(&lock, "").unwrap();
    let Err(error) = Store::open(&repo.path, Access::Referee) else { panic!("opened") };
    assert!(matches!(&error, StoreError::Locked(path) if path.ends_with("refs/heads/x.lock")));
    assert!(error.hint().is_some());
    std::fs::remove_file(&lock).unwrap();
    opened(&repo);
}
