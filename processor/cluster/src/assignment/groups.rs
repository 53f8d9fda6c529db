//! The partition groups, as far as this node owns them, acquires them or keeps their rows.

use std::collections::BTreeMap;
use std::ops::{Index, Range};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use everlog_log::Offset;
use everlog_partition::Stats;

use crate::assignment::takeover_backoff::TakeoverBackoff;
use crate::control_rows::ControlView;

/// A partition group.
#[derive(Default)]
pub struct Group {
    /// This node owns it.
    pub is_owned: AtomicBool,
    /// It is being taken over.
    pub is_acquiring: AtomicBool,
    /// How many nodes ask for it at this moment; one of them gets it.
    pub handovers: AtomicUsize,
    /// The brokers did not take the row that announces this node as its owner.
    pub is_unannounced: AtomicBool,
    /// At how many looks in a row `control` named another owner, although this node owns it.
    pub contradicted: AtomicU32,
    /// How many attempts in a row failed for a reason that does not go away by itself.
    pub failures: AtomicU32,
    /// How long this node leaves it to another node that has taken it.
    pub backoff: Mutex<TakeoverBackoff>,
    /// Held while it is restored, taken over or released.
    pub transition: tokio::sync::Mutex<()>,
    /// As a standby: the end of each partition's changelog when its rows were restored last.
    pub standby_ends: Mutex<BTreeMap<u32, Offset>>,
}

impl Group {
    /// Counts an attempt to restore it or to take it over that failed.
    pub fn count_failure(&self, may_pass: bool) {
        if !may_pass {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// This node owns it.
    pub fn is_owned(&self) -> bool {
        self.is_owned.load(Ordering::Acquire)
    }
}

/// All groups of the log.
pub struct GroupTable {
    groups: Vec<Group>,
    partitions: u32,
    group_partitions: u32,
    /// What each partition counts.
    pub stats: Vec<Arc<Stats>>,
}

impl GroupTable {
    /// This node owns none of them.
    pub fn new(partitions: u32, group_partitions: u32, stats: Vec<Arc<Stats>>) -> Self {
        let groups = partitions.div_ceil(group_partitions);
        Self { groups: (0..groups).map(|_| Group::default()).collect(), partitions, group_partitions, stats }
    }

    /// The numbers of all groups.
    pub fn numbers(&self) -> Range<usize> {
        0..self.groups.len()
    }

    /// All groups, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Group> {
        self.groups.iter()
    }

    /// A group, if there is one of this number.
    pub fn get(&self, group: usize) -> Option<&Group> {
        self.groups.get(group)
    }

    /// The group of a partition.
    pub fn group_of(&self, partition: u32) -> usize {
        (partition / self.group_partitions) as usize
    }

    /// The partitions of a group.
    pub fn partitions_of(&self, group: usize) -> Range<u32> {
        let first = u32::try_from(group).unwrap_or(u32::MAX).saturating_mul(self.group_partitions);
        first..first.saturating_add(self.group_partitions).min(self.partitions)
    }

    /// True where this node owns a partition.
    pub fn owns(&self, partition: u32) -> bool {
        self.groups.get(self.group_of(partition)).is_some_and(Group::is_owned)
    }

    /// True where this node owns a partition, and the partition serves.
    pub fn serves(&self, partition: u32) -> bool {
        let is_serving = |stats: &Arc<Stats>| stats.serving.load(Ordering::Relaxed) == 1;
        self.owns(partition) && self.stats.get(partition as usize).is_some_and(is_serving)
    }

    /// True where all partitions are owned here and closed.
    pub fn is_closed_whole(&self) -> bool {
        self.stats.iter().all(|stats| stats.closed.load(Ordering::Relaxed) == 1)
    }

    /// True while this node owns a group or hands one over.
    pub fn are_in_use(&self) -> bool {
        let is_in_use = |group: &Group| group.is_owned() || group.handovers.load(Ordering::Acquire) > 0;
        self.groups.iter().any(is_in_use)
    }

    /// How many groups are assigned to `node` and not owned here.
    pub fn unowned(&self, view: &ControlView, node: &String) -> usize {
        let assigned = view.assignment.groups.iter().zip(&self.groups);
        let is_unowned =
            |(owner, group): &(&Option<String>, &Group)| owner.as_ref() == Some(node) && !group.is_owned();
        assigned.filter(is_unowned).count()
    }
}

impl Index<usize> for GroupTable {
    type Output = Group;

    fn index(&self, group: usize) -> &Group {
        &self.groups[group]
    }
}
