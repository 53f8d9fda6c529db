//! The partition's way through its journal: what it appends, what comes back, and what others have appended.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use everlog_log::{Appended, Error as LogError, Log};
use everlog_store::CommittedRows;
use everlog_wire::{Barrier, Body, Owner, Record};

use crate::config::{Config, HOLD_MS};
use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::model::admission::CallFailure;
use crate::model::inbox_message::InboxMessage;
use crate::model::pending::{PendingRecord, ReplyTo};
use crate::partition::Partition;

/// Bytes of records from which an append takes no further one.
const APPEND_BYTES_MAX: usize = 8 << 20;
/// Bytes of journal that are taken in before others get their turn.
const FOLLOW_BYTES_MAX: usize = 1 << 20;
/// Bytes that may come of a byte of journal: an event is a row, an output, and a change of its run.
const YIELD: usize = 4;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn append(&mut self, now_ms: i64) {
        if self.lacks_term() {
            self.ask_for_term();
        }
        if self.serving && !self.reads.is_empty() && self.pending.is_empty() {
            let barrier = Record::new(self.position.term, Body::Barrier(Barrier {}));
            self.pending.push_back(PendingRecord::new(barrier, ReplyTo::Nobody));
        }
        // Until the `Owner` record is applied nothing else has a term to stand under.
        let (appends_max, records_max) = if self.serving {
            (self.context.config.appends_max, self.context.config.append_records_max)
        } else {
            (1, 1)
        };
        let allowed = (self.serving || self.wants_term) && now_ms >= self.hold_until_ms;
        while allowed && !self.pending.is_empty() && self.flights.under_way() < appends_max {
            self.wants_term = false;
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
            if let (true, Some(last)) = (self.serving, entries.back_mut()) {
                last.reads.append(&mut self.reads);
            }
            self.flights.send(entries);
            self.context.stats.appended.fetch_add(records.len() as u64, Ordering::Relaxed);
            self.context.stats.appended_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            let (send, id) = (self.context.send.clone(), self.context.id);
            let done = Box::new(move |result| {
                // A partition that is gone has no waiters left to tell.
                send(id, InboxMessage::Appended(result));
            });
            self.log.append(self.context.id, records, done);
        }
    }

    pub(crate) fn appended(
        &mut self,
        result: Result<Option<Appended>, LogError>,
        now_ms: i64,
    ) -> Result<(), Error> {
        let id = self.context.id;
        let heard_of_none =
            || Error::Journal { partition: id, detail: "a report of an append that was not made".into() };
        match result {
            Ok(appended) => {
                let mut first = appended.map(|appended| appended.first);
                if !R::keeps(Rule::Contiguity) {
                    first = Some(self.position.applied);
                }
                let entries = self.flights.acknowledged(first, self.position.applied);
                let entries = entries.ok_or_else(heard_of_none)?;
                self.refused_appends.ends(self.context.id);
                let stamp_ms = appended.map_or(0, |appended| appended.stamp_ms);
                for entry in entries {
                    self.apply_own(self.position.applied, stamp_ms, entry, now_ms)?;
                }
                // What lies in between comes with the journal, if others may write it at all.
                if self.tail.is_none() && !self.flights.wait_only_for_reports() {
                    return Err(self.unsound("somebody else has appended"));
                }
                Ok(())
            }
            Err(error @ (LogError::Full { .. } | LogError::Busy { .. })) => {
                let entries = self.flights.refused().ok_or_else(heard_of_none)?;
                self.refused_appends.begins(self.context.id, &error);
                let is_full = matches!(error, LogError::Full { .. });
                self.not_appended(
                    entries,
                    if is_full { CallFailure::Full } else { CallFailure::Busy },
                    now_ms,
                );
                Ok(())
            }
            Err(LogError::Unknown { .. }) if !R::keeps(Rule::TermAfterDoubt) => {
                let entries = self.flights.refused().ok_or_else(heard_of_none)?;
                entries.into_iter().rev().for_each(|entry| self.pending.push_front(entry));
                self.wants_term = self.pending.front().is_some_and(is_owner);
                Ok(())
            }
            Err(LogError::Unknown { detail }) if self.tail.is_some() => {
                self.flights.lost_sight().ok_or_else(heard_of_none)?;
                tracing::warn!(partition = self.context.id, detail, "an append's outcome is unknown");
                // Under a new term the earlier appends that have not shown up by then do not count.
                self.serving = false;
                self.context.stats.serving.store(0, Ordering::Relaxed);
                self.hold_until_ms = now_ms + HOLD_MS;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The log had no room: callers are told so; what the partition itself wants is tried again in a while.
    fn not_appended(&mut self, entries: VecDeque<PendingRecord>, failure: CallFailure, now_ms: i64) {
        self.hold_until_ms = now_ms + HOLD_MS;
        for mut entry in entries.into_iter().rev() {
            self.reads.append(&mut entry.reads);
            match entry.waiter {
                waiter @ (ReplyTo::Order(..) | ReplyTo::Update(..) | ReplyTo::Completion(..)) => {
                    self.refuse(waiter, failure);
                }
                waiter @ (ReplyTo::Nobody | ReplyTo::Claim(..)) => {
                    self.pending.push_front(PendingRecord::new(entry.record, waiter));
                }
            }
        }
        self.wants_term = self.pending.front().is_some_and(is_owner);
    }

    /// Takes in what the journal has got meanwhile; true if there may be more.
    pub(crate) fn follow(&mut self, now_ms: i64) -> Result<bool, Error> {
        if self.replaying {
            // Rows of changed runs are counted only here.
            self.runs.flush();
        }
        // What is taken at once, and what comes of it, fits into what may wait.
        let room = self.overfull_bytes().saturating_sub(self.uncommitted_bytes()) / YIELD;
        let Some(tail) = &mut self.tail else { return Ok(false) };
        let records = tail.take(room.min(FOLLOW_BYTES_MAX))?;
        let more = !records.is_empty();
        for record in records {
            self.meet(record, now_ms)?;
        }
        Ok(more)
    }

    /// Applies a record of the journal that was not applied already, whoever appended it.
    fn meet(&mut self, stored: everlog_log::Record, now_ms: i64) -> Result<(), Error> {
        let applied = self.position.applied;
        if stored.offset < applied {
            return Ok(());
        }
        if stored.offset > applied {
            return Err(self.unsound(&format!("record {} follows {applied}", stored.offset)));
        }
        if let Some(record) = self.read_record(&stored)? {
            let own = if record.serial > 0 && !self.replaying { self.flights.met(&record) } else { None };
            match own {
                Some(own) => self.apply_own(stored.offset, stored.stamp_ms, own, now_ms)?,
                None => self.apply(stored.offset, stored.stamp_ms, record, ReplyTo::Nobody)?,
            }
        }
        self.replaying = self.position.applied < self.replay_to;
        Ok(())
    }

    fn apply_own(
        &mut self,
        offset: u64,
        stamp_ms: i64,
        mut entry: PendingRecord,
        now_ms: i64,
    ) -> Result<(), Error> {
        if entry.record.term != self.position.term && stands_under_a_term(&entry) {
            // An `Owner` of one's own that came late has made it void: under its term it is sent again.
            let void = entry.record.clone();
            self.apply(offset, stamp_ms, void, ReplyTo::Nobody)?;
            entry.record.term = self.position.term;
            self.pending.push_back(entry);
            return Ok(());
        }
        self.apply(offset, stamp_ms, entry.record, entry.waiter)?;
        for read in entry.reads {
            self.dispatch(read, now_ms)?;
        }
        Ok(())
    }

    /// An `Owner` record was applied while this partition owns its state: its own, or that of whoever came after it.
    pub(crate) fn owner_appeared(&mut self, owner: &Owner) -> Result<(), Error> {
        let another_follows = self.flights.entries().chain(&self.pending).any(is_owner);
        if owner.instance != self.context.config.instance {
            let node = owner.node.clone();
            // One's own that follows will be the latest.
            return if another_follows || !R::keeps(Rule::StepDown) {
                Ok(())
            } else {
                Err(Error::Superseded { partition: self.context.id, node })
            };
        }
        // Those that have not shown up by now are void: under the new term they may be sent again.
        let at = self.pending.iter().take_while(|entry| is_owner(entry)).count();
        for entry in self.flights.void().into_iter().rev().filter(|entry| !is_owner(entry)) {
            self.pending.insert(at, entry);
        }
        // Only under the latest term of one's own will appends count.
        if another_follows { Ok(()) } else { self.took_over() }
    }

    /// Every append has been heard of, and none of them, nor one that waits, asks for the term that is missing.
    fn lacks_term(&self) -> bool {
        !self.serving
            && !self.wants_term
            && self.flights.under_way() == 0
            && !self.flights.entries().any(is_owner)
    }

    pub(crate) fn ask_for_term(&mut self) {
        let Config { node, instance, level, .. } = &self.context.config;
        let level = self.position.level.max(*level);
        let owner = Owner { node: node.clone(), instance: instance.clone(), level };
        self.pending.push_front(PendingRecord::new(Record::new(0, Body::Owner(owner)), ReplyTo::Nobody));
        self.wants_term = true;
    }

    fn unsound(&self, detail: &str) -> Error {
        Error::Journal { partition: self.context.id, detail: detail.into() }
    }
}

fn is_owner(entry: &PendingRecord) -> bool {
    matches!(entry.record.body, Some(Body::Owner(_)))
}

fn stands_under_a_term(entry: &PendingRecord) -> bool {
    match &entry.record.body {
        Some(
            Body::Input(_)
            | Body::Settings(_)
            | Body::Barrier(_)
            | Body::DeliverDelayed(_)
            | Body::NamespaceDeleted(_),
        ) => true,
        Some(Body::Owner(_) | Body::PublicCommand(_) | Body::InvalidCommand(_) | Body::OutboxMessage(_))
        | None => false,
    }
}
