//! Reads and writes public topics by hand: committed records to the end or for ever, and records produced with or without
//! a transaction. For the command line and for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::consumer::ConsumedTopic;
use everlog_log::{Error, Offset, PartitionId};
use parking_lot::Mutex;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Message, OwnedHeaders, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};

use crate::client::consumer::{FOLLOW_WAIT, is_lasting, left_until, range};
use crate::client::librdkafka;
use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::client::settings::ClientSettings;
use crate::client::visible_topics::{exists, unlisted};
use crate::errors::{io, missing, refused, unknown};
use crate::options::{Isolation, Options};
use crate::permissions::{AclOperation, AclResource};
use crate::topics::admin::Admin;

/// How often a producer is polled for deliveries.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A record of a public topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The partition.
    pub partition: PartitionId,
    /// The offset.
    pub offset: Offset,
    /// When it was made or appended, in ms since 1970-01-01 UTC, as the topic is set; 0 where nothing is said.
    pub time_ms: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order; those whose names are no UTF-8 are left out.
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// Where a tail begins, in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first record there is.
    Beginning,
    /// Behind all that was committed when the tail was opened.
    End,
    /// At this offset; where it is not there, the tail is refused.
    Offset(Offset),
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailStep {
    /// The next record; those of a partition come in the order of their offsets.
    Record(Record),
    /// The end of what was there when the tail was opened; returned once.
    End,
    /// Nothing came in that time.
    Nothing,
}

/// Reads a topic outside of any group; it commits nothing.
pub struct TopicTail {
    topic: String,
    consumer: Live<BaseConsumer<ClientLog>>,
    /// Partitions whose end was not met yet.
    open: BTreeSet<PartitionId>,
    has_ended: bool,
}

impl TopicTail {
    /// Reads all partitions of a topic, or one.
    ///
    /// # Errors
    /// `Refused`: no such topic or partition, or the offset is not there; `Io`: no broker answers.
    pub fn open(
        options: &Options,
        topic: &str,
        partition: Option<PartitionId>,
        from: From,
    ) -> Result<Self, Error> {
        options.validate()?;
        let config = options.consumer("public", Isolation::Committed, FOLLOW_WAIT);
        let made = config.create_with_context(ClientLog::new("public"));
        let consumer: Live<BaseConsumer<ClientLog>> = made.map_err(|error| io("a consumer", &error))?;
        let all = partitions(&consumer, topic, options.call_timeout())?;
        let open: BTreeSet<_> = match partition {
            Some(one) if one < all => [one].into(),
            Some(one) => {
                return Err(refused(format!("{topic} has {all} partitions, and no partition {one}")));
            }
            None => (0..all).collect(),
        };
        let mut list = TopicPartitionList::new();
        for partition in &open {
            let at = start(&consumer, topic, *partition, from, options.call_timeout())?;
            list.add_partition_offset(topic, *partition as i32, at)
                .map_err(|error| io("an assignment", &error))?;
        }
        consumer.assign(&list).map_err(|error| io(&format!("reading {topic}"), &error))?;
        Ok(TopicTail { topic: topic.to_owned(), consumer, open, has_ended: false })
    }

    /// Waits for the next record.
    ///
    /// # Errors
    /// `Io`: the topic cannot be read any more.
    pub fn next(&mut self, within: Duration) -> Result<TailStep, Error> {
        let deadline = Instant::now() + within;
        loop {
            if self.open.is_empty() && !std::mem::replace(&mut self.has_ended, true) {
                return Ok(TailStep::End);
            }
            match self.consumer.poll(left_until(deadline)) {
                Some(Ok(message)) => return Ok(TailStep::Record(record(&message))),
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    if let Ok(partition) = PartitionId::try_from(partition) {
                        self.open.remove(&partition);
                    }
                }
                Some(Err(error)) if is_lasting(&error) => {
                    let principal = self.consumer.principal();
                    let needs = [(AclOperation::Read, AclResource::Topic(&self.topic))];
                    return Err(principal.fault(&format!("reading {}", self.topic), &error, &needs));
                }
                // Connections that break are made again.
                Some(Err(_)) => {}
                None if Instant::now() >= deadline => return Ok(TailStep::Nothing),
                None => {}
            }
        }
    }
}

fn partitions(consumer: &Live<BaseConsumer<ClientLog>>, topic: &str, within: Duration) -> Result<u32, Error> {
    // Metadata of all topics is requested, because a request for one may create it.
    let metadata = consumer.fetch_metadata(None, within).map_err(|error| io("no broker answers", &error))?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found.map(|found| found.partitions().len() as u32) {
        None | Some(0) => Err(unlisted(consumer, topic, within)),
        Some(count) => Ok(count),
    }
}

fn start(
    consumer: &Live<BaseConsumer<ClientLog>>,
    topic: &str,
    partition: PartitionId,
    from: From,
    within: Duration,
) -> Result<At, Error> {
    let bounds = range(consumer, topic, partition as i32, within)?;
    let (low, high) = (bounds.start, bounds.end);
    let at = |offset: Offset| {
        i64::try_from(offset).map(At::Offset).map_err(|_| refused(format!("{topic}: offset {offset}")))
    };
    match from {
        From::Beginning => at(low),
        From::End => at(high),
        From::Offset(offset) if bounds.contains(&offset) || offset == high => at(offset),
        From::Offset(offset) => {
            Err(refused(format!("{topic}-{partition} holds {low} to {high}, and no offset {offset}")))
        }
    }
}

fn record(message: &BorrowedMessage<'_>) -> Record {
    let copy = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice);
    let time_ms = match message.timestamp() {
        Timestamp::CreateTime(ms) | Timestamp::LogAppendTime(ms) => ms,
        Timestamp::NotAvailable => 0,
    };
    Record {
        partition: message.partition() as PartitionId,
        offset: message.offset() as Offset,
        time_ms,
        key: copy(message.key()),
        value: copy(message.payload()),
        headers: librdkafka::headers(message),
    }
}

/// A record to be produced.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutgoingRecord<'a> {
    /// The full name of the topic.
    pub topic: &'a str,
    /// The partition; none: that of the key, as Kafka's own producers find it.
    pub partition: Option<PartitionId>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// Where a record went.
pub type RecordPosition = (PartitionId, Offset);

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// Its records are there, all of them.
    Commit,
    /// Nobody who reads committed records ever sees one.
    Abort,
}

/// Produces records, acknowledged by all in-sync replicas, each once.
pub struct Producer {
    producer: Live<BaseProducer<ProducerReports>>,
    reports: Arc<Mutex<Reported>>,
    /// Topics that were seen to be there.
    known: BTreeSet<String>,
    timeout: Duration,
}

impl Producer {
    /// One that produces records by themselves.
    ///
    /// # Errors
    /// `Refused`: the settings are wrong.
    pub fn open(options: &Options) -> Result<Self, Error> {
        options.validate()?;
        Self::made(options, &mut options.public_producer())
    }

    /// One that produces in transactions. It fences the previous producer of the transactional id.
    ///
    /// # Errors
    /// `Refused`: the settings are wrong; `Io`: no broker answers, or it does not give the id.
    pub fn open_transactional(options: &Options, transactional_id: &str) -> Result<Self, Error> {
        options.validate()?;
        let mut config = options.public_producer();
        config.set("transactional.id", transactional_id);
        config.set("transaction.timeout.ms", options.transaction_timeout_ms.to_string());
        let producer = Self::made(options, &mut config)?;
        let taken = producer.producer.init_transactions(producer.timeout);
        let needs = [(AclOperation::Write, AclResource::TransactionalId(transactional_id))];
        let principal = producer.producer.principal();
        taken.map_err(|error| principal.fault("taking a transactional id", &error, &needs))?;
        Ok(producer)
    }

    fn made(options: &Options, config: &mut ClientSettings) -> Result<Self, Error> {
        // As Java's producers do, so that a key goes where it went before.
        config.set("partitioner", "murmur2_random");
        let reports: Arc<Mutex<Reported>> = Arc::default();
        let context = ProducerReports { reports: Arc::clone(&reports), client_log: ClientLog::new("public") };
        let producer = config.create_with_context(context).map_err(|error| io("a producer", &error))?;
        Ok(Producer { producer, reports, known: BTreeSet::new(), timeout: options.call_timeout() })
    }

    /// Produces records and waits until all are acknowledged; the places come in their order.
    ///
    /// # Errors
    /// `Refused`: nothing was produced; `Unknown`: some of the records may be there.
    pub fn send(&mut self, records: &[OutgoingRecord<'_>]) -> Result<Vec<RecordPosition>, Error> {
        for record in records {
            self.know(record.topic)?;
        }
        self.reports.lock().clear();
        for (number, record) in records.iter().enumerate() {
            self.hand_over(number, record)?;
        }
        self.await_all(records)
    }

    /// The same in one transaction, which is ended as it is said.
    ///
    /// # Errors
    /// As `send`; the transaction is then neither committed nor of any use, and the producer is to be dropped.
    pub fn transact(
        &mut self,
        records: &[OutgoingRecord<'_>],
        ending: TransactionEnd,
    ) -> Result<Vec<RecordPosition>, Error> {
        self.begin()?;
        let places = self.send(records)?;
        self.end(ending)?;
        Ok(places)
    }

    /// Begins a transaction; what is sent belongs to it until it is ended.
    ///
    /// # Errors
    /// `Refused`: one is under way, or the producer has no transactional id.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.producer
            .begin_transaction()
            .map_err(|error| refused(format!("beginning a transaction: {error}")))
    }

    /// Ends the transaction.
    ///
    /// # Errors
    /// `Unknown`: nobody knows how it ended.
    pub fn end(&mut self, ending: TransactionEnd) -> Result<(), Error> {
        let ended = match ending {
            TransactionEnd::Commit => self.producer.commit_transaction(self.timeout),
            TransactionEnd::Abort => self.producer.abort_transaction(self.timeout),
        };
        ended.map_err(|error| unknown(format!("the end of a transaction: {error}")))
    }

    /// A topic that is not there would be waited for until the records time out.
    fn know(&mut self, topic: &str) -> Result<(), Error> {
        if self.known.contains(topic) {
            return Ok(());
        }
        if !exists(&self.producer, topic, AclOperation::Write, self.timeout)? {
            return Err(missing(topic));
        }
        self.known.insert(topic.to_owned());
        Ok(())
    }

    fn hand_over(&self, number: usize, record: &OutgoingRecord<'_>) -> Result<(), Error> {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for (key, value) in record.headers {
            headers = headers.insert(Header { key, value: *value });
        }
        let mut outgoing: BaseRecord<'_, [u8], [u8], usize> =
            BaseRecord::with_opaque_to(record.topic, number).headers(headers);
        outgoing.partition = record.partition.map(|partition| partition as i32);
        (outgoing.key, outgoing.payload) = (record.key, record.value);
        self.producer.send(outgoing).map_err(|(error, _)| {
            // What was handed over before may be on its way.
            if number == 0 { refused(error.to_string()) } else { unknown(error.to_string()) }
        })
    }

    fn await_all(&self, records: &[OutgoingRecord<'_>]) -> Result<Vec<RecordPosition>, Error> {
        let count = records.len();
        // The client's own bound ends it; ours is for one that hangs.
        let deadline = Instant::now() + self.timeout * 2;
        while self.reports.lock().len() < count {
            if Instant::now() > deadline {
                return Err(unknown("the brokers do not say whether the records are there"));
            }
            self.producer.poll(LOOK_EVERY);
        }
        let reports = std::mem::take(&mut *self.reports.lock());
        let fault = |error: &KafkaError, record: &OutgoingRecord<'_>| {
            let needs = [(AclOperation::Write, AclResource::Topic(record.topic))];
            match self.producer.principal().fault("a record", error, &needs) {
                denied @ Error::Denied { .. } => denied,
                _other => unknown(error.to_string()),
            }
        };
        let reports = reports.into_values().zip(records);
        reports.map(|(report, record)| report.map_err(|error| fault(&error, record))).collect()
    }
}

/// Delivery reports, by the number of the record.
type Reported = BTreeMap<usize, Result<RecordPosition, KafkaError>>;

struct ProducerReports {
    reports: Arc<Mutex<Reported>>,
    client_log: ClientLog,
}

logs_as_client!(ProducerReports);

impl ProducerContext for ProducerReports {
    /// The record's number.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let report = match result {
            Ok(message) => Ok((message.partition() as PartitionId, message.offset() as Offset)),
            Err((error, _)) => Err(error.clone()),
        };
        self.reports.lock().insert(number, report);
    }
}

/// Deletes records of public topics by position.
pub struct Trimmer(Admin);

impl Trimmer {
    /// Asks nobody yet.
    ///
    /// # Errors
    /// `Refused`: the settings are wrong.
    pub fn open(options: &Options) -> Result<Self, Error> {
        options.validate()?;
        Ok(Self(Admin::open(options)?))
    }

    /// Deletes all records below an offset; when this returns, no reader sees them.
    ///
    /// # Errors
    /// `Io`: the brokers do not answer, do not let us, or the partition does not reach as far.
    pub fn delete_below(&self, topic: &str, partition: PartitionId, below: Offset) -> Result<(), Error> {
        self.0.delete_below(topic, partition as i32, below)
    }
}

/// A topic with its id, by its full name.
///
/// # Errors
/// `Refused`: there is none; `Io`: no broker answers.
pub fn topic(options: &Options, name: &str) -> Result<ConsumedTopic, Error> {
    options.validate()?;
    let client = options.client("public").create_with_context(ClientLog::new("public"));
    let client: Live<BaseConsumer<ClientLog>> = client.map_err(|error| io("a client", &error))?;
    let incarnation = librdkafka::topic_id(&client, name, options.call_timeout())?;
    Ok(ConsumedTopic { name: name.to_owned(), incarnation: incarnation.ok_or_else(|| missing(name))? })
}
