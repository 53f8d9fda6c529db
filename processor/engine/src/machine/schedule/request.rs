//! What is asked of schedules.

use bytes::Bytes;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::SpecTime;
use everlog_schedules::state::{BackfillRange, SchedulePatch, ScheduleSettings, TriggerRequest};

use crate::machine::schedule::definition::ScheduleDefinition;

/// Request: make a schedule.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateSchedule {
    /// The same id is taken once.
    #[prost(string, tag = "1")]
    pub request_id: String,
    /// What it is to do.
    #[prost(message, required, tag = "2")]
    pub definition: ScheduleDefinition,
    /// Whether it is paused, its notes, its limit.
    #[prost(message, required, tag = "3")]
    pub settings: ScheduleSettings,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub search_attributes: Option<Bytes>,
    /// What it does at once.
    #[prost(message, optional, tag = "6")]
    pub patch: Option<PatchRecord>,
}

/// Request: replace what a schedule is to do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateSchedule {
    /// The same id is taken once; empty = it is not remembered.
    #[prost(string, tag = "1")]
    pub request_id: String,
    /// What it is to do.
    #[prost(message, required, tag = "2")]
    pub definition: ScheduleDefinition,
    /// Whether it is paused, its notes, its limit.
    #[prost(message, required, tag = "3")]
    pub settings: ScheduleSettings,
    /// An encoded map: what changes of the memo; a null value removes its key.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub memo: Option<Bytes>,
    /// An encoded map: all that the schedule has from here on; none = as it is.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub search_attributes: Option<Bytes>,
    /// The token of the schedule that the update goes by; none = whatever it is.
    #[prost(uint64, optional, tag = "6")]
    pub conflict_token: Option<u64>,
}

/// Request: do something with a schedule.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PatchSchedule {
    /// The same id is taken once; empty = it is not remembered.
    #[prost(string, tag = "1")]
    pub request_id: String,
    /// What.
    #[prost(message, required, tag = "2")]
    pub patch: PatchRecord,
}

/// Request: forget a schedule. What it has started goes on.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct DeleteSchedule {}

/// What is to be done with a schedule, in the order of the fields.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PatchRecord {
    /// An action at once.
    #[prost(message, optional, tag = "1")]
    pub trigger: Option<TriggerRecord>,
    /// Actions for times of these ranges.
    #[prost(message, repeated, tag = "2")]
    pub backfills: Vec<BackfillRecord>,
    /// Pauses, with these notes; empty = no.
    #[prost(string, tag = "3")]
    pub pause: String,
    /// Unpauses, with these notes; empty = no.
    #[prost(string, tag = "4")]
    pub unpause: String,
}

/// An action at once.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct TriggerRecord {
    /// Its time in ms since 1970; none = now.
    #[prost(int64, optional, tag = "1")]
    pub scheduled_ms: Option<i64>,
    /// An [`OverlapPolicy`]; unspecified = the schedule's.
    #[prost(enumeration = "OverlapPolicy", tag = "2")]
    pub overlap: i32,
}

/// Times of a range.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BackfillRecord {
    /// The first nominal time.
    #[prost(message, required, tag = "1")]
    pub start: SpecTime,
    /// The last actual time.
    #[prost(message, required, tag = "2")]
    pub end: SpecTime,
    /// An [`OverlapPolicy`]; unspecified = the schedule's.
    #[prost(enumeration = "OverlapPolicy", tag = "3")]
    pub overlap: i32,
}

impl PatchRecord {
    pub(super) fn patch(&self) -> SchedulePatch {
        let overlap = |policy| OverlapPolicy::try_from(policy).unwrap_or(OverlapPolicy::Unspecified);
        let trigger = self.trigger.map(|trigger| TriggerRequest {
            scheduled_ms: trigger.scheduled_ms,
            overlap: overlap(trigger.overlap),
        });
        let backfills = self.backfills.iter().map(|range| BackfillRange {
            start: range.start,
            end: range.end,
            overlap: overlap(range.overlap),
        });
        let (pause, unpause) = (self.pause.clone(), self.unpause.clone());
        SchedulePatch { trigger, backfills: backfills.collect(), pause, unpause }
    }
}
