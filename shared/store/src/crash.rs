//! Crash points: named places where a debug build can be made to die, so that tests can look at what is left.
//!
//! Set `ZIT_CRASH_AT=<name>` or `ZIT_CRASH_AT=<name>:<n>` (the nth time) and the process aborts there, without
//! running any destructor. A release build has none of this.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every crash point, in the order a push meets them.
pub const CRASH_POINTS: &[&str] = &[
    "quarantine.received",
    "tx.planned",
    "tx.locked",
    "tx.verified",
    "quarantine.migrating",
    "quarantine.migrated",
    "tx.staged",
    "journal.written",
    "tx.journaled",
    "tx.renamed",
    "tx.done",
    "settle.packed",
    "settle.objects",
    "settle.refs",
    "checkpoint.flushed",
    "checkpoint.written",
];

/// Every crash point of a push that makes the repository shallow, beyond those, in order.
pub const SHALLOW_CRASH_POINTS: &[&str] = &["shallow.locked", "shallow.renamed"];

/// Every crash point of maintenance, in order.
pub const MAINTENANCE_CRASH_POINTS: &[&str] =
    &["maintain.refs", "maintain.objects", "maintain.graph"];

/// Where this process is to die, and at which visit.
struct Planned {
    name: String,
    visit: u32,
}

/// Dies here if the environment says so; does nothing in a release build.
pub fn crash_point(name: &'static str) {
    static PLANNED: OnceLock<Option<Planned>> = OnceLock::new();
    static VISITS: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return;
    }
    let planned = PLANNED.get_or_init(|| std::env::var("ZIT_CRASH_AT").ok().map(|at| parse(&at)));
    if let Some(planned) = planned
        && planned.name == name
        && VISITS.fetch_add(1, Ordering::Relaxed) + 1 == planned.visit
    {
        std::process::abort();
    }
}

/// Fails, once, as a broken disk does, where `ZIT_FAIL_AT=<name>:<n>` asks for it; never in a release build.
pub(crate) fn fault(name: &'static str) -> std::io::Result<()> {
    static PLANNED: OnceLock<Option<Planned>> = OnceLock::new();
    static VISITS: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let planned = PLANNED.get_or_init(|| std::env::var("ZIT_FAIL_AT").ok().map(|at| parse(&at)));
    let fails = planned.as_ref().is_some_and(|planned| {
        planned.name == name && VISITS.fetch_add(1, Ordering::Relaxed) + 1 == planned.visit
    });
    if fails { Err(rustix::io::Errno::IO.into()) } else { Ok(()) }
}

/// A limit, in bytes, which a debug build takes from the environment, so that a test need not write so much to get there.
pub(crate) fn limit(name: &'static str, default: u64) -> u64 {
    if !cfg!(debug_assertions) {
        return default;
    }
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn parse(at: &str) -> Planned {
    let (name, visit) = at.split_once(':').unwrap_or((at, "1"));
    Planned { name: name.to_owned(), visit: visit.parse().unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_point_is_named_with_or_without_the_visit() {
        assert_eq!(parse("tx.journaled").visit, 1);
        assert_eq!(parse("tx.renamed:3").visit, 3);
        assert_eq!(parse("tx.renamed:3").name, "tx.renamed");
    }
}
