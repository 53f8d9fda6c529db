//! The Workflow Id of an action: the schedule's, and the nominal time behind it.

use crate::civil::rfc3339;
use crate::state::{BufferedAction, SchedulePlan, ScheduleState};

/// The Workflow Id of an action. Of several in one second all but the first have a number behind it, so that none of them
/// is taken for another.
pub(super) fn workflow_id(plan: &SchedulePlan, action: &BufferedAction) -> String {
    if plan.policies.keep_original_workflow_id {
        return plan.workflow_id.clone();
    }
    let id = format!("{}-{}", plan.workflow_id, rfc3339(action.nominal_s));
    match action.ordinal {
        0 => id,
        ordinal => format!("{id}-{}", u64::from(ordinal) + 1),
    }
}

impl ScheduleState {
    /// The ordinal of one more action of a second.
    pub(super) fn next_ordinal(&self, nominal_s: i64) -> u32 {
        let buffered = self.buffer.iter().chain(self.running.iter().map(|running| &running.action));
        let buffered = buffered.map(|action| (action.nominal_s, action.ordinal));
        let recent = self.recent.iter().map(|action| (action.nominal_s, action.ordinal));
        let triggered = self.triggers.iter().map(|trigger| (trigger.second, trigger.ordinal));
        let all = buffered.chain(recent).chain(triggered);
        let last = all.filter(|(second, _)| *second == nominal_s).map(|(_, ordinal)| ordinal).max();
        last.map_or(0, |last| last.saturating_add(1))
    }
}
