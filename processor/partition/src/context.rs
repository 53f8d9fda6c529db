//! What a partition is, by what limits it goes, what it counts, and how it reaches other partitions.
//!
//! Fixed for as long as the partition lives; its components borrow it. It has no state of the partition.

use std::sync::Arc;

use everlog_log::Log;

use crate::config::Config;
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::keys::Address;
use crate::stats::Stats;

/// What every component of a partition may know.
pub(crate) struct PartitionContext {
    pub(crate) id: u32,
    /// Count of partitions.
    pub(crate) partitions: u32,
    /// The random id that was made with the topics.
    pub(crate) incarnation: [u8; 16],
    pub(crate) config: Config,
    pub(crate) send: PartitionSender,
    pub(crate) stats: Arc<Stats>,
}

impl PartitionContext {
    /// The context of a partition of this log.
    pub(crate) fn new<L: Log + ?Sized>(
        id: u32,
        log: &L,
        config: Config,
        send: PartitionSender,
        stats: Arc<Stats>,
    ) -> Self {
        let (partitions, incarnation) = (log.partitions(), log.incarnation());
        Self { id, partitions, incarnation, config, send, stats }
    }

    /// Sends a message to whoever owns a partition in this process; false where nobody does.
    pub(crate) fn send(&self, to: u32, message: InboxMessage) -> bool {
        (self.send)(to, message)
    }

    /// Whether a Workflow Id belongs to this partition.
    pub(crate) fn owns(&self, address: &Address) -> bool {
        address.partition(self.partitions) == self.id
    }

    /// The partition's buckets.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = u16> + use<> {
        everlog_log::buckets_of(self.id, self.partitions).filter_map(|bucket| u16::try_from(bucket).ok())
    }

    /// Where the rows stand that belong to no run.
    pub(crate) fn first_bucket(&self) -> u16 {
        self.buckets().next().unwrap_or_default()
    }
}
