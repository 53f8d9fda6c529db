//! What a partition is told to keep to.

use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::Settings;

use crate::journal::uncommitted_budget::UncommittedBudget;
use crate::public::command_observer::CommandObserver;
use crate::public::outputs::NameResolver;
use crate::stats::EndingCounts;

/// How long appends and commits rest after the log had no room, in ms.
pub(crate) const HOLD_MS: i64 = 200;

/// Which levels of decisions are in force. It is asked again and again.
pub trait LevelSource: Send + Sync {
    /// That of a partition which nobody has owned yet.
    fn of_new_partition(&self) -> u32;

    /// The level that all partitions are raised to; 0: they stay at theirs.
    fn raised(&self) -> u32;
}

/// One level for all.
impl LevelSource for u32 {
    fn of_new_partition(&self) -> u32 {
        *self
    }

    fn raised(&self) -> u32 {
        *self
    }
}

/// What a partition is told to keep to.
#[derive(Clone)]
pub struct Config {
    /// The node's name, for its `Owner` records.
    pub node: String,
    /// Random, made for each recovery of each partition: `Owner` records of another one mean that it took over.
    pub instance: Bytes,
    /// The level of decisions that it names as an owner, unless the journal is at a higher one already.
    pub levels: Arc<dyn LevelSource>,
    /// The names that it publishes under.
    pub public: Arc<dyn NameResolver>,
    /// Told how workflows, tasks and activities end.
    pub ending_counts: Arc<dyn EndingCounts>,
    /// Told of public commands; none where nobody wants to know.
    pub command_observer: Option<Arc<dyn CommandObserver>>,
    /// Limits of the engine; they reach decisions as a record.
    pub settings: Settings,
    /// How long outputs are gathered before they are committed, in ms.
    pub commit_interval_ms: i64,
    /// Uncommitted bytes at which a commit begins early; at twice as many, ordinary orders are refused unless there is
    /// `room`.
    pub overlay_bytes_max: usize,
    /// What all partitions of the node may hold uncommitted between them.
    pub room: Arc<UncommittedBudget>,
    /// Runs that stay in memory.
    pub cached_runs_max: usize,
    /// Appends on their way at once.
    pub appends_max: usize,
    /// Records of one append.
    pub append_records_max: usize,
    /// Alarms that become records in one turn.
    pub wakes_max: usize,
    /// Questions that may wait for a workflow task of one run.
    pub buffered_queries_max: usize,
    /// Applied journal records that are kept, for forensics.
    pub journal_keep_records: u64,
}
