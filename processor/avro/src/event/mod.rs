//! Public events: one record per history event or event of a schedule, in the order of their ids.

mod activity;
mod child;
mod external;
pub(crate) mod fields;
mod options;
mod schedule;
mod task;
mod timer;
mod update;
mod workflow;

use std::borrow::Cow;

use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::payload::UserMetadata;
use everlog_engine::time::Timestamp;
use prost::Message;
use serde::{Deserialize, Serialize};

pub use crate::event::activity::*;
pub use crate::event::child::*;
pub use crate::event::external::*;
pub use crate::event::fields::{Priority, RetryPolicy};
pub use crate::event::options::*;
pub use crate::event::schedule::*;
pub use crate::event::task::*;
pub use crate::event::timer::*;
pub use crate::event::update::*;
pub use crate::event::workflow::*;

use crate::blob::Blob;
use crate::payload::Payload;
use crate::{Bounds, Error, PublicTopic, Writer, codec};

/// Where an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The namespace, by name.
    pub namespace: &'a str,
    /// The Workflow Id.
    pub workflow_id: &'a str,
    /// The run.
    pub run_id: &'a str,
}

/// One event of a workflow's history, or of a schedule. Of the nullable records the one that `type` names is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowEvent<'a> {
    /// The namespace, by name.
    pub namespace: Cow<'a, str>,
    /// The Workflow Id.
    pub workflow_id: Cow<'a, str>,
    /// The run, a UUID.
    pub run_id: Cow<'a, str>,
    /// 1, 2, 3 ... without a gap in each run.
    pub event_id: i64,
    /// What happened, e.g. `WorkflowExecutionStarted`.
    pub r#type: Cow<'a, str>,
    /// When it happened, in ms since 1970-01-01 UTC.
    pub time: i64,
    /// Of a start, a workflow task or an activity: which attempt it is, from 1.
    pub attempt: Option<i32>,
    /// A line about it that the workflow's author gave.
    pub summary: Option<Payload<'a>>,
    /// A page about it that the workflow's author gave.
    pub details: Option<Payload<'a>>,
    /// An SDK that does not know the type may go on.
    pub worker_may_ignore: bool,
    /// What it is connected with, each as Temporal's protobuf `Link`.
    pub links: Vec<Blob>,
    /// Groups that it belongs to, each as Temporal's protobuf.
    pub event_group_markers: Vec<Blob>,
    /// A run began.
    pub workflow_execution_started: Option<Box<WorkflowExecutionStarted<'a>>>,
    /// The workflow returned.
    pub workflow_execution_completed: Option<Box<WorkflowExecutionCompleted<'a>>>,
    /// The workflow failed.
    pub workflow_execution_failed: Option<Box<WorkflowExecutionFailed<'a>>>,
    /// The run took too long.
    pub workflow_execution_timed_out: Option<Box<WorkflowExecutionTimedOut<'a>>>,
    /// The run was ended from outside.
    pub workflow_execution_terminated: Option<Box<WorkflowExecutionTerminated<'a>>>,
    /// The workflow ended as canceled.
    pub workflow_execution_canceled: Option<Box<WorkflowExecutionCanceled<'a>>>,
    /// The workflow goes on in a new run.
    pub workflow_execution_continued_as_new: Option<Box<WorkflowExecutionContinuedAsNew<'a>>>,
    /// A signal came.
    pub workflow_execution_signaled: Option<Box<WorkflowExecutionSignaled<'a>>>,
    /// Somebody asked for the cancellation.
    pub workflow_execution_cancel_requested: Option<Box<WorkflowExecutionCancelRequested<'a>>>,
    /// Search attributes were changed.
    pub upsert_workflow_search_attributes: Option<Box<UpsertWorkflowSearchAttributes<'a>>>,
    /// The memo was changed.
    pub workflow_properties_modified: Option<Box<WorkflowPropertiesModified<'a>>>,
    /// A workflow task was put on a queue.
    pub workflow_task_scheduled: Option<Box<WorkflowTaskScheduled<'a>>>,
    /// A worker got the workflow task.
    pub workflow_task_started: Option<Box<WorkflowTaskStarted<'a>>>,
    /// The worker answered the workflow task.
    pub workflow_task_completed: Option<Box<WorkflowTaskCompleted<'a>>>,
    /// No worker came for the workflow task, or none answered, in time.
    pub workflow_task_timed_out: Option<Box<WorkflowTaskTimedOut<'a>>>,
    /// The workflow task failed; it is tried again.
    pub workflow_task_failed: Option<Box<WorkflowTaskFailed<'a>>>,
    /// An activity was scheduled.
    pub activity_task_scheduled: Option<Box<ActivityTaskScheduled<'a>>>,
    /// The last attempt at the activity was started; written when the activity ends.
    pub activity_task_started: Option<Box<ActivityTaskStarted<'a>>>,
    /// The activity returned.
    pub activity_task_completed: Option<Box<ActivityTaskCompleted<'a>>>,
    /// The activity failed for good.
    pub activity_task_failed: Option<Box<ActivityTaskFailed<'a>>>,
    /// A deadline of the activity passed, for good.
    pub activity_task_timed_out: Option<Box<ActivityTaskTimedOut<'a>>>,
    /// The workflow asked for the cancellation of an activity.
    pub activity_task_cancel_requested: Option<Box<ActivityTaskCancelRequested>>,
    /// The activity ended as canceled.
    pub activity_task_canceled: Option<Box<ActivityTaskCanceled<'a>>>,
    /// A timer was started.
    pub timer_started: Option<Box<TimerStarted<'a>>>,
    /// A timer fired.
    pub timer_fired: Option<Box<TimerFired<'a>>>,
    /// A timer was canceled before the workflow saw it fire.
    pub timer_canceled: Option<Box<TimerCanceled<'a>>>,
    /// A result of workflow code that a replay reads back: a side effect, a local activity, a version.
    pub marker_recorded: Option<Box<MarkerRecorded<'a>>>,
    /// A child is to be started.
    pub start_child_workflow_execution_initiated: Option<Box<StartChildWorkflowExecutionInitiated<'a>>>,
    /// A child could not be started.
    pub start_child_workflow_execution_failed: Option<Box<StartChildWorkflowExecutionFailed<'a>>>,
    /// A child is there.
    pub child_workflow_execution_started: Option<Box<ChildWorkflowExecutionStarted<'a>>>,
    /// A child returned.
    pub child_workflow_execution_completed: Option<Box<ChildWorkflowExecutionCompleted<'a>>>,
    /// A child failed.
    pub child_workflow_execution_failed: Option<Box<ChildWorkflowExecutionFailed<'a>>>,
    /// A child ended as canceled.
    pub child_workflow_execution_canceled: Option<Box<ChildWorkflowExecutionCanceled<'a>>>,
    /// A child took too long.
    pub child_workflow_execution_timed_out: Option<Box<ChildWorkflowExecutionTimedOut<'a>>>,
    /// A child was ended from outside.
    pub child_workflow_execution_terminated: Option<Box<ChildWorkflowExecutionTerminated<'a>>>,
    /// A signal is on its way to another workflow.
    pub signal_external_workflow_execution_initiated:
        Option<Box<SignalExternalWorkflowExecutionInitiated<'a>>>,
    /// The signal did not reach the other workflow.
    pub signal_external_workflow_execution_failed: Option<Box<SignalExternalWorkflowExecutionFailed<'a>>>,
    /// The signal has reached the other workflow.
    pub external_workflow_execution_signaled: Option<Box<ExternalWorkflowExecutionSignaled<'a>>>,
    /// A request to cancel is on its way to another workflow.
    pub request_cancel_external_workflow_execution_initiated:
        Option<Box<RequestCancelExternalWorkflowExecutionInitiated<'a>>>,
    /// The request to cancel did not reach the other workflow.
    pub request_cancel_external_workflow_execution_failed:
        Option<Box<RequestCancelExternalWorkflowExecutionFailed<'a>>>,
    /// The request to cancel has reached the other workflow.
    pub external_workflow_execution_cancel_requested:
        Option<Box<ExternalWorkflowExecutionCancelRequested<'a>>>,
    /// A worker took an update.
    pub workflow_execution_update_accepted: Option<Box<WorkflowExecutionUpdateAccepted<'a>>>,
    /// A worker answered an update.
    pub workflow_execution_update_completed: Option<Box<WorkflowExecutionUpdateCompleted<'a>>>,
    /// Options of the run were changed.
    pub workflow_execution_options_updated: Option<Box<WorkflowExecutionOptionsUpdated<'a>>>,
    /// An update that was accepted before a reset waits for the worker's word again.
    pub workflow_execution_update_admitted: Option<Box<WorkflowExecutionUpdateAdmitted<'a>>>,
    /// The run was paused: workers get no task of it.
    pub workflow_execution_paused: Option<Box<WorkflowExecutionPaused<'a>>>,
    /// The run was unpaused: workers get its tasks again.
    pub workflow_execution_unpaused: Option<Box<WorkflowExecutionUnpaused<'a>>>,
    /// Of a schedule's event: the schedule's id.
    pub schedule_id: Option<Cow<'a, str>>,
    /// A schedule was made.
    pub schedule_created: Option<Box<ScheduleCreated<'a>>>,
    /// What a schedule is to do was replaced.
    pub schedule_updated: Option<Box<ScheduleUpdated<'a>>>,
    /// An action of a schedule was started.
    pub schedule_fired: Option<Box<ScheduleFired<'a>>>,
    /// An action of a schedule was dropped.
    pub schedule_skipped: Option<Box<ScheduleSkipped<'a>>>,
    /// Times of a schedule were too late.
    pub schedule_missed: Option<Box<ScheduleMissed>>,
    /// A schedule was paused.
    pub schedule_paused: Option<Box<SchedulePaused<'a>>>,
    /// A schedule was unpaused.
    pub schedule_unpaused: Option<Box<ScheduleUnpaused<'a>>>,
    /// A schedule is gone.
    pub schedule_closed: Option<Box<ScheduleClosed<'a>>>,
}

/// The event's type as the world names it: Temporal's name.
pub fn type_name(attributes: &Attributes) -> &'static str {
    match attributes {
        Attributes::WorkflowStarted(_) => "WorkflowExecutionStarted",
        Attributes::WorkflowCompleted(_) => "WorkflowExecutionCompleted",
        Attributes::WorkflowFailed(_) => "WorkflowExecutionFailed",
        Attributes::WorkflowTimedOut(_) => "WorkflowExecutionTimedOut",
        Attributes::WorkflowTerminated(_) => "WorkflowExecutionTerminated",
        Attributes::WorkflowCanceled(_) => "WorkflowExecutionCanceled",
        Attributes::WorkflowContinuedAsNew(_) => "WorkflowExecutionContinuedAsNew",
        Attributes::WorkflowSignaled(_) => "WorkflowExecutionSignaled",
        Attributes::WorkflowCancelRequested(_) => "WorkflowExecutionCancelRequested",
        Attributes::SearchAttributesUpserted(_) => "UpsertWorkflowSearchAttributes",
        Attributes::PropertiesModified(_) => "WorkflowPropertiesModified",
        Attributes::TaskScheduled(_) => "WorkflowTaskScheduled",
        Attributes::TaskStarted(_) => "WorkflowTaskStarted",
        Attributes::TaskCompleted(_) => "WorkflowTaskCompleted",
        Attributes::TaskTimedOut(_) => "WorkflowTaskTimedOut",
        Attributes::TaskFailed(_) => "WorkflowTaskFailed",
        Attributes::ActivityScheduled(_) => "ActivityTaskScheduled",
        Attributes::ActivityStarted(_) => "ActivityTaskStarted",
        Attributes::ActivityCompleted(_) => "ActivityTaskCompleted",
        Attributes::ActivityFailed(_) => "ActivityTaskFailed",
        Attributes::ActivityTimedOut(_) => "ActivityTaskTimedOut",
        Attributes::ActivityCancelRequested(_) => "ActivityTaskCancelRequested",
        Attributes::ActivityCanceled(_) => "ActivityTaskCanceled",
        Attributes::TimerStarted(_) => "TimerStarted",
        Attributes::TimerFired(_) => "TimerFired",
        Attributes::TimerCanceled(_) => "TimerCanceled",
        Attributes::MarkerRecorded(_) => "MarkerRecorded",
        Attributes::StartChildInitiated(_) => "StartChildWorkflowExecutionInitiated",
        Attributes::StartChildFailed(_) => "StartChildWorkflowExecutionFailed",
        Attributes::ChildStarted(_) => "ChildWorkflowExecutionStarted",
        Attributes::ChildCompleted(_) => "ChildWorkflowExecutionCompleted",
        Attributes::ChildFailed(_) => "ChildWorkflowExecutionFailed",
        Attributes::ChildCanceled(_) => "ChildWorkflowExecutionCanceled",
        Attributes::ChildTimedOut(_) => "ChildWorkflowExecutionTimedOut",
        Attributes::ChildTerminated(_) => "ChildWorkflowExecutionTerminated",
        Attributes::SignalExternalInitiated(_) => "SignalExternalWorkflowExecutionInitiated",
        Attributes::SignalExternalFailed(_) => "SignalExternalWorkflowExecutionFailed",
        Attributes::ExternalSignaled(_) => "ExternalWorkflowExecutionSignaled",
        Attributes::CancelExternalInitiated(_) => "RequestCancelExternalWorkflowExecutionInitiated",
        Attributes::CancelExternalFailed(_) => "RequestCancelExternalWorkflowExecutionFailed",
        Attributes::ExternalCancelRequested(_) => "ExternalWorkflowExecutionCancelRequested",
        Attributes::UpdateAccepted(_) => "WorkflowExecutionUpdateAccepted",
        Attributes::UpdateCompleted(_) => "WorkflowExecutionUpdateCompleted",
        Attributes::OptionsUpdated(_) => "WorkflowExecutionOptionsUpdated",
        Attributes::UpdateAdmitted(_) => "WorkflowExecutionUpdateAdmitted",
        Attributes::WorkflowPaused(_) => "WorkflowExecutionPaused",
        Attributes::WorkflowUnpaused(_) => "WorkflowExecutionUnpaused",
    }
}

impl<'a> WorkflowEvent<'a> {
    /// An event of a history as the world reads it.
    pub fn new(origin: &Origin<'a>, event: &'a HistoryEvent) -> Self {
        let metadata = event.user_metadata.as_ref().map(|bytes| UserMetadata::decode(bytes.clone()));
        let (summary, details) = match metadata {
            None => (None, None),
            Some(Ok(UserMetadata { summary, details })) => (
                crate::event::fields::payload(summary.as_ref()),
                crate::event::fields::payload(details.as_ref()),
            ),
            // It is no metadata: nobody but the author can tell what it is.
            Some(Err(_error)) => (crate::event::fields::payload(event.user_metadata.as_ref()), None),
        };
        let blobs = |given: &[bytes::Bytes]| given.iter().map(|bytes| Blob(bytes.clone())).collect();
        let mut record = Self {
            namespace: origin.namespace.into(),
            workflow_id: origin.workflow_id.into(),
            run_id: origin.run_id.into(),
            event_id: event.event_id,
            r#type: event.attributes.as_ref().map(type_name).unwrap_or_default().into(),
            time: event.event_time.map_or(0, Timestamp::to_ms),
            attempt: event.attributes.as_ref().and_then(attempt),
            summary,
            details,
            worker_may_ignore: event.worker_may_ignore,
            links: blobs(&event.links),
            event_group_markers: blobs(&event.event_group_markers),
            ..Self::default()
        };
        if let Some(attributes) = &event.attributes {
            record.fill(attributes);
        }
        record
    }

    fn fill(&mut self, attributes: &'a Attributes) {
        match attributes {
            Attributes::WorkflowStarted(event) => self.workflow_execution_started = boxed(event.as_ref()),
            Attributes::WorkflowCompleted(event) => self.workflow_execution_completed = boxed(event),
            Attributes::WorkflowFailed(event) => self.workflow_execution_failed = boxed(event),
            Attributes::WorkflowTimedOut(event) => self.workflow_execution_timed_out = boxed(event),
            Attributes::WorkflowTerminated(event) => self.workflow_execution_terminated = boxed(event),
            Attributes::WorkflowCanceled(event) => self.workflow_execution_canceled = boxed(event),
            Attributes::WorkflowContinuedAsNew(event) => {
                self.workflow_execution_continued_as_new = boxed(event.as_ref())
            }
            Attributes::WorkflowSignaled(event) => self.workflow_execution_signaled = boxed(event),
            Attributes::WorkflowCancelRequested(event) => {
                self.workflow_execution_cancel_requested = boxed(event)
            }
            Attributes::SearchAttributesUpserted(event) => {
                self.upsert_workflow_search_attributes = boxed(event)
            }
            Attributes::PropertiesModified(event) => self.workflow_properties_modified = boxed(event),
            Attributes::TaskScheduled(event) => self.workflow_task_scheduled = boxed(event),
            Attributes::TaskStarted(event) => self.workflow_task_started = boxed(event),
            Attributes::TaskCompleted(event) => self.workflow_task_completed = boxed(event.as_ref()),
            Attributes::TaskTimedOut(event) => self.workflow_task_timed_out = boxed(event),
            Attributes::TaskFailed(event) => self.workflow_task_failed = boxed(event),
            Attributes::ActivityScheduled(event) => self.activity_task_scheduled = boxed(event.as_ref()),
            Attributes::ActivityStarted(event) => self.activity_task_started = boxed(event),
            Attributes::ActivityCompleted(event) => self.activity_task_completed = boxed(event),
            Attributes::ActivityFailed(event) => self.activity_task_failed = boxed(event),
            Attributes::ActivityTimedOut(event) => self.activity_task_timed_out = boxed(event),
            Attributes::ActivityCancelRequested(event) => self.activity_task_cancel_requested = boxed(event),
            Attributes::ActivityCanceled(event) => self.activity_task_canceled = boxed(event),
            Attributes::TimerStarted(event) => self.timer_started = boxed(event),
            Attributes::TimerFired(event) => self.timer_fired = boxed(event),
            Attributes::TimerCanceled(event) => self.timer_canceled = boxed(event),
            Attributes::MarkerRecorded(event) => self.marker_recorded = boxed(event),
            Attributes::StartChildInitiated(event) => {
                self.start_child_workflow_execution_initiated = boxed(event.as_ref())
            }
            Attributes::StartChildFailed(event) => self.start_child_workflow_execution_failed = boxed(event),
            Attributes::ChildStarted(event) => self.child_workflow_execution_started = boxed(event),
            Attributes::ChildCompleted(event) => self.child_workflow_execution_completed = boxed(event),
            Attributes::ChildFailed(event) => self.child_workflow_execution_failed = boxed(event),
            Attributes::ChildCanceled(event) => self.child_workflow_execution_canceled = boxed(event),
            Attributes::ChildTimedOut(event) => self.child_workflow_execution_timed_out = boxed(event),
            Attributes::ChildTerminated(event) => self.child_workflow_execution_terminated = boxed(event),
            Attributes::SignalExternalInitiated(event) => {
                self.signal_external_workflow_execution_initiated = boxed(event.as_ref())
            }
            Attributes::SignalExternalFailed(event) => {
                self.signal_external_workflow_execution_failed = boxed(event)
            }
            Attributes::ExternalSignaled(event) => self.external_workflow_execution_signaled = boxed(event),
            Attributes::CancelExternalInitiated(event) => {
                self.request_cancel_external_workflow_execution_initiated = boxed(event)
            }
            Attributes::CancelExternalFailed(event) => {
                self.request_cancel_external_workflow_execution_failed = boxed(event)
            }
            Attributes::ExternalCancelRequested(event) => {
                self.external_workflow_execution_cancel_requested = boxed(event)
            }
            Attributes::OptionsUpdated(_)
            | Attributes::WorkflowPaused(_)
            | Attributes::WorkflowUnpaused(_) => self.fill_operator(attributes),
            Attributes::UpdateAdmitted(_)
            | Attributes::UpdateAccepted(_)
            | Attributes::UpdateCompleted(_) => self.fill_update(attributes),
        }
    }

    fn fill_operator(&mut self, attributes: &'a Attributes) {
        match attributes {
            Attributes::OptionsUpdated(event) => self.workflow_execution_options_updated = boxed(event),
            Attributes::WorkflowPaused(event) => self.workflow_execution_paused = boxed(event),
            Attributes::WorkflowUnpaused(event) => self.workflow_execution_unpaused = boxed(event),
            _others_are_filled_elsewhere => {}
        }
    }

    fn fill_update(&mut self, attributes: &'a Attributes) {
        match attributes {
            Attributes::UpdateAdmitted(event) => self.workflow_execution_update_admitted = boxed(event),
            Attributes::UpdateAccepted(event) => self.workflow_execution_update_accepted = boxed(event),
            Attributes::UpdateCompleted(event) => self.workflow_execution_update_completed = boxed(event),
            _no_update => {}
        }
    }

    /// Appends the record to a buffer, ready for the topic.
    ///
    /// # Errors
    /// [`Error::Write`]: a fault of this release.
    pub fn write(&self, schema_id: u32, buffer: &mut Vec<u8>) -> Result<(), Error> {
        codec::write(PublicTopic::Event, schema_id, self, buffer)
    }

    /// Reads a record as the topic holds it, written with `writer`.
    ///
    /// # Errors
    /// [`Error::Frame`], [`Error::Body`].
    pub fn read(writer: &Writer, bytes: &[u8]) -> Result<WorkflowEvent<'static>, Error> {
        codec::read(writer, codec::frame(bytes)?.body, &Bounds::default())
    }
}

fn boxed<'a, A, R: From<&'a A>>(attributes: &'a A) -> Option<Box<R>> {
    Some(Box::new(attributes.into()))
}

fn attempt(attributes: &Attributes) -> Option<i32> {
    let attempt = match attributes {
        Attributes::WorkflowStarted(event) => event.attempt,
        Attributes::TaskScheduled(event) => event.attempt,
        Attributes::ActivityStarted(event) => event.attempt,
        Attributes::WorkflowCompleted(_)
        | Attributes::WorkflowFailed(_)
        | Attributes::WorkflowTimedOut(_)
        | Attributes::WorkflowTerminated(_)
        | Attributes::WorkflowCanceled(_)
        | Attributes::WorkflowContinuedAsNew(_)
        | Attributes::WorkflowSignaled(_)
        | Attributes::WorkflowCancelRequested(_)
        | Attributes::SearchAttributesUpserted(_)
        | Attributes::PropertiesModified(_)
        | Attributes::TaskStarted(_)
        | Attributes::TaskCompleted(_)
        | Attributes::TaskTimedOut(_)
        | Attributes::TaskFailed(_)
        | Attributes::ActivityScheduled(_)
        | Attributes::ActivityCompleted(_)
        | Attributes::ActivityFailed(_)
        | Attributes::ActivityTimedOut(_)
        | Attributes::ActivityCancelRequested(_)
        | Attributes::ActivityCanceled(_)
        | Attributes::TimerStarted(_)
        | Attributes::TimerFired(_)
        | Attributes::TimerCanceled(_)
        | Attributes::MarkerRecorded(_)
        | Attributes::StartChildInitiated(_)
        | Attributes::StartChildFailed(_)
        | Attributes::ChildStarted(_)
        | Attributes::ChildCompleted(_)
        | Attributes::ChildFailed(_)
        | Attributes::ChildCanceled(_)
        | Attributes::ChildTimedOut(_)
        | Attributes::ChildTerminated(_)
        | Attributes::SignalExternalInitiated(_)
        | Attributes::SignalExternalFailed(_)
        | Attributes::ExternalSignaled(_)
        | Attributes::CancelExternalInitiated(_)
        | Attributes::CancelExternalFailed(_)
        | Attributes::ExternalCancelRequested(_)
        | Attributes::UpdateAdmitted(_)
        | Attributes::UpdateAccepted(_)
        | Attributes::UpdateCompleted(_)
        | Attributes::OptionsUpdated(_)
        | Attributes::WorkflowPaused(_)
        | Attributes::WorkflowUnpaused(_) => 0,
    };
    (attempt != 0).then_some(attempt)
}
