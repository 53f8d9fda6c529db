//! How many journal records are not applied yet: the ends of journals are asked from the brokers, for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everlog_log::Log;
use tokio::time::MissedTickBehavior;

use crate::assignment::groups::GroupTable;
use crate::control_table::ControlTable;
use crate::membership::this_node::ThisNode;

/// How often the brokers are asked: it takes two requests for each partition.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Asks the brokers for the ends of the journals of this node's partitions.
pub struct JournalLag {
    /// The log.
    pub control: Arc<ControlTable>,
    /// This node.
    pub node: Arc<ThisNode>,
    /// What partitions count.
    pub groups: Arc<GroupTable>,
}

impl JournalLag {
    /// Asks until the node ends.
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
                tracing::error!(%panicked, "journal lag no longer measured");
                return;
            }
        }
    }

    /// Each node asks for its own partitions.
    fn read(&self) {
        let wanted = |stats: &everlog_partition::Stats| stats.is_wanted.load(Ordering::Relaxed) == 1;
        for (partition, stats) in (0..).zip(&self.groups.stats).filter(|(_, stats)| wanted(stats)) {
            // The log is not kept open between two questions, because the end of the node waits for it.
            let Some(log) = self.control.log().filter(|_| !self.node.is_ended()) else { return };
            match log.bounds(partition) {
                Ok(bounds) => stats.journal_end.store(bounds.end, Ordering::Relaxed),
                Err(error) => tracing::debug!(partition, %error, "journal end unknown"),
            }
        }
    }
}
