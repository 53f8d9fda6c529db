//! Ends the group's own transactions that the brokers left open, see `hanging_transactions.rs`.
//!
//! The owner does not notice one: its commits are acknowledged, and its next output ends it. Readers of committed records
//! stop there until then. So the group checks the ends of its transactions. A producer lost while it ends one is replaced
//! without a new fence, as long as no commit waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use everlog_log::{Fence, Offset, PartitionId, Topic};

use crate::outputs::fence_table::FenceStatus;
use crate::outputs::group::GroupWorker;
use crate::outputs::transaction::{OutputRecord, Reached, TransactionLost, Transactions};
use crate::record_format;

/// A topic, and a partition of it.
type TopicPartition = (Topic, PartitionId);

/// What a group has seen of the ends of its transactions.
#[derive(Default)]
pub(super) struct EndsSeen {
    /// When it last looked.
    looked: Option<Instant>,
    /// What had ended by then has its ends everywhere.
    settled: Option<Instant>,
    /// From where on something was open.
    open: BTreeMap<TopicPartition, Offset>,
    /// Partitions whose commits had all been answered as the producer was lost that was to end what hangs of them.
    left: BTreeSet<PartitionId>,
}

impl EndsSeen {
    /// Partitions are taken, which ends what hangs of them, or given up.
    pub(super) fn leave(&mut self, partitions: impl IntoIterator<Item = PartitionId>) {
        for partition in partitions {
            self.left.remove(&partition);
        }
    }
}

impl GroupWorker {
    /// Looks for ends that are missing, if something has ended since they were all there. What is open from the same
    /// offset on in two looks hangs: no transaction of the group is under way, and nobody else has its id.
    pub(super) fn look_for_ends(&mut self, every: Duration) {
        if self.ended <= self.seen.settled || self.seen.looked.is_some_and(|looked| looked.elapsed() < every)
        {
            return;
        }
        let now = Instant::now();
        self.seen.looked = Some(now);
        if !self.seen.left.is_empty() && self.transactions.is_none() {
            self.produce_for_ends();
        }
        let Some(transactions) = &self.transactions else { return };
        // What hangs of any other partition may have to be aborted: `hanging_transactions.rs` tells, when it is taken.
        let is_here = |partition: &PartitionId| {
            self.context.table.of(*partition).standing == FenceStatus::Good
                || self.seen.left.contains(partition)
        };
        let partitions: Vec<_> = self.partitions.clone().filter(is_here).collect();
        let Some(open) = self.context.ends.open_from(&self.places(&partitions)) else { return };
        let places = partitions.iter().flat_map(|partition| Topic::all().map(|topic| (topic, *partition)));
        let open: BTreeMap<_, _> =
            places.zip(open).filter_map(|(place, from)| from.map(|from| (place, from))).collect();
        if open.is_empty() {
            self.seen.settled = Some(now);
            self.seen.left.clear();
        }
        let hangs = |(place, from): (&TopicPartition, &Offset)| {
            (self.seen.open.get(place) == Some(from)).then_some(*place)
        };
        let hanging: Vec<TopicPartition> = open.iter().filter_map(hangs).collect();
        self.seen.open = open;
        if hanging.is_empty() {
            return;
        }
        tracing::warn!(?hanging, "the brokers left a commit without an end: it is ended now");
        let outcome = self.write_ends(transactions, &hanging, true);
        self.ended = Some(Instant::now());
        match outcome {
            Ok(reached) => self.reach(&reached),
            Err(lost) => {
                let lost = self.give_up(lost);
                self.seen.left = match lost {
                    TransactionLost::Unknown(_) => partitions.into_iter().collect(),
                    TransactionLost::Fenced(_) => BTreeSet::new(),
                };
                tracing::warn!(?lost, "a transaction could not be ended");
            }
        }
    }

    /// Sees to a producer, as long as nobody else has the partitions.
    fn produce_for_ends(&mut self) {
        match self.are_taken_elsewhere() {
            // It is asked again at the next look.
            None => {}
            Some(true) => self.seen.left.clear(),
            Some(false) => {
                if let Err(error) = self.produce() {
                    tracing::debug!(%error, "no producer to end a transaction");
                }
            }
        }
    }

    /// Whether a fence row of any partition is newer than the fence that was given here; none where no row is seen.
    fn are_taken_elsewhere(&self) -> Option<bool> {
        for partition in self.partitions.clone() {
            let given = self.context.table.of(partition).given;
            if given != 0 && self.last_fence(partition)?.0 > given {
                return Some(true);
            }
        }
        Some(false)
    }

    /// A transaction that says nothing: its end is that of whatever hangs in these places.
    pub(super) fn write_ends(
        &self,
        transactions: &Transactions,
        places: &[TopicPartition],
        is_commit: bool,
    ) -> Result<Reached, TransactionLost> {
        let keys: Vec<_> =
            places.iter().map(|(topic, partition)| record_format::end_key(*topic, *partition)).collect();
        let header = record_format::header(Fence(0), 0, 0, 0);
        let row = |((topic, partition), key): (&TopicPartition, _)| OutputRecord {
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
            true => transactions.run(rows, &self.context.counters),
            false => transactions.undo(rows).map(|()| Reached::default()),
        }
    }
}
