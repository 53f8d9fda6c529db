//! Every scheduled task reaches a worker, and none is handed out to nobody: for longer than one hand-over time behind the last
//! trouble that there was nobody waits while others that came later go past.
//!
//! A task that a worker never got waits for its timeout, which is longer than a hand-over here: nothing hides behind it. Where
//! nobody goes past, on a slow machine, all wait as long, and for no longer than our patience.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use everlog_tests::patience;

use crate::checker::lineage::Lineage;
use crate::checker::queues::{QueuePosition, Queues, before, is_claim};
use crate::checker::terms::Owner;
use crate::event::Event;
use crate::observations::Observations;
use crate::polls::{Got, Poll};
use crate::program;

/// A node's session and what a take-over costs behind it, and a margin for a busy machine: before that nobody is late.
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

    /// Something was harmed between that moment and this one that the others can do without: they have one hand-over time.
    pub fn since(&self, began_ms: i64) {
        self.open().push((began_ms, now_ms()));
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

/// Something was harmed between two moments, or so short a time before them that it could not be mended.
pub fn overlaps(troubles: &[Trouble], from_ms: i64, until_ms: i64) -> bool {
    let is_in = |(began_ms, ended_ms): &Trouble| {
        *began_ms <= until_ms && from_ms <= ended_ms.saturating_add(HAND_OVER_MS)
    };
    troubles.iter().any(is_in)
}

/// When it could be had, or when the last trouble that kept it back was over.
fn settled_ms(troubles: &[Trouble], since_ms: i64) -> i64 {
    let mut since_ms = since_ms;
    for (from_ms, until_ms) in troubles {
        if *until_ms > since_ms && *from_ms <= since_ms.saturating_add(HAND_OVER_MS) {
            since_ms = *until_ms;
        }
    }
    since_ms
}

/// Tasks that a worker got too late or never, though workers always asked; where trouble was noted.
pub fn check(kin: &Lineage<'_>, observations: &Observations, found: &mut Vec<String>) {
    let Some(troubles) = &observations.troubles else { return };
    let (queues, owners) = (&Queues::of(kin, observations), observations.terms.owners.as_slice());
    let mut judge = Judge { polls: &observations.polls, troubles, queues, owners, found };
    for (identity, poll) in &observations.polls {
        judge.poll(identity, poll);
    }
    let attempts = attempts(&observations.polls);
    for (run_id, events) in &kin.runs {
        for event in events.iter().filter(|event| kin.is_new(event)) {
            match event.kind.as_str() {
                "WorkflowTaskStarted" if is_claim(kin, events, event) => judge.task(run_id, events, event),
                "WorkflowTaskTimedOut" => judge.sticky(run_id, events, event),
                "ActivityTaskScheduled" if !is_program(event) => {
                    judge.activity(run_id, events, event, &attempts);
                }
                _other => {}
            }
        }
    }
}

/// It judges for itself what its workers get.
fn is_program(event: &Event) -> bool {
    event.workflow_id.starts_with(program::PREFIX)
}

/// Attempts of activities that workers got, in the order in which they did, by run and activity id.
type Attempts<'a> = BTreeMap<(&'a str, &'a str), Vec<(i32, &'a Poll)>>;

fn attempts(polls: &BTreeMap<String, Poll>) -> Attempts<'_> {
    let mut all = Attempts::new();
    for poll in polls.values() {
        if let Got::Activity { run_id, activity_id, attempt } = &poll.got {
            all.entry((run_id, activity_id)).or_default().push((*attempt, poll));
        }
    }
    all.values_mut().for_each(|attempts| attempts.sort_by_key(|(attempt, poll)| (*attempt, poll.ended_ms)));
    all
}

struct Judge<'a> {
    polls: &'a BTreeMap<String, Poll>,
    troubles: &'a [Trouble],
    queues: &'a Queues<'a>,
    /// Who took which partition over, and when.
    owners: &'a [Owner],
    found: &'a mut Vec<String>,
}

impl Judge<'_> {
    /// How long after it could be had, or after the last trouble that kept it back, in ms.
    fn took_ms(&self, since_ms: i64, at_ms: i64) -> i64 {
        at_ms.saturating_sub(settled_ms(self.troubles, since_ms))
    }

    /// It waits for longer than a hand-over, and others go past; or for longer than anybody has patience for.
    fn is_late(&self, place: Option<QueuePosition<'_>>, since_ms: i64, at_ms: i64) -> bool {
        let (settled_ms, took_ms) = (settled_ms(self.troubles, since_ms), self.took_ms(since_ms, at_ms));
        let most_ms = i64::try_from(patience::most().as_millis()).unwrap_or(i64::MAX);
        let is_passed = || place.is_some_and(|place| self.queues.has_passed(place, settled_ms, at_ms));
        took_ms > HAND_OVER_MS && (took_ms > most_ms || is_passed())
    }

    /// What a worker got could not be had for long by then.
    fn poll(&mut self, identity: &str, poll: &Poll) {
        let is_task = matches!(poll.got, Got::WorkflowTask { .. } | Got::Activity { .. });
        if is_task && self.is_late(self.queues.place(identity), poll.since_ms, poll.ended_ms) {
            let (got, at) = (&poll.got, time_of_day(poll.ended_ms));
            let took_ms = self.took_ms(poll.since_ms, poll.ended_ms);
            self.found.push(format!(
                "{identity} got {got:?} only at {at}, {took_ms} ms after there was no trouble any more"
            ));
        }
    }

    /// A workflow task is started in its turn, and by somebody who got it. Who got nothing gives it back.
    fn task(&mut self, run_id: &str, events: &[&Event], started: &Event) {
        let Some(scheduled) = before(events, started.number("scheduled_event_id")) else { return };
        if self.is_late(Some(QueuePosition::of(scheduled)), scheduled.time_ms, started.time_ms) {
            let took_ms = self.took_ms(scheduled.time_ms, started.time_ms);
            let (number, at) = (scheduled.event_id, time_of_day(started.time_ms));
            self.found.push(format!(
                "run {run_id}: the task scheduled by event {number} was started by event {} only at {at}, {took_ms} ms after \
                 there was no trouble any more",
                started.event_id
            ));
        }
        if is_program(started) {
            return;
        }
        let poll = self.polls.get(started.text("identity"));
        let has_got = |poll: &Poll| matches!(&poll.got, Got::WorkflowTask { run_id: own } if own == run_id);
        if poll.is_some_and(|poll| has_got(poll) || poll.is_excused(self.troubles)) {
            return;
        }
        let mut after = events.iter().filter(|event| event.event_id > started.event_id);
        let end = after.find(|event| event.number("started_event_id") == Some(started.event_id));
        let is_given_back = match end {
            Some(end) if end.kind == "WorkflowTaskTimedOut" => !self.is_waited_out(scheduled, started, end),
            // Its run was closed meanwhile.
            Some(end) => end.kind == "WorkflowTaskFailed",
            None => true,
        };
        if !is_given_back {
            self.found.push(format!(
                "run {run_id}: the task started by event {} at {} reached nobody, {poll:?}, and ended with {:?}",
                started.event_id,
                time_of_day(started.time_ms),
                end.map(|end| (end.kind.as_str(), time_of_day(end.time_ms)))
            ));
        }
    }

    /// Nobody gave it back before its time was over, though whoever has its partition went on for some while behind all trouble,
    /// and behind its own beginning. One that takes the partition over gives back what it finds.
    fn is_waited_out(&self, scheduled: &Event, started: &Event, end: &Event) -> bool {
        let time_ms = scheduled.number("start_to_close_timeout_ms").unwrap_or(0);
        let is_over = end.time_ms >= started.time_ms + time_ms;
        let of_it = self.owners.iter().filter(|owner| owner.partition == started.partition);
        let owned_ms = of_it.map(|owner| owner.time_ms).filter(|time_ms| *time_ms <= end.time_ms).max();
        let since_ms = settled_ms(self.troubles, started.time_ms).max(owned_ms.unwrap_or(i64::MIN));
        let is_late = self.took_ms(started.time_ms, end.time_ms) > HAND_OVER_MS;
        is_over && is_late && self.queues.goes_on(started.partition, since_ms, end.time_ms)
    }

    /// A sticky worker asks for what it has all the time, and is not passed over unless something is harmed.
    fn sticky(&mut self, run_id: &str, events: &[&Event], timed_out: &Event) {
        if is_program(timed_out) || timed_out.number("started_event_id").is_some_and(|started| started > 0) {
            return;
        }
        let Some(scheduled) = before(events, timed_out.number("scheduled_event_id")) else { return };
        let place = QueuePosition { normal: scheduled.text("task_queue"), ..QueuePosition::of(scheduled) };
        let is_passed = self.queues.has_passed(place, scheduled.time_ms, timed_out.time_ms);
        let is_forgotten = is_passed || !self.queues.is_served(place.queue);
        if is_forgotten && !overlaps(self.troubles, scheduled.time_ms, timed_out.time_ms) {
            self.found.push(format!(
                "run {run_id}: the sticky task scheduled by event {} reached nobody until {}, though nothing was harmed",
                scheduled.event_id,
                time_of_day(timed_out.time_ms)
            ));
        }
    }

    /// A worker gets an activity in its turn, and each attempt, unless the way to a worker broke.
    fn activity(&mut self, run_id: &str, events: &[&Event], scheduled: &Event, attempts: &Attempts<'_>) {
        let got = attempts.get(&(run_id, scheduled.text("activity_id"))).map_or(&[][..], Vec::as_slice);
        let place = Some(QueuePosition::of_activity(scheduled.partition));
        let mut since_ms = scheduled.time_ms;
        let mut wanted = 1;
        for (attempt, poll) in got {
            let is_lost = *attempt > wanted && !self.is_broken_off(since_ms, poll.ended_ms);
            if is_lost || (*attempt == 1 && self.is_late(place, scheduled.time_ms, poll.ended_ms)) {
                self.found.push(format!(
                    "run {run_id}: of the activity scheduled by event {} at {}, attempt {wanted} reached nobody until {}, when \
                     attempt {attempt}, scheduled at {}, did",
                    scheduled.event_id,
                    time_of_day(scheduled.time_ms),
                    time_of_day(poll.ended_ms),
                    time_of_day(poll.since_ms)
                ));
            }
            (since_ms, wanted) = (poll.ended_ms, attempt + 1);
        }
        let last_ms = events.last().map_or(since_ms, |last| last.time_ms);
        if got.is_empty()
            && self.is_late(place, scheduled.time_ms, last_ms)
            && !self.is_broken_off(since_ms, last_ms)
        {
            self.found.push(format!(
                "run {run_id}: the activity scheduled by event {} at {} reached nobody",
                scheduled.event_id,
                time_of_day(scheduled.time_ms)
            ));
        }
    }

    /// A poll that broke in trouble may have taken a task with it.
    fn is_broken_off(&self, since_ms: i64, until_ms: i64) -> bool {
        let is_then = |poll: &Poll| poll.since_ms <= until_ms && since_ms <= poll.ended_ms;
        self.polls.values().any(|poll| is_then(poll) && poll.is_excused(self.troubles))
    }
}
