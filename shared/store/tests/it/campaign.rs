//! Hundreds of crashes: a process works through random transactions and dies at a random place, power may fail then, and
//! whoever opens the repository finds the state after some transaction, no earlier than the last acknowledged one.
//!
//! [`Life`] is what the process said before it died, [`power`] what a power failure does to files.

mod life;
mod power;

use fastrand::Rng;
use zit_store::journal::{Journal, Origin, Record};

use crate::support::Repo;
use life::{Life, State};

/// How many crashes each of the tests waits for; the environment may ask for more.
const N_CRASHES: usize = 130;

/// How many commits there are as packs, for transactions whose objects go by way of files.
const N_PACKS: usize = 12;

#[test]
fn what_was_acknowledged_survives_crashes_from_seed_1() {
    campaign(1, Repo::new(), N_CRASHES);
}

#[test]
fn what_was_acknowledged_survives_crashes_from_seed_2() {
    campaign(2, Repo::new(), N_CRASHES);
}

#[test]
fn what_was_acknowledged_survives_crashes_from_seed_3() {
    campaign(3, Repo::new(), N_CRASHES);
}

#[test]
fn what_was_acknowledged_survives_crashes_from_seed_4() {
    campaign(4, Repo::new(), N_CRASHES);
}

#[test]
fn what_was_acknowledged_survives_crashes_of_a_reftable() {
    campaign(5, Repo::reftable(), N_CRASHES / 4);
}

/// Crashes one repository again and again.
fn campaign(seed: u64, repo: Repo, n_wanted: usize) {
    let wanted = std::env::var("ZIT_CRASHES").ok().and_then(|text| text.parse().ok());
    let repo = repository(repo);
    let mut random = Rng::with_seed(seed);
    let mut state = State::of(&repo);
    let (mut n_crashes, mut n_acknowledged, mut n_cut) = (0, 0, 0);
    while n_crashes < wanted.unwrap_or(n_wanted) {
        let case = format!("seed {seed}, crash {n_crashes}");
        let limit = if random.bool() { "1" } else { "100" };
        repo.git(&["config", "receive.unpackLimit", limit]);
        let life = Life::lived(&repo, &mut random);
        n_crashes += usize::from(life.crashed);
        n_acknowledged += life.acknowledged;
        let cut_short = life.died_at("journal.written");
        if life.crashed && random.bool() {
            n_cut += usize::from(cut_short);
            power::fail(&repo, cut_short, &mut random);
        }
        while random.u8(0..4) == 0 {
            let recovery = Life::recovering(&repo, &mut random);
            n_crashes += usize::from(recovery.crashed);
            if recovery.crashed && random.bool() {
                power::fail(&repo, false, &mut random);
            }
        }
        state = recovered(&repo, &life, &state, &case);
        if random.u8(0..8) == 0 {
            repo.git(&["pack-refs", "--all"]);
        }
    }
    eprintln!("{n_crashes} crashes, {n_acknowledged} transactions, {n_cut} appends cut short");
    assert!(n_acknowledged > n_crashes, "hardly anything happened: {n_acknowledged}");
}

/// Opens the repository, and checks everything that must hold now.
fn recovered(repo: &Repo, life: &Life, before: &State, case: &str) -> State {
    let store = repo.referee();
    store.settle().unwrap();
    let found = State::of(repo);
    let said = State::with_ends(Repo::store_refs(&store), repo);
    assert_eq!(said, found, "{case}: files say what the store says");
    drop(store);
    life.assert_possible(before, &found, case);
    let current = found.0.get("refs/zit/current");
    assert_eq!(current, found.0.get("refs/heads/main"), "{case}: one moved without the other");
    let fsck = repo.try_git(&["fsck", "--strict", "--no-dangling"], b"");
    let said = [fsck.stdout, fsck.stderr].concat();
    assert!(fsck.status.success(), "{case}: {}", String::from_utf8_lossy(&said));
    let is_shallow = repo.git(&["rev-parse", "--is-shallow-repository"]);
    assert_eq!(is_shallow, found.is_shallow().to_string(), "{case}");
    let left: Vec<_> = repo.files().into_iter().filter(|path| is_leftover(path)).collect();
    assert!(left.is_empty(), "{case}: left behind: {left:?}");
    for record in records(repo) {
        assert_ne!(record.origin, Origin::Override, "{case}: nobody else was there: {record:?}");
    }
    found
}

fn is_leftover(path: &std::path::Path) -> bool {
    let path = path.to_string_lossy();
    let ends = [".lock", ".keep", ".next", ".tmp"].iter().any(|end| path.ends_with(end));
    let made = ["/zit/tx/", "/zit/settle/", "incoming-zit"].iter().any(|part| path.contains(part));
    // Of a git that outlived its parent, and folds tables.
    (ends || made) && !path.ends_with(".ref.lock")
}

/// Every record that is kept, verified.
fn records(repo: &Repo) -> Vec<Record> {
    let (journal, _) = Journal::read_only(&repo.path.join("zit/journal")).unwrap();
    journal.verify().unwrap();
    let first = journal.oldest().unwrap().unwrap_or_default();
    journal.read_from(first).unwrap().map(Result::unwrap).collect()
}

/// A mainline, and packs beside the repository with one commit each.
fn repository(repo: Repo) -> Repo {
    let base = repo.commit(&[("f", "1")], &[], "base");
    repo.git(&["update-ref", "refs/heads/main", &base.to_string()]);
    repo.git(&["update-ref", "refs/zit/current", &base.to_string()]);
    let other = Repo::new();
    other.commit(&[("f", "1")], &[], "base");
    for n in 0..N_PACKS {
        let commit = other.commit(&[("f", &format!("pack {n}"))], &[base], "packed");
        let pack = other.pack(&format!("{commit}\n^{base}\n"), false);
        std::fs::write(repo.path.with_file_name(format!("pack-{n}")), pack).unwrap();
        std::fs::write(repo.path.with_file_name(format!("new-{n}")), commit.to_string()).unwrap();
    }
    repo
}
