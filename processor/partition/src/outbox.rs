//! Messages: orders that runs of this partition send to Workflow Ids wherever they live, each taken once and in order.
//!
//! A message follows from a journal record, so whoever replays the record sends it again, under the same number. The
//! receiver takes only the number behind the last one that it took. What no receiver had acknowledged when outputs were
//! committed goes along with them as a row, or a new owner that begins behind the record would not know of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

use bytes::{BufMut, Bytes, BytesMut};
use everlog_engine::request::RequestRecord;
use everlog_log::Log;
use everlog_store::{CommittedRows, Space, Store};
use everlog_wire::{Body, OutboxMessage, Position, Record};

use crate::config::HOLD_MS;
use crate::context::PartitionContext;
use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::journal::journal_queue::JournalQueue;
use crate::model::inbox_message::InboxMessage;
use crate::model::keys::Address;
use crate::model::pending::ReplyTo;
use crate::partition::Partition;

/// Messages on their way to one partition of this process at a time. They stand before the calls that come after them: few at a time
/// let calls through.
const UNDER_WAY_MAX: usize = 16;
/// The same through a log that others write to as well, where each way takes an append.
const APPENDED_MAX: usize = 256;
/// Bytes of messages on their way to one partition at a time.
const UNDER_WAY_BYTES_MAX: usize = 4 << 20;
/// How long a partition of this process may be silent before it is sent its messages again, in ms.
const SILENCE_MS: i64 = 1_000;

/// What a partition has sent and what has not arrived, by receiver.
#[derive(Default)]
pub(crate) struct Outbox {
    lanes: BTreeMap<u32, Destination>,
}

#[derive(Default)]
struct Destination {
    /// Those that have not arrived, in order, each with its number.
    messages: VecDeque<(u64, Bytes)>,
    /// How many of the first ones are on their way.
    under_way: usize,
    /// Somebody will say for sure what became of those on their way.
    is_watched: bool,
    /// No message leaves before this moment; those on their way of which nobody says anything are sent again then.
    rests_until_ms: i64,
    /// Messages up to this number have a row.
    kept: u64,
    /// The first one to oneself that came before its turn, and was not taken: one before it has to be appended again.
    early: Option<u64>,
}

impl Outbox {
    /// Messages that have not arrived.
    pub(crate) fn len(&self) -> usize {
        self.lanes.values().map(|lane| lane.messages.len()).sum()
    }

    /// When there is something to do though nothing comes in.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        let idle = |lane: &&Destination| lane.messages.is_empty() || (lane.under_way > 0 && lane.is_watched);
        self.lanes.values().filter(|lane| !idle(lane)).map(|lane| lane.rests_until_ms).min()
    }

    /// Numbers what a decision sends; it leaves with the next turn.
    pub(crate) fn write(
        &mut self,
        context: &PartitionContext,
        position: &mut Position,
        messages: Vec<RequestRecord>,
    ) {
        let sender_applied = position.applied;
        for input in messages {
            let to = Address::of(&input).partition(context.partitions);
            let post = position.post(to);
            post.sent += 1;
            let number = post.sent;
            let message = OutboxMessage { from: context.id, number, input: Some(input), sender_applied };
            self.lanes.entry(to).or_default().messages.push_back((number, message.record()));
        }
    }

    /// Sends what waits. A partition of a log that others write to as well gets its messages straight into its journal;
    /// else it lives in this process, and is the only one that may append there.
    pub(crate) fn send<L: Log + ?Sized>(
        &mut self,
        log: &L,
        context: &PartitionContext,
        journal: &mut JournalQueue,
        now_ms: i64,
    ) {
        let (id, is_shared) = (context.id, journal.is_shared());
        for (&to, lane) in &mut self.lanes {
            if to == id {
                // It cannot be lost while this partition lives, but overtaken.
                let room = UNDER_WAY_MAX.saturating_sub(lane.under_way);
                let unsent = lane.messages.iter().skip(lane.under_way).take(room);
                let records = unsent.filter_map(|(_, bytes)| Record::read(bytes.clone()).ok());
                records.for_each(|record| journal.push(record, ReplyTo::Nobody));
                (lane.under_way, lane.is_watched) =
                    (lane.messages.len().min(UNDER_WAY_MAX.max(lane.under_way)), true);
                continue;
            }
            // A clock that was set back must not put off anything.
            lane.rests_until_ms = lane.rests_until_ms.min(now_ms + SILENCE_MS);
            let waits = (lane.under_way > 0 && lane.is_watched) || now_ms < lane.rests_until_ms;
            if waits || lane.messages.is_empty() {
                continue;
            }
            let (messages, last) = lane.next(if is_shared { APPENDED_MAX } else { UNDER_WAY_MAX });
            (lane.under_way, lane.is_watched) = (messages.len(), is_shared);
            lane.rests_until_ms = now_ms + SILENCE_MS;
            if is_shared {
                let send = context.send.clone();
                let done = Box::new(move |result: Result<_, everlog_log::Error>| {
                    // A partition that is gone sends its messages again when it is taken over.
                    match result {
                        Ok(_) => send(id, InboxMessage::MessagesTaken { by: to, number: last }),
                        Err(_) => send(id, InboxMessage::MessagesLost { by: to }),
                    };
                });
                log.append(to, messages, done);
            } else {
                context.send(to, InboxMessage::Messages { from: id, messages });
            }
        }
    }

    /// A receiver has taken all messages up to a number; true where rows of them were deleted.
    pub(crate) fn taken<B: CommittedRows>(
        &mut self,
        store: &mut Store<B>,
        first_bucket: u16,
        by: u32,
        number: u64,
    ) -> bool {
        let Some(lane) = self.lanes.get_mut(&by) else { return false };
        let (mut progress, mut has_deleted) = (false, false);
        while lane.messages.front().is_some_and(|(first, _)| *first <= number) {
            let Some((taken, _)) = lane.messages.pop_front() else { break };
            lane.under_way = lane.under_way.saturating_sub(1);
            progress = true;
            if taken <= lane.kept {
                store.delete(Space::State, message_key(first_bucket, by, taken));
                has_deleted = true;
            }
        }
        if progress && lane.under_way == 0 {
            lane.rests_until_ms = 0;
        }
        let next = lane.messages.front().map_or(u64::MAX, |(number, _)| *number);
        if lane.early.is_some_and(|early| early <= next) {
            // Those behind it may be under way still: they are taken once.
            (lane.under_way, lane.early) = (0, None);
        }
        has_deleted
    }

    /// A message to oneself stood in the journal before one that precedes it, whose append had failed.
    fn came_early(&mut self, own: u32, number: u64) {
        if let Some(lane) = self.lanes.get_mut(&own) {
            lane.early = Some(lane.early.map_or(number, |early| early.min(number)));
        }
    }

    /// What was on its way to a receiver has not arrived for sure.
    pub(crate) fn lost(&mut self, by: u32, now_ms: i64) {
        let Some(lane) = self.lanes.get_mut(&by) else { return };
        lane.under_way = 0;
        lane.rests_until_ms = now_ms + HOLD_MS;
    }

    /// Messages that have not arrived go along with the commit of what has sent them.
    pub(crate) fn write_rows<B: CommittedRows>(&mut self, store: &mut Store<B>, first_bucket: u16) {
        for (&to, lane) in &mut self.lanes {
            let kept = lane.kept;
            for (number, bytes) in lane.messages.iter().filter(|(number, _)| *number > kept) {
                store.put(Space::State, message_key(first_bucket, to, *number), bytes.clone());
                lane.kept = *number;
            }
        }
    }

    /// The messages of former owners that had not arrived when they committed last.
    fn find<B: CommittedRows>(&mut self, store: &Store<B>, first_bucket: u16) -> Result<(), Error> {
        let (from, to) = (message_key(first_bucket, 0, 0), message_key(first_bucket, u32::MAX, u64::MAX));
        let mut found = Vec::new();
        store.scan(Space::State, &from, &to, &mut |row, bytes| {
            found.extend(
                read_message_key(row).map(|(to, number)| (to, number, Bytes::copy_from_slice(bytes))),
            );
            true
        })?;
        for (to, number, bytes) in found {
            let lane = self.lanes.entry(to).or_default();
            lane.messages.push_back((number, bytes));
            lane.kept = number;
        }
        Ok(())
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Messages of another partition of this process have come.
    pub(crate) fn messages_came(&mut self, from: u32, messages: Vec<Bytes>) {
        if !self.ownership.is_serving() || self.is_overfull() {
            // They come again.
            return;
        }
        let taken = self.position.taken_from(from);
        let records = messages.into_iter().filter_map(|bytes| Record::read(bytes).ok());
        let is_new = |record: &Record| match &record.body {
            Some(Body::OutboxMessage(message)) => message.number > taken,
            _other => false,
        };
        records.filter(is_new).for_each(|record| self.journal.push(record, ReplyTo::Nobody));
        self.acknowledge(from, taken);
    }

    /// A message's record is applied: its order, if it is the one behind the last that was taken.
    pub(crate) fn open_message(&mut self, offset: u64, message: &OutboxMessage) -> Result<(), Error> {
        let post = self.position.post(message.from);
        let is_next = message.number == post.taken + 1 || !R::keeps(Rule::MessageNumbers);
        if is_next {
            post.taken = message.number;
        } else {
            self.context.stats.duplicates.fetch_add(1, Ordering::Relaxed);
        }
        let taken = post.taken;
        if message.from == self.context.id {
            if message.number > taken {
                self.outbox.came_early(self.context.id, message.number);
            }
            self.messages_taken(message.from, taken);
        } else if !self.ownership.is_replaying() && !self.journal.is_shared() {
            self.acknowledge(message.from, taken);
        }
        match &message.input {
            Some(input) if is_next && self.context.owns(&Address::of(input)) => {
                self.apply_input(offset, input, ReplyTo::Nobody)
            }
            Some(_) if !is_next => Ok(()),
            Some(_) | None => {
                self.skip(offset, "a message that is not for this partition", ReplyTo::Nobody);
                Ok(())
            }
        }
    }

    fn acknowledge(&mut self, from: u32, number: u64) {
        // A partition that is gone asks again.
        self.context.send(from, InboxMessage::MessagesTaken { by: self.context.id, number });
    }

    /// A receiver has taken all messages up to a number.
    pub(crate) fn messages_taken(&mut self, by: u32, number: u64) {
        let first_bucket = self.context.first_bucket();
        if self.outbox.taken(self.runs.store(), first_bucket, by, number) {
            self.commits.note_change();
        }
    }

    /// The messages of former owners that had not arrived when they committed last.
    pub(crate) fn find_messages(&mut self) -> Result<(), Error> {
        self.outbox.find(self.runs.rows(), self.context.first_bucket())?;
        let taken = self.position.post(self.context.id).taken;
        self.messages_taken(self.context.id, taken);
        Ok(())
    }
}

impl Destination {
    /// The first messages that wait, at most so many, and the number of the last of them.
    fn next(&self, most: usize) -> (Vec<Bytes>, u64) {
        let (mut messages, mut last, mut size_bytes) = (Vec::new(), 0, 0);
        for (number, bytes) in self.messages.iter().take(most) {
            size_bytes += bytes.len();
            if size_bytes > UNDER_WAY_BYTES_MAX && !messages.is_empty() {
                break;
            }
            messages.push(bytes.clone());
            last = *number;
        }
        (messages, last)
    }
}

/// The longest Workflow Id has 1,000 bytes: no run's key says so many.
const NO_WORKFLOW: [u8; 18] = {
    let mut key = [0; 18];
    key[16] = u8::MAX;
    key[17] = u8::MAX;
    key
};

/// The key of a message's row: bucket (2), what no run's key has there (18), receiver (4), number (8).
fn message_key(bucket: u16, to: u32, number: u64) -> Bytes {
    let mut key = BytesMut::with_capacity(32);
    key.put_u16(bucket);
    key.put_slice(&NO_WORKFLOW);
    key.put_u32(to);
    key.put_u64(number);
    key.freeze()
}

/// Receiver and number of a message's row; none where it is another row.
pub(crate) fn read_message_row(row: &[u8]) -> Option<(u32, u64)> {
    if row.get(2..20)? == NO_WORKFLOW { read_message_key(row) } else { None }
}

fn read_message_key(row: &[u8]) -> Option<(u32, u64)> {
    let (to, number) = row.get(20..32)?.split_at(4);
    Some((u32::from_be_bytes(to.try_into().ok()?), u64::from_be_bytes(number.try_into().ok()?)))
}
