//! A request to cancel a run: recorded once; what to do about it is the workflow's decision.
//!
//! open       --request-->  requested + workflow task; a delay of the run's first task is over
//! requested  --request-->  requested: nothing is written

use crate::api_types::Execution;
use crate::draft::{Change, Draft};
use crate::machine::workflow_task;
use crate::request::Sender;
use crate::run::Run;

/// Order: ask a run to cancel itself.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Request {
    /// Why.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Who asks.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// If set, the run must belong to the chain that began with this run.
    #[prost(string, tag = "3")]
    pub first_run_id: String,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub links: Vec<bytes::Bytes>,
}

/// Event: somebody asked for the cancellation.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Requested {
    /// Why.
    #[prost(string, tag = "1")]
    pub cause: String,
    /// The event in its history that asked, if a workflow did.
    #[prost(int64, tag = "2")]
    pub external_initiated_event_id: i64,
    /// The workflow that asked, if one did.
    #[prost(message, optional, tag = "3")]
    pub external_workflow_execution: Option<Execution>,
    /// Who asked.
    #[prost(string, tag = "4")]
    pub identity: String,
}

/// Records the request, once; it also ends a start delay, and the rest of a task.
pub(crate) fn request(draft: &mut Draft<'_>, order: &Request, sender: Option<&Sender>) {
    if draft.run.head.cancel_requested {
        return;
    }
    let requested = Requested {
        cause: order.reason.clone(),
        external_initiated_event_id: sender.map_or(0, |sender| sender.initiated_event_id),
        external_workflow_execution: sender.map(Sender::execution),
        identity: order.identity.clone(),
    };
    let extras = crate::draft::Extras { links: order.links.clone(), ..Default::default() };
    draft.record_with(requested.into(), extras);
    if draft.run.head.backoff_until_ms > 0 {
        draft.change(Change::BackoffOver);
    }
    workflow_task::end_rest(draft);
    workflow_task::settle(draft);
}

pub(crate) fn apply_requested(run: &mut Run) {
    run.head.cancel_requested = true;
}
