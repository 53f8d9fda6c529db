//! Sights: what the dice have come across. A corner that is never reached is not tested.

use std::collections::BTreeMap;
use std::fmt;

use everlog_engine::api_types::{Initiator, TaskFailedCause};
use everlog_engine::event::Attributes;
use everlog_engine::machine::update::End;
use everlog_engine::{Change, Outcome, Rejection, Reply};

#[derive(Default)]
pub struct Sights {
    pub steps: u64,
    seen: BTreeMap<String, u64>,
}

/// Each of these has to be seen in a million steps.
const CORNERS: &[&str] = &[
    "event WorkflowStarted",
    "event WorkflowCompleted",
    "event WorkflowFailed",
    "event WorkflowTimedOut",
    "event TaskScheduled",
    "event TaskStarted",
    "event TaskCompleted",
    "event TaskTimedOut",
    "event TaskFailed",
    "event ActivityScheduled",
    "event ActivityStarted",
    "event ActivityCompleted",
    "event ActivityFailed",
    "event ActivityTimedOut",
    "event ActivityCancelRequested",
    "event ActivityCanceled",
    "event TimerStarted",
    "event TimerFired",
    "event TimerCanceled",
    "event MarkerRecorded",
    "event WorkflowSignaled",
    "event WorkflowTerminated",
    "event WorkflowCancelRequested",
    "event WorkflowCanceled",
    "event WorkflowContinuedAsNew",
    "event SearchAttributesUpserted",
    "event PropertiesModified",
    "event StartChildInitiated",
    "event StartChildFailed",
    "event ChildStarted",
    "event ChildCompleted",
    "event ChildFailed",
    "event ChildCanceled",
    "event ChildTimedOut",
    "event ChildTerminated",
    "event SignalExternalInitiated",
    "event SignalExternalFailed",
    "event ExternalSignaled",
    "event CancelExternalInitiated",
    "event CancelExternalFailed",
    "event ExternalCancelRequested",
    "cause BadRequestCancelExternalWorkflowExecutionAttributes",
    "cause BadSignalWorkflowExecutionAttributes",
    "cause PendingChildWorkflowsLimitExceeded",
    "cause PendingSignalsLimitExceeded",
    "cause PendingRequestCancelLimitExceeded",
    "event UpdateAccepted",
    "event UpdateCompleted",
    "event OptionsUpdated",
    "event UpdateAdmitted",
    "cause ResetWorkflow",
    "a reset of a closed run",
    "a reset of an open run",
    "an answer to a closed run",
    "cause UnhandledCommand",
    "cause BadScheduleActivityAttributes",
    "cause BadRequestCancelActivityAttributes",
    "cause BadStartTimerAttributes",
    "cause BadCancelTimerAttributes",
    "cause BadRecordMarkerAttributes",
    "cause BadStartChildExecutionAttributes",
    "cause BadSearchAttributes",
    "cause BadModifyWorkflowPropertiesAttributes",
    "cause BadContinueAsNewAttributes",
    "cause BadFailWorkflowExecutionAttributes",
    "cause BadUpdateWorkflowExecutionMessage",
    "cause StartTimerDuplicateId",
    "cause ScheduleActivityDuplicateId",
    "cause PendingActivitiesLimitExceeded",
    "cause ForceCloseCommand",
    "limit Workflow history count exceeds limit.",
    "limit Workflow history size exceeds limit.",
    "limit Workflow mutable state size exceeds limit.",
    "refused AlreadyStarted",
    "refused Busy",
    "refused InvalidArgument",
    "refused NotFound",
    "refused NotReady",
    "refused TooMany",
    "refused TooManyAtOnce",
    "reply Gone",
    "reply sticky task",
    "reply task with a tail",
    "reply next task",
    "reply eager activity",
    "reply eager first task",
    "reply cancel yourself",
    "reply paused",
    "reply reset",
    "event WorkflowPaused",
    "event WorkflowUnpaused",
    "cause WorkflowPauseRequestedBeforeTaskStarted",
    "an activity that is paused",
    "an activity with other options",
    "a buffered event",
    "a buffered event taken back",
    "a close that was attempted",
    "a retry of an activity",
    "a retry of a task that is completed",
    "a run that was deleted",
    "a run that was tried again",
    "a run of a schedule behind another",
    "a run that settled by itself",
    "a run that was left alone",
    "advice to continue as new",
    "a speculative task",
    "a task without a trace",
    "an update with a start",
    "an update found with a start",
    "an update that is found",
    "an update that is rejected",
    "an update that ends with its run",
    "an update that ends with its task",
    "an update that goes over",
];

impl Sights {
    pub fn saw(&mut self, what: &str) {
        match self.seen.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.seen.insert(what.to_owned(), 1)),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        for (what, count) in &other.seen {
            *self.seen.entry(what.clone()).or_default() += count;
        }
    }

    pub fn expect_everything(&self) {
        let missed: Vec<_> = CORNERS.iter().filter(|corner| !self.seen.contains_key(**corner)).collect();
        assert!(missed.is_empty(), "the dice never came across {missed:?}");
    }

    pub fn outcome(&mut self, outcome: &Outcome) {
        self.steps += 1;
        match &outcome.reply {
            Reply::Rejected(Rejection::NotFound(_)) => self.saw("refused NotFound"),
            Reply::Rejected(Rejection::InvalidArgument(why)) => {
                self.saw("refused InvalidArgument");
                if why.starts_with("Workflow ") {
                    self.saw(&format!("limit {why}"));
                }
            }
            Reply::Rejected(Rejection::Busy(_)) => self.saw("refused Busy"),
            Reply::Rejected(Rejection::NotReady(_)) => self.saw("refused NotReady"),
            Reply::Rejected(Rejection::Outdated(_)) => self.saw("refused Outdated"),
            Reply::Rejected(Rejection::TooMany(_)) => self.saw("refused TooMany"),
            Reply::Rejected(Rejection::NamespaceUnknown(_)) => self.saw("refused NamespaceUnknown"),
            Reply::Rejected(Rejection::NamespaceDeleted(_)) => self.saw("refused NamespaceDeleted"),
            Reply::Rejected(Rejection::TooManyAtOnce(_)) => self.saw("refused TooManyAtOnce"),
            Reply::Rejected(Rejection::AlreadyStarted { .. }) => self.saw("refused AlreadyStarted"),
            Reply::Task(grant) if grant.sticky => self.saw("reply sticky task"),
            Reply::Task(grant) if !grant.tail.is_empty() => self.saw("reply task with a tail"),
            Reply::Gone => self.saw("reply Gone"),
            Reply::Completed(completed) => {
                if completed.reset_event_id > 0 {
                    self.saw("a task without a trace");
                }
                if completed.task.is_some() {
                    self.saw("reply next task");
                }
                if !completed.activities.is_empty() {
                    self.saw("reply eager activity");
                }
            }
            Reply::Started(started) if started.update.is_some() => self.saw(match started.started {
                true => "an update with a start",
                false => "an update found with a start",
            }),
            Reply::Update(_) if outcome.steps.is_empty() => self.saw("an update that is found"),
            Reply::Started(started) if started.task.is_some() => self.saw("reply eager first task"),
            Reply::Heartbeat(answer) => {
                let heard = [
                    (answer.cancel_requested, "reply cancel yourself"),
                    (answer.paused, "reply paused"),
                    (answer.reset, "reply reset"),
                ];
                heard.iter().filter(|(is_so, _)| *is_so).for_each(|(_, what)| self.saw(what));
            }
            Reply::Done
            | Reply::Task(_)
            | Reply::Activity(_)
            | Reply::Started(_)
            | Reply::Update(_)
            | Reply::Schedule(_)
            | Reply::ActivityOptions(_)
            | Reply::RunOptions(_) => {}
        }
        if outcome.expired {
            self.saw("a run that was deleted");
        }
        if outcome
            .steps
            .iter()
            .any(|step| matches!(step.changes[..], [Change::ResetTo(..), Change::Transition]))
        {
            self.saw("a reset of a closed run");
        }
        for change in outcome.steps.iter().flat_map(|step| &step.changes) {
            self.change(change);
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Event(event) => match event.attributes.as_ref() {
                Some(what) => {
                    self.saw(&format!("event {}", what.name()));
                    self.event(what);
                }
                None => self.saw("an event without words"),
            },
            Change::Buffered(_) => self.saw("a buffered event"),
            Change::Unbuffered(_) => self.saw("a buffered event taken back"),
            Change::CloseAttempted(true) => self.saw("a close that was attempted"),
            Change::Activity(activity) if activity.pause.is_some() => self.saw("an activity that is paused"),
            Change::Activity(activity) if activity.original.is_some() => {
                self.saw("an activity with other options");
            }
            Change::Activity(activity) if activity.backing_off => self.saw("a retry of an activity"),
            Change::Task(Some(task)) if task.speculative => self.saw("a speculative task"),
            Change::Replaced => self.saw("a reset of an open run"),
            Change::Late(_) => self.saw("an answer to a closed run"),
            Change::UpdateEnded(_, End::Rejected(_)) => self.saw("an update that is rejected"),
            Change::UpdateEnded(_, End::Closed) => self.saw("an update that ends with its run"),
            Change::UpdateEnded(_, End::TaskFailed) => self.saw("an update that ends with its task"),
            Change::UpdateEnded(_, End::Moved(_)) => self.saw("an update that goes over"),
            Change::Activity(_)
            | Change::Update(_)
            | Change::CloseAttempted(false)
            | Change::Flushed
            | Change::Task(_)
            | Change::Sticky(_)
            | Change::TaskDone(_)
            | Change::BackoffOver
            | Change::Signals(_)
            | Change::Successor(_)
            | Change::ResetTo(..)
            | Change::Batch
            | Change::Transition
            | Change::ClosedAt(_)
            | Change::Schedule(_)
            | Change::Properties(_) => {}
        }
    }

    fn event(&mut self, what: &Attributes) {
        match what {
            Attributes::TaskFailed(failed) => match TaskFailedCause::try_from(failed.cause) {
                Ok(cause) => self.saw(&format!("cause {cause:?}")),
                Err(_unknown) => self.saw("cause unknown"),
            },
            Attributes::WorkflowStarted(started) if started.attempt > 1 => {
                self.saw("a run that was tried again");
            }
            Attributes::WorkflowStarted(started)
                if started.initiator == i32::from(Initiator::Cron)
                    && !started.continued_execution_run_id.is_empty() =>
            {
                self.saw("a run of a schedule behind another");
            }
            Attributes::TaskScheduled(scheduled) if scheduled.attempt > 1 => {
                self.saw("a retry of a task that is completed");
            }
            Attributes::TaskStarted(started) if started.suggest_continue_as_new => {
                self.saw("advice to continue as new");
            }
            _other => {}
        }
    }
}

impl fmt::Display for Sights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.seen {
            writeln!(formatter, "{count:>9} {what}")?;
        }
        Ok(())
    }
}
