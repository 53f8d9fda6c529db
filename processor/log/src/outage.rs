//! An outage: an operation that is retried and fails repeatedly. It decides which failures are logged.
//!
//! | state | event | next | logged |
//! |---|---|---|---|
//! | well | fails | failing | at once |
//! | failing | fails | failing | once a minute |
//! | failing | works | well | once |
//! | failing | rests for QUIET_FOR | well | once |

use std::time::{Duration, Instant};

/// How often a failure that goes on is logged.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Without a failure for so long the outage is over, where no success is seen: clients of unreachable brokers retry within
/// 6 s.
const QUIET_FOR: Duration = Duration::from_secs(15);

/// The outage of one operation, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outage(Option<OngoingOutage>);

#[derive(Clone, Copy, Debug)]
struct OngoingOutage {
    began: Instant,
    failed: Instant,
    told: Instant,
}

impl Outage {
    /// The operation failed. Some: log it, with how long it has been failing; zero the first time.
    pub fn fails(&mut self, now: Instant) -> Option<Duration> {
        let Some(away) = &mut self.0 else {
            self.0 = Some(OngoingOutage { began: now, failed: now, told: now });
            return Some(Duration::ZERO);
        };
        away.failed = now;
        if now.saturating_duration_since(away.told) < TOLD_EVERY {
            return None;
        }
        away.told = now;
        Some(now.saturating_duration_since(away.began))
    }

    /// The operation worked. Some: log it, with how long it had been failing.
    pub fn works(&mut self, now: Instant) -> Option<Duration> {
        self.0.take().map(|away| now.saturating_duration_since(away.began))
    }

    /// The operation was not tried, or its outcome is unknown. Some: no failure for QUIET_FOR; log how long it had been failing.
    pub fn rests(&mut self, now: Instant) -> Option<Duration> {
        let away = self.0?;
        if now.saturating_duration_since(away.failed) < QUIET_FOR {
            return None;
        }
        self.0 = None;
        Some(away.failed.saturating_duration_since(away.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(told: Option<Duration>) -> Option<u64> {
        told.map(|lasts| lasts.as_secs())
    }

    #[test]
    fn what_fails_each_second_is_told_once_then_once_a_minute_and_its_end_once() {
        let (mut outage, begin) = (Outage::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!(outage.works(at(0)), None);
        let told: Vec<_> = (0..690).filter_map(|second| seconds(outage.fails(at(second)))).collect();
        assert_eq!(told, (0..=11).map(|minute| minute * 60).collect::<Vec<_>>());
        assert_eq!(seconds(outage.works(at(700))), Some(700));
        assert_eq!(outage.works(at(701)), None);
        assert_eq!(seconds(outage.fails(at(702))), Some(0), "it is another one");
    }

    #[test]
    fn what_has_not_failed_for_a_while_is_over() {
        let (mut outage, begin) = (Outage::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!(outage.rests(at(0)), None);
        outage.fails(at(1));
        outage.fails(at(6));
        assert_eq!(outage.rests(at(20)), None);
        assert_eq!(seconds(outage.rests(at(21))), Some(5));
        assert_eq!(outage.rests(at(60)), None);
    }
}
