//! A transactional producer: one transaction at a time, drained before it is committed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, PerTopic, Topic};
use parking_lot::Mutex;
use rdkafka::Message;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::statistics::Statistics;

use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::client::settings::ClientSettings;
use crate::client::statistics::Meter;
use crate::errors::{io, is_fence};
use crate::options::SENT_ONCE_WITHIN;
use crate::permissions::{AclOperation, AclResource};
use crate::record_format::HEADER;
use crate::stats::{KafkaCounters, add};

/// Pause between two polls of a drain. librdkafka's own poll spins through the fraction of a millisecond.
const REST: Duration = Duration::from_millis(1);

/// Log lines that are taken from a client before it is dropped.
const LINES_MAX: usize = 64;

/// How often a coordinator that refuses a transactional id is asked again. It refuses while it ends the transaction of the
/// previous owner. The client itself would ask again only after 500 ms.
const ASKS_EVERY: Duration = Duration::from_millis(20);

/// How long a coordinator may refuse an id, or a transaction stay without a delivery, before the coordinator is woken up,
/// and again after that: a hand-over takes less.
const RESTS_FOR: Duration = Duration::from_secs(2);

/// Least timeout of the end of a transaction.
const END_WITHIN_MIN: Duration = Duration::from_secs(1);

/// A record of a transaction.
pub(crate) struct OutputRecord<'a> {
    /// Its topic.
    pub(crate) topic: Topic,
    pub(crate) partition: PartitionId,
    pub(crate) key: &'a [u8],
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) header: [u8; 28],
    /// Further ones.
    pub(crate) headers: &'a [(&'static str, Bytes)],
}

/// A transaction without a good end: the producer must be dropped.
#[derive(Clone, Debug)]
pub(crate) enum TransactionLost {
    /// A newer producer has the transactional id.
    Fenced(String),
    /// Committed or not, nobody here can say.
    Unknown(String),
}

/// The offsets behind the last record of each topic and partition.
pub(crate) type Reached = BTreeMap<(Topic, PartitionId), Offset>;

/// Delivery reports of the transaction in flight.
#[derive(Default)]
struct DeliveryReports {
    delivered: usize,
    failed: Option<(KafkaError, Option<Topic>)>,
    reached: Reached,
}

pub(crate) struct Transactions {
    producer: Live<BaseProducer<OutputDeliveries>>,
    heard: Arc<Mutex<DeliveryReports>>,
    topics: Arc<PerTopic<String>>,
    timeout: Duration,
    rouse: WakeUp,
    is_spent: Cell<bool>,
    /// The transactional id.
    id: String,
}

/// Sees to a coordinator that may rest, see `coordinator_wakeup.rs`; never waits.
pub(crate) type WakeUp = Box<dyn Fn() + Send>;

/// A producer that has reached the brokers, and has taken nothing from anybody.
pub(crate) struct Connected {
    producer: Live<BaseProducer<OutputDeliveries>>,
    heard: Arc<Mutex<DeliveryReports>>,
    /// The transactional id.
    id: String,
}

impl Connected {
    /// Makes it, and lets it connect.
    pub(crate) fn open(
        config: &ClientSettings,
        topics: &PerTopic<String>,
        timeout: Duration,
        counters: &KafkaCounters,
    ) -> Result<Self, Error> {
        let heard: Arc<Mutex<DeliveryReports>> = Arc::default();
        let meter = Meter::new(&counters.traffic);
        let context =
            OutputDeliveries { heard: Arc::clone(&heard), client_log: ClientLog::new("outputs"), meter };
        let made = config.create_with_context(context);
        let producer: Live<BaseProducer<OutputDeliveries>> =
            made.map_err(|error| io("a transactional producer", &error))?;
        // Without a connection `init_transactions` looks again only after 500 ms.
        let topic = Some(topics[Topic::Changelog].as_str());
        let metadata = producer.client().fetch_metadata(topic, timeout);
        metadata.map_err(|error| io("reaching the brokers for transactions", &error))?;
        let id = config.get("transactional.id").unwrap_or_default().to_owned();
        Ok(Connected { producer, heard, id })
    }

    /// Serves what the client has to say while nothing is to be done.
    pub(crate) fn idle(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// Initialises the transactional id. Once it returns, the previous owner cannot commit, and its open transaction is
    /// aborted.
    pub(crate) fn begin(
        self,
        topics: Arc<PerTopic<String>>,
        timeout: Duration,
        rouse: WakeUp,
    ) -> Result<Transactions, Error> {
        let Self { producer, heard, id } = self;
        let began = Instant::now();
        let mut roused = began;
        loop {
            if roused.elapsed() >= RESTS_FOR {
                rouse();
                roused = Instant::now();
            }
            let left = timeout.saturating_sub(began.elapsed());
            // A call that comes again is what makes the client ask, unless an answer is still under way.
            let step = ASKS_EVERY.max(began.elapsed() / 4);
            match producer.init_transactions(left.min(step)) {
                Ok(()) => {
                    let is_spent = Cell::new(false);
                    return Ok(Transactions { producer, heard, topics, timeout, rouse, is_spent, id });
                }
                Err(error) if is_retriable(&error) && !left.is_zero() => {}
                Err(error) => {
                    // The coordinator's answer is in the client's log lines, which only a poll delivers.
                    for _line in 0..LINES_MAX {
                        producer.poll(Duration::ZERO);
                    }
                    let needs = [(AclOperation::Write, AclResource::TransactionalId(&id))];
                    return Err(producer.principal().fault("taking a transactional id", &error, &needs));
                }
            }
        }
    }
}

impl Transactions {
    /// It must be dropped before the next transaction. When a connection breaks the client sends the end of a transaction
    /// again by itself; the first one may still be on its way, and would end the next transaction of the same producer
    /// half written.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Serves what the client has to say while nothing is to be done.
    pub(crate) fn idle(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// Runs one transaction to its end.
    pub(crate) fn run<'a>(
        &self,
        records: impl Iterator<Item = OutputRecord<'a>>,
        counters: &KafkaCounters,
    ) -> Result<Reached, TransactionLost> {
        self.attempt(records, counters).map_err(|lost| match (lost, self.producer.client().fatal_error()) {
            // What is heard first of a fence may be that its records were thrown away.
            (TransactionLost::Unknown(detail), Some((code, reason))) if is_fence(code) => {
                TransactionLost::Fenced(format!("{detail}: {reason}"))
            }
            (lost, _) => lost,
        })
    }

    fn attempt<'a>(
        &self,
        records: impl Iterator<Item = OutputRecord<'a>>,
        counters: &KafkaCounters,
    ) -> Result<Reached, TransactionLost> {
        let begun = Instant::now();
        let (sent, deadline) = self.write(records, begun)?;
        let drained = Instant::now();
        // With one outstanding, the commit below would look for it in steps of 100 ms. (The count also knows events that
        // are not records: it may rise again at any time.)
        add(&counters.undrained, u64::from(self.producer.in_flight_count() != 0));
        let left = deadline.saturating_duration_since(drained).max(END_WITHIN_MIN);
        self.producer.commit_transaction(left).map_err(|error| self.lost("commit", &error, None))?;
        self.is_spent.set(drained.elapsed() >= SENT_ONCE_WITHIN);
        counters.cycle(begun.elapsed().as_micros() as u64, drained.elapsed().as_micros() as u64);
        add(&counters.transactions, 1);
        add(&counters.outputs, sent as u64);
        Ok(std::mem::take(&mut self.heard.lock().reached))
    }

    /// Runs one transaction that is aborted.
    pub(crate) fn undo<'a>(
        &self,
        records: impl Iterator<Item = OutputRecord<'a>>,
    ) -> Result<(), TransactionLost> {
        let (_, deadline) = self.write(records, Instant::now())?;
        let drained = Instant::now();
        let left = deadline.saturating_duration_since(drained).max(END_WITHIN_MIN);
        self.producer.abort_transaction(left).map_err(|error| self.lost("abort", &error, None))?;
        self.is_spent.set(drained.elapsed() >= SENT_ONCE_WITHIN);
        Ok(())
    }

    /// Begins a transaction and writes all of it; gives how many records that were, and when it must be over.
    fn write<'a>(
        &self,
        records: impl Iterator<Item = OutputRecord<'a>>,
        begun: Instant,
    ) -> Result<(usize, Instant), TransactionLost> {
        let deadline = begun + self.timeout;
        *self.heard.lock() = DeliveryReports::default();
        self.producer.begin_transaction().map_err(|error| self.lost("begin", &error, None))?;
        let mut sent = 0;
        for record in records {
            self.send(&record)?;
            sent += 1;
            if sent % 1_000 == 0 {
                self.idle();
            }
        }
        self.drain(sent, deadline)?;
        Ok((sent, deadline))
    }

    fn send(&self, record: &OutputRecord<'_>) -> Result<(), TransactionLost> {
        let opaque = record.topic.number() << 32 | record.partition as usize;
        let header = Header { key: HEADER, value: Some(&record.header[..]) };
        let mut headers = OwnedHeaders::new_with_capacity(1 + record.headers.len()).insert(header);
        for (key, value) in record.headers {
            headers = headers.insert(Header { key, value: Some(&value[..]) });
        }
        let mut outgoing: BaseRecord<'_, [u8], [u8], usize> =
            BaseRecord::with_opaque_to(&self.topics[record.topic], opaque)
                .partition(record.partition as i32)
                .key(record.key)
                .headers(headers);
        outgoing.payload = record.value;
        self.producer.send(outgoing).map_err(|(error, _)| self.lost("send", &error, Some(record.topic)))
    }

    /// `topic`: of the record.
    fn lost(&self, step: &str, error: &KafkaError, topic: Option<Topic>) -> TransactionLost {
        let mut needs = vec![(AclOperation::Write, AclResource::TransactionalId(&self.id))];
        needs.extend(topic.map(|topic| (AclOperation::Write, AclResource::Topic(&self.topics[topic]))));
        let why = self.producer.principal().explain(error, &needs);
        let detail = format!("{step} of a transaction: {why}");
        if error.rdkafka_error_code().is_some_and(is_fence) {
            TransactionLost::Fenced(detail)
        } else {
            TransactionLost::Unknown(detail)
        }
    }

    /// Waits until every record is delivered, and until the client has taken the last one off its count too.
    fn drain(&self, sent: usize, deadline: Instant) -> Result<(), TransactionLost> {
        let mut roused = Instant::now();
        loop {
            self.producer.poll(Duration::ZERO);
            let (delivered, failed) = {
                let mut heard = self.heard.lock();
                (heard.delivered, heard.failed.take())
            };
            if let Some((error, topic)) = failed {
                return Err(self.lost("delivery", &error, topic));
            }
            if delivered == sent && self.producer.in_flight_count() == 0 {
                return Ok(());
            }
            // The client sends nothing before its coordinator has begun the transaction.
            if delivered == 0 && roused.elapsed() >= RESTS_FOR {
                (self.rouse)();
                roused = Instant::now();
            }
            if Instant::now() > deadline {
                return Err(TransactionLost::Unknown(format!(
                    "{delivered} of {sent} records were delivered in time"
                )));
            }
            std::thread::sleep(REST);
        }
    }
}

fn is_retriable(error: &KafkaError) -> bool {
    match error {
        KafkaError::Transaction(error) => error.is_retriable() && error.code() != RDKafkaErrorCode::Fatal,
        _ => false,
    }
}

struct OutputDeliveries {
    heard: Arc<Mutex<DeliveryReports>>,
    client_log: ClientLog,
    meter: Meter,
}

logs_as_client!(
    OutputDeliveries,
    fn stats(&self, statistics: Statistics) {
        self.meter.count(&statistics);
    }
);

impl ProducerContext for OutputDeliveries {
    /// Topic number and partition.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: usize) {
        let mut heard = self.heard.lock();
        let topic = Topic::all().nth(opaque >> 32);
        match result {
            Ok(message) => {
                heard.delivered += 1;
                let Some(topic) = topic else { return };
                let place = (topic, (opaque & 0xffff_ffff) as PartitionId);
                let next = message.offset() as Offset + 1;
                let reached = heard.reached.entry(place).or_default();
                *reached = next.max(*reached);
            }
            Err((error, _)) => {
                heard.failed.get_or_insert_with(|| (error.clone(), topic));
            }
        }
    }
}
