//! Alarms become records when the log's time has come, whatever the node's clock shows.

use std::sync::atomic::Ordering;

use everlog_engine::machine::fire_timers;
use everlog_engine::request::Request;
use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::error::Error;
use crate::invariants::Rules;
use crate::model::pending::ReplyTo;
use crate::partition::Partition;
use crate::timers::due_index::REACH_MS;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// The clock that `now_ms` is taken from was set forward by so much, or back: it goes on from there, and only the
    /// log can tell how much time has passed in truth.
    pub fn clock_was_set(&mut self, by_ms: i64) {
        self.timers.clock.was_set(by_ms);
    }

    /// Turns alarms into records, a slice at a time. The next slice comes when all of the last one has been appended: what
    /// callers ask for waits behind one slice, however many alarms are due.
    pub(crate) fn wake_due(&mut self) -> Result<(), Error> {
        let now_ms = self.timers.clock.now_ms();
        if now_ms + REACH_MS / 2 > self.timers.due.horizon_ms() {
            self.reach(now_ms + REACH_MS)?;
        }
        if self.timers.clock.alarms_rest() || self.takes_no_work() || self.has_slice_waiting() {
            return Ok(());
        }
        let before = self.journal.end();
        self.wake_delayed(now_ms);
        for _ in 0..self.context.config.wakes_max {
            let Some(key) = self.timers.due.take(now_ms) else { break };
            if let Some(address) = key.address() {
                self.context.stats.wakes.fetch_add(1, Ordering::Relaxed);
                self.enqueue(
                    address.request(Request::FireTimers(fire_timers::FireTimers {})),
                    ReplyTo::Nobody,
                );
            }
        }
        if self.journal.end() > before {
            self.timers.slice_end = self.journal.end();
        }
        Ok(())
    }

    /// Alarms that were turned into records wait to be appended: whoever appends them sees to those that are left.
    pub(crate) fn has_slice_waiting(&self) -> bool {
        self.journal.waits_before(self.timers.slice_end)
    }

    /// Any record tells the log's time; where none is on its way, one is sent for it.
    pub(crate) fn ask_time(&mut self) {
        if self.timers.is_doubtful() && self.journal.is_idle() {
            self.journal.push_barrier(self.position.term);
        }
    }
}
