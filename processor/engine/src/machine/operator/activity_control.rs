//! What an operator does to open activities: pause and unpause them, reset them, give them other options.
//!
//! waiting, backing off          --pause-->     paused: no worker gets it, and nobody's silence counts
//! started                       --pause-->     started; paused once the attempt has failed
//! paused                        --unpause-->   waiting, at once or within the jitter
//! waiting, backing off, paused  --reset-->     waiting as attempt 1; paused where that is asked for
//! started                       --reset-->     started as attempt 1
//! any                           --options-->   the same, with other options
//!
//! None of them writes an event. Each gives the activity another stamp: what was offered to workers under an earlier one is void.

use std::sync::Arc;

use crate::draft::{Change, Draft};
use crate::level;
use crate::machine::activity::Activity;
use crate::machine::operator::activity_options::{self, ActivityOptionsPatch};
use crate::outcome::{Rejection, Reply};

/// Which open activities are meant.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActivitySelector {
    /// The activity of this id, or of this type all, or all that there are.
    #[prost(oneof = "ActivitySelection", tags = "1, 2, 3")]
    pub selection: Option<ActivitySelection>,
}

/// By what activities are meant.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum ActivitySelection {
    /// An id.
    #[prost(string, tag = "1")]
    Id(String),
    /// A type.
    #[prost(string, tag = "2")]
    Type(String),
    /// All, where it is true.
    #[prost(bool, tag = "3")]
    All(bool),
}

/// Request: workers get no attempt at it until it is unpaused.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PauseActivity {
    /// Which.
    #[prost(message, optional, tag = "1")]
    pub selector: Option<ActivitySelector>,
    /// Who asks.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// Why.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// Of the call.
    #[prost(string, tag = "4")]
    pub request_id: String,
}

/// Request: workers get attempts at it again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UnpauseActivity {
    /// Which.
    #[prost(message, optional, tag = "1")]
    pub selector: Option<ActivitySelector>,
    /// It counts as attempt 1.
    #[prost(bool, tag = "2")]
    pub resets_attempts: bool,
    /// What workers have reported is forgotten.
    #[prost(bool, tag = "3")]
    pub resets_heartbeat: bool,
    /// Each waits for a random part of this, in ms.
    #[prost(int64, tag = "4")]
    pub jitter_ms: i64,
}

/// Request: it counts as attempt 1, and does not wait for its retry.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResetActivity {
    /// Which.
    #[prost(message, optional, tag = "1")]
    pub selector: Option<ActivitySelector>,
    /// One that is paused stays so.
    #[prost(bool, tag = "2")]
    pub keeps_paused: bool,
    /// What workers have reported is forgotten.
    #[prost(bool, tag = "3")]
    pub resets_heartbeat: bool,
    /// Each waits for a random part of this, in ms.
    #[prost(int64, tag = "4")]
    pub jitter_ms: i64,
    /// It gets the options of its Scheduled event back.
    #[prost(bool, tag = "5")]
    pub restores_options: bool,
}

/// Request: other options from now on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateActivityOptions {
    /// Which.
    #[prost(message, optional, tag = "1")]
    pub selector: Option<ActivitySelector>,
    /// What changes; absent = the options of the Scheduled event are restored.
    #[prost(message, optional, boxed, tag = "2")]
    pub patch: Option<Box<ActivityOptionsPatch>>,
}

/// Who has paused an activity.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActivityPause {
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

/// The activities that are meant, in the order of their Scheduled events.
fn selected(draft: &Draft<'_>, selector: Option<&ActivitySelector>) -> Result<Vec<Arc<Activity>>, Rejection> {
    if draft.stamp.level < level::OPERATOR_CALLS {
        return Err(level::below("Operator calls on activities", level::OPERATOR_CALLS, draft.stamp));
    }
    let is_meant = |activity: &Activity| match selector.and_then(|selector| selector.selection.as_ref()) {
        Some(ActivitySelection::Id(id)) => activity.activity_id == *id,
        Some(ActivitySelection::Type(name)) => activity.activity_type == *name,
        Some(ActivitySelection::All(all)) => *all,
        None => false,
    };
    let meant: Vec<_> = draft.run.activities.values().filter(|open| is_meant(open)).cloned().collect();
    if meant.is_empty() {
        let why =
            "Can't find pending activity with such ID. Invalid activityID or activity already completed";
        return Err(Rejection::NotFound(why.into()));
    }
    Ok(meant)
}

/// One that is paused stays as it was paused first.
pub(crate) fn pause(draft: &mut Draft<'_>, order: &PauseActivity) -> Result<Reply, Rejection> {
    let pause = ActivityPause {
        paused_ms: draft.now_ms(),
        identity: order.identity.clone(),
        reason: order.reason.clone(),
        request_id: order.request_id.clone(),
    };
    let meant = selected(draft, order.selector.as_ref())?;
    for activity in meant.iter().filter(|activity| activity.pause.is_none()) {
        let paused = Activity { pause: Some(pause.clone()), ..activity.as_ref().clone() };
        change(draft, paused);
    }
    Ok(Reply::Done)
}

pub(crate) fn unpause(draft: &mut Draft<'_>, order: &UnpauseActivity) -> Result<Reply, Rejection> {
    let meant = selected(draft, order.selector.as_ref())?;
    for (place, activity) in meant.iter().enumerate().filter(|(_, activity)| activity.pause.is_some()) {
        let mut unpaused = Activity { pause: None, ..activity.as_ref().clone() };
        if order.resets_attempts {
            unpaused.attempt = 1;
        }
        if order.resets_heartbeat {
            forget_heartbeat(&mut unpaused);
        }
        schedule(draft, &mut unpaused, place, order.jitter_ms);
        change(draft, unpaused);
    }
    Ok(Reply::Done)
}

pub(crate) fn reset(draft: &mut Draft<'_>, order: &ResetActivity) -> Result<Reply, Rejection> {
    let meant = selected(draft, order.selector.as_ref())?;
    for (place, activity) in meant.iter().enumerate() {
        let mut fresh = match order.restores_options {
            true => activity_options::restored(draft, activity),
            false => activity.as_ref().clone(),
        };
        fresh.attempt = 1;
        fresh.is_reset = fresh.is_started();
        if !fresh.is_started() {
            fresh.last_failure = None;
        }
        if order.resets_heartbeat {
            forget_heartbeat(&mut fresh);
        }
        if !order.keeps_paused {
            fresh.pause = None;
        }
        schedule(draft, &mut fresh, place, order.jitter_ms);
        if fresh != **activity {
            change(draft, fresh);
        }
    }
    Ok(Reply::Done)
}

/// Answers the options in force, of the last one where several are meant. One that cannot have them leaves all as they are.
pub(crate) fn update_options(
    draft: &mut Draft<'_>,
    order: &UpdateActivityOptions,
) -> Result<Reply, Rejection> {
    let meant = selected(draft, order.selector.as_ref())?;
    let changed = meant.iter().map(|activity| match &order.patch {
        Some(patch) => activity_options::patched(draft, activity, patch),
        None => Ok(activity_options::restored(draft, activity)),
    });
    let changed = changed.collect::<Result<Vec<_>, _>>()?;
    let options = changed.last().map(Activity::options).unwrap_or_default();
    for (next, now) in changed.into_iter().zip(meant) {
        if next != *now {
            change(draft, next);
        }
    }
    Ok(Reply::ActivityOptions(Box::new(options)))
}

/// What waits need not wait any longer than the jitter wants.
fn schedule(draft: &Draft<'_>, activity: &mut Activity, place: usize, jitter_ms: i64) {
    if activity.is_started() || activity.pause.is_some() {
        return;
    }
    let delay_ms = draft.stamp.draw(place as u32, jitter_ms);
    activity.scheduled_ms = draft.now_ms().saturating_add(delay_ms);
    activity.retry_delay_ms = delay_ms;
    activity.backing_off = delay_ms > 0;
}

/// A worker that has it may report what is forgotten once more: the next attempt does not get that either.
fn forget_heartbeat(activity: &mut Activity) {
    activity.heartbeat_details = None;
    activity.heartbeat_ms = 0;
    activity.forgets_heartbeat = activity.is_started();
}

fn change(draft: &mut Draft<'_>, mut activity: Activity) {
    activity.stamp = activity.stamp.wrapping_add(1);
    draft.change(Change::Activity(Box::new(activity)));
}
