//! Public commands on Kafka: the topic `commands` is read into the journals while the node runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use everlog_avro::PublicTopic;
use everlog_cluster::Cluster;
use everlog_config::Config;
use everlog_ingress::{Ingress, Options, SharedJournals, Stats};
use everlog_log::clock::now_ms;
use everlog_log::consumer::{ConsumedTopic, Polled, SourceError};
use everlog_log::{Backoff, Log, Outage};
use everlog_log_kafka::commands::retention::CommandsRetention;
use everlog_log_kafka::commands::source;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::services::names::NodeNames;
use crate::services::schemas::Lookup;

/// The pause before the topic is opened again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// How long a stop waits until the consumer group has the last offsets.
pub const END_WITHIN: Duration = Duration::from_millis(1_500);
/// How often old commands are deleted: so many times in the time that they are kept, within these bounds.
const KEEP_PARTS: u64 = 8;
const KEEP_LOOK_MS_MIN: u64 = 1_000;
const KEEP_LOOK_MS_MAX: u64 = 600_000;
/// Partitions that a reason names.
const NAMED_MAX: usize = 2;
const NOT_YET: &str = "commands are not read yet";

/// The health of the reader.
#[derive(Default)]
pub struct CommandsHealth {
    stats: OnceLock<Arc<Stats>>,
    lag: OnceLock<source::Lag>,
    trouble: Mutex<Option<String>>,
}

impl CommandsHealth {
    /// Its counters, once the topic is open.
    pub fn stats(&self) -> Option<&Stats> {
        self.stats.get().map(Arc::as_ref)
    }

    /// For each partition of the topic that this node reads: offsets that are not in a journal yet.
    pub fn lag(&self) -> BTreeMap<u32, u64> {
        self.lag.get().map(source::Lag::by_partition).unwrap_or_default()
    }

    /// Why commands are not read, of all partitions or of some; none where they are.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.or_else(|| {
            let stopped = self.stats()?.stopped();
            let told = stopped.iter().take(NAMED_MAX);
            let mut told: Vec<_> = told
                .map(|(partition, why)| format!("commands of partition {partition} are not read: {why}"))
                .collect();
            if stopped.len() > NAMED_MAX {
                told.push(format!("and those of {} others", stopped.len() - NAMED_MAX));
            }
            (!told.is_empty()).then(|| told.join("; "))
        })
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The reader of a node's commands.
pub struct CommandReader {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    health: Arc<CommandsHealth>,
}

impl CommandReader {
    /// Starts to read, once partition groups may be assigned to this node. An error from here on stops nothing else.
    pub fn start(
        config: &Config,
        log: &Arc<dyn Log>,
        cluster: &Arc<Cluster>,
        schemas: Lookup,
        names: NodeNames,
    ) -> Self {
        let health = Arc::new(CommandsHealth {
            trouble: Mutex::new(cluster.is_host().then(|| NOT_YET.into())),
            ..CommandsHealth::default()
        });
        let (stop, stopped) = watch::channel(false);
        let reading = RunningReader {
            kafka: config.kafka.options(&config.server.name),
            options: config.ingress_options(names.ids.of(PublicTopic::Command)),
            journals: SharedJournals::new(log),
            cluster: Arc::clone(cluster),
            schemas,
            names,
            health: Arc::clone(&health),
        };
        tokio::spawn(keep(reading.kafka.clone(), config.ingress.keep_ms, stopped.clone()));
        Self { stop, task: tokio::spawn(reading.run(stopped)), health }
    }

    /// Its health.
    pub fn health(&self) -> Arc<CommandsHealth> {
        Arc::clone(&self.health)
    }

    /// Stops reading. What is in progress is read again by the next reader.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(END_WITHIN, self.task).await.is_err() {
            tracing::warn!("last offsets of commands not committed: they are read again, and count once");
        }
    }
}

struct RunningReader {
    kafka: everlog_log_kafka::Options,
    options: Options,
    journals: SharedJournals<dyn Log>,
    cluster: Arc<Cluster>,
    schemas: Lookup,
    names: NodeNames,
    health: Arc<CommandsHealth>,
}

impl RunningReader {
    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let opened = tokio::select! {
            opened = self.open() => opened,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Self { options, journals, schemas, names, health, .. } = self;
        // Both are set once, here.
        let _ = health.lag.set(opened.lag());
        let (source, closed) = Consumer::new(opened);
        let ingress = Ingress::new(source, journals, schemas, names, options);
        let _ = health.stats.set(ingress.stats());
        health.set_trouble(None);
        let mut asked = stopped.clone();
        let ended = ingress.run(async move {
            // A dropped sender means the same.
            drop(asked.wait_for(|stopped| *stopped).await);
        });
        if let Err(fault) = ended.await {
            tracing::error!(fault, "reader of commands failed");
            health.set_trouble(Some(format!("commands are not read any more: {fault}")));
        }
        // A dropped sender has closed it too.
        let _ = closed.await;
    }

    /// Opens the topic, however long that takes. A new node leaves the topic to the others first: the group waits for
    /// each reader that dies, so an unsteady node would keep other nodes from reading.
    async fn open(&self) -> source::CommandsSource {
        self.cluster.until_host().await;
        self.health.set_trouble(Some(NOT_YET.into()));
        let (mut backoff, mut outage) = (BACKOFF, Outage::default());
        loop {
            let kafka = self.kafka.clone();
            let opened = tokio::task::spawn_blocking(move || source::CommandsSource::open(&kafka)).await;
            let why = match opened {
                Ok(Ok(source)) => {
                    if let Some(lasted) = outage.works(std::time::Instant::now()) {
                        tracing::info!(after_s = lasted.as_secs(), "reader of commands recovered");
                    }
                    return source;
                }
                Ok(Err(error)) => error.to_string(),
                Err(panicked) => panicked.to_string(),
            };
            if let Some(lasts) = outage.fails(std::time::Instant::now()) {
                tracing::warn!(why, for_s = lasts.as_secs(), "reader of commands paused");
            }
            self.health.set_trouble(Some(format!("commands cannot be read: {why}")));
            tokio::time::sleep(backoff.failed()).await;
        }
    }
}

/// Deletes commands that are in the journals, once they have been kept for long enough.
async fn keep(kafka: everlog_log_kafka::Options, keep_ms: u64, mut stopped: watch::Receiver<bool>) {
    let every_ms = (keep_ms / KEEP_PARTS).clamp(KEEP_LOOK_MS_MIN, KEEP_LOOK_MS_MAX);
    let mut looks = tokio::time::interval(Duration::from_millis(every_ms));
    let mut keeper = None;
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        let (kafka, known) = (kafka.clone(), keeper.take());
        let trimmed = tokio::task::spawn_blocking(move || {
            let keeper = known.map_or_else(|| CommandsRetention::open(&kafka), Ok)?;
            keeper.trim(now_ms().saturating_sub(i64::try_from(keep_ms).unwrap_or(i64::MAX)))?;
            Ok::<_, everlog_log::Error>(keeper)
        });
        match trimmed.await {
            Ok(Ok(known)) => keeper = Some(known),
            Ok(Err(error)) => tracing::debug!(%error, "old commands not deleted"),
            Err(panicked) => tracing::warn!(%panicked, "old commands not deleted"),
        }
    }
}

/// The consumer of the topic, for the ingress.
struct Consumer {
    /// None while it is being dropped.
    source: Option<source::CommandsSource>,
    topic: ConsumedTopic,
    closed: Option<oneshot::Sender<()>>,
}

impl Consumer {
    /// The receiver gets a message when it has left its group.
    fn new(source: source::CommandsSource) -> (Self, oneshot::Receiver<()>) {
        let topic = source.topic().clone();
        let (closed, heard) = oneshot::channel();
        (Self { source: Some(source), topic, closed: Some(closed) }, heard)
    }

    fn with(&mut self, act: impl FnOnce(&mut source::CommandsSource)) {
        if let Some(source) = &mut self.source {
            act(source);
        }
    }
}

impl Drop for Consumer {
    /// Leaving a group asks the brokers, so it must not happen on a thread that serves calls.
    fn drop(&mut self) {
        let (source, closed) = (self.source.take(), self.closed.take());
        let close = move || {
            drop(source);
            closed.map(|closed| closed.send(()))
        };
        if let Err(error) = std::thread::Builder::new().name("commands-end".into()).spawn(close) {
            tracing::warn!(%error, "consumer group of commands not left");
        }
    }
}

impl everlog_ingress::Source for Consumer {
    fn topic(&self) -> ConsumedTopic {
        self.topic.clone()
    }

    async fn poll(&mut self, deadline: Instant) -> Result<Polled, SourceError> {
        let Some(source) = &mut self.source else { return std::future::pending().await };
        match tokio::time::timeout_at(deadline, std::future::poll_fn(|context| source.poll_next(context)))
            .await
        {
            Ok(polled) => polled,
            Err(_elapsed) => Ok(Polled::Records(Vec::new())),
        }
    }

    fn begin(&mut self, partition: u32, offset: u64) {
        self.with(|source| source.begin(partition, offset));
    }

    fn pause(&mut self, partition: u32) {
        self.with(|source| source.pause(partition));
    }

    fn resume(&mut self, partition: u32) {
        self.with(|source| source.resume(partition));
    }

    fn commit(&mut self, partition: u32, next: u64) {
        self.with(|source| source.commit(partition, next));
    }
}
