//! Reads Kafka: the ends of a partition, and its records from one offset to another.
//!
//! It decides nothing about the records. Answers of a broker that lost the others are asked for again of the new leader.

use std::ops::Range;
use std::time::{Duration, Instant};

use everlog_log::{Error, Offset};
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::{Offset as At, TopicPartitionList};

use crate::client::librdkafka;
use crate::client::librdkafka::Live;
use crate::client::log_lines::{ClientLog, logs_as_client};
use crate::client::statistics::Meter;
use crate::errors::{corrupt, io, io_text};
use crate::options::{Isolation, Options};
use crate::permissions::{AclOperation, AclResource};

/// `fetch.wait.max.ms` of a consumer that reads up to a known end: a short wait, because the records are there.
const FETCH_WAIT: Duration = Duration::from_millis(5);
/// `fetch.wait.max.ms` of a consumer that waits at the end. A further journal joins the fetch only after it.
pub(crate) const FOLLOW_WAIT: Duration = Duration::from_millis(100);
/// Pause before a question is repeated that a broker could not answer yet.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// First timeout of a question to a leader; then the leader is looked up again. The timeout doubles each time.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Timeout of a metadata request for the leaders of a topic; then it is sent again.
const METADATA_WITHIN: Duration = Duration::from_secs(1);
/// How long a reader waits for the leaders before it reads. Without an answer the client looks them up itself.
const LEADER_WITHIN: Duration = Duration::from_millis(250);
/// How long known leaders count as known. librdkafka forgets a topic that it does not read after 15 minutes.
const LEADERS_KNOWN_FOR: Duration = Duration::from_secs(300);
/// How often the leader is looked up again while a partition ends before a known offset. A broker that lost the others
/// still leads for itself and reports an old end.
const LEADER_EVERY: Duration = Duration::from_millis(250);

/// How far topics reach.
pub(crate) struct TopicEnds {
    uncommitted: Live<BaseConsumer<ClientLog>>,
    committed: Live<BaseConsumer<ClientLog>>,
    timeout: Duration,
}

impl TopicEnds {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        Ok(TopicEnds {
            uncommitted: consumer(options, "ends", Isolation::Uncommitted)?,
            committed: consumer(options, "ends", Isolation::Committed)?,
            timeout: options.call_timeout(),
        })
    }

    /// A client that questions may be asked by which are not about an end.
    pub(crate) fn asker(&self) -> &Live<BaseConsumer<ClientLog>> {
        &self.uncommitted
    }

    /// The client of its requests.
    pub(crate) fn into_clients(self) -> (Live<BaseConsumer<ClientLog>>, Live<BaseConsumer<ClientLog>>) {
        (self.uncommitted, self.committed)
    }

    /// First offset and next offset: of what is replicated, or of what belongs to finished transactions.
    pub(crate) fn range(
        &self,
        topic: &str,
        partition: i32,
        isolation: Isolation,
    ) -> Result<Range<Offset>, Error> {
        let client = match isolation {
            Isolation::Uncommitted => &self.uncommitted,
            Isolation::Committed => &self.committed,
        };
        // Nobody else takes the events of this client: errors of its connections.
        while client.poll(Duration::ZERO).is_some() {}
        range(client, topic, partition, self.timeout)
    }

    /// First offset and next offset of what is replicated, where `until` is known to have been replicated.
    pub(crate) fn reaching(
        &self,
        topic: &str,
        partition: i32,
        until: Offset,
    ) -> Result<Range<Offset>, Error> {
        let found = self.range(topic, partition, Isolation::Uncommitted)?;
        if found.end >= until {
            Ok(found)
        } else {
            reaching(&self.uncommitted, topic, partition, until, self.timeout)
        }
    }

    /// Looks up the leaders of a topic's partitions again, because the broker that answered may not lead any more.
    fn seek_leaders(&self, topic: &str) {
        for client in [&self.uncommitted, &self.committed] {
            seek_leaders(client, topic);
        }
    }

    /// Waits until all transactions of a partition are finished, and it reaches `until`; the range is then the same
    /// for every reader.
    pub(crate) fn settled(&self, topic: &str, partition: i32, until: Offset) -> Result<Range<Offset>, Error> {
        let deadline = Instant::now() + self.timeout;
        let mut sought = Instant::now();
        loop {
            let all = self.range(topic, partition, Isolation::Uncommitted)?;
            let stable = self.range(topic, partition, Isolation::Committed)?;
            if stable.end >= all.end && stable.end >= until {
                return Ok(stable);
            }
            if Instant::now() > deadline {
                let detail = if all.end < until {
                    format!(
                        "{topic}-{partition} was written up to {until}, whoever leads it tells {}",
                        all.end
                    )
                } else {
                    format!(
                        "{topic}-{partition}: a transaction is open from offset {} on, the end is {}: a writer \
                         with another transactional id must not be there",
                        stable.end, all.end
                    )
                };
                return Err(io_text(detail));
            }
            if sought.elapsed() >= LEADER_EVERY {
                self.seek_leaders(topic);
                sought = Instant::now();
            }
            std::thread::sleep(AGAIN_AFTER / 10);
        }
    }

    /// The next committed offset of each partition, by one request to each broker. None: no answer at once.
    pub(crate) fn committed(&self, places: &[(&str, i32, Offset)]) -> Vec<Option<Offset>> {
        ends(&self.committed, places).unwrap_or_else(|_passing| vec![None; places.len()])
    }

    /// Which of these partitions have no open transaction and reach their offset, by one look. None of them where the
    /// brokers do not answer at once.
    pub(crate) fn are_settled(&self, places: &[(&str, i32, Offset)]) -> Vec<bool> {
        let look = || {
            // In this order: what is behind the first answer may be open.
            let all = ends(&self.uncommitted, places)?;
            Ok::<_, KafkaError>((all, ends(&self.committed, places)?))
        };
        let Ok((all, stable)) = look() else { return vec![false; places.len()] };
        let known = all.into_iter().zip(stable).zip(places);
        known
            .map(|((all, stable), (_, _, until))| {
                all.is_some() && stable.is_some_and(|stable| Some(stable) >= all && stable >= *until)
            })
            .collect()
    }

    /// The first offset of an open transaction in each partition; None where none is open. Nothing where a broker does
    /// not answer at once.
    pub(crate) fn open_from(&self, places: &[(&str, i32, Offset)]) -> Option<Vec<Option<Offset>>> {
        let all = ends(&self.uncommitted, places).ok()?;
        let stable = ends(&self.committed, places).ok()?;
        let from = |(all, stable): (Option<Offset>, Option<Offset>)| {
            let (all, stable) = (all?, stable?);
            Some((stable < all).then_some(stable))
        };
        all.into_iter().zip(stable).map(from).collect()
    }

    /// The records from an open transaction on, if one stays open for so long.
    pub(crate) fn left_open(
        &self,
        topic: &str,
        partition: i32,
        within: Duration,
    ) -> Result<Option<Range<Offset>>, Error> {
        let deadline = Instant::now() + within;
        loop {
            let all = self.range(topic, partition, Isolation::Uncommitted)?;
            let stable = self.range(topic, partition, Isolation::Committed)?;
            if stable.end >= all.end {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Ok(Some(stable.end..all.end));
            }
            std::thread::sleep(AGAIN_AFTER / 10);
        }
    }

    /// The readable range, once everything below `until` belongs to finished transactions.
    pub(crate) fn committed_to(
        &self,
        topic: &str,
        partition: i32,
        until: Offset,
    ) -> Result<Range<Offset>, Error> {
        let deadline = Instant::now() + self.timeout;
        let mut sought = Instant::now();
        loop {
            let range = self.range(topic, partition, Isolation::Committed)?;
            if range.end >= until || Instant::now() > deadline {
                return Ok(range);
            }
            if sought.elapsed() >= LEADER_EVERY {
                self.seek_leaders(topic);
                sought = Instant::now();
            }
            std::thread::sleep(AGAIN_AFTER / 10);
        }
    }
}

/// The next offset of each place, as a consumer sees it, by one question to each broker; none where it had no answer.
fn ends(
    client: &Live<BaseConsumer<ClientLog>>,
    places: &[(&str, i32, Offset)],
) -> Result<Vec<Option<Offset>>, KafkaError> {
    while client.poll(Duration::ZERO).is_some() {}
    let mut wanted = TopicPartitionList::new();
    for (topic, partition, _) in places {
        wanted.add_partition_offset(topic, *partition, At::End)?;
    }
    let answered = client.offsets_for_times(wanted, ANSWER_WITHIN)?;
    let next = |(topic, partition, _): &(&str, i32, Offset)| {
        let found = answered.find_partition(topic, *partition)?;
        match (found.error(), found.offset()) {
            (Ok(()), At::Offset(next)) => Offset::try_from(next).ok(),
            (_, _) => None,
        }
    };
    Ok(places.iter().map(next).collect())
}

/// First offset and next offset, as a consumer sees them. Transient errors are retried.
pub(crate) fn range<C: ConsumerContext>(
    consumer: &Live<BaseConsumer<C>>,
    topic: &str,
    partition: i32,
    within: Duration,
) -> Result<Range<Offset>, Error> {
    let deadline = Instant::now() + within;
    let mut answer_within = ANSWER_WITHIN;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match consumer.fetch_watermarks(topic, partition, left.min(answer_within)) {
            Ok((low, high)) if low >= 0 && high >= low => return Ok(low as Offset..high as Offset),
            Ok((low, high)) => {
                return Err(corrupt(topic, partition, format!("it reaches from {low} to {high}")));
            }
            Err(error) if is_passing(&error) && !left.is_zero() => {
                // What the client remembers of a topic may outlive its leaders: it would ask a dead one for ever.
                let is_remembered = matches!(
                    error.rdkafka_error_code(),
                    Some(
                        RDKafkaErrorCode::UnknownPartition
                            | RDKafkaErrorCode::OperationTimedOut
                            | RDKafkaErrorCode::DestroyBroker
                    )
                );
                if is_remembered {
                    let _ = consumer.fetch_metadata(Some(topic), left.min(METADATA_WITHIN));
                    answer_within = within.min(answer_within * 2);
                }
                std::thread::sleep(AGAIN_AFTER);
            }
            Err(error) => {
                let needs = [(AclOperation::Describe, AclResource::Topic(topic))];
                let what = format!("how far {topic}-{partition} reaches");
                return Err(consumer.principal().fault(&what, &error, &needs));
            }
        }
    }
}

/// First offset and next offset, where the partition is known to reach `until`. While it ends before, the leader is looked up
/// again; after the timeout the answer counts.
pub(crate) fn reaching<C: ConsumerContext>(
    consumer: &Live<BaseConsumer<C>>,
    topic: &str,
    partition: i32,
    until: Offset,
    within: Duration,
) -> Result<Range<Offset>, Error> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let found = range(consumer, topic, partition, left.max(ANSWER_WITHIN))?;
        if found.end >= until || left.is_zero() {
            return Ok(found);
        }
        tracing::debug!(topic, partition, end = found.end, until, "the leader reports an old end");
        seek_leaders(consumer, topic);
        std::thread::sleep(LEADER_EVERY);
    }
}

fn seek_leaders<C: ConsumerContext>(consumer: &Live<BaseConsumer<C>>, topic: &str) {
    // Any broker may be asked, and the next time another one.
    let _ = consumer.fetch_metadata(Some(topic), METADATA_WITHIN);
}

/// Topics whose leaders a client knows. A connected client that has not read a topic for a while requests them by itself only
/// up to a second after it begins to read.
#[derive(Default)]
pub(crate) struct Leaders(Vec<(String, Instant)>);

impl Leaders {
    /// Asks who leads a topic that is about to be read, unless that was asked lately.
    pub(crate) fn know<C: ConsumerContext>(&mut self, consumer: &Live<BaseConsumer<C>>, topic: &str) {
        self.0.retain(|(_, asked)| asked.elapsed() < LEADERS_KNOWN_FOR);
        if self.0.iter().any(|(known, _)| known == topic) {
            return;
        }
        if consumer.fetch_metadata(Some(topic), LEADER_WITHIN).is_ok() {
            self.0.push((topic.to_owned(), Instant::now()));
        }
    }
}

/// Errors that a broker returns while leaders move or topics are new.
fn is_passing(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::DestroyBroker
                | RDKafkaErrorCode::OffsetNotAvailable
                | RDKafkaErrorCode::FencedLeaderEpoch
                | RDKafkaErrorCode::UnknownLeaderEpoch
                | RDKafkaErrorCode::RequestTimedOut
                | RDKafkaErrorCode::OperationTimedOut
        )
    )
}

/// A consumer that reads up to an end and then has no partition.
pub(crate) fn consumer(
    options: &Options,
    role: &'static str,
    isolation: Isolation,
) -> Result<Live<BaseConsumer<ClientLog>>, Error> {
    let config = options.consumer(role, isolation, FETCH_WAIT);
    config.create_with_context(ClientLog::new(role)).map_err(|error| io("a consumer", &error))
}

/// Log lines and statistics of a following client.
pub(crate) struct Follows {
    client_log: ClientLog,
    meter: Meter,
}

logs_as_client!(
    Follows,
    fn stats(&self, statistics: Statistics) {
        self.meter.count(&statistics);
    }
);

impl ConsumerContext for Follows {}

/// A consumer that waits at the end of journals.
pub(crate) fn follower(options: &Options, meter: Meter) -> Result<Live<BaseConsumer<Follows>>, Error> {
    let mut config = options.telling(options.consumer("tail", Isolation::Uncommitted, FOLLOW_WAIT));
    // Nothing is fetched ahead of what is taken: what comes meanwhile comes together.
    config.set("queued.min.messages", "1");
    let context = Follows { client_log: ClientLog::new("tail"), meter };
    config.create_with_context(context).map_err(|error| io("a consumer", &error))
}

pub(crate) fn place(topic: &str, partition: i32, at: Offset) -> Result<TopicPartitionList, Error> {
    let mut list = TopicPartitionList::new();
    let at = At::Offset(i64::try_from(at).map_err(|_| io_text(format!("{topic}: offset {at}")))?);
    list.add_partition_offset(topic, partition, at).map_err(|error| io("an assignment", &error))?;
    Ok(list)
}

/// Assigns one partition to a consumer, from an offset on. Records fetched of another partition are dropped.
pub(crate) fn assign<C: ConsumerContext>(
    consumer: &Live<BaseConsumer<C>>,
    topic: &str,
    partition: i32,
    at: Offset,
) -> Result<(), Error> {
    let list = place(topic, partition, at)?;
    consumer.assign(&list).map_err(|error| io(&format!("reading {topic}-{partition}"), &error))
}

/// What a consumer has next.
pub(crate) enum NextMessage<'a> {
    Message(BorrowedMessage<'a>),
    /// There was nothing more when it looked.
    End,
    /// Nothing in that time.
    Nothing,
}

/// The time that is left, in whole milliseconds: the client waits for those, and spins through a part of one.
pub(crate) fn left_until(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now());
    Duration::from_millis(left.as_micros().div_ceil(1_000).try_into().unwrap_or(u64::MAX))
}

/// Waits for the next message. Transient errors are retried.
pub(crate) fn next<'a, C: ConsumerContext>(
    consumer: &'a Live<BaseConsumer<C>>,
    topic: &str,
    what: &str,
    within: Duration,
) -> Result<NextMessage<'a>, Error> {
    let deadline = Instant::now() + within;
    loop {
        match consumer.poll(left_until(deadline)) {
            None => return Ok(NextMessage::Nothing),
            Some(Ok(message)) => return Ok(NextMessage::Message(message)),
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(NextMessage::End),
            Some(Err(error)) if is_lasting(&error) => {
                let needs = [(AclOperation::Read, AclResource::Topic(topic))];
                return Err(consumer.principal().fault(what, &error, &needs));
            }
            // Connections that break are made again.
            Some(Err(_)) => {}
        }
    }
}

/// Whether a reader cannot go on by itself. It may be denied its group, which it never joins.
pub(crate) fn is_lasting(error: &KafkaError) -> bool {
    match error {
        KafkaError::MessageConsumptionFatal(_) => true,
        KafkaError::MessageConsumption(code) => matches!(
            code,
            RDKafkaErrorCode::AutoOffsetReset
                | RDKafkaErrorCode::OffsetOutOfRange
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::BadMessage
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::Authentication
        ),
        _ => false,
    }
}

/// Reads `from..end` of one partition and hands over each message until `visit` says false. Records may be missing
/// in between: transactions leave markers, compaction leaves holes.
pub(crate) fn scan<C: ConsumerContext>(
    consumer: &Live<BaseConsumer<C>>,
    topic: &str,
    partition: i32,
    range: Range<Offset>,
    idle: Duration,
    visit: &mut dyn FnMut(Offset, &BorrowedMessage<'_>) -> Result<bool, Error>,
) -> Result<(), Error> {
    if range.is_empty() {
        return Ok(());
    }
    assign(consumer, topic, partition, range.start)?;
    let what = format!("reading {topic}-{partition}");
    let outcome = loop {
        match next(consumer, topic, &what, idle) {
            Ok(NextMessage::Message(message)) => {
                let offset = message.offset() as Offset;
                if offset < range.start || offset >= range.end {
                    break Ok(());
                }
                match visit(offset, &message) {
                    Ok(true) if offset + 1 < range.end => {}
                    Ok(_) => break Ok(()),
                    Err(error) => break Err(error),
                }
            }
            Ok(NextMessage::End) => break whole(consumer, topic, partition, range.end),
            Ok(NextMessage::Nothing) => {
                break Err(io_text(format!("{what}: nothing came within {} ms", idle.as_millis())));
            }
            Err(error) => break Err(error),
        }
    };
    // What it has fetched ahead is let go of.
    consumer.unassign().map_err(|error| io(&what, &error))?;
    outcome
}

/// Checks that the broker had the whole range: one that lost the others still leads for itself, and ends where it was then.
/// The client looks the leader up again.
fn whole<C: ConsumerContext>(
    consumer: &Live<BaseConsumer<C>>,
    topic: &str,
    partition: i32,
    until: Offset,
) -> Result<(), Error> {
    let high = librdkafka::high_watermark(consumer.client(), topic, partition);
    if high >= until {
        return Ok(());
    }
    // The next read finds out whether it was answered.
    let _ = consumer.fetch_metadata(Some(topic), METADATA_WITHIN);
    Err(io_text(format!(
        "reading {topic}-{partition}: the broker that answers ends at {high}, before {until}: it does not lead any more"
    )))
}
