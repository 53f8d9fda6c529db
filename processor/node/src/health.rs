//! Whether the node is alive and ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use everlog_log::embedded::Embedded;
use everlog_partition::Stats;

/// What readiness follows from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The node is told to stop.
    pub stopping: bool,
    /// Why the log has ended, if it has.
    pub log_failure: Option<String>,
    /// Nothing new is taken for want of space.
    pub disk_full: bool,
    /// How many partitions there are.
    pub partitions: usize,
    /// How many of them serve.
    pub serving: usize,
}

impl Signs {
    /// Why the node is not ready; empty where it is.
    pub fn unready(&self) -> Vec<String> {
        let Self { stopping, log_failure, disk_full, partitions, serving } = self;
        let mut reasons = Vec::new();
        if *stopping {
            reasons.push("the node is stopping".to_owned());
        }
        if let Some(failure) = log_failure {
            reasons.push(format!("the log has ended: {failure}"));
        }
        if *disk_full {
            reasons.push("the disk is full".to_owned());
        }
        if serving < partitions {
            reasons.push(format!("{serving} of {partitions} partitions serve"));
        }
        reasons
    }

    /// Why the node should be started anew; none where it need not. A full disk or a long recovery is no reason.
    pub fn dead(&self) -> Option<String> {
        self.log_failure.as_ref().map(|failure| format!("the log has ended: {failure}"))
    }
}

/// Where the signs come from. Knows more and more while the node starts; keeps nothing alive.
pub struct Health {
    partitions: usize,
    stopping: AtomicBool,
    log: OnceLock<Weak<Embedded>>,
    stats: OnceLock<Vec<Arc<Stats>>>,
}

impl Health {
    /// Of a node that is about to start.
    pub fn new(partitions: u32) -> Arc<Self> {
        Arc::new(Self {
            partitions: partitions as usize,
            stopping: AtomicBool::new(false),
            log: OnceLock::new(),
            stats: OnceLock::new(),
        })
    }

    /// The log is open.
    pub fn log_is_open(&self, log: &Arc<Embedded>) {
        // Set once, by the only thread that starts the node.
        let _ = self.log.set(Arc::downgrade(log));
    }

    /// The partitions are there; whether they serve, they say themselves.
    pub fn partitions_are_there(&self, stats: Vec<Arc<Stats>>) {
        // As above.
        let _ = self.stats.set(stats);
    }

    /// From now on the node is not ready.
    pub fn is_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// As it stands now.
    pub fn signs(&self) -> Signs {
        let log = self.log.get().and_then(Weak::upgrade);
        let stats = self.stats.get().map_or(&[][..], Vec::as_slice);
        Signs {
            stopping: self.stopping.load(Ordering::Relaxed),
            log_failure: log.as_ref().and_then(|log| log.failure()).map(|failure| failure.to_string()),
            disk_full: log.as_ref().is_some_and(|log| log.is_full()),
            partitions: self.partitions,
            serving: stats.iter().filter(|stats| stats.serving.load(Ordering::Relaxed) != 0).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving() -> Signs {
        Signs { partitions: 8, serving: 8, ..Signs::default() }
    }

    #[test]
    fn a_node_is_ready_when_all_partitions_serve() {
        assert_eq!(serving().unready(), [] as [&str; 0]);
        assert_eq!(Signs { serving: 7, ..serving() }.unready(), ["7 of 8 partitions serve"]);
    }

    #[test]
    fn a_full_disk_ends_readiness_but_not_life() {
        let full = Signs { disk_full: true, ..serving() };
        assert_eq!(full.unready(), ["the disk is full"]);
        assert_eq!(full.dead(), None);
    }

    #[test]
    fn a_failed_log_ends_both() {
        let failed = Signs { log_failure: Some("sync: input/output error".into()), ..serving() };
        assert_eq!(failed.unready(), ["the log has ended: sync: input/output error"]);
        assert_eq!(failed.dead().as_deref(), Some("the log has ended: sync: input/output error"));
    }

    #[test]
    fn a_node_that_starts_or_stops_is_alive_and_not_ready() {
        let health = Health::new(8);
        assert_eq!(health.signs().unready(), ["0 of 8 partitions serve"]);
        health.is_stopping();
        assert_eq!(health.signs().unready(), ["the node is stopping", "0 of 8 partitions serve"]);
        assert_eq!(health.signs().dead(), None);
    }
}
