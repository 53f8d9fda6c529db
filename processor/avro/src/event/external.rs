//! Public events of signals to other workflows, and of requests to cancel them.

use std::borrow::Cow;

use everlog_engine::api_types::ExternalFailedCause;
use everlog_engine::machine::external_workflow;
use serde::{Deserialize, Serialize};

use crate::event::fields::{fields, name, named, payloads, text, text_of};
use crate::payload::{Fields, Payload};

/// A signal is on its way to another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalExternalWorkflowExecutionInitiated<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// The signal's name.
    pub signal_name: Cow<'a, str>,
    /// Its arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Only a child of this run is meant.
    pub child_workflow_only: bool,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
}

impl<'a> From<&'a external_workflow::SignalInitiated> for SignalExternalWorkflowExecutionInitiated<'a> {
    fn from(event: &'a external_workflow::SignalInitiated) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            signal_name: Cow::Borrowed(&event.signal_name),
            input: payloads(event.input.as_ref()),
            header: fields(event.header.as_ref()),
            control: text(&event.control),
            child_workflow_only: event.child_workflow_only,
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
        }
    }
}

/// The signal did not reach the other workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalExternalWorkflowExecutionFailed<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// Why: NotFound, NamespaceNotFound or SignalCountLimitExceeded.
    pub cause: Option<Cow<'a, str>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
}

impl<'a> From<&'a external_workflow::SignalFailed> for SignalExternalWorkflowExecutionFailed<'a> {
    fn from(event: &'a external_workflow::SignalFailed) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            cause: named::<ExternalFailedCause>(event.cause),
            control: text(&event.control),
            initiated_event_id: event.initiated_event_id,
        }
    }
}

/// The signal has reached the other workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExternalWorkflowExecutionSignaled<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
}

impl<'a> From<&'a external_workflow::Signaled> for ExternalWorkflowExecutionSignaled<'a> {
    fn from(event: &'a external_workflow::Signaled) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            control: text(&event.control),
            initiated_event_id: event.initiated_event_id,
        }
    }
}

/// A request to cancel is on its way to another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestCancelExternalWorkflowExecutionInitiated<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// Why.
    pub reason: Option<Cow<'a, str>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Only a child of this run is meant.
    pub child_workflow_only: bool,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
}

impl<'a> From<&'a external_workflow::CancelInitiated>
    for RequestCancelExternalWorkflowExecutionInitiated<'a>
{
    fn from(event: &'a external_workflow::CancelInitiated) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            reason: text(&event.reason),
            control: text(&event.control),
            child_workflow_only: event.child_workflow_only,
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
        }
    }
}

/// The request to cancel did not reach the other workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestCancelExternalWorkflowExecutionFailed<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// Why: NotFound or NamespaceNotFound.
    pub cause: Option<Cow<'a, str>>,
    /// What old SDKs carry along.
    pub control: Option<Cow<'a, str>>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
}

impl<'a> From<&'a external_workflow::CancelFailed> for RequestCancelExternalWorkflowExecutionFailed<'a> {
    fn from(event: &'a external_workflow::CancelFailed) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            cause: named::<ExternalFailedCause>(event.cause),
            control: text(&event.control),
            initiated_event_id: event.initiated_event_id,
        }
    }
}

/// The request to cancel has reached the other workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExternalWorkflowExecutionCancelRequested<'a> {
    /// The namespace of the other workflow, by name.
    pub namespace: Cow<'a, str>,
    /// Its Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// Its run; null where its current one is meant.
    pub run_id: Option<Cow<'a, str>>,
    /// Its Initiated event.
    pub initiated_event_id: i64,
}

impl<'a> From<&'a external_workflow::CancelRequested> for ExternalWorkflowExecutionCancelRequested<'a> {
    fn from(event: &'a external_workflow::CancelRequested) -> Self {
        Self {
            namespace: Cow::Borrowed(&event.namespace),
            workflow_id: name(event.workflow_execution.as_ref().map(|run| run.workflow_id.as_str())),
            run_id: text_of(event.workflow_execution.as_ref().map(|run| run.run_id.as_str())),
            initiated_event_id: event.initiated_event_id,
        }
    }
}
