//! The order in which tasks leave their queues. It tells a forgotten task from one that waits as all others do on a
//! slow machine.
//!
//! A queue hands out what it has in turn, and by partition as it came. In a *round* somebody gets a task that could be had only
//! since the one of the round before was got.

use std::collections::BTreeMap;

use crate::checker::lineage::Lineage;
use crate::event::Event;
use crate::observations::Observations;
use crate::polls::Got;

/// So many rounds go past nobody: after a take-over what waits may be offered in another order, once or twice.
pub const ROUNDS: usize = 5;
/// The name of the queue of all activities here; no other has none.
const ACTIVITIES: &str = "";

/// Where a task waits: in its queue, or behind that in the normal one, where that is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition<'a> {
    pub partition: i32,
    pub queue: &'a str,
    pub normal: &'a str,
}

impl<'a> QueuePosition<'a> {
    /// That of a workflow task.
    pub fn of(scheduled: &'a Event) -> Self {
        let (queue, normal) = (scheduled.text("task_queue"), scheduled.text("normal_task_queue"));
        let normal = if normal.is_empty() { queue } else { normal };
        Self { partition: scheduled.partition, queue, normal }
    }

    pub fn of_activity(partition: i32) -> Self {
        Self { partition, queue: ACTIVITIES, normal: ACTIVITIES }
    }
}

/// Since when a task could be had, and when it was got, in ms since 1970-01-01 UTC.
type Handed = (i64, i64);

/// What was got, by partition and queue, and where polls got it.
#[derive(Default)]
pub struct Queues<'a> {
    handed: BTreeMap<(i32, &'a str), Vec<Handed>>,
    places: BTreeMap<&'a str, QueuePosition<'a>>,
}

impl<'a> Queues<'a> {
    pub fn of(kin: &Lineage<'a>, observations: &'a Observations) -> Self {
        let mut queues = Self::default();
        for events in kin.runs.values() {
            for started in events.iter().filter(|event| is_claim(kin, events, event)) {
                let Some(scheduled) = before(events, started.number("scheduled_event_id")) else { continue };
                let handed = (scheduled.time_ms, started.time_ms);
                queues.note(started.text("identity"), QueuePosition::of(scheduled), handed);
            }
        }
        for (identity, poll) in &observations.polls {
            let Got::Activity { run_id, .. } = &poll.got else { continue };
            let Some(event) = kin.events(run_id).first() else { continue };
            queues.note(
                identity,
                QueuePosition::of_activity(event.partition),
                (poll.since_ms, poll.ended_ms),
            );
        }
        queues
    }

    fn note(&mut self, identity: &'a str, place: QueuePosition<'a>, handed: Handed) {
        self.handed.entry((place.partition, place.queue)).or_default().push(handed);
        self.places.insert(identity, place);
    }

    /// Where a poll got its task; none where nothing was written of that.
    pub fn place(&self, identity: &str) -> Option<QueuePosition<'a>> {
        self.places.get(identity).copied()
    }

    /// Somebody gets something there, some time.
    pub fn is_served(&self, queue: &str) -> bool {
        self.handed.keys().any(|(_, other)| *other == queue)
    }

    /// Rounds went past who waited there meanwhile, whichever of its queues that was in.
    pub fn has_passed(&self, place: QueuePosition<'_>, from_ms: i64, until_ms: i64) -> bool {
        [place.queue, place.normal].into_iter().all(|queue| {
            let handed = self.handed.get(&(place.partition, queue));
            has_rounds(handed.into_iter().flatten(), from_ms, until_ms)
        })
    }

    /// In some queue of the partition there were rounds meanwhile: whoever has it hands out what is there.
    pub fn goes_on(&self, partition: i32, from_ms: i64, until_ms: i64) -> bool {
        let of_it = self.handed.range((partition, "")..).take_while(|((other, _), _)| *other == partition);
        has_rounds(of_it.flat_map(|(_, handed)| handed), from_ms, until_ms)
    }
}

fn has_rounds<'b>(handed: impl Iterator<Item = &'b Handed>, from_ms: i64, until_ms: i64) -> bool {
    let handed: Vec<_> =
        handed.filter(|(since_ms, at_ms)| *since_ms > from_ms && *at_ms <= until_ms).collect();
    let next_ms = |moment_ms: &i64| {
        let behind = handed.iter().filter(|(since_ms, _)| since_ms > moment_ms);
        behind.map(|(since_ms, at_ms)| *at_ms.max(since_ms)).min()
    };
    std::iter::successors(Some(from_ms), next_ms).nth(ROUNDS).is_some()
}

/// A poll has claimed a workflow task. That of a task which a reset fails may be written for this, and no worker had it.
pub fn is_claim(kin: &Lineage<'_>, events: &[&Event], event: &Event) -> bool {
    let next = before(events, Some(event.event_id + 1));
    let is_of_reset = next.is_some_and(|next| next.text("new_run_id") == next.run_id);
    event.kind == "WorkflowTaskStarted" && kin.is_new(event) && !is_of_reset
}

/// An event of a run by its number.
pub fn before<'a>(events: &[&'a Event], number: Option<i64>) -> Option<&'a Event> {
    let place = usize::try_from(number? - 1).ok()?;
    events.get(place).copied()
}
