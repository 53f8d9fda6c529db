//! A pass over the actions that wait: what starts, what goes on waiting, what is dropped, and what is to end.

use crate::overlap::{OverlapDecision, OverlapInput, OverlapPass, OverlapPolicy, RunEnd, WaitingAction};
use crate::state::step::{ScheduleEffect, ScheduleStep, SkipReason, StartAction, StartedRun};
use crate::state::workflow_id::workflow_id;
use crate::state::{
    ASKED_AGAIN_MAX, BufferedAction, RunningAction, STARTING_MAX, SchedulePlan, ScheduleState,
};

impl ScheduleStep<'_> {
    pub(super) fn pass(&mut self) {
        if self.state.buffer.is_empty() {
            return;
        }
        let pass = self.state.overlap_pass(self.plan, self.now_ms);
        let waiting = std::mem::take(&mut self.state.buffer);
        let mut decided: Vec<_> = waiting.into_iter().zip(pass.decisions).collect();
        if let Some((newest, first)) = pass.takes_place {
            decided[first..=newest].rotate_right(1);
        }
        for (action, decision) in decided {
            match decision {
                OverlapDecision::Start => self.start(action),
                OverlapDecision::Keep => self.state.buffer.push(action),
                OverlapDecision::Skip => self.skip(&action, SkipReason::Overlap),
                OverlapDecision::Drop if self.state.settings.is_paused => {
                    self.skip(&action, SkipReason::Paused);
                }
                OverlapDecision::Drop => self.skip(&action, SkipReason::Exhausted),
            }
        }
        if let Some(end) = pass.end_running {
            self.end_running(end);
        }
    }

    fn start(&mut self, mut action: BufferedAction) {
        let is_counted = action.first_tried_ms != 0;
        if !is_counted {
            action.first_tried_ms = self.now_ms.max(1);
        }
        if self.state.settings.is_limited && !action.is_manual && !is_counted {
            self.state.settings.remaining -= 1;
            self.state.conflict_token += 1;
        }
        let workflow_id = workflow_id(self.plan, &action);
        let policy = action.overlap().or(self.plan.policies.overlap());
        self.effects.push(ScheduleEffect::Start(StartAction {
            number: action.number,
            nominal_s: action.nominal_s,
            actual_ms: action.actual_ms,
            is_manual: action.is_manual,
            workflow_id: workflow_id.clone(),
            allows_duplicate: action.is_manual || self.plan.policies.keep_original_workflow_id,
            gets_last_result: policy != OverlapPolicy::AllowAll,
        }));
        self.state.running.push(RunningAction { action, workflow_id, ..RunningAction::default() });
    }

    /// Asks all that run, and have not been asked, to end. Whose start is under way is asked when it is answered. A run that
    /// was asked to cancel itself may have been followed by one that was not, as it was retried or has continued as new:
    /// the oldest of these chains are asked again.
    fn end_running(&mut self, end: RunEnd) {
        let mut again_left = if self.asks_again { ASKED_AGAIN_MAX } else { 0 };
        for running in self.state.running.iter_mut().filter(|running| !running.is_starting()) {
            let run = || StartedRun {
                number: running.action.number,
                workflow_id: running.workflow_id.clone(),
                first_run_id: running.first_run_id.clone(),
            };
            match end {
                RunEnd::Terminate if !running.is_terminated => {
                    self.effects.push(ScheduleEffect::Terminate(run()));
                    running.is_terminated = true;
                }
                RunEnd::Cancel if !running.is_cancelled && !running.is_terminated => {
                    self.effects.push(ScheduleEffect::Cancel(run()));
                    running.is_cancelled = true;
                }
                RunEnd::Cancel if !running.is_terminated && again_left > 0 => {
                    self.effects.push(ScheduleEffect::CancelAgain(run()));
                    again_left -= 1;
                }
                RunEnd::Terminate | RunEnd::Cancel => {}
            }
        }
    }
}

impl ScheduleState {
    /// What a pass would decide now.
    pub(super) fn overlap_pass(&self, plan: &SchedulePlan, now_ms: i64) -> OverlapPass {
        let policy = plan.policies.overlap();
        let waiting = self.buffer.iter().map(|action| WaitingAction {
            policy: action.overlap().or(policy),
            // A start that was tried before has been counted already.
            is_manual: action.is_manual || action.first_tried_ms != 0,
            is_delayed: action.not_before_ms > now_ms,
        });
        let waiting: Vec<WaitingAction> = waiting.collect();
        let starting = self.running.iter().filter(|running| running.is_starting()).count();
        let scheduled_max = match &self.settings {
            settings if settings.is_paused => Some(0),
            settings if settings.is_limited => Some(u64::try_from(settings.remaining).unwrap_or(0)),
            _unlimited => None,
        };
        let input = OverlapInput {
            is_running: self.is_running(),
            scheduled_max,
            starts_max: STARTING_MAX.saturating_sub(starting).min(plan.starts_max),
        };
        OverlapPass::of(&waiting, input)
    }
}
