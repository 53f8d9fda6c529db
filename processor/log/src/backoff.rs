//! The pause before a failed action is repeated. It knows no clock and does not wait.

use std::time::Duration;

/// Pauses after failures: each is twice as long as the one before, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` to `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, next: first }
    }

    /// The pause after one more failure.
    pub fn failed(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.max);
        pause
    }

    /// The action succeeded: the next pause is the first one again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// Whether no failure came since the last [`Backoff::reset`].
    pub fn is_reset(&self) -> bool {
        self.next == self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_limit_and_starts_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let mut pauses = || [(); 4].map(|()| backoff.failed().as_secs());
        assert_eq!(pauses(), [1, 2, 4, 5]);
        assert_eq!(pauses(), [5; 4]);
        assert!(!backoff.is_reset());
        backoff.reset();
        assert!(backoff.is_reset());
        assert_eq!(backoff.failed(), Duration::from_secs(1));
    }

    #[test]
    fn the_longest_pause_stays_within_what_a_duration_holds() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!([backoff.failed(), backoff.failed()], [Duration::MAX; 2]);
    }
}
