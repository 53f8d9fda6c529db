//! Public events of workflow tasks.

use std::borrow::Cow;

use everlog_engine::api_types::{QueueKind, SuggestReason, TaskFailedCause, TimeoutType, VersioningBehavior};
use everlog_engine::machine::workflow_task;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::event::fields::{DeploymentVersion, blob, failure, id, name, named, span, text, text_of, version};
use crate::failure::Failure;

/// A workflow task was put on a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTaskScheduled<'a> {
    /// The queue that its workers poll.
    pub task_queue: Cow<'a, str>,
    /// Sticky for the private queue of a worker that has the run in its cache, else Normal.
    pub task_queue_kind: Option<Cow<'a, str>>,
    /// Of a sticky queue: the queue of the same workers.
    pub normal_task_queue: Option<Cow<'a, str>>,
    /// How long a worker may have it, in ms.
    pub start_to_close_timeout_ms: Option<i64>,
}

impl<'a> From<&'a workflow_task::Scheduled> for WorkflowTaskScheduled<'a> {
    fn from(event: &'a workflow_task::Scheduled) -> Self {
        Self {
            task_queue: name(event.task_queue.as_ref().map(|queue| queue.name.as_str())),
            task_queue_kind: event.task_queue.as_ref().and_then(|queue| named::<QueueKind>(queue.kind)),
            normal_task_queue: text_of(event.task_queue.as_ref().map(|queue| queue.normal_name.as_str())),
            start_to_close_timeout_ms: span(event.start_to_close_timeout),
        }
    }
}

/// A worker got the workflow task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTaskStarted<'a> {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// The poll.
    pub request_id: Option<Cow<'a, str>>,
    /// The worker is advised to continue as new.
    pub suggest_continue_as_new: bool,
    /// Why it is so advised.
    pub suggest_continue_as_new_reasons: Vec<Cow<'a, str>>,
    /// Bytes of history up to here.
    pub history_size_bytes: i64,
}

impl<'a> From<&'a workflow_task::Started> for WorkflowTaskStarted<'a> {
    fn from(event: &'a workflow_task::Started) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            identity: text(&event.identity),
            request_id: text(&event.request_id),
            suggest_continue_as_new: event.suggest_continue_as_new,
            suggest_continue_as_new_reasons: event
                .suggest_continue_as_new_reasons
                .iter()
                .filter_map(|reason| named::<SuggestReason>(*reason))
                .collect(),
            history_size_bytes: event.history_size_bytes,
        }
    }
}

/// The worker answered the workflow task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTaskCompleted<'a> {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
    /// The worker's binary.
    pub binary_checksum: Option<Cow<'a, str>>,
    /// The worker's version, as Temporal's protobuf WorkerVersionStamp.
    pub worker_version: Option<Blob>,
    /// Flags of the SDK that a replay needs, as Temporal's protobuf WorkflowTaskCompletedMetadata.
    pub sdk_metadata: Option<Blob>,
    /// What the SDK counted, as Temporal's protobuf MeteringMetadata.
    pub metering_metadata: Option<Blob>,
    /// How the run goes by versions of its workers: Pinned or AutoUpgrade.
    pub versioning_behavior: Option<Cow<'a, str>>,
    /// The worker's deployment.
    pub worker_deployment_name: Option<Cow<'a, str>>,
    /// The version of it.
    pub deployment_version: Option<DeploymentVersion<'a>>,
}

impl<'a> From<&'a workflow_task::Completed> for WorkflowTaskCompleted<'a> {
    fn from(event: &'a workflow_task::Completed) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: event.started_event_id,
            identity: text(&event.identity),
            binary_checksum: text(&event.binary_checksum),
            worker_version: blob(event.worker_version.as_ref()),
            sdk_metadata: blob(event.sdk_metadata.as_ref()),
            metering_metadata: blob(event.metering_metadata.as_ref()),
            versioning_behavior: named::<VersioningBehavior>(event.versioning_behavior),
            worker_deployment_name: text(&event.worker_deployment_name),
            deployment_version: version(event.deployment_version.as_ref()),
        }
    }
}

/// No worker came for the workflow task, or none answered, in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTaskTimedOut<'a> {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event; null where no worker had it.
    pub started_event_id: Option<i64>,
    /// Which deadline passed, e.g. StartToClose.
    pub timeout_type: Option<Cow<'a, str>>,
}

impl<'a> From<&'a workflow_task::TimedOut> for WorkflowTaskTimedOut<'a> {
    fn from(event: &'a workflow_task::TimedOut) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: id(event.started_event_id),
            timeout_type: named::<TimeoutType>(event.timeout_type),
        }
    }
}

/// The workflow task failed; it is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowTaskFailed<'a> {
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
    /// Why, e.g. NonDeterministicError.
    pub cause: Option<Cow<'a, str>>,
    /// Why, the failure first and then its causes.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Who says so.
    pub identity: Option<Cow<'a, str>>,
    /// The worker's binary.
    pub binary_checksum: Option<Cow<'a, str>>,
    /// The worker's version, as Temporal's protobuf WorkerVersionStamp.
    pub worker_version: Option<Blob>,
    /// Of a reset: the run whose events up to here this run has.
    pub base_run_id: Option<Cow<'a, str>>,
    /// Of a reset: this run.
    pub new_run_id: Option<Cow<'a, str>>,
    /// Of a reset: the version of the last event that both runs have.
    pub fork_event_version: Option<i64>,
}

impl<'a> From<&'a workflow_task::Failed> for WorkflowTaskFailed<'a> {
    fn from(event: &'a workflow_task::Failed) -> Self {
        Self {
            scheduled_event_id: event.scheduled_event_id,
            started_event_id: event.started_event_id,
            cause: named::<TaskFailedCause>(event.cause),
            failure: failure(event.failure.as_ref()),
            identity: text(&event.identity),
            binary_checksum: text(&event.binary_checksum),
            worker_version: blob(event.worker_version.as_ref()),
            base_run_id: text(&event.base_run_id),
            new_run_id: text(&event.new_run_id),
            fork_event_version: id(event.fork_event_version),
        }
    }
}
