//! Counters of the ingress, read by the metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counters and gauges of one ingress.
#[derive(Debug, Default)]
pub struct Stats {
    /// Records read.
    pub records: AtomicU64,
    /// Commands appended to a journal.
    pub forwarded: AtomicU64,
    /// Invalid commands appended to a journal.
    pub unreadable: AtomicU64,
    /// Appends that failed and were repeated.
    pub retries: AtomicU64,
    /// Records that had to wait for the registry.
    pub schema_waits: AtomicU64,
    /// Polls that failed.
    pub poll_failures: AtomicU64,
    /// Records that wait.
    pub backlog_records: AtomicU64,
    /// Bytes that wait.
    pub backlog_bytes: AtomicU64,
    stopped: Mutex<BTreeMap<u32, String>>,
}

impl Stats {
    /// Partitions of the source that are not read any more, and why.
    pub fn stopped(&self) -> BTreeMap<u32, String> {
        self.stopped.lock().clone()
    }

    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self, partition: u32, why: &str) {
        let mut stopped = self.stopped.lock();
        if stopped.insert(partition, why.to_owned()).is_none() {
            tracing::error!(partition, why, "a partition of the commands is not read any more");
        }
    }

    pub(crate) fn goes_on(&self, partition: u32) {
        self.stopped.lock().remove(&partition);
    }
}
