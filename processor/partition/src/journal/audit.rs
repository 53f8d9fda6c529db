//! What a partition, a dispatcher and an exchange say of where ready tasks are, for whoever checks that none is forgotten.

use std::collections::BTreeSet;

use everlog_engine::Run;
use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::error::Error;
use crate::invariants::Rules;
use crate::matching::dispatcher::ReadyId;
use crate::model::keys::{RunKey, WAITING_MS};
use crate::model::task_types::TaskRef;
use crate::partition::Partition;
use crate::timers::timer_rows::TimerRows;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// The ready tasks that the partition has offered: each of them waits at the home of its queue, is on its way there, or is being claimed
    /// of this partition. Those that it keeps itself are left out: they are yet to be offered, wait for a commit or for their
    /// histories, or their claims are under way. Changes nothing.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn offered(&self) -> Result<Vec<ReadyId>, Error> {
        if !self.ownership.is_serving() || self.offers.has_unoffered() {
            return Ok(Vec::new());
        }
        let mut rows = TimerRows::of(&self.context, WAITING_MS);
        let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
        while !rows.is_done() {
            let read = rows.read(self.runs.rows(), usize::MAX)?;
            keys.extend(
                read.iter()
                    .filter_map(|row| Some(crate::model::keys::read_timer_key(row)?.1.bytes().to_vec())),
            );
        }
        keys.extend(self.runs.changed().map(|key| key.bytes().to_vec()));
        let kept = self.kept();
        let mut offered = Vec::new();
        for key in keys.iter().filter_map(|key| RunKey::read(key)) {
            let Some(run) = self.runs.look(&key)? else { continue };
            if !self.namespace_deletions.has(&run.start.namespace_id) {
                offered.extend(ready(&key, &run).filter(|id| !kept.contains(id)));
            }
        }
        Ok(offered)
    }

    /// What the partition keeps itself.
    fn kept(&self) -> Vec<ReadyId> {
        let claims = self.journal.claimed().map(of);
        let parked = self.backfill.iter().flat_map(|backfill| backfill.parked());
        claims.chain(self.offers.held().map(of)).chain(parked.map(of)).collect()
    }
}

fn of(task: &TaskRef) -> ReadyId {
    ReadyId::of_task(task)
}

/// The tasks of a run that a worker can have.
fn ready(key: &RunKey, run: &Run) -> impl Iterator<Item = ReadyId> {
    // One that rests is offered to nobody.
    let task = run.head.task.as_ref().filter(|task| !task.is_started() && !task.is_resting());
    let task = task.map(|task| (task.scheduled_event_id, task.attempt, task.stamp));
    let activities = run.activities.values().filter(|activity| run.offers(activity));
    let activities =
        activities.map(|activity| (activity.scheduled_event_id, activity.attempt, activity.stamp));
    task.into_iter()
        .chain(activities)
        .map(|(id, attempt, stamp)| ReadyId::Task(key.clone(), id, attempt, stamp))
}
