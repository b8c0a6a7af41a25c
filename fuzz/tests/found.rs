//! What every target bears: its seeds, nothing at all, and whatever it did not bear once.
//!
//! `fuzz/found/<target>/` holds what was found: a fault, or an input that took far too long.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use zit_fuzz::{TARGETS, Target};

/// How much of a processor's time one of them may take, in a build without optimisation.
const MAX_TIME: Duration = Duration::from_secs(10);

#[track_caller]
fn bears(target: Target, case: &str, input: &[u8]) {
    let since = spent();
    (target.decode)(input);
    let took = spent().saturating_sub(since);
    assert!(took < MAX_TIME, "{}, {case}: {took:?}", target.name);
}

/// The processor's time that this thread has used: a busy machine makes nothing slower.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it begins at zero")
}

#[test]
fn every_target_bears_its_seeds_and_nothing() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}: no seeds", target.name);
        for (n, seed) in seeds.iter().enumerate() {
            bears(*target, &format!("seed {n}"), seed);
        }
        bears(*target, "nothing", b"");
    }
}

#[test]
fn what_was_found_once_is_borne_ever_after() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut n_found = 0;
    for folder in fs::read_dir(&found).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let target = Target::named(&name).unwrap_or_else(|| panic!("{name}: no such target"));
        for input in fs::read_dir(folder.path()).unwrap() {
            let path = input.unwrap().path();
            bears(target, &path.display().to_string(), &fs::read(&path).unwrap());
            n_found += 1;
        }
    }
    assert!(n_found > 0, "nothing is kept in {}", found.display());
}

#[test]
fn names_of_targets_are_names_of_files_and_each_is_one_target() {
    for target in TARGETS {
        assert_eq!(TARGETS.iter().filter(|other| other.name == target.name).count(), 1);
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(target.name.chars().all(plain), "{}", target.name);
    }
}
