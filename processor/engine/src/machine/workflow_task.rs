//! A workflow task: the worker's turn to look at the history and say what comes next.
//!
//! (none)     --schedule-->  scheduled  --claim-->     started
//! scheduled  --time out (sticky queue only), forget the sticky worker-->  scheduled on the normal queue
//! scheduled  --rest is over-->  scheduled, and offered
//! started    --complete, fail, time out, release-->   see `turn.rs`
//!
//! A *transient* task is a second or later attempt: its Scheduled and Started events get ids, are shown to the
//! worker, and are written only when it is completed. Anything new in the history turns it back into a first attempt.
//!
//! A *speculative* task is scheduled for nothing but updates. Its events are written when it fails, times out, or is completed
//! with more than refusals; and as soon as anything else is written, behind them. Else it leaves no trace.

use bytes::Bytes;

use crate::api_types::{
    QueueKind, SuggestReason, TaskFailedCause, TaskQueue, TimeoutType, VersioningBehavior,
};
use crate::draft::{Change, Draft, Extras};
use crate::event::HistoryEvent;
use crate::machine::{buffered_events, update, worker_versioning, workflow_task_started};
use crate::run::Grace;
use crate::time::{Duration, Timestamp};

/// How long a speculative task waits on a normal queue before it becomes one like any other, in ms.
const SPECULATIVE_WAIT_MS: i64 = 5_000;

/// The pending workflow task of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Task {
    /// Its Scheduled event; of a transient task the id that the event would get.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// Its Started event; 0 while nobody has it.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// From 1.
    #[prost(int32, tag = "3")]
    pub attempt: i32,
    /// The Scheduled event stands in the history.
    #[prost(bool, tag = "4")]
    pub written: bool,
    /// The queue that it was put on.
    #[prost(message, optional, tag = "5")]
    pub queue: Option<TaskQueue>,
    /// When it was scheduled.
    #[prost(int64, tag = "6")]
    pub scheduled_ms: i64,
    /// When the first task of an unbroken row of heartbeats was scheduled.
    #[prost(int64, tag = "7")]
    pub first_scheduled_ms: i64,
    /// When a worker got it; 0 while nobody has it.
    #[prost(int64, tag = "8")]
    pub started_ms: i64,
    /// Which claim it was handed out under: the claim's journal offset + 1; 0 while nobody has it.
    #[prost(uint64, tag = "9")]
    pub claim: u64,
    /// How long a worker may have it, in ms, the back-off of a failing task included.
    #[prost(int64, tag = "10")]
    pub timeout_ms: i64,
    /// Who has it.
    #[prost(string, tag = "11")]
    pub identity: String,
    /// The poll that got it.
    #[prost(string, tag = "12")]
    pub request_id: String,
    /// Why the worker is advised to continue as new.
    #[prost(enumeration = "SuggestReason", repeated, tag = "13")]
    pub suggest_reasons: Vec<i32>,
    /// Bytes of history when it was started.
    #[prost(int64, tag = "14")]
    pub history_bytes: i64,
    /// It is there for nothing but updates, and not written.
    #[prost(bool, tag = "15")]
    pub speculative: bool,
    /// Of a started task: its worker has been given the updates up to this number.
    #[prost(int64, tag = "16")]
    pub updates_given: i64,
    /// Up to this number they came with the tasks before it in an unbroken row of heartbeats, each of which came with the answer.
    #[prost(int64, tag = "17")]
    pub updates_held: i64,
    /// Attempts before it, in an unbroken row, that a worker has taken and never answered.
    #[prost(int32, tag = "18")]
    pub unanswered: i32,
    /// Until when it is offered to nobody; 0 = it does not rest.
    #[prost(int64, tag = "19")]
    pub rest_until_ms: i64,
    /// Tasks before it that have failed or timed out in an unbroken row, whatever came meanwhile. Those that failed because more had
    /// come meanwhile count for nothing.
    #[prost(int32, tag = "20")]
    pub problems: i32,
    /// Why the last of them failed; unspecified where it timed out.
    #[prost(enumeration = "TaskFailedCause", tag = "21")]
    pub failed_cause: i32,
    /// Changes when the task takes another turn in its queue: what was offered to workers before is void.
    #[prost(int32, tag = "22")]
    pub stamp: i32,
}

/// The worker that has a run in its cache.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Sticky {
    /// Its private queue.
    #[prost(string, tag = "1")]
    pub queue: String,
    /// How long a task waits there before it goes to the normal queue, in ms.
    #[prost(int64, tag = "2")]
    pub schedule_to_start_ms: i64,
}

/// Which task of a run a worker speaks of.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Token {
    /// Its Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The attempt.
    #[prost(int32, tag = "2")]
    pub attempt: i32,
    /// The claim it was handed out under.
    #[prost(uint64, tag = "3")]
    pub claim: u64,
}

/// Order: hand the scheduled task to a poll.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Claim {
    /// The task.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The attempt.
    #[prost(int32, tag = "2")]
    pub attempt: i32,
    /// The poll is one of the sticky queue that has the run.
    #[prost(bool, tag = "3")]
    pub sticky: bool,
    /// Who polls.
    #[prost(string, tag = "4")]
    pub identity: String,
    /// The poll.
    #[prost(string, tag = "5")]
    pub poll_id: String,
    /// The stamp that the task was offered under.
    #[prost(int32, tag = "6")]
    pub stamp: i32,
}

/// Order: the worker could not do the task.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Fail {
    /// The task.
    #[prost(message, optional, tag = "1")]
    pub token: Option<Token>,
    /// Why.
    #[prost(int32, tag = "2")]
    pub cause: i32,
    /// The failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub failure: Option<Bytes>,
    /// Who says so.
    #[prost(string, tag = "4")]
    pub identity: String,
    /// The worker's binary.
    #[prost(string, tag = "5")]
    pub binary_checksum: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub worker_version: Option<Bytes>,
}

/// Order: a task that was handed out reached nobody.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Release {
    /// The task.
    #[prost(message, optional, tag = "1")]
    pub token: Option<Token>,
}

/// Event: a task was put on a queue.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Scheduled {
    /// The queue.
    #[prost(message, optional, tag = "1")]
    pub task_queue: Option<TaskQueue>,
    /// How long a worker may have it.
    #[prost(message, optional, tag = "2")]
    pub start_to_close_timeout: Option<Duration>,
    /// From 1.
    #[prost(int32, tag = "3")]
    pub attempt: i32,
}

/// Event: a worker got the task.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// Its Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The worker.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// The poll.
    #[prost(string, tag = "3")]
    pub request_id: String,
    /// The worker is advised to continue as new.
    #[prost(bool, tag = "4")]
    pub suggest_continue_as_new: bool,
    /// Bytes of history up to here.
    #[prost(int64, tag = "5")]
    pub history_size_bytes: i64,
    /// The worker's version, of a task whose events were written when it was completed.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub worker_version: Option<Bytes>,
    /// Why the worker is so advised.
    #[prost(enumeration = "SuggestReason", repeated, tag = "8")]
    pub suggest_continue_as_new_reasons: Vec<i32>,
}

/// Event: the worker answered.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Completed {
    /// The task's Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The task's Started event.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// The worker.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// The worker's binary.
    #[prost(string, tag = "4")]
    pub binary_checksum: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub worker_version: Option<Bytes>,
    /// Flags of the SDK that replay needs, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub sdk_metadata: Option<Bytes>,
    /// How the run goes by versions of its workers.
    #[prost(enumeration = "VersioningBehavior", tag = "8")]
    pub versioning_behavior: i32,
    /// The worker's deployment.
    #[prost(string, tag = "10")]
    pub worker_deployment_name: String,
    /// The version of it.
    #[prost(message, optional, tag = "11")]
    pub deployment_version: Option<worker_versioning::Version>,
    /// What the SDK counted, opaque.
    #[prost(bytes = "bytes", optional, tag = "13")]
    pub metering_metadata: Option<Bytes>,
}

/// Event: the worker did not answer, or did not come, in time.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TimedOut {
    /// The task's Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The task's Started event; 0 where nobody came.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// Which deadline passed.
    #[prost(enumeration = "TimeoutType", tag = "3")]
    pub timeout_type: i32,
}

/// Event: the task failed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Failed {
    /// The task's Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The task's Started event.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// Why.
    #[prost(int32, tag = "3")]
    pub cause: i32,
    /// The failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub failure: Option<Bytes>,
    /// Who says so.
    #[prost(string, tag = "5")]
    pub identity: String,
    /// Of a reset: the run whose beginning this one has.
    #[prost(string, tag = "6")]
    pub base_run_id: String,
    /// Of a reset: this run.
    #[prost(string, tag = "7")]
    pub new_run_id: String,
    /// Of a reset: the version of the last event that both have.
    #[prost(int64, tag = "8")]
    pub fork_event_version: i64,
    /// The worker's binary.
    #[prost(string, tag = "9")]
    pub binary_checksum: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub worker_version: Option<Bytes>,
}

impl Failed {
    /// The failure of a task that is still to be named.
    pub(crate) fn because(cause: TaskFailedCause, failure: Option<Bytes>, identity: &str) -> Self {
        Self { cause: cause.into(), failure, identity: identity.into(), ..Self::default() }
    }
}

impl Task {
    /// A worker has it.
    pub fn is_started(&self) -> bool {
        self.started_event_id > 0
    }

    /// It is offered to nobody: a row of attempts was not answered.
    pub fn is_resting(&self) -> bool {
        self.rest_until_ms > 0
    }

    /// What a worker shows to speak of this task.
    pub fn token(&self) -> Token {
        Token { scheduled_event_id: self.scheduled_event_id, attempt: self.attempt, claim: self.claim }
    }

    /// When it times out, in ms; none for one that waits on a normal queue.
    pub(crate) fn deadline_ms(&self, sticky: Option<&Sticky>, grace: Grace) -> Option<i64> {
        if self.is_started() {
            return Some(grace.deadline_ms(self.started_ms, self.timeout_ms));
        }
        if self.is_resting() {
            return Some(self.rest_until_ms);
        }
        let sticky = sticky.filter(|_| self.is_on_sticky_queue());
        let wait_ms = match sticky {
            Some(sticky) => Some(sticky.schedule_to_start_ms),
            None => self.speculative.then_some(SPECULATIVE_WAIT_MS),
        };
        wait_ms.map(|wait_ms| grace.deadline_ms(self.scheduled_ms, wait_ms))
    }

    fn is_on_sticky_queue(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.kind == i32::from(QueueKind::Sticky))
    }

    /// The Scheduled event of this task.
    pub(crate) fn scheduled(&self) -> Scheduled {
        Scheduled {
            task_queue: self.queue.clone(),
            start_to_close_timeout: Some(Duration::from_ms(self.timeout_ms)),
            attempt: self.attempt,
        }
    }

    /// The Started event of this task.
    pub(crate) fn started(&self) -> Started {
        Started {
            scheduled_event_id: self.scheduled_event_id,
            identity: self.identity.clone(),
            request_id: self.request_id.clone(),
            suggest_continue_as_new: !self.suggest_reasons.is_empty(),
            history_size_bytes: self.history_bytes,
            worker_version: None,
            suggest_continue_as_new_reasons: self.suggest_reasons.clone(),
        }
    }

    /// The TimedOut event of this task.
    pub(crate) fn timed_out(&self, timeout_type: TimeoutType) -> TimedOut {
        TimedOut {
            scheduled_event_id: self.scheduled_event_id,
            started_event_id: self.started_event_id,
            timeout_type: timeout_type.into(),
        }
    }

    /// Scheduled and Started of a started transient task, as the worker is shown them.
    pub fn tail(&self) -> Vec<HistoryEvent> {
        if self.written || !self.is_started() {
            return Vec::new();
        }
        let event = |event_id, time_ms, attributes: crate::event::Attributes| HistoryEvent {
            event_id,
            event_time: Some(Timestamp::from_ms(time_ms)),
            event_type: attributes.event_type(),
            task_id: event_id,
            attributes: Some(attributes),
            ..HistoryEvent::default()
        };
        vec![
            event(self.scheduled_event_id, self.scheduled_ms, self.scheduled().into()),
            event(self.started_event_id, self.started_ms, self.started().into()),
        ]
    }
}

/// Puts a task on its queue, unless the run is paused. Buffered events are written before it, and make it a first attempt.
pub(crate) fn schedule(draft: &mut Draft<'_>, attempt: i32) {
    schedule_again(draft, Task { attempt, ..Task::default() });
}

/// [`schedule`], with what the next attempt has from those before it.
pub(crate) fn schedule_again(draft: &mut Draft<'_>, next: Task) {
    let attempt = if buffered_events::flush(draft) { 1 } else { next.attempt };
    if draft.run.is_paused() {
        return;
    }
    put(draft, Task { attempt, written: attempt == 1, first_scheduled_ms: draft.now_ms(), ..next });
}

/// When the next attempt is offered behind a row of attempts that were not answered, in ms; 0 = at once. A worker that cannot even
/// read a task says nothing, and would be given it again and again, in the place of those that it can do.
pub(crate) fn rest_until_ms(draft: &Draft<'_>, unanswered: i32) -> i64 {
    let settings = draft.settings;
    if settings.task_rest_attempts == 0 || unanswered < settings.task_rest_attempts {
        return 0;
    }
    let doublings =
        u32::try_from(unanswered.saturating_sub(settings.task_rest_attempts)).unwrap_or(0).min(30);
    let rest_ms = settings.task_rest_initial_ms.saturating_mul(1 << doublings);
    draft.now_ms().saturating_add(rest_ms.min(settings.task_rest_max_ms))
}

/// A task that rests is offered from now on.
pub(crate) fn end_rest(draft: &mut Draft<'_>) {
    let Some(task) = draft.run.head.task.clone().filter(Task::is_resting) else { return };
    draft.change(Change::Task(Some(Box::new(Task { rest_until_ms: 0, ..task }))));
}

/// [`schedule`], as part of a row of heartbeats that began at `first_scheduled_ms`; the updates up to `updates_held` are in the
/// worker's hands.
pub(crate) fn schedule_since(draft: &mut Draft<'_>, first_scheduled_ms: i64, updates_held: i64) {
    buffered_events::flush(draft);
    if draft.run.is_paused() {
        return;
    }
    put(draft, Task { attempt: 1, written: true, first_scheduled_ms, updates_held, ..Task::default() });
}

/// Updates that no task brings to a worker get one of their own: it does not wait for the time of the first task. That one itself
/// never is one that may leave no trace; nor is one that `is_written`.
pub(crate) fn settle_updates(draft: &mut Draft<'_>, is_written: bool) {
    let head = &draft.run.head;
    let is_paused = draft.run.is_paused();
    if is_paused || !draft.run.is_open() || head.task.is_some() || !update::is_ungiven(&draft.run, 0) {
        return;
    }
    if (is_written || head.previous_started_event_id == 0) && head.backoff_until_ms == 0 {
        return schedule(draft, 1);
    }
    let first_scheduled_ms = draft.now_ms();
    put(draft, Task { attempt: 1, speculative: true, first_scheduled_ms, ..Task::default() });
}

/// Something else is about to be written: a speculative task becomes one like any other, and stands before it.
pub(crate) fn make_normal(draft: &mut Draft<'_>) {
    let Some(task) = draft.run.head.task.as_ref().filter(|task| task.speculative).cloned() else { return };
    write(draft, task, None);
}

/// Writes Scheduled of a task that is not written, and Started if it is started.
pub(crate) fn write(draft: &mut Draft<'_>, mut task: Task, worker_version: Option<Bytes>) {
    if draft.run.head.backoff_until_ms > 0 {
        draft.change(Change::BackoffOver);
    }
    task.scheduled_event_id = draft.emit_at(task.scheduled_ms, task.scheduled().into(), Extras::default());
    if task.is_started() {
        let started = Started { worker_version, ..task.started() };
        task.started_event_id = draft.emit_at(task.started_ms, started.into(), Extras::default());
    }
    task.written = true;
    task.speculative = false;
    draft.change(Change::Task(Some(Box::new(task))));
}

fn put(draft: &mut Draft<'_>, task: Task) {
    let normal = draft.run.start.task_queue.clone();
    let queue = match &draft.run.head.sticky {
        Some(sticky) => {
            TaskQueue { name: sticky.queue.clone(), kind: QueueKind::Sticky.into(), normal_name: normal }
        }
        None => TaskQueue::normal(&normal),
    };
    let mut task = Task {
        scheduled_event_id: draft.run.head.next_event_id,
        queue: Some(queue),
        scheduled_ms: draft.now_ms(),
        timeout_ms: timeout_ms(draft, task.attempt),
        ..task
    };
    if task.written {
        task.scheduled_event_id = draft.emit(task.scheduled());
    }
    draft.change(Change::Task(Some(Box::new(task))));
}

/// How long a worker may have an attempt: a task that keeps failing gets more and more.
pub(crate) fn timeout_ms(draft: &Draft<'_>, attempt: i32) -> i64 {
    let settings = draft.settings;
    let base_ms = draft.run.start.task_timeout_ms;
    if attempt < settings.task_backoff_attempt {
        return base_ms;
    }
    let doublings = u32::try_from(attempt.saturating_sub(settings.task_backoff_attempt)).unwrap_or(0).min(30);
    let backoff_ms = settings.task_backoff_initial_ms.saturating_mul(1 << doublings);
    base_ms.saturating_add(backoff_ms.min(settings.task_backoff_max_ms))
}

/// Sees to it that something new is looked at: bounds the buffer, schedules a task where none is pending.
pub(crate) fn settle(draft: &mut Draft<'_>) {
    if draft.run.started_task().is_some() {
        if buffered_events::is_full(draft) {
            workflow_task_started::interrupt(draft);
        }
    } else if draft.run.is_open()
        && !draft.run.is_paused()
        && draft.run.head.task.is_none()
        && draft.run.head.backoff_until_ms == 0
    {
        schedule(draft, 1);
    }
}

/// The worker that had the run in its cache did not come for the task.
pub(crate) fn time_out_scheduled(draft: &mut Draft<'_>) {
    make_normal(draft);
    let Some(task) = draft.run.head.task.as_ref().filter(|task| !task.is_started()).cloned() else { return };
    if task.written {
        draft.emit(task.timed_out(TimeoutType::ScheduleToStart));
    }
    draft.change(Change::Task(None));
    if draft.run.head.sticky.is_some() {
        draft.change(Change::Sticky(None));
    }
    let Task { attempt, problems, failed_cause, .. } = task;
    schedule_again(draft, Task { attempt, problems, failed_cause, ..Task::default() });
}

/// Forgets the worker that had the run in its cache. A task that waits for it goes to the normal queue.
pub(crate) fn reset_sticky(draft: &mut Draft<'_>) {
    if draft.run.head.sticky.is_none() {
        return;
    }
    draft.change(Change::Sticky(None));
    let waiting = draft.run.head.task.clone().filter(|task| !task.is_started() && task.is_on_sticky_queue());
    if let Some(task) = waiting {
        let queue = Some(TaskQueue::normal(&draft.run.start.task_queue));
        draft.change(Change::Task(Some(Box::new(Task { queue, ..task }))));
    }
}
