//! The step observers: what follows from each applied step, in a fixed order.
//!
//! An observer reads the step and changes only what its own component holds. Whatever must follow the state of runs (an
//! index, a counter, a waiter) is one more row of the list.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_engine::{Grace, Run, SizeWarning, Step};
use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::keys::RunKey;
use crate::partition::Partition;

/// A step whose rows and events are written.
pub(crate) struct AppliedStep {
    pub(crate) key: RunKey,
    /// The run before the step; none where it was not in memory.
    pub(crate) before: Option<Arc<Run>>,
    pub(crate) step: Step,
    pub(crate) has_new_events: bool,
}

/// Called with each applied step.
type Observer<P> = fn(&mut P, &AppliedStep) -> Result<(), Error>;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// What every owner writes, also while it replays the journal.
    const DURABLE_OBSERVERS: [Observer<Self>; 1] = [Self::write_deferred_replies];
    /// What an owner keeps in memory and tells others: after a replay it is built from the state instead.
    const LIVE_OBSERVERS: [Observer<Self>; 6] = [
        Self::warn_of_size,
        Self::count_endings,
        Self::set_deadline,
        Self::wake_history_watchers,
        Self::answer_update_waiters,
        Self::send_queries,
    ];
    /// Called with each run that is deleted.
    const DELETION_OBSERVERS: [fn(&mut Self, &RunKey); 3] = [
        |partition, key| partition.waiters.histories.tell_all(key),
        |partition, key| partition.timers.due.set(key, None),
        |partition, key| partition.waiters.queries.refuse(key),
    ];

    /// Runs the observers of a step.
    pub(crate) fn observe(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        Self::DURABLE_OBSERVERS.into_iter().try_for_each(|observer| observer(self, applied))?;
        if self.ownership.is_replaying() {
            return Ok(());
        }
        Self::LIVE_OBSERVERS.into_iter().try_for_each(|observer| observer(self, applied))
    }

    /// Runs the observers of a deleted run.
    pub(crate) fn observe_deletion(&mut self, key: &RunKey) {
        Self::DELETION_OBSERVERS.into_iter().for_each(|observer| observer(self, key));
    }

    fn write_deferred_replies(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        self.keep_promises(&applied.key, &applied.step)
    }

    /// Logs and counts a run that nears a limit which would terminate it or refuse its requests.
    fn warn_of_size(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        let AppliedStep { key, before, step, .. } = applied;
        for (mark, size) in step.marks_passed(before.as_deref(), &self.context.config.settings) {
            if !self.runs.warns(key, mark) {
                continue;
            }
            let (what, counter) = match mark {
                SizeWarning::Events => ("events", &self.context.stats.large_histories),
                SizeWarning::History => ("bytes of its history", &self.context.stats.large_histories),
                SizeWarning::State => ("bytes of its state", &self.context.stats.large_states),
                SizeWarning::Memo => ("bytes of its memo", &self.context.stats.large_memos),
                SizeWarning::Blob => ("bytes of one payload", &self.context.stats.large_payloads),
            };
            let start = &step.run.start;
            tracing::warn!(
                partition = self.context.id,
                namespace_id = start.namespace_id,
                workflow_id = start.workflow_id,
                run_id = start.run_id,
                workflow_type = step.run.workflow_type(),
                size,
                "a run is beyond its mark of {what}, on the way to a limit"
            );
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn count_endings(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        for ending in applied.step.endings(applied.before.as_deref()) {
            self.context.config.ending_counts.count(&applied.step.run.start.namespace_id, ending);
        }
        Ok(())
    }

    fn set_deadline(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        let grace = Grace { owner_ms: self.position.owner_ms };
        self.timers.due.set(&applied.key, applied.step.run.next_deadline_ms(grace));
        Ok(())
    }

    fn wake_history_watchers(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        if applied.has_new_events || applied.step.run.schedule.is_some() {
            self.waiters.histories.tell(&applied.key, &applied.step.run);
        }
        Ok(())
    }

    fn answer_update_waiters(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        self.waiters.updates.settle(&applied.key, &applied.step);
        Ok(())
    }

    fn send_queries(&mut self, applied: &AppliedStep) -> Result<(), Error> {
        if !self.waiters.queries.is_empty() {
            for question in self.waiters.queries.settle(&applied.key, &applied.step.run) {
                self.send_query(&applied.key, &applied.step.run, question);
            }
        }
        Ok(())
    }
}
