//! Public events of child workflows, in the history of their parent.

use std::borrow::Cow;

use everlog_engine::api_types::{ChildFailedCause, ParentClosePolicy, RetryState, ReusePolicy};
use everlog_engine::machine::child;
use serde::{Deserialize, Serialize};

use crate::event::fields::{Priority, RetryPolicy};
use crate::event::fields::{failure, fields, name, named, payloads, priority, retry, span, text, text_of};
use crate::failure::Failure;
use crate::payload::{Fields, Payload};

/// A child is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartChildWorkflowExecutionInitiated<'a> {
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// The queue that its workers poll.
    pub task_queue: Cow<'a, str>,
    /// Arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Limit over its chain of runs, in ms.
    pub workflow_execution_timeout_ms: Option<i64>,
    /// Limit of each of its runs, in ms.
    pub workflow_run_timeout_ms: Option<i64>,
    /// Start-to-close timeout of its workflow tasks, in ms.
    pub workflow_task_timeout_ms: Option<i64>,
    /// What becomes of it when the parent's run closes: Terminate, Abandon or RequestCancel.
    pub parent_close_policy: Option<Cow<'a, str>>,
    /// What to do about a closed run of the id, e.g. AllowDuplicate.
    pub workflow_id_reuse_policy: Option<Cow<'a, str>>,
    /// When it is tried again.
    pub retry_policy: Option<RetryPolicy<'a>>,
    /// When its runs begin.
    pub cron_schedule: Option<Cow<'a, str>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// Memo.
    pub memo: Option<Fields<'a>>,
    /// Search attributes.
    pub search_attributes: Option<Fields<'a>>,
    /// Its priority.
    pub priority: Option<Priority<'a>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// Its workers are to be of the build of the parent's.
    pub inherit_build_id: bool,
}

impl<'a> From<&'a child::Initiated> for StartChildWorkflowExecutionInitiated<'a> {
    fn from(event: &'a child::Initiated) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: Cow::Borrowed(&event.workflow_id),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            task_queue: name(event.task_queue.as_ref().map(|queue| queue.name.as_str())),
            input: payloads(event.input.as_ref()),
            workflow_execution_timeout_ms: span(event.workflow_execution_timeout),
            workflow_run_timeout_ms: span(event.workflow_run_timeout),
            workflow_task_timeout_ms: span(event.workflow_task_timeout),
            parent_close_policy: named::<ParentClosePolicy>(event.parent_close_policy),
            workflow_id_reuse_policy: named::<ReusePolicy>(event.workflow_id_reuse_policy),
            retry_policy: retry(event.retry_policy.as_ref()),
            cron_schedule: text(&event.cron_schedule),
            header: fields(event.header.as_ref()),
            memo: fields(event.memo.as_ref()),
            search_attributes: fields(event.search_attributes.as_ref()),
            priority: priority(event.priority.as_ref()),
            control: text(&event.control),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            inherit_build_id: event.inherit_build_id,
        }
    }
}

/// A child could not be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartChildWorkflowExecutionFailed<'a> {
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Why: WorkflowAlreadyExists or NamespaceNotFound.
    pub cause: Option<Cow<'a, str>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
}

impl<'a> From<&'a child::StartFailed> for StartChildWorkflowExecutionFailed<'a> {
    fn from(event: &'a child::StartFailed) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: Cow::Borrowed(&event.workflow_id),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            cause: named::<ChildFailedCause>(event.cause),
            control: text(&event.control),
            initiated_event_id: event.initiated_event_id,
        }
    }
}

/// A child is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionStarted<'a> {
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its first run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
}

impl<'a> From<&'a child::Started> for ChildWorkflowExecutionStarted<'a> {
    fn from(event: &'a child::Started) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            header: fields(event.header.as_ref()),
        }
    }
}

/// A child returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionCompleted<'a> {
    /// Its result.
    pub result: Option<Vec<Payload<'a>>>,
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its last run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a child::Completed> for ChildWorkflowExecutionCompleted<'a> {
    fn from(event: &'a child::Completed) -> Self {
        Self {
            result: payloads(event.result.as_ref()),
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            started_event_id: event.started_event_id,
        }
    }
}

/// A child failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionFailed<'a> {
    /// Why, the failure first and then its causes.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its last run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a child::Failed> for ChildWorkflowExecutionFailed<'a> {
    fn from(event: &'a child::Failed) -> Self {
        Self {
            failure: failure(event.failure.as_ref()),
            retry_state: named::<RetryState>(event.retry_state),
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            started_event_id: event.started_event_id,
        }
    }
}

/// A child ended as canceled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionCanceled<'a> {
    /// What it had to say.
    pub details: Option<Vec<Payload<'a>>>,
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its last run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a child::Canceled> for ChildWorkflowExecutionCanceled<'a> {
    fn from(event: &'a child::Canceled) -> Self {
        Self {
            details: payloads(event.details.as_ref()),
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            started_event_id: event.started_event_id,
        }
    }
}

/// A child took too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionTimedOut<'a> {
    /// Why there is no other attempt, e.g. MaximumAttemptsReached.
    pub retry_state: Option<Cow<'a, str>>,
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its last run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a child::TimedOut> for ChildWorkflowExecutionTimedOut<'a> {
    fn from(event: &'a child::TimedOut) -> Self {
        Self {
            retry_state: named::<RetryState>(event.retry_state),
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            started_event_id: event.started_event_id,
        }
    }
}

/// A child was ended from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildWorkflowExecutionTerminated<'a> {
    /// Its namespace, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its last run.
    pub run_id: Option<Cow<'a, str>>,
    /// The name under which workers registered it.
    pub workflow_type: Cow<'a, str>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a child::Terminated> for ChildWorkflowExecutionTerminated<'a> {
    fn from(event: &'a child::Terminated) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            workflow_type: name(event.workflow_type.as_ref().map(|given| given.name.as_str())),
            initiated_event_id: event.initiated_event_id,
            started_event_id: event.started_event_id,
        }
    }
}
