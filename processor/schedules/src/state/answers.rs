//! Answers: what became of a start, and that a chain of runs has ended.

use crate::state::step::{FiredAction, ScheduleEffect, ScheduleStep, SkipReason, StartedRun};
use crate::state::{
    NOTES_MAX_BYTES, PUT_OFF_MAX_MS, RECENT_MAX, RUNNING_MAX, RecentAction, RunningAction, SchedulePlan,
    ScheduleState,
};

/// Numbers of `WorkflowExecutionStatus`.
const RUNNING: i32 = 1;
const FAILED: i32 = 3;
const TIMED_OUT: i32 = 7;
/// Workflow Ids that are tried for a trigger: they are taken by runs that others have started.
const CLASHES_MAX: u32 = 8;
/// A start is put off by no more at a time, in ms.
const DELAY_MAX_MS: i64 = 60_000;

/// What became of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOpening {
    /// The run has begun.
    Started {
        /// The first run of the chain.
        first_run_id: String,
        /// When, in ms since 1970.
        start_ms: i64,
    },
    /// The Workflow Id is taken.
    WorkflowIdTaken,
    /// It cannot be started, now or later.
    Refused,
    /// It is to be tried again.
    Later {
        /// In how many ms.
        delay_ms: i64,
    },
}

/// How a chain of runs has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionEnd {
    /// A number of `WorkflowExecutionStatus`: of the last run of the chain.
    pub status: i32,
    /// The Workflow Id.
    pub workflow_id: String,
    /// The message of its failure; empty without one.
    pub failure_message: String,
}

impl ScheduleState {
    /// The start of an action is answered. Answers to actions that are not starting change nothing.
    pub fn action_opened(
        &mut self,
        plan: &SchedulePlan,
        number: u64,
        opening: ActionOpening,
        now_ms: i64,
    ) -> Vec<ScheduleEffect> {
        let is_it = |running: &RunningAction| running.action.number == number && running.is_starting();
        let Some(place) = self.running.iter().position(is_it) else { return Vec::new() };
        let mut step = ScheduleStep::new(self, plan, now_ms);
        match opening {
            ActionOpening::Started { first_run_id, start_ms } => step.started(place, first_run_id, start_ms),
            ActionOpening::WorkflowIdTaken => step.clashed(place),
            ActionOpening::Refused => {
                let running = step.state.running.remove(place);
                step.skip(&running.action, SkipReason::Refused);
            }
            ActionOpening::Later { delay_ms } => step.put_off(place, delay_ms),
        }
        step.work()
    }

    /// A chain of runs has ended. The end of each action is told once, behind the answer to its start.
    pub fn action_closed(
        &mut self,
        plan: &SchedulePlan,
        number: u64,
        end: &ActionEnd,
        now_ms: i64,
    ) -> Vec<ScheduleEffect> {
        let is_it = |running: &RunningAction| running.action.number == number && !running.is_starting();
        match self.running.iter().position(is_it) {
            Some(place) => drop(self.running.remove(place)),
            None => self.running_beyond = self.running_beyond.saturating_sub(1),
        }
        if let Some(recent) = self.recent.iter_mut().find(|recent| recent.number == number) {
            recent.status = end.status;
        }
        let mut step = ScheduleStep::new(self, plan, now_ms);
        if plan.policies.pause_on_failure && !step.state.settings.is_paused {
            step.pause_on_failure(end);
        }
        step.work()
    }
}

impl ScheduleStep<'_> {
    fn started(&mut self, place: usize, first_run_id: String, start_ms: i64) {
        let state = &mut *self.state;
        let running = &mut state.running[place];
        running.first_run_id.clone_from(&first_run_id);
        let (action, workflow_id) = (&running.action, running.workflow_id.clone());
        // Answers of several partitions come in any order.
        let at = state.recent.partition_point(|other| other.number < action.number);
        let recent = RecentAction {
            number: action.number,
            nominal_s: action.nominal_s,
            actual_ms: action.actual_ms,
            start_ms,
            workflow_id: workflow_id.clone(),
            first_run_id: first_run_id.clone(),
            status: RUNNING,
            ordinal: action.ordinal,
            first_tried_ms: action.first_tried_ms,
        };
        state.recent.insert(at, recent);
        if state.recent.len() > RECENT_MAX {
            state.recent.remove(0);
        }
        state.counts.started += 1;
        state.last_event_ms = state.last_event_ms.max(start_ms);
        self.effects.push(ScheduleEffect::Fired(FiredAction {
            run: StartedRun { number: action.number, workflow_id, first_run_id },
            nominal_s: action.nominal_s,
            actual_ms: action.actual_ms,
            start_ms,
            is_manual: action.is_manual,
        }));
        let known = state.running.iter().filter(|running| !running.is_starting()).count();
        if known > RUNNING_MAX {
            state.running.remove(place);
            state.running_beyond += 1;
        }
    }

    /// The id belongs to another run. A trigger takes the next one, anything else is dropped.
    fn clashed(&mut self, place: usize) {
        let RunningAction { mut action, .. } = self.state.running.remove(place);
        let is_trigger = action.is_manual && action.backfill == 0;
        action.clashes += 1;
        let has_other_ids = !self.plan.policies.keep_original_workflow_id;
        if !is_trigger || !has_other_ids || action.clashes >= CLASHES_MAX {
            self.skip(&action, SkipReason::WorkflowIdTaken);
            return;
        }
        action.ordinal = action.ordinal.saturating_add(1).max(self.state.next_ordinal(action.nominal_s));
        self.state.remember_trigger(action.nominal_s, action.ordinal);
        self.state.buffer.insert(0, action);
    }

    /// It waits again, before all others, unless it is too late then.
    fn put_off(&mut self, place: usize, delay_ms: i64) {
        let RunningAction { mut action, .. } = self.state.running.remove(place);
        action.not_before_ms = self.now_ms.saturating_add(delay_ms.clamp(1, DELAY_MAX_MS));
        let window_ms = self.plan.policies.catchup_ms();
        let caught_up_ms =
            if action.is_manual { i64::MIN } else { action.actual_ms.saturating_add(window_ms) };
        let last_ms = caught_up_ms.max(action.first_tried_ms.saturating_add(PUT_OFF_MAX_MS));
        if action.not_before_ms > last_ms {
            self.skip(&action, SkipReason::Refused);
        } else {
            self.state.buffer.insert(0, action);
        }
    }

    fn pause_on_failure(&mut self, end: &ActionEnd) {
        let mut notes = match end.status {
            FAILED => format!("paused due to workflow failure: {}: {}", end.workflow_id, end.failure_message),
            TIMED_OUT => format!("paused due to workflow timeout: {}", end.workflow_id),
            _no_failure => return,
        };
        notes.truncate(notes.floor_char_boundary(NOTES_MAX_BYTES));
        self.state.settings.is_paused = true;
        self.state.settings.notes = notes;
        self.state.conflict_token += 1;
        self.effects.push(self.state.pause_changed());
    }
}
