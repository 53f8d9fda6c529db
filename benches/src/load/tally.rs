//! What happened: latencies, finished operations second by second, and failures by call and code.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tonic::Status;

use super::window::Window;

/// Longer latencies are recorded as this long.
const LATENCY_MAX_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;
/// Seconds of the timeline that are kept apart; later operations count for the last one.
const TIMELINE_SECONDS_MAX: usize = 7_200;

/// Shared by everything that measures.
#[derive(Default)]
pub struct Tally {
    window: OnceLock<Window>,
    latencies: Mutex<BTreeMap<&'static str, Histogram<u64>>>,
    /// Operations that finished in each second of the window.
    timeline: Mutex<Vec<u64>>,
    failures: Mutex<BTreeMap<(&'static str, String), Failures>>,
}

/// Failures of one call with one code.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    pub count: u64,
    /// What the first one said.
    pub message: String,
}

impl Tally {
    /// Begins to measure; before that only failures are noted.
    pub fn open(&self, window: Window) {
        self.window.set(window).expect("a run opens its window once");
    }

    /// Notes that something that began (or was meant to) at `began` has ended now.
    pub fn ended(&self, name: &'static str, began: Instant) {
        self.took(name, began, began.elapsed());
    }

    /// Notes that something that began at `began` took `latency`.
    pub fn took(&self, name: &'static str, began: Instant, latency: Duration) {
        if !self.window.get().is_some_and(|window| window.contains(began)) {
            return;
        }
        let mut latencies = locked(&self.latencies);
        let histogram = latencies.entry(name).or_insert_with(|| {
            Histogram::new_with_bounds(1, LATENCY_MAX_US, DIGITS).expect("the bounds are constants that fit")
        });
        histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(LATENCY_MAX_US));
    }

    /// Notes that an operation has succeeded now.
    pub fn succeeded(&self) {
        let now = Instant::now();
        let Some(window) = self.window.get().filter(|window| window.contains(now)) else {
            return;
        };
        let second = ((now - window.from).as_secs() as usize).min(TIMELINE_SECONDS_MAX - 1);
        let mut timeline = locked(&self.timeline);
        if timeline.len() <= second {
            timeline.resize(second + 1, 0);
        }
        timeline[second] += 1;
    }

    /// Notes a call that the server refused.
    pub fn refused(&self, call: &'static str, status: &Status) {
        self.failed(call, format!("{:?}", status.code()), status.message());
    }

    /// Notes that something went wrong; `code` must be one of few.
    pub fn failed(&self, what: &'static str, code: impl Into<String>, message: &str) {
        let mut failures = locked(&self.failures);
        let entry = failures.entry((what, code.into())).or_default();
        if entry.count == 0 {
            entry.message = message.to_string();
        }
        entry.count += 1;
    }

    pub fn latencies(&self) -> BTreeMap<&'static str, Histogram<u64>> {
        locked(&self.latencies).clone()
    }

    pub fn timeline(&self) -> Vec<u64> {
        locked(&self.timeline).clone()
    }

    pub fn failures(&self) -> BTreeMap<(&'static str, String), Failures> {
        locked(&self.failures).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding a lock of the tally")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_in_the_window_is_measured() {
        let tally = Tally::default();
        let before = Instant::now();
        tally.ended("early", before);
        tally.succeeded();
        tally.open(Window { from: before + Duration::from_secs(1), until: before + Duration::from_secs(2) });
        tally.took("late", before + Duration::from_secs(2), Duration::from_millis(1));
        tally.took("call", before + Duration::from_millis(1_500), Duration::from_millis(7));
        let latencies = tally.latencies();
        assert_eq!(latencies.keys().copied().collect::<Vec<_>>(), ["call"]);
        assert!((6_990..=7_010).contains(&latencies["call"].value_at_quantile(0.5)));
        assert!(tally.timeline().is_empty());
    }

    #[test]
    fn failures_are_counted_by_call_and_code() {
        let tally = Tally::default();
        tally.refused("Start", &Status::unavailable("first"));
        tally.refused("Start", &Status::unavailable("second"));
        tally.failed("Start", "Timeout", "");
        let failures = tally.failures();
        assert_eq!(failures.len(), 2);
        let unavailable = &failures[&("Start", "Unavailable".to_string())];
        assert_eq!((unavailable.count, unavailable.message.as_str()), (2, "first"));
    }
}
