//! What clients and workers observed. An observation that contradicts an earlier one is a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use everlog_engine::event::HistoryEvent;
use prost::Message;

use crate::public::Command;
use crate::resets::TakenBack;
use crate::schedules::account::UsedSchedule;
use crate::updates::UpdateEnd;

/// A signal as its sender knows it. Its name is unique.
#[derive(Clone, Debug)]
pub struct Sent {
    pub workflow_id: String,
    pub acknowledged: bool,
}

/// A run as it was seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub workflow_id: String,
    /// A hash of each event that anybody was shown, from event 1 on.
    pub events: BTreeMap<i64, u64>,
    /// The greatest length of its history that an answered read has shown.
    pub length: i64,
    pub closed: bool,
}

/// Everything that was observed.
#[derive(Default)]
pub struct Observations {
    pub signals: BTreeMap<String, Sent>,
    /// Acknowledged signals by run.
    pub acknowledged: BTreeMap<String, i64>,
    /// The first run of each workflow, once its start is acknowledged.
    pub started: BTreeMap<String, String>,
    pub runs: BTreeMap<String, Seen>,
    pub violations: Vec<String>,
    pub answers: u64,
    pub refusals: u64,
    pub queries: u64,
    pub tasks: u64,
    /// Calls without a reply so far.
    pub waiting: BTreeSet<(u64, String)>,
    pub finished: BTreeSet<String>,
    pub people_left: u64,
    /// By how much the log's clock was set forward, which nobody hears of before the next record.
    pub log_was_set_ms: i64,
    /// Public commands, in the order in which they were produced.
    pub commands: Vec<Command>,
    /// How updates ended, by the replies to their callers.
    pub updates: BTreeMap<String, UpdateEnd>,
    /// Workflows that are reset.
    pub taken_back: BTreeMap<String, TakenBack>,
    /// The schedule, once it is over.
    pub schedule: Option<UsedSchedule>,
}

pub fn fingerprint(event: &HistoryEvent) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.encode_to_vec().hash(&mut hasher);
    hasher.finish()
}

impl Observations {
    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A client or worker got a part of a history.
    pub fn saw(&mut self, workflow_id: &str, run_id: &str, events: &[HistoryEvent]) {
        let seen = self.runs.entry(run_id.to_owned()).or_default();
        seen.workflow_id = workflow_id.to_owned();
        let mut rewritten = None;
        for event in events {
            let print = fingerprint(event);
            let before = seen.events.insert(event.event_id, print);
            if before.is_some_and(|before| before != print) {
                rewritten = Some(event.clone());
            }
        }
        if let Some(event) = rewritten {
            self.violate(format!(
                "event {} of run {run_id} was another one before: {event:?}",
                event.event_id
            ));
        }
    }

    /// A read was answered that was asked when the run was known to be so long and to have so many signals.
    pub fn read(&mut self, run_id: &str, before: (i64, i64), found: (i64, i64), what: &str) {
        if found.0 < before.0 {
            let (asked, got) = (before.0, found.0);
            self.violate(format!("a {what} of {run_id} shows {got} events, another had shown {asked}"));
        }
        if found.1 < before.1 {
            let (asked, got) = (before.1, found.1);
            self.violate(format!("a {what} of {run_id} shows {got} signals, {asked} had been acknowledged"));
        }
        let seen = self.runs.entry(run_id.to_owned()).or_default();
        seen.length = seen.length.max(found.0);
    }

    /// What a read that begins now must at least show of a run: events and signals.
    pub fn known(&self, run_id: &str) -> (i64, i64) {
        let length = self.runs.get(run_id).map_or(0, |seen| seen.length);
        (length, self.acknowledged.get(run_id).copied().unwrap_or_default())
    }
}
