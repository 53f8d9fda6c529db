//! Updates: accepted once, answered once, reported in their true stage, and never lost once acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use everlog_tests::fate::Fate;

use crate::checker::lineage::{ACCEPTED, Lineage};
use crate::client_log::{Answer, Call, Deed};
use crate::event::Event;
use crate::observations::Observations;
use crate::program;

const ANSWERED: &str = "WorkflowExecutionUpdateCompleted";

/// What is wrong with updates.
pub fn check(lineage: &Lineage<'_>, observations: &Observations, found: &mut Vec<String>) {
    let mut accepted: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    let mut answered: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for (run_id, events) in &lineage.runs {
        check_run(run_id, events, found);
        for event in events {
            match event.kind.as_str() {
                ACCEPTED => accepted.entry(event.text("update_id")).or_default().push(event),
                ANSWERED => answered.entry(event.text("update_id")).or_default().push(event),
                _other => {}
            }
        }
    }
    for call in observations.calls.iter().filter(|call| call.deed == Deed::Update) {
        let accepted = accepted.remove(call.identity.as_str()).unwrap_or_default();
        let answered = answered.remove(call.identity.as_str()).unwrap_or_default();
        check_call(lineage, call, &accepted, &answered, found);
    }
    for (update_id, events) in accepted.into_iter().chain(answered) {
        // A program that judges for itself is not in the client log.
        if let Some(event) = events.iter().find(|event| !event.workflow_id.starts_with(program::PREFIX)) {
            found.push(format!("run {}: an update {update_id:?} that nobody sent", event.run_id));
        }
    }
}

/// In a run each is accepted once, and answered once behind that; who returns owes no answer.
fn check_run(run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("run {run_id}: {what}"));
    let (mut known, mut open) = (BTreeSet::new(), BTreeMap::new());
    for event in events {
        let update_id = event.text("update_id");
        match event.kind.as_str() {
            ACCEPTED => {
                open.insert(event.event_id, update_id);
                if !known.insert(update_id) {
                    wrong(format!("event {}: update {update_id:?} is accepted twice", event.event_id));
                }
            }
            ANSWERED => {
                let place = event.number("accepted_event_id").unwrap_or(0);
                let owed = open.remove(&place);
                if owed != Some(update_id) {
                    wrong(format!("event {}: update {update_id:?} answers {owed:?}", event.event_id));
                }
            }
            _other => {}
        }
    }
    if events.last().is_some_and(|last| last.kind == "WorkflowExecutionCompleted") && !open.is_empty() {
        wrong(format!("it has returned and not answered {open:?}"));
    }
}

/// A run has accepted an update, or was made of one that owed it. What only a run had that a later reset went back behind
/// is gone with it.
fn is_owed(lineage: &Lineage<'_>, run_id: &str, holders: &BTreeSet<&str>) -> bool {
    let mut open = vec![run_id];
    let mut met = BTreeSet::new();
    while let Some(run_id) = open.pop() {
        if holders.contains(run_id) {
            return true;
        }
        if met.insert(run_id) {
            open.extend(lineage.past(run_id).map(|events| events[0].run_id.as_str()));
        }
    }
    false
}

/// Acknowledged: accepted by somebody, and answered in the end by who owes it, as was told; refused: not at all.
fn check_call(
    lineage: &Lineage<'_>,
    call: &Call,
    accepted: &[&Event],
    answered: &[&Event],
    found: &mut Vec<String>,
) {
    let mut wrong = |what: String| found.push(format!("{call:?} {what}"));
    let holders: BTreeSet<&str> = accepted.iter().map(|event| event.run_id.as_str()).collect();
    match call.fate {
        Fate::Refused if !accepted.is_empty() => {
            wrong(format!("was refused, and is accepted by {holders:?}"))
        }
        Fate::Acked if accepted.is_empty() => wrong("was acknowledged, and nobody has accepted it".into()),
        Fate::Acked => {
            let last = lineage.in_order(&call.workflow_id).last().map_or("", |events| &events[0].run_id);
            let has = |events: &[&Event]| events.iter().any(|event| event.run_id == last);
            if is_owed(lineage, last, &holders) && !(has(accepted) && has(answered)) {
                wrong(format!("was acknowledged, and lost by {last}"));
            }
        }
        Fate::Refused | Fate::Unknown => {}
    }
    if let Some(other) = accepted.iter().find(|event| event.workflow_id != call.workflow_id) {
        wrong(format!("is accepted by {}", other.workflow_id));
    }
    for answer in &call.answers {
        let Answer::Completed(value) = answer else { continue };
        if !answered.iter().any(|event| event.text("result") == value) {
            wrong("was answered with what no history has".into());
        }
    }
}
