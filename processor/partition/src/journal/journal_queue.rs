//! What is on its way into the journal: records that wait, appends in flight, and the reads behind them.
//!
//! It owns the order of the partition's own records, and the tail by which those of others come. It applies nothing:
//! what is durable is handed to the partition.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_log::{Error as LogError, Log, Offset, Tail};
use everlog_wire::{Barrier, Body, LevelRaised, Owner, Position, Record};

use crate::config::{Config, HOLD_MS};
use crate::context::PartitionContext;
use crate::error::Error;
use crate::journal::in_flight::InFlight;
use crate::journal::refusal_log::RefusalLog;
use crate::model::admission::CallFailure;
use crate::model::inbox_message::InboxMessage;
use crate::model::pending::{PendingRecord, ReplyTo};
use crate::model::task_types::TaskRef;

/// Bytes of records from which an append takes no further one.
const APPEND_BYTES_MAX: usize = 8 << 20;

/// Records of the partition that are not applied, and the journal as it grows.
pub(crate) struct JournalQueue {
    pending: VecDeque<PendingRecord>,
    /// Records that have ever been pushed.
    pushed: u64,
    flights: InFlight,
    /// The journal as it grows, where others append to it too.
    tail: Option<Box<dyn Tail>>,
    /// Reads that wait for an append.
    reads: Vec<InboxMessage>,
    /// An `Owner` record waits at the front.
    wants_term: bool,
    /// Nothing is appended before this moment, because the log had no room.
    hold_until_ms: i64,
    refused: RefusalLog,
}

impl Default for JournalQueue {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            pushed: 0,
            flights: InFlight::default(),
            tail: None,
            reads: Vec::new(),
            wants_term: false,
            hold_until_ms: 0,
            refused: RefusalLog::of("appends"),
        }
    }
}

impl JournalQueue {
    /// A record to append.
    pub(crate) fn push(&mut self, record: Record, waiter: ReplyTo) {
        self.push_entry(PendingRecord::new(record, waiter));
    }

    /// A record to append, with what waits for it already.
    pub(crate) fn push_entry(&mut self, entry: PendingRecord) {
        self.pending.push_back(entry);
        self.pushed += 1;
    }

    /// The place behind the last record that was pushed.
    pub(crate) fn end(&self) -> u64 {
        self.pushed
    }

    /// Whether a record before this place waits to be appended.
    pub(crate) fn waits_before(&self, end: u64) -> bool {
        self.pushed.saturating_sub(self.pending.len() as u64) < end
    }

    /// A record to append before those that wait.
    pub(crate) fn push_first(&mut self, record: Record) {
        self.pending.push_front(PendingRecord::new(record, ReplyTo::Nobody));
    }

    /// A record that changes nothing: what was asked before it is applied comes behind whatever is in the journal by now.
    pub(crate) fn push_barrier(&mut self, term: u64) {
        self.push(Record::new(term, Body::Barrier(Barrier {})), ReplyTo::Nobody);
    }

    /// A read that waits for an append.
    pub(crate) fn push_read(&mut self, read: InboxMessage) {
        self.reads.push(read);
    }

    /// An `Owner` record that asks for a term.
    pub(crate) fn ask_for_term(&mut self, config: &Config, position: &Position) {
        let Config { node, instance, levels, .. } = config;
        // One that was imported has applied nothing, and the level of the log that it comes from.
        let is_new = position.applied == 0 && position.level == 0;
        let level = if is_new { levels.of_new_partition() } else { position.level };
        let level = level.max(levels.raised());
        let owner = Owner { node: node.clone(), instance: instance.clone(), level };
        self.push_first(Record::new(0, Body::Owner(owner)));
        self.wants_term = true;
    }

    /// Raises the level of decisions by a record, unless the partition has that level or a record that raises it is on its way.
    pub(crate) fn raise_level(&mut self, level: u32, position: &Position) {
        let is_level = |entry: &PendingRecord| matches!(entry.record.body, Some(Body::Level(_)));
        if level > position.level && !self.flights.entries().chain(&self.pending).any(is_level) {
            self.push(Record::new(position.term, Body::Level(LevelRaised { level })), ReplyTo::Nobody);
        }
    }

    /// Others append to the journal too, or nobody else does.
    pub(crate) fn set_tail(&mut self, tail: Option<Box<dyn Tail>>) {
        self.tail = tail;
    }

    /// Whether others append to the journal too.
    pub(crate) fn is_shared(&self) -> bool {
        self.tail.is_some()
    }

    /// What the journal has got meanwhile; nothing where nobody else appends to it.
    pub(crate) fn take_tail(&mut self, bytes_max: usize) -> Result<Vec<everlog_log::Record>, LogError> {
        self.tail.as_mut().map_or(Ok(Vec::new()), |tail| tail.take(bytes_max))
    }

    /// Records that wait to be appended.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.flights.is_empty()
    }

    /// Whether an `Owner` record waits or is in flight.
    pub(crate) fn has_owner(&self) -> bool {
        self.flights.entries().chain(&self.pending).any(is_owner)
    }

    /// Tasks whose claims wait or are in flight.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = &TaskRef> {
        self.pending.iter().chain(self.flights.all()).filter_map(|entry| match &entry.waiter {
            ReplyTo::Claim(task, _) => Some(task),
            _other => None,
        })
    }

    /// When what waits is appended again, because the log had no room.
    pub(crate) fn next_ms(&self, now_ms: i64) -> Option<i64> {
        (!self.pending.is_empty() && self.hold_until_ms > now_ms).then_some(self.hold_until_ms)
    }

    /// A clock that was set back must not put off an append.
    pub(crate) fn mind_clock(&mut self, now_ms: i64) {
        self.hold_until_ms = self.hold_until_ms.min(now_ms + HOLD_MS);
    }

    /// Appends what waits, as far as so much may be in flight.
    pub(crate) fn append<L: Log + ?Sized>(
        &mut self,
        log: &L,
        context: &PartitionContext,
        position: &Position,
        serving: bool,
        now_ms: i64,
    ) {
        if self.lacks_term(serving) {
            self.ask_for_term(&context.config, position);
        }
        if serving && !self.reads.is_empty() && self.pending.is_empty() {
            self.push_barrier(position.term);
        }
        // Until the `Owner` record is applied nothing else has a term to stand under.
        let (appends_max, records_max) =
            if serving { (context.config.appends_max, context.config.append_records_max) } else { (1, 1) };
        let allowed = (serving || self.wants_term) && now_ms >= self.hold_until_ms;
        while allowed && !self.pending.is_empty() && self.flights.under_way() < appends_max {
            self.wants_term = false;
            let records = self.send_next(records_max, serving);
            let bytes = records.iter().map(Bytes::len).sum::<usize>();
            context.stats.appended.fetch_add(records.len() as u64, Ordering::Relaxed);
            context.stats.appended_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            let (send, id) = (context.send.clone(), context.id);
            let done = Box::new(move |result| {
                // A partition that is gone has no waiters left to tell.
                send(id, InboxMessage::Appended(result));
            });
            log.append(id, records, done);
        }
    }

    /// The records of the next append, which are in flight from here on.
    fn send_next(&mut self, records_max: usize, serving: bool) -> Vec<Bytes> {
        let (mut entries, mut records, mut bytes) = (VecDeque::new(), Vec::new(), 0);
        while records.len() < records_max && bytes < APPEND_BYTES_MAX {
            let Some(mut entry) = self.pending.pop_front() else { break };
            if self.tail.is_some() {
                entry.record.serial = self.flights.next_serial();
            }
            let record = entry.record.encode();
            bytes += record.len();
            records.push(record);
            entries.push_back(entry);
        }
        if let (true, Some(last)) = (serving, entries.back_mut()) {
            last.reads.append(&mut self.reads);
        }
        self.flights.send(entries);
        records
    }

    /// Every append has been heard of, and none of them, nor one that waits, asks for the term that is missing.
    fn lacks_term(&self, serving: bool) -> bool {
        !serving && !self.wants_term && self.flights.under_way() == 0 && !self.flights.entries().any(is_owner)
    }

    /// The earliest append that was not heard of is durable. Returns what can be applied now.
    ///
    /// # Errors
    /// No append was under way.
    pub(crate) fn acknowledged(
        &mut self,
        context: &PartitionContext,
        first: Option<Offset>,
        applied: Offset,
    ) -> Result<VecDeque<PendingRecord>, Error> {
        let entries = self.flights.acknowledged(first, applied).ok_or_else(|| heard_of_none(context))?;
        self.refused.ends(context.id);
        Ok(entries)
    }

    /// Whether records of others stand between those that were acknowledged and those that were applied, though nobody
    /// else may append.
    pub(crate) fn has_strangers(&self) -> bool {
        self.tail.is_none() && !self.flights.wait_only_for_reports()
    }

    /// The log had no room: callers are told so; what the partition itself wants is tried again in a while.
    ///
    /// # Errors
    /// No append was under way.
    pub(crate) fn refused(
        &mut self,
        context: &PartitionContext,
        error: &LogError,
        now_ms: i64,
    ) -> Result<(), Error> {
        let entries = self.flights.refused().ok_or_else(|| heard_of_none(context))?;
        self.refused.begins(context.id, error);
        let is_full = matches!(error, LogError::Full { .. });
        let failure = if is_full { CallFailure::Full } else { CallFailure::Busy };
        self.hold_until_ms = now_ms + HOLD_MS;
        for mut entry in entries.into_iter().rev() {
            self.reads.append(&mut entry.reads);
            match entry.waiter {
                waiter @ (ReplyTo::Order(..) | ReplyTo::Update(..) | ReplyTo::Completion(..)) => {
                    let _no_claim = waiter.refuse(failure);
                }
                waiter @ (ReplyTo::Nobody | ReplyTo::Claim(..)) => {
                    self.pending.push_front(PendingRecord::new(entry.record, waiter));
                }
            }
        }
        self.wants_term = self.pending.front().is_some_and(is_owner);
        Ok(())
    }

    /// The earliest append that was not heard of is made again, whatever became of it.
    ///
    /// # Errors
    /// No append was under way.
    pub(crate) fn repeat(&mut self, context: &PartitionContext) -> Result<(), Error> {
        let entries = self.flights.refused().ok_or_else(|| heard_of_none(context))?;
        entries.into_iter().rev().for_each(|entry| self.pending.push_front(entry));
        self.wants_term = self.pending.front().is_some_and(is_owner);
        Ok(())
    }

    /// Nobody knows what became of the earliest append that was not heard of: the journal will tell.
    ///
    /// # Errors
    /// No append was under way.
    pub(crate) fn lost_sight(&mut self, context: &PartitionContext, now_ms: i64) -> Result<(), Error> {
        self.flights.lost_sight().ok_or_else(|| heard_of_none(context))?;
        self.hold_until_ms = now_ms + HOLD_MS;
        Ok(())
    }

    /// A record of one's own was met in the journal: its entry, unless it was applied already.
    pub(crate) fn met(&mut self, record: &Record) -> Option<PendingRecord> {
        self.flights.met(record)
    }

    /// Appends that have not shown up by now are void: under the new term they may be sent again.
    pub(crate) fn send_void_again(&mut self) {
        let at = self.pending.iter().take_while(|entry| is_owner(entry)).count();
        for entry in self.flights.void().into_iter().rev().filter(|entry| !is_owner(entry)) {
            self.pending.insert(at, entry);
        }
    }

    /// What waits stands under this term.
    pub(crate) fn set_term(&mut self, term: u64) {
        for entry in &mut self.pending {
            entry.record.term = term;
        }
    }

    /// What was sent and not applied, and what was not sent.
    pub(crate) fn abandon(self) -> (impl Iterator<Item = PendingRecord>, VecDeque<PendingRecord>) {
        (self.flights.abandon(), self.pending)
    }
}

fn heard_of_none(context: &PartitionContext) -> Error {
    Error::Journal { partition: context.id, detail: "a report of an append that was not made".into() }
}

/// The journal record that raises the level of decisions, for whoever appends it while no node runs.
pub fn level_record(level: u32) -> Bytes {
    Record::new(0, Body::Level(LevelRaised { level })).encode()
}

fn is_owner(entry: &PendingRecord) -> bool {
    matches!(entry.record.body, Some(Body::Owner(_)))
}
