//! A timer: started, then fired or canceled, never both.
//!
//! (none)  --start-->  pending  --fire---->  (none) + workflow task
//!                     pending  --cancel-->  (none)

use crate::api_types::TaskFailedCause as Cause;
use crate::command::Command;
use crate::draft::{Change, Draft, Extras, bytes};
use crate::event::{Attributes, HistoryEvent};
use crate::machine::command_validation;
use crate::machine::workflow_task_completed::{TaskFailure, extras, not_now};
use crate::run::Run;
use crate::time::{Duration, Timestamp, span_ms};

/// Command: start a timer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Start {
    /// Chosen by the workflow; unique among its open timers.
    #[prost(string, tag = "1")]
    pub timer_id: String,
    /// From now until it fires.
    #[prost(message, optional, tag = "2")]
    pub start_to_fire_timeout: Option<Duration>,
}

/// Command: cancel a timer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Cancel {
    /// The timer.
    #[prost(string, tag = "1")]
    pub timer_id: String,
}

/// Event: a timer was started.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// The timer.
    #[prost(string, tag = "1")]
    pub timer_id: String,
    /// From this event until it fires.
    #[prost(message, optional, tag = "2")]
    pub start_to_fire_timeout: Option<Duration>,
    /// The task that asked for it.
    #[prost(int64, tag = "3")]
    pub workflow_task_completed_event_id: i64,
}

/// Event: a timer fired.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Fired {
    /// The timer.
    #[prost(string, tag = "1")]
    pub timer_id: String,
    /// Its Started event.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
}

/// Event: a timer was canceled before the workflow saw it fire.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Canceled {
    /// The timer.
    #[prost(string, tag = "1")]
    pub timer_id: String,
    /// Its Started event.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// The task that asked for it.
    #[prost(int64, tag = "3")]
    pub workflow_task_completed_event_id: i64,
    /// The worker.
    #[prost(string, tag = "4")]
    pub identity: String,
}

/// An open timer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Timer {
    /// The timer.
    #[prost(string, tag = "1")]
    pub timer_id: String,
    /// Its Started event.
    #[prost(int64, tag = "2")]
    pub started_event_id: i64,
    /// When it fires.
    #[prost(int64, tag = "3")]
    pub fire_ms: i64,
}

pub(crate) fn start(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Start,
    completed: i64,
) -> Result<(), TaskFailure> {
    let bad = |reason: &str| Err(TaskFailure::new(Cause::BadStartTimerAttributes, reason));
    if order.timer_id.is_empty() {
        return bad("TimerId is not set on StartTimerCommand.");
    }
    if let Some(excess) = command_validation::excess(draft, &order.timer_id) {
        let reason = "TimerId on StartTimerCommand exceeds length limit.";
        return bad(&format!("{reason} TimerId={} {excess}", order.timer_id));
    }
    if let Some(why) = order.start_to_fire_timeout.and_then(Duration::fault) {
        let what = "An invalid StartToFireTimeout is set on StartTimerCommand";
        return bad(&format!("{what}: {why}. TimerId={}", order.timer_id));
    }
    if draft.run.timers.contains_key(&order.timer_id) {
        let reason = not_now("add-timer-started-event", &format!("TimerID: {}", order.timer_id));
        return Err(TaskFailure::new(Cause::StartTimerDuplicateId, &reason));
    }
    let started = Started {
        timer_id: order.timer_id.clone(),
        start_to_fire_timeout: order.start_to_fire_timeout,
        workflow_task_completed_event_id: completed,
    };
    draft.emit_at(draft.now_ms(), started.into(), extras(command));
    Ok(())
}

pub(crate) fn cancel(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Cancel,
    completed: i64,
    identity: &str,
) -> Result<(), TaskFailure> {
    if order.timer_id.is_empty() {
        return Err(TaskFailure::new(
            Cause::BadCancelTimerAttributes,
            "TimerId is not set on CancelTimerCommand.",
        ));
    }
    let pending = draft.run.timers.get(&order.timer_id).map(|timer| timer.started_event_id);
    let started_event_id = match pending.or_else(|| take_buffered_firing(draft, &order.timer_id)) {
        Some(started_event_id) => started_event_id,
        None => {
            let reason = not_now("add-timer-canceled-event", &format!("TimerID: {}", order.timer_id));
            return Err(TaskFailure::new(Cause::BadCancelTimerAttributes, &reason));
        }
    };
    let canceled = Canceled {
        timer_id: order.timer_id.clone(),
        started_event_id,
        workflow_task_completed_event_id: completed,
        identity: identity.into(),
    };
    draft.emit_at(draft.now_ms(), canceled.into(), extras(command));
    Ok(())
}

/// Takes back a firing that the workflow has not seen, and returns the timer's Started event.
fn take_buffered_firing(draft: &mut Draft<'_>, timer_id: &str) -> Option<i64> {
    let (index, started_event_id) =
        draft.run.buffered.iter().enumerate().find_map(|(index, event)| match &event.attributes {
            Some(Attributes::TimerFired(fired)) if fired.timer_id == timer_id => {
                Some((index, fired.started_event_id))
            }
            _other => None,
        })?;
    draft.change(Change::Unbuffered(index));
    Some(started_event_id)
}

/// The timer's time has come.
pub(crate) fn fire(draft: &mut Draft<'_>, timer: &Timer) {
    let fired = Fired { timer_id: timer.timer_id.clone(), started_event_id: timer.started_event_id };
    draft.record_with(fired.into(), Extras::default());
}

pub(crate) fn apply_started(run: &mut Run, event: &HistoryEvent, started: &Started) {
    let started_ms = event.event_time.map_or(0, Timestamp::to_ms);
    let timer = Timer {
        timer_id: started.timer_id.clone(),
        started_event_id: event.event_id,
        fire_ms: started_ms.saturating_add(span_ms(started.start_to_fire_timeout)),
    };
    run.head.state_bytes += bytes(&timer);
    let before = run.timers.make_mut().insert(timer.timer_id.clone(), timer);
    run.head.state_bytes -= before.map_or(0, |before| bytes(&before));
}

pub(crate) fn apply_closed(run: &mut Run, timer_id: &str, started_event_id: i64) {
    if run.timers.get(timer_id).is_some_and(|timer| timer.started_event_id == started_event_id)
        && let Some(closed) = run.timers.make_mut().remove(timer_id)
    {
        run.head.state_bytes -= bytes(&closed);
    }
}
