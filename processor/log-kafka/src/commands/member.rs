//! The member of the consumer group that reads the public commands: its thread, and the group's callbacks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use everlog_log::consumer::{Assigned, ConsumedTopic, Fetched, SourceError};
use everlog_log::{Error, Offset, PartitionId};
use parking_lot::{Mutex, MutexGuard};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};
use rdkafka::types::RDKafkaRespErr;

use crate::client::consumer::{FOLLOW_WAIT, place, range, reaching};
use crate::client::librdkafka;
use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::commands::source::{SourceEvent, SourceState};
use crate::commands::undecodable_batch::Prober;
use crate::errors::{io, io_text, missing};
use crate::options::Options;
use crate::permissions::reads;
use crate::topic_id;

/// How long the thread waits for a record before it does its other work.
const POLL: Duration = Duration::from_millis(20);
/// How often offsets are committed.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// Timeout of one question about new partitions: the group must be polled meanwhile.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// Pause before the question is repeated.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How often the ends of the partitions are read from the client's cache, for the lag; no broker is asked.
const SEE_ENDS_EVERY: Duration = Duration::from_millis(500);
/// How often the topic's id is compared with the one that was opened.
const WATCH_EVERY: Duration = Duration::from_secs(10);

/// Callbacks of the group, called inside of the consumer's poll only.
struct GroupListener {
    topic: ConsumedTopic,
    state: Arc<Mutex<SourceState>>,
    client_log: ClientLog,
}

/// The consumer, and the state that its thread shares with the poller.
pub(crate) struct Member {
    pub(crate) topic: ConsumedTopic,
    consumer: Live<BaseConsumer<GroupListener>>,
    state: Arc<Mutex<SourceState>>,
    options: Options,
}

/// When the thread did its duties last.
struct Duties {
    committed: Instant,
    saw_ends: Instant,
    looked: Option<Instant>,
    watched: Option<Instant>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Member {
    pub(crate) fn join(options: &Options) -> Result<Self, Error> {
        let name = options.topic("commands");
        let asker: Live<BaseConsumer<ClientLog>> = options
            .client("commands-id")
            .create_with_context(ClientLog::new("commands-id"))
            .map_err(|error| io("a client", &error))?;
        let incarnation = librdkafka::topic_id(&asker, &name, options.call_timeout())?;
        let topic = ConsumedTopic { incarnation: incarnation.ok_or_else(|| missing(&name))?, name };
        let state: Arc<Mutex<SourceState>> = Arc::default();
        let tidings = GroupListener {
            topic: topic.clone(),
            state: Arc::clone(&state),
            client_log: ClientLog::new("commands"),
        };
        let consumer: Live<BaseConsumer<GroupListener>> = options
            .member("ingress", FOLLOW_WAIT)
            .create_with_context(tidings)
            .map_err(|error| io("a consumer of the commands", &error))?;
        consumer.subscribe(&[&topic.name]).map_err(|error| io("joining the group", &error))?;
        Ok(Member { topic, consumer, state, options: options.clone() })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock()
    }

    pub(crate) fn shared(&self) -> &Arc<Mutex<SourceState>> {
        &self.state
    }

    /// The thread: until nobody else has the member.
    pub(crate) fn serve(self: Arc<Self>) {
        let mut served = Instant::now();
        let (committed, saw_ends, watched) = (served, served, Some(served));
        let mut duties = Duties { committed, saw_ends, looked: None, watched };
        while Arc::strong_count(&self) > 1 {
            let is_idle = match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    self.bring(&message);
                    false
                }
                Some(Err(error)) => {
                    self.find_fault(&error, &mut duties);
                    false
                }
                None => true,
            };
            if is_idle || served.elapsed() >= POLL {
                self.look(&mut duties);
                self.begin();
                self.commit(&mut duties);
                self.watch(&mut duties);
                self.see_ends(&mut duties);
                served = Instant::now();
            }
        }
        let commits: Vec<_> = std::mem::take(&mut self.state().commits).into_iter().collect();
        // The group is left when the consumer is dropped, which waits for these.
        send_commits(&self.consumer, &self.topic, &commits);
    }

    fn bring(&self, message: &BorrowedMessage<'_>) {
        let (Ok(partition), Ok(offset)) =
            (PartitionId::try_from(message.partition()), Offset::try_from(message.offset()))
        else {
            return;
        };
        let waker = {
            let mut state = self.state();
            // What was on its way before its partition was taken back, or before it was begun anew.
            let Some(next) = state.places.get_mut(&partition).and_then(|place| place.next.as_mut()) else {
                return;
            };
            if offset < *next {
                return;
            }
            *next = offset + 1;
            let copy = |bytes: Option<&[u8]>| bytes.map(bytes::Bytes::copy_from_slice);
            let (key, value) = (copy(message.key()), copy(message.payload()));
            let headers = librdkafka::headers(message);
            let waker = state.add(SourceEvent::Record(Fetched {
                partition,
                offset,
                key,
                value,
                headers,
                lost: None,
            }));
            if state.rests() {
                self.steer_all(&mut state);
            }
            waker
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn tell(&self, event: SourceEvent) {
        let waker = self.state().add(event);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn complain(&self, trouble: impl Into<String>) {
        self.tell(SourceEvent::Failed(SourceError::Passing(trouble.into())));
    }

    /// Fetches a partition or lets it rest, as its place and the room say.
    pub(crate) fn steer(&self, state: &mut SourceState, partition: PartitionId) {
        let is_resting = state.is_resting;
        let Some(place) = state.places.get(&partition).filter(|place| place.next.is_some()) else { return };
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic.name, partition as i32);
        let rests = is_resting || place.is_paused;
        let outcome = if rests { self.consumer.pause(&list) } else { self.consumer.resume(&list) };
        if let Err(error) = outcome {
            // It can only be a partition that is not read any more; nothing of it comes then.
            tracing::debug!(partition, %error, "a partition of the commands was not paused or resumed");
        }
    }

    pub(crate) fn steer_all(&self, state: &mut SourceState) {
        let read: Vec<_> = state.places.keys().copied().collect();
        read.into_iter().for_each(|partition| self.steer(state, partition));
    }

    /// Finds out what there is of new partitions, and offers them.
    fn look(&self, duties: &mut Duties) {
        let fresh = self.state().fresh.clone();
        if fresh.is_empty() || duties.looked.is_some_and(|looked| looked.elapsed() < LOOK_AGAIN_AFTER) {
            return;
        }
        match self.assigned(&fresh) {
            Ok(Some(assigned)) => {
                duties.looked = None;
                let waker = {
                    let mut state = self.state();
                    state.fresh.clear();
                    let numbered = assigned.into_iter().filter_map(|assigned| {
                        let place = state.places.get_mut(&assigned.partition)?;
                        let committed = assigned.committed.map(|(_, next)| next);
                        place.done = committed.unwrap_or(assigned.bounds.start);
                        place.end = assigned.bounds.end;
                        Some((assigned, place.assignment))
                    });
                    let numbered = numbered.collect();
                    state.add(SourceEvent::Assigned(numbered))
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            // The topic is another one.
            Ok(None) => {}
            Err(error) => {
                duties.looked = Some(Instant::now());
                self.complain(format!("what is there of the commands cannot be told: {error}"));
            }
        }
    }

    /// None: the topic was made again.
    fn assigned(&self, partitions: &[PartitionId]) -> Result<Option<Vec<Assigned>>, Error> {
        if !self.is_same()? {
            return Ok(None);
        }
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.topic.name, *partition as i32);
        }
        let committed = self.consumer.committed_offsets(list, LOOK_WITHIN);
        let group = self.options.group("ingress");
        let needs = reads(&self.topic.name, &group);
        let fault = |error| self.consumer.principal().fault("what the group has committed", &error, &needs);
        let committed = committed.map_err(fault)?;
        let mut assigned = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let element = committed.find_partition(&self.topic.name, *partition as i32);
            let element = element.ok_or_else(|| io_text("the group was not asked for a partition"))?;
            element.error().map_err(fault)?;
            let committed = match element.offset() {
                // An offset set by a tool has no id. Then everything is read again, because no record may be skipped; a record
                // that was applied counts once.
                At::Offset(next) if next >= 0 && !element.metadata().is_empty() => {
                    Some((topic_id::parse(element.metadata()).unwrap_or_default(), next as Offset))
                }
                At::Offset(_) | At::Beginning | At::End | At::Stored | At::Invalid | At::OffsetTail(_) => {
                    None
                }
            };
            assigned.push(Assigned { partition: *partition, committed, bounds: self.bounds(*partition)? });
        }
        Ok(Some(assigned))
    }

    fn bounds(&self, partition: PartitionId) -> Result<std::ops::Range<Offset>, Error> {
        range(&self.consumer, &self.topic.name, partition as i32, LOOK_WITHIN)
    }

    /// Whether the topic is still the one that it was; else nothing more is read.
    fn is_same(&self) -> Result<bool, Error> {
        match librdkafka::topic_id(&self.consumer, &self.topic.name, LOOK_WITHIN)? {
            Some(now) if now != self.topic.incarnation => {
                self.give_up(now);
                Ok(false)
            }
            Some(_) => Ok(true),
            None => Err(missing(&self.topic.name)),
        }
    }

    fn give_up(&self, now: [u8; 16]) {
        let (was, now) = (topic_id::text(&self.topic.incarnation), topic_id::text(&now));
        let places: Vec<_> = {
            let mut state = self.state();
            state.fresh.clear();
            let places = state.places.iter_mut().filter(|(_, place)| !place.has_failed);
            let places = places.map(|(partition, place)| {
                place.has_failed = true;
                (*partition, place.next.unwrap_or(0))
            });
            places.collect()
        };
        for (partition, offset) in places {
            let detail = format!("it had the id {was}, the one that is there now has {now}");
            self.stop(partition);
            self.tell(SourceEvent::Failed(SourceError::MadeAgain { partition, offset, detail }));
        }
        self.consumer.unsubscribe();
    }

    /// Fetches nothing of a partition any more.
    fn stop(&self, partition: PartitionId) {
        let was_read = {
            let mut state = self.state();
            state.begins.remove(&partition);
            let place = state.places.get_mut(&partition);
            place.is_some_and(|place| {
                place.has_failed = true;
                place.next.take().is_some()
            })
        };
        if was_read {
            let mut list = TopicPartitionList::new();
            list.add_partition(&self.topic.name, partition as i32);
            if let Err(error) = self.consumer.incremental_unassign(&list) {
                tracing::debug!(partition, %error, "a partition of the commands was not released");
            }
        }
    }

    /// Begins to fetch what the taker asked for.
    fn begin(&self) {
        let begins = std::mem::take(&mut self.state().begins);
        for (partition, offset) in begins {
            let assigned = place(&self.topic.name, partition as i32, offset).and_then(|list| {
                self.consumer.incremental_assign(&list).map_err(|error| io("reading the commands", &error))
            });
            let mut state = self.state();
            match assigned {
                Ok(()) => {
                    if let Some(place) = state.places.get_mut(&partition) {
                        place.next = Some(offset);
                    }
                    self.steer(&mut state, partition);
                }
                Err(error) => {
                    state.begins.insert(partition, offset);
                    drop(state);
                    self.complain(format!(
                        "partition {partition} of the commands cannot be read yet: {error}"
                    ));
                }
            }
        }
    }

    fn commit(&self, duties: &mut Duties) {
        if duties.committed.elapsed() < COMMIT_EVERY {
            return;
        }
        let commits: Vec<_> = std::mem::take(&mut self.state().commits).into_iter().collect();
        if !commits.is_empty() {
            duties.committed = Instant::now();
            send_commits(&self.consumer, &self.topic, &commits);
        }
    }

    /// Asks now and then whether the topic is the same: a new one with as many records would be read on.
    fn watch(&self, duties: &mut Duties) {
        let is_read = self.state().places.values().any(|place| place.next.is_some());
        if is_read && duties.watched.is_none_or(|watched| watched.elapsed() >= WATCH_EVERY) {
            duties.watched = Some(Instant::now());
            if let Err(error) = self.is_same() {
                tracing::debug!(%error, "the id of the commands topic cannot be read");
            }
        }
    }

    /// Notes the end of each partition, by the last fetch.
    fn see_ends(&self, duties: &mut Duties) {
        if duties.saw_ends.elapsed() < SEE_ENDS_EVERY {
            return;
        }
        duties.saw_ends = Instant::now();
        for (partition, _) in self.read() {
            let end = librdkafka::high_watermark(self.consumer.client(), &self.topic.name, partition as i32);
            if let Some(place) = self.state().places.get_mut(&partition) {
                place.end = place.end.max(end);
            }
        }
    }

    fn find_fault(&self, error: &KafkaError, duties: &mut Duties) {
        let (KafkaError::MessageConsumption(code) | KafkaError::MessageConsumptionFatal(code)) = error else {
            return self.complain(format!("the commands cannot be read: {error}"));
        };
        match *code {
            RDKafkaErrorCode::AutoOffsetReset
            | RDKafkaErrorCode::OffsetOutOfRange
            | RDKafkaErrorCode::LogTruncation => self.find_outside(),
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition => {
                duties.watched = None;
                self.complain(format!("the topic {} is not there", self.topic.name));
            }
            // One broker's connections break and are made again; `AllBrokersDown` comes when none is left.
            RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve => {}
            RDKafkaErrorCode::BadCompression => {
                if let Err(error) = self.pass_over_unreadable() {
                    self.complain(format!(
                        "some commands cannot be unpacked, and not be passed over yet: {error}"
                    ));
                }
            }
            _ => {
                let group = self.options.group("ingress");
                let needs = reads(&self.topic.name, &group);
                let why = self.consumer.principal().explain(error, &needs);
                self.complain(format!("the commands cannot be read: {why}"));
            }
        }
    }

    /// An error of the consumer names no partition. A partition whose next batch cannot be decompressed is read on behind it,
    /// and the batch is delivered as one lost record.
    fn pass_over_unreadable(&self) -> Result<(), Error> {
        let prober = Prober::open(&self.options, &self.topic.name)?;
        for (partition, from) in self.read() {
            let end = self.bounds(partition)?.end;
            let Some(lost) = prober.unreadable(partition, from, end)? else { continue };
            let bytes_max = self.options.unpacked_bytes_max();
            let reason = format!(
                "a batch of records, offsets {} to {}, does not unpack within {bytes_max} bytes of memory",
                lost.start,
                lost.end - 1
            );
            tracing::warn!(partition, reason, "commands skipped");
            self.begin_again(partition, lost.end);
            let (offset, lost) = (lost.start, Some(reason));
            self.tell(SourceEvent::Record(Fetched { partition, offset, lost, ..Fetched::default() }));
        }
        Ok(())
    }

    /// The partitions that are read, and the offset that comes next in each.
    fn read(&self) -> Vec<(PartitionId, Offset)> {
        let state = self.state();
        state.places.iter().filter_map(|(partition, place)| Some((*partition, place.next?))).collect()
    }

    /// An error of the consumer names no partition. Those that stand outside of what is there fail, the others are read
    /// on from where they stand: the client has stopped one of them.
    fn find_outside(&self) {
        match self.is_same() {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.complain(error.to_string()),
        }
        for (partition, offset) in self.read() {
            match reaching(&self.consumer, &self.topic.name, partition as i32, offset, LOOK_WITHIN) {
                Ok(bounds) if offset >= bounds.start && offset <= bounds.end => {
                    self.begin_again(partition, offset)
                }
                Ok(bounds) => {
                    self.stop(partition);
                    let detail = format!("it holds {} to {}", bounds.start, bounds.end);
                    self.tell(SourceEvent::Failed(SourceError::OutOfRange { partition, offset, detail }));
                }
                // It is found out again when it is read again.
                Err(error) => {
                    self.begin_again(partition, offset);
                    self.complain(error.to_string());
                }
            }
        }
    }

    fn begin_again(&self, partition: PartitionId, offset: Offset) {
        self.stop(partition);
        let mut state = self.state();
        if let Some(place) = state.places.get_mut(&partition) {
            place.has_failed = false;
            state.begins.insert(partition, offset);
        }
    }
}

fn send_commits<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &ConsumedTopic,
    commits: &[(PartitionId, Offset)],
) {
    let mut list = TopicPartitionList::with_capacity(commits.len());
    for (partition, next) in commits {
        let mut element = list.add_partition(&topic.name, *partition as i32);
        let Ok(next) = i64::try_from(*next) else { continue };
        if element.set_offset(At::Offset(next)).is_ok() {
            element.set_metadata(topic_id::text(&topic.incarnation));
        }
    }
    if commits.is_empty() {
        return;
    }
    if let Err(error) = consumer.commit(&list, CommitMode::Async) {
        tracing::debug!(%error, "offsets of the commands were not committed; the next commit includes them");
    }
}

logs_as_client!(GroupListener);

impl ConsumerContext for GroupListener {
    /// Assigned partitions are not fetched before they are begun.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let partitions: Vec<PartitionId> = list
            .elements()
            .iter()
            .filter(|element| element.topic() == self.topic.name)
            .filter_map(|element| PartitionId::try_from(element.partition()).ok())
            .collect();
        let mut answer = TopicPartitionList::new();
        let outcome = if code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.state.lock().assign(&partitions);
            consumer.incremental_assign(&answer)
        } else {
            let (read, commits, waker) = {
                let mut state = self.state.lock();
                let (read, commits) = state.revoke(&partitions);
                (read, commits, state.wake())
            };
            send_commits(consumer, &self.topic, &commits);
            for partition in read {
                answer.add_partition(&self.topic.name, partition as i32);
            }
            let outcome = consumer.incremental_unassign(&answer);
            if let Some(waker) = waker {
                waker.wake();
            }
            outcome
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "a rebalance of the commands group was not answered; the group will repeat it");
        }
    }

    fn commit_callback(&self, outcome: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = outcome {
            tracing::debug!(%error, "offsets of the commands were not committed; the next commit includes them");
        }
    }
}
