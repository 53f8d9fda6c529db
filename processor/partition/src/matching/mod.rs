//! Task queues: ready tasks meet waiting polls, on this node or on the node that is responsible for the queue.

pub(crate) mod backlog;
pub(crate) mod claims;
pub(crate) mod credit_window;
pub(crate) mod credit_windows;
pub(crate) mod dispatcher;
pub(crate) mod idle_queues;
pub(crate) mod queue_rates;
pub(crate) mod remote;
pub(crate) mod server_queues;
pub(crate) mod status;
pub(crate) mod sticky;
pub(crate) mod sweep;
pub(crate) mod throughput;
