//! What is left of runs that are forgotten: histories that were too long for one step, or not there yet.
//!
//! A row among the alarms, at a moment of its own, says that a history is to be deleted; nothing decides on it.

use std::collections::BTreeSet;

use bytes::Bytes;
use everlog_log::Log;
use everlog_store::{CommittedRows, Space, Store};

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::keys::{DELETION_MS, RunKey, timer_key};
use crate::partition::Partition;
use crate::state::run_store::EXPIRED_ROWS_MAX;
use crate::timers::timer_rows::{TIMERS_SLICE, TimerRows};

/// The rest between two slices, in ms.
const REST_MS: i64 = 10;

/// Runs whose histories are to be deleted.
#[derive(Default)]
pub(crate) struct HistoryDeletions {
    runs: BTreeSet<RunKey>,
    next_ms: i64,
    /// Histories are still being brought: they would come back.
    waits: bool,
}

impl HistoryDeletions {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// When the next slice is deleted.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        (!self.runs.is_empty() && !self.waits).then_some(self.next_ms)
    }

    /// The run's history is deleted later.
    pub(crate) fn add<B: CommittedRows>(&mut self, store: &mut Store<B>, key: &RunKey) {
        store.put(Space::Timers, timer_key(key, DELETION_MS), Bytes::from_static(&[1]));
        self.runs.insert(key.clone());
    }

    /// The run of which a slice is deleted now. `waits`: histories are still being brought. `is_overfull`: too much waits
    /// for a commit.
    fn next_run(&mut self, now_ms: i64, waits: bool, is_overfull: bool) -> Option<RunKey> {
        self.next_ms = self.next_ms.min(now_ms + REST_MS);
        self.waits = waits;
        if self.waits || now_ms < self.next_ms || is_overfull {
            return None;
        }
        let key = self.runs.first().cloned()?;
        self.next_ms = now_ms + REST_MS;
        Some(key)
    }

    /// Nothing is left of the run's history.
    fn done<B: CommittedRows>(&mut self, store: &mut Store<B>, key: &RunKey) {
        store.delete(Space::Timers, timer_key(key, DELETION_MS));
        self.runs.remove(key);
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// What former owners have left.
    pub(crate) fn find_histories_to_delete(&mut self) -> Result<(), Error> {
        let mut rows = TimerRows::of(&self.context, DELETION_MS..DELETION_MS + 1);
        while !rows.is_done() {
            let found = self.timers.read(&mut rows, self.runs.rows(), TIMERS_SLICE)?;
            self.history_deletions.runs.extend(found.into_iter().map(|(_, key)| key));
        }
        Ok(())
    }

    /// Deletes a slice of what is left.
    pub(crate) fn delete_histories(&mut self, now_ms: i64) -> Result<(), Error> {
        let (waits, is_overfull) = (self.backfill.is_some(), self.is_overfull());
        let Some(key) = self.history_deletions.next_run(now_ms, waits, is_overfull) else { return Ok(()) };
        if self.runs.delete_history(&key, EXPIRED_ROWS_MAX)? {
            self.history_deletions.done(self.runs.store(), &key);
        }
        self.commits.note_change();
        Ok(())
    }
}
