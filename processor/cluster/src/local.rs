//! What a cluster has of the node that it is in, and what the node has of the cluster where a partition is not here.

use std::ops::Range;
use std::sync::Arc;

use everlog_partition::{Dispatcher, Error, Event, Stats};
use everlog_temporal::Sealer;

/// What a cluster has of the node that it is in.
pub struct LocalNode {
    /// Takes partitions over and lets go of them.
    pub partitions: Arc<dyn LocalPartitions>,
    /// What each of them counts, by partition.
    pub stats: Vec<Arc<Stats>>,
    /// Where ready tasks and polls meet.
    pub dispatcher: Arc<Dispatcher>,
    /// The way to the partitions.
    pub send: everlog_partition::Send,
    /// Makes and reads task tokens.
    pub sealer: Sealer,
    /// Hears of the rows of `control` that are not about nodes.
    pub learn: Box<RowListener>,
}

/// The partitions of this node.
pub trait LocalPartitions: Send + Sync {
    /// Takes partitions over; returns when each is at work, rests because of something that may pass, or is closed by what is in
    /// the log: those, and why.
    ///
    /// # Errors
    /// Why one of them cannot be recovered by this node. The others come all the same.
    fn take(&self, partitions: Vec<u32>) -> Result<Vec<(u32, Error)>, Error>;

    /// Brings the rows of partitions that others have, so that taking them over has little left to do. None of them may be here.
    /// Blocks.
    ///
    /// # Errors
    /// Why those of one of them could not be brought; those behind it were not tried.
    fn prepare(&self, partitions: Range<u32>) -> Result<(), Error>;

    /// True for an error that goes by itself: brokers that do not answer.
    fn may_pass(&self, error: &Error) -> bool;

    /// Closes rows of partitions that were brought, and are not taken over for now. Blocks.
    fn forget(&self, partitions: Range<u32>);

    /// Lets go of partitions; returns when nothing of them is here any more. What they have taken is answered and
    /// committed first, as far as that does not take long.
    fn leave(&self, partitions: Range<u32>);

    /// What is for partitions that are not here goes there. Said once.
    fn send_elsewhere(&self, elsewhere: Arc<dyn RemotePartitions>);
}

/// What reaches a partition that is not here.
pub trait RemotePartitions: Send + Sync {
    /// Brings an event to whoever has the partition, or tells that nobody here does. A poll that was to get something of it waits on; that
    /// something reached nobody is told to who serves it, this node or another, once somebody does.
    fn bring(&self, partition: u32, event: Event);

    /// The node that is to have a partition now, if that is another one. Asks the brokers.
    ///
    /// # Errors
    /// They do not answer.
    fn moved_to(&self, partition: u32) -> Result<Option<String>, everlog_log::Error>;

    /// The highest level of decisions that all nodes know.
    fn level(&self) -> u32;
}

/// Is told the key and the value of a row of `control`.
pub type RowListener = dyn Fn(&[u8], &[u8]) + Send + Sync;

/// Is told which partition this node cannot take over, and why.
pub type TakeoverFailed = dyn Fn(u32, &Error) + Send + Sync;
