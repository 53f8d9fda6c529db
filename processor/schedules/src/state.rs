//! The state of a schedule: how far its times are worked off, what waits, what runs.
//!
//! ```text
//! (time) --due--> waiting --pass--> starting --opened--> running --closed--> (recent)
//!                    ^  |              |  |
//!                    |  +--> skipped   |  +--refused--> (none)
//!                    +-----later-------+
//! ```
//!
//! Each function is a step, or two where a user changes something: it works a bounded amount, and
//! [`ScheduleState::next_alarm_ms`] says when the next one is to come, which is at once where something is left. Nothing
//! but the arguments decides.

mod alarm;
mod answers;
mod changes;
mod pass;
mod step;
mod take;
mod workflow_id;

use crate::matcher::{ActionTime, Matcher, SearchPosition};
use crate::overlap::OverlapPolicy;
use crate::spec::{ScheduleSpec, SpecDuration, SpecError};

pub use crate::state::answers::{ActionEnd, ActionOpening};
pub use crate::state::changes::{BackfillRange, SchedulePatch, ScheduleRefusal, TriggerRequest};
pub use crate::state::step::{
    FiredAction, MissedTimes, PauseChange, ScheduleEffect, ScheduleRevision, SkipReason, SkippedAction,
    StartAction, StartedRun,
};

/// Actions that wait.
pub const BUFFER_MAX: usize = 1_000;
/// Actions that wait at most before a backfill adds more: half of the buffer stays for others.
pub const BACKFILL_BUFFER_MAX: usize = BUFFER_MAX / 2;
/// Backfills under way.
pub const BACKFILLS_MAX: usize = 100;
/// Times that one step takes into the buffer.
pub const TAKEN_MAX: usize = 100;
/// Steps of the matcher in one step.
pub const STEP_BUDGET: u32 = 10_000;
/// Actions that one step starts.
pub const STARTS_MAX: usize = 50;
/// Starts whose answers are awaited.
pub const STARTING_MAX: usize = 1_000;
/// Runs that are known by their ids; those beyond are counted.
pub const RUNNING_MAX: usize = 1_000;
/// Runs that one step asks again to cancel themselves.
pub const ASKED_AGAIN_MAX: usize = 10;
/// Actions that are remembered.
pub const RECENT_MAX: usize = 10;
/// Seconds of triggers that are remembered, so that each has a Workflow Id of its own.
pub const TRIGGERS_MAX: usize = 32;
/// The longest note, in bytes.
pub const NOTES_MAX_BYTES: usize = 1_000;
/// An idle schedule ends so long behind its last event, in ms: seven days.
pub const IDLE_MS: i64 = 7 * 86_400_000;
/// The catch-up window if none is given, in ms: 365 days.
pub const CATCHUP_DEFAULT_MS: i64 = 365 * 86_400_000;
/// The shortest catch-up window, in ms.
pub const CATCHUP_MIN_MS: i64 = 10_000;
/// How long a start that is put off is tried at least, in ms: an hour.
pub const PUT_OFF_MAX_MS: i64 = 3_600_000;

/// What the user decides about actions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedulePolicies {
    /// What becomes of an action while others run.
    #[prost(enumeration = "OverlapPolicy", tag = "1")]
    pub overlap: i32,
    /// How late an action may start; none means [`CATCHUP_DEFAULT_MS`].
    #[prost(message, optional, tag = "2")]
    pub catchup_window: Option<SpecDuration>,
    /// A run that fails or times out pauses the schedule.
    #[prost(bool, tag = "3")]
    pub pause_on_failure: bool,
    /// The time is not appended to the Workflow Id.
    #[prost(bool, tag = "4")]
    pub keep_original_workflow_id: bool,
}

impl SchedulePolicies {
    /// The window that holds, in ms.
    pub fn catchup_ms(&self) -> i64 {
        self.catchup_window.map_or(CATCHUP_DEFAULT_MS, |window| (window.ns() / 1_000_000).max(CATCHUP_MIN_MS))
    }

    /// With what holds in place of what is not given, as Describe shows it.
    pub fn resolved(mut self) -> Self {
        self.overlap = OverlapPolicy::Unspecified.or(self.overlap()).into();
        let window = SpecDuration::of_ns(self.catchup_ms().saturating_mul(1_000_000));
        self.catchup_window = Some(window);
        self
    }
}

/// A schedule's definition made ready for steps. It is derived, and never stored.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// Finds its times.
    pub matcher: Matcher,
    /// Its policies.
    pub policies: SchedulePolicies,
    /// The Workflow Id of its action, without a time.
    pub workflow_id: String,
    /// Actions that one step starts: [`STARTS_MAX`], or fewer where each is large, but at least one.
    pub starts_max: usize,
}

impl SchedulePlan {
    /// Of a stored form of the specification, the seed of its jitter, its policies, and its action's Workflow Id.
    ///
    /// # Errors
    /// A zone that is unknown or malformed.
    pub fn new(
        spec: &ScheduleSpec,
        seed: &str,
        policies: SchedulePolicies,
        workflow_id: &str,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            matcher: Matcher::new(spec, seed)?,
            policies,
            workflow_id: workflow_id.to_owned(),
            starts_max: STARTS_MAX,
        })
    }
}

/// What the user sets of a schedule's state, and it changes itself.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ScheduleSettings {
    /// Nothing scheduled starts.
    #[prost(bool, tag = "1")]
    pub is_paused: bool,
    /// Why, or whatever the user says.
    #[prost(string, tag = "2")]
    pub notes: String,
    /// `remaining` holds.
    #[prost(bool, tag = "3")]
    pub is_limited: bool,
    /// Scheduled actions that may still start.
    #[prost(int64, tag = "4")]
    pub remaining: i64,
}

/// What is known of the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum NextTimeKind {
    /// It has to be searched, from the position on.
    Unknown = 0,
    /// It is in `next`.
    Known = 1,
    /// There is none.
    Never = 2,
    /// Exclusions reject too many candidates: there is none.
    TooManyExclusions = 3,
}

/// An action that waits for its start.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BufferedAction {
    /// Of its own in the life of the schedule, from 1 on.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The time that matched, in seconds since 1970.
    #[prost(int64, tag = "2")]
    pub nominal_s: i64,
    /// When it was due, in ms since 1970.
    #[prost(int64, tag = "3")]
    pub actual_ms: i64,
    /// By a trigger or a backfill.
    #[prost(bool, tag = "4")]
    pub is_manual: bool,
    /// The backfill; 0 without.
    #[prost(uint64, tag = "5")]
    pub backfill: u64,
    /// Unspecified means the schedule's at the time of its start.
    #[prost(enumeration = "OverlapPolicy", tag = "6")]
    pub overlap: i32,
    /// Actions of the same nominal second that were there before it: part of its Workflow Id.
    #[prost(uint32, tag = "7")]
    pub ordinal: u32,
    /// A start that was put off is not tried before, in ms since 1970; 0 = no start was tried.
    #[prost(int64, tag = "8")]
    pub not_before_ms: i64,
    /// When its start was tried first, in ms since 1970.
    #[prost(int64, tag = "9")]
    pub first_tried_ms: i64,
    /// Starts that found its Workflow Id taken.
    #[prost(uint32, tag = "10")]
    pub clashes: u32,
}

/// An action whose start is under way, or whose chain of runs is open.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RunningAction {
    /// What it was while it waited.
    #[prost(message, required, tag = "1")]
    pub action: BufferedAction,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The first run of the chain; empty while its start is under way.
    #[prost(string, tag = "3")]
    pub first_run_id: String,
    /// It was asked to end.
    #[prost(bool, tag = "4")]
    pub is_cancelled: bool,
    /// It was asked to end at once.
    #[prost(bool, tag = "5")]
    pub is_terminated: bool,
}

impl RunningAction {
    /// True until its start is answered.
    pub fn is_starting(&self) -> bool {
        self.first_run_id.is_empty()
    }
}

/// An action that was started.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RecentAction {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The time that matched, in seconds since 1970.
    #[prost(int64, tag = "2")]
    pub nominal_s: i64,
    /// When it was due, in ms since 1970.
    #[prost(int64, tag = "3")]
    pub actual_ms: i64,
    /// When it was started, in ms since 1970.
    #[prost(int64, tag = "4")]
    pub start_ms: i64,
    /// The Workflow Id.
    #[prost(string, tag = "5")]
    pub workflow_id: String,
    /// The first run of the chain.
    #[prost(string, tag = "6")]
    pub first_run_id: String,
    /// A number of `WorkflowExecutionStatus`: running until the chain ends.
    #[prost(int32, tag = "7")]
    pub status: i32,
    /// As while it waited.
    #[prost(uint32, tag = "8")]
    pub ordinal: u32,
    /// When its start was tried first, in ms since 1970. Actions that waited are tried after later ones that did not.
    #[prost(int64, tag = "9")]
    pub first_tried_ms: i64,
}

/// A range of times that is worked off.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Backfill {
    /// Of its own in the life of the schedule, from 1 on.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// How far it is.
    #[prost(message, required, tag = "2")]
    pub position: SearchPosition,
    /// No actual time is behind it, in ms since 1970.
    #[prost(int64, tag = "3")]
    pub end_ms: i64,
    /// The policy of its actions.
    #[prost(enumeration = "OverlapPolicy", tag = "4")]
    pub overlap: i32,
}

/// The last action of a trigger's second.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct TriggeredSecond {
    /// In seconds since 1970.
    #[prost(int64, tag = "1")]
    pub second: i64,
    /// The ordinal of the last one.
    #[prost(uint32, tag = "2")]
    pub ordinal: u32,
}

/// What became of times and actions, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ActionCounts {
    /// Started, by whatever.
    #[prost(uint64, tag = "1")]
    pub started: u64,
    /// Too late by the catch-up window.
    #[prost(uint64, tag = "2")]
    pub missed: u64,
    /// Dropped by their overlap policy.
    #[prost(uint64, tag = "3")]
    pub skipped: u64,
    /// Lost as the buffer was full.
    #[prost(uint64, tag = "4")]
    pub dropped: u64,
    /// Their turn came while the schedule was paused.
    #[prost(uint64, tag = "5")]
    pub paused: u64,
    /// Their turn came when no actions remained.
    #[prost(uint64, tag = "6")]
    pub exhausted: u64,
    /// Their Workflow Id was taken.
    #[prost(uint64, tag = "7")]
    pub clashed: u64,
    /// Their start was refused.
    #[prost(uint64, tag = "8")]
    pub refused: u64,
}

/// The state of a schedule, beside its definition.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScheduleState {
    /// What the user sets.
    #[prost(message, required, tag = "1")]
    pub settings: ScheduleSettings,
    /// Changes with each change that a client's update could undo; from 1 on.
    #[prost(uint64, tag = "2")]
    pub conflict_token: u64,
    /// How far its times are worked off.
    #[prost(message, required, tag = "3")]
    pub position: SearchPosition,
    /// What is known of the next time behind the position.
    #[prost(enumeration = "NextTimeKind", tag = "4")]
    pub next_kind: i32,
    /// It, if it is known.
    #[prost(message, optional, tag = "5")]
    pub next: Option<ActionTime>,
    /// Times due before are passed over, in ms since 1970: when the schedule was updated or unpaused.
    #[prost(int64, tag = "6")]
    pub not_before_ms: i64,
    /// The last number that was given to an action.
    #[prost(uint64, tag = "7")]
    pub last_number: u64,
    /// The last number that was given to a backfill.
    #[prost(uint64, tag = "8")]
    pub last_backfill: u64,
    /// Actions that wait, in their order; at most [`BUFFER_MAX`].
    #[prost(message, repeated, tag = "9")]
    pub buffer: Vec<BufferedAction>,
    /// Actions that are starting or running, in order of their starts.
    #[prost(message, repeated, tag = "10")]
    pub running: Vec<RunningAction>,
    /// Running ones beyond [`RUNNING_MAX`].
    #[prost(uint64, tag = "11")]
    pub running_beyond: u64,
    /// The last started, at most [`RECENT_MAX`].
    #[prost(message, repeated, tag = "12")]
    pub recent: Vec<RecentAction>,
    /// In the order in which they are worked off; at most [`BACKFILLS_MAX`].
    #[prost(message, repeated, tag = "13")]
    pub backfills: Vec<Backfill>,
    /// The last triggers, at most [`TRIGGERS_MAX`].
    #[prost(message, repeated, tag = "14")]
    pub triggers: Vec<TriggeredSecond>,
    /// What became of times and actions.
    #[prost(message, required, tag = "15")]
    pub counts: ActionCounts,
    /// When it was created, in ms since 1970.
    #[prost(int64, tag = "16")]
    pub create_ms: i64,
    /// When it was last updated, in ms since 1970; 0 = never.
    #[prost(int64, tag = "17")]
    pub update_ms: i64,
    /// Its last creation, update, unpausing or start, in ms since 1970: what idleness is counted from.
    #[prost(int64, tag = "18")]
    pub last_event_ms: i64,
}

impl ScheduleState {
    /// True if scheduled actions may start.
    pub fn may_act(&self) -> bool {
        !self.settings.is_paused && !self.is_exhausted()
    }

    /// True if a limit was reached.
    pub fn is_exhausted(&self) -> bool {
        self.settings.is_limited && self.settings.remaining <= 0
    }

    /// True while anything that it has started runs, or is being started.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty() || self.running_beyond > 0
    }

    /// True while a start is under way: what Describe waits for.
    pub fn is_starting(&self) -> bool {
        self.running.iter().any(RunningAction::is_starting)
    }

    /// Actions that wait, without those whose start is under way.
    pub fn buffer_size(&self) -> usize {
        self.buffer.len()
    }

    /// Running actions that are known by their ids.
    pub fn running_runs(&self) -> impl Iterator<Item = &RunningAction> {
        self.running.iter().filter(|action| !action.is_starting())
    }
}
