//! Parent and child: what they tell each other, by messages alone.
//!
//! parent --Start--> child: the command; parent <--Opened-- child: it is there, or cannot be;
//! parent --Begin--> child: its first workflow task comes only now; parent <--Closed-- child: its last run has ended;
//! parent --Terminate, Cancel--> child: the parent's run has closed. Messages keep their order, so that this one finds
//! what an earlier one has started.

use bytes::Bytes;

use crate::api_types::{
    ChildFailedCause as FailedCause, ParentClosePolicy as ClosePolicy, RetryState, Status, WorkflowType,
};
use crate::draft::{Change, Draft, Extras};
use crate::event::{Attributes, HistoryEvent};
use crate::machine::child::{Canceled, Child, Completed, Failed, StartFailed, Started, Terminated, TimedOut};
use crate::machine::close::Terminate;
use crate::machine::schedule::action as schedule_action;
use crate::machine::{cancel, workflow_task};
use crate::outcome::{Rejection, Reply};
use crate::request::{Request, RequestRecord, Sender};
use crate::run::Run;

/// Message to the parent: the child is there, or cannot be.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Opened {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// Its first run; empty where it cannot be.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// Why it cannot be.
    #[prost(enumeration = "FailedCause", tag = "3")]
    pub cause: i32,
}

/// Message to the child: its parent knows of it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Begin {}

/// Message to the parent: the last run of the child's chain has closed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Closed {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// The run that closed.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// How.
    #[prost(enumeration = "Status", tag = "3")]
    pub status: i32,
    /// Result, failure or details, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub payload: Option<Bytes>,
    /// Why there was no other attempt.
    #[prost(enumeration = "RetryState", tag = "5")]
    pub retry_state: i32,
    /// The type of the run that closed.
    #[prost(message, optional, tag = "6")]
    pub workflow_type: Option<WorkflowType>,
}

/// What a parent hears of the start that it asked for.
pub(crate) fn answer_to_start(sender: &Sender, reply: &Reply) -> RequestRecord {
    let (run_id, cause) = match reply {
        Reply::Started(started) if started.started => (started.run_id.clone(), FailedCause::Unspecified),
        Reply::Rejected(Rejection::NotFound(_) | Rejection::NamespaceDeleted(_)) => {
            (String::new(), FailedCause::NamespaceNotFound)
        }
        _taken => (String::new(), FailedCause::WorkflowAlreadyExists),
    };
    let initiated_event_id = sender.initiated_event_id;
    sender.answer(Request::ChildOpened(Opened { initiated_event_id, run_id, cause: cause.into() }))
}

/// The child is there, or cannot be.
pub(crate) fn opened(draft: &mut Draft<'_>, order: &Opened) {
    let Some(child) = draft.run.children.get(&order.initiated_event_id).cloned() else { return };
    if !child.run_id.is_empty() {
        return;
    }
    if order.run_id.is_empty() {
        draft.record(StartFailed {
            namespace: child.namespace.clone(),
            workflow_id: child.workflow_id.clone(),
            workflow_type: child.workflow_type.clone(),
            cause: order.cause,
            control: child.control.clone(),
            initiated_event_id: child.initiated_event_id,
            namespace_id: child.namespace_id.clone(),
        });
    } else {
        draft.record(Started {
            namespace: child.namespace.clone(),
            initiated_event_id: child.initiated_event_id,
            workflow_execution: child.execution(&order.run_id),
            workflow_type: child.workflow_type.clone(),
            header: child.header.clone(),
            namespace_id: child.namespace_id.clone(),
        });
        draft.send(child.message(&draft.run, Request::BeginChild(Begin {})));
    }
    workflow_task::settle(draft);
}

/// A parent that has closed hears that the child is there: one that is abandoned begins all the same, and so does every
/// child of a parent that a reset has replaced.
pub(crate) fn begin_abandoned(run: &Run, order: &Opened) -> Option<RequestRecord> {
    let child = run.children.get(&order.initiated_event_id)?;
    let is_left = run.head.is_replaced || child.close_policy == i32::from(ClosePolicy::Abandon);
    (is_left && !order.run_id.is_empty()).then(|| child.message(run, Request::BeginChild(Begin {})))
}

/// The parent knows of this run: its first workflow task comes, unless something else has brought it already.
pub(crate) fn begin_child(draft: &mut Draft<'_>) {
    if draft.run.head.previous_started_event_id != 0 {
        return;
    }
    if draft.run.head.backoff_until_ms > 0 {
        // A Temporal server notes it here as well.
        draft.change(Change::Transition);
    }
    workflow_task::settle(draft);
}

/// A child has closed for good.
pub(crate) fn closed(draft: &mut Draft<'_>, order: &Closed) {
    let Some(child) = draft.run.children.get(&order.initiated_event_id).cloned() else { return };
    draft.record_with(closing(&child, order), Extras::default());
    workflow_task::settle(draft);
}

macro_rules! closing_event {
    ($name:ident, $child:expr, $order:expr $(, $field:ident = $value:expr)*) => {
        $name {
            namespace: $child.namespace.clone(),
            namespace_id: $child.namespace_id.clone(),
            workflow_execution: $child.execution(&$order.run_id),
            workflow_type: $order.workflow_type.clone().or_else(|| $child.workflow_type.clone()),
            initiated_event_id: $child.initiated_event_id,
            started_event_id: $child.started_event_id,
            $($field: $value,)*
        }
        .into()
    };
}

fn closing(child: &Child, order: &Closed) -> Attributes {
    let (payload, retry_state) = (order.payload.clone(), order.retry_state);
    match Status::try_from(order.status).unwrap_or(Status::Terminated) {
        Status::Completed => closing_event!(Completed, child, order, result = payload),
        Status::Failed => {
            closing_event!(Failed, child, order, failure = payload, retry_state = retry_state)
        }
        Status::Canceled => closing_event!(Canceled, child, order, details = payload),
        Status::TimedOut => closing_event!(TimedOut, child, order, retry_state = retry_state),
        Status::Terminated
        | Status::Unspecified
        | Status::Running
        | Status::Paused
        | Status::ContinuedAsNew => {
            closing_event!(Terminated, child, order)
        }
    }
}

/// What a run that has just closed has to tell: its children what becomes of them; its parent, and the schedule that has
/// started it, how it ended if no other run follows. One that a reset has replaced says nothing, save to a schedule where the
/// run in its place is of another chain: `latest_first_run_id` is the first run of the chain that the Workflow Id means now.
pub(crate) fn farewell(run: &Run, last: &HistoryEvent, latest_first_run_id: &str) -> Vec<RequestRecord> {
    if run.head.is_replaced {
        let is_over = run.start.first_run_id != latest_first_run_id;
        let watcher = run.start.watcher.as_ref().filter(|_| is_over);
        return watcher.map(|watcher| schedule_action::closed(watcher, run, None)).into_iter().collect();
    }
    let asked = if is_own_will(last) { run.head.previous_started_event_id } else { i64::MAX };
    // Children that were asked for in the very task that ends the run are nowhere.
    let children = run.children.values().filter(|child| child.initiated_event_id < asked);
    let mut messages: Vec<_> = children.filter_map(|child| last_word(run, child)).collect();
    if !run.head.successor_run_id.is_empty() {
        return messages;
    }
    let (payload, retry_state) = match &last.attributes {
        Some(Attributes::WorkflowCompleted(event)) => (event.result.clone(), 0),
        Some(Attributes::WorkflowFailed(event)) => (event.failure.clone(), event.retry_state),
        Some(Attributes::WorkflowCanceled(event)) => (event.details.clone(), 0),
        Some(Attributes::WorkflowTimedOut(event)) => (None, event.retry_state),
        _other => (None, 0),
    };
    if let Some(watcher) = &run.start.watcher {
        messages.push(schedule_action::closed(watcher, run, payload.clone()));
    }
    if let Some(parent) = &run.start.parent {
        let closed = Closed {
            initiated_event_id: parent.initiated_event_id,
            run_id: run.start.run_id.clone(),
            status: run.head.status,
            payload,
            retry_state,
            workflow_type: run.start.workflow_type.clone(),
        };
        messages.push(parent.sender().answer(Request::ChildClosed(closed)));
    }
    messages
}

/// The run was ended by a command of its worker.
fn is_own_will(last: &HistoryEvent) -> bool {
    matches!(
        &last.attributes,
        Some(
            Attributes::WorkflowCompleted(_)
                | Attributes::WorkflowFailed(_)
                | Attributes::WorkflowCanceled(_)
                | Attributes::WorkflowContinuedAsNew(_)
        )
    )
}

fn last_word(run: &Run, child: &Child) -> Option<RequestRecord> {
    // Another one may have its id by now.
    let (identity, first_run_id) = ("history-service".to_owned(), child.run_id.clone());
    let order = match ClosePolicy::try_from(child.close_policy).unwrap_or(ClosePolicy::Terminate) {
        ClosePolicy::Abandon => return None,
        ClosePolicy::Terminate | ClosePolicy::Unspecified => {
            let reason = "by parent close policy".to_owned();
            Request::Terminate(Terminate { reason, identity, first_run_id, ..Terminate::default() })
        }
        ClosePolicy::RequestCancel => {
            Request::Cancel(cancel::Request { identity, first_run_id, ..cancel::Request::default() })
        }
    };
    Some(child.message(run, order))
}

/// The Initiated event that a closing event of a child belongs to.
pub(crate) fn closed_child(attributes: &Attributes) -> Option<i64> {
    match attributes {
        Attributes::ChildCompleted(closed) => Some(closed.initiated_event_id),
        Attributes::ChildFailed(closed) => Some(closed.initiated_event_id),
        Attributes::ChildCanceled(closed) => Some(closed.initiated_event_id),
        Attributes::ChildTimedOut(closed) => Some(closed.initiated_event_id),
        Attributes::ChildTerminated(closed) => Some(closed.initiated_event_id),
        _other => None,
    }
}

/// The Started event was buffered when the closing event was, and has its id only now.
pub(crate) fn set_started(attributes: &mut Attributes, started_event_id: i64) {
    match attributes {
        Attributes::ChildCompleted(closed) => closed.started_event_id = started_event_id,
        Attributes::ChildFailed(closed) => closed.started_event_id = started_event_id,
        Attributes::ChildCanceled(closed) => closed.started_event_id = started_event_id,
        Attributes::ChildTimedOut(closed) => closed.started_event_id = started_event_id,
        Attributes::ChildTerminated(closed) => closed.started_event_id = started_event_id,
        _other => {}
    }
}
