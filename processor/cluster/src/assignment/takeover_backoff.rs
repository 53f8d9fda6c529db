//! How long a node leaves a group to another one that has taken it, though it is assigned here as far as this node knows: one
//! of the two does not know the latest assignment, and as long as both take it back at once nobody serves it.

use std::time::{Duration, Instant};

use crate::control_rows::Assignment;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(16);
/// A group that is lost so long after a pause was over is lost for the first time again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(32);

/// The patience with a group. It doubles each time that the group is taken away again soon.
#[derive(Debug, Default)]
pub struct TakeoverBackoff {
    known: Assignment,
    pause: Duration,
    until: Option<Instant>,
}

impl TakeoverBackoff {
    /// Another node has taken the group; `known`: the latest assignment that this node knows.
    pub fn begin(&mut self, known: Assignment, now: Instant) {
        let is_soon = self.until.is_some_and(|until| now < until + FORGOTTEN_AFTER);
        self.pause = if is_soon { (2 * self.pause).min(MOST) } else { FIRST };
        self.until = Some(now + self.pause);
        self.known = known;
    }

    /// True where a group that this assignment gives to the node may be taken.
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
        assert!(backoff.is_over(&this, now + FIRST));
    }
}
