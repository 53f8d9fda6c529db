//! The fields of commands for schedules. Calendars are strings, spans are in ms, moments in ms since 1970-01-01 UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::command::shape::Start;

/// Make a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "CreateSchedule", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct ScheduleCreation<P> {
    /// What it is to do.
    pub schedule: Option<GivenSchedule<P>>,
    /// What it does at once.
    pub patch: Option<GivenPatch>,
    /// Memo of the schedule.
    pub memo: Option<BTreeMap<String, P>>,
    /// Search attributes of the schedule.
    pub search_attributes: Option<BTreeMap<String, P>>,
}

/// Replace what a schedule is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "UpdateSchedule", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct ScheduleReplacement<P> {
    /// What it is to do from here on: all of it.
    pub schedule: Option<GivenSchedule<P>>,
    /// The token of the schedule that the update goes by; absent means whatever it is.
    pub conflict_token: Option<i64>,
    /// What changes of the schedule's memo.
    pub memo: Option<BTreeMap<String, P>>,
    /// All search attributes of the schedule from here on; absent means that they stay.
    pub search_attributes: Option<BTreeMap<String, P>>,
}

/// What a schedule is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Schedule", deny_unknown_fields, default, bound(deserialize = "P: Deserialize<'de>"))]
pub struct GivenSchedule<P> {
    /// When.
    pub spec: Option<GivenSpec>,
    /// The Workflow Id of its runs, to which the time is appended.
    pub workflow_id: String,
    /// The start of its runs.
    pub start: Option<Start<P>>,
    /// What becomes of actions that overlap, are late or fail.
    pub policies: Option<GivenPolicies>,
    /// Whether it is paused, its notes, its limit.
    pub state: Option<GivenState>,
}

/// When a schedule starts runs: at each time of a calendar, a cron notation or an interval that no excluded calendar has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleSpec", deny_unknown_fields, default)]
pub struct GivenSpec {
    /// Calendars.
    pub calendars: Vec<GivenCalendar>,
    /// Notations of cron.
    pub cron: Vec<String>,
    /// Intervals.
    pub intervals: Vec<GivenInterval>,
    /// Calendars that take times away.
    pub excluded_calendars: Vec<GivenCalendar>,
    /// No time is before it.
    pub start_time: Option<i64>,
    /// No time is behind it.
    pub end_time: Option<i64>,
    /// Runs start at random less than this later.
    pub jitter_ms: Option<i64>,
    /// A name of the time zone database; absent means UTC.
    pub time_zone: Option<String>,
    /// The content of a TZif file, which wins over the name.
    pub time_zone_data: Option<Blob>,
}

/// A calendar, each field in the notation of cron's fields. An empty second, minute or hour is 0, every other is `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleCalendar", deny_unknown_fields, default)]
pub struct GivenCalendar {
    /// 0 to 59.
    pub second: String,
    /// 0 to 59.
    pub minute: String,
    /// 0 to 23.
    pub hour: String,
    /// 1 to 31.
    pub day_of_month: String,
    /// 1 to 12, or a name.
    pub month: String,
    /// 2000 to 2100.
    pub year: String,
    /// 0 to 7, 0 and 7 = Sunday, or a name.
    pub day_of_week: String,
    /// What the user says of it.
    pub comment: String,
}

/// A time at each multiple of an interval since 1970-01-01 UTC, and a phase behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleInterval", deny_unknown_fields, default)]
pub struct GivenInterval {
    /// At least 1,000.
    pub interval_ms: i64,
    /// Less than the interval; absent means 0.
    pub phase_ms: Option<i64>,
}

/// What becomes of actions that overlap, are late or fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "SchedulePolicies", deny_unknown_fields, default)]
pub struct GivenPolicies {
    /// `Skip`, `BufferOne`, `BufferAll`, `CancelOther`, `TerminateOther` or `AllowAll`; absent means `Skip`.
    pub overlap: Option<String>,
    /// How late an action may start.
    pub catchup_window_ms: Option<i64>,
    /// A run that fails or times out pauses the schedule.
    pub pause_on_failure: bool,
    /// The time is not appended to the Workflow Id.
    pub keep_original_workflow_id: bool,
}

/// Whether a schedule is paused, its notes, its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleState", deny_unknown_fields, default)]
pub struct GivenState {
    /// Nothing scheduled starts.
    pub paused: bool,
    /// Why, or whatever is to be said.
    pub notes: Option<String>,
    /// Scheduled actions that may still start; absent means any number.
    pub remaining_actions: Option<i64>,
}

/// Do something with a schedule, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "PatchSchedule", deny_unknown_fields, default)]
pub struct GivenPatch {
    /// An action at once.
    pub trigger: Option<GivenTrigger>,
    /// Actions for the times of these ranges.
    pub backfills: Vec<GivenBackfill>,
    /// Pauses, with these notes.
    pub pause: Option<String>,
    /// Unpauses, with these notes.
    pub unpause: Option<String>,
}

/// An action at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleTrigger", deny_unknown_fields, default)]
pub struct GivenTrigger {
    /// As in the policies; absent means the schedule's.
    pub overlap: Option<String>,
    /// The time that it is for; absent means now.
    pub scheduled_time: Option<i64>,
}

/// Actions for the times of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ScheduleBackfill", deny_unknown_fields, default)]
pub struct GivenBackfill {
    /// The first time.
    pub start_time: Option<i64>,
    /// The last time.
    pub end_time: Option<i64>,
    /// As in the policies; absent means the schedule's.
    pub overlap: Option<String>,
}

impl<P> Default for ScheduleCreation<P> {
    fn default() -> Self {
        Self { schedule: None, patch: None, memo: None, search_attributes: None }
    }
}

impl<P> Default for ScheduleReplacement<P> {
    fn default() -> Self {
        Self { schedule: None, conflict_token: None, memo: None, search_attributes: None }
    }
}

impl<P> Default for GivenSchedule<P> {
    fn default() -> Self {
        Self { spec: None, workflow_id: String::new(), start: None, policies: None, state: None }
    }
}
