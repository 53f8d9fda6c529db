//! What becomes due: deadlines of runs and delayed commands of the near future, by the log's time.
//!
//! It reads rows of timers and knows no run: the partition makes records of what is due.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_store::{CommittedRows, Store};

use crate::model::keys::{RunKey, read_timer_key};
use crate::stats::Stats;
use crate::timers::delayed_commands::{DelayedCommands, waiting_row};
use crate::timers::due_index::DueIndex;
use crate::timers::log_clock::LogClock;
use crate::timers::timer_rows::TimerRows;

/// The indices of what becomes due, and the clock by which it does.
#[derive(Default)]
pub(crate) struct TimerSchedule {
    pub(crate) due: DueIndex,
    pub(crate) delayed: DelayedCommands,
    pub(crate) clock: LogClock,
    /// Where the records of the last slice end in the journal's queue.
    pub(crate) slice_end: u64,
}

impl TimerSchedule {
    /// What is in the indices.
    pub(crate) fn len(&self) -> usize {
        self.due.len() + self.delayed.len()
    }

    /// The earliest timer in the indices, by the log's time.
    fn next_ms(&self) -> Option<i64> {
        [self.due.next_ms(), self.delayed.next_ms()].into_iter().flatten().min()
    }

    /// When the node's clock will show that the earliest timer is due.
    pub(crate) fn next_turn_ms(&self) -> Option<i64> {
        self.next_ms().map(|due_ms| self.clock.when_ms(due_ms))
    }

    /// Whether the log should be asked what time it is.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.clock.is_doubtful(self.next_ms())
    }

    /// A command waits for its moment, beyond the horizon in its row alone.
    pub(crate) fn arm_within_horizon(&mut self, row: Bytes, due_ms: i64) {
        if due_ms < self.due.horizon_ms() {
            self.delayed.arm(row);
        }
    }

    /// The record of a command's moment was applied at `now_ms`, before that moment.
    pub(crate) fn command_was_early(&mut self, row: Bytes, now_ms: i64) {
        self.delayed.arm(row);
        self.clock.was_early(now_ms);
    }

    /// The record of a run's timers was applied at `now_ms`: where it came too early its deadline is armed again, unless
    /// the run is no longer resident.
    pub(crate) fn fired(
        &mut self,
        key: &RunKey,
        deadline_ms: Option<i64>,
        is_resident: bool,
        now_ms: i64,
        stats: &Stats,
    ) {
        if self.due.is_waking(key) {
            self.due.set(key, deadline_ms.filter(|_| is_resident));
            if deadline_ms.is_some_and(|deadline_ms| deadline_ms > now_ms) {
                self.clock.was_early(now_ms);
            }
        } else if let Some(deadline_ms) = deadline_ms.filter(|deadline_ms| *deadline_ms <= now_ms) {
            stats.lateness_ms.fetch_max(now_ms - deadline_ms, Ordering::Relaxed);
            self.clock.was_due();
        }
    }

    /// The timers of so many rows more. Commands that wait for a moment among them are armed at once.
    pub(crate) fn read<B: CommittedRows>(
        &mut self,
        rows: &mut TimerRows,
        store: &Store<B>,
        rows_max: usize,
    ) -> Result<Vec<(i64, RunKey)>, everlog_store::Error> {
        let read = rows.read(store, rows_max)?;
        let mut found = Vec::with_capacity(read.len());
        for row in read {
            match read_timer_key(&row) {
                Some(timer) => found.push(timer),
                None => waiting_row(&row).into_iter().for_each(|row| self.delayed.arm(row)),
            }
        }
        Ok(found)
    }
}
