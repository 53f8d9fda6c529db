//! Counters of the registry, read by the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Sizes now, and counters since the start.
#[derive(Debug, Default)]
pub struct Stats {
    /// Checks of schemas that take long and are under way.
    pub checks_running: AtomicU64,
    /// Those that wait for one of these to end.
    pub checks_waiting: AtomicU64,
    /// Checks that were given up because they took too many steps.
    pub checks_too_large: AtomicU64,
    /// Checks that were given up because nobody waited for the answer any more.
    pub checks_unwanted: AtomicU64,
    /// Requests that were refused because there were too many at once.
    pub requests_refused: AtomicU64,
    /// Bytes of all schemas, and of what tells them apart.
    pub schema_bytes: AtomicU64,
}

impl Stats {
    /// Counts what was not done for want of room, of steps, or of anybody who waits for it.
    pub(crate) fn count<T>(&self, done: &Result<T, Error>) {
        let counter = match done {
            Err(Error::TooMuchWork(_)) => &self.checks_too_large,
            Err(Error::Unwanted) => &self.checks_unwanted,
            Err(Error::Busy) => &self.requests_refused,
            Ok(_) | Err(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
