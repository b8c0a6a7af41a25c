//! How many cases there are, which of them run, and how those that fail are told.

use std::collections::BTreeMap;
use std::env;
use std::ops::Range;

use fastrand::Rng;

/// How many cases all tests of this suite have together, unless `ZIT_CASES` says another number.
const N_CASES: u64 = 2_400;

/// The seed, unless `ZIT_SEED` says another.
const SEED: u64 = 20_261_130;

/// How many failures are told at most.
const MAX_TOLD: usize = 5;

/// The cases of one test.
pub(super) struct Cases {
    test: &'static str,
    seed: u64,
    only: Option<u64>,
    n_all: u64,
    per_group: u64,
    failures: Vec<String>,
    // How many cases came to what.
    outcomes: BTreeMap<&'static str, u64>,
}

impl Cases {
    /// A share, in percent, of all cases, in groups that have a history in common.
    pub(super) fn of(test: &'static str, percent: u64, per_group: u64) -> Self {
        let n_all = (number("ZIT_CASES").unwrap_or(N_CASES) * percent).div_ceil(100);
        let seed = number("ZIT_SEED").unwrap_or(SEED);
        let only = number("ZIT_CASE");
        let (failures, outcomes) = (Vec::new(), BTreeMap::new());
        Self { test, seed, only, n_all, per_group, failures, outcomes }
    }

    /// The groups that have a case to run.
    pub(super) fn groups(&self) -> Range<u64> {
        match self.only {
            Some(case) => case / self.per_group..case / self.per_group + 1,
            None => 0..self.n_all.div_ceil(self.per_group),
        }
    }

    /// The seed of a group's history, different in every test.
    pub(super) fn seed_of_group(&self, group: u64) -> u64 {
        self.mix("group", group)
    }

    /// The cases of a group that are to be run, each with its own randomness.
    pub(super) fn in_group(&self, group: u64) -> Vec<(u64, Rng)> {
        let all =
            (group * self.per_group..(group + 1) * self.per_group).take_while(|n| *n < self.n_all);
        let cases = match self.only {
            Some(case) => vec![case],
            None => all.collect(),
        };
        cases.into_iter().map(|n| (n, Rng::with_seed(self.mix("case", n)))).collect()
    }

    /// The cases of a group that build on each other, up to the last one that is to be run.
    pub(super) fn story(&self, group: u64) -> Vec<(u64, Rng)> {
        let first = group * self.per_group;
        let end = match self.only {
            Some(case) => case + 1,
            None => (first + self.per_group).min(self.n_all),
        };
        (first..end).map(|n| (n, Rng::with_seed(self.mix("case", n)))).collect()
    }

    /// Keeps a failure of case `n`.
    pub(super) fn fail(&mut self, n: u64, what: &str) {
        let (seed, test) = (self.seed, self.test);
        let again = format!("ZIT_SEED={seed} ZIT_CASE={n} cargo nextest run -p zit-tests {test}");
        self.failures.push(format!("case {n}: {what}\nagain: {again}"));
    }

    /// Counts a case that came to `what`.
    pub(super) fn saw(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    /// Ends the test, which must have seen each of `expected` in at least so many percent of its cases.
    #[track_caller]
    pub(super) fn finish(self, expected: &[(&str, u64)]) {
        let n_failures = self.failures.len();
        eprintln!("{}: {:?}", self.test, self.outcomes);
        let told = self.failures.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join("\n\n");
        assert!(n_failures == 0, "{n_failures} of {} cases differ:\n{told}", self.n_all);
        for (what, percent) in expected.iter().filter(|_| self.only.is_none()) {
            let n = self.outcomes.get(what).copied().unwrap_or_default();
            assert!(n * 100 >= self.n_all * percent, "{what} in {n} of {} cases", self.n_all);
        }
    }

    /// FNV-1a over the seed, the test and what is asked for.
    fn mix(&self, what: &str, n: u64) -> u64 {
        let bytes = format!("{} {} {what} {n}", self.seed, self.test);
        bytes.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
