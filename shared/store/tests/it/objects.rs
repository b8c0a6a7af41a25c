//! Reading objects, compared with stock git.

use zit_model::Oid;
use zit_store::{Blob, Entry, EntryMode, Kind, Objects, StoreError, TreeChange};

use crate::support::Repo;

/// The change as a line of `git diff-tree -r --raw --no-abbrev`.
fn raw(change: &TreeChange) -> String {
    let zero = "0".repeat(40);
    let mode = |entry: Option<Entry>| match entry.map(|entry| entry.mode) {
        None => "000000",
        Some(EntryMode::Regular) => "100644",
        Some(EntryMode::Executable) => "100755",
        Some(EntryMode::Symlink) => "120000",
        Some(EntryMode::Submodule) => "160000",
    };
    let oid = |entry: Option<Entry>| entry.map_or(zero.clone(), |entry| entry.oid.to_string());
    let is_link = |entry: Entry| entry.mode == EntryMode::Symlink;
    let is_module = |entry: Entry| entry.mode == EntryMode::Submodule;
    let status = match (change.old, change.new) {
        (None, _) => "A",
        (_, None) => "D",
        (Some(old), Some(new))
            if is_link(old) != is_link(new) || is_module(old) != is_module(new) =>
        {
            "T"
        }
        _ => "M",
    };
    format!(
        ":{} {} {} {} {status}\t{}",
        mode(change.old),
        mode(change.new),
        oid(change.old),
        oid(change.new),
        change.path
    )
}

#[track_caller]
fn agrees_with_git(repo: &Repo, objects: &Objects, old: Oid, new: Oid) {
    let ours: Vec<_> = objects.tree_changes(Some(old), new).unwrap().iter().map(raw).collect();
    let args = ["diff-tree", "-r", "--raw", "--no-abbrev", "--no-renames"];
    let theirs = repo.git(&[&args[..], &[&old.to_string(), &new.to_string()]].concat());
    assert_eq!(ours, theirs.lines().collect::<Vec<_>>());
}

#[test]
fn the_paths_that_differ_are_those_of_diff_tree_in_its_order() {
    let repo = Repo::new();
    let [x, y] = ["x", "y"].map(|content| repo.blob(content));
    let module = "1".repeat(40);
    let trees = [
        String::new(),
        format!("100644 {x}\ta\n100644 {x}\ta.b\n100644 {x}\td/e/f\n100755 {x}\tz\n"),
        format!("100644 {x}\ta/b/c\n100644 {y}\ta.b\n100644 {x}\td/e\n120000 {x}\tz\n"),
        format!("160000 {module}\ta\n100755 {x}\ta.b\n100644 {x}\ta-b\n100644 {x}\td/e/f\n"),
        format!("100644 {x}\ta/b/c\n100644 {x}\ta/b/d\n100644 {x}\ta0\n100644 {y}\td/e/f\n"),
    ]
    .map(|lines| repo.tree_of(&lines));
    let objects = repo.referee().objects().unwrap();
    for old in trees {
        for new in trees {
            agrees_with_git(&repo, &objects, old, new);
        }
    }
    let all = objects.tree_changes(None, trees[1]).unwrap();
    assert_eq!(all, objects.tree_changes(Some(trees[0]), trees[1]).unwrap());
}

#[test]
fn a_path_leads_to_its_entry_and_a_folder_to_none() {
    let repo = Repo::new();
    let tree = repo.tree(&[("a/b/c", "x"), ("d", "y")]);
    let objects = repo.referee().objects().unwrap();
    let at = |path: &str| objects.entry_at(tree, path.into()).unwrap();
    assert_eq!(at("a/b/c").unwrap().oid, repo.blob("x"));
    assert_eq!(at("d").unwrap().mode, EntryMode::Regular);
    for none in ["a", "a/b", "a/b/", "a/b/c/d", "d/", "", "/d", "e"] {
        assert_eq!(at(none), None, "{none:?}");
    }
}

#[test]
fn a_few_trees_that_stand_for_countless_paths_are_not_walked_to_the_end() {
    let repo = Repo::new();
    let mut line = format!("100644 blob {}\tf", repo.blob("x"));
    for _ in 0..10 {
        let listing: String =
            (0..10).map(|i| line.replace('\t', &format!("\t{i}")) + "\n").collect();
        line = format!("040000 tree {}\td", repo.git_with(&["mktree"], listing.as_bytes()));
    }
    let bomb = line.split(['\t', ' ']).nth(2).unwrap().parse().unwrap();
    let objects = repo.referee().objects().unwrap();
    assert!(matches!(objects.tree_changes(None, bomb), Err(StoreError::TooManyChanges(_))));
}

#[test]
fn a_blob_past_the_limit_is_measured_and_not_read() {
    let repo = Repo::new();
    let blob = repo.blob("12345");
    let commit = repo.commit(&[], &[], "c");
    let objects = repo.referee().objects().unwrap();
    assert_eq!(objects.blob(blob, 5).unwrap(), Blob::Bytes(b"12345".to_vec()));
    assert_eq!(objects.blob(blob, 4).unwrap(), Blob::TooLarge(5));
    let wrong = objects.blob(commit, 5).unwrap_err();
    assert!(matches!(wrong, StoreError::WrongKind { found: Kind::Commit, .. }));
    let none = "1".repeat(40).parse().unwrap();
    assert!(matches!(objects.blob(none, 5), Err(StoreError::MissingObject(_))));
    assert_eq!(objects.kind(none).unwrap(), None);
}

#[test]
fn an_oid_of_the_other_hash_function_names_nothing() {
    let repo = Repo::new();
    let here = repo.commit(&[], &[], "c");
    let other: Oid = "1".repeat(64).parse().unwrap();
    let objects = repo.referee().objects().unwrap();
    assert_eq!(objects.kind(other).unwrap(), None);
    assert!(objects.merge_base(here, other).is_err());
    assert!(objects.commits_between(Some(other), here).is_err());
    assert!(objects.tree_changes(None, other).is_err());
}

#[test]
fn a_commit_reads_back_as_git_wrote_it() {
    let repo = Repo::new();
    let parent = repo.commit(&[], &[], "parent");
    let oid = repo.commit(&[("f", "x")], &[parent], "subject\n\nbody\n\nKey: value");
    let commit = repo.referee().objects().unwrap().commit(oid).unwrap();
    assert_eq!(commit.tree, repo.tree(&[("f", "x")]));
    assert_eq!(commit.parents, [parent]);
    assert_eq!(commit.author, crate::support::somebody());
    assert_eq!(commit.message, "subject\n\nbody\n\nKey: value\n");
}

#[test]
fn ancestry_is_gits() {
    let repo = Repo::new();
    let commit = |message: &str, parents: &[Oid]| repo.commit(&[], parents, message);
    let root = commit("root", &[]);
    let left = commit("left", &[root]);
    let right = commit("right", &[root]);
    let merged = commit("merged", &[left, right]);
    let beside = commit("beside", &[right]);
    let lone = commit("lone", &[]);
    let objects = repo.referee().objects().unwrap();
    for one in [root, left, right, merged, beside, lone] {
        for two in [root, left, right, merged, beside, lone] {
            let [first, second] = [one, two].map(|oid| oid.to_string());
            let base = repo.try_git(&["merge-base", &first, &second], b"").stdout;
            let base = String::from_utf8(base).unwrap().trim().parse().ok();
            assert_eq!(objects.merge_base(one, two).unwrap(), base, "{one} {two}");
            let args = ["merge-base", "--is-ancestor", &first, &second];
            let is = repo.try_git(&args, b"").status.success();
            assert_eq!(objects.is_ancestor(one, two).unwrap(), is, "{one} {two}");
            let mut ours = objects.commits_between(Some(one), two).unwrap();
            ours.sort();
            let listed = repo.git(&["rev-list", &second, &format!("^{first}")]);
            let mut theirs: Vec<Oid> = listed.lines().map(|line| line.parse().unwrap()).collect();
            theirs.sort();
            assert_eq!(ours, theirs, "{one}..{two}");
        }
    }
    assert_eq!(objects.commits_between(None, merged).unwrap().len(), 4);
}

#[test]
fn what_garbage_collection_has_pruned_is_not_here_any_more() {
    let repo = Repo::new();
    let [kept, gone] = repo.commits();
    repo.git(&["update-ref", "refs/heads/kept", &kept.to_string()]);
    repo.git(&["update-ref", "refs/heads/gone", &gone.to_string()]);
    repo.git(&["gc", "-q"]);
    let store = repo.referee();
    assert!(store.objects().unwrap().kind(gone).unwrap().is_some());
    repo.git(&["update-ref", "-d", "refs/heads/gone"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(store.objects().unwrap().kind(gone).unwrap(), None);
    assert!(store.objects().unwrap().kind(kept).unwrap().is_some());
    let update = crate::support::create("refs/heads/back", gone);
    assert!(crate::support::commit(&store, &[update]).is_err(), "a ref names what is gone");
}
