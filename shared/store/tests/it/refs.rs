//! The ref transaction, compared with stock git: every check with `git update-ref`.

use crate::support::{Repo, commit, create, delete, draft, moved, name, run};
use zit_model::{Oid, RefChange, RefUpdate};
use zit_store::{RefusedUpdate, Store};

/// Whether stock git, on a copy of the repository, carries the updates out.
fn git_accepts(repo: &Repo, updates: &[RefUpdate]) -> bool {
    let copy = repo.folder.path().join("copy.git");
    let _ = std::fs::remove_dir_all(&copy);
    #[allow(clippy::disallowed_methods, reason = "a copy for the oracle")]
    let mut copying = std::process::Command::new("cp");
    copying.arg("-r").arg(&repo.path).arg(&copy);
    assert!(run(copying, b"").status.success());
    let mut script = String::from("start\n");
    for update in updates {
        script.push_str(&match update.change {
            RefChange::Create { new } => format!("create {} {new}\n", update.name),
            RefChange::Move { old, new } => format!("update {} {new} {old}\n", update.name),
            RefChange::Delete { old } => format!("delete {} {old}\n", update.name),
        });
    }
    script.push_str("commit\n");
    let mut command = crate::support::git_command(&copy);
    command.args(["update-ref", "--no-deref", "--stdin"]);
    run(command, script.as_bytes()).status.success()
}

/// Both refuse; ours is returned. Nothing is left behind.
#[track_caller]
fn both_refuse(repo: &Repo, store: &Store, updates: &[RefUpdate]) -> Vec<(usize, RefusedUpdate)> {
    assert!(!git_accepts(repo, updates), "git accepts {updates:?}");
    let before = (repo.git_refs(), repo.files());
    let refused = commit(store, updates).expect_err("the store accepts it");
    assert_eq!((repo.git_refs(), repo.files()), before);
    refused
}

/// Both accept, and see the same refs afterwards.
#[track_caller]
fn both_accept(repo: &Repo, store: &Store, updates: &[RefUpdate]) {
    assert!(git_accepts(repo, updates), "git refuses {updates:?}");
    let mut copy = crate::support::git_command(&repo.folder.path().join("copy.git"));
    copy.args(["for-each-ref", "--format=%(refname) %(objectname)"]);
    let expected = String::from_utf8(run(copy, b"").stdout).unwrap();
    commit(store, updates).expect("the store refuses it");
    let got = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(got, expected.trim_end());
    assert_eq!(Repo::store_refs(store), repo.git_refs());
}

#[test]
fn a_ref_is_created_moved_and_deleted() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    both_accept(&repo, &store, &[create("refs/heads/x/y", a)]);
    both_accept(&repo, &store, &[moved("refs/heads/x/y", a, b)]);
    both_accept(&repo, &store, &[delete("refs/heads/x/y", b)]);
    assert!(!repo.path.join("refs/heads/x").exists(), "an emptied folder goes");
    both_accept(&repo, &store, &[create("refs/heads/x", a)]);
}

#[test]
fn a_create_on_an_existing_ref_is_refused_even_with_the_same_value() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/zit/claims/k", a)]).unwrap();
    for pack in [false, true] {
        if pack {
            repo.git(&["pack-refs", "--all"]);
        }
        for new in [a, b] {
            let refused = both_refuse(&repo, &store, &[create("refs/zit/claims/k", new)]);
            let found = RefusedUpdate::Exists { name: name("refs/zit/claims/k"), found: a };
            assert_eq!(refused, [(0, found)]);
        }
    }
}

#[test]
fn a_push_against_a_moved_or_missing_ref_is_refused() {
    let repo = Repo::new();
    let [a, b, c] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    for update in [moved("refs/heads/x", b, c), delete("refs/heads/x", b)] {
        let refused = both_refuse(&repo, &store, &[update]);
        let stale = RefusedUpdate::Stale { name: name("refs/heads/x"), expected: b, found: a };
        assert_eq!(refused, [(0, stale)]);
    }
    for update in [moved("refs/heads/no", b, c), delete("refs/heads/no", b)] {
        let refused = both_refuse(&repo, &store, &[update]);
        let missing = RefusedUpdate::Missing { name: name("refs/heads/no"), expected: b };
        assert_eq!(refused, [(0, missing)]);
    }
}

#[test]
fn a_ref_is_no_folder_of_another_whether_loose_or_packed() {
    let repo = Repo::new();
    let [a] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/p", a), create("refs/heads/d/e", a)]).unwrap();
    for pack in [false, true] {
        if pack {
            repo.git(&["pack-refs", "--all"]);
        }
        for (new, with) in [
            ("refs/heads/p/q", "refs/heads/p"),
            ("refs/heads/p/q/r", "refs/heads/p"),
            ("refs/heads/d", "refs/heads/d/e"),
        ] {
            let refused = both_refuse(&repo, &store, &[create(new, a)]);
            let conflict = RefusedUpdate::NameConflict { name: name(new), with: name(with) };
            assert_eq!(refused, [(0, conflict)], "packed: {pack}");
        }
    }
    both_accept(&repo, &store, &[create("refs/heads/pp", a), create("refs/heads/d.e", a)]);
}

#[test]
fn names_of_one_transaction_must_go_together() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/d", a)]).unwrap();
    let twice = [moved("refs/heads/d", a, b), delete("refs/heads/d", a)];
    let refused = both_refuse(&repo, &store, &twice);
    assert_eq!(refused, [(1, RefusedUpdate::Duplicate { name: name("refs/heads/d") })]);
    both_refuse(&repo, &store, &[delete("refs/heads/d", a), create("refs/heads/d/e", a)]);
    let refused =
        both_refuse(&repo, &store, &[create("refs/heads/n/m", a), create("refs/heads/n", a)]);
    let with = name("refs/heads/n/m");
    assert_eq!(refused, [(1, RefusedUpdate::NameConflict { name: name("refs/heads/n"), with })]);
    let missing = "1".repeat(40).parse().unwrap();
    let updates = [create("refs/heads/p", missing), create("refs/heads/p/q", a)];
    let refused = both_refuse(&repo, &store, &updates);
    assert!(matches!(refused[..], [(0, RefusedUpdate::MissingObject { .. })]), "{refused:?}");
}

#[test]
fn a_value_must_be_an_object_and_a_branchs_a_commit() {
    let repo = Repo::new();
    let [a] = repo.commits();
    let blob = repo.blob("x");
    let store = repo.referee();
    let no = "1".repeat(40).parse().unwrap();
    for target in ["refs/heads/x", "refs/zit/x"] {
        let refused = both_refuse(&repo, &store, &[create(target, no)]);
        assert_eq!(refused, [(0, RefusedUpdate::MissingObject { name: name(target), oid: no })]);
    }
    let refused = both_refuse(&repo, &store, &[create("refs/heads/x", blob)]);
    assert!(matches!(refused[..], [(0, RefusedUpdate::NotACommit { .. })]));
    both_accept(&repo, &store, &[create("refs/tags/x", blob), create("refs/heads/y", a)]);
}

#[test]
fn every_refused_update_is_named_with_its_index_and_nothing_moves() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    let refused = both_refuse(
        &repo,
        &store,
        &[
            moved("refs/heads/x", b, a),
            create("refs/heads/new", a),
            create("refs/heads/x/y", a),
            delete("refs/heads/gone", a),
        ],
    );
    let indices: Vec<usize> = refused.iter().map(|(index, _)| *index).collect();
    assert_eq!(indices, [0, 2, 3]);
}

#[test]
fn a_packed_ref_is_deleted_from_both_places_and_others_keep_their_peeled_lines() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/y", a)]).unwrap();
    repo.git(&["tag", "-a", "-m", "one", "v1", &a.to_string()]);
    repo.git(&["pack-refs", "--all"]);
    commit(&store, &[moved("refs/heads/x", a, b)]).unwrap();
    both_accept(&repo, &store, &[delete("refs/heads/x", b)]);
    let packed = std::fs::read_to_string(repo.path.join("packed-refs")).unwrap();
    assert!(packed.contains(&format!("^{a}")), "{packed}");
    assert!(!packed.contains("refs/heads/x"), "{packed}");
    let tag = store.refs_below("refs/tags/").unwrap().remove(0);
    assert_eq!(tag.peeled, Some(a));
    both_accept(&repo, &store, &[delete("refs/heads/y", a), create("refs/heads/z", a)]);
    both_accept(&repo, &store, &[delete("refs/tags/v1", tag.oid)]);
}

#[test]
fn a_symbolic_or_broken_ref_is_not_updated() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/x"]);
    std::fs::write(repo.path.join("refs/heads/bad"), "nonsense\n").unwrap();
    let refused = commit(&store, &[moved("refs/heads/alias", a, b)]).unwrap_err();
    assert!(matches!(refused[..], [(0, RefusedUpdate::Symbolic { .. })]));
    let refused = commit(&store, &[create("refs/heads/bad", b)]).unwrap_err();
    assert!(matches!(refused[..], [(0, RefusedUpdate::Broken { .. })]));
    assert_eq!(store.refs().unwrap().len(), 2, "a broken ref is left out");
}

#[test]
fn a_prepared_transaction_that_is_dropped_leaves_nothing() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/y", a)]).unwrap();
    repo.git(&["pack-refs", "--all"]);
    let before = (repo.git_refs(), repo.files());
    let updates =
        [moved("refs/heads/x", a, b), delete("refs/heads/y", a), create("refs/zit/deep/er/ref", b)];
    let prepared = store.prepare(&updates).unwrap();
    assert!(repo.path.join("refs/heads/x.lock").exists());
    drop(prepared);
    assert_eq!((repo.git_refs(), repo.files()), before);
    assert!(!repo.path.join("refs/zit/deep").exists());
    commit(&store, &updates).unwrap();
}

#[test]
fn stock_git_and_the_store_keep_each_other_out() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a), create("refs/heads/y", a)]).unwrap();
    let prepared = store.prepare(&[delete("refs/heads/x", a)]).unwrap();
    assert!(!repo.try_git(&["update-ref", "refs/heads/x", &b.to_string()], b"").status.success());
    assert!(!repo.try_git(&["pack-refs", "--all"], b"").status.success());
    prepared.commit(draft(), Vec::new()).unwrap();

    std::fs::write(repo.path.join("refs/heads/y.lock"), "").unwrap();
    let refused = commit(&store, &[moved("refs/heads/y", a, b)]).unwrap_err();
    let lock = "refs/heads/y.lock".into();
    assert_eq!(refused, [(0, RefusedUpdate::Locked { name: name("refs/heads/y"), lock })]);
    std::fs::remove_file(repo.path.join("refs/heads/y.lock")).unwrap();
    repo.git(&["config", "core.packedRefsTimeout", "1"]);
    std::fs::write(repo.path.join("packed-refs.lock"), "").unwrap();
    let refused = commit(&store, &[delete("refs/heads/y", a)]).unwrap_err();
    assert!(matches!(refused[..], [(0, RefusedUpdate::Locked { .. })]));
    commit(&store, &[moved("refs/heads/y", a, b)]).expect("a move needs no packed-refs.lock");
    assert!(repo.path.join("packed-refs.lock").exists(), "a foreign lock is left alone");
}

#[test]
fn empty_folders_in_the_way_of_a_ref_go() {
    let repo = Repo::new();
    let [a] = repo.commits();
    let store = repo.referee();
    std::fs::create_dir_all(repo.path.join("refs/heads/x/y/z")).unwrap();
    both_accept(&repo, &store, &[create("refs/heads/x", a)]);
}

#[test]
fn only_one_of_many_racing_creates_wins() {
    let repo = Repo::new();
    let commits: [_; 8] = repo.commits();
    let store = repo.referee();
    let store = &store;
    let won: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = commits
            .map(|oid| {
                scope.spawn(move || commit(store, &[create("refs/zit/claims/k", oid)]).is_ok())
            })
            .into_iter()
            .collect();
        racers.into_iter().map(|racer| usize::from(racer.join().unwrap())).sum()
    });
    assert_eq!(won, 1);
}

#[test]
fn moves_by_the_store_and_by_stock_git_make_one_chain() {
    let repo = Repo::new();
    let start = repo.commit(&[], &[], "start");
    let rounds: [_; 30] = repo.commits();
    let store = &repo.referee();
    let target = "refs/heads/x";
    commit(store, &[create(target, start)]).unwrap();
    let (ours, gits) = rounds.split_at(15);
    let held = || store.find_ref(&name(target)).unwrap().unwrap();
    let by_git = || {
        let move_one = |new: &Oid| {
            let old = held();
            let args = ["update-ref", target, &new.to_string(), &old.to_string()];
            repo.try_git(&args, b"").status.success().then_some((old, *new))
        };
        gits.iter().filter_map(move_one).collect::<Vec<_>>()
    };
    let (by_us, by_git) = std::thread::scope(|scope| {
        let git = scope.spawn(by_git);
        let mut by_us = Vec::new();
        for new in ours.iter().cycle().take_while(|_| !git.is_finished()) {
            let old = held();
            if old != *new && commit(store, &[moved(target, old, *new)]).is_ok() {
                by_us.push((old, *new));
            }
        }
        (by_us, git.join().unwrap())
    });
    // Every value that was moved to was moved from once more, but the last.
    let moves: Vec<_> = by_us.iter().chain(&by_git).collect();
    for oid in rounds.iter().chain([&start]) {
        let came = moves.iter().filter(|(_, new)| new == oid).count() + usize::from(*oid == start);
        let went = moves.iter().filter(|(old, _)| old == oid).count();
        assert_eq!(came, went + usize::from(held() == *oid), "{oid}");
    }
}

#[test]
fn folders_named_refs_above_the_repository_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refs/x/refs/r.git");
    Store::init(&path).unwrap();
    let repo = Repo { folder, path };
    let [a] = repo.commits();
    let store = repo.referee();
    commit(&store, &[create("refs/heads/x", a)]).unwrap();
    commit(&store, &[delete("refs/heads/x", a)]).unwrap();
    assert!(repo.path.join("refs/heads").is_dir());
    assert_eq!(repo.git(&["rev-parse", "--is-bare-repository"]), "true");
}

#[test]
fn a_repository_with_sha256_works_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.git");
    let mut init = crate::support::git_command(&path);
    init.env_remove("GIT_DIR").args(["init", "-q", "--bare", "--object-format=sha256"]).arg(&path);
    assert!(run(init, b"").status.success());
    let repo = Repo { folder, path };
    let store = repo.referee();
    let [a, b] = repo.commits();
    both_accept(&repo, &store, &[create("refs/heads/x", a), create("refs/heads/y", b)]);
    both_accept(&repo, &store, &[delete("refs/heads/x", a)]);
}
