//! The log that the node runs on, embedded or on Kafka. No other file of the node knows which.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use everlog_config::Config;
use everlog_config::DataDir;
use everlog_log::Log;
use everlog_log_kafka::Kafka;
use everlog_partition::RowsFault;
use everlog_rocks::log::Embedded;
use everlog_rocks::rows::SharedRows;
use everlog_store::CommittedRows;

use crate::storage::row_directories::{RowDirectories, SetAside};

/// The way out where stored bytes cannot be decoded: they are damaged, or another program wrote them.
pub const UNDECODABLE_WAY_OUT: &str = "nothing is guessed: on Kafka, move the partition's directory under `rows` of the data directory away, and it is \
     restored from the changelog; if that says the same, or there is no Kafka, restore a backup";

/// An open log, and the rows of its partitions.
#[derive(Clone)]
pub enum LogBackend {
    /// All in one database of the data directory.
    Embedded(Arc<Embedded>),
    /// The log on brokers; the rows beside it, in a directory for each partition.
    Kafka(OnKafka),
}

/// What a node on Kafka keeps.
#[derive(Clone)]
pub struct OnKafka {
    /// The log itself.
    pub log: Arc<Kafka>,
    rows: Arc<RowDirectories>,
}

impl LogBackend {
    /// Opens the log of the settings. On Kafka the topics must exist. Brokers that do not answer are waited for on
    /// another thread, so that the caller may give up.
    ///
    /// # Errors
    /// The reason and the way out.
    pub async fn open(config: &Config, data: &DataDir) -> Result<Self> {
        let began = Instant::now();
        if config.kafka.is_used() {
            data.make()?;
            let options = config.kafka.options(&config.server.name);
            let opened = tokio::task::spawn_blocking(move || Kafka::open(options)).await;
            let log = opened.context("its opening panicked")?.map_err(|error| config.kafka.explain(error))?;
            refuse_unfinished_import(&log, &format!("the topics {}*", config.kafka.prefix))?;
            tracing::info!(
                brokers = config.kafka.bootstrap_servers,
                prefix = config.kafka.prefix,
                partitions = log.partitions(),
                took_ms = everlog_log::clock::elapsed_ms(began),
                "log on Kafka opened"
            );
            let rows =
                RowDirectories::new(data.rows(), config.memory.database_bytes, config.kafka.rows_aside_max);
            return Ok(Self::Kafka(OnKafka { log: Arc::new(log), rows: Arc::new(rows) }));
        }
        let log = data.open(config)?;
        refuse_unfinished_import(&log, &data.path().display().to_string())?;
        let found = log.recovery();
        tracing::info!(
            dir = %data.path().display(),
            created = found.created,
            torn_bytes = found.torn_bytes,
            unapplied_records = found.unapplied_records,
            took_ms = everlog_log::clock::elapsed_ms(began),
            "data directory opened"
        );
        Ok(Self::Embedded(Arc::new(log)))
    }

    /// The log itself.
    pub fn log(&self) -> Arc<dyn Log> {
        match self {
            Self::Embedded(log) => Arc::clone(log) as Arc<dyn Log>,
            Self::Kafka(backend) => Arc::clone(&backend.log) as Arc<dyn Log>,
        }
    }

    /// The partitions whose rows are kept beside the log.
    pub fn kept_rows(&self) -> BTreeSet<u32> {
        match self {
            Self::Embedded(_) => BTreeSet::new(),
            Self::Kafka(backend) => backend.rows.kept(),
        }
    }

    /// The name of the store, for clients.
    pub fn store_name(&self) -> &'static str {
        match self {
            Self::Embedded(_) => "rocksdb",
            Self::Kafka(_) => "kafka",
        }
    }

    /// True where an error of the log may go away by itself, and damaged rows can be restored from it.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Kafka(_))
    }

    /// The committed rows of a partition. Damaged rows that the log can restore are set aside.
    ///
    /// # Errors
    /// The database has none; the directory is in use or cannot be written.
    pub fn rows(&self, partition: u32) -> Result<Box<dyn CommittedRows>, everlog_store::Error> {
        match self {
            Self::Embedded(log) => Ok(Box::new(SharedRows::new(log.database())?)),
            Self::Kafka(backend) => backend.rows.open(partition),
        }
    }

    /// Keeps rows beside the log open for the next user.
    pub fn keep_rows_open(&self, partition: u32, rows: Box<dyn CommittedRows>) {
        match self {
            Self::Embedded(_) => {}
            Self::Kafka(backend) => backend.rows.keep_open(partition, rows),
        }
    }

    /// Closes rows that were kept open.
    pub fn close_rows(&self, partition: u32) {
        match self {
            Self::Embedded(_) => {}
            Self::Kafka(backend) => backend.rows.close(partition),
        }
    }

    /// Makes room for new rows of a partition. Nobody may have the old ones open.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn set_rows_aside(
        &self,
        partition: u32,
        fault: RowsFault,
        reason: &str,
    ) -> Result<(), everlog_store::Error> {
        match self {
            Self::Embedded(_) => Ok(()),
            Self::Kafka(backend) => backend.rows.set_aside(partition, fault, reason),
        }
    }

    /// How often rows were set aside; none where the log keeps them.
    pub fn rows_set_aside(&self) -> Option<Arc<SetAside>> {
        match self {
            Self::Embedded(_) => None,
            Self::Kafka(backend) => Some(backend.rows.counts()),
        }
    }

    /// The health of the log, for readers that do not keep it open.
    pub fn health_source(&self) -> HealthSource {
        match self {
            Self::Embedded(log) => HealthSource::Embedded(Arc::downgrade(log)),
            Self::Kafka(backend) => HealthSource::Kafka(Arc::downgrade(&backend.log)),
        }
    }

    /// Closes the log. False where it is still in use.
    pub fn close(self) -> bool {
        match self {
            Self::Embedded(log) => Arc::into_inner(log).map(drop).is_some(),
            Self::Kafka(backend) => Arc::into_inner(backend.log).map(drop).is_some(),
        }
    }
}

/// A log that has only a part of an export must not be served: what is missing would seem lost.
fn refuse_unfinished_import(log: &dyn Log, place: &str) -> Result<()> {
    anyhow::ensure!(
        !everlog_log::has_unfinished_import(log)?,
        "an import into {place} was not finished, or is still running; remove what it has made and import again"
    );
    Ok(())
}

/// Where partitions are restored from, for messages; empty on the embedded log.
pub fn from_topics(config: &Config) -> String {
    if config.kafka.is_used() { format!(" from the topics {}*", config.kafka.prefix) } else { String::new() }
}

/// Why partitions cannot be recovered, with the way out where it is known.
pub fn explain(error: everlog_partition::Error, config: &Config, data: &DataDir) -> anyhow::Error {
    let from = from_topics(config);
    match &error {
        // The database's own words for a locked file.
        everlog_partition::Error::Store(everlog_store::Error::Io { detail }) if detail.contains("lock") => {
            anyhow!("{detail}; {}", data.is_in_use())
        }
        everlog_partition::Error::Wire(everlog_wire::Error::Decode { .. }) => {
            anyhow!("the partitions cannot be recovered{from}: {error}; {UNDECODABLE_WAY_OUT}")
        }
        _ => anyhow::Error::from(error).context(format!("the partitions cannot be recovered{from}")),
    }
}

/// The health of a log. Does not keep the log open.
#[derive(Clone)]
pub enum HealthSource {
    /// Of the embedded log.
    Embedded(Weak<Embedded>),
    /// Of a log on Kafka.
    Kafka(Weak<Kafka>),
}

impl HealthSource {
    /// Why the log has failed for good, if it has. A log on Kafka never does, because brokers may come back.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Embedded(log) => log.upgrade()?.failure().map(|failure| failure.to_string()),
            Self::Kafka(_) => None,
        }
    }

    /// Why nothing can be written at the moment: the brokers do not answer.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Embedded(_) => None,
            Self::Kafka(log) => log.upgrade()?.trouble(),
        }
    }

    /// Writes are refused because the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Embedded(log) => log.upgrade().is_some_and(|log| log.is_full()),
            Self::Kafka(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_embedded_log_is_closed_by_whoever_has_it_last() {
        let data = DataDir::ephemeral().expect("a directory");
        let backend = LogBackend::open(&Config::default(), &data).await.expect("it is new");
        assert_eq!((backend.store_name(), backend.is_remote()), ("rocksdb", false));
        let (user, sight) = (backend.log(), backend.health_source());
        backend.rows(0).map(drop).expect("the database has them");
        assert!(!backend.clone().close(), "a clone keeps it open");
        drop(user);
        assert_eq!((sight.failure(), sight.is_full()), (None, false));
        assert!(backend.close());
        assert_eq!(sight.failure(), None);
    }
}
