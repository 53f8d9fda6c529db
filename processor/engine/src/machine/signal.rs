//! A signal: a message to a run, kept in order of arrival and never lost once acknowledged.
//!
//! open     --signal-->                       open, with the event, + workflow task, unless its first one is delayed
//! open     --signal, it has had too many-->  open: refused
//! closing  --signal-->                       closing: whoever is no workflow has to come again

use bytes::Bytes;

use crate::api_types::Execution;
use crate::draft::{Change, Draft, Extras};
use crate::machine::workflow_task;
use crate::outcome::Rejection;
use crate::request::Sender;

/// Order: a signal for an open run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Signal {
    /// The signal's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub input: Option<Bytes>,
    /// Who sends it.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub header: Option<Bytes>,
    /// The same id is taken once per run; empty = no deduplication.
    #[prost(string, tag = "5")]
    pub request_id: String,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub links: Vec<Bytes>,
}

/// Event: a signal came.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Signaled {
    /// The signal's name.
    #[prost(string, tag = "1")]
    pub signal_name: String,
    /// Its arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub input: Option<Bytes>,
    /// Who sent it.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub header: Option<Bytes>,
    /// The workflow that sent it, if one did.
    #[prost(message, optional, tag = "6")]
    pub external_workflow_execution: Option<Execution>,
    /// The id of the request.
    #[prost(string, tag = "7")]
    pub request_id: String,
}

/// Records the signal. It does not wake a run whose first task is still held back.
pub(crate) fn signal(draft: &mut Draft<'_>, order: &Signal) -> Result<(), Rejection> {
    signal_from(draft, order, None)
}

/// [`signal`] that another workflow may have sent. A message cannot be asked to come again, so it is never held off.
pub(crate) fn signal_from(
    draft: &mut Draft<'_>,
    order: &Signal,
    sender: Option<&Sender>,
) -> Result<(), Rejection> {
    if draft.run.head.signals >= draft.settings.signals_max {
        return Err(Rejection::InvalidArgument("exceeded workflow execution limit for signal events".into()));
    }
    if sender.is_none() && draft.run.head.close_attempted && draft.run.started_task().is_some() {
        let message = "workflow operation can not be applied because workflow is closing";
        return Err(Rejection::Busy(message.into()));
    }
    draft.change(Change::Signals(draft.run.head.signals.saturating_add(1)));
    let extras = Extras { links: order.links.clone(), ..Extras::default() };
    let external_workflow_execution = sender.map(Sender::execution);
    draft.record_with(Signaled { external_workflow_execution, ..signaled(order) }.into(), extras);
    if sender.is_some() {
        // Temporal's server counts twice what another workflow sends: once more when it forgets the request's id.
        draft.change(Change::Transition);
    }
    workflow_task::settle(draft);
    Ok(())
}

pub(crate) fn signaled(order: &Signal) -> Signaled {
    Signaled {
        signal_name: order.name.clone(),
        input: order.input.clone(),
        identity: order.identity.clone(),
        header: order.header.clone(),
        external_workflow_execution: None,
        request_id: order.request_id.clone(),
    }
}
