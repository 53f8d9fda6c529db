//! What the writer has done so far, counted in atomics.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Counters {
    pub(super) appends: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) write_us: AtomicU64,
    pub(super) write_max_us: AtomicU64,
}

/// A snapshot of the counters; each counts from the opening of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Acknowledged appends.
    pub appends: u64,
    /// Journal records in them.
    pub records: u64,
    /// Acknowledged commits.
    pub commits: u64,
    /// Bytes of the written batches, keys and framing included.
    pub bytes: u64,
    /// Batches written.
    pub batches: u64,
    /// Batches that were synced.
    pub syncs: u64,
    /// Microseconds spent in writing and syncing batches.
    pub write_us: u64,
    /// The slowest batch, microseconds.
    pub write_max_us: u64,
    /// Appends that wait at the moment.
    pub waiting_appends: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, waiting_appends: usize, waiting_bytes: usize) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            appends: get(&self.appends),
            records: get(&self.records),
            commits: get(&self.commits),
            bytes: get(&self.bytes),
            batches: get(&self.batches),
            syncs: get(&self.syncs),
            write_us: get(&self.write_us),
            write_max_us: get(&self.write_max_us),
            waiting_appends: waiting_appends as u64,
            waiting_bytes: waiting_bytes as u64,
        }
    }
}
