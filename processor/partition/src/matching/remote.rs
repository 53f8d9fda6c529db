//! Where the polls and the tasks of a queue meet, when nodes share the partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::model::task_types::{Offer, QueueKey, Ready, Waiting};

/// What other nodes have ready for a queue and keep until there is room for it at its home: how much at each level, and how long
/// the oldest of that waits, in ms.
pub type KeptBack = BTreeMap<u8, (usize, i64)>;

/// Knows which node brings the polls and the tasks of a queue together.
pub trait RemoteQueues: Send + Sync {
    /// True where another node does. A sticky queue meets where its normal queue does: only that one is asked for.
    fn is_far(&self, normal: &QueueKey) -> bool;

    /// Brings something there. What gets lost on the way is offered again when the nodes change.
    fn bring(&self, offer: Offer);

    /// A poll here is to get something that a node has offered. Where that gives nothing, the poll waits on.
    fn claim(&self, node: Arc<str>, ready: Ready, waiting: Waiting);

    /// A question that a node has offered reaches nobody here.
    fn lost(&self, node: Arc<str>, partition: u32, query_id: String);

    /// Asks the other nodes what they keep back. Those that do not answer soon count as if they kept nothing.
    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>);

    /// What this node has ready for queues that meet elsewhere, and keeps until there is room for it: how much of each, and since
    /// when the oldest of it, in ms.
    fn own_kept_back(&self) -> Vec<(QueueKey, usize, i64)>;

    /// Nothing of a namespace is to be brought any more.
    fn forget_namespace(&self, namespace_id: &str);
}
