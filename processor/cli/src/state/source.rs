//! Where an export reads: the rows of each partition at one moment, and what is under way between partitions then.

use std::fs::{File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use everlog_config::Config;
use everlog_config::data_dir::{DataDir, LogLocation};
use everlog_log::{Error, Log, buckets_of};
use everlog_partition::Config as PartitionConfig;
use everlog_rocks::log::{Embedded, Options, snapshot};
use everlog_rocks::rows::SharedRows;
use everlog_store::CommittedRows;

use super::control;
use super::replay::{partition_config, replay};
use super::row_file::Row;

/// Copies of a directory that are tried: files of a busy node go away while they are copied.
const COPIES_MAX: usize = 10;

/// What a partition has.
pub struct PartitionCut {
    /// Its rows, of these buckets.
    pub rows: Box<dyn CommittedRows>,
    pub buckets: Range<u32>,
    /// None where it has never committed.
    pub position: Option<Bytes>,
}

/// A log at one moment.
pub trait ExportSource {
    /// `embedded` or `kafka`.
    fn kind(&self) -> &'static str;

    fn log(&self) -> Arc<dyn Log>;

    /// The rows of `control` that another log needs, keys of task tokens included.
    fn control_rows(&self) -> Result<Vec<Row>>;

    fn partition(&mut self, partition: u32) -> Result<PartitionCut>;

    /// An error where what was read so far may not be all of that moment.
    fn check(&self) -> Result<()>;
}

/// An embedded log: a copy beside it, in which everything is applied. A node may serve the log meanwhile.
pub struct EmbeddedSource {
    log: Option<Arc<Embedded>>,
    copy: PathBuf,
    token_keys: Vec<Row>,
    settings: PartitionConfig,
    _turn: File,
}

impl EmbeddedSource {
    /// Makes the copy and opens it.
    pub fn open(config: &Config) -> Result<Self> {
        let dir = &config.server.data_dir;
        match DataDir::lasting(dir).log_location() {
            Some(LogLocation::Embedded) => {}
            Some(LogLocation::Kafka) => bail!(
                "{} belongs to a node whose log is on Kafka; name its brokers (--kafka-bootstrap, --config)",
                dir.display()
            ),
            None => bail!("{} has no log; name another directory (--data-dir)", dir.display()),
        }
        let turn = turn(dir)?;
        let copy = dir.join("export");
        let log = copied(config, dir, &copy);
        let token_keys = control::token_keys_of(config, dir);
        let settings = partition_config(config);
        let mut source = Self { log: None, copy, token_keys: Vec::new(), settings, _turn: turn };
        // From here on the copy is removed however this ends.
        source.log = Some(Arc::new(log?));
        source.token_keys = token_keys?;
        Ok(source)
    }

    fn embedded(&self) -> Result<&Arc<Embedded>> {
        self.log.as_ref().context("the copy is open until the source is dropped")
    }
}

impl ExportSource for EmbeddedSource {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn log(&self) -> Arc<dyn Log> {
        let log = self.log.as_ref().expect("the copy is open until the source is dropped");
        Arc::clone(log) as Arc<dyn Log>
    }

    fn control_rows(&self) -> Result<Vec<Row>> {
        let mut rows = control::exported(&**self.embedded()?)?;
        rows.extend(self.token_keys.iter().cloned());
        Ok(rows)
    }

    fn partition(&mut self, partition: u32) -> Result<PartitionCut> {
        let log = self.embedded()?;
        let committed = Box::new(SharedRows::new(log.database())?);
        replay(partition, Arc::clone(log) as Arc<dyn Log>, committed, &self.settings, &self.copy)?;
        let rows = Box::new(SharedRows::new(log.database())?);
        let buckets = buckets_of(partition, log.partitions());
        let position = log.position(partition)?.map(|(_, position)| position);
        Ok(PartitionCut { rows, buckets, position })
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl Drop for EmbeddedSource {
    fn drop(&mut self) {
        self.log = None;
        if let Err(error) = std::fs::remove_dir_all(&self.copy) {
            tracing::warn!(dir = %self.copy.display(), %error, "copy not removed: it keeps disk space");
        }
    }
}

/// One export of a directory at a time.
fn turn(dir: &Path) -> Result<File> {
    let path = dir.join("export.lock");
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another export of {} runs; wait for its end", dir.display()),
        Err(TryLockError::Error(error)) => Err(error).context("the lock of the export"),
    }
}

/// A copy of the log, opened. One that a killed export has left is removed first.
fn copied(config: &Config, dir: &Path, copy: &Path) -> Result<Embedded> {
    let options = Options { dir: copy.into(), ..DataDir::lasting(dir).options(config) };
    let mut last = None;
    for _ in 0..COPIES_MAX {
        if copy.exists() {
            std::fs::remove_dir_all(copy).with_context(|| format!("{} cannot be removed", copy.display()))?;
        }
        match snapshot(dir, copy).and_then(|()| open(options.clone())) {
            Ok(log) => return Ok(log),
            // A file went away meanwhile.
            Err(error @ (Error::Io { .. } | Error::Corrupt { .. })) => last = Some(error),
            Err(error) => return Err(DataDir::lasting(dir).explain(error)),
        }
    }
    let why = last.map_or_else(|| anyhow!("it changes all the time"), |error| anyhow!(error));
    Err(why.context(format!("the log in {} cannot be copied", dir.display())))
}

/// Opens a log with the count of partitions that it has, whatever the settings say.
fn open(options: Options) -> Result<Embedded, Error> {
    match Embedded::open(options.clone()) {
        Err(Error::Mismatch { what: "partitions", stored, .. }) => {
            let partitions = u32::try_from(stored).unwrap_or(u32::MAX);
            Embedded::open(Options { partitions, ..options })
        }
        opened => opened,
    }
}
