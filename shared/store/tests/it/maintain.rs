//! Maintenance: it folds what piled up, loses nothing, and can die anywhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zit_model::Oid;
use zit_store::{
    Access, Blob, FetchLimits, FetchQuery, MAINTENANCE_CRASH_POINTS, Maintained, PackLimits, Stop,
    Store,
};

use crate::support::{Repo, commit, create, delete, draft, name, run};

const LIMITS: PackLimits = PackLimits { max_bytes: 1 << 20, max_objects: 100 };

/// Not a test on its own: the process that dies. It does nothing unless a test starts it with its instructions.
#[test]
fn victim() {
    let Ok(repo) = std::env::var("ZIT_STORE_MAINTAINED") else { return };
    let store = Store::open(Path::new(&repo), Access::Referee).unwrap();
    let maintained = store.maintain(&Stop::default()).unwrap();
    assert_eq!(maintained, Maintained::Done);
}

fn victim_of(repo: &Repo) -> Command {
    #[allow(clippy::disallowed_methods, reason = "this test again, to be killed")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "maintain::victim", "--nocapture"])
        .env("ZIT_STORE_MAINTAINED", &repo.path);
    command
}

/// Pushes one commit with one file on a branch of its own, as the server does it; its oid.
fn push(store: &Store, source: &Repo, n: usize) -> Oid {
    let tip = source.commit(&[("f", &format!("content {n}"))], &[], &format!("commit {n}"));
    let mut quarantine = store.quarantine().unwrap();
    let pack = source.pack(&format!("{tip}\n"), false);
    quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
    quarantine.write_blob(&*format!("note {n}")).unwrap();
    let update = [create(&format!("refs/heads/b{n}"), tip)];
    let prepared = store.prepare_seeing(&update, &[&quarantine.objects()]).unwrap();
    prepared.commit(draft(), vec![quarantine]).unwrap();
    store.settle().unwrap();
    tip
}

/// A repository after pushes that left packs, loose objects, some without a ref, and loose refs.
fn repository(n_pushes: usize) -> (Repo, Store) {
    let (repo, source) = (Repo::new(), Repo::new());
    // So that the smallest push leaves a pack.
    repo.git(&["config", "receive.unpackLimit", "1"]);
    let store = repo.referee();
    for n in 0..n_pushes {
        push(&store, &source, n);
    }
    let tip = repo.git(&["rev-parse", "refs/heads/b0"]).parse().unwrap();
    commit(&store, &[create("refs/zit/claims/a", tip), create("refs/tags/v1", tip)]).unwrap();
    (repo, store)
}

fn objects(repo: &Repo) -> BTreeSet<String> {
    let list = repo.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    list.lines().map(str::to_owned).collect()
}

fn n_packs(repo: &Repo) -> usize {
    repo.files().iter().filter(|path| path.extension().is_some_and(|ext| ext == "pack")).count()
}

/// What a run that died would leave.
fn leftovers(repo: &Repo) -> Vec<String> {
    let files = repo.files();
    let names =
        files.iter().map(|path| path.strip_prefix(&repo.path).unwrap().display().to_string());
    names
        .filter(|name| {
            !name.starts_with("zit/")
                && (name.contains("tmp") || name.contains(".lock") || name.contains(".new"))
        })
        .collect()
}

#[test]
fn packs_loose_objects_and_refs_are_folded_and_nothing_is_lost() {
    let (repo, store) = repository(20);
    let (before, refs) = (objects(&repo), repo.git_refs());
    assert!(n_packs(&repo) >= 20);
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done);
    assert_eq!(n_packs(&repo), 1);
    assert!(repo.git(&["count-objects"]).starts_with("0 objects"), "no object is loose");
    assert_eq!(objects(&repo), before, "also what no ref reaches is kept");
    assert_eq!((repo.git_refs(), Repo::store_refs(&store)), (refs.clone(), refs));
    assert!(!repo.path.join("refs/heads/b3").exists());
    assert!(repo.path.join("refs/zit/claims/a").exists(), "refs that come and go stay files");
    assert!(repo.path.join("objects/info/commit-graph").exists());
    let is_bitmap = |name: &String| name.contains("multi-pack-index-") && name.ends_with(".bitmap");
    let names = repo.files().into_iter().map(|path| path.display().to_string());
    assert_eq!(names.filter(is_bitmap).count(), 1);
    assert_eq!(leftovers(&repo), Vec::<String>::new());
    repo.git(&["fsck", "--strict"]);
    // Again, with nothing to do.
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done);
    assert_eq!(objects(&repo), before);
}

#[test]
fn it_is_due_when_packs_pile_up_and_not_when_it_is_turned_off() {
    let looks = |store: &Store| (0..16).filter(|_| store.is_maintenance_due().unwrap()).count();
    let (repo, store) = repository(8);
    assert_eq!(looks(&store), 0);
    repo.git(&["config", "gc.autoPackLimit", "8"]);
    assert_eq!(looks(&store), 1);
    for (key, off) in [("gc.auto", "0"), ("maintenance.auto", "false")] {
        repo.git(&["config", key, off]);
        assert_eq!(looks(&store), 0, "{key}");
        repo.git(&["config", "--unset", key]);
    }
    store.maintain(&Stop::default()).unwrap();
    assert_eq!(looks(&store), 0);
    repo.git(&["config", "gc.auto", "3"]);
    for n in 0..3 {
        repo.blob(&format!("loose {n}"));
    }
    assert_eq!(looks(&store), 1);
}

#[test]
fn a_pack_of_a_push_under_way_is_left_alone() {
    let (repo, store) = repository(4);
    let source = Repo::new();
    let tip = source.commit(&[("f", "under way")], &[], "under way");
    let mut quarantine = store.quarantine().unwrap();
    let pack = source.pack(&format!("{tip}\n"), false);
    quarantine.receive_pack(&mut pack.as_slice(), &LIMITS).unwrap();
    let packs = || -> Vec<_> {
        let files = std::fs::read_dir(repo.path.join("objects/pack")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|kind| kind == "pack")).collect()
    };
    let before = packs();
    store.prepare(&[]).unwrap().commit(draft(), vec![quarantine]).unwrap();
    store.settle().unwrap();
    // As the push itself marks it until its refs have moved.
    let pushed = packs().into_iter().find(|pack| !before.contains(pack)).unwrap();
    std::fs::write(pushed.with_extension("keep"), "").unwrap();
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done);
    assert!(pushed.exists());
    commit(&store, &[create("refs/heads/late", tip)]).unwrap();
    std::fs::remove_file(pushed.with_extension("keep")).unwrap();
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_run_that_dies_between_its_steps_leaves_nothing_and_loses_nothing() {
    for point in MAINTENANCE_CRASH_POINTS {
        let (repo, store) = repository(6);
        let (before, refs) = (objects(&repo), repo.git_refs());
        drop(store);
        let mut command = victim_of(&repo);
        command.env("ZIT_CRASH_AT", point);
        assert!(!run(command, b"").status.success(), "nothing dies at {point}");
        assert!(repo.path.join("objects/maintenance.lock").exists(), "{point}");
        let store = repo.referee();
        assert_eq!(leftovers(&repo), Vec::<String>::new(), "{point}");
        repo.git(&["fsck", "--strict"]);
        assert_eq!((objects(&repo), repo.git_refs()), (before, refs), "{point}");
        assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done, "{point}");
        assert_eq!(n_packs(&repo), 1, "{point}");
    }
}

/// Kills a process and all that it started, each in the middle of what it does.
fn kill_family(pid: u32) {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_threads = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .chain(children);
    let family: BTreeSet<u32> = of_threads
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect();
    // The parent first, so that it learns nothing.
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    for child in family {
        let group = rustix::process::Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_a_step_leaves_nothing_and_loses_nothing() {
    let (repo, store) = repository(30);
    let (before, refs) = (objects(&repo), repo.git_refs());
    drop(store);
    for round in 0..12 {
        let mut child =
            victim_of(&repo).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(5 + round * 7));
        kill_family(child.id());
        child.wait().unwrap();
        // What outlives its parent for a moment holds the mark for that moment.
        let store = repo.referee();
        let deadline = Instant::now() + Duration::from_mins(1);
        while store.maintain(&Stop::default()).unwrap() == Maintained::Busy {
            assert!(Instant::now() < deadline, "round {round}: what was killed is still at work");
            std::thread::yield_now();
        }
        assert_eq!(leftovers(&repo), Vec::<String>::new(), "round {round}");
        repo.git(&["fsck", "--strict"]);
        assert_eq!(repo.git_refs(), refs, "round {round}");
        assert!(objects(&repo).is_superset(&before), "round {round}");
    }
}

#[test]
fn a_run_that_is_asked_to_stop_ends_at_once_and_tidies_up() {
    let (repo, store) = repository(10);
    let stop = Stop::default();
    stop.stop();
    assert_eq!(store.maintain(&stop).unwrap(), Maintained::Stopped);
    assert!(n_packs(&repo) >= 10);
    for delay in [1, 5, 10, 20, 40] {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| store.maintain(&stop));
            std::thread::sleep(Duration::from_millis(delay));
            stop.stop();
            // A fast machine may be done by then.
            let ended = running.join().unwrap().unwrap();
            assert!(matches!(ended, Maintained::Stopped | Maintained::Done), "{ended:?}");
        });
        assert_eq!(leftovers(&repo), Vec::<String>::new(), "after {delay} ms");
        repo.git(&["fsck", "--strict"]);
    }
}

#[test]
fn maintenance_of_gits_own_keeps_ours_away() {
    let (repo, store) = repository(4);
    let lock = repo.path.join("objects/maintenance.lock");
    fs::write(&lock, "").unwrap();
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Busy);
    drop(store);
    let store = repo.referee();
    assert!(lock.exists(), "it is somebody else's");
    fs::remove_file(&lock).unwrap();
    assert_eq!(store.maintain(&Stop::default()).unwrap(), Maintained::Done);
}

#[test]
fn readers_and_pushes_go_on_while_packs_are_folded() {
    let (repo, store) = repository(10);
    let source = Repo::new();
    let done = AtomicBool::new(false);
    let known: Vec<Oid> = repo.git_refs().into_values().map(|oid| oid.parse().unwrap()).collect();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let objects = store.objects().unwrap();
            let mut n_reads = 0;
            while !done.load(Ordering::Relaxed) {
                for tip in &known {
                    let commit = objects.commit(*tip).unwrap();
                    assert!(objects.kind(commit.tree).unwrap().is_some());
                    let query =
                        FetchQuery { wants: vec![*tip], done: true, ..FetchQuery::default() };
                    store.fetch(&query, &FetchLimits::default()).unwrap();
                    n_reads += 1;
                }
            }
            n_reads
        });
        for round in 0..6 {
            let folding = scope.spawn(|| store.maintain(&Stop::default()));
            for n in 0..3 {
                push(&store, &source, 100 + round * 10 + n);
            }
            assert_eq!(folding.join().unwrap().unwrap(), Maintained::Done, "round {round}");
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    repo.git(&["fsck", "--strict"]);
    let blob = repo.git(&["rev-parse", "refs/heads/b100:f"]).parse().unwrap();
    assert_eq!(
        store.objects().unwrap().blob(blob, 100).unwrap(),
        Blob::Bytes(b"content 100".into())
    );
}

#[test]
fn a_branch_that_comes_back_with_its_old_value_while_refs_are_folded_stays() {
    let repo = Repo::new();
    let [tip] = repo.commits();
    let store = repo.referee();
    for round in 0..12 {
        let names: Vec<_> = (0..40).map(|n| format!("refs/heads/r{round}/b{n}")).collect();
        commit(&store, &names.iter().map(|name| create(name, tip)).collect::<Vec<_>>()).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let folding = scope.spawn(|| {
                let folded = store.maintain(&Stop::default());
                done.store(true, Ordering::SeqCst);
                folded
            });
            for branch in names.iter().cycle() {
                // One that cannot be locked in time is not deleted.
                if commit(&store, &[delete(branch, tip)]).is_ok() {
                    commit(&store, &[create(branch, tip)]).unwrap();
                }
                if done.load(Ordering::SeqCst) {
                    break;
                }
            }
            assert_eq!(folding.join().unwrap().unwrap(), Maintained::Done);
        });
        for branch in &names {
            assert_eq!(store.find_ref(&name(branch)).unwrap(), Some(tip), "{branch} is lost");
        }
    }
    assert_eq!(leftovers(&repo), Vec::<String>::new());
}
