//! Counters and gauges of a cluster, which the node exports.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::Cluster;

/// Bounds of the times that groups are unavailable, in ms. A last bucket has longer times.
pub const AWAY_BOUNDS_MS: [u64; 10] = [100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 120_000];

/// The outcome of a request to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// It was refused, because what it is about is gone.
    Refused,
    /// It has not reached the node.
    Unsent,
    /// Nobody knows whether it has reached the node.
    Unanswered,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Refused, Self::Unsent, Self::Unanswered];

    /// The value of the label.
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

    /// How often this was the outcome.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize].load(Relaxed)
    }
}

/// Counters of one node.
#[derive(Debug, Default)]
pub struct ClusterCounters {
    /// Groups that were taken over.
    pub taken: AtomicU64,
    /// Take-overs that failed.
    pub failed: AtomicU64,
    /// Groups that were handed over to other nodes.
    pub groups_handed_over: AtomicU64,
    /// Groups by the time that they were unavailable, see [`AWAY_BOUNDS_MS`].
    pub away: [AtomicU64; AWAY_BOUNDS_MS.len() + 1],
    /// The sum of these times in ms.
    pub away_ms: AtomicU64,
    /// Calls that were forwarded to other nodes.
    pub forwarded_out: Outcomes,
    /// Calls that other nodes have forwarded here.
    pub forwarded_in: AtomicU64,
    /// Offers sent to other nodes.
    pub offers_sent: AtomicU64,
    /// Offers received from other nodes.
    pub offers_received: AtomicU64,
    /// Claims sent to other nodes.
    pub claims: Outcomes,
    /// Claims received from other nodes.
    pub claimed: Outcomes,
    /// Receipts that were given back because nobody settled them.
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

/// What a cluster is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterGauges {
    /// Nodes that groups are assigned to.
    pub nodes: usize,
    /// Nodes that died and are not forgotten.
    pub gone: usize,
    /// Nodes that this one does not reach, although they are members.
    pub unreachable: usize,
    /// Groups may be assigned to this node.
    pub is_assigned: bool,
    /// An operator has drained this node.
    pub is_drained: bool,
    /// This node has assigned groups last.
    pub is_coordinator: bool,
    /// Groups that this node owns.
    pub groups_owned: usize,
    /// Groups that are assigned to this node.
    pub groups_wanted: usize,
    /// Offers that wait to be sent.
    pub offers_waiting: usize,
    /// Receipts that are not settled.
    pub receipts_open: usize,
}

impl Cluster {
    /// All counters.
    pub fn counters(&self) -> &ClusterCounters {
        &self.counters
    }

    /// All gauges.
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
