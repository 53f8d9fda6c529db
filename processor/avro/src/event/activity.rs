//! Public events of activities.

use std::borrow::Cow;

use everlog_engine::api_types::RetryState;
use everlog_engine::machine::activity;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::event::fields::{Priority, RetryPolicy};
use crate::event::fields::{blob, failure, fields, id, name, named, payloads, priority, retry, span, text};
use crate::failure::Failure;
use crate::payload::{Fields, Payload};

/// An activity was scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskScheduled<'a> {
    /// Chosen by the workflow.
    pub activity_id: Cow<'a, str>,
    /// The name under which workers registered it.
    pub activity_type: Cow<'a, str>,
    /// The queue that its workers poll.
    pub task_queue: Cow<'a, str>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// Arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Limit over all attempts, in ms; 0 = none.
    pub schedule_to_close_timeout_ms: Option<i64>,
    /// How long an attempt may wait for a worker, in ms; 0 = for ever.
    pub schedule_to_start_timeout_ms: Option<i64>,
    /// How long an attempt may take, in ms; 0 = no limit.
    pub start_to_close_timeout_ms: Option<i64>,
    /// The longest silence of a worker, in ms; 0 = for ever.
    pub heartbeat_timeout_ms: Option<i64>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// When and how often it is tried again.
    pub retry_policy: Option<RetryPolicy<'a>>,
    /// Its priority.
    pub priority: Option<Priority<'a>>,
    /// Its workers are to be of the build of the workflow's.
    pub use_workflow_build_id: bool,
}

impl<'a> From<&'a activity::Scheduled> for ActivityTaskScheduled<'a> {
    fn from(event: &'a activity::Scheduled) -> Self {
        Self {
            activity_id: Cow::Borrowed(&event.activity_id),
            activity_type: name(event.activity_type.as_ref().map(|given| given.name.as_str())),
            task_queue: name(event.task_queue.as_ref().map(|queue| queue.name.as_str())),
            header: fields(event.header.as_ref()),
            input: payloads(event.input.as_ref()),
            schedule_to_close_timeout_ms: span(event.schedule_to_close_timeout),
            schedule_to_start_timeout_ms: span(event.schedule_to_start_timeout),
            start_to_close_timeout_ms: span(event.start_to_close_timeout),
            heartbeat_timeout_ms: span(event.heartbeat_timeout),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            retry_policy: retry(event.retry_policy.as_ref()),
            priority: priority(event.priority.as_ref()),
            use_workflow_build_id: event.use_workflow_build_id,
        }
    }
}

/// The last attempt at the activity was started; written when the activity ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskStarted<'a> {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// The poll.
    pub request_id: Option<Cow<'a, str>>,
    /// Why the attempt before failed.
    pub last_failure: Option<Vec<Failure<'a>>>,
}

impl<'a> From<&'a activity::Started> for ActivityTaskStarted<'a> {
    fn from(event: &'a activity::Started) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            identity: text(&event.identity),
            request_id: text(&event.request_id),
            last_failure: failure(event.last_failure.as_ref()),
        }
    }
}

/// The activity returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskCompleted<'a> {
    /// Its result.
    pub result: Option<Vec<Payload<'a>>>,
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// The worker's version, as Temporal's protobuf WorkerVersionStamp.
    pub worker_version: Option<Blob>,
}

impl<'a> From<&'a activity::Completed> for ActivityTaskCompleted<'a> {
    fn from(event: &'a activity::Completed) -> Self {
        Self {
            result: payloads(event.result.as_ref()),
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: event.started_event_id,
            identity: text(&event.identity),
            worker_version: blob(event.worker_version.as_ref()),
        }
    }
}

/// The activity failed for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskFailed<'a> {
    /// Why, the failure first and then its causes.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
    /// The worker's version, as Temporal's protobuf WorkerVersionStamp.
    pub worker_version: Option<Blob>,
    /// Temporal's number of what the worker takes for the cause.
    pub cause: Option<i32>,
}

impl<'a> From<&'a activity::Failed> for ActivityTaskFailed<'a> {
    fn from(event: &'a activity::Failed) -> Self {
        Self {
            failure: failure(event.failure.as_ref()),
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: event.started_event_id,
            identity: text(&event.identity),
            retry_state: named::<RetryState>(event.retry_state),
            worker_version: blob(event.worker_version.as_ref()),
            cause: (event.cause != 0).then_some(event.cause),
        }
    }
}

/// A deadline of the activity passed, for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskTimedOut<'a> {
    /// Which deadline, the failure first and then its causes.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event; null where no worker had it.
    pub started_event_id: Option<i64>,
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
}

impl<'a> From<&'a activity::TimedOut> for ActivityTaskTimedOut<'a> {
    fn from(event: &'a activity::TimedOut) -> Self {
        Self {
            failure: failure(event.failure.as_ref()),
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: id(event.started_event_id),
            retry_state: named::<RetryState>(event.retry_state),
        }
    }
}

/// The workflow asked for the cancellation of an activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskCancelRequested {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
}

impl From<&activity::CancelRequested> for ActivityTaskCancelRequested {
    fn from(event: &activity::CancelRequested) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
        }
    }
}

/// The activity ended as canceled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTaskCanceled<'a> {
    /// What it had to say.
    pub details: Option<Vec<Payload<'a>>>,
    /// The request.
    pub latest_cancel_requested_event_id: Option<i64>,
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event; null where no worker had it.
    pub started_event_id: Option<i64>,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// The worker's version, as Temporal's protobuf WorkerVersionStamp.
    pub worker_version: Option<Blob>,
}

impl<'a> From<&'a activity::Canceled> for ActivityTaskCanceled<'a> {
    fn from(event: &'a activity::Canceled) -> Self {
        Self {
            details: payloads(event.details.as_ref()),
            latest_cancel_requested_event_id: id(event.latest_cancel_requested_event_id),
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: id(event.started_event_id),
            identity: text(&event.identity),
            worker_version: blob(event.worker_version.as_ref()),
        }
    }
}
