//! How long a node leaves a group to another one that has taken it, though it is placed here as far as this node knows: one
//! of the two does not know the latest placement, and as long as both take it back at once nobody serves it.

use std::time::{Duration, Instant};

use crate::control_rows::Placement;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(16);
/// A group that is lost so long after a pause was over is lost for the first time again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(32);

/// The patience with a group. It doubles each time that the group is taken away again soon.
#[derive(Debug, Default)]
pub struct Deference {
    known: Placement,
    pause: Duration,
    until: Option<Instant>,
}

impl Deference {
    /// Another node has taken the group; `known`: the latest placement that this node knows.
    pub fn begin(&mut self, known: Placement, now: Instant) {
        let is_soon = self.until.is_some_and(|until| now < until + FORGOTTEN_AFTER);
        self.pause = if is_soon { (2 * self.pause).min(MOST) } else { FIRST };
        self.until = Some(now + self.pause);
        self.known = known;
    }

    /// True where a group that this placement gives to the node may be taken.
    pub fn is_over(&self, placement: &Placement, now: Instant) -> bool {
        *placement != self.known || self.until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_until_the_next_placement_or_longer_each_time() {
        let placed = |generation| Placement { generation, ..Placement::default() };
        let (this, next) = (placed(7), placed(8));
        let mut deference = Deference::default();
        let began = Instant::now();
        assert!(deference.is_over(&Placement::default(), began));
        let mut now = began;
        for seconds in [1, 2, 4, 8, 16, 16] {
            deference.begin(this.clone(), now);
            assert!(deference.is_over(&next, now));
            now += Duration::from_secs(seconds);
            assert!(!deference.is_over(&this, now - Duration::from_millis(1)));
            assert!(deference.is_over(&this, now));
        }
        now += FORGOTTEN_AFTER;
        deference.begin(this.clone(), now);
        assert!(deference.is_over(&this, now + FIRST));
    }
}
