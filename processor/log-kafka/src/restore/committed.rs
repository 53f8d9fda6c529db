//! Reads committed rows, entries, and the last position of a partition.

use std::sync::Arc;

use bytes::Bytes;
use everlog_log::{Error, Fence, Offset, PartitionId, PerTopic, Restored, Topic, TopicEntry, Visit};
use parking_lot::{Mutex, MutexGuard};
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use rdkafka::message::BorrowedMessage;

use crate::client::consumer::{Leaders, TopicEnds, consumer, scan};
use crate::client::librdkafka::{self, Live};
use crate::client::log_lines::ClientLog;
use crate::errors::{corrupt, io_text};
use crate::options::{Isolation, Options};
use crate::record_format::{self, CommitId, HEADER, PositionRow};

/// Offsets that are first searched for the last position: a commit ends with it; behind it are a marker and a fence or two.
const LOOK_BACK: Offset = 16;

/// Consumers that are kept: the partitions of a group are taken in parallel.
const IDLE_MAX: usize = 4;

/// The last rows of the log itself in a changelog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Last {
    pub(crate) position: Option<PositionRow>,
    /// Which commit the position is of.
    pub(crate) commit: Option<CommitId>,
    pub(crate) fence: Option<Fence>,
}

/// As `Visit`, with the offset first.
pub(crate) type VisitAt<'a> = &'a mut dyn FnMut(Offset, &[u8], Option<&[u8]>) -> bool;

pub(crate) struct Committed {
    options: Options,
    ends: Arc<TopicEnds>,
    /// Kept for the next call: making one and closing one takes 100 ms.
    idle: Mutex<Vec<RestoreClient>>,
}

struct RestoreClient {
    consumer: Live<BaseConsumer<ClientLog>>,
    leaders: Leaders,
}

impl Committed {
    pub(crate) fn new(options: &Options, ends: Arc<TopicEnds>) -> Self {
        Committed { options: options.clone(), ends, idle: Mutex::default() }
    }

    /// The last position row and fence row; reads backwards until it meets a position.
    pub(crate) fn last(&self, partition: PartitionId, reached: Offset) -> Result<Last, Error> {
        let topic = self.options.topic("changelog");
        let range = self.ends.committed_to(&topic, partition as i32, after(reached))?;
        let (position_key, fence_key) =
            (record_format::position_key(partition), record_format::fence_key(partition));
        let mut last = Last::default();
        let mut look_back = LOOK_BACK;
        loop {
            let from = range.start.max(range.end.saturating_sub(look_back));
            self.scan(&topic, partition, from..range.end, &mut |_, message| {
                let (key, value) = (message.key().unwrap_or_default(), message.payload());
                if key == position_key {
                    last.position = value.and_then(PositionRow::decode);
                    last.commit = commit_of(message);
                } else if let (true, Some(number)) = (key == fence_key, value.and_then(|v| v.first_chunk())) {
                    last.fence = Some(Fence(u64::from_be_bytes(*number)));
                }
                Ok(true)
            })?;
            if last.position.is_some() || from == range.start {
                return Ok(last);
            }
            look_back *= 8;
        }
    }

    /// See `Log::restore`. The position row is given back, not visited.
    pub(crate) fn restore(
        &self,
        topic: &str,
        partition: PartitionId,
        from: Offset,
        reached: Offset,
        visit: VisitAt<'_>,
    ) -> Result<Restored, Error> {
        let range = self.ends.committed_to(topic, partition as i32, after(reached))?;
        // Compaction leaves holes, but only a deletion moves the start.
        if (from < range.start && from > 0) || from > range.end {
            return Err(Error::OutOfRange { partition, wanted: from, start: range.start, end: range.end });
        }
        let (position_key, mut position, mut stopped) = (record_format::position_key(partition), None, false);
        let mut next = range.end;
        let span = from.max(range.start)..range.end;
        self.scan(topic, partition, span, &mut |offset, message| {
            let (key, value) = (message.key().unwrap_or_default(), message.payload());
            if !record_format::is_reserved(key) {
                stopped = !visit(offset, key, value);
                next = if stopped { offset + 1 } else { next };
            } else if key == position_key {
                let row = value.and_then(PositionRow::decode);
                let row = row.ok_or_else(|| {
                    corrupt(topic, partition as i32, format!("offset {offset} is no position row"))
                })?;
                position = Some((row.applied, row.row));
            }
            Ok(!stopped)
        })?;
        Ok(Restored { next, end: range.end, position })
    }

    /// See `Log::topic_read`.
    pub(crate) fn entries(
        &self,
        topic: &str,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
        reached: Offset,
    ) -> Result<Vec<TopicEntry>, Error> {
        let range = self.ends.committed_to(topic, partition as i32, after(reached))?;
        if from < range.start || from > range.end {
            return Err(Error::OutOfRange { partition, wanted: from, start: range.start, end: range.end });
        }
        let mut entries: Vec<TopicEntry> = Vec::new();
        let mut bytes = 0;
        self.scan(topic, partition, from..range.end, &mut |offset, message| {
            let copy = |bytes: Option<&[u8]>| Bytes::copy_from_slice(bytes.unwrap_or_default());
            let entry = (offset, copy(message.key()), copy(message.payload()));
            let size_bytes = entry.1.len() + entry.2.len();
            if !entries.is_empty() && bytes + size_bytes > bytes_max {
                return Ok(false);
            }
            bytes += size_bytes;
            entries.push(entry);
            Ok(bytes < bytes_max)
        })?;
        Ok(entries)
    }

    /// What `restore` visits, of the commits up to one of them. Waits until none of their transactions is under way.
    pub(crate) fn restore_at(
        &self,
        topic: &str,
        partition: PartitionId,
        from: Offset,
        commit: CommitId,
        visit: Visit<'_>,
    ) -> Result<Restored, Error> {
        let written = self.ends.range(topic, partition as i32, Isolation::Uncommitted)?;
        let range = self.ends.committed_to(topic, partition as i32, written.end)?;
        if range.end < written.end {
            return Err(io_text(format!(
                "{topic}-{partition}: a transaction is open from offset {} on, and its owner does not end it; start a \
                 node, which ends it, and try again",
                range.end
            )));
        }
        let (mut next, span) = (range.end, from.max(range.start)..range.end);
        self.scan(topic, partition, span, &mut |offset, message| {
            let key = message.key().unwrap_or_default();
            if record_format::is_reserved(key) {
                return Ok(true);
            }
            let written_by = commit_of(message).ok_or_else(|| {
                corrupt(
                    topic,
                    partition as i32,
                    format!("offset {offset} does not say which commit it is of"),
                )
            })?;
            let goes_on = written_by > commit || visit(key, message.payload());
            next = if goes_on { next } else { offset + 1 };
            Ok(goes_on)
        })?;
        Ok(Restored { next, end: range.end, position: None })
    }

    fn scan(
        &self,
        topic: &str,
        partition: PartitionId,
        range: std::ops::Range<Offset>,
        visit: &mut dyn FnMut(Offset, &BorrowedMessage<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut client = self.client()?;
        client.leaders.know(&client.consumer, topic);
        // After an error the consumer is dropped.
        scan(&client.consumer, topic, partition as i32, range, self.options.call_timeout(), visit)?;
        self.keep(client);
        Ok(())
    }

    /// Makes a client ready to read what a partition keeps in these topics, and reads its last position. With as many at once
    /// as partitions are taken together each of them finds one.
    pub(crate) fn rehearse(&self, topics: &PerTopic<String>, partition: PartitionId) -> Result<(), Error> {
        let mut client = self.client()?;
        for topic in Topic::compacted() {
            client.leaders.know(&client.consumer, &topics[topic]);
        }
        self.keep(client);
        self.last(partition, 0).map(drop)
    }

    fn client(&self) -> Result<RestoreClient, Error> {
        // Not while the idle ones are locked: making one takes its time.
        let idle = self.idle().pop();
        match idle {
            Some(client) => Ok(client),
            None => Ok(RestoreClient {
                consumer: consumer(&self.options, "committed", Isolation::Committed)?,
                leaders: Leaders::default(),
            }),
        }
    }

    fn keep(&self, client: RestoreClient) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(client);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<RestoreClient>> {
        self.idle.lock()
    }
}

/// Which commit a record is of; none where it has no such header.
fn commit_of(message: &BorrowedMessage<'_>) -> Option<CommitId> {
    let (_, header) = librdkafka::headers(message).into_iter().find(|(name, _)| name == HEADER)?;
    let ((fence, number), _place) = record_format::origin(&header?)?;
    Some(CommitId { fence, number })
}

/// The offset after a transaction's last record and its marker.
pub(crate) fn after(reached: Offset) -> Offset {
    if reached == 0 { 0 } else { reached + 1 }
}
