//! The origin of each run: a start, a parent, the run before, or a reset; and which events a reset has copied.
//!
//! A run that a reset has made has the beginning of its base, and what came later once more: nobody did that a second time.

use std::collections::{BTreeMap, BTreeSet};

use crate::client_log::{Answer, Call, Deed};
use crate::event::Event;
use crate::observations::Observations;
use crate::program;

const COMPLETED: &str = "WorkflowExecutionCompleted";
const FAILED: &str = "WorkflowExecutionFailed";
const CONTINUED: &str = "WorkflowExecutionContinuedAsNew";
const SIGNALED: &str = "WorkflowExecutionSignaled";
pub const ACCEPTED: &str = "WorkflowExecutionUpdateAccepted";
const ADMITTED: &str = "WorkflowExecutionUpdateAdmitted";

/// What made a run, as its own events tell it.
#[derive(Clone, Copy, Debug)]
pub struct Reset<'a> {
    pub base_run_id: &'a str,
    /// The end of the task to which the run went back; its failure says why.
    pub failed: &'a Event,
}

/// All runs, and how they belong together.
pub struct Lineage<'a> {
    /// The events of each run, in order of their offsets.
    pub runs: BTreeMap<&'a str, Vec<&'a Event>>,
    /// The runs of each Workflow Id, in the order in which they became the one that it means.
    chains: BTreeMap<&'a str, Vec<&'a str>>,
    /// By the run that each has made.
    pub resets: BTreeMap<&'a str, Reset<'a>>,
    /// Where stands what a reset has written once more.
    again: BTreeSet<(i32, i64)>,
}

impl<'a> Lineage<'a> {
    pub fn of(observations: &'a Observations) -> Self {
        let mut runs: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
        for event in &observations.events {
            runs.entry(&event.run_id).or_default().push(event);
        }
        let resets = runs.iter().filter_map(|(run_id, events)| Some((*run_id, reset_of(events)?))).collect();
        let mut chains: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (run_id, events) in &runs {
            chains.entry(&events[0].workflow_id).or_default().push(run_id);
        }
        chains.values_mut().for_each(|chain| chain.sort_by_key(|run_id| runs[run_id][0].offset));
        let mut lineage = Self { runs, chains, resets, again: BTreeSet::new() };
        lineage.again = lineage.written_again();
        lineage
    }

    fn written_again(&self) -> BTreeSet<(i32, i64)> {
        let mut again = BTreeSet::new();
        for (run_id, reset) in &self.resets {
            let signals: BTreeSet<&str> = self.past(run_id).flat_map(signals).collect();
            let is_again = |event: &&&Event| {
                let is_signal = event.kind == SIGNALED && signals.contains(event.text("request_id"));
                event.event_id < reset.failed.event_id || is_signal
            };
            again.extend(self.events(run_id).iter().filter(is_again).map(|event| place(event)));
        }
        again
    }

    /// False of what stands there once more because of a reset.
    pub fn is_new(&self, event: &Event) -> bool {
        !self.again.contains(&place(event))
    }

    pub fn events(&self, run_id: &str) -> &[&'a Event] {
        self.runs.get(run_id).map_or(&[], Vec::as_slice)
    }

    /// A run was terminated since a reset has made another in its place.
    pub fn is_replaced(&self, terminated: &Event) -> bool {
        self.resets.values().any(|reset| {
            let (failed, reason) = (reset.failed, terminated.text("reason"));
            failed.workflow_id == terminated.workflow_id
                && failed.offset > terminated.offset
                && failed.text("failure") == reason
        })
    }

    /// The runs of which one that a reset has made must lose nothing: its base, and what this went on as.
    pub fn past(&self, run_id: &str) -> impl Iterator<Item = &[&'a Event]> {
        let base = self.resets.get(run_id).map(|reset| reset.base_run_id);
        let events = |run_id: &str| self.runs.get(run_id).map(Vec::as_slice);
        std::iter::successors(base.and_then(events), move |events| {
            let last = events.last().filter(|last| last.kind == CONTINUED)?;
            self.runs.get(last.text("new_run_id")).map(Vec::as_slice)
        })
        .take(self.runs.len())
    }

    /// The last run of the chain that a run belongs to.
    pub fn end_of(&self, run_id: &str) -> &[&'a Event] {
        let mut events = self.events(run_id);
        // No chain has more runs than there are.
        for _ in 0..self.runs.len() {
            let next = events.last().map_or("", |last| last.text("new_run_id"));
            match self.runs.get(next) {
                Some(after) => events = after,
                None => break,
            }
        }
        events
    }

    /// The runs of a Workflow Id, in the order in which they became the ones that their ids mean.
    pub fn in_order(&self, workflow_id: &str) -> Vec<&[&'a Event]> {
        self.chains.get(workflow_id).into_iter().flatten().map(|run_id| self.events(run_id)).collect()
    }
}

fn place(event: &Event) -> (i32, i64) {
    (event.partition, event.offset)
}

/// The last reset that a run's own events tell of, if it made this run.
fn reset_of<'a>(events: &[&'a Event]) -> Option<Reset<'a>> {
    let mut failed = events.iter().filter(|event| event.kind == "WorkflowTaskFailed");
    let failed = failed.find(|event| event.text("new_run_id") == event.run_id)?;
    Some(Reset { base_run_id: failed.text("base_run_id"), failed })
}

/// The request ids of the signals that a run has.
fn signals<'a>(events: &[&'a Event]) -> Vec<&'a str> {
    let signals = events.iter().filter(|event| event.kind == SIGNALED);
    signals.map(|event| event.text("request_id")).filter(|id| !id.is_empty()).collect()
}

/// The updates that a run has by events of these kinds.
pub fn updates<'a>(events: &[&'a Event], kinds: &[&str]) -> BTreeSet<&'a str> {
    let updates = events.iter().filter(|event| kinds.contains(&event.kind.as_str()));
    updates.map(|event| event.text("update_id")).collect()
}

/// What is wrong with where runs come from.
pub fn check(lineage: &Lineage<'_>, observations: &Observations, found: &mut Vec<String>) {
    for (run_id, events) in &lineage.runs {
        match lineage.resets.get(run_id) {
            Some(reset) => check_reset(lineage, &observations.calls, (run_id, reset), found),
            None => check_begin(lineage, run_id, events, found),
        }
        let next = events.last().map_or("", |last| last.text("new_run_id"));
        if !next.is_empty() {
            let follows = lineage.events(next).first();
            if follows.is_none_or(|started| started.text("continued_run_id") != *run_id) {
                found.push(format!("run {run_id} is followed by {next}, which does not come from it"));
            }
        }
    }
    check_orders(lineage, &observations.calls, found);
    check_open(observations, found);
}

/// A run that no reset has made: who follows another says why, counts its attempt and has the last result of those before.
fn check_begin(lineage: &Lineage<'_>, run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("run {run_id}: {what}"));
    let started = events[0];
    let backoff_ms = started.number("first_workflow_task_backoff_ms").unwrap_or(0);
    let task = events.iter().find(|event| event.kind == "WorkflowTaskScheduled");
    if task.is_some_and(|task| task.time_ms < started.time_ms + backoff_ms) {
        wrong(format!("its first task comes before the {backoff_ms} ms that it waits"));
    }
    let before = started.text("continued_run_id");
    if before.is_empty() {
        if started.kind == "WorkflowExecutionStarted" && started.text("first_run_id") != run_id {
            wrong(format!("it is the first of its chain, and says {:?}", started.text("first_run_id")));
        }
        return;
    }
    let Some((former, closing)) = lineage.events(before).first().zip(lineage.events(before).last()) else {
        wrong(format!("it comes from {before}, which is not there"));
        return;
    };
    if closing.text("new_run_id") != run_id {
        wrong(format!("it comes from {before}, which another follows"));
    }
    if started.workflow_id != former.workflow_id
        || started.text("first_run_id") != former.text("first_run_id")
    {
        wrong(format!("it comes from {before}, which belongs to another chain"));
    }
    let initiator = started.text("initiator");
    let may = match closing.kind.as_str() {
        CONTINUED => ["Workflow"].as_slice(),
        COMPLETED => &["Cron"],
        FAILED | "WorkflowExecutionTimedOut" => &["Retry", "Cron"],
        _other => &[],
    };
    if !may.contains(&initiator) {
        wrong(format!("it was made by {initiator:?} after {}", closing.kind));
    }
    let attempts = [former, started].map(|started| started.number("attempt").unwrap_or(0).max(1));
    let wanted = if initiator == "Retry" { attempts[0] + 1 } else { 1 };
    if attempts[1] != wanted {
        wrong(format!("it is attempt {} by {initiator}, after attempt {}", attempts[1], attempts[0]));
    }
    if initiator == "Cron" {
        let is_result = closing.kind == COMPLETED;
        let result = if is_result { closing.text("result") } else { former.text("last_completion_result") };
        if started.text("last_completion_result") != result {
            wrong(format!("its last result is {:?}, not {result:?}", started.text("last_completion_result")));
        }
    }
    if initiator != "Workflow"
        && started.texts.contains_key("continued_failure") != (closing.kind != COMPLETED)
    {
        wrong(format!("after {} its failure is {:?}", closing.kind, started.texts.get("continued_failure")));
    }
}

/// A run that was sent back: it was ordered to, has the beginning of its base, and what came later once.
fn check_reset(
    lineage: &Lineage<'_>,
    calls: &[Call],
    (run_id, reset): (&str, &Reset<'_>),
    found: &mut Vec<String>,
) {
    let mut wrong = |what: String| found.push(format!("run {run_id}: {what}"));
    let (events, base) = (lineage.events(run_id), lineage.events(reset.base_run_id));
    let reason = reset.failed.text("failure");
    let mut shared = reset.failed.event_id - 2;
    // A program that judges for itself is not in the client log.
    if !reset.failed.workflow_id.starts_with(program::PREFIX) {
        let order = calls.iter().find_map(|call| match &call.deed {
            Deed::Reset { base_run_id, finish_event_id } if call.identity == reason => {
                Some((base_run_id.as_str(), *finish_event_id))
            }
            _another => None,
        });
        let Some((base_run_id, finish_event_id)) = order else {
            wrong(format!("nobody ordered the reset {reason:?}"));
            return;
        };
        if base_run_id != reset.base_run_id {
            wrong(format!("{base_run_id} was to be sent back, not {}", reset.base_run_id));
        }
        // The start of the task that fails may have been written for it.
        if !(finish_event_id..=finish_event_id + 1).contains(&reset.failed.event_id) {
            wrong(format!("it goes back to {}, not to {finish_event_id}", reset.failed.event_id));
        }
        shared = finish_event_id - 1;
    }
    let shared = usize::try_from(shared).unwrap_or(0);
    let same = |(one, two): (&&Event, &&Event)| is_same(one, two);
    if base.len() < shared || !base.iter().zip(events).take(shared).all(same) {
        wrong(format!("its first {shared} events are not those of {}", reset.base_run_id));
    }
    let mut has = BTreeSet::new();
    for signal in signals(events) {
        if !has.insert(signal) {
            wrong(format!("it has the signal {signal:?} twice"));
        }
    }
    let (mut lost, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    for past in lineage.past(run_id) {
        lost.extend(signals(past).into_iter().filter(|signal| !has.contains(signal)));
        accepted.extend(updates(past, &[ACCEPTED, ADMITTED]));
    }
    let known = updates(events, &[ACCEPTED, ADMITTED]);
    lost.extend(accepted.difference(&known));
    if !lost.is_empty() {
        wrong(format!("it has lost {lost:?}, which {} had", reset.base_run_id));
    }
}

/// The same event in two runs.
fn is_same(one: &Event, two: &Event) -> bool {
    let all = |event: &Event| {
        let Event { event_id, kind, time_ms, numbers, texts, .. } = event.clone();
        (event_id, kind, time_ms, numbers, texts)
    };
    all(one) == all(two)
}

/// Of a reset that was answered every answer is the one run that it has made.
fn check_orders(lineage: &Lineage<'_>, calls: &[Call], found: &mut Vec<String>) {
    for call in calls.iter().filter(|call| matches!(call.deed, Deed::Reset { .. })) {
        let resets = lineage.resets.iter();
        let made: Vec<_> = resets
            .filter(|(_, reset)| reset.failed.text("failure") == call.identity)
            .map(|(id, _)| *id)
            .collect();
        let is_told = |answer: &Answer| matches!(answer, Answer::Run(run_id) if made == [run_id]);
        if made.len() > 1 || !call.answers.iter().all(is_told) {
            found.push(format!("{call:?} has made the runs {made:?}"));
        }
    }
}

/// No run begins before the one that was open has closed.
fn check_open(observations: &Observations, found: &mut Vec<String>) {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    for event in &observations.events {
        let (id, run_id) = (event.workflow_id.as_str(), event.run_id.as_str());
        if event.event_id == 1
            && let Some(other) = open.insert(id, run_id).filter(|other| *other != run_id)
        {
            found.push(format!("run {run_id} of {id} begins while {other} is open"));
        }
        if event.is_closing() && open.get(id) == Some(&run_id) {
            open.remove(id);
        }
    }
}
