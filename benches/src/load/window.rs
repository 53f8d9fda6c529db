//! The time that counts: what begins before or after it is load, not measurement.

use std::time::{Duration, Instant};

/// From when until when operations are measured.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: Instant,
    pub until: Instant,
}

/// How long a measurement by number of operations may take at most.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Window {
    /// A window that opens after `warmup`.
    pub fn of_duration(warmup: Duration, duration: Duration) -> Self {
        let from = Instant::now() + warmup;
        Self { from, until: from + duration }
    }

    /// A window that is open now, until the operations are done.
    pub fn of_operations() -> Self {
        let from = Instant::now();
        Self { from, until: from + LONGEST }
    }

    pub fn contains(&self, at: Instant) -> bool {
        self.from <= at && at < self.until
    }
}
