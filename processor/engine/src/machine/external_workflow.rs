//! Signals to other workflows, and requests to cancel them: sent as messages, answered by messages.
//!
//! (none)     --command, message Signal or Cancel-->  initiated
//! initiated  --message Answered-->                   (none)

use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{Execution, ExternalFailedCause as FailedCause, TaskFailedCause as Cause};
use crate::command::Command;
use crate::draft::{Draft, Extras, bytes};
use crate::event::{Attributes, HistoryEvent};
use crate::machine::close::within_size;
use crate::machine::workflow_task_completed::{Complete, OtherNamespace, TaskFailure, extras};
use crate::machine::{cancel, command_validation, signal, workflow_task};
use crate::outcome::{Rejection, Reply};
use crate::request::{Request, RequestRecord, Sender};
use crate::run::Run;

/// Who signals and cancels for a workflow.
const IDENTITY: &str = "history-service";

/// Command: signal another workflow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SignalOther {
    /// The name of its namespace; empty = the sender's.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// The workflow; its current run where none is named.
    #[prost(message, optional, tag = "2")]
    pub execution: Option<Execution>,
    /// The signal's name.
    #[prost(string, tag = "3")]
    pub signal_name: String,
    /// Its arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub input: Option<Bytes>,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "5")]
    pub control: String,
    /// Only a child of this run is meant.
    #[prost(bool, tag = "6")]
    pub child_workflow_only: bool,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub header: Option<Bytes>,
}

/// Command: ask another workflow to cancel itself.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelOther {
    /// The name of its namespace; empty = the sender's.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// Its run; the current one where empty.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "4")]
    pub control: String,
    /// Only a child of this run is meant.
    #[prost(bool, tag = "5")]
    pub child_workflow_only: bool,
    /// Why.
    #[prost(string, tag = "6")]
    pub reason: String,
}

/// Event: a signal is on its way to another workflow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SignalInitiated {
    /// The task that asked for it.
    #[prost(int64, tag = "1")]
    pub workflow_task_completed_event_id: i64,
    /// The name of the other's namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "3")]
    pub workflow_execution: Option<Execution>,
    /// The signal's name.
    #[prost(string, tag = "4")]
    pub signal_name: String,
    /// Its arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub input: Option<Bytes>,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "6")]
    pub control: String,
    /// Only a child of this run is meant.
    #[prost(bool, tag = "7")]
    pub child_workflow_only: bool,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub header: Option<Bytes>,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "9")]
    pub namespace_id: String,
}

/// Event: the signal did not reach the other.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SignalFailed {
    /// Why.
    #[prost(enumeration = "FailedCause", tag = "1")]
    pub cause: i32,
    /// The name of the other's namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "4")]
    pub workflow_execution: Option<Execution>,
    /// Its Initiated event.
    #[prost(int64, tag = "5")]
    pub initiated_event_id: i64,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "6")]
    pub control: String,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "7")]
    pub namespace_id: String,
}

/// Event: the signal has reached the other.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Signaled {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// The name of the other's namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "3")]
    pub workflow_execution: Option<Execution>,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "4")]
    pub control: String,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "5")]
    pub namespace_id: String,
}

/// Event: a request to cancel is on its way to another workflow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelInitiated {
    /// The task that asked for it.
    #[prost(int64, tag = "1")]
    pub workflow_task_completed_event_id: i64,
    /// The name of the other's namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "3")]
    pub workflow_execution: Option<Execution>,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "4")]
    pub control: String,
    /// Only a child of this run is meant.
    #[prost(bool, tag = "5")]
    pub child_workflow_only: bool,
    /// Why.
    #[prost(string, tag = "6")]
    pub reason: String,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "7")]
    pub namespace_id: String,
}

/// Event: the request did not reach the other.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelFailed {
    /// Why.
    #[prost(enumeration = "FailedCause", tag = "1")]
    pub cause: i32,
    /// The name of the other's namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "4")]
    pub workflow_execution: Option<Execution>,
    /// Its Initiated event.
    #[prost(int64, tag = "5")]
    pub initiated_event_id: i64,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "6")]
    pub control: String,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "7")]
    pub namespace_id: String,
}

/// Event: the request has reached the other.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelRequested {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// The name of the other's namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The other.
    #[prost(message, optional, tag = "3")]
    pub workflow_execution: Option<Execution>,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "4")]
    pub namespace_id: String,
}

/// Message to the sender: what became of its signal or request.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Answered {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// Why it did not reach the other; unspecified where it did.
    #[prost(enumeration = "FailedCause", tag = "2")]
    pub cause: i32,
}

/// A signal or a request on its way.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct External {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// It asks to cancel; else it is a signal.
    #[prost(bool, tag = "2")]
    pub cancels: bool,
    /// The name of the other's namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The UUID of the other's namespace.
    #[prost(string, tag = "4")]
    pub namespace_id: String,
    /// The other.
    #[prost(message, optional, tag = "5")]
    pub execution: Option<Execution>,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "6")]
    pub control: String,
    /// The answer that came when its sender had closed.
    #[prost(message, optional, tag = "7")]
    pub late: Option<Answered>,
}

/// Takes the command, and sends the signal on its way.
pub(crate) fn send_signal(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &SignalOther,
    completed: i64,
    from: &Complete,
) -> Result<(), TaskFailure> {
    let (cause, on) = (Cause::BadSignalWorkflowExecutionAttributes, "SignalExternalWorkflowExecutionCommand");
    let bad = |reason: String| Err(TaskFailure::new(cause, &reason));
    let Some(execution) = &order.execution else { return bad(format!("Execution is not set on {on}.")) };
    let Execution { workflow_id: id, run_id } = execution;
    let of = if id.is_empty() { String::new() } else { format!("{} ", named(draft, id)) };
    let whose = format!("{of}Namespace={} RunId={run_id}", order.namespace);
    check(draft, execution, on)
        .or_else(|reason| bad(format!("{reason} {whose} SignalName={}", order.signal_name)))?;
    let OtherNamespace { name: namespace, id: namespace_id, .. } =
        from.target(draft, &order.namespace).map_err(|reason| TaskFailure::new(cause, &reason))?;
    if order.signal_name.is_empty() {
        return bad(format!("SignalName is not set on {on}. {whose}"));
    }
    if order.signal_name.len() as i64 > draft.settings.id_bytes_max {
        return bad(format!("SignalName on {on} exceeds length limit."));
    }
    let what = "SignalExternalWorkflowExecutionCommandAttributes.Input";
    within_size(draft, cause, order.input.as_ref(), what)?;
    under_way(draft, false, "signals to external workflows", Cause::PendingSignalsLimitExceeded)?;
    let initiated = SignalInitiated {
        workflow_task_completed_event_id: completed,
        namespace,
        workflow_execution: Some(execution.clone()),
        signal_name: order.signal_name.clone(),
        input: order.input.clone(),
        control: order.control.clone(),
        child_workflow_only: order.child_workflow_only,
        header: order.header.clone(),
        namespace_id: namespace_id.clone(),
    };
    let event_id = draft.emit_at(draft.now_ms(), initiated.into(), extras(command));
    let signal = signal::Signal {
        name: order.signal_name.clone(),
        input: order.input.clone(),
        identity: IDENTITY.into(),
        header: order.header.clone(),
        request_id: String::new(),
        links: Vec::new(),
    };
    message(draft, event_id, namespace_id, execution, order.child_workflow_only, Request::Signal(signal));
    Ok(())
}

/// Takes the command, and sends the request on its way.
pub(crate) fn send_cancel(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &CancelOther,
    completed: i64,
    from: &Complete,
) -> Result<(), TaskFailure> {
    let cause = Cause::BadRequestCancelExternalWorkflowExecutionAttributes;
    let on = "RequestCancelExternalWorkflowExecutionCommand";
    let execution = Execution { workflow_id: order.workflow_id.clone(), run_id: order.run_id.clone() };
    let bad = |reason: String| TaskFailure::new(cause, &reason);
    let Execution { workflow_id: id, run_id } = &execution;
    let whose = match id.as_str() {
        "" => format!("Namespace={} RunId={run_id}", order.namespace),
        id => format!("{} RunId={run_id} Namespace={}", named(draft, id), order.namespace),
    };
    check(draft, &execution, on).map_err(|reason| bad(format!("{reason} {whose}")))?;
    let OtherNamespace { name: namespace, id: namespace_id, .. } =
        from.target(draft, &order.namespace).map_err(bad)?;
    let is_new = |child: &&Arc<crate::machine::child::Child>| {
        child.initiated_event_id > completed
            && (&child.workflow_id, &child.namespace_id) == (&order.workflow_id, &namespace_id)
    };
    if draft.run.children.values().any(|child| is_new(&child)) {
        let reason = "Start and RequestCancel for child workflow is not allowed in same workflow task.";
        return Err(bad(format!("{reason} {whose}")));
    }
    under_way(
        draft,
        true,
        "requests to cancel external workflows",
        Cause::PendingRequestCancelLimitExceeded,
    )?;
    let initiated = CancelInitiated {
        workflow_task_completed_event_id: completed,
        namespace,
        workflow_execution: Some(execution.clone()),
        control: order.control.clone(),
        child_workflow_only: order.child_workflow_only,
        reason: order.reason.clone(),
        namespace_id: namespace_id.clone(),
    };
    let event_id = draft.emit_at(draft.now_ms(), initiated.into(), extras(command));
    let request = cancel::Request {
        reason: order.reason.clone(),
        identity: IDENTITY.into(),
        first_run_id: String::new(),
        links: Vec::new(),
    };
    message(draft, event_id, namespace_id, &execution, order.child_workflow_only, Request::Cancel(request));
    Ok(())
}

/// A Workflow Id in the words of a refusal.
fn named(draft: &Draft<'_>, id: &str) -> String {
    let excess = command_validation::excess(draft, id).map(|excess| format!(" {excess}"));
    format!("WorkflowId={id}{}", excess.unwrap_or_default())
}

fn check(draft: &Draft<'_>, execution: &Execution, on: &str) -> Result<(), String> {
    if execution.workflow_id.is_empty() {
        return Err(format!("WorkflowId is not set on {on}."));
    }
    if execution.workflow_id.len() as i64 > draft.settings.id_bytes_max {
        return Err(format!("WorkflowId on {on} exceeds length limit."));
    }
    if !execution.run_id.is_empty() && uuid::Uuid::parse_str(&execution.run_id).is_err() {
        return Err(format!("Invalid RunId set on {on}."));
    }
    Ok(())
}

fn under_way(draft: &Draft<'_>, cancels: bool, what: &str, cause: Cause) -> Result<(), TaskFailure> {
    let count = draft.run.externals.values().filter(|external| external.cancels == cancels).count();
    let limit =
        if cancels { draft.settings.pending_cancels_max() } else { draft.settings.pending_signals_max() };
    if (count as i64) < limit {
        return Ok(());
    }
    let reason =
        format!("the number of pending {what}, {count}, has reached the per-workflow limit of {limit}");
    Err(TaskFailure::new(cause, &reason))
}

fn message(
    draft: &mut Draft<'_>,
    initiated_event_id: i64,
    namespace_id: String,
    to: &Execution,
    child_only: bool,
    order: Request,
) {
    let sender = Sender { child_only, ..Sender::of(&draft.run, initiated_event_id) };
    draft.send(RequestRecord {
        namespace_id,
        workflow_id: to.workflow_id.clone(),
        run_id: to.run_id.clone(),
        sender: Some(sender),
        request: Some(order),
    });
}

/// What a sender hears of its signal or request.
pub(crate) fn answer(sender: &Sender, cancels: bool, reply: &Reply) -> RequestRecord {
    let cause = match reply {
        Reply::Rejected(Rejection::InvalidArgument(_)) if !cancels => FailedCause::SignalCountLimitExceeded,
        Reply::Rejected(Rejection::NamespaceDeleted(_)) => FailedCause::NamespaceNotFound,
        Reply::Rejected(_) => FailedCause::NotFound,
        _reached => FailedCause::Unspecified,
    };
    let initiated_event_id = sender.initiated_event_id;
    sender.answer(Request::ExternalAnswered(Answered { initiated_event_id, cause: cause.into() }))
}

/// The other has answered.
pub(crate) fn answered(draft: &mut Draft<'_>, order: &Answered) {
    let Some(external) = draft.run.externals.get(&order.initiated_event_id).cloned() else { return };
    let External { initiated_event_id, cancels, namespace, namespace_id, execution, control, late: _ } =
        external.as_ref().clone();
    let workflow_execution = execution;
    let reached = order.cause == i32::from(FailedCause::Unspecified);
    let cause = order.cause;
    let attributes = match (cancels, reached) {
        (false, true) => {
            Signaled { initiated_event_id, namespace, workflow_execution, control, namespace_id }.into()
        }
        (false, false) => {
            let failed = SignalFailed {
                cause,
                namespace,
                workflow_execution,
                initiated_event_id,
                control,
                namespace_id,
            };
            failed.into()
        }
        (true, true) => {
            CancelRequested { initiated_event_id, namespace, workflow_execution, namespace_id }.into()
        }
        (true, false) => {
            let failed = CancelFailed {
                cause,
                namespace,
                workflow_execution,
                initiated_event_id,
                control,
                namespace_id,
            };
            failed.into()
        }
    };
    draft.record_with(attributes, Extras::default());
    workflow_task::settle(draft);
}

pub(crate) fn apply_signal_initiated(run: &mut Run, event: &HistoryEvent, initiated: &SignalInitiated) {
    apply_initiated(
        run,
        External {
            initiated_event_id: event.event_id,
            cancels: false,
            namespace: initiated.namespace.clone(),
            namespace_id: initiated.namespace_id.clone(),
            execution: initiated.workflow_execution.clone(),
            control: initiated.control.clone(),
            late: None,
        },
    );
}

pub(crate) fn apply_cancel_initiated(run: &mut Run, event: &HistoryEvent, initiated: &CancelInitiated) {
    apply_initiated(
        run,
        External {
            initiated_event_id: event.event_id,
            cancels: true,
            namespace: initiated.namespace.clone(),
            namespace_id: initiated.namespace_id.clone(),
            execution: initiated.workflow_execution.clone(),
            control: initiated.control.clone(),
            late: None,
        },
    );
}

fn apply_initiated(run: &mut Run, external: External) {
    run.head.state_bytes += bytes(&external);
    run.externals.make_mut().insert(external.initiated_event_id, Arc::new(external));
}

pub(crate) fn apply_late(run: &mut Run, answered: Answered) {
    let externals = run.externals.make_mut();
    let Some(external) = externals.get_mut(&answered.initiated_event_id).map(Arc::make_mut) else { return };
    run.head.state_bytes -= bytes(external);
    external.late = Some(answered);
    run.head.state_bytes += bytes(external);
}

/// A message to another workflow is answered by this event: it is open no longer.
pub(crate) fn apply_answered(run: &mut Run, answer: &Attributes) {
    let initiated_event_id = match answer {
        Attributes::SignalExternalFailed(failed) => failed.initiated_event_id,
        Attributes::CancelExternalFailed(failed) => failed.initiated_event_id,
        Attributes::ExternalSignaled(reached) => reached.initiated_event_id,
        Attributes::ExternalCancelRequested(reached) => reached.initiated_event_id,
        _no_answer => return,
    };
    if run.externals.contains_key(&initiated_event_id)
        && let Some(answered) = run.externals.make_mut().remove(&initiated_event_id)
    {
        run.head.state_bytes -= bytes(answered.as_ref());
    }
}
