//! The standby keeps the rows of groups that other nodes own. A take-over of such a group has little left to restore.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use everlog_log::Offset;
use tokio::time::MissedTickBehavior;

use crate::assignment::assign::follower;
use crate::assignment::groups::{Group, GroupTable};
use crate::control_table::ControlTable;
use crate::local::LocalPartitions;
use crate::lock;
use crate::membership::this_node::ThisNode;

/// How often the standby looks for new commits.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The pause for a group whose rows could not be restored.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Keeps the rows of groups that other nodes own near their end.
pub struct Standby {
    /// The rows of `control`.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// The groups.
    pub groups: Arc<GroupTable>,
    /// The partitions of this node.
    pub local: Arc<dyn LocalPartitions>,
}

impl Standby {
    /// Follows the groups that this node is the standby of, until the node ends.
    pub async fn run(self: Arc<Self>) {
        let mut resting = BTreeMap::new();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.node.until_ended() => return,
                _ = looks.tick() => {}
            }
            for group in self.groups.numbers() {
                // A take-over or a release cares for the rows itself.
                let Ok(_turn) = self.groups[group].transition.try_lock() else { continue };
                let Group { is_owned, is_acquiring, .. } = &self.groups[group];
                if is_owned.load(Ordering::Acquire) || is_acquiring.load(Ordering::Acquire) {
                    // The owner keeps its rows itself.
                    self.stop_standby(group);
                } else if self.is_follower(group) {
                    if resting.get(&group).is_none_or(|until| *until <= Instant::now()) {
                        resting.remove(&group);
                        if !self.follow(group).await {
                            resting.insert(group, Instant::now() + AGAIN_AFTER);
                        }
                    }
                } else if self.stop_standby(group) {
                    self.forget(group).await;
                }
            }
        }
    }

    fn is_follower(&self, group: usize) -> bool {
        let view = self.control.view();
        let assigned = view.assignment.groups.get(group).and_then(Option::as_ref);
        let others = view.assignment.nodes.iter().filter(|node| Some(*node) != assigned);
        assigned.is_some() && follower(others.map(String::as_str), group) == Some(self.node.name.as_str())
    }

    /// Restores what was committed since the last time. False where that fails: then nobody should count on the rows.
    async fn follow(self: &Arc<Self>, group: usize) -> bool {
        let standby = Arc::clone(self);
        let brought = tokio::task::spawn_blocking(move || {
            let partitions = standby.groups.partitions_of(group);
            let Some(log) = standby.control.log() else { return true };
            let standby_ends = &standby.groups[group].standby_ends;
            let mut are_all_here = true;
            for (partition, end) in partitions.clone().zip(log.changelog_ends(partitions)) {
                let is_new = |end: &Offset| lock(standby_ends).get(&partition) != Some(end);
                let Some(end) = end.filter(is_new) else { continue };
                match standby.local.prepare(partition..partition + 1) {
                    Ok(()) => drop(lock(standby_ends).insert(partition, end)),
                    Err(_told) => {
                        lock(standby_ends).remove(&partition);
                        are_all_here = false;
                    }
                }
            }
            are_all_here
        });
        match brought.await {
            Ok(true) => {
                self.node.announce_rows(&[group]).await;
                true
            }
            Ok(false) => false,
            Err(panicked) => {
                tracing::error!(group, %panicked, "standby rows not restored");
                self.stop_standby(group);
                false
            }
        }
    }

    /// True where this node was its standby.
    fn stop_standby(&self, group: usize) -> bool {
        !std::mem::take(&mut *lock(&self.groups[group].standby_ends)).is_empty()
    }

    /// Another node is the standby now: the rows are closed.
    async fn forget(self: &Arc<Self>, group: usize) {
        let standby = Arc::clone(self);
        let closed =
            tokio::task::spawn_blocking(move || standby.local.forget(standby.groups.partitions_of(group)));
        if let Err(panicked) = closed.await {
            tracing::error!(group, %panicked, "standby rows not closed");
        }
    }
}
