//! How far journals reach beyond what is applied here: asked of the brokers now and then, for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everlog_log::Log;
use tokio::time::MissedTickBehavior;

use crate::assignment::groups::GroupTable;
use crate::control_table::ControlTable;
use crate::membership::this_node::ThisNode;

/// How often: it takes two requests for each partition.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Asks the brokers how far the journals of this node's partitions reach.
pub struct JournalLag {
    /// The log.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// What partitions count.
    pub groups: Arc<GroupTable>,
}

impl JournalLag {
    /// Looks until the node ends.
    pub async fn run(self: Arc<Self>) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.node.until_ended() => return,
                _ = looks.tick() => {}
            }
            let lag = Arc::clone(&self);
            if let Err(panicked) = tokio::task::spawn_blocking(move || lag.read()).await {
                tracing::error!(%panicked, "how far journals reach is not looked at any more");
                return;
            }
        }
    }

    /// Partitions of other nodes are theirs to look at.
    fn read(&self) {
        let wanted = |stats: &everlog_partition::Stats| stats.is_wanted.load(Ordering::Relaxed) == 1;
        for (partition, stats) in (0..).zip(&self.groups.stats).filter(|(_, stats)| wanted(stats)) {
            // Not kept open between two questions: whoever ends the node waits for it.
            let Some(log) = self.control.log().filter(|_| !self.node.is_ended()) else { return };
            match log.bounds(partition) {
                Ok(bounds) => stats.journal_end.store(bounds.end, Ordering::Relaxed),
                Err(error) => tracing::debug!(partition, %error, "how far the journal reaches is not known"),
            }
        }
    }
}
