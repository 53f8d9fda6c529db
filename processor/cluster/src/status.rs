//! The status of a node, for other nodes and for commands by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use everlog_partition::Stats;
use everlog_temporal::TokenSigner;
use serde::{Deserialize, Serialize};

use crate::assignment::groups::GroupTable;
use crate::lock;
use crate::membership::this_node::ThisNode;

/// The status. Fields that an earlier release does not send are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Random, one for each start.
    pub instance: String,
    /// Its release.
    #[serde(default)]
    pub version: String,
    /// Ids of the keys of task tokens that it accepts. The first one signs.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The partitions that are assigned to it.
    pub partitions: Vec<PartitionStatus>,
    /// Partitions of other nodes that it restores for a take-over or as a standby, and the percent of rows that is
    /// here.
    #[serde(default)]
    pub brings: BTreeMap<u32, u64>,
    /// Partitions that it is the standby of.
    #[serde(default)]
    pub follows: BTreeSet<u32>,
    /// How many standbys each partition has, by its settings.
    #[serde(default)]
    pub replicas: u32,
}

/// The status of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionStatus {
    /// Its number.
    pub partition: u32,
    /// It serves calls.
    pub serves: bool,
    /// It cannot be served because of what is in the log.
    #[serde(default)]
    pub is_closed: bool,
    /// The number of the fence under which its outputs are committed.
    #[serde(default)]
    pub fence: u64,
    /// The journal offset of the owner's record. Every owner has a higher one than the owner before.
    #[serde(default)]
    pub term: u64,
    /// The level of its decisions; none where the node's release does not say.
    #[serde(default)]
    pub level: Option<u32>,
    /// The next journal offset to apply.
    pub applied: u64,
    /// The journal offset up to which outputs are committed.
    #[serde(default)]
    pub committed: u64,
    /// Percent of the rows that it needs before it serves.
    pub restored_percent: u64,
    /// Percent of the histories, which are restored while it serves.
    pub histories_percent: u64,
}

impl PartitionStatus {
    fn of(partition: u32, stats: &Stats) -> Self {
        Self {
            partition,
            serves: gauge(&stats.serving) == 1,
            is_closed: gauge(&stats.closed) == 1,
            fence: gauge(&stats.fence),
            term: gauge(&stats.term),
            level: u32::try_from(gauge(&stats.level)).ok(),
            applied: gauge(&stats.next_offset),
            committed: gauge(&stats.committed_offset),
            restored_percent: percent(&stats.restore_left, &stats.restore_all),
            histories_percent: match gauge(&stats.behind) {
                0 => 100,
                _ => percent(&stats.history_left, &stats.history_all).min(99),
            },
        }
    }
}

/// Reports the status of this node to those that ask.
pub(crate) struct StatusReporter {
    pub(crate) node: Arc<ThisNode>,
    pub(crate) groups: Arc<GroupTable>,
    pub(crate) token_signer: TokenSigner,
    /// How many standbys each group has.
    pub(crate) replicas: u32,
}

impl StatusReporter {
    pub(crate) fn status(&self) -> Status {
        let wanted = (0..).zip(&self.groups.stats).filter(|(_, stats)| gauge(&stats.is_wanted) == 1);
        let brought = (0..)
            .zip(&self.groups.stats)
            .filter(|(_, stats)| gauge(&stats.is_wanted) == 0 && gauge(&stats.restore_left) > 0);
        let so_far = |stats: &Stats| percent(&stats.restore_left, &stats.restore_all);
        Status {
            name: self.node.name.clone(),
            instance: self.node.instance.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            keys: self.token_signer.marks(),
            partitions: wanted.map(|(partition, stats)| PartitionStatus::of(partition, stats)).collect(),
            brings: brought.map(|(partition, stats)| (partition, so_far(stats))).collect(),
            follows: self
                .groups
                .iter()
                .flat_map(|group| lock(&group.standby_ends).clone().into_keys())
                .collect(),
            replicas: self.replicas,
        }
    }
}

fn gauge(gauge: &AtomicU64) -> u64 {
    gauge.load(Ordering::Relaxed)
}

fn percent(left: &AtomicU64, all: &AtomicU64) -> u64 {
    match gauge(all) {
        0 => 100,
        all => 100 - (gauge(left).min(all) * 100).div_ceil(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_release_tells_is_understood() {
        let told = r#"{"name":"a","instance":"1","partitions":[{"partition":3,"serves":true,"applied":7,
            "restored_percent":100,"histories_percent":40}]}"#;
        let status: Status = serde_json::from_str(told).expect("JSON");
        assert_eq!((status.version.as_str(), status.keys.len()), ("", 0));
        let told = PartitionStatus {
            partition: 3,
            serves: true,
            applied: 7,
            restored_percent: 100,
            histories_percent: 40,
            ..PartitionStatus::default()
        };
        assert_eq!(status.partitions, [told]);
    }

    #[test]
    fn a_partition_tells_how_much_of_its_rows_is_there() {
        let stats = Stats::default();
        assert_eq!(PartitionStatus::of(0, &stats).restored_percent, 100, "there is nothing to restore");
        stats.restore_all.store(1_000, Ordering::Relaxed);
        stats.restore_left.store(1, Ordering::Relaxed);
        stats.behind.store(1, Ordering::Relaxed);
        let status = PartitionStatus::of(0, &stats);
        assert_eq!((status.restored_percent, status.histories_percent), (99, 99), "never all before it is");
    }
}
