//! How far journals reach beyond what is applied here: asked of the brokers now and then, for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everlog_log::Log;
use tokio::time::MissedTickBehavior;

use crate::Cluster;

/// How often: it takes two requests for each partition.
const LOOK_EVERY: Duration = Duration::from_secs(10);

impl Cluster {
    /// Looks until the node ends.
    pub async fn watch_lag(self: Arc<Self>) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut over = self.over();
        loop {
            tokio::select! {
                () = async { drop(over.wait_for(|over| *over).await) } => return,
                _ = looks.tick() => {}
            }
            let cluster = Arc::clone(&self);
            if let Err(panicked) = tokio::task::spawn_blocking(move || cluster.read_lag()).await {
                tracing::error!(%panicked, "how far journals reach is not looked at any more");
                return;
            }
        }
    }

    /// Partitions of other nodes are theirs to look at.
    fn read_lag(&self) {
        let wanted = |stats: &everlog_partition::Stats| stats.is_wanted.load(Ordering::Relaxed) == 1;
        for (partition, stats) in (0..).zip(&self.stats).filter(|(_, stats)| wanted(stats)) {
            // Not kept open between two questions: whoever ends the node waits for it.
            let Some(log) = self.log.upgrade().filter(|_| !*self.over.borrow()) else { return };
            match log.bounds(partition) {
                Ok(bounds) => stats.journal_end.store(bounds.end, Ordering::Relaxed),
                Err(error) => tracing::debug!(partition, %error, "how far the journal reaches is not known"),
            }
        }
    }
}
