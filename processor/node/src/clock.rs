//! The clock of a thread. It shows the system's time and runs evenly, also while the system's clock is being set.

use std::time::{Duration, Instant};

use everlog_log::clock::now_ms;

/// A smaller difference from the system's clock does not count as a set clock.
const SET_BY_MIN_MS: i64 = 1_000;

/// Measures time from a moment of the system's clock on.
pub struct Clock {
    since: Instant,
    since_ms: i64,
}

impl Clock {
    /// A clock that shows what the system's clock shows.
    pub fn new() -> Self {
        Self { since: Instant::now(), since_ms: now_ms() }
    }

    /// Milliseconds since 1970-01-01 UTC, as if nobody had set the system's clock.
    pub fn now_ms(&self) -> i64 {
        self.at_ms(self.since.elapsed())
    }

    /// By how many ms the system's clock was set, or the machine slept. The clock follows it from here on.
    pub fn was_set(&mut self) -> Option<i64> {
        self.follow(self.since.elapsed(), now_ms())
    }

    fn at_ms(&self, elapsed: Duration) -> i64 {
        self.since_ms.saturating_add(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    fn follow(&mut self, elapsed: Duration, system_ms: i64) -> Option<i64> {
        let by_ms = system_ms.saturating_sub(self.at_ms(elapsed));
        if by_ms.abs() < SET_BY_MIN_MS {
            return None;
        }
        self.since_ms = self.since_ms.saturating_add(by_ms);
        Some(by_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_followed_once_and_a_slow_one_is_not() {
        let mut clock = Clock { since: Instant::now(), since_ms: 1_000_000 };
        let second = Duration::from_secs(1);
        assert_eq!(clock.follow(second, 1_001_999), None);
        assert_eq!(clock.at_ms(second), 1_001_000);
        assert_eq!(clock.follow(second, 1_001_000 + 3_600_000), Some(3_600_000));
        assert_eq!((clock.follow(second, 4_601_000), clock.at_ms(second)), (None, 4_601_000));
        assert_eq!(clock.follow(second, 1_001_000), Some(-3_600_000));
    }
}
