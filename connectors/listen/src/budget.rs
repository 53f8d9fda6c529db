//! A budget: an amount of calls or bytes that is held at most at once. Shares of it are returned when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest share, in bytes, that may use the last eighth of a budget. So large requests never keep small ones out.
const SMALL: usize = 64 << 10;

/// An amount that may be held at once.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    most: usize,
}

/// A share of a budget; returned when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    amount: usize,
}

impl Budget {
    /// A budget of which nothing is held.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), most })
    }

    /// A share, if so much is left. The last eighth is left to small shares, so that large ones do not keep them out.
    pub fn take(self: &Arc<Self>, amount: usize) -> Option<Share> {
        let mut share = Share { budget: Arc::clone(self), amount: 0 };
        share.grow(amount).then_some(share)
    }

    /// The amount that is held at the moment.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The bound of the budget.
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Share {
    /// Its budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Makes the share larger, if so much is left.
    pub fn grow(&mut self, by: usize) -> bool {
        let most = match self.amount.saturating_add(by) {
            0..=SMALL => self.budget.most,
            _large => self.budget.most - self.budget.most / 8,
        };
        let held = self.budget.held.fetch_add(by, Ordering::Relaxed);
        if held.saturating_add(by) > most {
            self.budget.held.fetch_sub(by, Ordering::Relaxed);
            return false;
        }
        self.amount += by;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is_and_what_is_dropped_is_there_again() {
        let budget = Budget::new(2);
        let first = budget.take(1).expect("there is enough");
        let _second = budget.take(1).expect("there is enough");
        assert!(budget.take(1).is_none());
        drop(first);
        assert_eq!(budget.held(), 1);
        assert!(budget.take(1).is_some());
    }

    #[test]
    fn large_things_leave_something_for_small_ones() {
        let budget = Budget::new(8 << 20);
        let mut large = budget.take(7 << 20).expect("seven eighths");
        assert!(!large.grow(1));
        assert_eq!(budget.held(), 7 << 20);
        assert!(budget.take(SMALL + 1).is_none());
        assert!(budget.take(SMALL).is_some());
    }
}
