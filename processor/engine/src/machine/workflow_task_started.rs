//! A turn: a workflow task in a worker's hand, from the claim to its end.
//!
//! scheduled  --claim-->          started
//! started    --complete-->       (none): see `workflow_task_completed.rs`
//! started    --fail, time out--> scheduled, as the next attempt (the first failure is written, later ones are not); behind a
//!                                row of time-outs it rests first
//! started    --release-->        scheduled: nobody got it
//! started    --interrupt-->      scheduled: too much happened meanwhile
//! started    --abandon-->        (none): the run is closed from outside

use bytes::Bytes;

use crate::api_types::{SuggestReason, TaskFailedCause, TimeoutType};
use crate::draft::{Change, Draft, Step};
use crate::level;
use crate::machine::workflow_task::{self, Claim, Fail, Failed, Release, Task, Token};
use crate::machine::{buffered_events, close, update};
use crate::outcome::{Rejection, Reply, TaskGrant};
use crate::run::Run;

/// A grant that waits for the end of its step.
pub(crate) struct Grant {
    sticky: bool,
}

impl Grant {
    /// The grant of the run as the step leaves it.
    pub(crate) fn of(self, step: &Step) -> TaskGrant {
        let tail = step.run.head.task.as_ref().map(Task::tail).unwrap_or_default();
        TaskGrant { run: step.run.clone(), sticky: self.sticky, tail }
    }
}

/// Hands the task to a poll, if it is still there. A poll of a sticky queue gets nothing of a run that has left it.
pub(crate) fn claim(draft: &mut Draft<'_>, order: &Claim) -> Option<Grant> {
    let task = draft.run.head.task.as_ref()?;
    let same = (task.scheduled_event_id, task.attempt, task.stamp)
        == (order.scheduled_event_id, order.attempt, order.stamp);
    let left = order.sticky && draft.run.head.sticky.is_none();
    if !same || left || task.is_started() || task.is_resting() {
        return None;
    }
    Some(start(draft, order.sticky, &order.identity, &order.poll_id))
}

/// Hands the pending task to whoever made this very record. A worker that completed a task has the run in its cache.
pub(crate) fn start_at_once(draft: &mut Draft<'_>, identity: &str, sticky: bool) -> Grant {
    let poll_id = draft.stamp.id(3);
    start(draft, sticky, identity, &poll_id)
}

fn start(draft: &mut Draft<'_>, sticky: bool, identity: &str, poll_id: &str) -> Grant {
    if !sticky && draft.run.head.sticky.is_some() {
        draft.change(Change::Sticky(None));
    }
    let mut task = draft.run.head.task.clone().unwrap_or_default();
    // Before anything is written: a Scheduled event that has to be written first does not count.
    task.history_bytes = draft.run.head.history_bytes;
    task.suggest_reasons = suggest_reasons(draft);
    if !task.written && task.scheduled_event_id != draft.run.head.next_event_id {
        task.attempt = 1;
        task.written = true;
        task.timeout_ms = workflow_task::timeout_ms(draft, 1);
        task.scheduled_event_id = draft.emit(task.scheduled());
    }
    task.rest_until_ms = 0;
    task.started_ms = draft.now_ms();
    task.claim = draft.stamp.claim();
    identity.clone_into(&mut task.identity);
    poll_id.clone_into(&mut task.request_id);
    task.updates_given = draft.run.head.updates_admitted;
    if !sticky {
        task.updates_held = 0;
    }
    task.started_event_id =
        if task.written { draft.emit(task.started()) } else { task.scheduled_event_id.saturating_add(1) };
    draft.change(Change::Task(Some(Box::new(task))));
    Grant { sticky }
}

/// Why the worker is advised to continue as new; the Started event itself counts, where its Scheduled event stands.
fn suggest_reasons(draft: &Draft<'_>) -> Vec<i32> {
    let head = &draft.run.head;
    let too_large = head.history_bytes >= draft.settings.suggest_bytes;
    let too_many = head.next_event_id >= draft.settings.suggest_events;
    let reasons = [
        (too_large, SuggestReason::HistorySizeTooLarge),
        (too_many, SuggestReason::TooManyHistoryEvents),
        (update::are_many(draft), SuggestReason::TooManyUpdates),
    ];
    reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason.into()).collect()
}

/// The started task that a token names.
pub(crate) fn started<'a>(run: &'a Run, token: Option<&Token>) -> Result<&'a Task, Rejection> {
    let gone = || Rejection::NotFound("Workflow task not found.".into());
    let token = token.ok_or_else(gone)?;
    run.started_task().filter(|task| task.token() == *token).ok_or_else(gone)
}

/// The worker says that it could not do the task. A repeated failure is taken and not written; the next attempt is there at
/// once, as it is at Temporal's server. Workers keep from spinning by not reporting what they have reported before.
/// Updates that went along with the task stay, and go along with the next attempt: the code may be mended by then.
pub(crate) fn fail(draft: &mut Draft<'_>, order: &Fail) -> Result<Reply, Rejection> {
    started(&draft.run, order.token.as_ref())?;
    if order.cause == i32::from(TaskFailedCause::GrpcMessageTooLarge) {
        close::terminate(draft, "GrpcMessageTooLarge", None, "history-service");
    } else {
        let failed = Failed {
            cause: order.cause,
            failure: order.failure.clone(),
            identity: order.identity.clone(),
            binary_checksum: order.binary_checksum.clone(),
            worker_version: order.worker_version.clone(),
            ..Failed::default()
        };
        fail_started(draft, failed);
        if order.cause == i32::from(TaskFailedCause::UnhandledCommand) {
            draft.change(Change::CloseAttempted(true));
        }
    }
    Ok(Reply::Done)
}

/// Ends the started task as failed and schedules the next attempt.
pub(crate) fn fail_started(draft: &mut Draft<'_>, failed: Failed) {
    let Some(task) = draft.run.started_task().cloned() else { return };
    let problem = Some(failed.cause).filter(|cause| *cause != i32::from(TaskFailedCause::UnhandledCommand));
    fail_for_good(draft, failed);
    try_again(draft, &task, 0, problem);
}

/// Ends the started task as failed; there will be no other.
pub(crate) fn fail_for_good(draft: &mut Draft<'_>, failed: Failed) {
    workflow_task::make_normal(draft);
    let Some(task) = draft.run.started_task() else { return };
    if task.written {
        let failed = Failed {
            scheduled_event_id: task.scheduled_event_id,
            started_event_id: task.started_event_id,
            ..failed
        };
        draft.emit(failed);
    }
    end(draft);
}

/// The started task took too long.
pub(crate) fn time_out_started(draft: &mut Draft<'_>) {
    workflow_task::make_normal(draft);
    let Some(task) = draft.run.started_task().cloned() else { return };
    if task.written {
        draft.emit(task.timed_out(TimeoutType::StartToClose));
    }
    // A worker that had the run in its cache may simply be gone.
    let counts = draft.run.head.sticky.is_none() && draft.stamp.level >= level::RESTING_TASKS;
    end(draft);
    let unanswered = task.unanswered.saturating_add(i32::from(counts));
    try_again(draft, &task, unanswered, Some(TaskFailedCause::Unspecified.into()));
}

/// Nobody got the task that was handed out.
pub(crate) fn release(draft: &mut Draft<'_>, order: &Release) -> Result<Reply, Rejection> {
    let task = started(&draft.run, order.token.as_ref())?.clone();
    if task.written {
        draft.emit(task.timed_out(TimeoutType::StartToClose));
    }
    end(draft);
    workflow_task::reset_sticky(draft);
    if task.speculative {
        workflow_task::settle_updates(draft, false);
    } else {
        let Task { attempt, unanswered, problems, failed_cause, .. } = task;
        let next = Task { attempt, unanswered, problems, failed_cause, ..Task::default() };
        workflow_task::schedule_again(draft, next);
    }
    Ok(Reply::Done)
}

/// Takes the task from its worker: more has happened meanwhile than may wait for its end.
pub(crate) fn interrupt(draft: &mut Draft<'_>) {
    let Some(task) = draft.run.started_task().cloned() else { return };
    fail_for_good(draft, Failed::because(TaskFailedCause::ForceCloseCommand, None, "history-service"));
    buffered_events::flush(draft);
    try_again(draft, &task, task.unanswered, None);
}

/// Only a failure on the normal queue counts as an attempt: a sticky worker may simply be gone. Behind so many attempts in a row
/// that were not answered the next one may have to rest. `problem` is what was wrong with the run or its worker, if something was: a
/// [`TaskFailedCause`], unspecified of a time-out.
fn try_again(draft: &mut Draft<'_>, task: &Task, unanswered: i32, problem: Option<i32>) {
    let was_sticky = draft.run.head.sticky.is_some();
    workflow_task::reset_sticky(draft);
    let attempt = if was_sticky { 1 } else { task.attempt.saturating_add(1) };
    let rest_until_ms = workflow_task::rest_until_ms(draft, unanswered);
    let problems = task.problems.saturating_add(i32::from(problem.is_some()));
    let failed_cause = problem.unwrap_or(task.failed_cause);
    let next = Task { attempt, unanswered, rest_until_ms, problems, failed_cause, ..Task::default() };
    workflow_task::schedule_again(draft, next);
}

/// The task is over. Whether its workflow was about to close is not known any more.
pub(crate) fn end(draft: &mut Draft<'_>) {
    draft.change(Change::Task(None));
    if draft.run.head.close_attempted {
        draft.change(Change::CloseAttempted(false));
    }
}

/// Writes Scheduled and Started of a started task that is not written, so that what follows can refer to them.
pub(crate) fn write_started(draft: &mut Draft<'_>, worker_version: Option<Bytes>) {
    let Some(task) = draft.run.started_task().filter(|task| !task.written).cloned() else { return };
    workflow_task::write(draft, task, worker_version);
}

/// Before a run is closed from outside: a started task fails, and what waited for its end is written. A speculative one that
/// nobody has leaves no trace.
pub(crate) fn abandon(draft: &mut Draft<'_>) {
    if draft.run.head.task.as_ref().is_some_and(|task| task.speculative && !task.is_started()) {
        draft.change(Change::Task(None));
    }
    fail_for_good(draft, Failed::because(TaskFailedCause::ForceCloseCommand, None, "history-service"));
    if draft.run.head.task.is_some() {
        draft.change(Change::Task(None));
    }
    buffered_events::flush(draft);
}
