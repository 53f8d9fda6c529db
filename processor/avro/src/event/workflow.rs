//! Public events of a run: start, close, and requests to it.

use std::borrow::Cow;

use everlog_engine::api_types::{Initiator, RetryState};
use everlog_engine::machine::{cancel, close, memo_and_search_attributes, signal, start};
use everlog_engine::time::Timestamp;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::event::fields::{DeploymentVersion, Priority, RetryPolicy};
use crate::event::fields::{
    failure, fields, id, name, named, payloads, priority, retry, span, text, text_of, version,
};
use crate::failure::Failure;
use crate::payload::{Fields, Payload};

/// A run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionStarted<'a> {
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// The queue that its workers poll.
    pub task_queue: Cow<'a, str>,
    /// Arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Limit over the chain of runs, in ms.
    pub workflow_execution_timeout_ms: Option<i64>,
    /// Limit of this run, in ms.
    pub workflow_run_timeout_ms: Option<i64>,
    /// Start-to-close timeout of its workflow tasks, in ms.
    pub workflow_task_timeout_ms: Option<i64>,
    /// The run before this one in the chain.
    pub continued_run_id: Option<Cow<'a, str>>,
    /// Who made the run, if it continues another: Workflow, Retry or Cron.
    pub initiator: Option<Cow<'a, str>>,
    /// The failure of the run before.
    pub continued_failure: Option<Vec<Failure<'a>>>,
    /// The last result of the chain.
    pub last_completion_result: Option<Vec<Payload<'a>>>,
    /// The run id that the SDK's random numbers come from.
    pub original_run_id: Option<Cow<'a, str>>,
    /// The first run of the chain.
    pub first_run_id: Option<Cow<'a, str>>,
    /// Who started it.
    pub identity: Option<Cow<'a, str>>,
    /// When the workflow is tried again.
    pub retry_policy: Option<RetryPolicy<'a>>,
    /// When the chain must have ended.
    pub workflow_execution_expiration_time: Option<i64>,
    /// How long the first workflow task waits, in ms.
    pub first_workflow_task_backoff_ms: Option<i64>,
    /// Memo.
    pub memo: Option<Fields<'a>>,
    /// Search attributes.
    pub search_attributes: Option<Fields<'a>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// The Workflow Id that the start named.
    pub workflow_id: Option<Cow<'a, str>>,
    /// The namespace of the workflow whose child it is, by name.
    pub parent_namespace: Option<Cow<'a, str>>,
    /// The workflow whose child it is.
    pub parent_workflow_id: Option<Cow<'a, str>>,
    /// Its run.
    pub parent_run_id: Option<Cow<'a, str>>,
    /// The event in its history that asked for the child.
    pub parent_initiated_event_id: Option<i64>,
    /// The workflow at the root of a tree of children; null for the root itself.
    pub root_workflow_id: Option<Cow<'a, str>>,
    /// Its run.
    pub root_run_id: Option<Cow<'a, str>>,
    /// Its priority.
    pub priority: Option<Priority<'a>>,
    /// The first workflow task was handed out with the start.
    pub eager_execution_accepted: bool,
    /// From 1, counted anew by each run that is no retry.
    pub attempt: i32,
    /// When runs come.
    pub cron_schedule: Option<Cow<'a, str>>,
    /// Where builds of workers came in during the runs before, as Temporal's protobuf ResetPoints.
    pub prev_auto_reset_points: Option<Blob>,
    /// What the start says of the version of its workers, as Temporal's protobuf VersioningOverride.
    pub versioning_override: Option<Blob>,
    /// The version that its parent, or the run before it, stays with.
    pub inherited_pinned_version: Option<DeploymentVersion<'a>>,
}

impl<'a> From<&'a start::Started> for WorkflowExecutionStarted<'a> {
    fn from(event: &'a start::Started) -> Self {
        let points = event.prev_auto_reset_points.as_ref();
        let overriding = event.versioning_override.as_ref();
        Self {
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            task_queue: name(event.task_queue.as_ref().map(|queue| queue.name.as_str())),
            input: payloads(event.input.as_ref()),
            workflow_execution_timeout_ms: span(event.workflow_execution_timeout),
            workflow_run_timeout_ms: span(event.workflow_run_timeout),
            workflow_task_timeout_ms: span(event.workflow_task_timeout),
            continued_run_id: text(&event.continued_execution_run_id),
            initiator: named::<Initiator>(event.initiator),
            continued_failure: failure(event.continued_failure.as_ref()),
            last_completion_result: payloads(event.last_completion_result.as_ref()),
            original_run_id: text(&event.original_execution_run_id),
            first_run_id: text(&event.first_execution_run_id),
            identity: text(&event.identity),
            retry_policy: retry(event.retry_policy.as_ref()),
            workflow_execution_expiration_time: event
                .workflow_execution_expiration_time
                .map(Timestamp::to_ms),
            first_workflow_task_backoff_ms: span(event.first_workflow_task_backoff),
            memo: fields(event.memo.as_ref()),
            search_attributes: fields(event.search_attributes.as_ref()),
            header: fields(event.header.as_ref()),
            workflow_id: text(&event.workflow_id),
            parent_namespace: text(&event.parent_workflow_namespace),
            parent_workflow_id: text_of(
                event.parent_workflow_execution.as_ref().map(|run| run.workflow_id.as_str()),
            ),
            parent_run_id: text_of(event.parent_workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            parent_initiated_event_id: id(event.parent_initiated_event_id),
            root_workflow_id: text_of(
                event.root_workflow_execution.as_ref().map(|run| run.workflow_id.as_str()),
            ),
            root_run_id: text_of(event.root_workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            priority: priority(event.priority.as_ref()),
            eager_execution_accepted: event.eager_execution_accepted,
            attempt: event.attempt,
            cron_schedule: text(&event.cron_schedule),
            prev_auto_reset_points: points.map(|points| Blob(points.encode_to_vec().into())),
            versioning_override: overriding.map(|given| Blob(given.encode_to_vec().into())),
            inherited_pinned_version: version(event.inherited_pinned_version.as_ref()),
        }
    }
}

/// The workflow returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionCompleted<'a> {
    /// Its result.
    pub result: Option<Vec<Payload<'a>>>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// The run that follows, if one does.
    pub new_run_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a close::Completed> for WorkflowExecutionCompleted<'a> {
    fn from(event: &'a close::Completed) -> Self {
        Self {
            result: payloads(event.result.as_ref()),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            new_run_id: text(&event.new_execution_run_id),
        }
    }
}

/// The workflow failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionFailed<'a> {
    /// Why, the failure first and then its causes.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// The run that follows, if one does.
    pub new_run_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a close::Failed> for WorkflowExecutionFailed<'a> {
    fn from(event: &'a close::Failed) -> Self {
        Self {
            failure: failure(event.failure.as_ref()),
            retry_state: named::<RetryState>(event.retry_state),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            new_run_id: text(&event.new_execution_run_id),
        }
    }
}

/// The run took too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionTimedOut<'a> {
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
    /// The run that follows, if one does.
    pub new_run_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a close::TimedOut> for WorkflowExecutionTimedOut<'a> {
    fn from(event: &'a close::TimedOut) -> Self {
        Self {
            retry_state: named::<RetryState>(event.retry_state),
            new_run_id: text(&event.new_execution_run_id),
        }
    }
}

/// The run was ended from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionTerminated<'a> {
    /// Why.
    pub reason: Option<Cow<'a, str>>,
    /// More about it.
    pub details: Option<Vec<Payload<'a>>>,
    /// Who did it.
    pub identity: Option<Cow<'a, str>>,
}

impl<'a> From<&'a close::Terminated> for WorkflowExecutionTerminated<'a> {
    fn from(event: &'a close::Terminated) -> Self {
        Self {
            reason: text(&event.reason),
            details: payloads(event.details.as_ref()),
            identity: text(&event.identity),
        }
    }
}

/// The workflow ended as canceled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionCanceled<'a> {
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// What it had to say.
    pub details: Option<Vec<Payload<'a>>>,
}

impl<'a> From<&'a close::Canceled> for WorkflowExecutionCanceled<'a> {
    fn from(event: &'a close::Canceled) -> Self {
        Self {
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            details: payloads(event.details.as_ref()),
        }
    }
}

/// The workflow goes on in a new run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionContinuedAsNew<'a> {
    /// The new run.
    pub new_run_id: Cow<'a, str>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// The queue that its workers poll.
    pub task_queue: Cow<'a, str>,
    /// Its arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Its limit, in ms.
    pub workflow_run_timeout_ms: Option<i64>,
    /// Start-to-close timeout of its workflow tasks, in ms.
    pub workflow_task_timeout_ms: Option<i64>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// How long its first workflow task waits, in ms.
    pub backoff_start_interval_ms: Option<i64>,
    /// Who continues: Workflow, Retry or Cron.
    pub initiator: Option<Cow<'a, str>>,
    /// A failure handed on to it.
    pub failure: Option<Vec<Failure<'a>>>,
    /// A result handed on to it.
    pub last_completion_result: Option<Vec<Payload<'a>>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// Its memo.
    pub memo: Option<Fields<'a>>,
    /// Its search attributes.
    pub search_attributes: Option<Fields<'a>>,
    /// Its workers are to be of the build of this run's.
    pub inherit_build_id: bool,
}

impl<'a> From<&'a close::ContinuedAsNew> for WorkflowExecutionContinuedAsNew<'a> {
    fn from(event: &'a close::ContinuedAsNew) -> Self {
        Self {
            new_run_id: Cow::Borrowed(&event.new_execution_run_id),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            task_queue: name(event.task_queue.as_ref().map(|queue| queue.name.as_str())),
            input: payloads(event.input.as_ref()),
            workflow_run_timeout_ms: span(event.workflow_run_timeout),
            workflow_task_timeout_ms: span(event.workflow_task_timeout),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            backoff_start_interval_ms: span(event.backoff_start_interval),
            initiator: named::<Initiator>(event.initiator),
            failure: failure(event.failure.as_ref()),
            last_completion_result: payloads(event.last_completion_result.as_ref()),
            header: fields(event.header.as_ref()),
            memo: fields(event.memo.as_ref()),
            search_attributes: fields(event.search_attributes.as_ref()),
            inherit_build_id: event.inherit_build_id,
        }
    }
}

/// A signal came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionSignaled<'a> {
    /// The signal's name.
    pub signal_name: Cow<'a, str>,
    /// Its arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Who sent it.
    pub identity: Option<Cow<'a, str>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// The workflow that sent it, if one did.
    pub external_workflow_id: Option<Cow<'a, str>>,
    /// Its run.
    pub external_run_id: Option<Cow<'a, str>>,
    /// The id under which it was taken once.
    pub request_id: Option<Cow<'a, str>>,
}

impl<'a> From<&'a signal::Signaled> for WorkflowExecutionSignaled<'a> {
    fn from(event: &'a signal::Signaled) -> Self {
        Self {
            signal_name: Cow::Borrowed(&event.signal_name),
            input: payloads(event.input.as_ref()),
            identity: text(&event.identity),
            header: fields(event.header.as_ref()),
            external_workflow_id: text_of(
                event.external_workflow_execution.as_ref().map(|run| run.workflow_id.as_str()),
            ),
            external_run_id: text_of(
                event.external_workflow_execution.as_ref().map(|run| run.run_id.as_str()),
            ),
            request_id: text(&event.request_id),
        }
    }
}

/// Somebody asked for the cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionCancelRequested<'a> {
    /// Why.
    pub cause: Option<Cow<'a, str>>,
    /// The workflow that sent it, if one did.
    pub external_workflow_id: Option<Cow<'a, str>>,
    /// Its run.
    pub external_run_id: Option<Cow<'a, str>>,
    /// The event in its history that asked, if a workflow did.
    pub external_initiated_event_id: Option<i64>,
    /// Who asked.
    pub identity: Option<Cow<'a, str>>,
}

impl<'a> From<&'a cancel::Requested> for WorkflowExecutionCancelRequested<'a> {
    fn from(event: &'a cancel::Requested) -> Self {
        Self {
            cause: text(&event.cause),
            external_workflow_id: text_of(
                event.external_workflow_execution.as_ref().map(|run| run.workflow_id.as_str()),
            ),
            external_run_id: text_of(
                event.external_workflow_execution.as_ref().map(|run| run.run_id.as_str()),
            ),
            external_initiated_event_id: id(event.external_initiated_event_id),
            identity: text(&event.identity),
        }
    }
}

/// Search attributes were changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpsertWorkflowSearchAttributes<'a> {
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// What was changed.
    pub search_attributes: Option<Fields<'a>>,
}

impl<'a> From<&'a memo_and_search_attributes::SearchAttributesUpserted>
    for UpsertWorkflowSearchAttributes<'a>
{
    fn from(event: &'a memo_and_search_attributes::SearchAttributesUpserted) -> Self {
        Self {
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            search_attributes: fields(event.search_attributes.as_ref()),
        }
    }
}

/// The memo was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowPropertiesModified<'a> {
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// What was changed.
    pub upserted_memo: Option<Fields<'a>>,
}

impl<'a> From<&'a memo_and_search_attributes::Modified> for WorkflowPropertiesModified<'a> {
    fn from(event: &'a memo_and_search_attributes::Modified) -> Self {
        Self {
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            upserted_memo: fields(event.upserted_memo.as_ref()),
        }
    }
}
