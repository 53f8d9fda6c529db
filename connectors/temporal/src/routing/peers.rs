//! The other nodes, as the gateway reaches them.

use std::sync::Arc;

use bytes::Bytes;
use everlog_partition::QueueKey;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::Later;

/// Who answers for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// This node.
    Here,
    /// The node of this name.
    There(Arc<str>),
    /// Nobody at the moment.
    Nowhere,
}

/// Why another node has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The call has not reached it.
    Unsent,
    /// It may have reached it.
    Unanswered,
}

/// The other nodes.
pub trait Peers: Send + Sync {
    /// Who owns a partition.
    fn owner(&self, partition: u32) -> Location;

    /// Who brings the polls and the tasks of a queue together; never nobody.
    fn home(&self, queue: &QueueKey) -> Location;

    /// True where there is no other node and this one serves everything: every place is [`Location::Here`].
    fn is_alone(&self) -> bool;

    /// All other nodes, by name.
    fn others(&self) -> Vec<Arc<str>>;

    /// Changes whenever one of these may answer otherwise.
    fn changes(&self) -> watch::Receiver<u64>;

    /// A poll that was brought to a node has got nothing that is known of: whatever it has claimed there goes back.
    fn poll_lost(&self, node: &str, poll_id: String);

    /// Brings a call to a node; completes with the beginning of its answer.
    fn call(&self, node: Arc<str>, request: Request<Bytes>) -> Later<Result<Response<Body>, Broken>>;
}

/// The id of a poll that is brought to another node: by it whoever brings the poll says that it has got nothing.
pub const POLL_HEADER: &str = "everlog-poll";

/// Marks a call that another node has brought: it is brought no further.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded;
