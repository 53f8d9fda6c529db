//! Clocks that disagree: the log's time decides when a node that is hours off, or runs fast or slow, fires a timer.

use crate::harness::{Harness, ids};
use crate::node::PARTITION;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// What the way to the log and back, and rests, may cost an alarm.
const LATE_MS_MAX: i64 = 100;

/// Starts a run that is to end after a silence, and says how late it ended, and how many records it took.
fn silence(off_ms: i64, fast_ppm: i64, timeout_ms: i64) -> (i64, usize) {
    let mut harness = Harness::build(off_ms, fast_ppm);
    let id = ids().next().unwrap();
    harness.start(&id, timeout_ms);
    let started_ms = harness.broker.lock().stored(PARTITION).last_stamp_ms;
    let (_, before) = harness.wakes();
    harness.pass(timeout_ms + 2_000);
    let (wakes, after) = harness.wakes();
    let last_ms = *wakes.last().unwrap_or(&i64::MAX);
    let what = format!("{off_ms} ms off, {fast_ppm} ppm fast");
    assert!(
        !harness.is_open(&id),
        "{what}: {} ms after its end",
        harness.clock.now_ms() - started_ms - timeout_ms
    );
    (last_ms - started_ms - timeout_ms, after - before)
}

#[test]
fn a_node_whose_clock_is_an_hour_off_fires_when_the_log_says_so() {
    for off_ms in [-HOUR_MS, 0, HOUR_MS] {
        let (late_ms, records) = silence(off_ms, 0, 10 * MINUTE_MS);
        assert!((0..LATE_MS_MAX).contains(&late_ms), "{off_ms} ms off: {late_ms} ms late");
        assert!(records <= 4, "{off_ms} ms off: {records} records");
    }
}

#[test]
fn a_clock_that_runs_fast_or_slow_costs_an_alarm_after_a_long_silence_a_record_or_two() {
    for fast_ppm in [-500, -100, 100, 500] {
        let (late_ms, records) = silence(HOUR_MS, fast_ppm, DAY_MS);
        assert!((0..LATE_MS_MAX).contains(&late_ms), "{fast_ppm} ppm: {late_ms} ms late");
        assert!(records <= 6, "{fast_ppm} ppm: {records} records");
    }
}

#[test]
fn a_log_whose_clock_stands_still_is_not_asked_again_and_again() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, 5);
    // Stamps never fall: the time of the runs stands until the log's clock is where it was.
    harness.broker.lock().clock_ms = -10 * MINUTE_MS;
    let (before, _) = harness.wakes();
    harness.pass(5 * MINUTE_MS);
    let (after, _) = harness.wakes();
    assert!(after.len() - before.len() < 320, "{} records in 5 minutes", after.len() - before.len());
    assert!(harness.is_open(&id), "its time has not come");
    harness.pass(5 * MINUTE_MS + 2_000);
    assert!(!harness.is_open(&id));
}

#[test]
fn a_node_whose_clock_is_set_asks_the_log_what_time_it_is() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, 2 * HOUR_MS);
    harness.pass(10_000);
    // The machine slept: the log's time went on.
    harness.broker.lock().clock_ms += HOUR_MS;
    harness.off_ms += HOUR_MS;
    harness.node.partition.as_mut().unwrap().clock_was_set(HOUR_MS);
    harness.pass(HOUR_MS + 1_000 - 10_000);
    assert!(!harness.is_open(&id));
}

#[test]
fn a_node_whose_clock_is_set_back_is_not_late() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, 10 * MINUTE_MS);
    harness.pass(10_000);
    harness.off_ms -= HOUR_MS;
    harness.node.partition.as_mut().unwrap().clock_was_set(-HOUR_MS);
    harness.pass(10 * MINUTE_MS + 1_000 - 10_000);
    assert!(!harness.is_open(&id));
}
