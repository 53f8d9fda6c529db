//! The account of a schedule: each of its times has come to one action or to one counted reason, unless it was paused then.

use std::collections::{BTreeMap, BTreeSet};

use everlog_avro::event::WorkflowEvent;
use everlog_avro::{PublicTopic, Writer};
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_log::Topic;
use everlog_schedules::state::ActionCounts;

use crate::log::{StoredPartition, index};

/// Times that are later than this are missed, in ms.
pub const CATCHUP_MS: i64 = 10_000;

/// A schedule as its user knows it at its end.
#[derive(Clone, Debug)]
pub struct UsedSchedule {
    /// From one time to the next, in seconds.
    pub interval_s: i64,
    /// The times lie behind the first of these and not behind the second, in ms.
    pub span_ms: (i64, i64),
    /// Actions that its user has asked for.
    pub triggers: u64,
    pub counts: ActionCounts,
}

/// What the events of a schedule tell.
#[derive(Default)]
struct Account {
    /// What has become of each time, by its nominal second.
    times: BTreeMap<i64, Vec<String>>,
    /// Numbers of actions.
    numbers: BTreeSet<i64>,
    fired: u64,
    skipped: BTreeMap<String, u64>,
    missed: u64,
    manual: u64,
    /// From when until when it was paused, in ms.
    pauses: Vec<(i64, i64)>,
    found: Vec<String>,
}

impl UsedSchedule {
    /// Compares the events that were published with what the schedule was made for, and with what it has counted.
    pub fn check(&self, stored: &StoredPartition, found: &mut Vec<String>) {
        let writer = Writer::own(PublicTopic::Event);
        let mut account = Account::default();
        for row in &stored.topics[index(Topic::Events)].rows {
            let bytes = row.value.clone().unwrap_or_default();
            match WorkflowEvent::read(&writer, &bytes) {
                Ok(event) if event.workflow_id.starts_with(WORKFLOW_ID_PREFIX) => {
                    account.add(&event, self.interval_s);
                }
                Ok(_of_a_run) => {}
                Err(error) => account.found.push(format!("an event: {error}")),
            }
        }
        account.compare(self);
        found.append(&mut account.found);
    }
}

impl Account {
    fn add(&mut self, event: &WorkflowEvent<'_>, interval_s: i64) {
        if let Some(fired) = &event.schedule_fired {
            self.fired += 1;
            self.action(fired.action, fired.nominal_time, fired.is_manual, "started");
            if !fired.is_manual && fired.start_time < fired.actual_time {
                self.found.push(format!("a run was started before its time: {fired:?}"));
            }
        }
        if let Some(skipped) = &event.schedule_skipped {
            *self.skipped.entry(skipped.reason.to_string()).or_default() += 1;
            self.action(skipped.action, skipped.nominal_time, skipped.is_manual, &skipped.reason);
        }
        if let Some(missed) = &event.schedule_missed {
            let seconds = missed.first_nominal_time / 1_000..=missed.last_nominal_time / 1_000;
            for second in seconds.step_by(usize::try_from(interval_s).unwrap_or(1)) {
                self.missed += 1;
                self.times.entry(second).or_default().push("missed".into());
            }
            if event.time - missed.last_nominal_time <= CATCHUP_MS {
                self.found
                    .push(format!("times were missed at {} that were not late: {missed:?}", event.time));
            }
        }
        if event.schedule_paused.is_some() {
            self.pauses.push((event.time, i64::MAX));
        }
        if event.schedule_unpaused.is_some()
            && let Some((_, until_ms)) = self.pauses.last_mut()
        {
            *until_ms = event.time;
        }
    }

    fn action(&mut self, number: i64, nominal_ms: i64, is_manual: bool, what: &str) {
        if !self.numbers.insert(number) {
            self.found.push(format!("action {number} is told of twice"));
        }
        if is_manual {
            self.manual += 1;
        } else {
            self.times.entry(nominal_ms / 1_000).or_default().push(what.into());
        }
    }

    fn compare(&mut self, schedule: &UsedSchedule) {
        let UsedSchedule { interval_s, span_ms: (from_ms, end_ms), triggers, counts } = schedule;
        let first = from_ms.div_euclid(1_000).div_euclid(*interval_s) + 1;
        let last = end_ms.div_euclid(1_000).div_euclid(*interval_s);
        for second in (first..=last).map(|number| number * interval_s) {
            let outcomes = self.times.remove(&second).unwrap_or_default();
            let is_in = |(from_ms, until_ms): &(i64, i64)| (*from_ms..=*until_ms).contains(&(second * 1_000));
            let was_paused = self.pauses.iter().any(is_in);
            if outcomes.len() != 1 && !(outcomes.is_empty() && was_paused) {
                self.found.push(format!("the time {second} of a schedule has come to {outcomes:?}"));
            }
        }
        if !self.times.is_empty() {
            self.found.push(format!("a schedule has times that are none: {:?}", self.times));
        }
        if self.manual != *triggers {
            self.found.push(format!("{triggers} triggers have come to {} actions", self.manual));
        }
        let told = |reason: &str| self.skipped.get(reason).copied().unwrap_or_default();
        let pairs = [
            ("fired", self.fired, counts.started),
            ("missed", self.missed, counts.missed),
            ("skipped", told("Overlap"), counts.skipped),
            ("dropped", told("BufferFull"), counts.dropped),
            ("paused", told("Paused"), counts.paused),
            ("exhausted", told("Exhausted"), counts.exhausted),
            ("clashed", told("WorkflowIdTaken"), counts.clashed),
            ("refused", told("Refused"), counts.refused),
        ];
        for (name, told, counted) in pairs.into_iter().filter(|(_, told, counted)| told != counted) {
            self.found.push(format!("a schedule tells of {told} {name} actions, and counts {counted}"));
        }
    }
}
