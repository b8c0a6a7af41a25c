//! Small packs, which are unpacked without a program: what becomes of them, and where they stop being small.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use zit_model::Oid;
use zit_store::journal::Journal;
use zit_store::{Kind, PackError, PackLimits, Store};

use crate::support::{Repo, commit, create, draft, git_command, keep, run};

const LIMITS: PackLimits = PackLimits { max_bytes: 64 << 20, max_objects: 100_000 };

/// A repository of the kind, without commits.
fn empty(object_format: &str) -> Repo {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.git");
    let mut init = git_command(Path::new("unused"));
    init.env_remove("GIT_DIR");
    init.args(["init", "-q", "--bare", "-b", "main", "--object-format", object_format]).arg(&path);
    assert!(run(init, b"").status.success());
    Repo { folder, path }
}

/// A commit that both have on main of the first, and commits on top of it in the second.
fn history(object_format: &str, n_commits: usize) -> (Repo, Repo, Oid, Oid) {
    let (here, there) = (empty(object_format), empty(object_format));
    let mut text: String = (0..400).map(|n| format!("line {n} {}\n", n * 7919)).collect();
    let base = here.commit(&[("a", &text), ("b", "x")], &[], "base");
    let mut tip = there.commit(&[("a", &text), ("b", "x")], &[], "base");
    assert_eq!(tip, base);
    for n in 0..n_commits {
        text.push_str(&format!("one more {n}\n"));
        tip = there.commit(&[("a", &text), ("b", "x")], &[tip], &format!("commit {n}"));
    }
    commit(&here.referee(), &[create("refs/heads/main", base)]).unwrap();
    (here, there, base, tip)
}

fn receive(store: &Store, pack: &[u8], tip: Oid) {
    let mut quarantine = store.quarantine().unwrap();
    quarantine.receive_pack(&mut &*pack, &LIMITS).unwrap();
    quarantine.check_connected(&[tip], &store.refs().unwrap()).unwrap();
    let update = [create("refs/heads/new", tip)];
    let prepared = store.prepare_seeing(&update, &[&quarantine.objects()]).unwrap();
    prepared.commit(draft(), vec![quarantine]).unwrap();
    store.settle().unwrap();
}

/// How many objects the last record of the journal holds.
fn n_journaled(repo: &Repo) -> usize {
    let (journal, _) = Journal::read_only(&repo.path.join("zit/journal")).unwrap();
    let mut last = journal.read_from(journal.tail().0).unwrap();
    last.next().unwrap().unwrap().objects.len()
}

fn packs(repo: &Repo) -> Vec<PathBuf> {
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pack");
    repo.files().into_iter().filter(is_pack).collect()
}

#[test]
fn a_thin_pack_is_completed_and_indexed_as_git_does_it() {
    for object_format in ["sha1", "sha256"] {
        let (here, there, base, tip) = history(object_format, 12);
        let thin = there.pack(&format!("{tip}\n^{base}\n"), true);
        let alone = empty(object_format);
        let index = alone.try_git(&["index-pack", "--stdin"], &thin);
        assert!(!index.status.success(), "{object_format}: the pack is thin");
        receive(&here.referee(), &thin, tip);
        let [pack] = packs(&here).try_into().unwrap();
        let other = here.folder.path().join("other.idx");
        let (path, other_path) = (pack.to_str().unwrap(), other.to_str().unwrap());
        here.git(&["index-pack", "-o", other_path, path]);
        let [ours, gits] =
            [pack.with_extension("idx"), other].map(|path| std::fs::read(path).unwrap());
        assert!(ours == gits, "{object_format}: another index");
        here.git(&["fsck", "--strict", "--full"]);
        here.git(&["verify-pack", path]);
    }
}

#[test]
fn a_few_objects_are_in_no_file_until_they_are_migrated() {
    let (here, there, base, tip) = history("sha1", 2);
    let thin = there.pack(&format!("{tip}\n^{base}\n"), true);
    let store = here.referee();
    let before = here.files();
    let mut quarantine = store.quarantine().unwrap();
    quarantine.receive_pack(&mut thin.as_slice(), &LIMITS).unwrap();
    quarantine.check_connected(&[tip], &store.refs().unwrap()).unwrap();
    assert_eq!(here.files(), before);
    drop(quarantine);
    receive(&store, &thin, tip);
    assert_eq!(n_journaled(&here), 6);
    here.git(&["fsck", "--strict", "--full"]);
}

#[test]
fn how_many_objects_are_kept_one_by_one_is_a_setting() {
    for (setting, expected) in [("1", 0), ("100", 21)] {
        let (here, there, base, tip) = history("sha1", 7);
        here.git(&["config", "transfer.unpackLimit", setting]);
        receive(&here.referee(), &there.pack(&format!("{tip}\n^{base}\n"), true), tip);
        assert_eq!(n_journaled(&here), expected, "{setting}");
    }
}

#[test]
fn a_pack_past_memory_is_left_to_git() {
    let (here, there, base, _) = history("sha1", 0);
    let mut noise = vec![0; 5 << 20];
    Rng::with_seed(1).fill(&mut noise);
    let zeroes = vec![0; 40 << 20];
    // One is long, the other becomes long.
    for (n, content) in [noise, zeroes].iter().enumerate() {
        let blob = there.git_with(&["hash-object", "-w", "--stdin"], content);
        let tree = there.tree_of(&format!("100644 {blob}\tbig\n"));
        let tip =
            there.git(&["commit-tree", "-m", "big", "-p", &base.to_string(), &tree.to_string()]);
        let pack = there.pack(&format!("{tip}\n^{base}\n"), true);
        let store = here.referee();
        let mut quarantine = store.quarantine().unwrap();
        let received = quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
        assert_eq!((received.objects, received.bytes), (3, pack.len() as u64), "{n}");
        let tip: Oid = tip.parse().unwrap();
        quarantine.check_connected(&[tip], &store.refs().unwrap()).unwrap();
        keep(&store, quarantine);
        assert_eq!(store.objects().unwrap().kind(tip).unwrap(), Some(Kind::Commit), "{n}");
    }
    here.git(&["fsck", "--strict", "--full"]);
}

#[test]
fn a_repository_may_take_less_than_the_server() {
    let (here, there, base, tip) = history("sha1", 3);
    here.git(&["config", "receive.maxInputSize", "200"]);
    let pack = there.pack(&format!("{tip}\n^{base}\n"), true);
    assert!(pack.len() > 200);
    let mut quarantine = here.referee().quarantine().unwrap();
    let error = quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap_err();
    assert!(matches!(error, PackError::TooLarge(200)), "{error}");
}
