//! What the gateway needs from a cluster: who owns what, and how a call gets to another node.

use std::sync::Arc;

use bytes::Bytes;
use everlog_partition::QueueKey;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::CallFuture;

/// Where a partition or task queue is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this node.
    Here,
    /// On the node of this name.
    There(Arc<str>),
    /// On no node at the moment.
    Nowhere,
}

/// Why another node did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The call was not sent.
    Unsent,
    /// The call was sent, and may have taken effect.
    Unanswered,
}

/// The cluster. Implemented by `everlog-cluster`, and by tests.
pub trait Peers: Send + Sync {
    /// The node that owns a partition.
    fn owner(&self, partition: u32) -> Location;

    /// The matching node of a task queue, where its polls and tasks meet. It is never [`Location::Nowhere`].
    fn home(&self, queue: &QueueKey) -> Location;

    /// The address at which a node takes calls of clients; none if it is unknown.
    fn calls_address(&self, node: &str) -> Option<String>;

    /// True if there is no other node: every location is [`Location::Here`].
    fn is_alone(&self) -> bool;

    /// All other nodes, by name.
    fn others(&self) -> Vec<Arc<str>>;

    /// Changes whenever a location may have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// No response to a forwarded poll has arrived: a task that the poll claimed there is requeued.
    fn poll_lost(&self, node: &str, poll_id: String);

    /// Sends a call to a node; completes with the head of its response.
    fn call(&self, node: Arc<str>, request: Request<Bytes>) -> CallFuture<Result<Response<Body>, Broken>>;
}

/// The header with the id of a forwarded poll. [`Peers::poll_lost`] names it.
pub const POLL_HEADER: &str = "everlog-poll";

/// Marks a forwarded call among its extensions: it is not forwarded once more.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded;
