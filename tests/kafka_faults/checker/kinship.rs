//! Parents, children, and signals between runs: each is requested once, happens once, and is reported once.

use std::collections::BTreeMap;

use crate::checker::lineage::Lineage;
use crate::event::Event;
use crate::workflows;

const ASKED: &str = "StartChildWorkflowExecutionInitiated";
const BEGUN: &str = "ChildWorkflowExecutionStarted";
const UNBEGUN: &str = "StartChildWorkflowExecutionFailed";
const COMPLETED: &str = "WorkflowExecutionCompleted";
const TERMINATED: &str = "WorkflowExecutionTerminated";
const SENT: &str = "SignalExternalWorkflowExecutionInitiated";
const ARRIVED: &str = "ExternalWorkflowExecutionSignaled";
const UNHEARD: &str = "SignalExternalWorkflowExecutionFailed";
/// Why a child is terminated whose parent closes.
pub const BY_PARENT: &str = "by parent close policy";

/// How a child's end is told, by the event that it was.
fn told(end: &str) -> Option<&'static str> {
    Some(match end {
        COMPLETED => "ChildWorkflowExecutionCompleted",
        "WorkflowExecutionFailed" => "ChildWorkflowExecutionFailed",
        "WorkflowExecutionCanceled" => "ChildWorkflowExecutionCanceled",
        "WorkflowExecutionTimedOut" => "ChildWorkflowExecutionTimedOut",
        TERMINATED => "ChildWorkflowExecutionTerminated",
        _goes_on => return None,
    })
}

/// What a run says of a child.
#[derive(Default)]
struct Child<'a> {
    begun: Vec<&'a Event>,
    unbegun: Vec<&'a Event>,
    ended: Vec<&'a Event>,
}

/// What is wrong between parents and children, and with signals from one run to another.
pub fn check(lineage: &Lineage<'_>, found: &mut Vec<String>) {
    let mut born: BTreeMap<(&str, i64), Vec<&str>> = BTreeMap::new();
    for (run_id, events) in &lineage.runs {
        let started = events[0];
        let parent = started.text("parent_run_id");
        // A chain has one parent, who has asked for its first run.
        if !parent.is_empty() && started.text("continued_run_id").is_empty() {
            let place = started.number("parent_initiated_event_id").unwrap_or(0);
            born.entry((parent, place)).or_default().push(run_id);
            check_parent(lineage, (run_id, started), (parent, place), found);
        }
        check_bound(lineage, run_id, events, found);
    }
    for ((parent, place), children) in &born {
        if children.len() > 1 {
            found.push(format!("run {parent}: event {place} has begun {children:?}"));
        }
    }
    for run_id in lineage.runs.keys() {
        check_children(lineage, run_id, &born, found);
    }
    check_letters(lineage, found);
}

/// A child is there because its parent asked for it.
fn check_parent(
    lineage: &Lineage<'_>,
    (run_id, started): (&str, &Event),
    (parent, place): (&str, i64),
    found: &mut Vec<String>,
) {
    let asked = at(lineage.events(parent), place).filter(|asked| asked.kind == ASKED);
    if asked.is_none_or(|asked| asked.text("workflow_id") != started.workflow_id) {
        found.push(format!("run {run_id}: event {place} of {parent} did not ask for it"));
    }
}

/// Whoever is ended by the end of a parent had one, which has closed and bound it.
fn check_bound(lineage: &Lineage<'_>, run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let Some(last) = events.last().filter(|last| last.kind == TERMINATED && last.text("reason") == BY_PARENT)
    else {
        return;
    };
    let parent = lineage.events(events[0].text("parent_run_id"));
    let place = events[0].number("parent_initiated_event_id").unwrap_or(0);
    let is_bound = at(parent, place).is_some_and(|asked| asked.text("parent_close_policy") == "Terminate");
    let has_closed = parent.last().is_some_and(|end| end.is_closing() && end.time_ms <= last.time_ms);
    if !is_bound || !has_closed {
        found.push(format!("run {run_id}: no parent that closed before has ended it"));
    }
}

fn at<'a>(events: &[&'a Event], place: i64) -> Option<&'a Event> {
    events.get(usize::try_from(place - 1).ok()?).copied()
}

/// What a run says of its children: each began once and ended once, as it did.
fn check_children(
    lineage: &Lineage<'_>,
    run_id: &str,
    born: &BTreeMap<(&str, i64), Vec<&str>>,
    found: &mut Vec<String>,
) {
    let events = lineage.events(run_id);
    let mut wrong = |place: i64, what: String| found.push(format!("run {run_id}: event {place}: {what}"));
    let mut children: BTreeMap<i64, Child<'_>> = BTreeMap::new();
    for event in events {
        let place = event.number("initiated_event_id").unwrap_or(0);
        let is_end = event.kind.starts_with("ChildWorkflowExecution") && event.kind != BEGUN;
        match event.kind.as_str() {
            ASKED => drop(children.insert(event.event_id, Child::default())),
            BEGUN | UNBEGUN => match children.get_mut(&place) {
                Some(child) if event.kind == BEGUN => child.begun.push(event),
                Some(child) => child.unbegun.push(event),
                None => wrong(event.event_id, format!("{} of no child", event.kind)),
            },
            _ if is_end => match children.get_mut(&place) {
                Some(child) => child.ended.push(event),
                None => wrong(event.event_id, format!("{} of no child", event.kind)),
            },
            _other => {}
        }
    }
    let returned = events.last().is_some_and(|last| last.kind == COMPLETED);
    for (place, child) in children {
        let asked = at(events, place).expect("it was found there");
        let id = asked.text("workflow_id");
        let (begun, unbegun, ended) = (child.begun.len(), child.unbegun.len(), child.ended.len());
        let is_awaited = !id.starts_with("room-") || workflows::is_awaited(id);
        if begun + unbegun > 1 || ended > begun || (returned && is_awaited && ended + unbegun == 0) {
            wrong(place, format!("its child {id} began {begun} times, could not {unbegun}, ended {ended}"));
            continue;
        }
        let (Some(begun), its) = (child.begun.first(), born.get(&(run_id, place))) else {
            if let Some(its) = born.get(&(run_id, place)).filter(|_| unbegun > 0) {
                wrong(place, format!("its child {id} could not begin, and is there: {its:?}"));
            }
            continue;
        };
        if its.is_none_or(|its| *its != [begun.text("run_id")]) {
            wrong(place, format!("its child is {:?}, and there is {its:?}", begun.text("run_id")));
            continue;
        }
        if let Some(ended) = child.ended.first() {
            check_end(lineage.end_of(begun.text("run_id")), ended, |what| wrong(place, what));
        }
    }
}

/// What is told of the last run of a child's chain is what it was, and told behind it.
fn check_end(last_run: &[&Event], ended: &Event, wrong: impl FnOnce(String)) {
    let Some(last) = last_run.last() else { return };
    let is_it = told(&last.kind) == Some(ended.kind.as_str())
        && ended.text("run_id") == last.run_id
        && ended.text("result") == last.text("result")
        && ended.text("failure") == last.text("failure")
        && ended.time_ms >= last.time_ms;
    if !is_it {
        let how = (last.text("result"), last.text("failure"));
        wrong(format!("{ended:?} tells of {}, which ended with {}, {how:?}", last.run_id, last.kind));
    }
}

/// A signal to another: from whom, to whom, its name and first argument.
type Letter<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Each is answered once, and has arrived once where the answer says so.
fn check_letters(lineage: &Lineage<'_>, found: &mut Vec<String>) {
    let mut arrived: BTreeMap<Letter<'_>, usize> = BTreeMap::new();
    for event in lineage.runs.values().flatten().filter(|event| lineage.is_new(event)) {
        let sender = event.text("external_run_id");
        if event.kind == "WorkflowExecutionSignaled" && !event.text("external_workflow_id").is_empty() {
            let letter = (sender, event.workflow_id.as_str(), event.text("signal_name"), event.text("input"));
            *arrived.entry(letter).or_default() += 1;
        }
    }
    for (run_id, events) in &lineage.runs {
        let mut answers: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.kind == ARRIVED || event.kind == UNHEARD) {
            let place = event.number("initiated_event_id").unwrap_or(0);
            answers.entry(place).or_default().push(&event.kind);
        }
        for sent in events.iter().filter(|event| event.kind == SENT) {
            let answers = answers.remove(&sent.event_id).unwrap_or_default();
            let to = sent.text("workflow_id");
            let letter = (*run_id, to, sent.text("signal_name"), sent.text("input"));
            let count = arrived.get(&letter).copied().unwrap_or(0);
            // Of several that are alike each counts for one.
            if count > 0 {
                arrived.insert(letter, count - 1);
            }
            let is_right = match answers.as_slice() {
                [] => true,
                [answer] => (*answer == ARRIVED) == (count > 0),
                _several => false,
            };
            if !is_right {
                let place = sent.event_id;
                found.push(format!(
                    "run {run_id}: event {place}: to {to}, arrived {count} times, told {answers:?}"
                ));
            }
        }
        for (place, answers) in answers {
            found.push(format!("run {run_id}: {answers:?} answers {place}, which sent nothing"));
        }
    }
    for (letter, count) in arrived.into_iter().filter(|(_, count)| *count > 0) {
        found.push(format!("{letter:?} has arrived {count} times more than it was sent"));
    }
}
