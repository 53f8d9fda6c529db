//! Public events of schedules. They stand in no history: the topic alone has them.

use std::borrow::Cow;

use everlog_engine::machine::schedule::event::{ScheduleEnd, ScheduleEvent, ScheduleEventKind};
use everlog_engine::machine::schedule::schedule_id;
use everlog_schedules::state::{
    FiredAction, MissedTimes, PauseChange, ScheduleRevision, SkipReason, SkippedAction,
};
use serde::{Deserialize, Serialize};

use crate::event::WorkflowEvent;
use crate::event::fields::text;

/// A schedule was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleCreated<'a> {
    /// What an update names that goes by this.
    pub conflict_token: i64,
    /// It begins paused.
    pub paused: bool,
    /// Its notes.
    pub notes: Option<Cow<'a, str>>,
}

/// What a schedule is to do was replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleUpdated<'a> {
    /// What the next update names that goes by this.
    pub conflict_token: i64,
    /// It is paused now.
    pub paused: bool,
    /// Its notes.
    pub notes: Option<Cow<'a, str>>,
}

/// An action was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleFired<'a> {
    /// The number of the action: 1, 2, 3 ... in the life of the schedule, in the order in which they fell due.
    pub action: i64,
    /// The time that matched, in ms since 1970-01-01 UTC.
    pub nominal_time: i64,
    /// When it was due, in ms since 1970-01-01 UTC: the nominal time and its jitter.
    pub actual_time: i64,
    /// When the run began, in ms since 1970-01-01 UTC.
    pub start_time: i64,
    /// The Workflow Id of the run.
    pub workflow_id: Cow<'a, str>,
    /// The first run of the chain, a UUID.
    pub run_id: Cow<'a, str>,
    /// By a trigger or a backfill.
    pub is_manual: bool,
}

/// An action was dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleSkipped<'a> {
    /// The number of the action.
    pub action: i64,
    /// The time that matched, in ms since 1970-01-01 UTC.
    pub nominal_time: i64,
    /// When it was due, in ms since 1970-01-01 UTC.
    pub actual_time: i64,
    /// Why: `Overlap`, `BufferFull`, `Paused`, `Exhausted`, `WorkflowIdTaken` or `Refused`.
    pub reason: Cow<'a, str>,
    /// By a trigger or a backfill.
    pub is_manual: bool,
}

/// Times were too late by the catch-up window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleMissed {
    /// How many.
    pub count: i64,
    /// The first that matched, in ms since 1970-01-01 UTC.
    pub first_nominal_time: i64,
    /// The last that matched, in ms since 1970-01-01 UTC.
    pub last_nominal_time: i64,
}

/// A schedule was paused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulePaused<'a> {
    /// Why.
    pub notes: Option<Cow<'a, str>>,
}

/// A schedule was unpaused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleUnpaused<'a> {
    /// Why.
    pub notes: Option<Cow<'a, str>>,
}

/// A schedule is gone; what it has started goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleClosed<'a> {
    /// Why: `Idle` or `Deleted`.
    pub reason: Cow<'a, str>,
}

impl<'a> WorkflowEvent<'a> {
    /// An event of the schedule with this Workflow Id in a namespace, by name, at a moment in ms since 1970.
    pub fn of_schedule(
        namespace: &'a str,
        workflow_id: &'a str,
        event: &'a ScheduleEvent,
        time_ms: i64,
    ) -> Self {
        let mut record = Self {
            namespace: namespace.into(),
            workflow_id: workflow_id.into(),
            run_id: Cow::Borrowed(&event.run_id),
            event_id: event.event_id,
            time: time_ms,
            schedule_id: schedule_id(workflow_id).map(Cow::Borrowed),
            ..Self::default()
        };
        record.r#type = match &event.kind {
            ScheduleEventKind::Fired(fired) => {
                record.schedule_fired = Some(Box::new(fired.into()));
                "ScheduleFired"
            }
            ScheduleEventKind::Skipped(skipped) => {
                record.schedule_skipped = Some(Box::new(skipped.into()));
                "ScheduleSkipped"
            }
            ScheduleEventKind::Missed(missed) => {
                record.schedule_missed = Some(Box::new(missed.into()));
                "ScheduleMissed"
            }
            ScheduleEventKind::PauseChanged(PauseChange { is_paused: true, notes }) => {
                record.schedule_paused = Some(Box::new(SchedulePaused { notes: text(notes) }));
                "SchedulePaused"
            }
            ScheduleEventKind::PauseChanged(PauseChange { is_paused: false, notes }) => {
                record.schedule_unpaused = Some(Box::new(ScheduleUnpaused { notes: text(notes) }));
                "ScheduleUnpaused"
            }
            ScheduleEventKind::Created(revision) => {
                record.schedule_created = Some(Box::new(revision.into()));
                "ScheduleCreated"
            }
            ScheduleEventKind::Updated(revision) => {
                record.schedule_updated = Some(Box::new(revision.into()));
                "ScheduleUpdated"
            }
            ScheduleEventKind::Closed(end) => {
                record.schedule_closed = Some(Box::new(ScheduleClosed { reason: end_name(*end).into() }));
                "ScheduleClosed"
            }
        }
        .into();
        record
    }
}

impl<'a> From<&'a ScheduleRevision> for ScheduleCreated<'a> {
    fn from(made: &'a ScheduleRevision) -> Self {
        let conflict_token = number(made.conflict_token);
        Self { conflict_token, paused: made.is_paused, notes: text(&made.notes) }
    }
}

impl<'a> From<&'a ScheduleRevision> for ScheduleUpdated<'a> {
    fn from(replaced: &'a ScheduleRevision) -> Self {
        let conflict_token = number(replaced.conflict_token);
        Self { conflict_token, paused: replaced.is_paused, notes: text(&replaced.notes) }
    }
}

impl<'a> From<&'a FiredAction> for ScheduleFired<'a> {
    fn from(fired: &'a FiredAction) -> Self {
        Self {
            action: number(fired.run.number),
            nominal_time: ms(fired.nominal_s),
            actual_time: fired.actual_ms,
            start_time: fired.start_ms,
            workflow_id: Cow::Borrowed(&fired.run.workflow_id),
            run_id: Cow::Borrowed(&fired.run.first_run_id),
            is_manual: fired.is_manual,
        }
    }
}

impl From<&SkippedAction> for ScheduleSkipped<'_> {
    fn from(skipped: &SkippedAction) -> Self {
        Self {
            action: number(skipped.number),
            nominal_time: ms(skipped.nominal_s),
            actual_time: skipped.actual_ms,
            reason: reason_name(skipped.reason).into(),
            is_manual: skipped.is_manual,
        }
    }
}

impl From<&MissedTimes> for ScheduleMissed {
    fn from(missed: &MissedTimes) -> Self {
        Self {
            count: number(missed.count),
            first_nominal_time: ms(missed.first_nominal_s),
            last_nominal_time: ms(missed.last_nominal_s),
        }
    }
}

/// The names are public: they never change.
fn reason_name(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Overlap => "Overlap",
        SkipReason::BufferFull => "BufferFull",
        SkipReason::Paused => "Paused",
        SkipReason::Exhausted => "Exhausted",
        SkipReason::WorkflowIdTaken => "WorkflowIdTaken",
        SkipReason::Refused => "Refused",
    }
}

fn end_name(end: ScheduleEnd) -> &'static str {
    match end {
        ScheduleEnd::Idle => "Idle",
        ScheduleEnd::Deleted => "Deleted",
    }
}

fn number(given: u64) -> i64 {
    i64::try_from(given).unwrap_or(i64::MAX)
}

fn ms(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000)
}
