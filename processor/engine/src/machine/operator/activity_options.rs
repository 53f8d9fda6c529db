//! Options of an activity that may change while it is open: its queue, its timeouts, its retry policy, its priority.

use bytes::Bytes;

use crate::api_types::{ActivityType, RetryPolicy, TaskQueue};
use crate::draft::Draft;
use crate::machine::activity::{self, Activity, Schedule};
use crate::machine::command_validation;
use crate::outcome::Rejection;
use crate::payload::{PriorityPatch, patched_priority};
use crate::retry;
use crate::time::Duration;

/// Options of an activity. Spans are in ms; 0 = none.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ActivityOptions {
    /// The queue that its workers poll.
    #[prost(string, tag = "1")]
    pub task_queue: String,
    /// Limit over all attempts.
    #[prost(int64, tag = "2")]
    pub schedule_to_close_ms: i64,
    /// How long an attempt may wait for a worker.
    #[prost(int64, tag = "3")]
    pub schedule_to_start_ms: i64,
    /// How long an attempt may take.
    #[prost(int64, tag = "4")]
    pub start_to_close_ms: i64,
    /// The longest silence of a worker.
    #[prost(int64, tag = "5")]
    pub heartbeat_timeout_ms: i64,
    /// When to try again.
    #[prost(message, optional, tag = "6")]
    pub retry_policy: Option<RetryPolicy>,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub priority: Option<Bytes>,
}

/// Other options: what is absent stays as it is. The parts of a retry policy and of a priority count on top of the whole.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ActivityOptionsPatch {
    /// The queue that its workers poll.
    #[prost(string, optional, tag = "1")]
    pub task_queue: Option<String>,
    /// Limit over all attempts; 0 = none.
    #[prost(message, optional, tag = "2")]
    pub schedule_to_close_timeout: Option<Duration>,
    /// How long an attempt may wait for a worker; 0 = as long as all attempts may take.
    #[prost(message, optional, tag = "3")]
    pub schedule_to_start_timeout: Option<Duration>,
    /// How long an attempt may take; 0 = as long as all attempts may take.
    #[prost(message, optional, tag = "4")]
    pub start_to_close_timeout: Option<Duration>,
    /// The longest silence of a worker; 0 = any.
    #[prost(message, optional, tag = "5")]
    pub heartbeat_timeout: Option<Duration>,
    /// When to try again.
    #[prost(message, optional, tag = "6")]
    pub retry_policy: Option<RetryPolicy>,
    /// The first wait.
    #[prost(message, optional, tag = "7")]
    pub initial_interval: Option<Duration>,
    /// How a wait grows.
    #[prost(double, optional, tag = "8")]
    pub backoff_coefficient: Option<f64>,
    /// The longest wait.
    #[prost(message, optional, tag = "9")]
    pub maximum_interval: Option<Duration>,
    /// How many attempts there may be; 0 = any number.
    #[prost(int32, optional, tag = "10")]
    pub maximum_attempts: Option<i32>,
    /// Priority, opaque; empty = none.
    #[prost(bytes = "bytes", optional, tag = "11")]
    pub priority: Option<Bytes>,
    /// Parts of the priority.
    #[prost(message, optional, tag = "12")]
    pub priority_patch: Option<PriorityPatch>,
}

impl Activity {
    /// The options in force.
    pub fn options(&self) -> ActivityOptions {
        ActivityOptions {
            task_queue: self.task_queue.clone(),
            schedule_to_close_ms: match self.expires_ms {
                0 => 0,
                expires_ms => expires_ms.saturating_sub(self.first_scheduled_ms),
            },
            schedule_to_start_ms: self.schedule_to_start_ms,
            start_to_close_ms: self.start_to_close_ms,
            heartbeat_timeout_ms: self.heartbeat_timeout_ms,
            retry_policy: self.retry_policy.clone(),
            priority: self.priority.clone(),
        }
    }
}

/// The activity with other options, made valid as those of a new activity are. A wait for the next attempt is counted anew.
pub(crate) fn patched(
    draft: &Draft<'_>,
    activity: &Activity,
    patch: &ActivityOptionsPatch,
) -> Result<Activity, Rejection> {
    let now = activity.options();
    let span = |given: Option<Duration>, ms: i64| Some(given.unwrap_or_else(|| Duration::from_ms(ms)));
    let order = Schedule {
        activity_id: activity.activity_id.clone(),
        activity_type: Some(ActivityType { name: activity.activity_type.clone() }),
        task_queue: Some(TaskQueue::normal(patch.task_queue.as_ref().unwrap_or(&now.task_queue))),
        schedule_to_close_timeout: span(patch.schedule_to_close_timeout, now.schedule_to_close_ms),
        schedule_to_start_timeout: span(patch.schedule_to_start_timeout, now.schedule_to_start_ms),
        start_to_close_timeout: span(patch.start_to_close_timeout, now.start_to_close_ms),
        heartbeat_timeout: span(patch.heartbeat_timeout, now.heartbeat_timeout_ms),
        retry_policy: Some(patched_policy(patch, now.retry_policy.clone().unwrap_or_default())),
        priority: patched_priority(
            patch.priority.as_ref(),
            patch.priority_patch.as_ref(),
            now.priority.as_ref(),
        ),
        ..Schedule::default()
    };
    let policy = command_validation::of_activity(draft, &order)
        .map_err(|failure| Rejection::InvalidArgument(failure.into_reason()))?;
    let scheduled = activity::scheduled(draft, &order, policy, 0);
    let valid = activity::opened(&scheduled, activity.first_scheduled_ms, 0).options();
    let original = activity.original.clone().or_else(|| Some(Box::new(now)));
    Ok(with_options(draft, Activity { original, ..activity.clone() }, valid))
}

/// The activity with the options of its Scheduled event.
pub(crate) fn restored(draft: &Draft<'_>, activity: &Activity) -> Activity {
    match &activity.original {
        Some(original) => {
            let options = original.as_ref().clone();
            with_options(draft, Activity { original: None, ..activity.clone() }, options)
        }
        None => activity.clone(),
    }
}

fn with_options(draft: &Draft<'_>, activity: Activity, options: ActivityOptions) -> Activity {
    let mut changed = Activity {
        task_queue: options.task_queue,
        expires_ms: match options.schedule_to_close_ms {
            0 => 0,
            span_ms => activity.first_scheduled_ms.saturating_add(span_ms),
        },
        schedule_to_start_ms: options.schedule_to_start_ms,
        start_to_close_ms: options.start_to_close_ms,
        heartbeat_timeout_ms: options.heartbeat_timeout_ms,
        retry_policy: options.retry_policy,
        priority: options.priority,
        ..activity
    };
    if changed.backing_off && changed.last_attempt_ms > 0 && changed.attempt > 1 {
        let policy = changed.retry_policy.clone().unwrap_or_default();
        changed.retry_delay_ms = retry::interval_ms(&policy, changed.attempt - 1);
        changed.scheduled_ms =
            changed.last_attempt_ms.saturating_add(changed.retry_delay_ms).max(draft.now_ms());
        changed.backing_off = changed.scheduled_ms > draft.now_ms();
    }
    changed
}

fn patched_policy(patch: &ActivityOptionsPatch, now: RetryPolicy) -> RetryPolicy {
    let whole = patch.retry_policy.clone().unwrap_or(now);
    RetryPolicy {
        initial_interval: patch.initial_interval.or(whole.initial_interval),
        backoff_coefficient: patch.backoff_coefficient.unwrap_or(whole.backoff_coefficient),
        maximum_interval: patch.maximum_interval.or(whole.maximum_interval),
        maximum_attempts: patch.maximum_attempts.unwrap_or(whole.maximum_attempts),
        non_retryable_error_types: whole.non_retryable_error_types,
    }
}
