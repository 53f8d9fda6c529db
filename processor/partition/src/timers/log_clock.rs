//! The log's time as a partition knows it between records: deadlines are moments of the log, not of the node.
//!
//! The two clocks may be hours apart, so the difference is never taken for nothing: each record shows how far the log
//! is ahead at least, and the one that came fastest shows it best. From there on the node's clock only measures how
//! much time has passed.

/// How far two clocks may drift apart, in ms per ms.
const DRIFT: i64 = 1_000;
/// After a silence of so long the drift may matter.
const SILENCE_MS: i64 = 60_000;
/// How long alarms rest after one that came too early; it doubles while they do.
const REST_MIN_MS: i64 = 10;
const REST_MAX_MS: i64 = 1_000;

/// What is known of the log's time.
#[derive(Debug, Default)]
pub(crate) struct LogClock {
    /// The node's clock.
    node_ms: i64,
    /// How far the log is ahead of it, in microseconds.
    ahead_us: Option<i64>,
    /// When the last record was met, by the node's clock.
    heard_ms: i64,
    /// The node's clock was set, or stood still with the machine: only the log knows what time it is.
    was_set: bool,
    rest_ms: i64,
    rest_until_ms: i64,
}

impl LogClock {
    /// The node's clock shows this.
    pub(crate) fn tick(&mut self, node_ms: i64) {
        self.node_ms = node_ms;
        // A clock that goes back must not put off anything.
        self.rest_until_ms = self.rest_until_ms.min(node_ms.saturating_add(self.rest_ms));
    }

    /// The node's clock was set forward by so much; what has passed in truth nobody can tell.
    pub(crate) fn was_set(&mut self, by_ms: i64) {
        self.ahead_us = self.ahead_us.map(|ahead_us| ahead_us.saturating_sub(by_ms.saturating_mul(1_000)));
        for moment_ms in [&mut self.node_ms, &mut self.heard_ms, &mut self.rest_until_ms] {
            *moment_ms = moment_ms.saturating_add(by_ms);
        }
        self.was_set = true;
    }

    /// A record of this moment was met.
    pub(crate) fn heard(&mut self, stamp_ms: i64) {
        let shown_us = stamp_ms.saturating_sub(self.node_ms).saturating_mul(1_000);
        // What an earlier record has shown is worth less by what may have drifted since.
        let drifted_us = (self.node_ms - self.heard_ms).max(0).saturating_mul(1_000) / DRIFT;
        let known_us = self.ahead_us.map_or(shown_us, |ahead_us| ahead_us.saturating_sub(drifted_us));
        self.ahead_us = Some(known_us.max(shown_us));
        self.heard_ms = self.node_ms;
        self.was_set = false;
    }

    /// An alarm was applied before its time, which was the last thing heard: the log's time is no later than this.
    pub(crate) fn was_early(&mut self, stamp_ms: i64) {
        self.ahead_us = Some(stamp_ms.saturating_sub(self.node_ms).saturating_mul(1_000));
        // Those that were on their way together say it only once.
        if self.node_ms >= self.rest_until_ms {
            self.rest_ms = (self.rest_ms * 2).clamp(REST_MIN_MS, REST_MAX_MS);
            self.rest_until_ms = self.node_ms + self.rest_ms;
        }
    }

    /// An alarm was applied when it was due.
    pub(crate) fn was_due(&mut self) {
        self.rest_ms = 0;
    }

    /// The node's clock.
    pub(crate) fn node_ms(&self) -> i64 {
        self.node_ms
    }

    /// About the log's time; not later than in truth, save for drift.
    pub(crate) fn now_ms(&self) -> i64 {
        self.node_ms.saturating_add(self.ahead_us.unwrap_or(0).div_euclid(1_000))
    }

    /// When the node's clock will show that a moment of the log has come, and alarms do not rest.
    pub(crate) fn when_ms(&self, log_ms: i64) -> i64 {
        log_ms.saturating_sub(self.ahead_us.unwrap_or(0).div_euclid(1_000)).max(self.rest_until_ms)
    }

    /// Alarms came too early a moment ago: the log's clock stands still, or ran ahead.
    pub(crate) fn alarms_rest(&self) -> bool {
        self.node_ms < self.rest_until_ms
    }

    /// Whether the log should be asked what time it is: the clock was set, or an alarm is due so soon after so long a
    /// silence that the drift may make it late.
    pub(crate) fn is_doubtful(&self, next_alarm_ms: Option<i64>) -> bool {
        let silence_ms = self.node_ms - self.heard_ms;
        let soon = |due_ms: i64| due_ms <= self.now_ms().saturating_add(2 * silence_ms / DRIFT);
        self.was_set || silence_ms > SILENCE_MS && next_alarm_ms.is_some_and(soon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    /// The log is ahead by so much, and its records take `way_ms`.
    fn heard(time: &mut LogClock, node_ms: i64, ahead_ms: i64, way_ms: i64) {
        time.tick(node_ms);
        time.heard(node_ms + ahead_ms - way_ms);
    }

    #[test]
    fn a_clock_that_is_an_hour_off_shows_the_logs_time() {
        for ahead_ms in [-HOUR_MS, 0, HOUR_MS] {
            let mut time = LogClock::default();
            heard(&mut time, 1_000_000, ahead_ms, 2);
            time.tick(1_010_000);
            assert_eq!(time.now_ms(), 1_010_000 + ahead_ms - 2);
            assert_eq!(time.when_ms(1_020_000 + ahead_ms), 1_020_002);
        }
    }

    #[test]
    fn the_record_that_came_fastest_counts_and_its_word_fades_with_drift() {
        let mut time = LogClock::default();
        heard(&mut time, 0, 0, 2);
        heard(&mut time, 100, 0, 3_000);
        assert_eq!(time.now_ms(), 97, "a slow one says nothing new");
        for node_ms in (200..3_000_000).step_by(100) {
            heard(&mut time, node_ms, 0, 50);
        }
        assert_eq!(time.now_ms(), 2_999_900 - 50);
    }

    #[test]
    fn alarms_that_come_too_early_rest_for_longer_and_longer_but_a_second_at_most() {
        let mut time = LogClock::default();
        heard(&mut time, 0, 0, 0);
        let (mut node_ms, mut wakes) = (0, 0);
        while node_ms < 60_000 {
            time.tick(node_ms);
            time.was_early(0);
            time.was_early(0);
            wakes += 1;
            assert!(time.alarms_rest());
            node_ms = time.when_ms(1);
        }
        assert!((60..75).contains(&wakes), "{wakes} in a minute");
        time.was_due();
        time.tick(node_ms);
        time.was_early(0);
        assert_eq!(time.when_ms(1), node_ms + REST_MIN_MS);
    }

    #[test]
    fn the_log_is_asked_after_the_clock_was_set_and_before_an_alarm_that_follows_a_long_silence() {
        let mut time = LogClock::default();
        heard(&mut time, 0, 0, 0);
        assert!(!time.is_doubtful(Some(10)));
        time.was_set(HOUR_MS);
        assert!(time.is_doubtful(None));
        assert_eq!((time.node_ms(), time.now_ms()), (HOUR_MS, 0));
        heard(&mut time, HOUR_MS, 0, 0);
        assert!(!time.is_doubtful(None));
        time.tick(2 * HOUR_MS);
        assert!(!time.is_doubtful(Some(2 * HOUR_MS + 10_000)));
        assert!(time.is_doubtful(Some(2 * HOUR_MS + 5_000)));
    }
}
