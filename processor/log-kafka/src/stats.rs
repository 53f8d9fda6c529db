//! Counters of the log on Kafka, read by the metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::client::statistics::Traffic;

/// Upper bounds of the buckets of `Stats::cycles` and `Stats::ends`, in microseconds; the last bucket has none.
pub const CYCLE_BOUNDS_US: [u64; 18] = [
    250, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000,
    200_000, 1_000_000, 5_000_000,
];

/// Totals since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Appends acknowledged.
    pub appends: u64,
    /// Their records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rounds in which appends were handed over together; a round is a produce request, seldom two.
    pub rounds: u64,
    /// Appends acknowledged without consecutive offsets and one stamp: other records are between, or it was two requests.
    pub scattered: u64,
    /// Appends refused because too much waited.
    pub busy: u64,
    /// Appends and commits of unknown outcome.
    pub unknown: u64,
    /// Commits done.
    pub commits: u64,
    /// Transactions they went in.
    pub transactions: u64,
    /// Records of these transactions.
    pub outputs: u64,
    /// Transactions that were ended while the client still counted something under way: next to none.
    pub undrained: u64,
    /// Commits refused because a newer owner is there.
    pub fenced: u64,
    /// Transactions by the time from begin to end, see `CYCLE_BOUNDS_US`.
    pub cycles: [u64; CYCLE_BOUNDS_US.len() + 1],
    /// The same time, summed.
    pub cycle_us: u64,
    /// The longest of them.
    pub cycle_max_us: u64,
    /// Transactions by the time from the last delivery to the end, see `CYCLE_BOUNDS_US`.
    pub ends: [u64; CYCLE_BOUNDS_US.len() + 1],
    /// The same time, summed.
    pub end_us: u64,
    /// The longest of them.
    pub end_max_us: u64,
}

/// The same, while being counted.
#[derive(Debug, Default)]
pub(crate) struct KafkaCounters {
    pub(crate) appends: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) rounds: AtomicU64,
    pub(crate) scattered: AtomicU64,
    pub(crate) busy: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) transactions: AtomicU64,
    pub(crate) outputs: AtomicU64,
    pub(crate) undrained: AtomicU64,
    pub(crate) fenced: AtomicU64,
    pub(crate) traffic: Arc<Mutex<Traffic>>,
    cycles: [AtomicU64; CYCLE_BOUNDS_US.len() + 1],
    cycle_us: AtomicU64,
    cycle_max_us: AtomicU64,
    ends: [AtomicU64; CYCLE_BOUNDS_US.len() + 1],
    end_us: AtomicU64,
    end_max_us: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl KafkaCounters {
    /// A transaction took `cycle_us` from begin to end, `end_us` of it after the last delivery.
    pub(crate) fn cycle(&self, cycle_us: u64, end_us: u64) {
        let bucket = |us: u64| CYCLE_BOUNDS_US.partition_point(|bound| *bound < us);
        add(&self.cycles[bucket(cycle_us)], 1);
        add(&self.ends[bucket(end_us)], 1);
        add(&self.cycle_us, cycle_us);
        add(&self.end_us, end_us);
        self.cycle_max_us.fetch_max(cycle_us, Ordering::Relaxed);
        self.end_max_us.fetch_max(end_us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            appends: get(&self.appends),
            records: get(&self.records),
            bytes: get(&self.bytes),
            rounds: get(&self.rounds),
            scattered: get(&self.scattered),
            busy: get(&self.busy),
            unknown: get(&self.unknown),
            commits: get(&self.commits),
            transactions: get(&self.transactions),
            outputs: get(&self.outputs),
            undrained: get(&self.undrained),
            fenced: get(&self.fenced),
            cycles: std::array::from_fn(|bucket| get(&self.cycles[bucket])),
            cycle_us: get(&self.cycle_us),
            cycle_max_us: get(&self.cycle_max_us),
            ends: std::array::from_fn(|bucket| get(&self.ends[bucket])),
            end_us: get(&self.end_us),
            end_max_us: get(&self.end_max_us),
        }
    }
}
