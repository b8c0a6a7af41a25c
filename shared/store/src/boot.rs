//! Which boot of the machine this is: what was written and not flushed during another one may be lost.

use std::fs;

/// Where Linux says it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What Linux calls this boot; `None` where nobody says.
#[must_use]
pub fn boot_id() -> Option<String> {
    let id = fs::read_to_string(BOOT_ID).ok()?.trim().to_owned();
    (!id.is_empty()).then_some(id)
}
