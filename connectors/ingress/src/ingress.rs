//! The loop of the ingress: polls the source, queues its records by partition, and commits what is durable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everlog_log::Outage;
use everlog_log::consumer::{Assigned, ConsumedTopic, Polled, SourceError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::decoder::Decoder;
use crate::journal_writer::JournalWriter;
use crate::journals::Journals;
use crate::options::{Names, Options};
use crate::partition_queue::PartitionQueue;
use crate::schemas::SchemaRegistry;
use crate::source::Source;
use crate::stats::Stats;

/// Timeout of one poll, in ms.
const POLL_MS: u64 = 1_000;
/// Pause after a failed poll, in ms.
const FAILED_MS: u64 = 200;

/// Brings the records of one source into the journals.
pub struct Ingress<S, J, R, N> {
    source: S,
    topic: ConsumedTopic,
    options: Options,
    carrier: Arc<JournalWriter<J, R, N>>,
    lanes: BTreeMap<u32, PartitionQueue>,
    under_way: JoinSet<u32>,
    stats: Arc<Stats>,
    /// Whether the source can be read.
    outage: Outage,
}

enum Happened {
    Polled(Result<Polled, SourceError>),
    /// The batch of a task, of this partition.
    Arrived(tokio::task::Id, u32),
    Panicked(String),
    Stop,
}

impl<S: Source, J: Journals, R: SchemaRegistry, N: Names> Ingress<S, J, R, N> {
    /// An ingress that has read nothing yet.
    pub fn new(source: S, journals: J, registry: R, names: N, options: Options) -> Self {
        let stats = Arc::new(Stats::default());
        let topic = source.topic();
        let reader = Arc::new(Decoder::new(topic.clone(), options.clone(), names, registry));
        let carrier = Arc::new(JournalWriter::new(journals, reader, options.retry_ms_max, stats.clone()));
        let (lanes, under_way) = (BTreeMap::new(), JoinSet::new());
        let outage = Outage::default();
        Self { source, topic, options, carrier, lanes, under_way, stats, outage }
    }

    /// What it counts.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// Runs until `stop` is done. Batches in flight are then dropped, and the next reader appends them again.
    ///
    /// # Errors
    /// A fault of this release, in words: a record made it panic.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let mut stop = std::pin::pin!(stop);
        loop {
            // In this order: durable batches are committed before more is read, and a test run is reproducible.
            let happened = tokio::select! {
                biased;
                () = &mut stop => Happened::Stop,
                Some(joined) = self.under_way.join_next_with_id() => match joined {
                    Ok((task, partition)) => Happened::Arrived(task, partition),
                    Err(error) if error.is_panic() => Happened::Panicked(error.to_string()),
                    // Its partition was revoked.
                    Err(_aborted) => continue,
                },
                polled = self.source.poll(Instant::now() + Duration::from_millis(POLL_MS)) => {
                    Happened::Polled(polled)
                }
            };
            match happened {
                Happened::Polled(Ok(polled)) => {
                    self.note_end(&polled);
                    self.take(polled);
                }
                Happened::Polled(Err(error)) => self.failed(error).await,
                Happened::Arrived(task, partition) => self.arrived(task, partition),
                Happened::Panicked(error) => return Err(error),
                Happened::Stop => return Ok(()),
            }
            self.note_backlog();
        }
    }

    fn take(&mut self, polled: Polled) {
        match polled {
            Polled::Records(records) => {
                self.stats.records.fetch_add(records.len() as u64, Ordering::Relaxed);
                for fetched in records {
                    // A record of a revoked partition belongs to its next reader.
                    if let Some(lane) = self.lanes.get_mut(&fetched.partition) {
                        lane.push(fetched);
                    }
                }
                let partitions: Vec<_> = self.lanes.keys().copied().collect();
                for partition in partitions {
                    self.go_on(partition);
                }
            }
            Polled::Assigned(assigned) => assigned.into_iter().for_each(|assigned| self.begin(&assigned)),
            Polled::Revoked(partitions) => {
                for partition in partitions {
                    self.lanes.remove(&partition);
                    self.stats.goes_on(partition);
                }
            }
        }
    }

    /// Begins a partition at its committed offset, and nowhere else.
    fn begin(&mut self, assigned: &Assigned) {
        let Assigned { partition, committed, bounds } = assigned;
        let next = match committed {
            None => bounds.start,
            Some((incarnation, _)) if *incarnation != self.topic.incarnation => {
                let why = "it was read up to an offset of another topic of the same name: the topic was made again; \
                           delete the consumer group's offsets if the commands in the old one are not needed";
                self.stats.stop(*partition, why);
                return;
            }
            Some((_, next)) if *next < bounds.start || *next > bounds.end => {
                let (start, end) = (bounds.start, bounds.end);
                let why =
                    format!("it was read up to {next}, and holds {start} to {end}: commands may be lost");
                self.stats.stop(*partition, &why);
                return;
            }
            Some((_, next)) => *next,
        };
        self.stats.goes_on(*partition);
        self.lanes.insert(*partition, PartitionQueue::default());
        self.source.begin(*partition, next);
    }

    /// Ends the outage if the poll shows that the source can be read.
    fn note_end(&mut self, polled: &Polled) {
        let now = std::time::Instant::now();
        let ended = match polled {
            Polled::Records(records) if records.is_empty() => self.outage.rests(now),
            Polled::Records(_) | Polled::Assigned(_) => self.outage.works(now),
            Polled::Revoked(_) => None,
        };
        if let Some(lasted) = ended {
            tracing::info!(after_s = lasted.as_secs(), "commands read again");
        }
    }

    async fn failed(&mut self, error: SourceError) {
        self.stats.poll_failures.fetch_add(1, Ordering::Relaxed);
        match error {
            SourceError::OutOfRange { partition, .. } | SourceError::MadeAgain { partition, .. } => {
                self.lanes.remove(&partition);
                self.source.pause(partition);
                self.stats.stop(partition, &error.to_string());
            }
            SourceError::Passing(detail) => {
                if let Some(lasts) = self.outage.fails(std::time::Instant::now()) {
                    tracing::warn!(detail, for_s = lasts.as_secs(), "commands unreadable");
                }
                tokio::time::sleep(Duration::from_millis(FAILED_MS)).await;
            }
        }
    }

    fn arrived(&mut self, task: tokio::task::Id, partition: u32) {
        let next = self.lanes.get_mut(&partition).and_then(|lane| lane.arrived(task));
        if let Some(next) = next {
            self.source.commit(partition, next);
            self.go_on(partition);
        }
    }

    /// Appends the next batch of a partition, if none is in flight, and pauses or resumes the partition by its backlog.
    fn go_on(&mut self, partition: u32) {
        let Some(lane) = self.lanes.get_mut(&partition) else { return };
        if let Some((batch, next)) = lane.take(&self.options) {
            let carried = self.carrier.clone().carry(batch);
            let task = self.under_way.spawn(async move {
                carried.await;
                partition
            });
            lane.sent(task, next);
        }
        if lane.pauses(&self.options) {
            self.source.pause(partition);
        } else if lane.resumes(&self.options) {
            self.source.resume(partition);
        }
    }

    fn note_backlog(&self) {
        let backlogs = self.lanes.values().map(PartitionQueue::backlog);
        let (records, bytes) = backlogs.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.stats.backlog_records.store(records as u64, Ordering::Relaxed);
        self.stats.backlog_bytes.store(bytes as u64, Ordering::Relaxed);
    }
}
