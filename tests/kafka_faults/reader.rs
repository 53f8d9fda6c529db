//! Reads topics as any read_committed consumer would: once from end to end, or along while they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use everlog_tests::patience;
use rdkafka::Message;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::Notify;

use crate::event::Event;

const LOOK: Duration = Duration::from_millis(100);

/// A record, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub time_ms: i64,
}

impl Entry {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map(|headers| {
            headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
        });
        Self {
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.unwrap_or_default(),
            time_ms: message.timestamp().to_millis().unwrap_or(0),
        }
    }

    /// Whether it is there for the end of a transaction only, as `docs/kafka.md` says of public topics.
    fn says_nothing(&self) -> bool {
        self.key.as_ref().is_none_or(Vec::is_empty) && self.value.is_none()
    }
}

/// The configuration of every client of these tests.
pub fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("client.id", "faults");
    config.set("reconnect.backoff.max.ms", "500").set("allow.auto.create.topics", "false");
    // Workflows count as ended when they were read: what is cut off must not keep them for a minute.
    config.set("socket.timeout.ms", "10000").set("socket.connection.setup.timeout.ms", "5000");
    config
}

pub fn consumer(bootstrap: &str, isolation: &str) -> anyhow::Result<BaseConsumer> {
    let mut config = client(bootstrap);
    config.set("group.id", "faults").set("enable.auto.commit", "false").set("isolation.level", isolation);
    config.set("enable.partition.eof", "true").set("auto.offset.reset", "error").set("check.crcs", "true");
    config.set("fetch.wait.max.ms", "50").set("fetch.message.max.bytes", "20000000");
    Ok(config.create()?)
}

/// What it was about to read is not there. Nothing more comes of that partition, and the row says what that leads to.
fn is_lost(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)
    )
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> anyhow::Result<i32> {
    let metadata = consumer.fetch_metadata(Some(topic), patience::most())?;
    let topic = metadata.topics().first().context("it was asked for")?;
    ensure!(topic.error().is_none(), "{}: {:?}", topic.name(), topic.error());
    Ok(i32::try_from(topic.partitions().len())?)
}

fn assign(consumer: &BaseConsumer, topic: &str, count: i32) -> anyhow::Result<()> {
    let mut list = TopicPartitionList::new();
    for partition in 0..count {
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    Ok(consumer.assign(&list)?)
}

/// All that finished transactions left in a topic, in order of partition and offset. Waits until none is open.
pub fn read(bootstrap: &str, topic: &str) -> anyhow::Result<Vec<Entry>> {
    let (committed, all) = (consumer(bootstrap, "read_committed")?, consumer(bootstrap, "read_uncommitted")?);
    let count = partitions(&committed, topic)?;
    let deadline = patience::deadline();
    let mut ends = Vec::new();
    for partition in 0..count {
        ends.push(loop {
            while committed.poll(Duration::ZERO).is_some() {}
            let (_, stable) = committed.fetch_watermarks(topic, partition, patience::most())?;
            let (start, end) = all.fetch_watermarks(topic, partition, patience::most())?;
            if stable >= end {
                break (start, end);
            }
            ensure!(
                !deadline.is_over(),
                "{topic}-{partition}: a transaction hangs: it ends at {end}, readers get to {stable}"
            );
            all.poll(LOOK);
        });
    }
    assign(&committed, topic, count)?;
    let mut open: BTreeSet<i32> =
        (0..).zip(&ends).filter(|(_, (start, end))| start < end).map(|(p, _)| p).collect();
    let mut entries = Vec::new();
    while !open.is_empty() {
        ensure!(!deadline.is_over(), "{topic}: it is not read to its end");
        match committed.poll(LOOK) {
            Some(Ok(message)) => {
                entries.extend(Some(Entry::of(&message)).filter(|entry| !entry.says_nothing()));
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) => bail!("{topic}: {error}"),
            None => {}
        }
    }
    entries.sort_by_key(|entry| (entry.partition, entry.offset));
    Ok(entries)
}

/// Where the records of a topic begin and end, for each partition.
pub fn ends(bootstrap: &str, topic: &str) -> anyhow::Result<Vec<(i64, i64)>> {
    let all = consumer(bootstrap, "read_uncommitted")?;
    (0..partitions(&all, topic)?)
        .map(|partition| Ok(all.fetch_watermarks(topic, partition, patience::most())?))
        .collect()
}

/// What a consumer of `events` saw that read along.
#[derive(Default)]
pub struct Seen {
    inner: Mutex<Inner>,
    told: Notify,
    ended: AtomicBool,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<(i32, i64), Entry>,
    /// Workflow Ids of which the last run has closed, and runs that have.
    closed: BTreeSet<String>,
    ended: BTreeSet<String>,
    /// How many runs of a Workflow Id have begun.
    begun: BTreeMap<String, u64>,
    faults: Vec<String>,
}

impl Seen {
    /// Waits until the last run of a workflow has closed, as `events` tells.
    pub async fn closed(&self, workflow_id: &str) {
        self.until(|inner| inner.closed.contains(workflow_id)).await;
    }

    /// Waits until a run has closed.
    pub async fn ended(&self, run_id: &str) {
        self.until(|inner| inner.ended.contains(run_id)).await;
    }

    /// Waits until so many runs of a workflow have begun.
    pub async fn begun(&self, workflow_id: &str, times: u64) {
        self.until(|inner| inner.begun.get(workflow_id).is_some_and(|begun| *begun >= times)).await;
    }

    async fn until(&self, is_so: impl Fn(&Inner) -> bool) {
        loop {
            let told = self.told.notified();
            if is_so(&self.inner.lock().expect("nobody panics while it is held")) {
                return;
            }
            told.await;
        }
    }

    /// Everything by its place, and what was wrong already while it was read.
    pub fn all(&self) -> (BTreeMap<(i32, i64), Entry>, Vec<String>) {
        let inner = self.inner.lock().expect("nobody panics while it is held");
        (inner.entries.clone(), inner.faults.clone())
    }

    fn take(&self, entry: &Entry) {
        if entry.says_nothing() {
            return;
        }
        let mut inner = self.inner.lock().expect("nobody panics while it is held");
        let place = (entry.partition, entry.offset);
        if inner.entries.insert(place, entry.clone()).is_some() {
            inner.faults.push(format!("a consumer of events was given {place:?} twice"));
        }
        match Event::read(entry) {
            Ok(event) if event.is_closing() => {
                if event.is_last() {
                    inner.closed.insert(event.workflow_id);
                }
                inner.ended.insert(event.run_id);
                self.told.notify_waiters();
            }
            Ok(event) if event.event_id == 1 => {
                *inner.begun.entry(event.workflow_id).or_default() += 1;
                self.told.notify_waiters();
            }
            Ok(_) => {}
            Err(error) => inner.faults.push(format!("events {place:?} cannot be read: {error:#}")),
        }
    }
}

/// A consumer of `events` that reads along until it is dropped.
pub struct Along {
    pub seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Along {
    pub fn start(bootstrap: &str, topic: &str) -> anyhow::Result<Self> {
        let consumer = consumer(bootstrap, "read_committed")?;
        let count = partitions(&consumer, topic)?;
        assign(&consumer, topic, count)?;
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let thread = std::thread::Builder::new().name("along".into()).spawn(move || {
            while !shared.ended.load(Ordering::Relaxed) {
                match consumer.poll(LOOK) {
                    Some(Ok(message)) => shared.take(&Entry::of(&message)),
                    Some(Err(error)) if is_lost(&error) => {
                        println!("who reads along has lost its place: {error}")
                    }
                    // Brokers come and go: what it says of that is no matter.
                    Some(Err(_)) | None => {}
                }
            }
        })?;
        Ok(Self { seen, thread: Some(thread) })
    }
}

impl Drop for Along {
    fn drop(&mut self) {
        self.seen.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
