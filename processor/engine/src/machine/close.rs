//! The end of a run: completed, failed, canceled, continued as new, terminated or timed out, once and for ever.
//!
//! open  --command Complete, Fail, Cancel, ContinueAsNew-->  closed, with the workflow task that said so
//! open  --order Terminate, a limit, a fatal command-->      closed, and a task in hand is abandoned
//! open  --its time is over-->                               closed, and a task in hand is abandoned
//!
//! Which run follows, if one does: see `continuation.rs`. What becomes of updates: see `update.rs`; of children: see `parent_child.rs`.

use bytes::Bytes;

use crate::api_types::{
    Initiator, RetryPolicy, RetryState, Status, TaskFailedCause as Cause, TaskQueue, WorkflowType,
};
use crate::command::Command;
use crate::copy_on_write::CopyOnWrite;
use crate::draft::{Draft, Extras, Step, bytes};
use crate::event::HistoryEvent;
use crate::machine::workflow_task_completed::{TaskFailure, extras};
use crate::machine::{continuation, update, workflow_task_started};
use crate::run::Run;
use crate::time::{Duration, Timestamp};

/// Command: the workflow returned.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Complete {
    /// Its result, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub result: Option<Bytes>,
}

/// Command: the workflow failed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Fail {
    /// Its failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub failure: Option<Bytes>,
}

/// Command: the workflow ended as canceled.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Cancel {
    /// What it has to say, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub details: Option<Bytes>,
}

/// Command: the workflow goes on in a new run with a fresh history.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContinueAsNew {
    /// The new run's type; this run's where absent.
    #[prost(message, optional, tag = "1")]
    pub workflow_type: Option<WorkflowType>,
    /// The new run's queue; this run's where absent.
    #[prost(message, optional, tag = "2")]
    pub task_queue: Option<TaskQueue>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub input: Option<Bytes>,
    /// Limit of the new run; this run's where absent.
    #[prost(message, optional, tag = "4")]
    pub workflow_run_timeout: Option<Duration>,
    /// Timeout of its tasks; this run's where absent.
    #[prost(message, optional, tag = "5")]
    pub workflow_task_timeout: Option<Duration>,
    /// How long its first task waits.
    #[prost(message, optional, tag = "6")]
    pub backoff_start_interval: Option<Duration>,
    /// When the new run is tried again.
    #[prost(message, optional, tag = "7")]
    pub retry_policy: Option<RetryPolicy>,
    /// Who continues.
    #[prost(enumeration = "Initiator", tag = "8")]
    pub initiator: i32,
    /// A failure for the new run, opaque.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub failure: Option<Bytes>,
    /// A result for the new run, opaque.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub last_completion_result: Option<Bytes>,
    /// When the run behind the new one comes.
    #[prost(string, tag = "11")]
    pub cron_schedule: String,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "12")]
    pub header: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "13")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub search_attributes: Option<Bytes>,
    /// Its workers are to be of the build of this run's.
    #[prost(bool, tag = "15")]
    pub inherit_build_id: bool,
    /// Refused: deployments of workers come later.
    #[prost(int32, tag = "16")]
    pub initial_versioning_behavior: i32,
}

/// Order: end a run from outside, at once.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Terminate {
    /// Why.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// More about it, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
    /// Who does it.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// If set, the run must belong to the chain that began with this run.
    #[prost(string, tag = "4")]
    pub first_run_id: String,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub links: Vec<Bytes>,
}

/// Event: the workflow returned.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Completed {
    /// Its result, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub result: Option<Bytes>,
    /// The task that said so.
    #[prost(int64, tag = "2")]
    pub workflow_task_completed_event_id: i64,
    /// The run that follows, if one does.
    #[prost(string, tag = "3")]
    pub new_execution_run_id: String,
}

/// Event: the workflow failed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Failed {
    /// Its failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub failure: Option<Bytes>,
    /// Why there is no other attempt.
    #[prost(enumeration = "RetryState", tag = "2")]
    pub retry_state: i32,
    /// The task that said so.
    #[prost(int64, tag = "3")]
    pub workflow_task_completed_event_id: i64,
    /// The run that follows, if one does.
    #[prost(string, tag = "4")]
    pub new_execution_run_id: String,
}

/// Event: the run took too long.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TimedOut {
    /// Why there is no other attempt.
    #[prost(enumeration = "RetryState", tag = "1")]
    pub retry_state: i32,
    /// The run that follows, if one does.
    #[prost(string, tag = "2")]
    pub new_execution_run_id: String,
}

/// Event: the workflow goes on in a new run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContinuedAsNew {
    /// The new run.
    #[prost(string, tag = "1")]
    pub new_execution_run_id: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub workflow_type: Option<WorkflowType>,
    /// Its queue.
    #[prost(message, optional, tag = "3")]
    pub task_queue: Option<TaskQueue>,
    /// Its arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub input: Option<Bytes>,
    /// Its limit.
    #[prost(message, optional, tag = "5")]
    pub workflow_run_timeout: Option<Duration>,
    /// The timeout of its tasks.
    #[prost(message, optional, tag = "6")]
    pub workflow_task_timeout: Option<Duration>,
    /// The task that said so.
    #[prost(int64, tag = "7")]
    pub workflow_task_completed_event_id: i64,
    /// How long its first task waits.
    #[prost(message, optional, tag = "8")]
    pub backoff_start_interval: Option<Duration>,
    /// Who continues.
    #[prost(enumeration = "Initiator", tag = "9")]
    pub initiator: i32,
    /// A failure for it, opaque.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub failure: Option<Bytes>,
    /// A result for it, opaque.
    #[prost(bytes = "bytes", optional, tag = "11")]
    pub last_completion_result: Option<Bytes>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "12")]
    pub header: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "13")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub search_attributes: Option<Bytes>,
    /// Its workers are to be of the build of this run's.
    #[prost(bool, tag = "15")]
    pub inherit_build_id: bool,
}

/// Event: the run was ended from outside.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Terminated {
    /// Why.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// More about it, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
    /// Who did it.
    #[prost(string, tag = "3")]
    pub identity: String,
}

/// Event: the workflow ended as canceled.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Canceled {
    /// The task that said so.
    #[prost(int64, tag = "1")]
    pub workflow_task_completed_event_id: i64,
    /// What it had to say, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
}

pub(crate) fn complete(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Complete,
    completed: i64,
) -> Result<Option<Step>, TaskFailure> {
    // So a Temporal server calls it.
    let cause = Cause::BadScheduleActivityAttributes;
    within_size(draft, cause, order.result.as_ref(), "CompleteWorkflowExecutionCommandAttributes.Result")?;
    let next = continuation::after_result(draft, order.result.as_ref());
    let closing = |new_execution_run_id| Completed {
        result: order.result.clone(),
        workflow_task_completed_event_id: completed,
        new_execution_run_id,
    };
    Ok(continuation::close(draft, next, extras(command), |run_id| closing(run_id).into()))
}

pub(crate) fn fail(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Fail,
    completed: i64,
) -> Result<Option<Step>, TaskFailure> {
    let cause = Cause::BadFailWorkflowExecutionAttributes;
    let Some(failure) = &order.failure else {
        return Err(TaskFailure::new(cause, "Failure is not set on FailWorkflowExecutionCommand."));
    };
    within_size(draft, cause, Some(failure), "FailWorkflowExecutionCommandAttributes.Failure")?;
    let (state, next) = continuation::after_failure(draft, failure);
    let closing = |new_execution_run_id| Failed {
        failure: Some(failure.clone()),
        retry_state: state.into(),
        workflow_task_completed_event_id: completed,
        new_execution_run_id,
    };
    Ok(continuation::close(draft, next, extras(command), |run_id| closing(run_id).into()))
}

/// Details may have any size, as on a Temporal server: a message has a limit of its own.
pub(crate) fn cancel(draft: &mut Draft<'_>, command: &Command, order: &Cancel, completed: i64) {
    let event = Canceled { workflow_task_completed_event_id: completed, details: order.details.clone() };
    draft.emit_at(draft.now_ms(), event.into(), extras(command));
}

/// An input over the limit ends the run: repeating the task would not make it smaller.
pub(crate) fn within_size(
    draft: &Draft<'_>,
    cause: Cause,
    blob: Option<&Bytes>,
    what: &str,
) -> Result<(), TaskFailure> {
    if blob.is_some_and(|blob| blob.len() as i64 > draft.settings.blob_bytes_max) {
        return Err(TaskFailure::fatal(cause, &format!("{what} exceeds size limit.")));
    }
    Ok(())
}

/// Ends the run from outside, as somebody ordered it.
pub(crate) fn terminate_as_ordered(draft: &mut Draft<'_>, order: &Terminate) {
    end_as_ordered(draft, order);
    update::close(draft, None);
}

/// Ends the run, save for updates that nobody has accepted.
pub(crate) fn end_as_ordered(draft: &mut Draft<'_>, order: &Terminate) {
    let Terminate { reason, details, identity, first_run_id: _, links } = order.clone();
    workflow_task_started::abandon(draft);
    let extras = Extras { links, ..Extras::default() };
    draft.emit_at(draft.now_ms(), Terminated { reason, details, identity }.into(), extras);
}

/// Ends the run because it must not go on.
pub(crate) fn terminate(draft: &mut Draft<'_>, reason: &str, details: Option<Bytes>, identity: &str) {
    let (reason, identity) = (reason.into(), identity.into());
    terminate_as_ordered(draft, &Terminate { reason, details, identity, ..Terminate::default() });
}

/// The run's time is over, or that of the whole chain, after which nothing could be tried again.
pub(crate) fn time_out(draft: &mut Draft<'_>) -> Option<Step> {
    let (state, next) = continuation::after_timeout(draft);
    workflow_task_started::abandon(draft);
    let closing = |new_execution_run_id| TimedOut { retry_state: state.into(), new_execution_run_id };
    continuation::close(draft, next, Extras::default(), |run_id| closing(run_id).into())
}

/// Nothing is open in a closed run. What others have not answered stays, for a reset, and activities that are paused stay to be
/// seen.
pub(crate) fn apply_closed(run: &mut Run, event: &HistoryEvent, status: Status) {
    run.head.status = status.into();
    run.head.close_ms = event.event_time.map_or(0, Timestamp::to_ms);
    run.head.task = None;
    run.head.backoff_until_ms = 0;
    if run.activities.values().any(|activity| activity.pause.is_some()) {
        run.activities.make_mut().retain(|_, activity| activity.pause.is_some());
    } else {
        run.activities = CopyOnWrite::default();
    }
    run.timers = CopyOnWrite::default();
    run.buffered = CopyOnWrite::default();
    run.chain = None;
    let children: i64 = run.children.values().map(|child| bytes(child.as_ref())).sum();
    let externals: i64 = run.externals.values().map(|external| bytes(external.as_ref())).sum();
    let attached: i64 = run.attached.values().map(bytes).sum();
    let paused: i64 = run.activities.values().map(|activity| bytes(activity.as_ref())).sum();
    let others = children.saturating_add(externals).saturating_add(attached).saturating_add(paused);
    run.head.state_bytes = bytes(run.properties.as_ref()).saturating_add(others);
}
