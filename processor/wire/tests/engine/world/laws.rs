//! The laws of one step: what holds of every decision, whatever was asked.

use bytes::Bytes;
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::input::{Input, Order};
use everlog_engine::machine::task::Task;
use everlog_engine::time::Timestamp;
use everlog_engine::{Change, Outcome, Rejection, Reply, Run, Stamp, Step, TaskGrant, View, apply};
use prost::Message;

/// What holds of an outcome as a whole.
pub fn of_outcome(view: &View, input: &Input, outcome: &Outcome) {
    let empty = outcome.steps.is_empty() && outcome.seen.is_none() && outcome.current.is_none();
    match &outcome.reply {
        Reply::Rejected(rejection) => {
            let completes = matches!(input.order, Some(Order::CompleteTask(_)));
            let trace = completes || is_about_limits(rejection);
            assert!(empty || trace, "a rejection left a trace: {rejection:?}");
            assert!(outcome.seen.is_none() && outcome.current.is_none() && !outcome.expired);
        }
        Reply::Gone => assert!(empty && !outcome.expired, "a claim of nothing left a trace"),
        Reply::Task(grant) => of_grant(grant, outcome),
        Reply::Started(started) => {
            if let Some(grant) = started.task.as_deref().filter(|_| !outcome.steps.is_empty()) {
                of_grant(grant, outcome);
            }
        }
        Reply::Completed(completed) => {
            if let Some(grant) = &completed.task {
                of_grant(grant, outcome);
            }
            for grant in &completed.activities {
                assert!(grant.activity.is_started(), "an activity was handed out that is not started");
            }
        }
        Reply::Done | Reply::Activity(_) | Reply::Heartbeat(_) => {}
    }
    for run in [&view.run, &view.current].into_iter().flatten().filter(|run| !run.is_open()) {
        let touched = outcome.steps.iter().any(|step| step.run.start.run_id == run.start.run_id);
        assert!(!touched, "a closed run was changed");
    }
}

fn is_about_limits(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::InvalidArgument(message) if message.ends_with("exceeds limit."))
}

/// A worker that gets a task gets a history that ends with the task's Started event.
fn of_grant(grant: &TaskGrant, outcome: &Outcome) {
    let run = &grant.run;
    assert!(outcome.steps.iter().any(|step| step.run == *run), "the grant is of another state");
    let task = run.started_task().expect("a granted task is started");
    let last = match grant.tail.last() {
        Some(event) => event.event_id,
        None => run.head.next_event_id - 1,
    };
    assert_eq!(last, task.started_event_id, "the history does not end with the task's Started event");
    assert_eq!(grant.tail.is_empty(), task.written, "a tail is shown of what is written, or not shown");
    assert_eq!(grant.tail, Task::tail(task));
}

/// What holds of what one record did to one run; `before` is the run as it stood.
pub fn of_step(before: &Run, step: &Step, stamp: &Stamp) {
    assert!(before.is_open(), "a closed run was changed");
    assert!(!step.changes.is_empty(), "a step without a change");
    let mut folded = before.clone();
    for change in &step.changes {
        apply(&mut folded, change);
    }
    assert_eq!(folded, *step.run, "the changes do not lead to the state");
    assert_eq!(folded.head.transitions, before.head.transitions + 1);
    for change in &step.changes {
        if let Change::Event(event) | Change::Buffered(event) = change {
            round_trip(event);
            let happened_ms = event.event_time.map_or(i64::MAX, Timestamp::to_ms);
            assert!(happened_ms <= stamp.now_ms, "{} happened in the future", name(event));
        }
    }
    of_events(before, step);
    of_batches(before, step);
}

fn round_trip(event: &HistoryEvent) {
    let bytes = Bytes::from(event.encode_to_vec());
    let read = HistoryEvent::decode(bytes.clone()).expect("an event is read as it was written");
    assert_eq!(read, *event);
    assert_eq!(read.encode_to_vec(), bytes);
    let attributes = event.attributes.as_ref().expect("an event says what happened");
    assert_eq!(event.event_type, attributes.event_type());
}

fn of_events(before: &Run, step: &Step) {
    let ids = before.head.next_event_id..;
    for (id, event) in ids.zip(step.events()) {
        assert_eq!(event.event_id, id, "event ids have a gap");
        assert_eq!(event.task_id, id, "task ids grow with event ids");
    }
    let completed: Vec<_> = step.events().filter(|event| is_completion(event)).collect();
    assert!(completed.len() <= 1, "two completions in one step");
    for event in step.events() {
        if let Some(by) = completed_by(event) {
            let completion = completed.first().expect("a command's event stands with its completion");
            assert_eq!(by, completion.event_id, "{} names another completion", name(event));
        }
    }
    let moved = before.head.previous_started_event_id != step.run.head.previous_started_event_id;
    assert_eq!(moved, !completed.is_empty(), "the last completed task moves with completions only");
}

/// Rows of a history begin where somebody begins to read.
fn of_batches(before: &Run, step: &Step) {
    let batches = step.batches();
    let all: Vec<_> = batches.iter().flatten().copied().collect();
    assert_eq!(all, step.events().collect::<Vec<_>>(), "the batches are not the events");
    for batch in &batches {
        for (place, event) in batch.iter().enumerate() {
            assert_eq!(is_completion(event), is_completion(event) && place == 0, "a batch crosses a completion");
            if matches!(event.attributes, Some(Attributes::ActivityScheduled(_)))
                && let Some(activity) = step.run.activities.get(&event.event_id)
            {
                assert_eq!(activity.batch_event_id, batch[0].event_id, "the activity's input is elsewhere");
            }
        }
    }
    for (id, activity) in step.run.activities.iter().filter(|(id, _)| before.activities.contains_key(*id)) {
        assert_eq!(activity.batch_event_id, before.activities[id].batch_event_id);
    }
}

fn is_completion(event: &HistoryEvent) -> bool {
    matches!(event.attributes, Some(Attributes::TaskCompleted(_)))
}

pub fn name(event: &HistoryEvent) -> &'static str {
    event.attributes.as_ref().map_or("nothing", Attributes::name)
}

/// The completion that an event names as its cause.
fn completed_by(event: &HistoryEvent) -> Option<i64> {
    match event.attributes.as_ref()? {
        Attributes::WorkflowCompleted(closed) => Some(closed.workflow_task_completed_event_id),
        Attributes::WorkflowFailed(closed) => Some(closed.workflow_task_completed_event_id),
        Attributes::WorkflowCanceled(closed) => Some(closed.workflow_task_completed_event_id),
        Attributes::WorkflowContinuedAsNew(closed) => Some(closed.workflow_task_completed_event_id),
        Attributes::ActivityScheduled(scheduled) => Some(scheduled.workflow_task_completed_event_id),
        Attributes::ActivityCancelRequested(asked) => Some(asked.workflow_task_completed_event_id),
        Attributes::TimerStarted(started) => Some(started.workflow_task_completed_event_id),
        Attributes::TimerCanceled(canceled) => Some(canceled.workflow_task_completed_event_id),
        Attributes::MarkerRecorded(marker) => Some(marker.workflow_task_completed_event_id),
        Attributes::SearchAttributesUpserted(upserted) => Some(upserted.workflow_task_completed_event_id),
        Attributes::PropertiesModified(modified) => Some(modified.workflow_task_completed_event_id),
        Attributes::WorkflowStarted(_)
        | Attributes::WorkflowTimedOut(_)
        | Attributes::WorkflowTerminated(_)
        | Attributes::WorkflowSignaled(_)
        | Attributes::WorkflowCancelRequested(_)
        | Attributes::TaskScheduled(_)
        | Attributes::TaskStarted(_)
        | Attributes::TaskCompleted(_)
        | Attributes::TaskTimedOut(_)
        | Attributes::TaskFailed(_)
        | Attributes::ActivityStarted(_)
        | Attributes::ActivityCompleted(_)
        | Attributes::ActivityFailed(_)
        | Attributes::ActivityTimedOut(_)
        | Attributes::ActivityCanceled(_)
        | Attributes::TimerFired(_) => None,
    }
}
