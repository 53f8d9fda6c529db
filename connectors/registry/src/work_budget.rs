//! The work budget of a request: a number of steps, spent while its caller waits.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::work_slots::{WorkSlot, WorkSlots};

/// Steps without a slot: enough to parse a schema of 200 KiB, or to compare some thousand types. More needs a slot.
const QUICK_STEPS: usize = 50_000;
/// Bytes of text that count as a step.
const BYTES_PER_STEP: usize = 8;

/// Why work ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The limit of steps is reached.
    Most(usize),
    /// The caller has closed its connection.
    Abandoned,
    /// Too many requests wait for a slot.
    Busy,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Most(steps) => Self::TooMuchWork(steps),
            Stopped::Abandoned => Self::Abandoned,
            Stopped::Busy => Self::Busy,
        }
    }
}

/// The steps left to one request.
pub(crate) struct WorkBudget {
    left: Cell<usize>,
    most: usize,
    /// Its strong count is 0 once the caller has closed its connection; `None`: nobody can.
    caller: Option<Weak<()>>,
    slots: Option<Arc<WorkSlots>>,
    slot: Cell<Option<WorkSlot>>,
}

impl WorkBudget {
    /// A budget without a limit, for stored schemas.
    pub(crate) fn unbounded() -> Self {
        Self {
            left: Cell::new(usize::MAX),
            most: usize::MAX,
            caller: None,
            slots: None,
            slot: Cell::new(None),
        }
    }

    /// A budget of at most `most` steps, without a caller.
    pub(crate) fn bounded(most: usize) -> Self {
        Self { left: Cell::new(most), most, ..Self::unbounded() }
    }

    /// The budget of one request, which ends when `caller` is dropped.
    pub(crate) fn for_caller(slots: &Arc<WorkSlots>, caller: Weak<()>) -> Self {
        let steps = Self::bounded(slots.steps_max);
        Self { caller: Some(caller), slots: Some(Arc::clone(slots)), ..steps }
    }

    /// Spends steps, before their work is done. Blocks for a slot beyond QUICK_STEPS.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Stopped> {
        let Some(left) = self.left.get().checked_sub(steps) else {
            self.left.set(0);
            return Err(Stopped::Most(self.most));
        };
        self.left.set(left);
        if self.is_abandoned() {
            return Err(Stopped::Abandoned);
        }
        if self.most - left > QUICK_STEPS
            && let Some(slots) = &self.slots
        {
            let slot = self.slot.take();
            self.slot.set(Some(slot.map_or_else(|| slots.slot(|| self.is_abandoned()), Ok)?));
        }
        Ok(())
    }

    /// Spends the steps of a text that is parsed or written.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn spend_on(&self, text: &str) -> Result<(), Stopped> {
        self.spend(text.len() / BYTES_PER_STEP)
    }

    fn is_abandoned(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use everlog_patience::until_blocking;

    use super::*;

    fn slots(waiting_max: usize) -> Arc<WorkSlots> {
        Arc::new(WorkSlots::new(4 * QUICK_STEPS, 1, waiting_max, Arc::default()))
    }

    /// One that waits for its slot, on a thread of its own; it waits when this returns.
    fn waiting(slots: &Arc<WorkSlots>, caller: &Arc<()>) -> JoinHandle<Result<(), Stopped>> {
        let steps = WorkBudget::for_caller(slots, Arc::downgrade(caller));
        let thread = std::thread::spawn(move || steps.spend(QUICK_STEPS + 1));
        let waits = until_blocking("a check that waits", || slots.waiting() == 1);
        waits.expect("it waits");
        thread
    }

    #[test]
    fn steps_end_where_they_are_spent() {
        let steps = WorkBudget::bounded(3);
        assert_eq!((steps.spend(2), steps.spend(1)), (Ok(()), Ok(())));
        assert_eq!(steps.spend_on("shorter"), Ok(()), "it is less than a step");
        assert_eq!(steps.spend_on("some bytes more"), Err(Stopped::Most(3)));
        assert_eq!(steps.spend(1), Err(Stopped::Most(3)));
    }

    #[test]
    fn what_nobody_waits_for_stops() {
        let caller = Arc::new(());
        let steps = WorkBudget::for_caller(&slots(0), Arc::downgrade(&caller));
        assert_eq!(steps.spend(1), Ok(()));
        drop(caller);
        assert_eq!(steps.spend(1), Err(Stopped::Abandoned));
    }

    #[test]
    fn what_takes_long_waits_for_its_turn_and_what_is_quick_does_not() {
        let (slots, caller) = (slots(1), Arc::new(()));
        let first = WorkBudget::for_caller(&slots, Arc::downgrade(&caller));
        assert_eq!(first.spend(QUICK_STEPS + 1), Ok(()), "it has the slot");
        let second = waiting(&slots, &caller);
        let third = WorkBudget::for_caller(&slots, Arc::downgrade(&caller));
        assert_eq!(third.spend(QUICK_STEPS), Ok(()), "this is quick");
        assert_eq!(third.spend(1), Err(Stopped::Busy), "there is no room to wait");
        assert!(!second.is_finished(), "the slot is not free");
        drop(first);
        assert_eq!(second.join().expect("no panic"), Ok(()));
        assert_eq!(third.spend(1), Ok(()), "the slot is free");
    }

    #[test]
    fn whoever_waits_for_a_turn_in_vain_goes() {
        let (slots, caller, gone) = (slots(1), Arc::new(()), Arc::new(()));
        let first = WorkBudget::for_caller(&slots, Arc::downgrade(&caller));
        assert_eq!(first.spend(QUICK_STEPS + 1), Ok(()));
        let second = waiting(&slots, &gone);
        drop(gone);
        assert_eq!(second.join().expect("no panic"), Err(Stopped::Abandoned));
        assert_eq!(slots.waiting(), 0);
    }
}
