//! The border between a cluster and its node: what the cluster uses of the node, and what the node's partitions use
//! of the cluster.

use std::ops::Range;
use std::sync::Arc;

use everlog_partition::{Dispatcher, Error, InboxMessage, Stats};
use everlog_temporal::TokenSigner;

/// What a cluster uses of its node.
pub struct LocalNode {
    /// Takes partitions over and lets go of them.
    pub partitions: Arc<dyn LocalPartitions>,
    /// What each of them counts, by partition.
    pub stats: Vec<Arc<Stats>>,
    /// Where ready tasks and polls meet.
    pub dispatcher: Arc<Dispatcher>,
    /// Sends events to partitions.
    pub send: everlog_partition::PartitionSender,
    /// Makes and reads task tokens.
    pub token_signer: TokenSigner,
    /// Called for rows of `control` that are not about nodes.
    pub learn: Box<RowListener>,
}

/// The partitions of this node.
pub trait LocalPartitions: Send + Sync {
    /// Takes partitions over. Returns when each serves, waits for something that may go away by itself, or is closed
    /// by what is in the log. Returns the closed ones, each with the reason.
    ///
    /// # Errors
    /// Why one of them cannot be recovered by this node. The others are taken over all the same.
    fn take(&self, partitions: Vec<u32>) -> Result<Vec<(u32, Error)>, Error>;

    /// Restores the rows of partitions that other nodes own, so that a take-over has little left to do. Blocks.
    ///
    /// # Errors
    /// Why the rows of one of them could not be restored. Those behind it were not tried.
    fn prepare(&self, partitions: Range<u32>) -> Result<(), Error>;

    /// True for an error that goes away by itself: brokers that do not answer.
    fn may_pass(&self, error: &Error) -> bool;

    /// Closes rows that were restored and are not needed for now. Blocks.
    fn forget(&self, partitions: Range<u32>);

    /// Releases partitions. Returns when they are gone from this node. Their requests are replied to and committed
    /// first, as far as that is quick.
    fn leave(&self, partitions: Range<u32>);

    /// Events for partitions that are not here go to `elsewhere`. Called once.
    fn send_elsewhere(&self, elsewhere: Arc<dyn RemotePartitions>);
}

/// Takes events for partitions that are not at this node.
pub trait RemotePartitions: Send + Sync {
    /// Forwards an event to the owner of the partition, or refuses it. A poll that wanted a task waits on. A lost
    /// delivery is forwarded to the next owner, once there is one.
    fn bring(&self, partition: u32, event: InboxMessage);

    /// The node that the partition is assigned to now, if it is another one. Asks the brokers.
    ///
    /// # Errors
    /// They do not answer.
    fn moved_to(&self, partition: u32) -> Result<Option<String>, everlog_log::Error>;

    /// The level of decisions of a partition that nobody has owned yet: the highest that all nodes know.
    fn level_of_new(&self) -> u32;

    /// The level of decisions that an operator has raised the log to, as far as this release knows it; 0: none has.
    fn raised_level(&self) -> u32;
}

/// Called with the key and the value of a row of `control`.
pub type RowListener = dyn Fn(&[u8], &[u8]) + Send + Sync;

/// Called with a partition that this node cannot take over, and the reason.
pub type TakeoverFailed = dyn Fn(u32, &Error) + Send + Sync;
