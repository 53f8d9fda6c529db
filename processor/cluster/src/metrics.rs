//! What a node counts of its life among the others; read by whoever exports metrics.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::Cluster;

/// Bounds of the times that groups are away, in ms; a last bucket has what took longer.
pub const AWAY_BOUNDS_MS: [u64; 10] = [100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 120_000];

/// What became of something that was asked of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered, or given.
    Answered,
    /// It was refused: what it is about is not there any more.
    Refused,
    /// It has not reached the node.
    Unsent,
    /// Nobody knows whether it has.
    Unanswered,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Refused, Self::Unsent, Self::Unanswered];

    /// As a label has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Unsent => "unsent",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Counters by outcome.
#[derive(Debug, Default)]
pub struct Outcomes([AtomicU64; Outcome::ALL.len()]);

impl Outcomes {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
    }

    /// How often it came so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize].load(Relaxed)
    }
}

/// Counters of one node.
#[derive(Debug, Default)]
pub struct ClusterCounters {
    /// Groups that were taken over, or could not be.
    pub taken: AtomicU64,
    /// See above.
    pub failed: AtomicU64,
    /// Groups that were given to other nodes.
    pub groups_handed_over: AtomicU64,
    /// Groups by the time that they were away, see [`AWAY_BOUNDS_MS`].
    pub away: [AtomicU64; AWAY_BOUNDS_MS.len() + 1],
    /// The same time, summed, in ms.
    pub away_ms: AtomicU64,
    /// Calls that were brought to other nodes.
    pub forwarded_out: Outcomes,
    /// Calls that other nodes have brought.
    pub forwarded_in: AtomicU64,
    /// Offers that other nodes have got.
    pub offers_sent: AtomicU64,
    /// Offers of other nodes.
    pub offers_received: AtomicU64,
    /// Claims at the nodes that have offered tasks.
    pub claims: Outcomes,
    /// Claims of other nodes.
    pub claimed: Outcomes,
    /// Answers that were given back because nobody spoke of them.
    pub receipts_expired: AtomicU64,
}

impl ClusterCounters {
    pub(crate) fn took(&self, away: Duration) {
        let away_ms = u64::try_from(away.as_millis()).unwrap_or(u64::MAX);
        let bucket = AWAY_BOUNDS_MS.iter().take_while(|bound_ms| away_ms > **bound_ms).count();
        self.away[bucket].fetch_add(1, Relaxed);
        self.away_ms.fetch_add(away_ms, Relaxed);
        self.taken.fetch_add(1, Relaxed);
    }
}

/// How a node stands among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterGauges {
    /// Nodes that groups are assigned on.
    pub nodes: usize,
    /// Nodes that are gone and not forgotten.
    pub gone: usize,
    /// Nodes that this one does not reach, though the brokers hear of them.
    pub unreachable: usize,
    /// This one is among the assigned.
    pub is_assigned: bool,
    /// An operator wants this one to have nothing.
    pub is_drained: bool,
    /// This one assigned last.
    pub is_coordinator: bool,
    /// Groups that are at work here.
    pub groups_owned: usize,
    /// Groups that are assigned here.
    pub groups_wanted: usize,
    /// Offers that wait to be brought to other nodes.
    pub offers_waiting: usize,
    /// Answers of which it is not known yet whether they have reached somebody.
    pub receipts_open: usize,
}

impl Cluster {
    /// What was counted so far.
    pub fn counters(&self) -> &ClusterCounters {
        &self.counters
    }

    /// As it stands now.
    pub fn gauges(&self) -> ClusterGauges {
        let view = self.control.view();
        let assignment = &view.assignment;
        ClusterGauges {
            nodes: assignment.nodes.len(),
            gone: view.gone.len(),
            unreachable: view.nodes.get(&self.node.name).map_or(0, |row| row.unreachable.len()),
            is_assigned: assignment.nodes.contains(&self.node.name),
            is_drained: view.drains.contains(&self.node.name),
            is_coordinator: assignment.by == self.node.name,
            groups_owned: self.groups.iter().filter(|group| group.is_owned()).count(),
            groups_wanted: assignment
                .groups
                .iter()
                .filter(|node| node.as_ref() == Some(&self.node.name))
                .count(),
            offers_waiting: self.matching.exchange.waiting(),
            receipts_open: self.matching.receipts.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_away_is_counted_once_where_it_belongs() {
        let counts = ClusterCounters::default();
        for away_ms in [0, 100, 101, 1_000_000] {
            counts.took(Duration::from_millis(away_ms));
        }
        let found = counts.away.each_ref().map(|count| count.load(Relaxed));
        assert_eq!((found[0], found[1], found[AWAY_BOUNDS_MS.len()]), (2, 1, 1));
        assert_eq!((counts.taken.load(Relaxed), counts.away_ms.load(Relaxed)), (4, 1_000_201));
    }

    #[test]
    fn each_outcome_has_a_count_of_its_own() {
        let outcomes = Outcomes::default();
        Outcome::ALL.into_iter().for_each(|outcome| outcomes.count(outcome));
        outcomes.count(Outcome::Unsent);
        assert_eq!(Outcome::ALL.map(|outcome| outcomes.of(outcome)), [1, 1, 2, 1]);
    }
}
