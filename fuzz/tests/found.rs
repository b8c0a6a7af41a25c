//! What the targets found, once each: inputs that were a fault or took far too long.

use std::time::{Duration, Instant};

use zit_fuzz::TARGETS;

/// How long one of them may take, in a build without optimisation on a machine that is busy.
const MAX_TIME: Duration = Duration::from_secs(10);

#[track_caller]
fn bears(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("it is in the table");
    let since = Instant::now();
    (target.decode)(input);
    assert!(since.elapsed() < MAX_TIME, "{name}: {:?}", since.elapsed());
}

#[test]
fn arrows_that_never_get_a_body_are_given_up_early() {
    bears("typescript", include_bytes!("../found/arrows.ts"));
}
