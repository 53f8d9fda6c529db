//! A journal record as the engine sees it: an order for one Workflow Id.

use crate::machine::{attempt, cancel, close, completion, signal, start, task, wake};

/// An order for one Workflow Id.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Input {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The run; empty = the current one.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// What is ordered.
    #[prost(oneof = "Order", tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25")]
    pub order: Option<Order>,
}

/// What is ordered, by kind.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(missing_docs)]
#[expect(clippy::large_enum_variant, reason = "one is decoded per record and lives as long as its decision")]
pub enum Order {
    #[prost(message, tag = "10")]
    Start(start::Begin),
    #[prost(message, tag = "11")]
    Signal(signal::Signal),
    #[prost(message, tag = "12")]
    Cancel(cancel::Request),
    #[prost(message, tag = "13")]
    Terminate(close::Terminate),
    #[prost(message, tag = "14")]
    ClaimTask(task::Claim),
    #[prost(message, tag = "15")]
    CompleteTask(completion::Complete),
    #[prost(message, tag = "16")]
    FailTask(task::Fail),
    #[prost(message, tag = "17")]
    ReleaseTask(task::Release),
    #[prost(message, tag = "18")]
    ClaimActivity(attempt::Claim),
    #[prost(message, tag = "19")]
    CompleteActivity(attempt::Complete),
    #[prost(message, tag = "20")]
    FailActivity(attempt::Fail),
    #[prost(message, tag = "21")]
    CancelActivity(attempt::Cancel),
    #[prost(message, tag = "22")]
    HeartbeatActivity(attempt::Heartbeat),
    #[prost(message, tag = "23")]
    ReleaseActivity(attempt::Release),
    #[prost(message, tag = "24")]
    Wake(wake::Wake),
    #[prost(message, tag = "25")]
    ResetSticky(ResetSticky),
}

/// Order: forget the worker that has the run in its cache.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ResetSticky {}

impl Input {
    /// The signal's request id, if it must be looked up among those seen before.
    pub fn signal_request_id(&self) -> Option<&str> {
        match &self.order {
            Some(Order::Signal(signal)) => Some(signal.request_id.as_str()),
            Some(Order::Start(begin)) => begin.signal.as_ref().map(|signal| signal.request_id.as_str()),
            _without_signal => None,
        }
        .filter(|request_id| !request_id.is_empty())
    }
}
