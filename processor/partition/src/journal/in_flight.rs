//! What a partition has sent to its journal and not applied yet.
//!
//! Delivery reports and the journal itself are equal witnesses of an append: whichever comes first lets it be applied,
//! in offset order. Each of the partition's own records has a serial number by which it is known again.

use std::collections::VecDeque;

use everlog_log::Offset;
use everlog_wire::Record;

use crate::model::pending::PendingRecord;

/// One append.
struct Flight {
    entries: VecDeque<PendingRecord>,
    sent: usize,
    acknowledged: bool,
}

/// Appends in the order in which they were sent.
#[derive(Default)]
pub(crate) struct InFlight {
    flights: VecDeque<Flight>,
    /// Of appends whose outcome nobody knows; the journal shows them before the next `Owner`, or never in force.
    doubtful: VecDeque<PendingRecord>,
    serial: u64,
}

impl InFlight {
    /// Appends whose outcome has not been heard.
    pub(crate) fn under_way(&self) -> usize {
        self.flights.iter().filter(|flight| !flight.acknowledged).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty() && self.doubtful.is_empty()
    }

    /// Whether every record that was acknowledged has been applied.
    pub(crate) fn wait_only_for_reports(&self) -> bool {
        self.flights.iter().all(|flight| !flight.acknowledged || flight.entries.is_empty())
    }

    /// What was sent and not applied, but for the doubtful ones.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &PendingRecord> {
        self.flights.iter().flat_map(|flight| &flight.entries)
    }

    /// What was sent and not applied.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PendingRecord> {
        self.entries().chain(&self.doubtful)
    }

    /// The number of the next record.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(crate) fn send(&mut self, entries: VecDeque<PendingRecord>) {
        let sent = entries.len();
        self.flights.push_back(Flight { entries, sent, acknowledged: false });
    }

    /// The earliest append that was not heard of is durable, from an offset on if its records stand side by side.
    /// Returns what can be applied now: nothing while records in between have not been seen.
    pub(crate) fn acknowledged(
        &mut self,
        first: Option<Offset>,
        applied: Offset,
    ) -> Option<VecDeque<PendingRecord>> {
        let index = self.flights.iter().position(|flight| !flight.acknowledged)?;
        let flight = &mut self.flights[index];
        flight.acknowledged = true;
        let seen = (flight.sent - flight.entries.len()) as Offset;
        let earlier_wait = self.flights.range(..index).any(|flight| !flight.entries.is_empty());
        if earlier_wait || first.is_none_or(|first| first + seen != applied) {
            self.tidy();
            return Some(VecDeque::new());
        }
        let entries = std::mem::take(&mut self.flights[index].entries);
        self.tidy();
        Some(entries)
    }

    /// The earliest append that was not heard of has failed for sure: its entries.
    pub(crate) fn refused(&mut self) -> Option<VecDeque<PendingRecord>> {
        let index = self.flights.iter().position(|flight| !flight.acknowledged)?;
        self.flights.remove(index).map(|flight| flight.entries)
    }

    /// Nobody knows what became of the earliest append that was not heard of.
    pub(crate) fn lost_sight(&mut self) -> Option<()> {
        let entries = self.refused()?;
        self.doubtful.extend(entries);
        Some(())
    }

    /// A record of one's own was met in the journal: its entry, unless it was applied already.
    pub(crate) fn met(&mut self, record: &Record) -> Option<PendingRecord> {
        // A term is one owner's. What stands under none may be of a former owner, with a serial number of his.
        let is_it = |entry: &PendingRecord| {
            entry.record.serial == record.serial
                && entry.record.term == record.term
                && (record.term > 0 || entry.record.body == record.body)
        };
        if let Some(index) = self.doubtful.iter().position(is_it) {
            return self.doubtful.remove(index);
        }
        // An earlier append may have failed without a word yet: what came behind it is known all the same.
        let found = self.flights.iter_mut().find_map(|flight| {
            let index = flight.entries.iter().position(is_it)?;
            flight.entries.remove(index)
        });
        self.tidy();
        found
    }

    /// Under a new term none of the doubtful ones counts any more: they may be sent again.
    pub(crate) fn void(&mut self) -> VecDeque<PendingRecord> {
        std::mem::take(&mut self.doubtful)
    }

    /// Whatever was sent and not applied, the doubtful ones too.
    pub(crate) fn abandon(self) -> impl Iterator<Item = PendingRecord> {
        self.flights.into_iter().flat_map(|flight| flight.entries).chain(self.doubtful)
    }

    fn tidy(&mut self) {
        while self.flights.front().is_some_and(|flight| flight.acknowledged && flight.entries.is_empty()) {
            self.flights.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use everlog_wire::{Body, OutboxMessage};

    use super::*;
    use crate::model::pending::ReplyTo;

    /// A message, under no term, with the first serial number of its owner.
    fn message(number: u64) -> Record {
        let message = OutboxMessage { from: 3, number, input: None, sender_applied: 0 };
        Record { serial: 1, ..Record::new(0, Body::OutboxMessage(message)) }
    }

    #[test]
    fn a_message_of_a_former_owner_is_not_taken_for_ones_own() {
        let mut flights = InFlight::default();
        flights.send([PendingRecord::new(message(3), ReplyTo::Nobody)].into());
        assert!(flights.met(&message(2)).is_none(), "the former owner's first record");
        let own = flights.met(&message(3)).expect("one's own");
        assert_eq!(own.record, message(3));
    }
}
