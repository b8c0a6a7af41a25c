//! Packs: what comes in, what is refused and how it is called, and that nothing refused leaves a file.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;

use zit_model::Oid;
use zit_store::{Blob, Kind, Merge, PackError, PackLimits, StoreError};

use crate::support::{Repo, commit, create, document, draft, keep, somebody};

pub(crate) const LIMITS: PackLimits = PackLimits { max_bytes: 1 << 20, max_objects: 1000 };

/// Two repositories with one commit in common, and two more in the second: the first moves on a large file.
fn pair() -> (Repo, Repo, [Oid; 3]) {
    let (here, there) = (Repo::new(), Repo::new());
    let lines: String = (0..400).map(|i| format!("line {i} {}\n", i * 7919)).collect();
    let base = here.commit(&[("f", &lines)], &[], "base");
    assert_eq!(there.commit(&[("f", &lines)], &[], "base"), base);
    let one = there.commit(&[("f", &format!("{lines}one\n"))], &[base], "one");
    let two = there.commit(&[("f", &format!("{lines}one\ntwo\n"))], &[one], "two");
    commit(&here.referee(), &[create("refs/heads/main", base)]).unwrap();
    (here, there, [base, one, two])
}

#[track_caller]
pub(crate) fn refused(repo: &Repo, pack: &[u8], limits: PackLimits) -> PackError {
    let before = repo.files();
    let store = repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    let error = quarantine.receive_pack(&mut &*pack, &limits).unwrap_err();
    drop((quarantine, store));
    assert_eq!(repo.files(), before, "{error}");
    error
}

#[test]
fn a_pack_is_seen_in_its_quarantine_only_until_it_is_migrated() {
    let (here, there, [base, one, two]) = pair();
    let store = here.referee();
    let handle = store.objects().unwrap();
    let mut quarantine = store.quarantine().unwrap();
    let pack = there.pack(&format!("{two}\n^{base}\n"), true);
    let received = quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
    assert_eq!((received.objects, received.bytes), (6, pack.len() as u64));
    quarantine.check_connected(&[two], &store.refs().unwrap()).unwrap();
    let inside = quarantine.objects();
    assert_eq!(inside.commit(two).unwrap().parents, [one]);
    assert!(inside.is_ancestor(base, two).unwrap(), "history runs on into the repository");
    assert_eq!(handle.kind(two).unwrap(), None);
    keep(&store, quarantine);
    assert_eq!(handle.kind(two).unwrap(), Some(Kind::Commit), "an old handle sees it");
    commit(&store, &[create("refs/heads/two", two)]).unwrap();
    here.git(&["fsck", "--strict"]);
    assert!(!here.files().iter().any(|path| path.to_string_lossy().contains("incoming-zit")));
}

#[test]
fn what_is_wrong_with_a_pack_is_told_apart() {
    let (here, there, [base, one, two]) = pair();
    let whole = there.pack(&format!("{two}\n"), false);
    for cut in [0, 5, 12, 20, whole.len() - 20, whole.len() - 1] {
        let error = refused(&here, &whole[..cut], LIMITS);
        assert!(matches!(error, PackError::Truncated), "cut at {cut}: {error}");
        assert!(error.hint().is_some());
    }
    let mut corrupt = whole.clone();
    *corrupt.last_mut().unwrap() ^= 1;
    assert!(matches!(refused(&here, &corrupt, LIMITS), PackError::Checksum));
    let mut corrupt = whole.clone();
    corrupt[60] ^= 0x55;
    let error = refused(&here, &corrupt, LIMITS);
    assert!(
        matches!(error, PackError::BadObject(_) | PackError::Checksum | PackError::Refused(_)),
        "{error}"
    );
    assert!(matches!(refused(&here, b"GET / HTTP/1.1\r\n\r\n", LIMITS), PackError::NotAPack(_)));
    let thin = there.pack(&format!("{two}\n^{one}\n"), true);
    let error = refused(&here, &thin, LIMITS);
    assert!(matches!(error, PackError::MissingBase(_)), "{error}");
    let few = PackLimits { max_objects: 3, ..LIMITS };
    let error = refused(&here, &there.pack(&format!("{two}\n^{base}\n"), true), few);
    assert!(matches!(error, PackError::TooManyObjects { found: 6, limit: 3 }), "{error}");
}

#[test]
fn a_pack_past_its_limit_is_cut_off_while_it_comes() {
    let (here, there, [.., two]) = pair();
    let pack = there.pack(&format!("{two}\n"), false);
    let limits = PackLimits { max_bytes: 500, ..LIMITS };
    assert!(matches!(refused(&here, &pack, limits), PackError::TooLarge(500)));
    // A stream without end is not read to its end.
    let store = here.referee();
    let mut endless = pack[..12].chain(io::repeat(0x78));
    let error = store.quarantine().unwrap().receive_pack(&mut endless, &limits).unwrap_err();
    assert!(matches!(error, PackError::TooLarge(_) | PackError::BadObject(_)), "{error}");
}

#[test]
fn a_peer_that_stops_mid_pack_is_told_apart_from_a_bad_pack() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::ConnectionReset, "gone"))
        }
    }
    let (here, there, [.., two]) = pair();
    let pack = there.pack(&format!("{two}\n"), false);
    let store = here.referee();
    for sent in [4, 12, 100] {
        let mut stream = pack[..sent].chain(Broken);
        let error = store.quarantine().unwrap().receive_pack(&mut stream, &LIMITS).unwrap_err();
        assert!(matches!(error, PackError::Read(_)), "{sent}: {error}");
    }
}

#[test]
fn a_pack_without_objects_is_checked_and_makes_no_folder() {
    let (here, there, [base, ..]) = pair();
    let empty = there.pack("", false);
    assert_eq!(empty.len(), 32);
    let store = here.referee();
    let before = here.files();
    let mut quarantine = store.quarantine().unwrap();
    let received = quarantine.receive_pack(&mut empty.as_slice(), &LIMITS).unwrap();
    assert_eq!((received.objects, received.bytes), (0, 32));
    quarantine.check_connected(&[base], &store.refs().unwrap()).unwrap();
    assert_eq!(quarantine.objects().kind(base).unwrap(), Some(Kind::Commit));
    assert_eq!(here.files(), before, "no folder either");
    keep(&store, quarantine);
    assert_eq!(here.files(), before);
    drop(store);
    let mut corrupt = empty.clone();
    corrupt[31] ^= 1;
    assert!(matches!(refused(&here, &corrupt, LIMITS), PackError::Checksum));
    assert!(matches!(refused(&here, &empty[..20], LIMITS), PackError::Truncated));
}

#[test]
fn a_tip_whose_history_is_missing_is_not_connected() {
    let (here, there, [_, one, two]) = pair();
    let store = here.referee();
    let mut quarantine = store.quarantine().unwrap();
    // The last commit with its tree and blobs, but without its parent.
    let pack = there.pack(&format!("{two}\n^{one}\n"), false);
    quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap_err();
    let mut quarantine = store.quarantine().unwrap();
    let orphan = quarantine.write(Kind::Commit, &there.cat("commit", two)).unwrap();
    assert_eq!(orphan, two);
    let error = quarantine.check_connected(&[two], &store.refs().unwrap()).unwrap_err();
    assert!(matches!(error, PackError::MissingObjects(_)), "{error}");
    assert!(error.hint().is_some());
    quarantine.check_connected(&[], &store.refs().unwrap()).unwrap();
    let blob = quarantine.write_blob("x").unwrap();
    quarantine.check_connected(&[blob], &store.refs().unwrap()).expect("a blob needs nothing");
}

#[test]
fn an_object_that_git_refuses_is_named() {
    let (here, there, _) = pair();
    let blob = there.blob("x");
    let mut tree = b"100644 .git\0".to_vec();
    tree.extend_from_slice(blob.as_bytes());
    let tree = there.git_hash_literally("tree", &tree);
    let pack = there.pack_of(&[tree, blob]);
    let error = refused(&here, &pack, LIMITS);
    assert!(matches!(&error, PackError::BadObject(said) if said.contains(".git")), "{error}");
}

#[test]
fn objects_of_our_own_are_what_git_would_write() {
    let repo = Repo::new();
    let store = repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    let tree = quarantine.write_tree(&[("b.md", b"text"), ("a.json", b"{}")]).unwrap();
    assert_eq!(tree, repo.tree(&[("a.json", "{}"), ("b.md", "text")]));
    let first = quarantine.commit_tree(tree, &[], &somebody(), &somebody(), "first\n").unwrap();
    let second = quarantine
        .write_document_commit("claim.json", b"{}\n", &[first], "second\n", &somebody())
        .unwrap();
    assert!(quarantine.write_tree(&[("../x", b"")]).is_err());
    quarantine.check_connected(&[second], &store.refs().unwrap()).unwrap();
    keep(&store, quarantine);
    assert_eq!(first, repo.commit(&[("a.json", "{}"), ("b.md", "text")], &[], "first"));
    assert_eq!(second, repo.commit(&[("claim.json", "{}\n")], &[first], "second"));
    commit(&store, &[create("refs/zit/claims/k", second)]).unwrap();
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn refs_are_locked_for_values_in_quarantine_and_a_loser_migrates_nothing() {
    let repo = Repo::new();
    let store = repo.referee();
    let (oid, quarantine) = document(&store, "x");
    let update = [create("refs/zit/claims/k", oid)];
    assert!(store.prepare(&update).is_err(), "nobody else sees the object");
    let objects = quarantine.objects();
    let prepared = store.prepare_seeing(&update, &[&objects]).unwrap();
    prepared.commit(draft(), vec![quarantine]).unwrap();
    store.settle().unwrap();
    let late = store.quarantine().unwrap();
    assert!(store.prepare_seeing(&update, &[&late.objects()]).is_err());
    drop((late, store));
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn an_old_object_that_comes_again_is_young_for_garbage_collection() {
    let repo = Repo::new();
    let store = repo.referee();
    // Larger than what the journal holds.
    let content = "forgotten".repeat(1 << 17);
    let blob = repo.blob(&content).to_string();
    let file = repo.path.join("objects").join(&blob[..2]).join(&blob[2..]);
    let old = std::fs::metadata(&repo.path).unwrap().modified().unwrap();
    let old = old - std::time::Duration::from_hours(30 * 24);
    std::fs::File::open(&file).unwrap().set_modified(old).unwrap();
    let mut quarantine = store.quarantine().unwrap();
    quarantine.write_blob(content.as_str()).unwrap();
    keep(&store, quarantine);
    repo.git(&["prune", "--expire=2.weeks.ago"]);
    assert!(file.exists());
}

#[test]
fn repacks_and_prunes_beside_a_store_leave_what_refs_are_about_to_name() {
    let (here, there, _) = pair();
    let store = here.referee();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                here.git(&["repack", "-a", "-d", "-q"]);
                here.git(&["prune", "--expire=now"]);
                here.git(&["gc", "--prune=now", "--quiet"]);
            }
        });
        for n in 0..20 {
            let oid = there.commit(&[], &[], &format!("pushed {n}"));
            let pack = there.pack(&format!("{oid}\n"), false);
            let mut pushed = store.quarantine().unwrap();
            pushed.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
            let (claim, made) = document(&store, &n.to_string());
            let updates = [
                create(&format!("refs/heads/pushed{n}"), oid),
                create(&format!("refs/zit/claims/{n}"), claim),
            ];
            let objects = (pushed.objects(), made.objects());
            let prepared = store.prepare_seeing(&updates, &[&objects.0, &objects.1]).unwrap();
            prepared.commit(draft(), vec![pushed, made]).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    store.settle().unwrap();
    here.git(&["fsck", "--strict"]);
    assert_eq!(here.git_refs(), Repo::store_refs(&store));
}

#[test]
fn keep_files_that_a_crash_left_go_at_the_next_start_and_others_stay() {
    let (here, _, _) = pair();
    let packs = here.path.join("objects/pack");
    std::fs::create_dir_all(&packs).unwrap();
    let text = "zit: refs that name these objects are being written\n";
    std::fs::write(packs.join("pack-left.keep"), text).unwrap();
    std::fs::write(packs.join("pack-mine.keep"), "mine\n").unwrap();
    here.referee();
    assert!(!packs.join("pack-left.keep").exists());
    assert!(packs.join("pack-mine.keep").exists());
}

#[test]
fn an_object_that_is_there_already_is_migrated_once() {
    let repo = Repo::new();
    let store = repo.referee();
    let blob = repo.blob("x");
    let mut quarantine = store.quarantine().unwrap();
    assert_eq!(quarantine.write_blob("x").unwrap(), blob);
    keep(&store, quarantine);
    let mut again = store.quarantine().unwrap();
    again.write_blob("x").unwrap();
    keep(&store, again);
    assert_eq!(store.objects().unwrap().blob(blob, 9).unwrap(), Blob::Bytes(b"x".to_vec()));
}

#[test]
fn more_packs_than_the_library_has_places_by_default_arrive_under_an_open_handle() {
    let (here, there, _) = pair();
    let store = here.referee();
    let handle = store.objects().unwrap();
    for i in 0..40 {
        let oid = there.commit(&[], &[], &format!("pack {i}"));
        let mut quarantine = store.quarantine().unwrap();
        let pack = there.pack(&format!("{oid}\n"), false);
        quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
        keep(&store, quarantine);
        assert_eq!(handle.kind(oid).unwrap(), Some(Kind::Commit), "pack {i}");
    }
}

#[test]
fn objects_of_our_own_are_no_files_until_they_are_migrated() {
    let repo = Repo::new();
    let store = repo.referee();
    let before = repo.files();
    let mut quarantine = store.quarantine().unwrap();
    let blob = quarantine.write_blob("x").unwrap();
    assert_eq!(repo.files(), before);
    assert_eq!(quarantine.objects().blob(blob, 9).unwrap(), Blob::Bytes(b"x".to_vec()));
    assert_eq!(quarantine.objects().header(blob).unwrap(), Some((Kind::Blob, 1)));
    assert_eq!(store.objects().unwrap().kind(blob).unwrap(), None);
    drop(quarantine);
    assert_eq!(repo.files(), before, "dropped, they are gone");
    let mut quarantine = store.quarantine().unwrap();
    quarantine.write_blob("x").unwrap();
    keep(&store, quarantine);
    let added: Vec<_> = repo.files().into_iter().filter(|file| !before.contains(file)).collect();
    assert_eq!(added.len(), 2, "a pack and its index: {added:?}");
    for file in added {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o333, 0, "as git does");
    }
    assert_eq!(repo.cat("blob", blob), b"x");
}

#[test]
fn git_merges_what_is_only_in_memory() {
    let repo = Repo::new();
    let base = repo.commit(&[("a", "1")], &[], "base");
    let ours = repo.commit(&[("a", "1"), ("b", "2")], &[base], "ours");
    let store = repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    let theirs = quarantine.write_document_commit("a", b"3", &[base], "m\n", &somebody()).unwrap();
    let Merge::Clean(tree) = quarantine.merge_tree(ours, theirs).unwrap() else {
        panic!("not clean")
    };
    let parents = [ours, theirs];
    let merge = quarantine.commit_tree(tree, &parents, &somebody(), &somebody(), "m\n").unwrap();
    assert_eq!(quarantine.objects().commit(merge).unwrap().parents, parents);
    assert!(quarantine.objects().is_ancestor(base, merge).unwrap());
    quarantine.check_connected(&[merge], &store.refs().unwrap()).unwrap();
    keep(&store, quarantine);
    commit(&store, &[create("refs/heads/m", merge)]).unwrap();
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn an_object_that_a_crash_left_on_its_way_goes_at_the_next_start() {
    let repo = Repo::new();
    drop(repo.referee());
    let before = repo.files();
    std::fs::write(repo.path.join("objects/incoming-zit-left"), "half").unwrap();
    drop(repo.referee());
    assert_eq!(repo.files(), before);
}

#[test]
fn a_merge_is_clean_or_names_its_conflicts() {
    let repo = Repo::new();
    let base = repo.commit(&[("a", "1\n2\n3\n4\n5\n"), ("b", "x\n")], &[], "base");
    let ours = repo.commit(&[("a", "one\n2\n3\n4\n5\n"), ("b", "x\n")], &[base], "ours");
    let theirs = repo.commit(&[("a", "1\n2\n3\n4\nfive\n"), ("b", "x\n")], &[base], "theirs");
    let clash = repo.commit(&[("a", "uno\n2\n3\n4\n5\n"), ("b", "x\n")], &[base], "clash");
    let stranger = repo.commit(&[], &[], "stranger");
    let store = repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    let Merge::Clean(tree) = quarantine.merge_tree(ours, theirs).unwrap() else {
        panic!("not clean")
    };
    let merged = quarantine.objects().entry_at(tree, "a".into()).unwrap().unwrap();
    assert_eq!(
        quarantine.objects().blob(merged.oid, 100).unwrap(),
        Blob::Bytes(b"one\n2\n3\n4\nfive\n".to_vec())
    );
    assert_eq!(store.objects().unwrap().kind(tree).unwrap(), None, "it is in the quarantine");
    let Merge::Conflict { paths, messages } = quarantine.merge_tree(ours, clash).unwrap() else {
        panic!("clean")
    };
    assert_eq!(paths, ["a"]);
    assert!(messages.contains("CONFLICT"), "{messages}");
    let unrelated = quarantine.merge_tree(ours, stranger).unwrap_err();
    assert!(matches!(unrelated, StoreError::Unrelated { .. }));
}
