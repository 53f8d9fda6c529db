//! A step: what changes a schedule, and what it asks of the world.

use crate::matcher::MatchBudget;
use crate::state::{BufferedAction, STEP_BUDGET, SchedulePlan, ScheduleSettings, ScheduleState, TAKEN_MAX};

/// What a step asks for, and what it has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleEffect {
    /// A run is to be started; the answer is [`ScheduleState::action_opened`], its end [`ScheduleState::action_closed`].
    Start(StartAction),
    /// A chain of runs is to be cancelled, with the reason "cancelled by schedule overlap policy".
    Cancel(StartedRun),
    /// The same of a chain that was asked before: a run that has followed since does not know of it.
    CancelAgain(StartedRun),
    /// A chain of runs is to be terminated, with the reason "terminated by schedule overlap policy".
    Terminate(StartedRun),
    /// The schedule is idle for too long and ends.
    Close,
    /// An action was started.
    Fired(FiredAction),
    /// An action was dropped.
    Skipped(SkippedAction),
    /// Times were too late.
    Missed(MissedTimes),
    /// The schedule was paused or unpaused.
    PauseChanged(PauseChange),
    /// The schedule was made.
    Created(ScheduleRevision),
    /// The definition and the settings were replaced.
    Updated(ScheduleRevision),
}

/// A run to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAction {
    /// The action's number.
    pub number: u64,
    /// The time that matched, in seconds since 1970: `TemporalScheduledStartTime`.
    pub nominal_s: i64,
    /// When it was due, in ms since 1970.
    pub actual_ms: i64,
    /// By a trigger or a backfill: a closed run with the same Workflow Id is no obstacle then.
    pub is_manual: bool,
    /// The Workflow Id.
    pub workflow_id: String,
    /// A closed run with the same Workflow Id is no obstacle.
    pub allows_duplicate: bool,
    /// The last completion result and the last failure are given to it.
    pub gets_last_result: bool,
}

/// A chain of runs, by its Workflow Id and its first run, so that no other run of the id is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedRun {
    /// The action's number.
    pub number: u64,
    /// The Workflow Id.
    pub workflow_id: String,
    /// The first run of the chain.
    pub first_run_id: String,
}

/// An action that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredAction {
    /// Which run.
    pub run: StartedRun,
    /// The time that matched, in seconds since 1970.
    pub nominal_s: i64,
    /// When it was due, in ms since 1970.
    pub actual_ms: i64,
    /// When it was started, in ms since 1970.
    pub start_ms: i64,
    /// By a trigger or a backfill.
    pub is_manual: bool,
}

/// An action that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedAction {
    /// Its number; 0 if it had none yet.
    pub number: u64,
    /// The time that matched, in seconds since 1970.
    pub nominal_s: i64,
    /// When it was due, in ms since 1970.
    pub actual_ms: i64,
    /// By a trigger or a backfill.
    pub is_manual: bool,
    /// Why.
    pub reason: SkipReason,
}

/// Why an action was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its overlap policy.
    Overlap,
    /// Too many actions waited.
    BufferFull,
    /// The schedule was paused when its turn came.
    Paused,
    /// No actions remained when its turn came.
    Exhausted,
    /// Its Workflow Id was taken.
    WorkflowIdTaken,
    /// Its start was refused.
    Refused,
}

/// A schedule that was paused or unpaused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseChange {
    /// It is paused now.
    pub is_paused: bool,
    /// Why, or whatever was said.
    pub notes: String,
}

/// A schedule that was made, or whose definition was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRevision {
    /// The token behind it.
    pub conflict_token: u64,
    /// It is paused now.
    pub is_paused: bool,
    /// The notes behind it.
    pub notes: String,
}

/// Times that were too late by the catch-up window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedTimes {
    /// How many.
    pub count: u64,
    /// The nominal time of the first, in seconds since 1970.
    pub first_nominal_s: i64,
    /// The nominal time of the last, in seconds since 1970.
    pub last_nominal_s: i64,
}

/// A step under way.
pub(super) struct ScheduleStep<'a> {
    pub(super) state: &'a mut ScheduleState,
    pub(super) plan: &'a SchedulePlan,
    /// The time of the step, in ms since 1970.
    pub(super) now_ms: i64,
    pub(super) budget: MatchBudget,
    /// Times that may still be taken into the buffer.
    pub(super) takes_left: usize,
    /// A user changes something, or a time is due: runs that were asked to cancel themselves are asked again.
    pub(super) asks_again: bool,
    pub(super) effects: Vec<ScheduleEffect>,
}

impl<'a> ScheduleStep<'a> {
    pub(super) fn new(state: &'a mut ScheduleState, plan: &'a SchedulePlan, now_ms: i64) -> Self {
        let budget = MatchBudget::new(STEP_BUDGET);
        let (takes_left, asks_again, effects) = (TAKEN_MAX, false, Vec::new());
        Self { state, plan, now_ms, budget, takes_left, asks_again, effects }
    }

    /// Takes what is due, starts what may start, and finds the next time.
    pub(super) fn work(mut self) -> Vec<ScheduleEffect> {
        self.take_due();
        self.asks_again |= self.takes_left < TAKEN_MAX;
        self.take_backfills();
        self.pass();
        self.find_next();
        if self.state.idle_since_ms().is_some_and(|end_ms| end_ms <= self.now_ms) {
            self.effects.push(ScheduleEffect::Close);
        }
        self.effects
    }

    pub(super) fn skip(&mut self, action: &BufferedAction, reason: SkipReason) {
        let counts = &mut self.state.counts;
        let count = match reason {
            SkipReason::Overlap => &mut counts.skipped,
            SkipReason::BufferFull => &mut counts.dropped,
            SkipReason::Paused => &mut counts.paused,
            SkipReason::Exhausted => &mut counts.exhausted,
            SkipReason::WorkflowIdTaken => &mut counts.clashed,
            SkipReason::Refused => &mut counts.refused,
        };
        *count += 1;
        self.effects.push(ScheduleEffect::Skipped(SkippedAction {
            number: action.number,
            nominal_s: action.nominal_s,
            actual_ms: action.actual_ms,
            is_manual: action.is_manual,
            reason,
        }));
    }
}

impl ScheduleState {
    /// What is told of a change between paused and not, once it has happened.
    pub(super) fn pause_changed(&self) -> ScheduleEffect {
        let ScheduleSettings { is_paused, notes, .. } = self.settings.clone();
        ScheduleEffect::PauseChanged(PauseChange { is_paused, notes })
    }

    /// What is told of the schedule once it is made or replaced.
    pub(super) fn revision(&self) -> ScheduleRevision {
        let ScheduleSettings { is_paused, notes, .. } = self.settings.clone();
        ScheduleRevision { conflict_token: self.conflict_token, is_paused, notes }
    }

    /// Works off what is due: at the alarm, or at any other time.
    pub fn wake(&mut self, plan: &SchedulePlan, now_ms: i64) -> Vec<ScheduleEffect> {
        ScheduleStep::new(self, plan, now_ms).work()
    }
}
