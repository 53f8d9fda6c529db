//! Where an import writes: a new log. It has a mark until the import is finished, and no node serves it before.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use everlog_config::Config;
use everlog_config::data_dir::DataDir;
use everlog_log::{Commit, Error, Fence, IMPORT_MARK, Log, Output, has_unfinished_import};
use everlog_log_kafka::{Kafka, topics};
use everlog_rocks::log::Embedded;
use everlog_rocks::rows::SharedRows;
use everlog_store::CommittedRows;

use super::control;
use super::kafka_source::{RestoredRows, ensure_stopped};
use super::row_file::Row;

/// Bytes of rows of one commit.
const COMMIT_BYTES: usize = 4 << 20;
/// Commits that are on their way at once.
const COMMITS_MAX: usize = 3;
/// Messages of one append.
const APPENDED_MAX: usize = 1_000;
/// Memory of a row besides its bytes.
const ROW_BYTES: usize = 64;

/// A new log.
pub struct Target {
    log: Arc<dyn Log>,
    place: TargetLog,
    fences: Vec<Fence>,
    position: Bytes,
    /// The partition whose rows wait for a commit.
    partition: u32,
    outputs: Vec<Output>,
    outputs_bytes: usize,
    under_way: VecDeque<Receiver<Result<(), Error>>>,
}

enum TargetLog {
    Embedded(Arc<Embedded>, PathBuf),
    Kafka(RestoredRows),
}

impl Target {
    /// Makes the log, with so many partitions. Refuses a place where anything is.
    pub fn create(config: &mut Config, partitions: Option<u32>) -> Result<Self> {
        let (log, place): (Arc<dyn Log>, TargetLog) = if config.kafka.is_used() {
            config.kafka.partitions = partitions.unwrap_or(config.kafka.partitions);
            let log = on_kafka(config)?;
            (log, TargetLog::Kafka(RestoredRows::below(&std::env::temp_dir())?))
        } else {
            config.log.partitions = partitions.unwrap_or(config.log.partitions);
            let log = Arc::new(in_directory(config)?);
            let dir = config.server.data_dir.clone();
            (Arc::clone(&log) as Arc<dyn Log>, TargetLog::Embedded(log, dir))
        };
        log.control_put(IMPORT_MARK, Some(env!("CARGO_PKG_VERSION").as_bytes()))?;
        let fences = fences(&*log)?;
        Ok(Self {
            log,
            place,
            fences,
            position: Bytes::new(),
            partition: 0,
            outputs: Vec::new(),
            outputs_bytes: 0,
            under_way: VecDeque::new(),
        })
    }

    pub fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// The position of every partition: it goes along with each commit.
    pub fn begin(&mut self, position: Bytes) {
        self.position = position;
    }

    /// Appends records to a journal that nobody owns.
    pub fn append(&self, partition: u32, records: &[Bytes]) -> Result<()> {
        for records in records.chunks(APPENDED_MAX) {
            let (done, appended) = sync_channel(1);
            let done = Box::new(move |result: Result<_, Error>| {
                // Whoever waits for it is gone.
                let _ = done.send(result.map(drop));
            });
            self.log.append(partition, records.to_vec(), done);
            appended.recv().context("an append has no outcome")??;
        }
        Ok(())
    }

    /// Adds a row to the next commit of its partition.
    pub fn put(&mut self, partition: u32, output: Output) -> Result<()> {
        if partition != self.partition && !self.outputs.is_empty() {
            self.commit(self.partition)?;
        }
        self.partition = partition;
        self.outputs_bytes += output.key.len() + output.value.as_ref().map_or(0, Bytes::len) + ROW_BYTES;
        self.outputs.push(output);
        if self.outputs_bytes >= COMMIT_BYTES { self.commit(partition) } else { Ok(()) }
    }

    /// Every partition has a position, and all that was put is committed.
    pub fn commit_all(&mut self) -> Result<()> {
        for partition in self.partition..self.log.partitions() {
            self.commit(partition)?;
        }
        for partition in 0..self.partition {
            self.commit(partition)?;
        }
        while let Some(outcome) = self.under_way.pop_front() {
            outcome.recv().context("a commit has no outcome")??;
        }
        Ok(())
    }

    fn commit(&mut self, partition: u32) -> Result<()> {
        while self.under_way.len() >= COMMITS_MAX {
            let Some(outcome) = self.under_way.pop_front() else { break };
            outcome.recv().context("a commit has no outcome")??;
        }
        self.outputs_bytes = 0;
        let commit = Commit {
            partition,
            fence: *self.fences.get(partition as usize).context("every partition has a fence")?,
            applied: 0,
            position: self.position.clone(),
            outputs: std::mem::take(&mut self.outputs),
            index: Vec::new(),
        };
        let (done, outcome) = sync_channel(1);
        let done = Box::new(move |result| {
            // Whoever waits for it is gone.
            let _ = done.send(result);
        });
        self.log.commit(commit, done);
        self.under_way.push_back(outcome);
        Ok(())
    }

    /// Writes the rows of `control`, and the keys of task tokens to where a node looks for them.
    pub fn put_control(&self, rows: &[Row]) -> Result<()> {
        let keeps_keys = matches!(self.place, TargetLog::Kafka(_));
        for (key, value) in rows.iter().filter(|row| keeps_keys || !control::is_token_key(row)) {
            self.log.control_put(key, Some(value))?;
        }
        match &self.place {
            TargetLog::Embedded(_, dir) => control::write_token_keys(dir, rows),
            TargetLog::Kafka(_) => Ok(()),
        }
    }

    /// The rows of a partition as its next owner finds them.
    pub fn rows(&self, partition: u32) -> Result<Box<dyn CommittedRows>> {
        match &self.place {
            TargetLog::Embedded(log, _) => Ok(Box::new(SharedRows::new(log.database())?)),
            TargetLog::Kafka(restored) => restored.of(&*self.log, partition),
        }
    }

    /// Nodes may serve it from here on. Everything is durable.
    pub fn finish(self) -> Result<()> {
        self.log.control_put(IMPORT_MARK, None)?;
        Ok(())
    }
}

/// All partitions are ours; those of a group are taken together, which takes no longer than one of them.
fn fences(log: &dyn Log) -> Result<Vec<Fence>> {
    let (mut fences, mut next) = (Vec::new(), 0);
    while next < log.partitions() {
        let group = log.committed_with(next);
        next = group.end.max(next + 1);
        let taken: Vec<Result<Fence, Error>> = std::thread::scope(|threads| {
            let taking: Vec<_> = group.map(|partition| threads.spawn(move || log.fence(partition))).collect();
            let joined = taking.into_iter().map(|taking| taking.join().unwrap_or(Err(Error::Closed)));
            joined.collect()
        });
        for fence in taken {
            fences.push(fence?);
        }
    }
    Ok(fences)
}

fn in_directory(config: &Config) -> Result<Embedded> {
    let dir = &config.server.data_dir;
    let data = DataDir::lasting(dir);
    let shown = dir.display();
    if data.log_location().is_some() {
        // Where the partitions differ it is a log as well, and the same refusal.
        let is_unfinished = data.open(config).is_ok_and(|log| has_unfinished_import(&log).unwrap_or(false));
        ensure!(
            !is_unfinished,
            "an import into {shown} was not finished; remove the directory and import again"
        );
        bail!("{shown} has a log; import into a new directory (--data-dir)");
    }
    data.open(config)
}

fn on_kafka(config: &Config) -> Result<Arc<dyn Log>> {
    let explain = |error| config.kafka.explain(error);
    let options = config.kafka.options("import");
    let topics::Creation { created, .. } = topics::create(&options).map_err(explain)?;
    if created.is_empty() {
        ensure_stopped(config, &options)?;
    }
    let log = Kafka::open(options).map_err(explain)?;
    let prefix = &config.kafka.prefix;
    ensure!(
        !has_unfinished_import(&log)?,
        "an import into the topics {prefix}* was not finished; delete these topics, or name another prefix (--kafka-prefix)"
    );
    let mut is_new = true;
    log.control_scan(&mut |_, _| is_new = false)?;
    for partition in 0..log.partitions() {
        is_new = is_new && log.bounds(partition)?.end == 0 && log.position(partition)?.is_none();
    }
    ensure!(is_new, "there is a log in the topics {prefix}*; import under a new prefix (--kafka-prefix)");
    ensure!(
        log.partitions() == config.kafka.partitions,
        "the topics {prefix}* have {} partitions, and {} were asked for; name another prefix (--kafka-prefix)",
        log.partitions(),
        config.kafka.partitions
    );
    Ok(Arc::new(log))
}
