//! Reads journals from any offset, by a few consumers that keep their position.

use std::time::Instant;

use bytes::Bytes;
use everlog_log::{Error, Offset, PartitionId, Record};
use parking_lot::{Mutex, MutexGuard};
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Timestamp};

use crate::client::consumer::{Leaders, NextMessage, TopicEnds, assign, consumer, next};
use crate::client::librdkafka::Live;
use crate::client::log_lines::ClientLog;
use crate::errors::{corrupt, io, io_text};
use crate::options::{Isolation, Options};

/// Consumers kept for the next call, each with the records that it fetched ahead. The partitions of a group are taken
/// in parallel.
const IDLE_MAX: usize = 4;

/// A consumer, and its next offset.
struct Cursor {
    consumer: Live<BaseConsumer<ClientLog>>,
    partition: PartitionId,
    next: Offset,
    /// Known to be durable.
    end: Offset,
    /// Read, but too large for the call before.
    held: Option<Record>,
    assigned: bool,
    leaders: Leaders,
}

/// Readers of the journals.
pub(crate) struct JournalReader {
    options: Options,
    topic: String,
    idle: Mutex<Vec<Cursor>>,
}

impl JournalReader {
    pub(crate) fn new(options: &Options) -> Self {
        JournalReader { options: options.clone(), topic: options.topic("journal"), idle: Mutex::default() }
    }

    /// Durable records from an offset on, see `Log::read`.
    pub(crate) fn read(
        &self,
        ends: &TopicEnds,
        partition: PartitionId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Record>, Error> {
        let standing =
            self.take(|cursor| cursor.assigned && cursor.partition == partition && cursor.next == from);
        let (mut cursor, end) = match standing {
            Some(cursor) if from < cursor.end => {
                let end = cursor.end;
                (Some(cursor), end)
            }
            other => {
                let range = ends.range(&self.topic, partition as i32, Isolation::Uncommitted)?;
                if from < range.start || from > range.end {
                    let (start, end) = (range.start, range.end);
                    return Err(Error::OutOfRange { partition, wanted: from, start, end });
                }
                (other, range.end)
            }
        };
        if from == end {
            if let Some(cursor) = cursor {
                self.keep(cursor);
            }
            return Ok(Vec::new());
        }
        if cursor.is_none() {
            cursor = Some(self.place(partition, from)?);
        }
        let Some(mut cursor) = cursor else { return Ok(Vec::new()) };
        cursor.end = end;
        let records = self.fill(&mut cursor, bytes_max)?;
        if cursor.next == cursor.end {
            // At the end it would ask the broker again and again.
            let resting = cursor.consumer.unassign();
            resting.map_err(|error| io(&format!("reading {}", self.topic), &error))?;
            cursor.assigned = false;
        }
        // After an error the consumer is dropped, because its position is uncertain.
        self.keep(cursor);
        Ok(records)
    }

    fn fill(&self, cursor: &mut Cursor, bytes_max: usize) -> Result<Vec<Record>, Error> {
        let deadline = Instant::now() + self.options.call_timeout();
        let what = format!("reading {}-{}", self.topic, cursor.partition);
        let mut records = Vec::new();
        let mut bytes = 0;
        while cursor.next < cursor.end {
            let record = match cursor.held.take() {
                Some(record) => record,
                None => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    match next(&cursor.consumer, &self.topic, &what, left)? {
                        NextMessage::Message(message) => {
                            let offset = message.offset() as Offset;
                            // A gap is never skipped: records were deleted that are not applied yet.
                            if offset != cursor.next {
                                let detail = format!("record {offset} follows {}", cursor.next);
                                return Err(corrupt(&self.topic, cursor.partition as i32, detail));
                            }
                            record_of(&message)
                        }
                        // Of an earlier look: more has come since.
                        NextMessage::End if !left.is_zero() => continue,
                        NextMessage::End | NextMessage::Nothing if !records.is_empty() => break,
                        NextMessage::End | NextMessage::Nothing => {
                            return Err(io_text(format!("{what}: record {} did not come", cursor.next)));
                        }
                    }
                }
            };
            if !records.is_empty() && bytes + record.bytes.len() > bytes_max {
                cursor.held = Some(record);
                break;
            }
            bytes += record.bytes.len();
            cursor.next += 1;
            records.push(record);
            if bytes >= bytes_max {
                break;
            }
        }
        Ok(records)
    }

    fn place(&self, partition: PartitionId, from: Offset) -> Result<Cursor, Error> {
        let mut cursor = match self.take(|_| true) {
            Some(cursor) => cursor,
            None => Cursor {
                consumer: consumer(&self.options, "reader", Isolation::Uncommitted)?,
                partition,
                next: from,
                end: from,
                held: None,
                assigned: false,
                leaders: Leaders::default(),
            },
        };
        cursor.leaders.know(&cursor.consumer, &self.topic);
        assign(&cursor.consumer, &self.topic, partition as i32, from)?;
        (cursor.partition, cursor.next, cursor.end, cursor.held) = (partition, from, from, None);
        cursor.assigned = true;
        Ok(cursor)
    }

    fn take(&self, fits: impl Fn(&Cursor) -> bool) -> Option<Cursor> {
        let mut idle = self.lock();
        let at = idle.iter().position(fits)?;
        Some(idle.remove(at))
    }

    fn keep(&self, cursor: Cursor) {
        let dropped = {
            let mut idle = self.lock();
            idle.push(cursor);
            if idle.len() > IDLE_MAX { Some(idle.remove(0)) } else { None }
        };
        // Closing a consumer takes its time.
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Cursor>> {
        self.idle.lock()
    }
}

/// The record of a message. A journal whose stamps are not the broker's is refused when the log is opened.
pub(crate) fn record_of(message: &BorrowedMessage<'_>) -> Record {
    let stamp_ms = match message.timestamp() {
        Timestamp::LogAppendTime(ms) | Timestamp::CreateTime(ms) => ms,
        Timestamp::NotAvailable => 0,
    };
    Record {
        offset: message.offset() as Offset,
        stamp_ms,
        bytes: Bytes::copy_from_slice(message.payload().unwrap_or_default()),
    }
}
