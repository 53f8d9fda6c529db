//! How long calls wait: none hangs while its node runs, whatever the fault.
//!
//! A slow machine answers late, and a call that nobody answers is never answered: it has no deadline before our patience ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use everlog_tests::patience;

/// A call as it was answered, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What was asked.
    pub call: String,
    pub took: Duration,
    /// Of that, how long the node that was asked could not answer: we had stopped it.
    pub asleep: Duration,
    /// In ms since 1970-01-01 UTC.
    pub ended_ms: i64,
    /// The server has a bound of its own for it, which is far lower: a poll, a query.
    pub is_bounded: bool,
}

impl Wait {
    /// How long the node could have answered.
    pub fn awake(&self) -> Duration {
        self.took.saturating_sub(self.asleep)
    }

    /// Nobody answered, though somebody could.
    pub fn hangs(&self) -> bool {
        self.awake() >= patience::most()
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
        if longest.awake() < wait.awake() {
            *longest = wait;
        }
    }

    /// Those that hung, and the longest of each kind.
    pub fn all(&self) -> Vec<Wait> {
        let inner = self.open();
        inner.hung.iter().chain(inner.longest.values().filter(|wait| !wait.hangs())).cloned().collect()
    }
}

/// When it fell asleep, and when it woke, if it has.
type Nap = (Instant, Option<Instant>);

/// When a node was stopped by us, and whether it is. Cheap to clone; all know of the same node.
#[derive(Clone, Default)]
pub struct Sleep(Arc<Mutex<Vec<Nap>>>);

impl Sleep {
    pub fn begin(&self) {
        self.open().push((Instant::now(), None));
    }

    pub fn end(&self) {
        let now = Instant::now();
        self.open().iter_mut().filter(|(_, woke)| woke.is_none()).for_each(|(_, woke)| *woke = Some(now));
    }

    pub fn is_on(&self) -> bool {
        self.open().iter().any(|(_, woke)| woke.is_none())
    }

    /// How long it has slept since then.
    pub fn since(&self, moment: Instant) -> Duration {
        let now = Instant::now();
        let spans = self.open();
        let slept = |(fell, woke): &Nap| woke.unwrap_or(now).saturating_duration_since(moment.max(*fell));
        spans.iter().map(slept).sum()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Nap>> {
        self.0.lock().expect("nobody panics while it is open")
    }
}

/// Calls that nobody answered; where nobody noted trouble, of those that have a bound.
pub fn check(waits: &[Wait], is_trouble_noted: bool, found: &mut Vec<String>) {
    for wait in waits.iter().filter(|wait| (is_trouble_noted || wait.is_bounded) && wait.hangs()) {
        let Wait { call, took, asleep, ended_ms, .. } = wait;
        found.push(format!(
            "{call} hangs: nobody answers for {took:?} until {ended_ms} ms, and its node was stopped for {asleep:?} of that"
        ));
    }
}
