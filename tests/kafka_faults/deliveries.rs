//! Every scheduled task is deliverable within one hand-over time: counted from the last trouble that there was.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::event::Event;

/// A node's session and what a take-over costs behind it, and a margin for a busy machine.
pub const HAND_OVER_MS: i64 = 6_000 + 3_000 + 6_000;

/// A time in which something was harmed, in ms since 1970-01-01 UTC; its end is when all was there again that must be.
pub type Trouble = (i64, i64);

/// When there was trouble. Cheap to clone.
#[derive(Clone, Default)]
pub struct Troubles(Arc<Mutex<Vec<Trouble>>>);

impl Troubles {
    fn open(&self) -> MutexGuard<'_, Vec<Trouble>> {
        self.0.lock().expect("nobody panics while it is open")
    }

    /// Something is harmed from here on.
    pub fn begin(&self) {
        self.open().push((now_ms(), i64::MAX));
    }

    /// Everything is there again.
    pub fn end(&self) {
        let now_ms = now_ms();
        self.open().iter_mut().filter(|(_, until)| *until == i64::MAX).for_each(|(_, until)| *until = now_ms);
    }

    /// Something is harmed that the others can do without: they have one hand-over time.
    pub fn moment(&self) {
        let now_ms = now_ms();
        self.open().push((now_ms, now_ms));
    }

    pub fn all(&self) -> Vec<Trouble> {
        self.open().clone()
    }
}

/// In ms since 1970-01-01 UTC.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// `11:27:38.250` UTC, as a node's log says it.
pub fn time_of_day(time_ms: i64) -> String {
    let (second, ms) = (time_ms.rem_euclid(86_400_000) / 1_000, time_ms.rem_euclid(1_000));
    format!("{:02}:{:02}:{:02}.{ms:03}", second / 3_600, second / 60 % 60, second % 60)
}

/// Tasks of a run that a worker got too late, though workers always asked.
pub fn check(run_id: &str, events: &[&Event], troubles: Option<&[Trouble]>, found: &mut Vec<String>) {
    let Some(troubles) = troubles else { return };
    for (scheduled, started, at_ms, late_ms) in late(events, troubles) {
        found.push(format!(
            "run {run_id}: the task scheduled by event {scheduled} was started by event {started} only at {}, {late_ms} ms \
             after there was no trouble any more",
            time_of_day(at_ms)
        ));
    }
}

/// Scheduled, started, when, and how long after the last trouble.
fn late(events: &[&Event], troubles: &[Trouble]) -> Vec<(i64, i64, i64, i64)> {
    let mut all = Vec::new();
    let starts = events.iter().enumerate().filter(|(_, event)| event.kind == "WorkflowTaskStarted");
    for (place, event) in starts {
        // That of a task which a reset fails may be written for this, and no worker had it.
        if events.get(place + 1).is_some_and(|next| next.text("new_run_id") == next.run_id) {
            continue;
        }
        let number = event.number("scheduled_event_id").unwrap_or(0);
        let target = usize::try_from(number - 1).ok().and_then(|place| events.get(place));
        let Some(scheduled) = target else { continue };
        let mut since_ms = scheduled.time_ms;
        for (from_ms, until_ms) in troubles {
            if *until_ms > since_ms && *from_ms <= since_ms + HAND_OVER_MS {
                since_ms = *until_ms;
            }
        }
        let took_ms = event.time_ms.saturating_sub(since_ms);
        if took_ms > HAND_OVER_MS {
            all.push((number, event.event_id, event.time_ms, took_ms));
        }
    }
    all
}
