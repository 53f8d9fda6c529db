//! The two clocks of the crate: what the wall says, by which tokens and keys expire, and time that passes evenly.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Clocks, which tests move.
pub(crate) trait Clocks: Send + Sync {
    /// Seconds since 1970-01-01 UTC. The system's clock may be set.
    fn wall_s(&self) -> f64;

    /// Time since some moment. It never goes back.
    fn steady(&self) -> Duration;
}

/// The clocks of the system.
pub(crate) struct SystemClocks {
    since: Instant,
}

impl SystemClocks {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now() }
    }
}

impl Clocks for SystemClocks {
    fn wall_s(&self) -> f64 {
        // A clock before 1970 is wrong: nothing has expired by it, and every token is ahead of it.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }

    fn steady(&self) -> Duration {
        self.since.elapsed()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use parking_lot::Mutex;

    use super::*;

    /// Clocks that stand still until a test moves them.
    pub(crate) struct TestClocks(Mutex<(f64, Duration)>);

    impl TestClocks {
        /// 2026-01-01, and time zero.
        pub(crate) fn new() -> Self {
            Self(Mutex::new((1_767_225_600.0, Duration::ZERO)))
        }

        /// Time passes.
        pub(crate) fn advance(&self, span: Duration) {
            let mut now = self.0.lock();
            now.0 += span.as_secs_f64();
            now.1 += span;
        }

        /// Somebody sets the system's clock.
        pub(crate) fn set_wall_by_s(&self, seconds: f64) {
            self.0.lock().0 += seconds;
        }
    }

    impl Clocks for TestClocks {
        fn wall_s(&self) -> f64 {
            self.0.lock().0
        }

        fn steady(&self) -> Duration {
            self.0.lock().1
        }
    }
}
