//! The referee's clock. Leases are judged on its monotonic side; its wall side is for people.

use std::sync::Mutex;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use zit_model::{Instant, Now, UnixSeconds};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present, on both clocks.
    fn now(&self) -> Now;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic side starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now { monotonic: Instant::at(self.started.elapsed()), wall: wall() }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one clock that others take as an argument"
)]
fn wall() -> UnixSeconds {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UnixSeconds(since.map_or(0, |since| since.as_secs()))
}

/// The machine's clocks, the monotonic side counted from the machine's start: it goes on from one process to the next.
#[derive(Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Now {
        let booted = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(booted.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(booted.tv_nsec).unwrap_or(0);
        Now { monotonic: Instant::at(Duration::new(seconds, nanos)), wall: wall() }
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug, Default)]
pub struct ManualClock {
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        *self.passed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        let passed = *self.passed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Now { monotonic: Instant::at(passed), wall: UnixSeconds(1_800_000_000 + passed.as_secs()) }
    }
}
