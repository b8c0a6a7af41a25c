//! One fuzz target for each decoder.
//!
//! [`TARGETS`] is the table: a target takes any bytes and must come back, whatever they are. Where a decoder has a
//! counterpart, the target also checks that what was read and written again reads the same. `fuzz/run` has libFuzzer
//! look for inputs that reach new code, each target for a while. `tests/found.rs` tries the seeds, and what was found
//! before, with the other tests.
//!
//! It never writes a file outside temporary folders.

mod repository;
mod seeds;
mod targets;

pub use targets::TARGETS;

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What is decoded, as the name of a file.
    pub name: &'static str,
    /// Good inputs, made anew.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Decodes; panics when a promise is broken.
    pub decode: fn(&[u8]),
}

impl Target {
    /// The target of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.iter().find(|target| target.name == name).copied()
    }
}
