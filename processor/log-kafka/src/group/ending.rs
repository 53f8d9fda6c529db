//! Ends of a group's own transactions that the brokers have not written, see `hanging.rs`.
//!
//! Who goes on does not notice: its commits are answered, and the next output ends what hangs. Readers notice, and where
//! no output comes they get no further. So a group looks whether its transactions have come to their ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use everlog_log::{Fence, Offset, PartitionId};

use super::Worker;
use crate::owned::Standing;
use crate::rows::{self, OUTPUTS};
use crate::transaction::{Lost, Outgoing, Reached, Transactions};

/// A topic's number, and a partition of it.
type Place = (usize, PartitionId);

/// What a group has seen of the ends of its transactions.
#[derive(Default)]
pub(super) struct Seen {
    /// When it last looked.
    looked: Option<Instant>,
    /// What had ended by then has its ends everywhere.
    settled: Option<Instant>,
    /// From where on something was open.
    open: BTreeMap<Place, Offset>,
}

impl Worker {
    /// Looks for ends that are missing, if something has ended since they were all there. What is open from the same
    /// offset on in two looks hangs: no transaction of the group is under way, and nobody else has its id.
    pub(super) fn look_for_ends(&mut self, every: Duration) {
        if self.ended <= self.seen.settled || self.seen.looked.is_some_and(|looked| looked.elapsed() < every)
        {
            return;
        }
        let Some(transactions) = &self.transactions else { return };
        let is_here = |partition: &PartitionId| self.parts.table.of(*partition).standing == Standing::Good;
        let partitions: Vec<_> = self.partitions.clone().filter(is_here).collect();
        let now = Instant::now();
        self.seen.looked = Some(now);
        let Some(open) = self.parts.ends.open_from(&self.places(&partitions)) else { return };
        let places =
            partitions.iter().flat_map(|partition| (0..OUTPUTS.len()).map(|topic| (topic, *partition)));
        let open: BTreeMap<_, _> =
            places.zip(open).filter_map(|(place, from)| from.map(|from| (place, from))).collect();
        if open.is_empty() {
            self.seen.settled = Some(now);
        }
        let hangs =
            |(place, from): (&Place, &Offset)| (self.seen.open.get(place) == Some(from)).then_some(*place);
        let hanging: Vec<Place> = open.iter().filter_map(hangs).collect();
        self.seen.open = open;
        if hanging.is_empty() {
            return;
        }
        tracing::warn!(?hanging, "the brokers left a commit without an end: it is ended now");
        let outcome = self.write_ends(transactions, &hanging, true);
        self.ended = Some(Instant::now());
        match outcome {
            Ok(reached) => self.reach(&reached),
            Err(lost) => drop(self.give_up(lost)),
        }
    }

    /// A transaction that says nothing: its end is that of whatever hangs in these places.
    pub(super) fn write_ends(
        &self,
        transactions: &Transactions,
        places: &[Place],
        is_commit: bool,
    ) -> Result<Reached, Lost> {
        let keys: Vec<_> =
            places.iter().map(|(topic, partition)| rows::end_key(*topic, *partition)).collect();
        let header = rows::header(Fence(0), 0, 0, 0);
        let row = |((topic, partition), key): (&Place, _)| Outgoing {
            topic: *topic,
            partition: *partition,
            key,
            value: None,
            header,
            headers: &[],
        };
        let rows = places.iter().zip(keys.iter().map(Vec::as_slice)).map(row);
        self.rest();
        match is_commit {
            true => transactions.run(rows, &self.parts.counters),
            false => transactions.undo(rows).map(|()| Reached::default()),
        }
    }
}
