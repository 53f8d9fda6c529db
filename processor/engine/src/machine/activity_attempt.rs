//! An attempt at an activity: claimed by a worker, kept alive by heartbeats, ended by a report or a deadline.
//!
//! backing off  --the retry is due-->                     waiting
//! waiting      --claim-->                                started
//! started      --heartbeat-->                            started, with what it reported
//! started      --release-->                              waiting: nobody got it
//! started      --fail, time out, the policy allows more-->  backing off, or waiting, as the next attempt
//! started      --fail, time out, no more-->              (none), and the activity failed or timed out
//! started      --complete, cancel-->                     (none), and the activity completed or canceled
//! started      --brings what is too large-->             (none), and the activity failed
//! any          --complete, by the activity's id-->       (none), and the activity completed
//! waiting      --time out-->                             (none), and the activity timed out
//!
//! A report on any other attempt than the present one is refused: nothing is known of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{RetryPolicy, RetryState, TimeoutType};
use crate::draft::{Change, Draft};
use crate::failure;
use crate::machine::activity::{self, Activity, Canceled, Completed, Deadline, Failed, TimedOut};
use crate::machine::workflow_task;
use crate::outcome::{HeartbeatAnswer, Rejection, Reply};
use crate::retry::{self, Attempt, Verdict};

/// The index of the first id that a record gives to activities it hands out itself.
const EAGER_POLL_ID: u32 = 16;

/// Which attempt a worker speaks of: by the token it was given, or by the activity's id.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Target {
    /// The activity's Scheduled event; 0 = by id.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The attempt.
    #[prost(int32, tag = "2")]
    pub attempt: i32,
    /// The claim it was handed out under.
    #[prost(uint64, tag = "3")]
    pub claim: u64,
    /// The activity's id, where no token is at hand.
    #[prost(string, tag = "4")]
    pub activity_id: String,
}

/// Order: hand a waiting attempt to a poll.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Claim {
    /// The activity's Scheduled event.
    #[prost(int64, tag = "1")]
    pub scheduled_event_id: i64,
    /// The attempt.
    #[prost(int32, tag = "2")]
    pub attempt: i32,
    /// Who polls.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// The poll.
    #[prost(string, tag = "4")]
    pub poll_id: String,
    /// The stamp that the attempt was offered under.
    #[prost(int32, tag = "5")]
    pub stamp: i32,
}

/// Order: an attempt that was handed out reached nobody.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Release {
    /// The attempt.
    #[prost(message, optional, tag = "1")]
    pub target: Option<Target>,
}

/// Order: a worker returned a result.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Complete {
    /// The attempt.
    #[prost(message, optional, tag = "1")]
    pub target: Option<Target>,
    /// The result, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub result: Option<Bytes>,
    /// The worker.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub worker_version: Option<Bytes>,
}

/// Order: a worker failed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Fail {
    /// The attempt.
    #[prost(message, optional, tag = "1")]
    pub target: Option<Target>,
    /// The failure, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub failure: Option<Bytes>,
    /// The worker.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// What it reported last, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub last_heartbeat_details: Option<Bytes>,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub worker_version: Option<Bytes>,
    /// Temporal's number of what the worker takes for the cause.
    #[prost(int32, tag = "6")]
    pub cause: i32,
}

/// Order: a worker canceled the attempt, as it was asked to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Cancel {
    /// The attempt.
    #[prost(message, optional, tag = "1")]
    pub target: Option<Target>,
    /// What it has to say, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
    /// The worker.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub worker_version: Option<Bytes>,
}

/// Order: a worker reports progress.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Heartbeat {
    /// The attempt.
    #[prost(message, optional, tag = "1")]
    pub target: Option<Target>,
    /// How far it is, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub details: Option<Bytes>,
}

fn gone() -> Rejection {
    Rejection::NotFound(
        "invalid activityID or activity already timed out or invoking workflow is completed".into(),
    )
}

/// The open activity that a target names, started or not where it is named by id.
fn find(draft: &Draft<'_>, target: Option<&Target>) -> Result<Arc<Activity>, Rejection> {
    let target = target.ok_or_else(gone)?;
    let activities = &draft.run.activities;
    if target.scheduled_event_id == 0 {
        let id = &target.activity_id;
        return activities.values().find(|activity| activity.activity_id == *id).cloned().ok_or_else(|| {
            let advice = "check workflow execution history for more details";
            Rejection::NotFound(format!("cannot find pending activity with ActivityID {id}, {advice}"))
        });
    }
    // The claim tells the attempt. Its number may be another since an operator has reset it.
    let is_attempt = |activity: &Activity| activity.attempt == target.attempt || activity.stamp != 0;
    let meant = |activity: &&Arc<Activity>| {
        activity.is_started() && activity.claim == target.claim && is_attempt(activity)
    };
    activities.get(&target.scheduled_event_id).filter(meant).cloned().ok_or_else(gone)
}

fn find_started(draft: &Draft<'_>, target: Option<&Target>) -> Result<Arc<Activity>, Rejection> {
    find(draft, target).and_then(|activity| if activity.is_started() { Ok(activity) } else { Err(gone()) })
}

fn is_too_large(draft: &Draft<'_>, blob: Option<&Bytes>) -> bool {
    blob.is_some_and(|blob| blob.len() as i64 > draft.settings.blob_bytes_max)
}

/// Hands the attempt to a poll, if it still waits; the id of the activity.
pub(crate) fn claim(draft: &mut Draft<'_>, order: &Claim) -> Option<i64> {
    let activity = draft.run.activities.get(&order.scheduled_event_id)?;
    if !draft.run.offers(activity) || activity.attempt != order.attempt || activity.stamp != order.stamp {
        return None;
    }
    start(draft, order.scheduled_event_id, &order.identity, &order.poll_id)
}

/// Hands a new activity to the worker that asked for it, as the `index`-th of its record.
pub(crate) fn start_at_once(
    draft: &mut Draft<'_>,
    index: u32,
    scheduled_event_id: i64,
    identity: &str,
) -> Option<i64> {
    let poll_id = draft.stamp.id(index.saturating_add(EAGER_POLL_ID));
    start(draft, scheduled_event_id, identity, &poll_id)
}

fn start(draft: &mut Draft<'_>, scheduled_event_id: i64, identity: &str, poll_id: &str) -> Option<i64> {
    let activity = draft.run.activities.get(&scheduled_event_id)?;
    let started = Activity {
        started_ms: draft.now_ms(),
        claim: draft.stamp.claim(),
        identity: identity.into(),
        request_id: poll_id.into(),
        is_reset: false,
        ..activity.as_ref().clone()
    };
    draft.change(Change::Activity(Box::new(started)));
    Some(scheduled_event_id)
}

/// Nobody got the attempt that was handed out: it waits again.
pub(crate) fn release(draft: &mut Draft<'_>, order: &Release) -> Result<Reply, Rejection> {
    let activity = find_started(draft, order.target.as_ref())?;
    let waiting = Activity { started_ms: 0, claim: 0, ..activity.as_ref().clone() };
    draft.change(Change::Activity(Box::new(waiting)));
    Ok(Reply::Done)
}

/// Takes a result. By id it may come at any time, between two attempts as well: then the present attempt counts as
/// started by whoever brings the result.
pub(crate) fn complete(draft: &mut Draft<'_>, order: &Complete) -> Result<Reply, Rejection> {
    let mut activity = find(draft, order.target.as_ref())?.as_ref().clone();
    if !activity.is_started() {
        activity.started_ms = draft.now_ms();
        order.identity.clone_into(&mut activity.identity);
        activity.request_id.clear();
    }
    if is_too_large(draft, order.result.as_ref()) {
        refuse(draft, &activity, "Complete result exceeds size limit.", &order.identity);
        return Ok(Reply::Done);
    }
    activity::close(draft, &activity, |started_event_id| {
        Completed {
            result: order.result.clone(),
            scheduled_event_id: activity.scheduled_event_id,
            started_event_id,
            identity: order.identity.clone(),
            worker_version: order.worker_version.clone(),
        }
        .into()
    });
    workflow_task::settle(draft);
    Ok(Reply::Done)
}

pub(crate) fn fail(draft: &mut Draft<'_>, order: &Fail) -> Result<Reply, Rejection> {
    let mut activity = find_started(draft, order.target.as_ref())?.as_ref().clone();
    if order.last_heartbeat_details.is_some() && !is_too_large(draft, order.last_heartbeat_details.as_ref()) {
        activity.heartbeat_details.clone_from(&order.last_heartbeat_details);
        activity.heartbeat_ms = draft.now_ms();
    }
    let bytes_max = draft.settings.blob_bytes_max;
    let failure = match &order.failure {
        Some(failure) if is_too_large(draft, Some(failure)) => Some(failure::too_large(failure, bytes_max)),
        failure => failure.clone(),
    };
    match judge(draft, &activity, failure.as_ref()) {
        Verdict::Again { delay_ms } => try_again(draft, &activity, failure.as_ref(), delay_ms),
        Verdict::Final(state) => {
            let failed = Failed {
                failure,
                identity: order.identity.clone(),
                retry_state: state.into(),
                worker_version: order.worker_version.clone(),
                cause: order.cause,
                ..Failed::default()
            };
            end_failed(draft, &activity, failed);
        }
    }
    Ok(Reply::Done)
}

/// What the worker sent is too large to be kept: the activity fails, and another attempt would not help.
fn refuse(draft: &mut Draft<'_>, activity: &Activity, why: &str, identity: &str) {
    let failed = Failed {
        failure: Some(failure::of_activity(why)),
        identity: identity.into(),
        retry_state: RetryState::NonRetryableFailure.into(),
        ..Failed::default()
    };
    end_failed(draft, activity, failed);
}

fn judge(draft: &Draft<'_>, activity: &Activity, failure: Option<&Bytes>) -> Verdict {
    if activity.cancel_requested_event_id > 0 {
        return Verdict::Final(RetryState::CancelRequested);
    }
    let none = RetryPolicy::default();
    let verdict = retry::verdict(Attempt {
        policy: activity.retry_policy.as_ref().unwrap_or(&none),
        number: activity.attempt,
        now_ms: draft.now_ms(),
        expires_ms: activity.expires_ms,
        failure,
        asked_within_policy: false,
    });
    match verdict {
        // One that is paused waits, whether or not its policy or its time allows another attempt.
        Verdict::Again { .. } | Verdict::Final(RetryState::MaximumAttemptsReached | RetryState::Timeout)
            if activity.pause.is_some() =>
        {
            Verdict::Again { delay_ms: 0 }
        }
        verdict => verdict,
    }
}

fn try_again(draft: &mut Draft<'_>, activity: &Activity, failure: Option<&Bytes>, delay_ms: i64) {
    let kept_bytes_max = draft.settings.kept_failure_bytes_max;
    let next = Activity {
        attempt: activity.attempt.saturating_add(1),
        scheduled_ms: draft.now_ms().saturating_add(delay_ms),
        last_attempt_ms: draft.now_ms(),
        retry_delay_ms: delay_ms,
        backing_off: delay_ms > 0,
        started_ms: 0,
        claim: 0,
        last_failure: failure.map(|failure| failure::kept(failure, kept_bytes_max)),
        forgets_heartbeat: false,
        ..activity.clone()
    };
    let next = match activity.forgets_heartbeat {
        true => Activity { heartbeat_details: None, heartbeat_ms: 0, ..next },
        false => next,
    };
    draft.change(Change::Activity(Box::new(next)));
}

fn end_failed(draft: &mut Draft<'_>, activity: &Activity, failed: Failed) {
    let scheduled_event_id = activity.scheduled_event_id;
    activity::close(draft, activity, |started_event_id| {
        Failed { scheduled_event_id, started_event_id, ..failed }.into()
    });
    workflow_task::settle(draft);
}

pub(crate) fn cancel(draft: &mut Draft<'_>, order: &Cancel) -> Result<Reply, Rejection> {
    let activity = find_started(draft, order.target.as_ref())?;
    if activity.cancel_requested_event_id == 0 {
        let message = "unable to mark activity as canceled without activity being request canceled first";
        return Err(Rejection::InvalidArgument(message.into()));
    }
    if is_too_large(draft, order.details.as_ref()) {
        refuse(draft, &activity, "Cancel details exceed size limit.", &order.identity);
        return Ok(Reply::Done);
    }
    activity::close(draft, &activity, |started_event_id| {
        Canceled {
            details: order.details.clone(),
            latest_cancel_requested_event_id: activity.cancel_requested_event_id,
            scheduled_event_id: activity.scheduled_event_id,
            started_event_id,
            identity: order.identity.clone(),
            worker_version: order.worker_version.clone(),
        }
        .into()
    });
    workflow_task::settle(draft);
    Ok(Reply::Done)
}

pub(crate) fn heartbeat(draft: &mut Draft<'_>, order: &Heartbeat) -> Result<Reply, Rejection> {
    let activity = find_started(draft, order.target.as_ref())?;
    if is_too_large(draft, order.details.as_ref()) {
        refuse(draft, &activity, "Heartbeat details exceed size limit.", &activity.identity);
        return Ok(Reply::Heartbeat(HeartbeatAnswer {
            cancel_requested: true,
            ..HeartbeatAnswer::default()
        }));
    }
    let heard = Activity {
        heartbeat_ms: draft.now_ms(),
        heartbeat_details: order.details.clone(),
        ..activity.as_ref().clone()
    };
    draft.change(Change::Activity(Box::new(heard)));
    Ok(Reply::Heartbeat(HeartbeatAnswer {
        cancel_requested: activity.cancel_requested_event_id > 0,
        paused: activity.pause.is_some(),
        reset: activity.is_reset,
    }))
}

/// Settles what is due of one activity; true where the activity is closed by it.
pub(crate) fn wake(draft: &mut Draft<'_>, activity: &Activity) -> bool {
    match activity.due(draft.stamp.grace(), draft.now_ms()) {
        None => false,
        Some(Deadline::StartToClose) => time_out(draft, activity, TimeoutType::StartToClose),
        Some(Deadline::ScheduleToStart) => time_out(draft, activity, TimeoutType::ScheduleToStart),
        Some(Deadline::ScheduleToClose) => time_out(draft, activity, TimeoutType::ScheduleToClose),
        Some(Deadline::Heartbeat) => time_out(draft, activity, TimeoutType::Heartbeat),
        Some(Deadline::Retry) => {
            draft.change(Change::Activity(Box::new(Activity { backing_off: false, ..activity.clone() })));
            false
        }
    }
}

fn time_out(draft: &mut Draft<'_>, activity: &Activity, timeout_type: TimeoutType) -> bool {
    let message = format!("activity {timeout_type:?} timeout");
    let failure = failure::timeout(timeout_type, &message, None, None);
    let (timeout_type, message, state) = match judge(draft, activity, Some(&failure)) {
        Verdict::Again { delay_ms } => {
            try_again(draft, activity, Some(&failure), delay_ms);
            return false;
        }
        Verdict::Final(RetryState::Timeout) => {
            let message = "Not enough time to schedule next retry before activity ScheduleToClose timeout, \
                           giving up retrying";
            (TimeoutType::ScheduleToClose, message.to_owned(), RetryState::Timeout)
        }
        Verdict::Final(state) => (timeout_type, message, state),
    };
    let (heartbeat, cause) = (activity.heartbeat_details.clone(), activity.last_failure.clone());
    let failure = Some(failure::timeout(timeout_type, &message, heartbeat, cause));
    activity::close(draft, activity, |started_event_id| {
        TimedOut {
            failure,
            scheduled_event_id: activity.scheduled_event_id,
            started_event_id,
            retry_state: state.into(),
        }
        .into()
    });
    true
}
