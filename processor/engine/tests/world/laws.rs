//! The laws of one step: what holds of every decision, whatever was asked.

use bytes::Bytes;
use everlog_engine::api_types::{Initiator, Status};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::activity_attempt::Target;
use everlog_engine::machine::reset::Reset;
use everlog_engine::machine::workflow_task::{Task, Token};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::Timestamp;
use everlog_engine::{Change, Outcome, Rejection, Reply, Run, Stamp, Step, TaskGrant, View, apply};
use prost::Message;
use uuid::Uuid;

/// What holds of an outcome as a whole.
pub fn of_outcome(view: &View, input: &RequestRecord, outcome: &Outcome) {
    let empty = outcome.steps.is_empty() && outcome.seen.is_none() && outcome.current.is_none();
    match &outcome.reply {
        Reply::Rejected(rejection) => {
            let completes = matches!(input.request, Some(Request::CompleteTask(_)));
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
        Reply::Done | Reply::Activity(_) | Reply::Heartbeat(_) | Reply::Update(_) | Reply::Schedule(_) => {}
        Reply::ActivityOptions(_) | Reply::RunOptions(_) => {}
    }
    for run in [&view.run, &view.current].into_iter().flatten().filter(|run| !run.is_open()) {
        let steps = outcome.steps.iter().filter(|step| !is_pointed(step));
        let touched = steps.map(|step| &step.run.start.run_id).any(|id| *id == run.start.run_id);
        assert!(!touched, "a closed run was changed");
    }
    let forgot_worker = forgot_worker(outcome);
    if !outcome.steps.is_empty() && !forgot_worker {
        of_authority(view, input);
    }
    match &input.request {
        Some(Request::Reset(order)) if !outcome.steps.is_empty() => of_reset(view, order, outcome),
        _other => of_chain(view, outcome),
    }
}

/// What happens to a closed run: it learns which run a reset has made of it, or that one was made of another run, or what came
/// too late for it.
fn is_pointed(step: &Step) -> bool {
    matches!(
        step.changes.as_slice(),
        [Change::ResetTo(..), Change::Transition] | [Change::Transition] | [Change::Late(_)]
    )
}

/// A run that a reset has made by itself.
fn is_made_by_reset(step: &Step) -> bool {
    step.changes.iter().any(|change| matches!(change, Change::Batch))
}

/// A reset ends the current run, and makes one that begins as the addressed run did, and goes on from a task that failed.
fn of_reset(view: &View, order: &Reset, outcome: &Outcome) {
    let base = view.run.as_ref().expect("a run is reset");
    let current = view.current.as_ref().expect("some run is the current one");
    assert_ne!(current.start.request_id, order.request_id, "a reset was taken twice");
    let (last, others) = outcome.steps.split_last().expect("something happened");
    assert!(is_made_by_reset(last) && !others.iter().any(is_made_by_reset));
    let (start, old) = (&last.run.start, &base.start);
    assert_eq!(outcome.current.as_ref().map(|current| &current.run_id), Some(&start.run_id));
    assert_eq!((&start.first_run_id, &start.former_run_id), (&old.first_run_id, &current.start.run_id));
    assert!(others.iter().all(|step| !step.run.is_open()), "two runs of an id are open");
    let ended = others.iter().any(|step| step.run.start.run_id == current.start.run_id && !is_pointed(step));
    assert_eq!(ended, current.is_open());
    let pointed =
        others.iter().find(|step| step.run.start.run_id == old.run_id).expect("the base learns of it");
    assert_eq!(pointed.run.head.reset_run_id, start.run_id);
    let was = view.past[0].batches.iter().flat_map(|batch| &batch.events);
    let was: Vec<_> = was.filter(|event| event.event_id < order.finish_event_id).collect();
    let mut is = last.events();
    assert!(was.iter().all(|event| is.next() == Some(event)), "a reset changes nothing of what was before");
    let failed = is.find(|event| !matches!(event.attributes, Some(Attributes::TaskStarted(_))));
    let Some(Attributes::TaskFailed(failed)) = failed.and_then(|event| event.attributes.as_ref()) else {
        panic!("the task that a run goes back to fails");
    };
    assert_eq!((&failed.base_run_id, &failed.new_run_id), (&old.run_id, &start.run_id));
    assert!(
        last.run.head.task.as_ref().is_some_and(|task| !task.is_started()),
        "nobody is told of the reset"
    );
}

/// The one thing that a completion does that came too late: the worker no longer counts as having the run.
fn forgot_worker(outcome: &Outcome) -> bool {
    let late = matches!(outcome.reply, Reply::Rejected(Rejection::NotFound(_)));
    let only = |step: &Step| step.changes == [Change::Sticky(None)];
    late && outcome.steps.iter().all(only)
}

/// Only who holds the task, or the attempt, may end it; a repeated request does nothing.
fn of_authority(view: &View, input: &RequestRecord) {
    let order = input.request.as_ref().expect("something was ordered");
    let task = |token: &Option<Token>| {
        let held = view.run.as_ref().and_then(|run| run.started_task()).map(Task::token);
        assert!(token.is_some() && *token == held, "a task was ended by somebody who does not hold it");
    };
    let attempt = |target: &Option<Target>| {
        let target = target.as_ref().expect("somebody is named");
        let open = view.run.iter().flat_map(|run| run.activities.values());
        let meant: Vec<_> = match target.scheduled_event_id {
            0 => open.filter(|activity| activity.activity_id == target.activity_id).collect(),
            id => {
                open.filter(|activity| activity.scheduled_event_id == id && activity.is_started()).collect()
            }
        };
        assert_eq!(meant.len(), 1, "an attempt was ended that is not there");
        // The number of the attempt is another where it was reset meanwhile.
        let held = meant[0].claim == target.claim;
        assert!(
            held || target.scheduled_event_id == 0,
            "an attempt was ended by somebody who does not hold it"
        );
    };
    match order {
        Request::CompleteTask(order) => task(&order.token),
        Request::FailTask(order) => task(&order.token),
        Request::ReleaseTask(order) => task(&order.token),
        Request::CompleteActivity(order) => attempt(&order.target),
        Request::FailActivity(order) => attempt(&order.target),
        Request::CancelActivity(order) => attempt(&order.target),
        Request::HeartbeatActivity(order) => attempt(&order.target),
        Request::ReleaseActivity(order) => attempt(&order.target),
        Request::Update(order) => {
            let run = view.run.as_ref().expect("an update is brought to a run");
            let is_new = view.done.is_empty() && !run.updates.contains_key(&order.update_id);
            assert!(is_new, "an update was taken twice");
        }
        Request::Signal(_) => assert!(view.seen.is_none(), "a signal was taken twice"),
        Request::Start(order) => {
            assert!(order.update.is_some() || view.seen.is_none(), "a start was taken twice");
        }
        Request::Reset(_) => assert!(view.seen.is_none(), "a reset was taken twice"),
        Request::Cancel(_) | Request::Terminate(_) | Request::ClaimTask(_) | Request::ClaimActivity(_) => {}
        Request::FireTimers(_) | Request::ResetSticky(_) | Request::Delete(_) => {}
        Request::ChildOpened(_)
        | Request::BeginChild(_)
        | Request::ChildClosed(_)
        | Request::ExternalAnswered(_) => {}
        Request::CreateSchedule(_)
        | Request::UpdateSchedule(_)
        | Request::PatchSchedule(_)
        | Request::DeleteSchedule(_)
        | Request::ScheduleActionOpened(_)
        | Request::ScheduleActionClosed(_) => {}
        Request::PauseActivity(_)
        | Request::UnpauseActivity(_)
        | Request::ResetActivity(_)
        | Request::UpdateActivityOptions(_)
        | Request::PauseRun(_)
        | Request::UnpauseRun(_)
        | Request::UpdateRunOptions(_) => {}
    }
}

/// A new run follows a closed one, and the Workflow Id means it from then on.
fn of_chain(view: &View, outcome: &Outcome) {
    let known = |step: &&Step| {
        let runs = [&view.run, &view.current].into_iter().flatten();
        runs.map(|run| &run.start.run_id).any(|id| *id == step.run.start.run_id)
    };
    let new: Vec<_> = outcome.steps.iter().filter(|step| !known(step)).collect();
    assert!(new.len() <= 1, "two runs began at once");
    assert_eq!(
        outcome.current.as_ref().map(|current| &current.run_id),
        new.first().map(|step| &step.run.start.run_id)
    );
    let Some(step) = new.first() else { return };
    let start = &step.run.start;
    let closed = outcome.steps.iter().filter(|step| !step.run.is_open()).map(|step| &step.run).next();
    if let Some(before) = closed.filter(|run| !run.head.successor_run_id.is_empty()) {
        assert_eq!(before.head.successor_run_id, start.run_id);
        of_successor(before, step);
        assert_eq!(
            (&before.start.first_run_id, before.start.chain_start_ms),
            (&start.first_run_id, start.chain_start_ms)
        );
        assert_eq!(before.start.execution_expires_ms, start.execution_expires_ms);
    } else {
        assert!(closed.is_none_or(|run| run.head.status != i32::from(Status::ContinuedAsNew)));
        assert_eq!(start.first_run_id, start.run_id);
    }
    assert!(
        view.current.as_ref().is_none_or(|run| !run.is_open()) || closed.is_some(),
        "two runs of an id are open"
    );
}

/// The id of a run tells when it began, and is behind those of all runs that began before it in the same journal.
pub fn of_new_run(latest_run_id: &str, run_id: &str, stamp: &Stamp) {
    let id = Uuid::parse_str(run_id).expect("a run has a UUID");
    assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
    let (seconds, nanos) = id.get_timestamp().expect("it tells the time").to_unix();
    let began_ms = seconds as i64 * 1_000 + i64::from(nanos) / 1_000_000;
    assert_eq!(began_ms, stamp.now_ms.clamp(0, (1 << 48) - 1), "{run_id} began at another time");
    assert!(latest_run_id < run_id, "{run_id} began after {latest_run_id}");
}

/// A run that follows by itself begins like the one before it, and says why it is there.
fn of_successor(before: &Run, step: &Step) {
    let Some(Attributes::WorkflowStarted(started)) =
        step.events().next().and_then(|event| event.attributes.as_ref())
    else {
        panic!("a run begins with its start");
    };
    let status = Status::try_from(before.head.status).expect("a status is one of those that are known");
    assert!(!matches!(status, Status::Canceled | Status::Terminated), "{status:?} ends a chain");
    assert_eq!(started.continued_execution_run_id, before.start.run_id);
    let initiator = Initiator::try_from(started.initiator).expect("somebody who is known");
    let by_itself = matches!(initiator, Initiator::Retry | Initiator::Cron);
    assert_eq!(started.attempt > 1, initiator == Initiator::Retry, "attempts are counted by retries only");
    if status == Status::ContinuedAsNew {
        // A workflow says itself how it goes on.
        return;
    }
    assert!(by_itself, "{initiator:?} after {status:?}");
    if initiator == Initiator::Retry {
        let policy = started.retry_policy.as_ref().expect("a retry has a policy");
        let attempts_max = policy.maximum_attempts;
        assert!(attempts_max == 0 || started.attempt <= attempts_max, "an attempt too many");
        let expires_ms = step.run.start.execution_expires_ms;
        let begins_ms = step.run.start.start_ms + step.run.start.first_task_backoff_ms;
        let is_held_back = step.run.start.first_task_backoff_ms <= 1_000;
        assert!(expires_ms == 0 || begins_ms <= expires_ms || is_held_back, "a retry too late");
    }
    if initiator == Initiator::Cron {
        assert!(!started.cron_schedule.is_empty(), "a run of no schedule");
    }
    assert_eq!(status == Status::Completed, started.continued_failure.is_none());
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

/// How many transitions a step is: none where it changed nothing but what Temporal's server has in memory only.
fn transitions(before: &Run, step: &Step) -> i64 {
    let rests = |run: &Run| run.head.task.as_ref().is_some_and(Task::is_resting);
    let is_silent = |change: &Change| match change {
        Change::Task(task) => rests(before) || task.as_ref().is_none_or(|task| task.speculative),
        Change::Activity(activity) => {
            let then = before.activities.get(&activity.scheduled_event_id);
            let has_waited = then.is_some_and(|then| then.backing_off && then.stamp == activity.stamp);
            has_waited && !activity.backing_off && !activity.is_started()
        }
        Change::Update(_) | Change::UpdateEnded(..) | Change::Sticky(_) | Change::CloseAttempted(_) => true,
        Change::Late(_) | Change::Schedule(_) | Change::Properties(_) | Change::BackoffOver => true,
        _other => false,
    };
    // The signal that this step took; those that waited may be written behind it.
    let mut taken = step.changes.iter().skip_while(|change| !matches!(change, Change::Signals(_)));
    let of_letter = taken.find_map(|change| match change {
        Change::Event(event) | Change::Buffered(event) => match &event.attributes {
            Some(Attributes::WorkflowSignaled(signaled)) => {
                Some(signaled.external_workflow_execution.is_some())
            }
            _other => None,
        },
        _other => None,
    });
    let of_letter = of_letter.unwrap_or_default();
    let mut told = step.changes.iter().filter(|change| !matches!(change, Change::Transition)).peekable();
    // A child that waits hears that its parent knows of it, or a reset of another run finds a closed one, and that is all.
    let is_known = told.peek().is_none() && (before.start.parent.is_some() || !before.is_open());
    match told.all(is_silent) {
        true => i64::from(is_known),
        false if is_made_by_reset(step) || of_letter => 2,
        false => 1,
    }
}

/// What holds of what one record did to one run; `before` is the run as it stood.
pub fn of_step(before: &Run, step: &Step, stamp: &Stamp) {
    assert!(before.is_open() || is_pointed(step), "a closed run was changed");
    assert!(!step.changes.is_empty(), "a step without a change");
    let mut folded = before.clone();
    for change in &step.changes {
        apply(&mut folded, change);
    }
    assert_eq!(folded, *step.run, "the changes do not lead to the state");
    let counted = folded.head.transitions - before.head.transitions;
    assert_eq!(counted, transitions(before, step), "transitions of {:?}", step.changes);
    let has_closed = before.is_open() && !folded.is_open();
    let close_offset = if has_closed { stamp.offset } else { before.head.close_offset };
    assert_eq!(folded.head.close_offset, close_offset, "the run does not know where it was closed");
    for change in &step.changes {
        if let Change::Event(event) | Change::Buffered(event) = change {
            round_trip(event);
            let happened_ms = event.event_time.map_or(i64::MAX, Timestamp::to_ms);
            assert!(happened_ms <= stamp.now_ms, "{} happened in the future", name(event));
        }
    }
    of_events(before, step);
    of_batches(before, step);
    of_attempts(before, step, stamp);
    of_news(before, step);
}

/// What happens is written or waits, never lost; and where a workflow has something to look at, it gets a task.
fn of_news(before: &Run, step: &Step) {
    let mut waiting = before.buffered.len();
    let mut news = false;
    for change in &step.changes {
        match change {
            Change::Buffered(_) => waiting += 1,
            Change::Unbuffered(_) => waiting -= 1,
            Change::Flushed => waiting = 0,
            Change::Event(event) => news |= is_news(event),
            Change::Task(_)
            | Change::Sticky(_)
            | Change::TaskDone(_)
            | Change::Activity(_)
            | Change::BackoffOver
            | Change::CloseAttempted(_)
            | Change::Signals(_)
            | Change::Successor(_)
            | Change::ResetTo(..)
            | Change::Replaced
            | Change::Late(_)
            | Change::Batch
            | Change::Update(_)
            | Change::UpdateEnded(..)
            | Change::Transition
            | Change::ClosedAt(_)
            | Change::Schedule(_)
            | Change::Properties(_) => {}
        }
    }
    assert_eq!(waiting, step.run.buffered.len(), "the run was closed over what it had not seen");
    let asleep = !step.run.is_open() || step.run.is_paused() || step.run.head.backoff_until_ms > 0;
    assert!(!news || asleep || step.run.head.task.is_some(), "something happened and nobody is told");
}

fn is_news(event: &HistoryEvent) -> bool {
    matches!(
        event.attributes,
        Some(
            Attributes::WorkflowSignaled(_)
                | Attributes::WorkflowCancelRequested(_)
                | Attributes::ActivityCompleted(_)
                | Attributes::ActivityFailed(_)
                | Attributes::ActivityTimedOut(_)
                | Attributes::ActivityCanceled(_)
                | Attributes::TimerFired(_)
                | Attributes::StartChildFailed(_)
                | Attributes::ChildStarted(_)
                | Attributes::ChildCompleted(_)
                | Attributes::ChildFailed(_)
                | Attributes::ChildCanceled(_)
                | Attributes::ChildTimedOut(_)
                | Attributes::ChildTerminated(_)
                | Attributes::SignalExternalFailed(_)
                | Attributes::ExternalSignaled(_)
                | Attributes::CancelExternalFailed(_)
                | Attributes::ExternalCancelRequested(_)
        )
    )
}

/// Attempts are counted one by one, and never beyond the policy or the time.
fn of_attempts(before: &Run, step: &Step, stamp: &Stamp) {
    for (id, now) in step.run.activities.iter() {
        let Some(then) = before.activities.get(id) else {
            assert_eq!(now.attempt, 1);
            continue;
        };
        if now.stamp != then.stamp {
            // An operator may begin again, and change what is allowed; but hands nothing out.
            assert!(now.attempt == then.attempt || now.attempt == 1, "an operator has made up an attempt");
            assert_eq!((now.claim, now.started_ms), (then.claim, then.started_ms));
            continue;
        }
        assert!(now.attempt == then.attempt || now.attempt == then.attempt + 1, "an attempt was left out");
        assert!(now.claim == then.claim || then.pause.is_none() || now.claim == 0, "it was paused");
        let attempts_max = now.retry_policy.as_ref().map_or(0, |policy| policy.maximum_attempts);
        // What was paused may be tried once more, and options may have become stricter since.
        let is_free = attempts_max == 0 || now.pause.is_some() || now.stamp != 0;
        assert!(is_free || now.attempt <= attempts_max, "an attempt too many");
        assert!(
            !now.backing_off || now.stamp != 0 || now.expires_ms == 0 || now.scheduled_ms <= now.expires_ms,
            "a retry too late"
        );
        let claimed = now.claim != then.claim && now.is_started();
        let early = then.backing_off || then.scheduled_ms > stamp.now_ms;
        assert!(!claimed || !early, "an attempt was handed out before its time");
    }
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
    if is_made_by_reset(step) {
        // It has many completions, each with its own commands.
        return;
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
            assert!(!is_end_of_started(event) || place == 0, "a batch crosses the end of a started task");
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

fn is_end_of_started(event: &HistoryEvent) -> bool {
    match &event.attributes {
        Some(Attributes::TaskCompleted(_) | Attributes::TaskFailed(_)) => true,
        Some(Attributes::TaskTimedOut(ended)) => ended.started_event_id > 0,
        Some(_) | None => false,
    }
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
        Attributes::StartChildInitiated(child) => Some(child.workflow_task_completed_event_id),
        Attributes::SignalExternalInitiated(sent) => Some(sent.workflow_task_completed_event_id),
        Attributes::CancelExternalInitiated(sent) => Some(sent.workflow_task_completed_event_id),
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
        | Attributes::StartChildFailed(_)
        | Attributes::ChildStarted(_)
        | Attributes::ChildCompleted(_)
        | Attributes::ChildFailed(_)
        | Attributes::ChildCanceled(_)
        | Attributes::ChildTimedOut(_)
        | Attributes::ChildTerminated(_)
        | Attributes::SignalExternalFailed(_)
        | Attributes::ExternalSignaled(_)
        | Attributes::CancelExternalFailed(_)
        | Attributes::ExternalCancelRequested(_)
        | Attributes::TimerFired(_)
        | Attributes::UpdateAdmitted(_)
        | Attributes::UpdateAccepted(_)
        | Attributes::UpdateCompleted(_)
        | Attributes::OptionsUpdated(_)
        | Attributes::WorkflowPaused(_)
        | Attributes::WorkflowUnpaused(_) => None,
    }
}
