//! A log on Kafka at one moment, whether nodes serve it or not: of each partition the last commit when the export began,
//! and the records behind it up to a cut that is consistent over all partitions.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use everlog_config::Config;
use everlog_log::clock::now_ms;
use everlog_log::{Log, Offset, buckets_of};
use everlog_log_kafka::control::client::ControlClient;
use everlog_log_kafka::{Kafka, Options};
use everlog_partition::{Config as PartitionConfig, Partition, Stats};
use everlog_rocks::rows::{DatabaseMemory, LocalRows};
use everlog_store::CommittedRows;
use tempfile::TempDir;

use super::control;
use super::cut_log::CutLog;
use super::kafka_cut::{self, CutJournal};
use super::replay::{partition_config, replay};
use super::row_file::Row;
use super::source::{ExportSource, PartitionCut};

/// Memory of the rows of one partition.
const ROWS_MEMORY_BYTES: usize = 64 << 20;

/// Rows that are restored from the topics, of one partition at a time, in a directory that is removed.
pub struct RestoredRows {
    dir: TempDir,
    memory: DatabaseMemory,
}

/// The log on Kafka.
pub struct KafkaSource {
    log: Arc<Kafka>,
    prefix: String,
    restored: RestoredRows,
    settings: PartitionConfig,
    /// Of the partitions that are not exported yet, in order.
    journals: VecDeque<CutJournal>,
    began: Instant,
    /// How far the changelogs were then.
    changelogs: Vec<Option<Offset>>,
}

impl RestoredRows {
    /// In a new directory below `parent`.
    pub fn below(parent: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("rows-").tempdir_in(parent);
        let dir = dir.with_context(|| format!("no directory can be made in {}", parent.display()))?;
        Ok(Self { dir, memory: DatabaseMemory::new(ROWS_MEMORY_BYTES) })
    }

    /// The rows of a partition's last commit. Those of the partition before must be closed; they are removed.
    pub fn of(&self, log: &dyn Log, partition: u32) -> Result<Box<dyn CommittedRows>> {
        if let Some(before) = partition.checked_sub(1).map(|before| self.place(before))
            && before.exists()
        {
            std::fs::remove_dir_all(&before)
                .with_context(|| format!("{} cannot be removed", before.display()))?;
        }
        let (rows, stats) = (self.open(partition)?, Stats::default());
        Partition::<dyn Log, Box<dyn CommittedRows>>::prepare(partition, log, &rows, &stats, now_ms())?;
        Ok(rows)
    }

    fn open(&self, partition: u32) -> Result<Box<dyn CommittedRows>> {
        Ok(Box::new(LocalRows::open(&self.place(partition), &self.memory)?))
    }

    fn place(&self, partition: u32) -> PathBuf {
        self.dir.path().join(partition.to_string())
    }
}

impl KafkaSource {
    /// Opens the log and cuts it. Rows and journals are copied into a directory below `scratch`.
    pub fn open(config: &Config, scratch: &Path) -> Result<Self> {
        let options = config.kafka.options("export");
        let log = Kafka::open(options).map_err(|error| config.kafka.explain(error))?;
        let (restored, began) = (RestoredRows::below(scratch)?, Instant::now());
        let changelogs = log.changelog_ends(0..log.partitions());
        let journals = kafka_cut::find(&log, restored.dir.path())?.into();
        let (prefix, settings) = (config.kafka.prefix.clone(), partition_config(config));
        Ok(Self { log: Arc::new(log), prefix, restored, settings, journals, began, changelogs })
    }
}

impl ExportSource for KafkaSource {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn log(&self) -> Arc<dyn Log> {
        Arc::clone(&self.log) as Arc<dyn Log>
    }

    fn control_rows(&self) -> Result<Vec<Row>> {
        control::exported(&*self.log)
    }

    fn partition(&mut self, partition: u32) -> Result<PartitionCut> {
        let (commit, records) = self.journals.pop_front().context("partitions are exported in order")?;
        let view = Arc::new(CutLog::new(Arc::clone(&self.log), commit, records));
        let mut rows = self.restored.of(&*view, partition)?;
        if !view.is_applied() {
            let log = Arc::clone(&view) as Arc<dyn Log>;
            replay(partition, log, rows, &self.settings, self.restored.dir.path())?;
            rows = self.restored.open(partition)?;
        }
        let view = Arc::into_inner(view).context("nobody else has the partition")?;
        let (position, records) = view.into_parts();
        records.remove()?;
        let buckets = buckets_of(partition, self.log.partitions());
        Ok(PartitionCut { rows, buckets, position })
    }

    /// Compaction leaves changed rows alone for a while.
    fn check(&self) -> Result<()> {
        let (lag_ms, took_ms) = (self.log.compaction_lag_ms(), self.began.elapsed().as_millis());
        // Half of it: the clocks of nodes and brokers may differ.
        if took_ms <= u128::try_from(lag_ms / 2).unwrap_or(0) {
            return Ok(());
        }
        let changelogs = self.log.changelog_ends(0..self.log.partitions());
        ensure!(
            changelogs == self.changelogs && !changelogs.contains(&None),
            "nodes change rows while they are exported, and the brokers may remove what was changed {lag_ms} ms ago: set \
             min.compaction.lag.ms of {0}changelog, {0}history and {0}timers to more than twice of what the export takes \
             ({took_ms} ms so far; kafka-configs.sh --alter --entity-type topics --entity-name {0}changelog --add-config \
             min.compaction.lag.ms=3600000), or stop all nodes",
            self.prefix
        );
        Ok(())
    }
}

/// Refuses a log that a node serves.
pub fn ensure_stopped(config: &Config, options: &Options) -> Result<()> {
    let explain = |error| config.kafka.explain(error);
    let control = ControlClient::open(options.clone()).map_err(explain)?;
    let members = control.members().map_err(explain);
    control.close();
    let members = members?;
    ensure!(
        members.is_empty(),
        "nodes serve the log {}*: {}; stop all of them (SIGTERM) and try again",
        options.prefix,
        members.join(", ")
    );
    Ok(())
}
