//! The rate at which responses with history leave, over all connections.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What may leave at once after a pause, as time at the full rate.
const BURST: Duration = Duration::from_millis(100);

/// A rate in bytes per second.
#[derive(Debug)]
pub(crate) struct HistoryPacing {
    bytes_per_second: u64,
    /// When everything so far would have left at the full rate.
    through: Mutex<Option<Instant>>,
}

impl HistoryPacing {
    /// 0 = unlimited.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, through: Mutex::default() }
    }

    /// When so many bytes may leave.
    pub(crate) fn next(&self, bytes: usize, now: Instant) -> Instant {
        if self.bytes_per_second == 0 {
            return now;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut through = self.through.lock();
        let rested = now.checked_sub(BURST).unwrap_or(now);
        let begins = through.map_or(rested, |through| through.max(rested));
        *through = Some(begins + takes);
        begins.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_its_rate() {
        let (pace, now) = (HistoryPacing::new(1_000), Instant::now());
        // A tenth of a second has a hundred bytes.
        assert_eq!([pace.next(60, now), pace.next(60, now)], [now, now]);
        let waits = |bytes| pace.next(bytes, now) - now;
        assert_eq!([waits(100), waits(100)], [20, 120].map(Duration::from_millis));
        let later = now + Duration::from_secs(10);
        assert_eq!(pace.next(100, later), later, "it has rested");
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let (pace, now) = (HistoryPacing::new(0), Instant::now());
        assert!((0..10).all(|_| pace.next(usize::MAX, now) == now));
    }
}
