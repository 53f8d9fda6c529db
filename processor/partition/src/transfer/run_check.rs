//! Whether the state of a run is what its history makes of it: a sample of what a log holds.

use std::collections::BTreeSet;

use bytes::Bytes;
use everlog_engine::event::History;
use everlog_engine::{Run, rebuild};
use everlog_store::{CommittedRows, Space, Store};
use prost::Message;

use crate::error::Error;
use crate::model::keys::{RunKey, history_key};
use crate::state::run_index::runs_behind;
use crate::state::run_store::RunStore;

/// Compares runs of a partition with their histories.
pub struct RunChecker<B: CommittedRows> {
    runs: RunStore<B>,
    buckets: std::ops::Range<u32>,
}

impl<B: CommittedRows> RunChecker<B> {
    /// The runs of a partition, which has these buckets.
    pub fn new(partition: u32, buckets: std::ops::Range<u32>, rows: B) -> Self {
        Self { runs: RunStore::new(partition, buckets.clone(), Store::new(rows), 0), buckets }
    }

    /// Compares the first `runs_max` runs: how many there were, and a sentence for each that differs.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn check(&self, runs_max: usize) -> Result<(usize, Vec<String>), Error> {
        let (keys, _is_last) = runs_behind(self.runs.rows(), &self.buckets, &Bytes::new(), runs_max)?;
        let mut differences = Vec::new();
        for key in &keys {
            let Some(run) = self.runs.look(key)? else { continue };
            // A schedule has no history.
            if run.schedule.is_none()
                && let Some(difference) = self.difference(key, &run)?
            {
                let (id, run_id) = (&run.start.workflow_id, &run.start.run_id);
                differences.push(format!("run {run_id} of {id}: {difference}"));
            }
        }
        Ok((keys.len(), differences))
    }

    fn difference(&self, key: &RunKey, run: &Run) -> Result<Option<String>, Error> {
        let (mut batches, mut damaged) = (Vec::new(), None);
        let (from, to) = (history_key(key, 0), history_key(key, i64::MAX));
        self.runs.rows().scan(Space::History, &from, &to, &mut |_, value| {
            match History::decode(value) {
                Ok(batch) => batches.push(batch),
                Err(error) => damaged = Some(error),
            }
            damaged.is_none()
        })?;
        if let Some(error) = damaged {
            return Err(Error::damaged("a batch of events", &error));
        }
        let rebuilt = rebuild((*run.start).clone(), &batches);
        let (found, wanted) = (rebuilt.head.next_event_id, run.head.next_event_id);
        if found != wanted {
            return Ok(Some(format!("its history ends before event {found}, its state before {wanted}")));
        }
        if rebuilt.is_open() != run.is_open() {
            return Ok(Some("history and state disagree on whether it is open".into()));
        }
        // What buffered events have ended is still open in the history.
        let is_comparable = run.is_open() && run.buffered.is_empty();
        Ok((is_comparable && open_parts(&rebuilt) != open_parts(run))
            .then(|| "history and state disagree on what is open in it".into()))
    }
}

/// Timers, children, activities.
type OpenParts = (BTreeSet<String>, BTreeSet<i64>, BTreeSet<i64>);

fn open_parts(run: &Run) -> OpenParts {
    let timers = run.timers.keys().cloned().collect();
    (timers, run.children.keys().copied().collect(), run.activities.keys().copied().collect())
}
