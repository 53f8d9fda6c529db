//! Slots for long checks: they limit the checks that run at once, and those that wait for a slot.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::stats::Stats;
use crate::work_budget::Stopped;

/// How often a waiting check tests whether its caller is still connected.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Counts the checks with a slot and those that wait for one.
pub(crate) struct WorkSlots {
    /// Limit of the steps of one check.
    pub(crate) steps_max: usize,
    running_max: usize,
    waiting_max: usize,
    count: Mutex<Count>,
    freed: Condvar,
    stats: Arc<Stats>,
}

#[derive(Default)]
struct Count {
    running: usize,
    waiting: usize,
}

/// A slot; it is free again when this is dropped.
pub(crate) struct WorkSlot(Arc<WorkSlots>);

impl WorkSlots {
    pub(crate) fn new(steps_max: usize, running_max: usize, waiting_max: usize, stats: Arc<Stats>) -> Self {
        let (count, freed) = (Mutex::default(), Condvar::new());
        Self { steps_max, running_max, waiting_max, count, freed, stats }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn slot(self: &Arc<Self>, is_abandoned: impl Fn() -> bool) -> Result<WorkSlot, Stopped> {
        let mut count = self.count();
        if count.running >= self.running_max && count.waiting >= self.waiting_max {
            return Err(Stopped::Busy);
        }
        count.waiting += 1;
        self.tell(&count);
        while count.running >= self.running_max && !is_abandoned() {
            self.freed.wait_for(&mut count, LOOK_EVERY);
        }
        count.waiting -= 1;
        let has_slot = count.running < self.running_max;
        count.running += usize::from(has_slot);
        self.tell(&count);
        if has_slot { Ok(WorkSlot(Arc::clone(self))) } else { Err(Stopped::Abandoned) }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock()
    }

    fn tell(&self, count: &Count) {
        self.stats.checks_running.store(count.running as u64, Ordering::Relaxed);
        self.stats.checks_waiting.store(count.waiting as u64, Ordering::Relaxed);
    }

    /// How many wait for a slot.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.count().waiting
    }
}

impl Drop for WorkSlot {
    fn drop(&mut self) {
        let mut count = self.0.count();
        count.running -= 1;
        self.0.tell(&count);
        self.0.freed.notify_one();
    }
}
