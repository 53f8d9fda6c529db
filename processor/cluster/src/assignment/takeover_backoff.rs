//! The pause before this node takes back a group that another node has taken. One of the two does not know the latest
//! assignment. If both took the group back at once, nobody would serve it.

use std::time::{Duration, Instant};

use everlog_log::Backoff;

use crate::control_rows::Assignment;

/// The pause of a group that is lost again soon after it was lost.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(16));
/// After so long without a loss, the next pause is the shortest again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(32);

/// The pause of one group.
#[derive(Debug)]
pub struct TakeoverBackoff {
    known: Assignment,
    backoff: Backoff,
    until: Option<Instant>,
}

impl Default for TakeoverBackoff {
    fn default() -> Self {
        Self { known: Assignment::default(), backoff: BACKOFF, until: None }
    }
}

impl TakeoverBackoff {
    /// Another node has taken the group. `known`: the latest assignment that this node knows.
    pub fn begin(&mut self, known: Assignment, now: Instant) {
        let is_soon = self.until.is_some_and(|until| now < until + FORGOTTEN_AFTER);
        if !is_soon {
            self.backoff.reset();
        }
        self.until = Some(now + self.backoff.failed());
        self.known = known;
    }

    /// True where this node may take the group by this assignment.
    pub fn is_over(&self, assignment: &Assignment, now: Instant) -> bool {
        *assignment != self.known || self.until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_until_the_next_placement_or_longer_each_time() {
        let assigned = |generation| Assignment { generation, ..Assignment::default() };
        let (this, next) = (assigned(7), assigned(8));
        let mut backoff = TakeoverBackoff::default();
        let began = Instant::now();
        assert!(backoff.is_over(&Assignment::default(), began));
        let mut now = began;
        for seconds in [1, 2, 4, 8, 16, 16] {
            backoff.begin(this.clone(), now);
            assert!(backoff.is_over(&next, now));
            now += Duration::from_secs(seconds);
            assert!(!backoff.is_over(&this, now - Duration::from_millis(1)));
            assert!(backoff.is_over(&this, now));
        }
        now += FORGOTTEN_AFTER;
        backoff.begin(this.clone(), now);
        assert!(backoff.is_over(&this, now + Duration::from_secs(1)));
    }
}
