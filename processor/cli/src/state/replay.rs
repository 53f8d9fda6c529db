//! Applies what the journal of a partition holds behind its last commit, and commits it to a copy that nobody serves.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use everlog_config::Config;
use everlog_log::Log;
use everlog_log::clock::now_ms;
use everlog_partition::{
    Config as PartitionConfig, Dispatcher, Partition, PartitionSender, UncommittedBudget, Unnamed,
};
use everlog_store::{CommittedRows, Store};

/// How long a commit may take.
const COMMIT_WITHIN: Duration = Duration::from_secs(60);
/// Times that a commit is tried: the disk may be full.
const COMMITS_MAX: usize = 100;
/// Memory of a partition whose journal is applied: its owner alone appends there, and no more than may wait for a commit.
const UNCOMMITTED_BYTES_MAX: usize = 256 << 20;

/// Applies the journal of a partition and commits it. Nothing is appended. The copy is in `dir`.
pub fn replay(
    partition: u32,
    log: Arc<dyn Log>,
    rows: Box<dyn CommittedRows>,
    settings: &PartitionConfig,
    dir: &Path,
) -> Result<()> {
    let (sender, inbox) = mpsc::channel();
    let send: PartitionSender = Arc::new(move |to, event| to == partition && sender.send(event).is_ok());
    let mut owner = Partition::<dyn Log, Box<dyn CommittedRows>>::recover(
        partition,
        log,
        Store::new(rows),
        Dispatcher::new(now_ms),
        send,
        settings.clone(),
        Arc::default(),
    )?;
    for _ in 0..COMMITS_MAX {
        owner.commit_replayed(now_ms())?;
        if owner.has_committed() {
            return Ok(());
        }
        let event = inbox.recv_timeout(COMMIT_WITHIN).context("a commit takes too long")?;
        owner.handle(event, now_ms())?;
    }
    bail!("partition {partition} cannot be committed in {}: is the disk full?", dir.display())
}

/// Of a partition that replays and commits, and does nothing else.
pub fn partition_config(config: &Config) -> PartitionConfig {
    let partition = &config.partition;
    PartitionConfig {
        node: "export".into(),
        instance: Bytes::new(),
        levels: Arc::new(0_u32),
        public: Arc::new(Unnamed),
        ending_counts: Arc::new(everlog_partition::Uncounted),
        command_observer: None,
        settings: config.limits.engine(),
        commit_interval_ms: partition.commit_interval_ms,
        overlay_bytes_max: UNCOMMITTED_BYTES_MAX,
        room: UncommittedBudget::new(UNCOMMITTED_BYTES_MAX),
        cached_runs_max: config.memory.cached_runs_max,
        appends_max: partition.appends_max,
        append_records_max: partition.append_records_max,
        wakes_max: partition.wakes_max,
        buffered_queries_max: partition.buffered_queries_max,
        journal_keep_records: partition.journal_keep_records,
    }
}
