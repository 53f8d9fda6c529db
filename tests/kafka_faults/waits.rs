//! How long calls wait: none hangs longer than its deadline, but for a node that we had put to sleep.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::deliveries::{HAND_OVER_MS, Trouble};

/// A call as it was answered, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What was asked.
    pub call: String,
    pub took: Duration,
    /// When its caller has no patience any more.
    pub deadline: Duration,
    /// In ms since 1970-01-01 UTC.
    pub ended_ms: i64,
    /// The server has a bound of its own for it, which is far lower: a poll, a query.
    pub is_bounded: bool,
}

impl Wait {
    /// Nobody answered before the deadline.
    pub fn hangs(&self) -> bool {
        self.took >= self.deadline
    }

    /// Something was harmed while it waited, or so short a time before that it could not be mended.
    fn is_in(&self, (from_ms, until_ms): Trouble) -> bool {
        let began_ms = self.ended_ms - self.took.as_millis() as i64;
        from_ms <= self.ended_ms && began_ms <= until_ms.saturating_add(HAND_OVER_MS)
    }
}

/// The longest wait of each kind of call, and all that hung. Cheap to clone.
#[derive(Clone, Default)]
pub struct Waits(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    longest: BTreeMap<String, Wait>,
    hung: Vec<Wait>,
}

impl Waits {
    fn open(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics while it is open")
    }

    pub fn note(&self, wait: Wait) {
        let mut inner = self.open();
        if wait.hangs() {
            inner.hung.push(wait.clone());
        }
        let longest = inner.longest.entry(wait.call.clone()).or_insert_with(|| wait.clone());
        if longest.took < wait.took {
            *longest = wait;
        }
    }

    /// Those that hung, and the longest of each kind.
    pub fn all(&self) -> Vec<Wait> {
        let inner = self.open();
        inner.hung.iter().chain(inner.longest.values().filter(|wait| !wait.hangs())).cloned().collect()
    }
}

/// Whether a node is stopped by us. Cheap to clone; all know of the same node.
#[derive(Clone)]
pub struct Sleep(Arc<Mutex<Option<Instant>>>);

impl Sleep {
    /// Of a node that is awake.
    pub fn none() -> Self {
        Self(Arc::new(Mutex::new(Some(Instant::now()))))
    }

    pub fn begin(&self) {
        *self.open() = None;
    }

    pub fn end(&self) {
        *self.open() = Some(Instant::now());
    }

    /// It sleeps, or has slept since then.
    pub fn is_since(&self, moment: Instant) -> bool {
        self.open().is_none_or(|awake_since| awake_since >= moment)
    }

    fn open(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().expect("nobody panics while it is open")
    }
}

/// Calls that hung where there was no trouble; where nobody noted trouble, those that have a bound.
pub fn check(waits: &[Wait], troubles: Option<&[Trouble]>, found: &mut Vec<String>) {
    let is_judged = |wait: &Wait| match troubles {
        Some(troubles) => !troubles.iter().any(|trouble| wait.is_in(*trouble)),
        None => wait.is_bounded,
    };
    for wait in waits.iter().filter(|wait| wait.hangs() && is_judged(wait)) {
        let Wait { call, took, deadline, ended_ms, .. } = wait;
        found.push(format!(
            "{call} hangs: nobody answers for {took:?} until {ended_ms} ms, and its deadline is {deadline:?}"
        ));
    }
}
