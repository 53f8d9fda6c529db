//! Endings: what is over with a step. Whoever counts how workflows, tasks and activities end counts these.

use prost::Message;

use crate::api_types::{TaskFailedCause, TimeoutType};
use crate::draft::{Change, Step};
use crate::event::Attributes;
use crate::failure::{Failure, Info};
use crate::machine::activity::Activity;
use crate::run::Run;

/// Something that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A run.
    Workflow(WorkflowEnding),
    /// A workflow task, as its worker or the server says.
    WorkflowTaskFailed(TaskFailedCause),
    /// A workflow task that was not answered, or on a sticky queue not taken, in time.
    WorkflowTaskTimedOut(TimeoutType),
    /// An attempt at an activity that has failed, whether or not there is another.
    ActivityAttemptFailed,
    /// An attempt at an activity that was not taken or not answered in time, whether or not there is another.
    ActivityAttemptTimedOut,
    /// An activity: there is no other attempt.
    Activity(ActivityEnding),
}

/// How a run is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WorkflowEnding {
    Completed,
    Failed,
    TimedOut,
    Canceled,
    Terminated,
    ContinuedAsNew,
}

/// How an activity is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ActivityEnding {
    Completed,
    Failed,
    TimedOut,
    Canceled,
}

impl Step {
    /// What is over with this step; `before` is the run as it stood. Each is told once: what waits in a buffer is told when it is
    /// written, and what a reset copies is not told again.
    pub fn endings(&self, before: Option<&Run>) -> Vec<Ending> {
        let mut endings = Vec::new();
        if self.is_by_reset() {
            return endings;
        }
        for change in &self.changes {
            match change {
                Change::Event(event) => event.attributes.iter().for_each(|fact| written(fact, &mut endings)),
                Change::Activity(next) => {
                    let now = before.and_then(|run| run.activities.get(&next.scheduled_event_id));
                    endings.extend(now.and_then(|now| of_attempt(now, next)));
                }
                _other => {}
            }
        }
        endings.extend(before.and_then(|before| of_task(before, &self.run)));
        endings
    }
}

/// Of an event.
fn written(fact: &Attributes, endings: &mut Vec<Ending>) {
    use Ending::{ActivityAttemptFailed, ActivityAttemptTimedOut, WorkflowTaskFailed, WorkflowTaskTimedOut};
    let ending = match fact {
        Attributes::WorkflowCompleted(_) => Ending::Workflow(WorkflowEnding::Completed),
        Attributes::WorkflowFailed(_) => Ending::Workflow(WorkflowEnding::Failed),
        Attributes::WorkflowTimedOut(_) => Ending::Workflow(WorkflowEnding::TimedOut),
        Attributes::WorkflowCanceled(_) => Ending::Workflow(WorkflowEnding::Canceled),
        Attributes::WorkflowTerminated(_) => Ending::Workflow(WorkflowEnding::Terminated),
        Attributes::WorkflowContinuedAsNew(_) => Ending::Workflow(WorkflowEnding::ContinuedAsNew),
        Attributes::ActivityCompleted(_) => Ending::Activity(ActivityEnding::Completed),
        Attributes::ActivityCanceled(_) => Ending::Activity(ActivityEnding::Canceled),
        Attributes::ActivityFailed(_) => {
            endings.push(ActivityAttemptFailed);
            Ending::Activity(ActivityEnding::Failed)
        }
        Attributes::ActivityTimedOut(_) => {
            endings.push(ActivityAttemptTimedOut);
            Ending::Activity(ActivityEnding::TimedOut)
        }
        // The others are told by `of_task`, for only the first of a row is written.
        Attributes::TaskFailed(failed) if failed.cause == i32::from(TaskFailedCause::UnhandledCommand) => {
            WorkflowTaskFailed(TaskFailedCause::UnhandledCommand)
        }
        Attributes::TaskTimedOut(late) if late.timeout_type() == TimeoutType::ScheduleToStart => {
            WorkflowTaskTimedOut(TimeoutType::ScheduleToStart)
        }
        _other => return,
    };
    endings.push(ending);
}

/// Of an attempt behind which there is another: nothing is written of it.
fn of_attempt(now: &Activity, next: &Activity) -> Option<Ending> {
    let is_over = now.is_started() && !next.is_started() && next.attempt == now.attempt.saturating_add(1);
    let failure = next.last_failure.clone().filter(|_| is_over)?;
    match Failure::decode(failure).unwrap_or_default().info {
        Some(Info::Timeout(_)) => Some(Ending::ActivityAttemptTimedOut),
        _other => Some(Ending::ActivityAttemptFailed),
    }
}

/// Of a workflow task behind which there is another.
fn of_task(before: &Run, now: &Run) -> Option<Ending> {
    let problems = |run: &Run| run.head.task.as_ref().map_or(0, |task| task.problems);
    let task = now.head.task.as_ref().filter(|_| problems(now) > problems(before))?;
    match TaskFailedCause::try_from(task.failed_cause) {
        Ok(TaskFailedCause::Unspecified) => Some(Ending::WorkflowTaskTimedOut(TimeoutType::StartToClose)),
        Ok(cause) => Some(Ending::WorkflowTaskFailed(cause)),
        // One that this release does not know.
        Err(_) => Some(Ending::WorkflowTaskFailed(TaskFailedCause::Unspecified)),
    }
}
