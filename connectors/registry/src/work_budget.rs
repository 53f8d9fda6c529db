//! The work budget of a request, in steps, for as long as its caller waits.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::work_slots::{WorkSlot, WorkSlots};

/// Steps without a slot: enough to read a schema of 200 KiB, or to compare some thousand types. More work waits for a slot.
const QUICK_STEPS: usize = 50_000;
/// Bytes of text that count as a step.
const BYTES_PER_STEP: usize = 8;

/// Why work ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It takes more steps than these.
    Most(usize),
    /// The caller is gone.
    Unwanted,
    /// Too many requests wait for a slot.
    Busy,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Most(steps) => Self::TooMuchWork(steps),
            Stopped::Unwanted => Self::Unwanted,
            Stopped::Busy => Self::Busy,
        }
    }
}

/// The steps left to one request.
pub(crate) struct WorkBudget {
    left: Cell<usize>,
    most: usize,
    /// Gone with the caller.
    asker: Option<Weak<()>>,
    lane: Option<Arc<WorkSlots>>,
    turn: Cell<Option<WorkSlot>>,
}

impl WorkBudget {
    /// Without a bound, for what was taken before.
    pub(crate) fn unbounded() -> Self {
        Self { left: Cell::new(usize::MAX), most: usize::MAX, asker: None, lane: None, turn: Cell::new(None) }
    }

    /// So many at most.
    pub(crate) fn bounded(most: usize) -> Self {
        Self { left: Cell::new(most), most, ..Self::unbounded() }
    }

    /// As many as the slots allow, for as long as `asker` is there.
    pub(crate) fn in_lane(lane: &Arc<WorkSlots>, asker: Weak<()>) -> Self {
        let steps = Self::bounded(lane.steps_max);
        Self { asker: Some(asker), lane: Some(Arc::clone(lane)), ..steps }
    }

    /// Takes steps before their work is done. Waits for a slot beyond QUICK_STEPS.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Stopped> {
        let Some(left) = self.left.get().checked_sub(steps) else {
            self.left.set(0);
            return Err(Stopped::Most(self.most));
        };
        self.left.set(left);
        if self.is_unwanted() {
            return Err(Stopped::Unwanted);
        }
        if self.most - left > QUICK_STEPS
            && let Some(lane) = &self.lane
        {
            let turn = self.turn.take();
            self.turn.set(Some(turn.map_or_else(|| lane.turn(|| self.is_unwanted()), Ok)?));
        }
        Ok(())
    }

    /// Takes the steps for a text that is read or written.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn spend_on(&self, text: &str) -> Result<(), Stopped> {
        self.spend(text.len() / BYTES_PER_STEP)
    }

    fn is_unwanted(&self) -> bool {
        self.asker.as_ref().is_some_and(|asker| asker.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use everlog_patience::until_blocking;

    use super::*;

    fn lane(waiting_max: usize) -> Arc<WorkSlots> {
        Arc::new(WorkSlots::new(4 * QUICK_STEPS, 1, waiting_max, Arc::default()))
    }

    /// One that waits for its slot, on a thread of its own; it waits when this returns.
    fn waiting(lane: &Arc<WorkSlots>, asker: &Arc<()>) -> JoinHandle<Result<(), Stopped>> {
        let steps = WorkBudget::in_lane(lane, Arc::downgrade(asker));
        let thread = std::thread::spawn(move || steps.spend(QUICK_STEPS + 1));
        let waits = until_blocking("a check that waits", || lane.waiting() == 1);
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
        let asker = Arc::new(());
        let steps = WorkBudget::in_lane(&lane(0), Arc::downgrade(&asker));
        assert_eq!(steps.spend(1), Ok(()));
        drop(asker);
        assert_eq!(steps.spend(1), Err(Stopped::Unwanted));
    }

    #[test]
    fn what_takes_long_waits_for_its_turn_and_what_is_quick_does_not() {
        let (lane, asker) = (lane(1), Arc::new(()));
        let first = WorkBudget::in_lane(&lane, Arc::downgrade(&asker));
        assert_eq!(first.spend(QUICK_STEPS + 1), Ok(()), "it has the turn");
        let second = waiting(&lane, &asker);
        let third = WorkBudget::in_lane(&lane, Arc::downgrade(&asker));
        assert_eq!(third.spend(QUICK_STEPS), Ok(()), "this is quick");
        assert_eq!(third.spend(1), Err(Stopped::Busy), "there is no room to wait");
        assert!(!second.is_finished(), "the turn is not free");
        drop(first);
        assert_eq!(second.join().expect("no panic"), Ok(()));
        assert_eq!(third.spend(1), Ok(()), "the turn is free");
    }

    #[test]
    fn whoever_waits_for_a_turn_in_vain_goes() {
        let (lane, asker, gone) = (lane(1), Arc::new(()), Arc::new(()));
        let first = WorkBudget::in_lane(&lane, Arc::downgrade(&asker));
        assert_eq!(first.spend(QUICK_STEPS + 1), Ok(()));
        let second = waiting(&lane, &gone);
        drop(gone);
        assert_eq!(second.join().expect("no panic"), Err(Stopped::Unwanted));
        assert_eq!(lane.waiting(), 0);
    }
}
