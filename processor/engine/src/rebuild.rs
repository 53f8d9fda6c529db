//! A run's state made again from its history: what a reset begins with.
//!
//! An event changes the state by itself ([`crate::apply`]); what a machine changes silently next to an event it writes is
//! said here a second time, by [`implied`]. No history holds: who has the run in a cache, the claims under which tasks are
//! in workers' hands, attempts at activities that go on, and what they reported; tasks whose events are not written, and how many of
//! them have failed in a row; where in the journal the run was closed;
//! what became of updates that nobody has accepted, and the numbers of updates; signals' request ids; how many steps there were; whether an
//! answer of another workflow that stands behind a task had come before it was completed, and so whether its build's point is resettable.

use crate::draft::{Change, apply};
use crate::event::{Attributes, History, HistoryEvent};
use crate::machine::activity::{self, Activity};
use crate::machine::workflow_task::Task;
use crate::run::{Run, Start};
use crate::time::{Timestamp, span_ms};

/// The state behind all of these events: batches of a history from its first event on.
pub fn rebuild(start: Start, batches: &[History]) -> Run {
    let mut run = Run::begin(start);
    for batch in batches {
        let batch_event_id = batch.events.first().map_or(0, |event| event.event_id);
        for event in &batch.events {
            apply(&mut run, &Change::Event(Box::new(event.clone())));
            for change in implied(&run, batch_event_id, event) {
                apply(&mut run, &change);
            }
        }
    }
    run
}

/// What changed along with an event that the run has taken already.
pub(crate) fn implied(run: &Run, batch_event_id: i64, event: &HistoryEvent) -> Vec<Change> {
    let Some(attributes) = &event.attributes else { return Vec::new() };
    match attributes {
        Attributes::TaskScheduled(_)
        | Attributes::TaskStarted(_)
        | Attributes::TaskCompleted(_)
        | Attributes::TaskTimedOut(_)
        | Attributes::TaskFailed(_) => of_task(run, event, attributes),
        Attributes::ActivityScheduled(_)
        | Attributes::ActivityStarted(_)
        | Attributes::ActivityCancelRequested(_) => of_activity(run, batch_event_id, event, attributes),
        Attributes::WorkflowSignaled(_) => vec![Change::Signals(run.head.signals.saturating_add(1))],
        Attributes::WorkflowCompleted(closed) => followed_by(&closed.new_execution_run_id),
        Attributes::WorkflowFailed(closed) => followed_by(&closed.new_execution_run_id),
        Attributes::WorkflowTimedOut(closed) => followed_by(&closed.new_execution_run_id),
        Attributes::WorkflowContinuedAsNew(closed) => followed_by(&closed.new_execution_run_id),
        Attributes::WorkflowStarted(_)
        | Attributes::WorkflowTerminated(_)
        | Attributes::WorkflowCanceled(_)
        | Attributes::WorkflowCancelRequested(_)
        | Attributes::ActivityCompleted(_)
        | Attributes::ActivityFailed(_)
        | Attributes::ActivityTimedOut(_)
        | Attributes::ActivityCanceled(_)
        | Attributes::TimerStarted(_)
        | Attributes::TimerFired(_)
        | Attributes::TimerCanceled(_)
        | Attributes::MarkerRecorded(_)
        | Attributes::CancelExternalInitiated(_)
        | Attributes::CancelExternalFailed(_)
        | Attributes::ExternalCancelRequested(_)
        | Attributes::SignalExternalInitiated(_)
        | Attributes::SignalExternalFailed(_)
        | Attributes::ExternalSignaled(_)
        | Attributes::StartChildInitiated(_)
        | Attributes::StartChildFailed(_)
        | Attributes::ChildStarted(_)
        | Attributes::ChildCompleted(_)
        | Attributes::ChildFailed(_)
        | Attributes::ChildCanceled(_)
        | Attributes::ChildTimedOut(_)
        | Attributes::ChildTerminated(_)
        | Attributes::SearchAttributesUpserted(_)
        | Attributes::PropertiesModified(_)
        | Attributes::UpdateAdmitted(_)
        | Attributes::UpdateAccepted(_)
        | Attributes::UpdateCompleted(_)
        | Attributes::OptionsUpdated(_)
        | Attributes::WorkflowPaused(_)
        | Attributes::WorkflowUnpaused(_) => Vec::new(),
    }
}

fn of_task(run: &Run, event: &HistoryEvent, attributes: &Attributes) -> Vec<Change> {
    let time_ms = event.event_time.map_or(0, Timestamp::to_ms);
    match attributes {
        Attributes::TaskScheduled(scheduled) => {
            let task = Task {
                scheduled_event_id: event.event_id,
                attempt: scheduled.attempt,
                written: true,
                queue: scheduled.task_queue.clone(),
                scheduled_ms: time_ms,
                first_scheduled_ms: time_ms,
                timeout_ms: span_ms(scheduled.start_to_close_timeout),
                ..Task::default()
            };
            let waited = (run.head.backoff_until_ms > 0).then_some(Change::BackoffOver);
            waited.into_iter().chain([Change::Task(Some(Box::new(task)))]).collect()
        }
        Attributes::TaskStarted(started) => {
            let task = Task {
                started_event_id: event.event_id,
                started_ms: time_ms,
                identity: started.identity.clone(),
                request_id: started.request_id.clone(),
                suggest_reasons: started.suggest_continue_as_new_reasons.clone(),
                history_bytes: started.history_size_bytes,
                ..run.head.task.clone().unwrap_or_default()
            };
            vec![Change::Task(Some(Box::new(task)))]
        }
        Attributes::TaskCompleted(completed) => {
            vec![Change::Task(None), Change::TaskDone(completed.started_event_id)]
        }
        _ended => vec![Change::Task(None)],
    }
}

fn of_activity(run: &Run, batch_event_id: i64, event: &HistoryEvent, attributes: &Attributes) -> Vec<Change> {
    let time_ms = event.event_time.map_or(0, Timestamp::to_ms);
    match attributes {
        Attributes::ActivityScheduled(scheduled) => {
            let opened = activity::opened(scheduled, time_ms, batch_event_id);
            vec![Change::Activity(Box::new(Activity { scheduled_event_id: event.event_id, ..opened }))]
        }
        Attributes::ActivityStarted(started) => changed(run, started.scheduled_event_id, |activity| {
            activity.attempt = started.attempt;
            activity.started_ms = time_ms;
            activity.identity.clone_from(&started.identity);
            activity.request_id.clone_from(&started.request_id);
            activity.last_failure.clone_from(&started.last_failure);
        }),
        Attributes::ActivityCancelRequested(requested) => {
            changed(run, requested.scheduled_event_id, |activity| {
                activity.cancel_requested_event_id = event.event_id;
            })
        }
        _ended => Vec::new(),
    }
}

/// An open activity with something else in it; nothing of one that is not open.
fn changed(run: &Run, scheduled_event_id: i64, how: impl FnOnce(&mut Activity)) -> Vec<Change> {
    let Some(activity) = run.activities.get(&scheduled_event_id) else { return Vec::new() };
    let mut activity = activity.as_ref().clone();
    how(&mut activity);
    vec![Change::Activity(Box::new(activity))]
}

fn followed_by(run_id: &str) -> Vec<Change> {
    if run_id.is_empty() { Vec::new() } else { vec![Change::Successor(run_id.to_owned())] }
}
