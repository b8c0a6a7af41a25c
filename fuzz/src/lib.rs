//! One fuzz target for each decoder, and the loop that drives them.
//!
//! [`TARGETS`] is the table: a target takes any bytes and must come back, whatever they are. Where a decoder has a
//! counterpart, the target also checks that what was read and written again reads the same. [`run`] changes the seeds
//! of a target at random until its time is up; it runs on a stable toolchain, inside the test, without instrumented
//! builds, and so it is guided by nothing but the seeds. `tests/targets.rs` runs each as a test.
//!
//! It never writes a file outside temporary folders. A find is printed with the seed of the random numbers that made it
//! and its bytes in hex; it becomes a row of `tests/found.rs`.

mod mutate;
mod seeds;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub use targets::TARGETS;

/// The longest input, in bytes: long enough for every limit of a decoder that seeds cannot reach alone.
const MAX_INPUT: usize = 16 * 1024;

/// How long one input may take. Nothing that is decoded here is worth a second, also in a build without optimisation
/// on a machine that is busy.
const MAX_TIME: Duration = Duration::from_secs(10);

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What is decoded.
    pub name: &'static str,
    /// Good inputs, made anew.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Decodes; panics when a promise is broken.
    pub decode: fn(&[u8]),
}

/// Decodes the seeds as they are, and then changed ones until `budget` is used up; how many inputs were tried.
///
/// # Panics
/// With the input that a target could not bear.
#[must_use]
pub fn run(target: Target, budget: Duration, random: u64) -> u64 {
    let mut corpus = (target.seeds)();
    assert!(!corpus.is_empty(), "{}: no seeds", target.name);
    for seed in &corpus {
        decode(target, seed, random);
    }
    let mut rng = fastrand::Rng::with_seed(random);
    let (since, mut n_inputs) = (Instant::now(), 0);
    corpus.push(Vec::new());
    while since.elapsed() < budget {
        let mut input = corpus[rng.usize(..corpus.len())].clone();
        let other = &corpus[rng.usize(..corpus.len())];
        for _ in 0..rng.usize(1..=6) {
            mutate::once(&mut input, other, &mut rng);
        }
        input.truncate(MAX_INPUT);
        decode(target, &input, random);
        n_inputs += 1;
    }
    n_inputs
}

/// Decodes one input.
fn decode(target: Target, input: &[u8], random: u64) {
    let since = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.decode)(input)));
    let took = since.elapsed();
    let ended = outcome.is_ok() && took < MAX_TIME;
    assert!(
        ended,
        "{}, random {random}: {} after {took:?} of\n{}",
        target.name,
        if outcome.is_ok() { "came back" } else { "panicked" },
        input.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    );
}
