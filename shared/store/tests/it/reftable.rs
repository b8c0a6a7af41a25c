//! Refs in a reftable, with stock git beside the store.

use zit_store::{Access, Head, LogEntry, RefusedUpdate, Store, StoreError};

use crate::support::{
    Repo, commit, create, delete, document, draft, git_command, moved, name, run, somebody,
};

#[test]
fn what_stock_git_does_is_seen_at_once() {
    let repo = Repo::reftable();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/main", a)]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "refs/heads/main"]), a.to_string());
    repo.git(&["update-ref", "refs/heads/main", &b.to_string()]);
    repo.git(&["tag", "-a", "-m", "v1", "v1", &a.to_string()]);
    repo.git(&["symbolic-ref", "refs/heads/other", "refs/heads/main"]);
    let refs = store.refs().unwrap();
    let tag = refs.iter().find(|stored| stored.name == name("refs/tags/v1")).unwrap();
    assert_eq!(tag.peeled, Some(a));
    let symbolic = refs.iter().find(|stored| stored.name == name("refs/heads/other")).unwrap();
    assert_eq!(symbolic.symref_target, Some(name("refs/heads/main")));
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
    let refused = commit(&store, &[moved("refs/heads/main", a, b)]).unwrap_err();
    assert!(matches!(refused[0].1, RefusedUpdate::Stale { found, .. } if found == b));
    let refused = commit(&store, &[moved("refs/heads/other", b, a)]).unwrap_err();
    assert!(matches!(refused[0].1, RefusedUpdate::Symbolic { .. }));
    repo.git(&["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(store.find_ref(&name("refs/heads/main")).unwrap(), None);
}

#[test]
fn head_is_read_and_written_born_unborn_and_detached() {
    let repo = Repo::reftable();
    let [a] = repo.commits();
    let store = repo.referee();
    assert_eq!(store.head().unwrap(), Head::Symbolic(name("refs/heads/main")));
    store.set_head(&name("refs/heads/trunk")).unwrap();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    commit(&store, &[create("refs/heads/trunk", a)]).unwrap();
    let head = store.resolved_head().unwrap();
    assert_eq!((head.target, head.oid), (Some(name("refs/heads/trunk")), Some(a)));
    repo.git(&["update-ref", "--no-deref", "HEAD", &a.to_string()]);
    assert_eq!(store.head().unwrap(), Head::Detached(a));
}

#[test]
fn stock_git_and_the_store_keep_each_other_out() {
    let repo = Repo::reftable();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    let prepared = store.prepare(&[moved("refs/heads/x", a, b)]).unwrap();
    let beside = repo.try_git(&["update-ref", "refs/heads/x", &b.to_string()], b"");
    assert!(!beside.status.success());
    drop(prepared);
    assert_eq!(store.find_ref(&name("refs/heads/x")).unwrap(), Some(a));
    let lock = repo.path.join("reftable/tables.list.lock");
    assert!(!lock.exists());
    std::fs::write(&lock, "").unwrap();
    let refused = commit(&store, &[moved("refs/heads/x", a, b)]).unwrap_err();
    let expected = RefusedUpdate::Locked {
        name: name("refs/heads/x"),
        lock: "reftable/tables.list.lock".into(),
    };
    assert_eq!(refused, [(0, expected)]);
    assert!(lock.exists(), "a foreign lock is left alone");
    std::fs::remove_file(&lock).unwrap();
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
}

#[test]
fn objects_in_memory_are_named_by_refs_of_both_kinds() {
    let repo = Repo::reftable();
    let store = repo.referee();
    let (new, made) = document(&store, "1");
    let updates = [create("refs/heads/x", new), create("refs/zit/claims/k", new)];
    let prepared = store.prepare_seeing(&updates, &[&made.objects()]).unwrap();
    prepared.commit(draft(), vec![made]).unwrap();
    repo.git(&["cat-file", "-e", "refs/heads/x^{tree}"]);
    store.settle().unwrap();
    assert_eq!(repo.git(&["rev-parse", "refs/zit/claims/k"]), new.to_string());
    let left = std::fs::read_dir(repo.path.join("objects")).unwrap().flatten();
    let left = left.filter(|it| it.file_name().to_string_lossy().starts_with("incoming-"));
    assert_eq!(left.count(), 0);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_deferred_ref_that_something_is_in_the_way_of_waits_alone() {
    let repo = Repo::reftable();
    let [a] = repo.commits();
    let store = repo.referee();
    repo.git(&["update-ref", "refs/zit/claims/b/c", &a.to_string()]);
    let names = ["refs/zit/claims/a", "refs/zit/claims/b", "refs/zit/claims/d"];
    store.prepare(&names.map(|name| create(name, a))).unwrap().commit(draft(), Vec::new()).unwrap();
    assert!(matches!(store.settle(), Err(StoreError::Unsettled { n_refs: 1, .. })));
    assert!(repo.git_refs().contains_key("refs/zit/claims/d"));
    repo.git(&["update-ref", "-d", "refs/zit/claims/b/c"]);
    store.settle().unwrap();
    assert_eq!(repo.git_refs().len(), 3);
    // A folder comes where a ref was.
    let updates = [delete("refs/zit/claims/a", a)];
    store.prepare(&updates).unwrap().commit(draft(), Vec::new()).unwrap();
    let updates = [create("refs/zit/claims/a/b", a)];
    store.prepare(&updates).unwrap().commit(draft(), Vec::new()).unwrap();
    store.settle().unwrap();
    assert_eq!(Repo::store_refs(&store), repo.git_refs());
}

#[test]
fn moves_are_logged_with_the_refs_where_the_repository_asks_for_it() {
    let repo = Repo::reftable();
    repo.git(&["config", "core.logAllRefUpdates", "true"]);
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/main", a)]).unwrap();
    let entry = LogEntry { by: somebody(), message: "push".to_owned() };
    let updates = [moved("refs/heads/main", a, b), create("refs/tags/v1", a)];
    let prepared = store.prepare_logged(&updates, &[], Some(entry)).unwrap();
    prepared.commit(draft(), Vec::new()).unwrap();
    let by = somebody();
    let last = format!("{b} {} {} push", by.name, by.email);
    for log in ["refs/heads/main", "HEAD"] {
        let logged = repo.git(&["log", "-g", "--format=%H %gn %ge %gs", log, "--"]);
        assert_eq!(logged, last, "{log}");
    }
    assert!(!repo.try_git(&["reflog", "exists", "refs/tags/v1"], b"").status.success());
}

#[test]
fn branches_of_work_trees_are_found() {
    let repo = Repo::reftable();
    let [a] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/work", a)]).unwrap();
    assert!(store.checked_out().unwrap().is_empty());
    let tree = repo.folder.path().join("tree");
    repo.git(&["worktree", "add", "-q", &tree.to_string_lossy(), "work"]);
    assert_eq!(store.checked_out().unwrap(), [name("refs/heads/work")].into());
    let mut inside = git_command(&tree.join(".git"));
    inside.env_remove("GIT_DIR").current_dir(&tree).args(["rev-parse", "HEAD"]);
    assert!(run(inside, b"").status.success());
    let read = Store::open(&tree, Access::ReadOnly).unwrap();
    assert_eq!(read.head().unwrap(), Head::Symbolic(name("refs/heads/work")));
    assert_eq!(read.find_ref(&name("refs/heads/work")).unwrap(), Some(a));
}

#[test]
fn maintenance_and_a_look_at_everything_find_nothing_wrong() {
    let repo = Repo::reftable();
    let [a] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/zit/claims/k", a)]).unwrap();
    store.maintain(&zit_store::Stop::default()).unwrap();
    drop(store);
    let inspected = Store::open(&repo.path, Access::ReadOnly).unwrap().inspect().unwrap();
    assert_eq!(inspected.findings, []);
    assert_eq!(inspected.n_refs, 2);
    std::fs::write(repo.path.join("reftable/tables.list.lock"), "").unwrap();
    let inspected = Store::open(&repo.path, Access::ReadOnly).unwrap().inspect().unwrap();
    assert!(inspected.findings[0].what.contains("reftable/tables.list.lock is the lock of"));
}
