//! What readers are shown of refs and HEAD, compared with what git lists; and lists that are kept.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Repo, commit, create, delete, draft, moved, name};
use zit_model::Oid;
use zit_store::{Head, ResolvedHead, Store};

/// How long it may take until an unchanged list is trusted, before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn refs_below_a_prefix_are_those_that_git_lists_loose_or_packed() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let store = repo.referee();
    let names = [
        "refs/heads/a",
        "refs/heads/ab/c",
        "refs/heads/ab/d",
        "refs/heads/b",
        "refs/x/a",
        "refs/xy/z",
    ];
    for name in &names[..3] {
        commit(&store, &[create(name, a)]).unwrap();
    }
    repo.git(&["pack-refs", "--all"]);
    for name in &names[3..] {
        commit(&store, &[create(name, b)]).unwrap();
    }
    commit(&store, &[moved("refs/heads/ab/c", a, b)]).unwrap();
    let listed = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    for prefix in [
        "refs/",
        "refs/h",
        "refs/heads/",
        "refs/heads/a",
        "refs/heads/ab",
        "refs/heads/ab/",
        "refs/heads/ab/c",
        "refs/x",
        "refs/x/",
        "refs/none/",
        "refs/heads/zz",
    ] {
        let expected: Vec<&str> = listed.lines().filter(|line| line.starts_with(prefix)).collect();
        let found = store.refs_below(prefix).unwrap();
        let found: Vec<String> = found.iter().map(|r| format!("{} {}", r.name, r.oid)).collect();
        assert_eq!(found, expected, "{prefix}");
    }
    let long = format!("refs/{}/x", "y".repeat(300));
    for no_path in ["refs/a\0b/", "refs//heads/", "refs/./heads/", "refs/x/../heads/", &long] {
        assert!(store.refs_below(no_path).unwrap().is_empty(), "{no_path:?}");
    }
}

#[test]
fn a_chain_of_symbolic_refs_is_listed_with_its_end_as_git_lists_it() {
    let repo = Repo::new();
    let [a] = repo.commits();
    repo.git(&["update-ref", "refs/heads/end", &a.to_string()]);
    repo.git(&["symbolic-ref", "refs/x/one", "refs/heads/end"]);
    repo.git(&["symbolic-ref", "refs/x/two", "refs/x/one"]);
    let store = repo.referee();
    let listed = store.refs_below("refs/x/").unwrap();
    for symref in &listed {
        assert_eq!(symref.oid, a);
        assert_eq!(symref.symref_target, Some(name("refs/heads/end")), "{}", symref.name);
    }
    assert_eq!(listed.len(), 2);
}

/// Lists until the list below `prefix` is known by heart, which it is once nothing has changed for a moment.
#[track_caller]
fn list_until_known(store: &Store, prefix: &str) {
    let deadline = Instant::now() + PATIENCE;
    while store.reading().ground([prefix.into()]).unwrap().is_none() {
        store.refs_below(prefix).unwrap();
        assert!(Instant::now() < deadline, "{prefix} is never known");
    }
}

#[test]
fn a_symbolic_ref_is_listed_as_soon_as_it_leads_somewhere() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    repo.git(&["symbolic-ref", "refs/x/one", "refs/heads/end"]);
    let store = repo.referee();
    for value in [a, b] {
        // Listed before and after a list without symbolic refs comes to be trusted.
        store.refs_below("refs/x/").unwrap();
        list_until_known(&store, "refs/heads/");
        store.refs_below("refs/x/").unwrap();
        repo.git(&["update-ref", "refs/heads/end", &value.to_string()]);
        let listed = store.refs_below("refs/x/").unwrap();
        assert_eq!(listed.iter().map(|r| r.oid).collect::<Vec<_>>(), [value]);
        repo.git(&["update-ref", "-d", "refs/heads/end"]);
        assert!(store.refs_below("refs/x/").unwrap().is_empty());
    }
}

#[test]
fn no_reader_among_many_is_shown_what_was_before_a_move_that_it_began_after() {
    let repo = Repo::new();
    let values: [_; 24] = repo.commits();
    let store = &repo.referee();
    commit(store, &[create("refs/heads/x", values[0])]).unwrap();
    let (moves, over) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    thread::scope(|scope| {
        let read = || {
            while !over.load(Ordering::SeqCst) {
                let done = moves.load(Ordering::SeqCst);
                let listed = store.refs_below("refs/heads/x").unwrap();
                let found = values.iter().position(|value| *value == listed[0].oid);
                assert!(found >= Some(done), "{found:?} was listed after move {done}");
            }
        };
        let readers: Vec<_> = (0..32).map(|_| scope.spawn(read)).collect();
        for (n, pair) in values.windows(2).enumerate() {
            list_until_known(store, "refs/heads/x");
            commit(store, &[moved("refs/heads/x", pair[0], pair[1])]).unwrap();
            moves.store(n + 1, Ordering::SeqCst);
        }
        over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_tag_that_cannot_be_followed_is_listed_without_what_it_leads_to() {
    let repo = Repo::new();
    let [a] = repo.commits();
    let mut target = a;
    for n in 0..70 {
        let kind = if n == 0 { "commit" } else { "tag" };
        let tag = format!("object {target}\ntype {kind}\ntag t{n}\ntagger A <a@b> 1 +0000\n\nx\n");
        target = repo.git_hash_literally("tag", tag.as_bytes());
    }
    let odd = format!("object {a}\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\nfoo bar\n\nx\n");
    let odd = repo.git_hash_literally("tag", odd.as_bytes());
    let vast = format!("object {a}\ntype commit\ntag v2\n\n{}\n", "x".repeat(2 << 20));
    let vast = repo.git_hash_literally("tag", vast.as_bytes());
    let store = repo.referee();
    let tags = [("refs/tags/deep", target), ("refs/tags/odd", odd), ("refs/tags/vast", vast)];
    commit(&store, &tags.map(|(name, oid)| create(name, oid))).unwrap();
    let listed = store.refs_below("refs/tags/").unwrap();
    let peeled: Vec<_> = listed.iter().map(|tag| tag.peeled).collect();
    assert_eq!(peeled, [None, Some(a), None]);
    // An administrator, or anybody over the wire, can still take them away.
    commit(&store, &tags.map(|(name, oid)| delete(name, oid))).unwrap();
}

#[test]
fn a_loose_tag_is_listed_with_what_it_leads_to() {
    let repo = Repo::new();
    let [a] = repo.commits();
    repo.git(&["tag", "-a", "-m", "one", "v1", &a.to_string()]);
    repo.git(&["tag", "-a", "-m", "two", "v2", "v1"]);
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/tags/v2"]);
    let store = repo.referee();
    let refs = store.refs().unwrap();
    let shown: Vec<_> = refs.iter().map(|found| (found.name.to_string(), found.peeled)).collect();
    let names = ["refs/heads/alias", "refs/tags/v1", "refs/tags/v2"];
    assert_eq!(shown, names.map(|name| (name.to_owned(), Some(a))));
    assert_eq!(refs[0].symref_target, Some(name("refs/tags/v2")));
}

#[test]
fn head_moves_and_git_sees_it() {
    let repo = Repo::new();
    let store = repo.referee();
    assert_eq!(store.head().unwrap(), Head::Symbolic(name("refs/heads/main")));
    store.set_head(&name("refs/heads/trunk")).unwrap();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    assert_eq!(store.head().unwrap(), Head::Symbolic(name("refs/heads/trunk")));
    let [a] = repo.commits();
    repo.git(&["update-ref", "--no-deref", "HEAD", &a.to_string()]);
    assert_eq!(store.head().unwrap(), Head::Detached(a));
}

#[test]
fn head_leads_through_every_symbolic_ref_and_tag() {
    let repo = Repo::new();
    let [commit] = repo.commits();
    repo.git(&["update-ref", "refs/heads/main", &commit.to_string()]);
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    repo.git(&["tag", "-a", "-m", "v1", "v1", "refs/heads/main"]);
    let store = repo.referee();
    let tag: Oid = repo.git(&["rev-parse", "refs/tags/v1"]).parse().unwrap();
    for (named, target, oid, peeled) in [
        ("refs/heads/main", "refs/heads/main", Some(commit), None),
        ("refs/heads/alias", "refs/heads/main", Some(commit), None),
        ("refs/heads/unborn", "refs/heads/unborn", None, None),
        ("refs/tags/v1", "refs/tags/v1", Some(tag), Some(commit)),
    ] {
        repo.git(&["symbolic-ref", "HEAD", named]);
        let target = Some(target.parse().unwrap());
        let expected = ResolvedHead { target, oid, peeled };
        assert_eq!(store.resolved_head().unwrap(), expected, "{named}");
    }
    repo.git(&["update-ref", "--no-deref", "HEAD", &commit.to_string()]);
    let expected = ResolvedHead { target: None, oid: Some(commit), peeled: None };
    assert_eq!(store.resolved_head().unwrap(), expected);
}

#[test]
fn a_list_that_was_read_before_shows_every_change_that_git_makes() {
    let repo = Repo::new();
    let (a, b) = (repo.commit(&[], &[], "a"), repo.commit(&[("f", "1")], &[], "b"));
    let store = repo.referee();
    let n_kept = Cell::new(0);
    let below = || -> Vec<String> { listed(&store, "refs/heads/", &n_kept) };
    let line = |name: &str, oid: Oid| format!("refs/heads/{name} {oid}");
    // Often enough that some of these fall into one tick of the file system's clock.
    for round in 0..30 {
        repo.git(&["update-ref", "refs/heads/x", &a.to_string()]);
        assert_eq!(below(), [line("x", a)], "{round}: created");
        if round % 2 == 0 {
            list_until_known(&store, "refs/heads/");
        }
        for _ in 0..4 {
            assert_eq!(below(), [line("x", a)], "{round}: again");
        }
        repo.git(&["update-ref", "refs/heads/x", &b.to_string()]);
        assert_eq!(below(), [line("x", b)], "{round}: moved");
        repo.git(&["update-ref", "refs/heads/deep/er/y", &a.to_string()]);
        assert_eq!(below(), [line("deep/er/y", a), line("x", b)], "{round}: below");
        repo.git(&["pack-refs", "--all", "--prune"]);
        assert_eq!(below(), [line("deep/er/y", a), line("x", b)], "{round}: packed");
        repo.git(&["update-ref", "-d", "refs/heads/deep/er/y"]);
        commit(&store, &[moved("refs/heads/x", b, a)]).unwrap();
        assert_eq!(below(), [line("x", a)], "{round}: by us");
        repo.git(&["update-ref", "-d", "refs/heads/x"]);
        assert_eq!(below(), [""; 0], "{round}: gone");
    }
    assert!(n_kept.get() > 0, "no list was kept");
}

#[test]
fn a_kept_list_of_deferred_refs_shows_what_was_committed_since() {
    let repo = Repo::new();
    let [a, b] = repo.commits();
    let (store, n_kept) = (repo.referee(), Cell::new(0));
    let below = |prefix: &str| listed(&store, prefix, &n_kept);
    let keep = || {
        list_until_known(&store, "refs/zit/claims/");
        below("refs/zit/claims/");
    };
    keep();
    commit(&store, &[create("refs/zit/claims/x", a)]).unwrap();
    assert_eq!(below("refs/zit/claims/"), [format!("refs/zit/claims/x {a}")]);
    keep();
    n_kept.set(0);
    assert_eq!(below("refs/zit/claims/"), [format!("refs/zit/claims/x {a}")]);
    assert_eq!(n_kept.get(), 1, "the list was kept");
    // Its file follows later.
    let prepared = store.prepare(&[moved("refs/zit/claims/x", a, b)]).unwrap();
    prepared.commit(draft(), Vec::new()).unwrap();
    assert_eq!(below("refs/zit/claims/"), [format!("refs/zit/claims/x {b}")]);
    store.settle().unwrap();
    keep();
    repo.git(&["config", "uploadpack.hideRefs", "refs/zit"]);
    n_kept.set(0);
    below("refs/zit/claims/");
    assert_eq!(n_kept.get(), 0, "the configuration may hide refs now");
}

/// The refs below `prefix` as lines. A list that is kept says the same; each one is kept for the next time.
#[track_caller]
fn listed(store: &Store, prefix: &str, n_kept: &Cell<usize>) -> Vec<String> {
    let reading = store.reading();
    let kept = store.glance().and_then(|glance| glance.kept_list(prefix.as_bytes()));
    let before = reading.ground([prefix.into()]).unwrap();
    let refs = store.refs_below(prefix).unwrap();
    let lines: Vec<String> = refs.iter().map(|r| format!("{} {}", r.name, r.oid)).collect();
    let answer = lines.join("\n");
    if let Some(kept) = kept {
        n_kept.set(n_kept.get() + 1);
        assert_eq!(String::from_utf8_lossy(&kept), answer);
    }
    if let Some(before) = before {
        reading.keep_list(prefix.as_bytes(), before, answer.as_bytes()).unwrap();
    }
    lines
}
