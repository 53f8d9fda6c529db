//! How fast a job works: operations per second, without a burst after a pause.

use std::time::{Duration, Instant};

/// How far operations may come late and be made up for: timers fire late by about a millisecond.
const SLACK: Duration = Duration::from_millis(20);
/// The longest wait between two operations, for the slowest job.
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);

/// When the next operation may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    interval: Duration,
    next: Instant,
}

/// The operations per second of a job: what it asks for, at most `most`. Without a sensible wish it is `most`.
pub(crate) fn rate(asked: f32, most: f64) -> f64 {
    let asked = f64::from(asked);
    if asked > 0.0 { asked.min(most) } else { most }
}

impl Pace {
    /// `rate`: operations per second, more than 0.
    pub(crate) fn new(rate: f64, now: Instant) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(INTERVAL_MAX).min(INTERVAL_MAX);
        Self { interval, next: now }
    }

    /// When the next one may begin.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// One has begun.
    pub(crate) fn took(&mut self, now: Instant) {
        let earliest = now.checked_sub(SLACK).unwrap_or(now);
        self.next = self.next.max(earliest) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_what_it_asks_for_up_to_the_bound() {
        assert_eq!(rate(20.0, 500.0), 20.0);
        assert_eq!(rate(0.5, 500.0), 0.5);
        for unbounded in [0.0, -1.0, f32::NAN, f32::INFINITY, 501.0] {
            assert_eq!(rate(unbounded, 500.0), 500.0, "{unbounded}");
        }
    }

    #[test]
    fn operations_keep_their_distance_and_a_pause_gives_no_burst() {
        let start = Instant::now();
        let mut pace = Pace::new(10.0, start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(pace.next(), start);
        pace.took(start);
        assert_eq!(pace.next(), at(100));
        // Late by 5 ms, which the next one makes up for.
        pace.took(at(105));
        assert_eq!(pace.next(), at(200));
        pace.took(at(10_000));
        assert_eq!(pace.next(), at(10_080));
    }

    #[test]
    fn the_slowest_pace_is_one_a_day() {
        let start = Instant::now();
        let mut pace = Pace::new(f64::from(f32::MIN_POSITIVE), start);
        pace.took(start);
        assert_eq!(pace.next(), start + INTERVAL_MAX);
    }
}
