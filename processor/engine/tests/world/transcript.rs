//! The transcript: events and replies in words, without ids.

use std::collections::BTreeMap;

use everlog_engine::api_types::{
    ChildFailedCause, Execution, ExternalFailedCause, QueueKind, RetryState, Status, TaskFailedCause,
    TimeoutType,
};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::failure::Info;
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::update::{End, Stage};
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::{Duration, Timestamp, span_ms};
use everlog_engine::{Change, Outcome, Rejection, Reply, Run, Step, TaskGrant};

use super::{EPOCH_MS, Replica, schedules};

/// Names for runs and activities that were seen.
#[derive(Default)]
pub struct Names {
    runs: Vec<String>,
    activities: BTreeMap<(String, i64), String>,
    /// The states that the last told change left.
    states: BTreeMap<(String, i64), Activity>,
}

/// Hours, minutes and seconds since the world began.
pub fn clock(ms: i64) -> String {
    let since_ms = ms - EPOCH_MS;
    let (s, rest) = (since_ms / 1_000, since_ms % 1_000);
    let clock = format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60);
    if rest == 0 { clock } else { format!("{clock}.{rest:03}") }
}

/// An order as it is, less what is empty.
pub fn order(input: &RequestRecord) -> String {
    let run = if input.run_id.is_empty() { String::new() } else { format!("(run {}) ", input.run_id) };
    let order = format!("{:?}", input.request.as_ref().expect("an order says what is ordered"));
    format!("{run}{order}")
}

/// What a letter asks for.
pub fn letter(input: &RequestRecord) -> String {
    match input.request.as_ref().expect("a letter orders something") {
        Request::Start(begin) => format!("start {}", begin.workflow_type),
        Request::Signal(signal) => format!("signal {}", signal.name),
        Request::Cancel(_) => "cancel".into(),
        Request::Terminate(_) => "terminate".into(),
        Request::ChildOpened(opened) if opened.run_id.is_empty() => "the child cannot be".into(),
        Request::ChildOpened(_) => "the child is there".into(),
        Request::BeginChild(_) => "begin".into(),
        Request::ChildClosed(closed) => {
            let status = Status::try_from(closed.status).expect("a status is one of those that are known");
            format!("the child is {status:?}").to_lowercase()
        }
        Request::ExternalAnswered(answered) => match answered.cause {
            0 => "it has arrived".into(),
            _cause => "it has not arrived".into(),
        },
        Request::ScheduleActionOpened(opened) => schedules::opened(opened),
        Request::ScheduleActionClosed(closed) => schedules::closed(closed),
        other => panic!("{other:?} is no letter"),
    }
}

/// A span as people write it.
pub fn span(ms: i64) -> String {
    match ms {
        0 => "0s".into(),
        _ if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        _ if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        _ if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

impl Names {
    /// The lines of an outcome: `<` is remembered, `=` answered, `!` refused.
    pub fn outcome(&mut self, replica: &Replica, outcome: &Outcome) -> Vec<String> {
        let mut lines = Vec::new();
        let mut words = Vec::new();
        for step in &outcome.steps {
            let run = self.run(&step.run.start.run_id);
            if run > 1 && matches!(step.events().next(), Some(event) if event.event_id == 1) {
                words.push(format!("run {run}: {}", self.step(step).join(", ")));
            } else {
                words.extend(self.step(step));
            }
        }
        words.extend(outcome.schedule_events.iter().map(schedules::told));
        if !words.is_empty() {
            lines.push(format!("< {}", words.join(", ")));
        }
        if outcome.expired {
            lines.push("< (the run is deleted)".into());
        }
        lines.extend(self.reply(replica, outcome));
        lines
    }

    fn run(&mut self, run_id: &str) -> usize {
        if let Some(index) = self.runs.iter().position(|known| known == run_id) {
            return index + 1;
        }
        self.runs.push(run_id.into());
        self.runs.len()
    }

    fn reply(&mut self, replica: &Replica, outcome: &Outcome) -> Option<String> {
        match &outcome.reply {
            Reply::Done | Reply::Activity(_) | Reply::Schedule(_) => {
                outcome.steps.is_empty().then(|| "= nothing to do".into())
            }
            Reply::Rejected(rejection) => Some(format!("! {}", self.rejection(rejection))),
            Reply::Started(started) => {
                let found = outcome.steps.iter().all(|step| step.run.start.run_id != started.run_id)
                    || !started.started;
                let known = if started.started { "it is" } else { "there is" };
                let status = format!("{:?}", started.status).to_lowercase();
                let number = self.run(&started.run_id);
                let found = found.then(|| format!("{known} run {number}, {status}"));
                let task = started.task.as_ref().map(|grant| granted(replica, grant));
                let update = started.update.as_ref().filter(|_| outcome.steps.is_empty());
                let update = update.map(|standing| stands(&standing.stage));
                let words: Vec<_> = found.into_iter().chain(task).chain(update).collect();
                (!words.is_empty()).then(|| format!("= {}", words.join(", ")))
            }
            Reply::Task(grant) => Some(format!("= {}", granted(replica, grant))),
            Reply::Update(standing) => {
                outcome.steps.is_empty().then(|| format!("= {}", stands(&standing.stage)))
            }
            Reply::Gone => Some("= gone".into()),
            Reply::Completed(completed) => {
                let next = completed.task.iter().map(|grant| granted(replica, grant));
                let handed = completed.activities.iter().map(|grant| grant.activity.activity_id.clone());
                let back = (completed.reset_event_id > 0)
                    .then(|| format!("back behind event {}", completed.reset_event_id));
                let words: Vec<_> = back.into_iter().chain(next).chain(handed).collect();
                (!words.is_empty()).then(|| format!("= {}", words.join(", ")))
            }
            Reply::Heartbeat(answer) => {
                let heard = [
                    (answer.cancel_requested, "cancel yourself"),
                    (answer.paused, "paused"),
                    (answer.reset, "reset"),
                ];
                let words: Vec<_> = heard.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| *what).collect();
                (!words.is_empty()).then(|| format!("= {}", words.join(", ")))
            }
            Reply::ActivityOptions(_) | Reply::RunOptions(_) => {
                outcome.steps.is_empty().then(|| "= nothing to do".into())
            }
        }
    }

    fn rejection(&mut self, rejection: &Rejection) -> String {
        match rejection {
            Rejection::NotFound(message) => format!("not found: {message}"),
            Rejection::InvalidArgument(message) => format!("invalid: {message}"),
            Rejection::Busy(message) => format!("busy: {message}"),
            Rejection::NotReady(message) => format!("not ready: {message}"),
            Rejection::Outdated(message) => format!("outdated: {message}"),
            Rejection::TooManyAtOnce(message) => format!("too many at once: {message}"),
            Rejection::TooMany(message) => format!("too many: {message}"),
            Rejection::NamespaceUnknown(name) => format!("there is no namespace {name}"),
            Rejection::NamespaceDeleted(_) => "the namespace was deleted".into(),
            Rejection::AlreadyStarted { message, run_id, .. } => {
                let run = format!("run {}", self.run(run_id));
                format!("taken: {}", message.replace(&format!("RunId: {run_id}"), &run))
            }
        }
    }

    fn step(&mut self, step: &Step) -> Vec<String> {
        let run_id = step.run.start.run_id.clone();
        let mut words = Vec::new();
        let mut scheduled = false;
        for change in &step.changes {
            let word = match change {
                Change::Event(event) => {
                    scheduled |= matches!(event.attributes, Some(Attributes::TaskScheduled(_)));
                    Some(self.event(&run_id, event))
                }
                Change::Buffered(event) => Some(format!("(waits: {})", self.event(&run_id, event))),
                Change::Unbuffered(_) => Some("(taken back)".into()),
                Change::Task(Some(task)) => pending(task, scheduled),
                Change::Sticky(Some(sticky)) => Some(format!("(sticky on {})", sticky.queue)),
                Change::Sticky(None) => Some("(not sticky)".into()),
                Change::Activity(activity) => self.activity(&run_id, activity),
                Change::BackoffOver => Some("(the delay is over)".into()),
                Change::CloseAttempted(true) => Some("(about to close)".into()),
                Change::CloseAttempted(false) => Some("(not about to close)".into()),
                Change::Update(update) => Some(format!("(update {} waits)", update.update_id)),
                Change::UpdateEnded(id, end) => Some(format!("(update {id} {})", ended(end))),
                Change::Flushed
                | Change::Task(None)
                | Change::TaskDone(_)
                | Change::Signals(_)
                | Change::Successor(_)
                | Change::ResetTo(..)
                | Change::Replaced
                | Change::Late(_)
                | Change::Batch
                | Change::Transition
                | Change::ClosedAt(_)
                | Change::Properties(_) => None,
                Change::Schedule(schedule) => Some(schedules::stands(schedule)),
            };
            words.extend(word);
        }
        words
    }

    fn activity(&mut self, run_id: &str, now: &Activity) -> Option<String> {
        let key = (run_id.to_owned(), now.scheduled_event_id);
        let id = &now.activity_id;
        let before = self.states.insert(key, now.clone())?;
        if now.stamp != before.stamp {
            Some(operated(&before, now))
        } else if now.attempt > before.attempt && now.backing_off {
            Some(format!("({id}: attempt {} at {})", now.attempt, clock(now.scheduled_ms)))
        } else if now.attempt > before.attempt || (before.backing_off && !now.backing_off) {
            let state = if now.pause.is_some() { "is paused" } else { "is ready" };
            Some(format!("({id}: attempt {} {state})", now.attempt))
        } else if now.claim > before.claim {
            Some(format!("({id} is taken)"))
        } else if now.claim < before.claim {
            Some(format!("({id} waits again)"))
        } else if now.heartbeat_ms > before.heartbeat_ms || now.heartbeat_details != before.heartbeat_details
        {
            Some(format!("({id} lives)"))
        } else {
            None
        }
    }

    fn event(&mut self, run_id: &str, event: &HistoryEvent) -> String {
        let what = event.attributes.as_ref().expect("an event says what happened");
        let of = |id: i64| self.activities.get(&(run_id.to_owned(), id)).cloned().unwrap_or_default();
        match what {
            Attributes::ActivityScheduled(scheduled) => {
                self.activities.insert((run_id.to_owned(), event.event_id), scheduled.activity_id.clone());
                format!("activity.scheduled {}", scheduled.activity_id)
            }
            Attributes::ActivityStarted(started) => {
                let id = of(started.scheduled_event_id);
                format!("activity.started {id}{}", nth(started.attempt))
            }
            Attributes::ActivityCompleted(done) => {
                format!("activity.completed {}", of(done.scheduled_event_id))
            }
            Attributes::ActivityFailed(failed) => {
                format!("activity.failed {} {:?}", of(failed.scheduled_event_id), retry(failed.retry_state))
            }
            Attributes::ActivityTimedOut(out) => {
                let kind = match super::failure_of(out.failure.as_ref()).info {
                    Some(Info::Timeout(timeout)) => timeout.timeout_type,
                    _other => 0,
                };
                let kind = TimeoutType::try_from(kind).expect("a timeout has a type");
                format!(
                    "activity.timed_out {} {kind:?} {:?}",
                    of(out.scheduled_event_id),
                    retry(out.retry_state)
                )
            }
            Attributes::ActivityCancelRequested(asked) => {
                format!("activity.cancel_requested {}", of(asked.scheduled_event_id))
            }
            Attributes::ActivityCanceled(canceled) => {
                format!("activity.canceled {}", of(canceled.scheduled_event_id))
            }
            other => plain(event, other),
        }
    }
}

fn retry(state: i32) -> RetryState {
    RetryState::try_from(state).expect("a retry state is one of those that are known")
}

fn nth(attempt: i32) -> String {
    if attempt > 1 { format!(" attempt {attempt}") } else { String::new() }
}

fn ended(end: &End) -> String {
    match end {
        End::Rejected(outcome) => {
            let read = super::fields_of_outcome(outcome);
            format!("is rejected: {read}")
        }
        End::Closed => "ends with the run".into(),
        End::TaskFailed => "ends with the task".into(),
        End::Moved(_) => "goes over to the next run".into(),
    }
}

fn stands(stage: &Stage) -> String {
    match stage {
        Stage::Admitted => "the update waits".into(),
        Stage::Accepted => "the update is accepted".into(),
        Stage::Completed(outcome) => format!("the update ended: {}", super::fields_of_outcome(outcome)),
        Stage::Done(done) => format!("the update was completed with event {}", done.event_id),
    }
}

/// The words for a task whose events are not written, or that moved.
fn pending(task: &Task, scheduled: bool) -> Option<String> {
    match (task.written, task.is_started()) {
        (false, false) if task.speculative => Some("(speculative task)".into()),
        (false, true) if task.speculative => Some("(speculative task is taken)".into()),
        (false, false) if task.is_resting() => {
            Some(format!("(task attempt {} rests until {})", task.attempt, clock(task.rest_until_ms)))
        }
        (true, false) if task.is_resting() => {
            Some(format!("(the task rests until {})", clock(task.rest_until_ms)))
        }
        (true, false) if !scheduled && task.unanswered > 0 => Some("(the task rests no more)".into()),
        (false, false) => Some(format!("(task attempt {})", task.attempt)),
        (false, true) => Some(format!("(task attempt {} is taken)", task.attempt)),
        (true, false) if !scheduled && task.stamp > 0 => Some("(the task takes another turn)".into()),
        (true, false) if !scheduled => Some("(the task moves to the normal queue)".into()),
        (true, _) => None,
    }
}

fn granted(replica: &Replica, grant: &TaskGrant) -> String {
    let run: &Run = &grant.run;
    let task = run.started_task().expect("a granted task is started");
    let stored = replica.stored(&run.start.run_id).expect("a granted run is known");
    let from = if grant.sticky { run.head.previous_started_event_id + 1 } else { 1 };
    let written = stored.events.last().map_or(0, |event| event.event_id);
    let tail = if grant.tail.is_empty() { String::new() } else { format!(" and {} shown", grant.tail.len()) };
    let sticky = if grant.sticky { "sticky " } else { "" };
    format!("{sticky}task attempt {}, history {from}-{written}{tail}", task.attempt)
}

/// Events that speak for themselves.
fn plain(event: &HistoryEvent, what: &Attributes) -> String {
    match what {
        Attributes::WorkflowStarted(started) => match span_ms(started.first_workflow_task_backoff) {
            0 => format!("workflow.started{}", nth(started.attempt)),
            wait_ms => {
                format!("workflow.started{}, first task in {}", nth(started.attempt), span(wait_ms))
            }
        },
        Attributes::WorkflowCompleted(_) => "workflow.completed".into(),
        Attributes::WorkflowFailed(failed) => format!("workflow.failed {:?}", retry(failed.retry_state)),
        Attributes::WorkflowTimedOut(out) => format!("workflow.timed_out {:?}", retry(out.retry_state)),
        Attributes::WorkflowTerminated(terminated) => {
            format!("workflow.terminated \"{}\"", terminated.reason)
        }
        Attributes::WorkflowCanceled(_) => "workflow.canceled".into(),
        Attributes::WorkflowContinuedAsNew(_) => "workflow.continued_as_new".into(),
        Attributes::WorkflowSignaled(signaled) => format!("workflow.signaled {}", signaled.signal_name),
        Attributes::WorkflowCancelRequested(_) => "workflow.cancel_requested".into(),
        Attributes::TaskScheduled(scheduled) => {
            let queue = scheduled.task_queue.clone().unwrap_or_default();
            let sticky = queue.kind == i32::from(QueueKind::Sticky);
            let on = if sticky { format!(" on {}", queue.name) } else { String::new() };
            format!("task.scheduled{on}{}", nth(scheduled.attempt))
        }
        Attributes::TaskStarted(started) if started.suggest_continue_as_new => {
            "task.started, continue as new is advised".into()
        }
        Attributes::TaskStarted(_) => "task.started".into(),
        Attributes::TaskCompleted(_) => "task.completed".into(),
        Attributes::TaskTimedOut(out) => format!("task.timed_out {:?}", timeout_type(out.timeout_type)),
        Attributes::TaskFailed(failed) => match TaskFailedCause::try_from(failed.cause) {
            Ok(cause) => format!("task.failed {cause:?}"),
            Err(_unknown) => format!("task.failed {}", failed.cause),
        },
        Attributes::TimerStarted(started) => timer(event, &started.timer_id, started.start_to_fire_timeout),
        Attributes::TimerFired(fired) => format!("timer.fired {}", fired.timer_id),
        Attributes::TimerCanceled(canceled) => format!("timer.canceled {}", canceled.timer_id),
        Attributes::MarkerRecorded(marker) => format!("marker.recorded {}", marker.marker_name),
        Attributes::SearchAttributesUpserted(_) => "search_attributes.upserted".into(),
        Attributes::PropertiesModified(_) => "memo.modified".into(),
        Attributes::OptionsUpdated(updated) => options(&updated.attached_request_id),
        Attributes::WorkflowPaused(paused) => format!("workflow.paused {}", paused.reason),
        Attributes::WorkflowUnpaused(unpaused) => format!("workflow.unpaused {}", unpaused.reason),
        Attributes::UpdateAdmitted(_)
        | Attributes::UpdateAccepted(_)
        | Attributes::UpdateCompleted(_)
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
        | Attributes::ExternalCancelRequested(_) => between(what),
        Attributes::ActivityScheduled(_)
        | Attributes::ActivityStarted(_)
        | Attributes::ActivityCompleted(_)
        | Attributes::ActivityFailed(_)
        | Attributes::ActivityTimedOut(_)
        | Attributes::ActivityCancelRequested(_)
        | Attributes::ActivityCanceled(_) => unreachable!("told with the activity's id"),
    }
}

fn timer(event: &HistoryEvent, timer_id: &str, timeout: Option<Duration>) -> String {
    let now_ms = event.event_time.map_or(0, Timestamp::to_ms);
    format!("timer.started {timer_id} due {}", clock(now_ms.saturating_add(span_ms(timeout))))
}

fn options(request_id: &str) -> String {
    match request_id {
        "" => "options.updated".into(),
        id => format!("options.updated by request {id}"),
    }
}

fn timeout_type(given: i32) -> TimeoutType {
    TimeoutType::try_from(given).expect("a timeout has a type")
}

/// Events of updates, and of what passes between workflows.
fn between(what: &Attributes) -> String {
    match what {
        Attributes::UpdateAdmitted(_) => "update.admitted".into(),
        Attributes::UpdateAccepted(accepted) => format!("update.accepted {}", accepted.protocol_instance_id),
        Attributes::UpdateCompleted(completed) => {
            let meta = completed.meta.clone().unwrap_or_default();
            format!("update.completed {}", meta.update_id)
        }
        Attributes::StartChildInitiated(initiated) => format!("child.initiated {}", initiated.workflow_id),
        Attributes::StartChildFailed(failed) => {
            let cause = ChildFailedCause::try_from(failed.cause).expect("a cause is known");
            format!("child.start_failed {} {cause:?}", failed.workflow_id)
        }
        Attributes::ChildStarted(started) => format!("child.started {}", whom(&started.workflow_execution)),
        Attributes::ChildCompleted(closed) => format!("child.completed {}", whom(&closed.workflow_execution)),
        Attributes::ChildFailed(closed) => format!("child.failed {}", whom(&closed.workflow_execution)),
        Attributes::ChildCanceled(closed) => format!("child.canceled {}", whom(&closed.workflow_execution)),
        Attributes::ChildTimedOut(closed) => format!("child.timed_out {}", whom(&closed.workflow_execution)),
        Attributes::ChildTerminated(closed) => {
            format!("child.terminated {}", whom(&closed.workflow_execution))
        }
        Attributes::SignalExternalInitiated(initiated) => {
            format!("external.signal_initiated {}", whom(&initiated.workflow_execution))
        }
        Attributes::SignalExternalFailed(failed) => {
            format!("external.signal_failed {} {:?}", whom(&failed.workflow_execution), cause(failed.cause))
        }
        Attributes::ExternalSignaled(reached) => {
            format!("external.signaled {}", whom(&reached.workflow_execution))
        }
        Attributes::CancelExternalInitiated(initiated) => {
            format!("external.cancel_initiated {}", whom(&initiated.workflow_execution))
        }
        Attributes::CancelExternalFailed(failed) => {
            format!("external.cancel_failed {} {:?}", whom(&failed.workflow_execution), cause(failed.cause))
        }
        Attributes::ExternalCancelRequested(reached) => {
            format!("external.cancel_requested {}", whom(&reached.workflow_execution))
        }
        other => unreachable!("{other:?} is told elsewhere"),
    }
}

fn whom(execution: &Option<Execution>) -> &str {
    execution.as_ref().map_or("nobody", |execution| &execution.workflow_id)
}

fn cause(number: i32) -> ExternalFailedCause {
    ExternalFailedCause::try_from(number).expect("a cause is known")
}

/// What an operator has done to an activity.
fn operated(before: &Activity, now: &Activity) -> String {
    let mut words = Vec::new();
    match (&before.pause, &now.pause) {
        (None, Some(_)) => words.push("paused".to_owned()),
        (Some(_), None) => words.push("unpaused".to_owned()),
        (Some(_), Some(_)) | (None, None) => {}
    }
    if now.attempt != before.attempt {
        words.push(format!("attempt {}", now.attempt));
    }
    if now.is_reset && !before.is_reset {
        words.push("its worker will hear".to_owned());
    }
    if now.options() != before.options() {
        words.push("other options".to_owned());
    }
    if now.heartbeat_details.is_none() && before.heartbeat_details.is_some() {
        words.push("its report forgotten".to_owned());
    }
    match (now.is_started(), now.backing_off) {
        (true, _) => words.push("in hand".to_owned()),
        (false, true) => words.push(format!("at {}", clock(now.scheduled_ms))),
        (false, false) if now.pause.is_none() => words.push("offered".to_owned()),
        (false, false) => {}
    }
    format!("({}: {})", now.activity_id, words.join(", "))
}
