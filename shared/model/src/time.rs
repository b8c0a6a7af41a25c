//! Time as an argument. The referee's clock is monotonic; wall time is for people and never read back.

use std::time::Duration;

/// A moment on the referee's monotonic clock: time since it started to observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The moment `since_start` after the clock's start.
    #[must_use]
    pub fn at(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// What has passed since `earlier`; zero when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub u64);

/// The present, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Judges leases.
    pub monotonic: Instant,
    /// Shown to people and written into commits.
    pub wall: UnixSeconds,
}

impl UnixSeconds {
    /// The time as `2026-11-30T15:08:10Z` (RFC 3339, UTC).
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let (days, second) = (self.0 / 86_400, self.0 % 86_400);
        let (year, month, day) = civil_from_days(days);
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
    }
}

/// Year, month and day of the proleptic Gregorian calendar, counted in 400-year eras that begin on 1 March.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_prints_as_rfc3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_000_000_000, "2001-09-09T01:46:40Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(UnixSeconds(seconds).to_rfc3339(), text);
        }
    }
}
