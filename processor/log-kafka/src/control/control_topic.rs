//! The control topic: rows that every node sees, the fixed partition counts, and the numbers of fences.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{Error, Fence, Offset, PartitionId};
use parking_lot::{Mutex, MutexGuard};
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use crate::client::consumer::{TopicEnds, consumer, scan};
use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::client::settings::ClientSettings;
use crate::errors::{io, refused, unknown};
use crate::options::{Isolation, Options};
use crate::permissions::{AclOperation, AclResource};
use crate::record_format::{self, CONTROL_RESERVED, Incarnation};

/// How often a producer is polled for a delivery.
const LOOK_AFTER: Duration = Duration::from_micros(200);

/// The rows as far as they are read.
struct ControlSnapshot {
    consumer: Live<BaseConsumer<ClientLog>>,
    next: Offset,
    rows: BTreeMap<Vec<u8>, (Offset, Bytes)>,
}

pub(crate) struct ControlTopic {
    topic: String,
    config: ClientSettings,
    producer: Mutex<Option<Live<BaseProducer<ControlReports>>>>,
    view: Mutex<ControlSnapshot>,
    ends: Arc<TopicEnds>,
    timeout: Duration,
}

impl ControlTopic {
    pub(crate) fn open(options: &Options, ends: Arc<TopicEnds>) -> Result<Self, Error> {
        let consumer = consumer(options, "control", Isolation::Uncommitted)?;
        Ok(ControlTopic {
            topic: options.topic("control"),
            config: options.control_producer(),
            producer: Mutex::default(),
            view: Mutex::new(ControlSnapshot { consumer, next: 0, rows: BTreeMap::new() }),
            ends,
            timeout: options.call_timeout(),
        })
    }

    /// Without idempotence: its producer need not ask the brokers for an id first, which takes half a second, and a row may
    /// be written twice. For who writes one row after the other and goes.
    pub(crate) fn plain(mut self) -> Self {
        self.config.set("enable.idempotence", "false");
        self
    }

    /// What it reads and writes by.
    pub(crate) fn into_clients(self) -> (Live<BaseConsumer<ClientLog>>, Option<impl Send>) {
        let ControlSnapshot { consumer, .. } = self.view.into_inner();
        (consumer, self.producer.into_inner())
    }

    /// Lets the producer connect: a first row would wait 500 ms for it.
    pub(crate) fn warm(&self) -> Result<(), Error> {
        let mut slot = self.producer.lock();
        if slot.is_none() {
            *slot = Some(self.new_producer()?);
        }
        Ok(())
    }

    fn new_producer(&self) -> Result<Live<BaseProducer<ControlReports>>, Error> {
        let made = self.config.create_with_context(ControlReports { client_log: ClientLog::new("control") });
        made.map_err(|error| io("a producer of control", &error))
    }

    pub(crate) fn put(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        if key.first() == Some(&CONTROL_RESERVED) {
            return Err(refused("a control key that begins with the byte 255 is the log's own"));
        }
        self.write(&[(key, value)]).map(|_| ())
    }

    pub(crate) fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let view = self.refreshed()?;
        for (key, (_, value)) in view.rows.iter().filter(|(key, _)| key.first() != Some(&CONTROL_RESERVED)) {
            visit(key, value);
        }
        Ok(())
    }

    /// Numbers that are never given twice and grow with time, one for each partition: the places of records made for
    /// them.
    pub(crate) fn fences(&self, partitions: &[PartitionId], node: &str) -> Result<Vec<Fence>, Error> {
        let keys: Vec<_> =
            partitions.iter().map(|partition| record_format::control_fence_key(*partition)).collect();
        let rows: Vec<_> = keys.iter().map(|key| (&key[..], Some(node.as_bytes()))).collect();
        let offsets = self.write(&rows)?;
        Ok(offsets.into_iter().map(|offset| Fence(offset + 1)).collect())
    }

    /// What was fixed when the topics were made: the first such record.
    pub(crate) fn incarnation(&self) -> Result<Option<Incarnation>, Error> {
        let view = self.refreshed()?;
        let mut first: Option<(Offset, Incarnation)> = None;
        for (key, (offset, value)) in &view.rows {
            if let Some(found) = Incarnation::decode(key, value)?
                && first.is_none_or(|(earlier, _)| *offset < earlier)
            {
                first = Some((*offset, found));
            }
        }
        Ok(first.map(|(_, found)| found))
    }

    /// Proposes what is fixed; of several that are proposed at once all get the same back.
    pub(crate) fn propose(&self, wanted: Incarnation) -> Result<Incarnation, Error> {
        if let Some(there) = self.incarnation()? {
            return Ok(there);
        }
        self.write(&[(&wanted.key(), Some(&wanted.value()))])?;
        let first = self.incarnation()?;
        first.ok_or_else(|| unknown("the incarnation was written to control, and is not there"))
    }

    /// The ids of topics that were noted when these were made, by the topics' names without the prefix.
    pub(crate) fn topic_ids(&self) -> Result<BTreeMap<String, [u8; 16]>, Error> {
        let view = self.refreshed()?;
        Ok(view.rows.iter().filter_map(|(key, (_, value))| record_format::topic_id(key, value)).collect())
    }

    /// Notes ids of topics.
    pub(crate) fn record_topic_ids(&self, ids: &[(&str, [u8; 16])]) -> Result<(), Error> {
        let rows: Vec<_> = ids.iter().map(|(name, id)| (record_format::topic_id_key(name), id)).collect();
        let rows: Vec<_> = rows.iter().map(|(key, id)| (key.as_slice(), Some(id.as_slice()))).collect();
        if rows.is_empty() { Ok(()) } else { self.write(&rows).map(drop) }
    }

    fn refreshed(&self) -> Result<MutexGuard<'_, ControlSnapshot>, Error> {
        let mut view = self.view.lock();
        let end = self.ends.range(&self.topic, 0, Isolation::Uncommitted)?.end;
        let ControlSnapshot { consumer, next, rows } = &mut *view;
        if end < *next {
            let detail = format!("it ends at {end}, {next} was read before: it was made again");
            return Err(crate::errors::corrupt(&self.topic, 0, detail));
        }
        scan(consumer, &self.topic, 0, *next..end, self.timeout, &mut |offset, message| {
            let key = message.key().unwrap_or_default().to_vec();
            match message.payload() {
                Some(value) => rows.insert(key, (offset, Bytes::copy_from_slice(value))),
                None => rows.remove(&key),
            };
            Ok(true)
        })?;
        *next = end;
        Ok(view)
    }

    fn fault(&self, error: &KafkaError) -> Error {
        let needs = [(AclOperation::Write, AclResource::Topic(&self.topic))];
        self.config.principal().fault("a row of control", error, &needs)
    }

    /// Rows are durable when it returns; gives their places.
    fn write(&self, rows: &[(&[u8], Option<&[u8]>)]) -> Result<Vec<Offset>, Error> {
        let mut slot = self.producer.lock();
        // Taken out: after a failure the producer is dropped.
        let producer = match slot.take() {
            Some(producer) => producer,
            None => self.new_producer()?,
        };
        let mut reports = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            let report = Arc::new(Mutex::new(None));
            let mut record: BaseRecord<'_, [u8], [u8], Arc<Report>> =
                BaseRecord::with_opaque_to(&self.topic, Arc::clone(&report)).partition(0).key(key);
            record.payload = *value;
            producer.send(record).map_err(|(error, _)| self.fault(&error))?;
            reports.push(report);
        }
        // The producer's own bound ends it; ours is for a client that hangs.
        let deadline = Instant::now() + self.timeout * 2;
        let mut offsets = Vec::with_capacity(rows.len());
        while let Some(report) = reports.get(offsets.len()) {
            producer.poll(Duration::ZERO);
            let told = report.lock().take();
            match told {
                Some(Ok(offset)) => offsets.push(offset),
                Some(Err(error)) => {
                    // Behind an error that ends the producer each record is told to be thrown away.
                    let fatal = producer.client().fatal_error();
                    let error = fatal.map_or(error, |(code, _)| KafkaError::MessageProduction(code));
                    let fault = self.fault(&error);
                    return Err(match fault {
                        Error::Denied { .. } => fault,
                        other => unknown(other.to_string()),
                    });
                }
                None if Instant::now() > deadline => return Err(unknown("a row of control: no answer")),
                None => std::thread::sleep(LOOK_AFTER),
            }
        }
        *slot = Some(producer);
        Ok(offsets)
    }
}

type Report = Mutex<Option<Result<Offset, KafkaError>>>;

/// The delivery report of a row.
struct ControlReports {
    client_log: ClientLog,
}

logs_as_client!(ControlReports);

impl ProducerContext for ControlReports {
    type DeliveryOpaque = Arc<Report>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Arc<Report>) {
        let outcome = match result {
            Ok(message) => Offset::try_from(message.offset())
                .map_err(|_| KafkaError::OffsetFetch(RDKafkaErrorCode::BadMessage)),
            Err((error, _)) => Err(error.clone()),
        };
        *report.lock() = Some(outcome);
    }
}
