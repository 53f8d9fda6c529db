//! What a partition counts; read by whoever exports metrics.

use std::sync::atomic::{AtomicI64, AtomicU64};

/// Counters and gauges of one partition.
#[derive(Debug, Default)]
pub struct Stats {
    /// Journal records applied.
    pub applied: AtomicU64,
    /// Orders refused.
    pub refused: AtomicU64,
    /// Records of a former owner that did nothing.
    pub voided: AtomicU64,
    /// Records that could not be read or made the engine fail.
    pub skipped: AtomicU64,
    /// Public commands that were ordered.
    pub forwarded: AtomicU64,
    /// Public records that were applied before: somebody brought them again.
    pub duplicates: AtomicU64,
    /// Public records that were refused.
    pub rejections: AtomicU64,
    /// Entries of public topics that could not be written: a fault of this release.
    pub unpublished: AtomicU64,
    /// Output batches committed.
    pub commits: AtomicU64,
    /// Alarms that became records.
    pub wakes: AtomicU64,
    /// Tasks that came back because nobody got them.
    pub released: AtomicU64,
    /// The offset of the next record to apply.
    pub next_offset: AtomicU64,
    /// The offset up to which outputs are committed.
    pub committed_offset: AtomicU64,
    /// Runs in memory.
    pub resident_runs: AtomicU64,
    /// Bytes that wait for a commit.
    pub overlay_bytes: AtomicU64,
    /// Alarms in the index.
    pub alarms: AtomicU64,
    /// The greatest lateness of an alarm since the last look, in ms.
    pub lateness_ms: AtomicI64,
    /// 1 while the partition serves.
    pub serving: AtomicU64,
    /// Turns taken.
    pub turns: AtomicU64,
    /// When the last turn began, in ms since 1970-01-01 UTC.
    pub turned_ms: AtomicI64,
}
