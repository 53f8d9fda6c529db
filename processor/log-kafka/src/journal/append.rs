//! Appends to the journals: gathered per partition into rounds, of which one or two are in flight.
//!
//! A producer whose delivery fails is dropped. Appends in flight then have an unknown outcome, waiting ones were not
//! written, and nothing is appended before there is a new producer.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{AppendDone, Appended, Error, Offset, PartitionId};
use parking_lot::{Mutex, RwLock};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, ProducerContext};
use rdkafka::statistics::Statistics;

use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::client::settings::ClientSettings;
use crate::client::statistics::Meter;
use crate::errors::{io, no_such_partition, refused, unknown};
use crate::options::Options;
use crate::permissions::{AclOperation, AclResource};
use crate::stats::{KafkaCounters, add};

/// Bytes after which a round takes no further append: a produce request carries 1,000,000.
const ROUND_BYTES_MAX: usize = 900_000;
/// How long a closing log waits for deliveries.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// How often a producer's thread checks whether it was stopped. librdkafka waits whole milliseconds and spins through the
/// rest of one, so the fraction is small and the wait long.
const POLL: Duration = Duration::from_micros(250_100);
/// An append counts as waiting on the same outage as appends that were given up within this.
const SAME_WAIT_WITHIN: Duration = Duration::from_secs(10);
/// Pause before a producer that could not be created is created again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// An append that waits.
struct Append {
    records: Vec<Bytes>,
    size_bytes: usize,
    done: AppendDone,
}

/// An append under way: what is known of its records.
struct AppendDelivery {
    count: usize,
    size_bytes: usize,
    seen: usize,
    first: Offset,
    stamp_ms: Option<i64>,
    /// Consecutive so far, with one stamp.
    together: bool,
    failed: Option<String>,
    done: Option<AppendDone>,
}

/// The appends that were handed over together.
struct Round {
    flights: Mutex<Vec<AppendDelivery>>,
    records_left: AtomicU64,
}

/// What comes back with each delivery: the partition, the round and the append's number in it.
struct DeliveryTag {
    partition: usize,
    round: Arc<Round>,
    flight: usize,
}

#[derive(Default)]
struct AppendQueue {
    waiting: VecDeque<Append>,
    waiting_bytes: usize,
    rounds: Vec<Arc<Round>>,
    /// An outcome is unknown: what comes after it on the same producer is too.
    doubtful: bool,
    wait: AckWait,
}

/// Since when a journal waits for an acknowledgement, over all appends that were given up meanwhile.
#[derive(Default)]
struct AckWait {
    since: Option<Instant>,
    given_up: Option<Instant>,
}

impl AckWait {
    fn begins(&mut self, now: Instant) {
        let is_another = self.given_up.is_some_and(|given_up| now - given_up > SAME_WAIT_WITHIN);
        self.since = self.since.filter(|_| !is_another).or(Some(now));
        self.given_up = None;
    }

    /// A round was acknowledged.
    fn ends(&mut self, goes_on: bool, now: Instant) {
        self.since = goes_on.then_some(now);
    }

    fn is_given_up(&mut self, now: Instant) {
        self.given_up = Some(now);
    }
}

/// A producer and its thread.
struct Slot {
    producer: RwLock<Option<Live<BaseProducer<JournalDeliveries>>>>,
    broken: AtomicBool,
}

struct Shared {
    topic: String,
    lanes: Vec<Mutex<AppendQueue>>,
    /// The next offset of each journal, as far as it was seen.
    ends: Vec<AtomicU64>,
    slots: Vec<Slot>,
    closing: AtomicBool,
    config: ClientSettings,
    rounds_max: usize,
    waiting_items_max: usize,
    waiting_bytes_max: usize,
    record_bytes_max: usize,
    counters: Arc<KafkaCounters>,
}

/// The writing side of all journals.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Journal {
    pub(crate) fn open(
        options: &Options,
        partitions: u32,
        counters: Arc<KafkaCounters>,
    ) -> Result<Self, Error> {
        let slots = options.journal_producers.min(partitions as usize);
        let shared = Arc::new(Shared {
            topic: options.topic("journal"),
            lanes: (0..partitions).map(|_| Mutex::default()).collect(),
            ends: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            slots: (0..slots)
                .map(|_| Slot { producer: RwLock::default(), broken: AtomicBool::new(false) })
                .collect(),
            closing: AtomicBool::new(false),
            config: options.journal_producer(),
            rounds_max: options.journal_requests_max,
            waiting_items_max: options.waiting_items_max,
            waiting_bytes_max: options.waiting_bytes_max,
            record_bytes_max: options.record_bytes_max,
            counters,
        });
        let mut journal = Journal { shared, threads: Vec::new() };
        for slot in 0..slots {
            let producer = journal.shared.new_producer()?;
            *journal.shared.slots[slot].producer.write() = Some(producer);
            let shared = Arc::clone(&journal.shared);
            let thread = std::thread::Builder::new().name(format!("journal-{slot}"));
            let thread = thread.spawn(move || {
                // A panic ends the log, so that nobody waits for ever; its hook has reported it.
                if std::panic::catch_unwind(AssertUnwindSafe(|| shared.serve(slot))).is_err() {
                    shared.closing.store(true, Ordering::Release);
                    shared.discard(slot, true);
                }
            });
            journal.threads.push(thread.map_err(|e| Error::Io { detail: format!("a journal thread: {e}") })?);
        }
        Ok(journal)
    }

    /// Queues an append; never blocks.
    pub(crate) fn append(&self, partition: PartitionId, records: Vec<Bytes>, done: AppendDone) {
        let shared = &self.shared;
        let refusal = shared.refuse(partition, &records);
        if let Some(error) = refusal {
            return answer(done, Err(error));
        }
        let lane_id = partition as usize;
        let mut lane = shared.lanes[lane_id].lock();
        let size_bytes = records.iter().map(Bytes::len).sum();
        // An append larger than the bound goes when nothing else waits.
        let full = lane.waiting.len() >= shared.waiting_items_max
            || (!lane.waiting.is_empty() && lane.waiting_bytes + size_bytes > shared.waiting_bytes_max);
        if full || shared.closing.load(Ordering::Acquire) {
            let error = if full { busy(&lane) } else { Error::Closed };
            drop(lane);
            add(&shared.counters.busy, u64::from(full));
            return answer(done, Err(error));
        }
        lane.waiting_bytes += size_bytes;
        lane.waiting.push_back(Append { records, size_bytes, done });
        shared.pump(lane_id, &mut lane);
    }

    /// The next offset of a journal, as far as it was seen here: never more than the truth.
    pub(crate) fn seen_end(&self, partition: PartitionId) -> Offset {
        self.shared.ends[partition as usize].load(Ordering::Acquire)
    }

    pub(crate) fn saw_end(&self, partition: PartitionId, end: Offset) {
        self.shared.ends[partition as usize].fetch_max(end, Ordering::AcqRel);
    }

    /// The partition whose appends have waited longest for an acknowledgement, and for how long; none where nothing is under way.
    pub(crate) fn unacknowledged_for(&self, now: Instant) -> Option<(PartitionId, Duration)> {
        let wait = |(partition, lane): (PartitionId, &Mutex<AppendQueue>)| {
            let lane = lane.lock();
            let since = lane.wait.since.filter(|_| !lane.rounds.is_empty())?;
            Some((partition, now.saturating_duration_since(since)))
        };
        (0..).zip(&self.shared.lanes).filter_map(wait).max_by_key(|(_, span)| *span)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic of the thread was reported by its own hook; there is nobody left to tell.
            let _ = thread.join();
        }
        // A producer holds what it belongs to.
        for slot in &self.shared.slots {
            slot.producer.write().take();
        }
    }
}

impl Shared {
    fn new_producer(self: &Arc<Self>) -> Result<Live<BaseProducer<JournalDeliveries>>, Error> {
        let meter = Meter::of_journal(&self.counters.traffic);
        let context =
            JournalDeliveries { shared: Arc::clone(self), client_log: ClientLog::new("journal"), meter };
        self.config.create_with_context(context).map_err(|error| io("a producer of the journals", &error))
    }

    fn explain(&self, error: &KafkaError) -> String {
        let needs = [(AclOperation::Write, AclResource::Topic(&self.topic))];
        self.config.principal().explain(error, &needs)
    }

    fn slot_of(&self, lane: usize) -> usize {
        lane % self.slots.len()
    }

    fn refuse(&self, partition: PartitionId, records: &[Bytes]) -> Option<Error> {
        if partition as usize >= self.lanes.len() {
            return Some(no_such_partition(partition, self.lanes.len() as u32));
        }
        if records.is_empty() {
            return Some(refused("an append of nothing"));
        }
        let max = self.record_bytes_max;
        let large = records.iter().find(|record| record.len() > max)?;
        Some(refused(format!("a record of {} bytes, record_bytes_max is {max}", large.len())))
    }

    /// Hands over what waits, as long as not too many rounds are under way.
    fn pump(&self, lane_id: usize, lane: &mut AppendQueue) {
        while !lane.doubtful && !lane.waiting.is_empty() && lane.rounds.len() < self.rounds_max {
            let slot = &self.slots[self.slot_of(lane_id)];
            let producer = slot.producer.read();
            let Some(producer) = producer.as_ref() else { return };
            let mut appends = Vec::new();
            let mut size_bytes = 0;
            while size_bytes < ROUND_BYTES_MAX {
                let Some(append) = lane.waiting.pop_front() else { break };
                lane.waiting_bytes -= append.size_bytes;
                size_bytes += append.size_bytes;
                appends.push(append);
            }
            self.send(lane_id, lane, producer, appends);
        }
    }

    fn send(
        &self,
        lane_id: usize,
        lane: &mut AppendQueue,
        producer: &BaseProducer<JournalDeliveries>,
        appends: Vec<Append>,
    ) {
        let mut records = Vec::new();
        let mut flights = Vec::with_capacity(appends.len());
        for append in appends {
            records.push(append.records);
            flights.push(AppendDelivery {
                count: records.last().map_or(0, Vec::len),
                size_bytes: append.size_bytes,
                seen: 0,
                first: 0,
                stamp_ms: None,
                together: true,
                failed: None,
                done: Some(append.done),
            });
        }
        let count: usize = records.iter().map(Vec::len).sum();
        let round =
            Arc::new(Round { flights: Mutex::new(flights), records_left: AtomicU64::new(count as u64) });
        lane.rounds.push(Arc::clone(&round));
        lane.wait.begins(Instant::now());
        add(&self.counters.rounds, 1);
        for (flight, records) in records.iter().enumerate() {
            for bytes in records {
                let ticket = Box::new(DeliveryTag { partition: lane_id, round: Arc::clone(&round), flight });
                let record: BaseRecord<'_, (), [u8], Box<DeliveryTag>> =
                    BaseRecord::with_opaque_to(&self.topic, ticket).partition(lane_id as i32).payload(bytes);
                if let Err((error, _)) = producer.send(record) {
                    // Not taken: the producer has ended. Its thread answers all that is under way.
                    round.flights.lock()[flight].failed = Some(self.explain(&error));
                    lane.doubtful = true;
                    self.slots[self.slot_of(lane_id)].broken.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }

    /// A record was delivered or not; answers the append when it was its last one, goes on when it was the round's.
    fn delivered(&self, ticket: &DeliveryTag, outcome: Result<(Offset, Option<i64>), String>) {
        let lane_mutex = &self.lanes[ticket.partition];
        let failed = outcome.is_err();
        if let Ok((offset, _)) = &outcome {
            self.ends[ticket.partition].fetch_max(offset + 1, Ordering::AcqRel);
        }
        if failed {
            self.slots[self.slot_of(ticket.partition)].broken.store(true, Ordering::Release);
        }
        let doubtful = {
            let mut lane = lane_mutex.lock();
            lane.doubtful |= failed;
            lane.doubtful
        };
        let finished = {
            let mut flights = ticket.round.flights.lock();
            let flight = &mut flights[ticket.flight];
            flight.note(outcome);
            let done = if flight.seen == flight.count { flight.done.take() } else { None };
            done.map(|done| (done, flight.outcome(doubtful), flight.count, flight.size_bytes))
        };
        if let Some((done, outcome, count, size_bytes)) = finished {
            self.count(&outcome, count, size_bytes);
            answer(done, outcome);
        }
        if ticket.round.records_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut lane = lane_mutex.lock();
            lane.rounds.retain(|round| !Arc::ptr_eq(round, &ticket.round));
            if !lane.doubtful {
                let goes_on = !lane.rounds.is_empty();
                lane.wait.ends(goes_on, Instant::now());
            }
            self.pump(ticket.partition, &mut lane);
        }
    }

    fn count(&self, outcome: &Result<Option<Appended>, Error>, count: usize, size_bytes: usize) {
        let counters = &self.counters;
        match outcome {
            Ok(place) => {
                add(&counters.appends, 1);
                add(&counters.records, count as u64);
                add(&counters.bytes, size_bytes as u64);
                add(&counters.scattered, u64::from(place.is_none()));
            }
            Err(_) => add(&counters.unknown, 1),
        }
    }

    /// The producer's thread: its deliveries, and its replacement.
    fn serve(self: &Arc<Self>, slot_id: usize) {
        let slot = &self.slots[slot_id];
        let mut closing_since: Option<Instant> = None;
        loop {
            if let Some(producer) = slot.producer.read().as_ref() {
                producer.poll(POLL);
            }
            if self.closing.load(Ordering::Acquire) {
                let since = closing_since.get_or_insert_with(Instant::now);
                if self.is_quiet(slot_id) || since.elapsed() > CLOSE_WITHIN {
                    self.discard(slot_id, true);
                    return;
                }
            }
            if slot.broken.load(Ordering::Acquire) {
                self.discard(slot_id, false);
                self.renew(slot_id);
            }
        }
    }

    fn lanes_of(&self, slot: usize) -> impl Iterator<Item = (usize, &Mutex<AppendQueue>)> {
        self.lanes.iter().enumerate().skip(slot).step_by(self.slots.len())
    }

    fn is_quiet(&self, slot: usize) -> bool {
        self.lanes_of(slot).all(|(_, lane)| {
            let lane = lane.lock();
            lane.rounds.is_empty() && lane.waiting.is_empty()
        })
    }

    /// Drops the producer with its connections, then answers all callers that have no answer yet.
    fn discard(&self, slot_id: usize, closing: bool) {
        // Nothing more is handed to it from here on.
        let producer = self.slots[slot_id].producer.write().take();
        drop(producer);
        for (_, lane) in self.lanes_of(slot_id) {
            let (rounds, waiting, error) = {
                let mut lane = lane.lock();
                lane.doubtful = false;
                lane.wait.is_given_up(Instant::now());
                let error = if closing { Error::Closed } else { busy(&lane) };
                lane.waiting_bytes = 0;
                (std::mem::take(&mut lane.rounds), std::mem::take(&mut lane.waiting), error)
            };
            for round in rounds {
                self.give_up(&round);
            }
            for append in waiting {
                answer(append.done, Err(error.clone()));
            }
        }
    }

    fn give_up(&self, round: &Round) {
        let open: Vec<_> = {
            let mut flights = round.flights.lock();
            let open = flights.iter_mut().filter_map(|flight| {
                let done = flight.done.take()?;
                Some((done, flight.failed.take(), flight.count, flight.size_bytes))
            });
            open.collect()
        };
        for (done, failed, count, size_bytes) in open {
            let detail =
                failed.unwrap_or_else(|| "the producer was given up before it was acknowledged".into());
            let outcome = Err(unknown(format!("an append to {}: {detail}", self.topic)));
            self.count(&outcome, count, size_bytes);
            answer(done, outcome);
        }
    }

    fn renew(self: &Arc<Self>, slot_id: usize) {
        let slot = &self.slots[slot_id];
        while !self.closing.load(Ordering::Acquire) {
            // Making a client reaches for no broker: it fails only for want of memory, threads or descriptors.
            if let Ok(producer) = self.new_producer() {
                slot.broken.store(false, Ordering::Release);
                *slot.producer.write() = Some(producer);
                for (lane_id, lane) in self.lanes_of(slot_id) {
                    self.pump(lane_id, &mut lane.lock());
                }
                return;
            }
            std::thread::sleep(AGAIN_AFTER);
        }
    }
}

impl AppendDelivery {
    fn note(&mut self, outcome: Result<(Offset, Option<i64>), String>) {
        match outcome {
            Ok((offset, stamp_ms)) if self.seen == 0 => {
                self.first = offset;
                self.stamp_ms = stamp_ms;
            }
            Ok((offset, stamp_ms)) => {
                self.together &= offset == self.first + self.seen as Offset && stamp_ms == self.stamp_ms;
            }
            Err(detail) => {
                self.failed.get_or_insert(detail);
            }
        }
        self.seen += 1;
    }

    fn outcome(&mut self, doubtful: bool) -> Result<Option<Appended>, Error> {
        match (self.failed.take(), self.stamp_ms) {
            (Some(detail), _) => Err(unknown(format!("an append: {detail}"))),
            (None, _) if doubtful => Err(unknown("an append behind one of unknown outcome")),
            (None, Some(stamp_ms)) if self.together => Ok(Some(Appended { first: self.first, stamp_ms })),
            (None, _) => Ok(None),
        }
    }
}

/// Delivery reports of librdkafka.
struct JournalDeliveries {
    shared: Arc<Shared>,
    client_log: ClientLog,
    meter: Meter,
}

logs_as_client!(
    JournalDeliveries,
    fn stats(&self, statistics: Statistics) {
        self.meter.count(&statistics);
    }
);

impl ProducerContext for JournalDeliveries {
    type DeliveryOpaque = Box<DeliveryTag>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<DeliveryTag>) {
        let outcome = match result {
            Ok(message) => {
                let stamp_ms = match message.timestamp() {
                    Timestamp::LogAppendTime(ms) => Some(ms),
                    Timestamp::CreateTime(_) | Timestamp::NotAvailable => None,
                };
                u64::try_from(message.offset())
                    .map(|offset| (offset, stamp_ms))
                    .map_err(|_| "acknowledged without an offset".to_owned())
            }
            Err((error, _)) => Err(self.shared.explain(error)),
        };
        self.shared.delivered(&ticket, outcome);
    }
}

fn busy(lane: &AppendQueue) -> Error {
    Error::Busy { waiting_items: lane.waiting.len(), waiting_bytes: lane.waiting_bytes }
}

/// A caller's panic must not end the log for everyone else; its own hook has reported it.
fn answer(done: AppendDone, outcome: Result<Option<Appended>, Error>) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(move || done(outcome)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_waits_on_when_appends_are_given_up_and_no_longer_when_one_is_acknowledged() {
        let (mut wait, begin) = (AckWait::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        wait.begins(at(0));
        wait.begins(at(5));
        wait.is_given_up(at(30));
        wait.begins(at(31));
        assert_eq!(wait.since, Some(at(0)), "it is the same wait");
        wait.ends(true, at(32));
        assert_eq!(wait.since, Some(at(32)), "a round is under way");
        wait.is_given_up(at(62));
        wait.begins(at(3_600));
        assert_eq!(wait.since, Some(at(3_600)), "the partition was elsewhere meanwhile");
        wait.ends(false, at(3_601));
        assert_eq!(wait.since, None);
    }
}
