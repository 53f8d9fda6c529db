//! Counters of the registry, read by the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Sizes now, and counters since the start.
#[derive(Debug, Default)]
pub struct Stats {
    /// Long checks of schemas that run.
    pub checks_running: AtomicU64,
    /// Long checks that wait for a slot.
    pub checks_waiting: AtomicU64,
    /// Checks that were stopped at the limit of steps.
    pub checks_too_large: AtomicU64,
    /// Checks that were stopped because the caller had closed its connection.
    pub checks_unwanted: AtomicU64,
    /// Requests that were refused because too many ran at once.
    pub requests_refused: AtomicU64,
    /// Bytes of the texts and identities of all schemas.
    pub schema_bytes: AtomicU64,
}

impl Stats {
    /// Counts a request that was stopped by a limit or by its caller.
    pub(crate) fn count<T>(&self, done: &Result<T, Error>) {
        let counter = match done {
            Err(Error::TooMuchWork(_)) => &self.checks_too_large,
            Err(Error::Abandoned) => &self.checks_unwanted,
            Err(Error::Busy) => &self.requests_refused,
            Ok(_) | Err(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
