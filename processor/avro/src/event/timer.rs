//! Public events of timers and markers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use everlog_engine::machine::{marker, timer};
use serde::{Deserialize, Serialize};

use crate::event::fields::{failure, fields, named_payloads, span, text};
use crate::failure::Failure;
use crate::payload::{Fields, Payload};

/// A timer was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerStarted<'a> {
    /// Chosen by the workflow.
    pub timer_id: Cow<'a, str>,
    /// From this event until it fires, in ms.
    pub start_to_fire_timeout_ms: Option<i64>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
}

impl<'a> From<&'a timer::Started> for TimerStarted<'a> {
    fn from(event: &'a timer::Started) -> Self {
        Self {
            timer_id: Cow::Borrowed(&event.timer_id),
            start_to_fire_timeout_ms: span(event.start_to_fire_timeout),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
        }
    }
}

/// A timer fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerFired<'a> {
    /// The timer.
    pub timer_id: Cow<'a, str>,
    /// Its Started event.
    pub started_event_id: i64,
}

impl<'a> From<&'a timer::Fired> for TimerFired<'a> {
    fn from(event: &'a timer::Fired) -> Self {
        Self { timer_id: Cow::Borrowed(&event.timer_id), started_event_id: event.started_event_id }
    }
}

/// A timer was canceled before the workflow saw it fire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerCanceled<'a> {
    /// The timer.
    pub timer_id: Cow<'a, str>,
    /// Its Started event.
    pub started_event_id: i64,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// The worker.
    pub identity: Option<Cow<'a, str>>,
}

impl<'a> From<&'a timer::Canceled> for TimerCanceled<'a> {
    fn from(event: &'a timer::Canceled) -> Self {
        Self {
            timer_id: Cow::Borrowed(&event.timer_id),
            started_event_id: event.started_event_id,
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            identity: text(&event.identity),
        }
    }
}

/// A result of workflow code that a replay reads back: a side effect, a local activity, a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkerRecorded<'a> {
    /// What kind of marker the SDK means.
    pub marker_name: Cow<'a, str>,
    /// What it keeps, by name.
    pub details: Option<BTreeMap<Cow<'a, str>, Vec<Payload<'a>>>>,
    /// The workflow task whose commands caused it.
    pub workflow_task_completed_event_id: i64,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// A failure that it keeps.
    pub failure: Option<Vec<Failure<'a>>>,
}

impl<'a> From<&'a marker::Recorded> for MarkerRecorded<'a> {
    fn from(event: &'a marker::Recorded) -> Self {
        Self {
            marker_name: Cow::Borrowed(&event.marker_name),
            details: named_payloads(&event.details),
            workflow_task_completed_event_id: event.workflow_task_completed_event_id,
            header: fields(event.header.as_ref()),
            failure: failure(event.failure.as_ref()),
        }
    }
}
