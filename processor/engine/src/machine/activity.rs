//! An activity: work outside the workflow, scheduled once, tried as often as its policy allows, closed once.
//!
//! (none)    --schedule-->        waiting
//! waiting   --claim-->           started
//! started   --complete, fail, time out, cancel-->  (none) + workflow task
//! started   --fail, time out, another attempt allowed-->  waiting, from when the retry is due
//! waiting   --time out, cancel-->  (none) + workflow task
//!
//! Started is written together with the closing event: a history shows one attempt, the last. The attempts
//! themselves are in `activity_attempt.rs`.

use bytes::Bytes;

use crate::api_types::{ActivityType, RetryPolicy, TaskFailedCause as Cause, TaskQueue};
use crate::command::Command;
use crate::draft::{Change, Draft, bytes};
use crate::event::Attributes;
use crate::machine::close::within_size;
use crate::machine::operator::activity_control::ActivityPause;
use crate::machine::operator::activity_options::ActivityOptions;
use crate::machine::workflow_task_completed::{TaskFailure, extras, not_now};
use crate::machine::{buffered_events, command_validation};
use crate::payload;
use crate::retry;
use crate::run::{Grace, Run};
use crate::time::{Duration, span_ms};

/// Command: schedule an activity.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Schedule {
    /// Chosen by the workflow; unique among its open activities.
    #[prost(string, tag = "1")]
    pub activity_id: String,
    /// The activity's type.
    #[prost(message, optional, tag = "2")]
    pub activity_type: Option<ActivityType>,
    /// The queue that its workers poll.
    #[prost(message, optional, tag = "4")]
    pub task_queue: Option<TaskQueue>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub header: Option<Bytes>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub input: Option<Bytes>,
    /// Limit over all attempts.
    #[prost(message, optional, tag = "7")]
    pub schedule_to_close_timeout: Option<Duration>,
    /// How long an attempt may wait for a worker.
    #[prost(message, optional, tag = "8")]
    pub schedule_to_start_timeout: Option<Duration>,
    /// How long an attempt may take.
    #[prost(message, optional, tag = "9")]
    pub start_to_close_timeout: Option<Duration>,
    /// The longest silence of a worker.
    #[prost(message, optional, tag = "10")]
    pub heartbeat_timeout: Option<Duration>,
    /// When to try again.
    #[prost(message, optional, tag = "11")]
    pub retry_policy: Option<RetryPolicy>,
    /// The worker takes it with the answer to the completion.
    #[prost(bool, tag = "12")]
    pub request_eager_execution: bool,
    /// Its workers are to be of the build of the workflow's.
    #[prost(bool, tag = "13")]
    pub use_workflow_build_id: bool,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub priority: Option<Bytes>,
}

/// Command: ask an activity to cancel itself.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RequestCancel {
    /// Its Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
}

/// Event: an activity was scheduled. All durations are present; 0 means none.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scheduled {
    /// Chosen by the workflow.
    #[prost(string, tag = "1")]
    pub activity_id: String,
    /// The activity's type.
    #[prost(message, optional, tag = "2")]
    pub activity_type: Option<ActivityType>,
    /// The queue that its workers poll.
    #[prost(message, optional, tag = "4")]
    pub task_queue: Option<TaskQueue>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub header: Option<Bytes>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub input: Option<Bytes>,
    /// Limit over all attempts.
    #[prost(message, optional, tag = "7")]
    pub schedule_to_close_timeout: Option<Duration>,
    /// How long an attempt may wait for a worker.
    #[prost(message, optional, tag = "8")]
    pub schedule_to_start_timeout: Option<Duration>,
    /// How long an attempt may take.
    #[prost(message, optional, tag = "9")]
    pub start_to_close_timeout: Option<Duration>,
    /// The longest silence of a worker.
    #[prost(message, optional, tag = "10")]
    pub heartbeat_timeout: Option<Duration>,
    /// The task that asked for it.
    #[prost(int64, tag = "11")]
    pub workflow_task_completed_event_id: i64,
    /// The policy in force, defaults filled in.
    #[prost(message, optional, tag = "12")]
    pub retry_policy: Option<RetryPolicy>,
    /// Its workers are to be of the build of the workflow's.
    #[prost(bool, tag = "13")]
    pub use_workflow_build_id: bool,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub priority: Option<Bytes>,
}

/// Event: the last attempt was started.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// The activity.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The worker.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// The poll.
    #[prost(string, tag = "3")]
    pub request_id: String,
    /// From 1.
    #[prost(int32, tag = "4")]
    pub attempt: i32,
    /// Why the attempt before failed, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub last_failure: Option<Bytes>,
}

/// Event: the activity returned.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Completed {
    /// Its result, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub result: Option<Bytes>,
    /// The activity.
    #[prost(int64, tag = "2")]
    pub scheduled_event_id: i64,
    /// Its Started event.
    #[prost(int64, tag = "3")]
    pub started_event_id: i64,
    /// The worker.
    #[prost(string, tag = "4")]
    pub identity: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub worker_version: Option<Bytes>,
}

/// Event: the activity failed for good.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Failed {
    /// The last attempt's failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub failure: Option<Bytes>,
    /// The activity.
    #[prost(int64, tag = "2")]
    pub scheduled_event_id: i64,
    /// Its Started event.
    #[prost(int64, tag = "3")]
    pub started_event_id: i64,
    /// The worker.
    #[prost(string, tag = "4")]
    pub identity: String,
    /// Why there is no other attempt.
    #[prost(enumeration = "crate::api_types::RetryState", tag = "5")]
    pub retry_state: i32,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub worker_version: Option<Bytes>,
    /// Temporal's number of what the worker takes for the cause.
    #[prost(int32, tag = "7")]
    pub cause: i32,
}

/// Event: a deadline of the activity passed, for good.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TimedOut {
    /// Which one, as a failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub failure: Option<Bytes>,
    /// The activity.
    #[prost(int64, tag = "2")]
    pub scheduled_event_id: i64,
    /// Its Started event; 0 where no worker had it.
    #[prost(int64, tag = "3")]
    pub started_event_id: i64,
    /// Why there is no other attempt.
    #[prost(enumeration = "crate::api_types::RetryState", tag = "4")]
    pub retry_state: i32,
}

/// Event: the workflow asked for the cancellation.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelRequested {
    /// The activity.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The task that asked.
    #[prost(int64, tag = "2")]
    pub workflow_task_completed_event_id: i64,
}

/// Event: the activity ended as canceled.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Canceled {
    /// What it had to say, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub details: Option<Bytes>,
    /// The request.
    #[prost(int64, tag = "2")]
    pub latest_cancel_requested_event_id: i64,
    /// The activity.
    #[prost(int64, tag = "3")]
    pub scheduled_event_id: i64,
    /// Its Started event; 0 where no worker had it.
    #[prost(int64, tag = "4")]
    pub started_event_id: i64,
    /// The worker.
    #[prost(string, tag = "5")]
    pub identity: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub worker_version: Option<Bytes>,
}

/// An open activity.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Activity {
    /// Its Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The first event of the batch in which the Scheduled event stands: its row in the history.
    #[prost(int64, tag = "2")]
    pub batch_event_id: i64,
    /// Chosen by the workflow.
    #[prost(string, tag = "3")]
    pub activity_id: String,
    /// The activity's type.
    #[prost(string, tag = "4")]
    pub activity_type: String,
    /// The queue that its workers poll.
    #[prost(string, tag = "5")]
    pub task_queue: String,
    /// When all attempts must be over; 0 = never.
    #[prost(int64, tag = "6")]
    pub expires_ms: i64,
    /// How long an attempt may wait for a worker, in ms; 0 = for ever.
    #[prost(int64, tag = "7")]
    pub schedule_to_start_ms: i64,
    /// How long an attempt may take, in ms; 0 = for ever.
    #[prost(int64, tag = "8")]
    pub start_to_close_ms: i64,
    /// The longest silence of a worker, in ms; 0 = any.
    #[prost(int64, tag = "9")]
    pub heartbeat_timeout_ms: i64,
    /// The policy in force, defaults filled in.
    #[prost(message, optional, tag = "10")]
    pub retry_policy: Option<RetryPolicy>,
    /// From 1.
    #[prost(int32, tag = "11")]
    pub attempt: i32,
    /// When the activity was scheduled.
    #[prost(int64, tag = "12")]
    pub first_scheduled_ms: i64,
    /// When this attempt was, or is to be, scheduled.
    #[prost(int64, tag = "13")]
    pub scheduled_ms: i64,
    /// The attempt waits for its time; the record that ends the wait has not come yet.
    #[prost(bool, tag = "14")]
    pub backing_off: bool,
    /// When a worker got the attempt; 0 while nobody has it.
    #[prost(int64, tag = "15")]
    pub started_ms: i64,
    /// Which claim it was handed out under: the claim's journal offset + 1; 0 while nobody has it.
    #[prost(uint64, tag = "16")]
    pub claim: u64,
    /// Who had it last.
    #[prost(string, tag = "17")]
    pub identity: String,
    /// The poll that got it.
    #[prost(string, tag = "18")]
    pub request_id: String,
    /// What a worker reported last, opaque; it outlives the attempt.
    #[prost(bytes = "bytes", optional, tag = "19")]
    pub heartbeat_details: Option<Bytes>,
    /// When a worker reported last, of this or an earlier attempt; 0 = never.
    #[prost(int64, tag = "20")]
    pub heartbeat_ms: i64,
    /// The workflow's request to cancel; 0 = none.
    #[prost(int64, tag = "21")]
    pub cancel_requested_event_id: i64,
    /// Why the attempt before failed, opaque.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub last_failure: Option<Bytes>,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "23")]
    pub priority: Option<Bytes>,
    /// When the attempt before ended; 0 while this is the first.
    #[prost(int64, tag = "24")]
    pub last_attempt_ms: i64,
    /// How long this attempt had, or has, to wait after the one before, in ms.
    #[prost(int64, tag = "25")]
    pub retry_delay_ms: i64,
    /// An operator has paused it: no worker gets an attempt.
    #[prost(message, optional, tag = "26")]
    pub pause: Option<ActivityPause>,
    /// Changes with each call of an operator: what was offered to workers before is void.
    #[prost(int32, tag = "27")]
    pub stamp: i32,
    /// It was reset while a worker had it, which hears of that until the next attempt.
    #[prost(bool, tag = "28")]
    pub is_reset: bool,
    /// The next attempt does not get what the worker of this one reports.
    #[prost(bool, tag = "29")]
    pub forgets_heartbeat: bool,
    /// The options of its Scheduled event, where others are in force.
    #[prost(message, optional, boxed, tag = "30")]
    pub original: Option<Box<ActivityOptions>>,
}

impl Activity {
    /// A worker has it.
    pub fn is_started(&self) -> bool {
        self.started_ms > 0
    }

    /// It waits for a worker, now, and may have one.
    pub fn is_ready(&self) -> bool {
        !self.is_started() && !self.backing_off && self.pause.is_none()
    }

    /// How long its policy would have the next attempt wait if this one failed, in ms, whether or not there would be one.
    pub fn next_delay_ms(&self) -> Option<i64> {
        Some(retry::interval_ms(self.retry_policy.as_ref()?, self.attempt))
    }

    /// The next moment at which something is due, in ms.
    pub(crate) fn deadline_ms(&self, grace: Grace) -> Option<i64> {
        self.deadlines(grace).map(|(due_ms, _)| due_ms).min()
    }

    /// What is due: of several deadlines that have passed the earliest, as if the run had been looked at all the time.
    pub(crate) fn due(&self, grace: Grace, now_ms: i64) -> Option<Deadline> {
        let passed = self.deadlines(grace).filter(|(due_ms, _)| *due_ms <= now_ms);
        match passed.min() {
            // An attempt that nobody could take any more is not offered.
            Some((_, Deadline::Retry)) if self.expires_ms > 0 && self.expires_ms <= now_ms => {
                Some(Deadline::ScheduleToClose)
            }
            earliest => earliest.map(|(_, deadline)| deadline),
        }
    }

    fn deadlines(&self, grace: Grace) -> impl Iterator<Item = (i64, Deadline)> {
        let expiry = (self.expires_ms > 0).then_some((self.expires_ms, Deadline::ScheduleToClose));
        let (mut retry, mut wait, mut attempt, mut silence) = (None, None, None, None);
        if !self.is_started() && self.pause.is_some() {
            // Neither a retry nor a worker is waited for.
        } else if self.backing_off {
            retry = Some((self.scheduled_ms, Deadline::Retry));
        } else if !self.is_started() {
            let due_ms = self.scheduled_ms.saturating_add(self.schedule_to_start_ms);
            wait = (self.schedule_to_start_ms > 0).then_some((due_ms, Deadline::ScheduleToStart));
        } else {
            let due_ms = grace.deadline_ms(self.started_ms, self.start_to_close_ms);
            attempt = (self.start_to_close_ms > 0).then_some((due_ms, Deadline::StartToClose));
            let due_ms = grace.deadline_ms(self.heartbeat_ms.max(self.started_ms), self.heartbeat_timeout_ms);
            silence = (self.heartbeat_timeout_ms > 0).then_some((due_ms, Deadline::Heartbeat));
        }
        [attempt, wait, expiry, silence, retry].into_iter().flatten()
    }
}

/// What happens when a moment of an activity has come; of deadlines that fall together, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// No worker came for the attempt.
    ScheduleToStart,
    /// All attempts together took too long. This one stands before those that run from a worker's poll on, which was later,
    /// if only by microseconds.
    ScheduleToClose,
    /// The attempt took too long.
    StartToClose,
    /// The worker was silent for too long.
    Heartbeat,
    /// The next attempt need not wait any longer.
    Retry,
}

impl Schedule {
    /// True of an activity whose queue is this one.
    pub(crate) fn runs_on(&self, task_queue: &str) -> bool {
        self.task_queue.as_ref().is_some_and(|queue| queue.name == task_queue)
    }
}

/// Schedules an activity and returns its Scheduled event's id.
pub(crate) fn schedule(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Schedule,
    completed: i64,
) -> Result<i64, TaskFailure> {
    let cause = Cause::BadScheduleActivityAttributes;
    let policy = command_validation::of_activity(draft, order)?;
    within_size(draft, cause, order.input.as_ref(), "ScheduleActivityTaskCommandAttributes.Input")?;
    if draft.run.activities.len() as i64 >= draft.settings.pending_activities_max {
        let reason = format!(
            "the number of pending activities, {}, has reached the per-workflow limit of {}",
            draft.run.activities.len(),
            draft.settings.pending_activities_max
        );
        return Err(TaskFailure::new(Cause::PendingActivitiesLimitExceeded, &reason));
    }
    if draft.run.activities.values().any(|open| open.activity_id == order.activity_id) {
        let reason =
            not_now("add-activitytask-scheduled-event", &format!("ActivityID: {}", order.activity_id));
        return Err(TaskFailure::new(Cause::ScheduleActivityDuplicateId, &reason));
    }
    let scheduled = scheduled(draft, order, policy, completed);
    let mut activity = opened(&scheduled, draft.now_ms(), draft.batch_event_id());
    activity.scheduled_event_id = draft.emit_at(draft.now_ms(), scheduled.into(), extras(command));
    let id = activity.scheduled_event_id;
    draft.change(Change::Activity(Box::new(activity)));
    Ok(id)
}

/// The Scheduled event: every timeout filled in, and none beyond the run's.
pub(crate) fn scheduled(
    draft: &Draft<'_>,
    order: &Schedule,
    policy: RetryPolicy,
    completed: i64,
) -> Scheduled {
    let run_ms = draft.run.start.run_timeout_ms;
    let shorter = |given_ms: i64, limit_ms: i64| match (given_ms, limit_ms) {
        (0, limit_ms) => limit_ms,
        (given_ms, 0) => given_ms,
        (given_ms, limit_ms) => given_ms.min(limit_ms),
    };
    let to_close_ms = shorter(span_ms(order.schedule_to_close_timeout), run_ms);
    let to_start_ms = shorter(span_ms(order.schedule_to_start_timeout), to_close_ms);
    let start_to_close_ms = shorter(span_ms(order.start_to_close_timeout), to_close_ms);
    let heartbeat_ms = match span_ms(order.heartbeat_timeout) {
        0 => 0,
        given_ms => shorter(given_ms, start_to_close_ms),
    };
    Scheduled {
        activity_id: order.activity_id.clone(),
        activity_type: order.activity_type.clone(),
        task_queue: order.task_queue.as_ref().map(|queue| TaskQueue::normal(&queue.name)),
        header: order.header.clone(),
        input: order.input.clone(),
        schedule_to_close_timeout: Some(Duration::from_ms(to_close_ms)),
        schedule_to_start_timeout: Some(Duration::from_ms(to_start_ms)),
        start_to_close_timeout: Some(Duration::from_ms(start_to_close_ms)),
        heartbeat_timeout: Some(Duration::from_ms(heartbeat_ms)),
        workflow_task_completed_event_id: completed,
        retry_policy: Some(policy),
        use_workflow_build_id: order.use_workflow_build_id,
        priority: order.priority.clone(),
    }
}

/// The activity as the event begins it, save the event's id.
pub(crate) fn opened(event: &Scheduled, now_ms: i64, batch_event_id: i64) -> Activity {
    let name = event.activity_type.as_ref().map(|activity_type| activity_type.name.clone());
    let queue = event.task_queue.as_ref().map(|queue| queue.name.clone());
    Activity {
        batch_event_id,
        activity_id: event.activity_id.clone(),
        activity_type: name.unwrap_or_default(),
        task_queue: queue.unwrap_or_default(),
        expires_ms: match span_ms(event.schedule_to_close_timeout) {
            0 => 0,
            timeout_ms => now_ms.saturating_add(timeout_ms),
        },
        schedule_to_start_ms: span_ms(event.schedule_to_start_timeout),
        start_to_close_ms: span_ms(event.start_to_close_timeout),
        heartbeat_timeout_ms: span_ms(event.heartbeat_timeout),
        retry_policy: event.retry_policy.clone(),
        priority: event.priority.clone(),
        attempt: 1,
        first_scheduled_ms: now_ms,
        scheduled_ms: now_ms,
        ..Activity::default()
    }
}

/// The workflow asks for a cancellation. True where the activity is closed by it, and the workflow must be told: the closing
/// event stands behind what the other commands of the task bring, and is not written where the run ends with them.
pub(crate) fn request_cancel(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &RequestCancel,
    completed: i64,
    identity: &str,
) -> Result<bool, TaskFailure> {
    let cause = Cause::BadRequestCancelActivityAttributes;
    let scheduled_event_id = order.scheduled_event_id;
    if scheduled_event_id == 0 {
        return Err(TaskFailure::new(
            cause,
            "ScheduledEventId is not set on RequestCancelActivityTaskCommand.",
        ));
    }
    let requested = CancelRequested { scheduled_event_id, workflow_task_completed_event_id: completed };
    let Some(activity) = draft.run.activities.get(&scheduled_event_id).cloned() else {
        if !buffered_events::holds_closed_activity(draft, scheduled_event_id) {
            let place = format!("ScheduledEventID: {scheduled_event_id}");
            let reason = not_now("add-activitytask-cancel-requested-event", &place);
            return Err(TaskFailure::new(cause, &reason));
        }
        draft.emit_at(draft.now_ms(), requested.into(), extras(command));
        return Ok(false);
    };
    if activity.cancel_requested_event_id > 0 {
        let place = format!("ScheduledEventID: {scheduled_event_id}");
        let reason = not_now("add-activitytask-cancel-requested-event", &place);
        return Err(TaskFailure::new(cause, &reason));
    }
    let request_id = draft.emit_at(draft.now_ms(), requested.into(), extras(command));
    if activity.is_started() {
        let asked = Activity { cancel_requested_event_id: request_id, ..activity.as_ref().clone() };
        draft.change(Change::Activity(Box::new(asked)));
        return Ok(false);
    }
    draft.hold(Canceled {
        details: Some(payload::json_text("ACTIVITY_ID_NOT_STARTED")),
        latest_cancel_requested_event_id: request_id,
        scheduled_event_id,
        started_event_id: 0,
        identity: identity.into(),
        worker_version: None,
    });
    Ok(true)
}

/// Writes the closing event, with the Started event of the last attempt before it where a worker had it. The workflow
/// has something new to look at then.
pub(crate) fn close(draft: &mut Draft<'_>, activity: &Activity, closing: impl FnOnce(i64) -> Attributes) {
    let mut started_event_id = 0;
    if activity.is_started() {
        let started = Started {
            scheduled_event_id: activity.scheduled_event_id,
            identity: activity.identity.clone(),
            request_id: activity.request_id.clone(),
            attempt: activity.attempt,
            last_failure: activity.last_failure.clone(),
        };
        // While the events are buffered, Started has no id yet: the flush wires the two together.
        started_event_id =
            draft.record_at(activity.started_ms, started.into(), crate::draft::Extras::default());
    }
    draft.record(closing(started_event_id));
}

pub(crate) fn apply_closed(run: &mut Run, scheduled_event_id: i64) {
    if run.activities.contains_key(&scheduled_event_id)
        && let Some(closed) = run.activities.make_mut().remove(&scheduled_event_id)
    {
        run.head.state_bytes -= bytes(closed.as_ref());
    }
}
