//! The partition's way through its journal: what it appends, what comes back, and what others have appended.

use everlog_log::{Appended, Error as LogError, Log};
use everlog_store::CommittedRows;
use everlog_wire::{Body, Owner};

use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::model::pending::{PendingRecord, ReplyTo};
use crate::partition::Partition;

/// Bytes of journal that are taken in before others get their turn.
const FOLLOW_BYTES_MAX: usize = 1 << 20;
/// Bytes that may come of a byte of journal: an event is a row, an output, and a change of its run.
const YIELD: usize = 4;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn appended(
        &mut self,
        result: Result<Option<Appended>, LogError>,
        now_ms: i64,
    ) -> Result<(), Error> {
        match result {
            Ok(appended) => {
                let mut first = appended.map(|appended| appended.first);
                if !R::keeps(Rule::Contiguity) {
                    first = Some(self.position.applied);
                }
                let entries = self.journal.acknowledged(&self.context, first, self.position.applied)?;
                let stamp_ms = appended.map_or(0, |appended| appended.stamp_ms);
                for entry in entries {
                    self.apply_own(self.position.applied, stamp_ms, entry, now_ms)?;
                }
                // What lies in between comes with the journal, if others may write it at all.
                if self.journal.has_strangers() {
                    return Err(self.unsound("somebody else has appended"));
                }
                Ok(())
            }
            Err(error @ (LogError::Full { .. } | LogError::Busy { .. })) => {
                self.journal.refused(&self.context, &error, now_ms)
            }
            Err(LogError::Unknown { .. }) if !R::keeps(Rule::TermAfterDoubt) => {
                self.journal.repeat(&self.context)
            }
            Err(LogError::Unknown { detail }) if self.journal.is_shared() => {
                self.journal.lost_sight(&self.context, now_ms)?;
                tracing::warn!(partition = self.context.id, detail, "an append's outcome is unknown");
                // Under a new term the earlier appends that have not shown up by then do not count.
                self.ownership.lose_term(&self.context.stats);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what the journal has got meanwhile; true if there may be more.
    pub(crate) fn follow(&mut self, now_ms: i64) -> Result<bool, Error> {
        if self.ownership.is_replaying() {
            // Rows of changed runs are counted only here.
            self.runs.flush()?;
        }
        // What is taken at once, and what comes of it, fits into what may wait.
        let room = self.overfull_bytes().saturating_sub(self.uncommitted_bytes()) / YIELD;
        let records = self.journal.take_tail(room.min(FOLLOW_BYTES_MAX))?;
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
            let own = if record.serial > 0 && !self.ownership.is_replaying() {
                self.journal.met(&record)
            } else {
                None
            };
            match own {
                Some(own) => self.apply_own(stored.offset, stored.stamp_ms, own, now_ms)?,
                None => self.apply(stored.offset, stored.stamp_ms, record, ReplyTo::Nobody)?,
            }
        }
        self.ownership.applied(self.position.applied);
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
            self.journal.push_entry(entry);
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
        let another_follows = self.journal.has_owner();
        if owner.instance != self.context.config.instance {
            let node = owner.node.clone();
            // One's own that follows will be the latest.
            return if another_follows || !R::keeps(Rule::StepDown) {
                Ok(())
            } else {
                Err(Error::Superseded { partition: self.context.id, node })
            };
        }
        self.journal.send_void_again();
        // Only under the latest term of one's own will appends count.
        if another_follows { Ok(()) } else { self.took_over() }
    }

    fn unsound(&self, detail: &str) -> Error {
        Error::Journal { partition: self.context.id, detail: detail.into() }
    }
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
        Some(
            Body::Owner(_)
            | Body::PublicCommand(_)
            | Body::InvalidCommand(_)
            | Body::OutboxMessage(_)
            | Body::Level(_),
        )
        | None => false,
    }
}
