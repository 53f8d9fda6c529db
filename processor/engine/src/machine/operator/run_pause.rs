//! A run that an operator has paused: it takes in what comes, and hands out no task.
//!
//! open    --pause-->    paused, and the workflow task that nobody has fails; one that a worker has goes on
//! paused  --unpause-->  open, with a workflow task, and its activities are offered again
//! paused  --close-->    closed: see `close.rs`

use crate::api_types::{Status, TaskFailedCause};
use crate::draft::{Change, Draft};
use crate::event::HistoryEvent;
use crate::level;
use crate::machine::activity::Activity;
use crate::machine::memo_and_search_attributes::change;
use crate::machine::workflow_task::{self, Failed};
use crate::machine::{buffered_events, workflow_task_started};
use crate::outcome::{Rejection, Reply};
use crate::run::Run;
use crate::time::Timestamp;

/// Who fails the task that nobody has.
const IDENTITY: &str = "history-service";
/// Bytes of a reason, an identity and a request id of a pause.
const SAID_BYTES_MAX: usize = 1_000;

/// Request: hand out no task of the run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PauseRun {
    /// Who asks.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// Request: hand out tasks of the run again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UnpauseRun {
    /// Who asks.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// Event: the run was paused.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RunPaused {
    /// Who asked.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// Event: the run was unpaused.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RunUnpaused {
    /// Who asked.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// Who has paused a run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RunPause {
    /// When.
    #[prost(int64, tag = "1")]
    pub paused_ms: i64,
    /// Who.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "4")]
    pub request_id: String,
}

impl Run {
    /// An operator has paused it, and it is open.
    pub fn is_paused(&self) -> bool {
        self.head.status == i32::from(Status::Paused)
    }

    /// Who has paused it, while it is paused.
    pub fn pause(&self) -> Option<&RunPause> {
        self.properties.pause.as_ref().filter(|_| self.is_paused())
    }

    /// The activity waits for a worker, now, and may have one.
    pub fn offers(&self, activity: &Activity) -> bool {
        self.is_open() && !self.is_paused() && activity.is_ready()
    }
}

/// Checks what is said with a pause or its end.
///
/// # Errors
/// What is too long, in Temporal's words.
pub fn check_said(identity: &str, reason: &str, request_id: &str) -> Result<(), String> {
    let said = [("identity", identity), ("reason", reason), ("request id", request_id)];
    match said.iter().find(|(_, text)| text.len() > SAID_BYTES_MAX) {
        Some((what, _)) => Err(format!("{what} is too long.")),
        None => Ok(()),
    }
}

pub(crate) fn pause(draft: &mut Draft<'_>, order: &PauseRun) -> Result<Reply, Rejection> {
    check_level(draft)?;
    if let Some(pause) = draft.run.pause() {
        let is_repeated = !order.request_id.is_empty() && pause.request_id == order.request_id;
        let refusal = || Rejection::NotReady("workflow is already paused.".into());
        return is_repeated.then_some(Reply::Done).ok_or_else(refusal);
    }
    give_up_task(draft);
    let PauseRun { identity, reason, request_id } = order.clone();
    draft.record(RunPaused { identity, reason, request_id });
    bound_buffer(draft);
    Ok(Reply::Done)
}

/// The workflow task that nobody has: there will be another one.
fn give_up_task(draft: &mut Draft<'_>) {
    let waiting = draft.run.head.task.as_ref().filter(|task| !task.is_started());
    let Some(task) = waiting.cloned() else { return };
    if task.written {
        let cause = TaskFailedCause::WorkflowPauseRequestedBeforeTaskStarted;
        let failed = Failed::because(cause, None, IDENTITY);
        draft.emit(Failed { scheduled_event_id: task.scheduled_event_id, ..failed });
    }
    draft.change(Change::Task(None));
}

pub(crate) fn unpause(draft: &mut Draft<'_>, order: &UnpauseRun) -> Result<Reply, Rejection> {
    check_level(draft)?;
    if !draft.run.is_paused() {
        return Err(Rejection::NotReady("workflow is not paused.".into()));
    }
    let UnpauseRun { identity, reason, request_id } = order.clone();
    draft.record(RunUnpaused { identity, reason, request_id });
    offer_activities_again(draft);
    workflow_task::settle(draft);
    // Where the first task waits for its time, updates that were taken before do not.
    workflow_task::settle_updates(draft, false);
    Ok(Reply::Done)
}

fn check_level(draft: &Draft<'_>) -> Result<(), Rejection> {
    match draft.stamp.level < level::OPERATOR_CALLS {
        true => Err(level::below("Operator calls on runs", level::OPERATOR_CALLS, draft.stamp)),
        false => Ok(()),
    }
}

/// What waits is offered under another stamp: an offer from before is void.
pub(crate) fn offer_activities_again(draft: &mut Draft<'_>) {
    let ready: Vec<_> =
        draft.run.activities.values().filter(|activity| activity.is_ready()).cloned().collect();
    for activity in ready {
        let stamp = activity.stamp.wrapping_add(1);
        draft.change(Change::Activity(Box::new(Activity { stamp, ..activity.as_ref().clone() })));
    }
}

/// Too much may have come while a worker has a task.
pub(crate) fn bound_buffer(draft: &mut Draft<'_>) {
    if draft.run.started_task().is_some() && buffered_events::is_full(draft) {
        workflow_task_started::interrupt(draft);
    }
}

pub(crate) fn apply_paused(run: &mut Run, event: &HistoryEvent, paused: &RunPaused) {
    run.head.status = Status::Paused.into();
    let pause = RunPause {
        paused_ms: event.event_time.map_or(0, Timestamp::to_ms),
        identity: paused.identity.clone(),
        reason: paused.reason.clone(),
        request_id: paused.request_id.clone(),
    };
    change(run, |properties| properties.pause = Some(pause));
}

pub(crate) fn apply_unpaused(run: &mut Run) {
    run.head.status = Status::Running.into();
    change(run, |properties| properties.pause = None);
}
