//! The independent checker. It knows the public schemas and the form of two rows, and none of the engine's code.

pub mod deliveries;
pub mod ends;
pub mod kinship;
pub mod lineage;
pub mod queues;
pub mod terms;
pub mod torn;
pub mod updates;

use std::collections::{BTreeMap, BTreeSet};

use everlog_tests::fate::Fate;

use crate::checker::lineage::{ACCEPTED, Lineage};
use crate::client_log::{Deed, Via};
use crate::event::{Event, RUNNING, status};
use crate::observations::{CommandReply, Head, Line, Observations};
use crate::{listed, program, register, waits};

/// Counterexamples beyond these say nothing new.
const FOUND_MAX: usize = 40;

/// Everything that is wrong.
pub fn check(observations: &Observations) -> Vec<String> {
    let mut found = observations.faults.clone();
    let kin = Lineage::of(observations);
    let runs = &kin.runs;
    for (run_id, events) in runs {
        check_run(run_id, events, &mut found);
        check_pairs(run_id, events, &mut found);
        check_state(observations, run_id, events, &mut found);
    }
    for run_id in observations
        .heads
        .keys()
        .chain(observations.kept.keys())
        .filter(|run_id| !runs.contains_key(run_id.as_str()))
    {
        found.push(format!("run {run_id} has rows and no events"));
    }
    lineage::check(&kin, observations, &mut found);
    kinship::check(&kin, &mut found);
    updates::check(&kin, observations, &mut found);
    ends::check(&kin, &mut found);
    check_effects(&kin, observations, &mut found);
    check_order(&kin, observations, &mut found);
    check_commands(observations, runs, &mut found);
    check_records(observations, &mut found);
    torn::check(observations, &mut found);
    terms::check(&observations.terms, &effects(&kin, observations), &mut found);
    deliveries::check(&kin, observations, &mut found);
    listed::check(observations, &mut found);
    register::check(&observations.reads, &mut found);
    waits::check(&observations.waits, observations.troubles.is_some(), &mut found);
    for (place, entry) in &observations.seen {
        if observations.later.get(place) != Some(entry) {
            found.push(format!("events {place:?}: who read along saw what is not there any more"));
        }
    }
    for place in observations
        .later
        .keys()
        .filter(|place| !observations.seen.is_empty() && !observations.seen.contains_key(place))
    {
        found.push(format!("events {place:?}: who read along did not see it"));
    }
    found.truncate(FOUND_MAX);
    found
}

/// Ids without a gap and each once, in one partition, from its beginning to its end.
fn check_run(run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("run {run_id}: {what}"));
    let (first, last) = (events[0], events[events.len() - 1]);
    for (event, number) in events.iter().zip(1..) {
        if event.event_id != number {
            wrong(format!("event {} stands at place {number}, offset {}", event.event_id, event.offset));
        }
        if (event.kind == "WorkflowExecutionStarted") != (number == 1) {
            wrong(format!("event {number} is {}", event.kind));
        }
        if event.is_closing() && event.offset != last.offset {
            wrong(format!("{} is not its last event", event.kind));
        }
        if event.partition != first.partition || event.key != first.workflow_id {
            wrong(format!("event {number} is in partition {} under {:?}", event.partition, event.key));
        }
    }
    if !last.is_closing() {
        wrong(format!("{} never ended, after {} events", last.workflow_id, events.len()));
    }
}

/// The cause of the failure of a workflow task that a pause of the run ends before a worker has it.
const PAUSED_BEFORE_START: &str = "WorkflowPauseRequestedBeforeTaskStarted";

/// What an event answers: the kind of the event before it, and the attribute with its id.
fn answered(event: &Event) -> Option<(&'static str, &'static str)> {
    Some(match event.kind.as_str() {
        "WorkflowTaskFailed" if event.text("cause") == PAUSED_BEFORE_START => {
            ("WorkflowTaskScheduled", "scheduled_event_id")
        }
        "WorkflowTaskStarted" => ("WorkflowTaskScheduled", "scheduled_event_id"),
        "WorkflowTaskCompleted" | "WorkflowTaskFailed" => ("WorkflowTaskStarted", "started_event_id"),
        "WorkflowTaskTimedOut" => ("WorkflowTaskScheduled", "scheduled_event_id"),
        "ActivityTaskStarted" => ("ActivityTaskScheduled", "scheduled_event_id"),
        "ActivityTaskCompleted" | "ActivityTaskTimedOut" => ("ActivityTaskStarted", "started_event_id"),
        "TimerFired" | "TimerCanceled" => ("TimerStarted", "started_event_id"),
        _answers_nothing => return None,
    })
}

/// Nothing is answered twice or too early, and nothing that is not there.
fn check_pairs(run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let mut answers = BTreeSet::new();
    for event in events {
        let Some((wanted, attribute)) = answered(event) else { continue };
        let number = event.number(attribute).unwrap_or(0);
        let target = usize::try_from(number - 1).ok().and_then(|place| events.get(place));
        let Some(target) = target.filter(|target| target.kind == wanted && number < event.event_id) else {
            found
                .push(format!("run {run_id}: event {} ({}) answers no {wanted}", event.event_id, event.kind));
            continue;
        };
        let span_ms = match event.kind.as_str() {
            "TimerFired" => target.number("start_to_fire_timeout_ms").unwrap_or(0),
            _at_once => 0,
        };
        if event.time_ms < target.time_ms + span_ms {
            found.push(format!("run {run_id}: event {} ({}) comes too early", event.event_id, event.kind));
        }
        // A workflow task that times out answers its Scheduled event, as its Started event did.
        if event.kind != "WorkflowTaskTimedOut" && !answers.insert(number) {
            found.push(format!("run {run_id}: event {number} is answered twice"));
        }
    }
}

/// Folded events are what the changelog and the history hold, and what the node answered.
fn check_state(observations: &Observations, run_id: &str, events: &[&Event], found: &mut Vec<String>) {
    let next_event_id = events.len() as i64 + 1;
    let status = events.last().map_or(RUNNING, |event| status(&event.kind));
    let is_astray = |head: &Head| head.partition != head.home || events[0].partition != head.home;
    if let Some(head) = observations.heads.get(run_id).filter(|head| is_astray(head)) {
        found.push(format!("run {run_id}: in partition {} of events: {head:?}", events[0].partition));
    }
    match observations.heads.get(run_id) {
        Some(head) if (head.next_event_id, head.status) == (next_event_id, status) => {}
        other => found.push(format!(
            "run {run_id}: its events make next id {next_event_id}, status {status}; the changelog has {other:?}"
        )),
    }
    let lines: Vec<Line> =
        events.iter().map(|event| (event.event_id, event.kind.clone(), event.time_ms)).collect();
    let others =
        [("the history topic", observations.kept.get(run_id)), ("the node", observations.told.get(run_id))];
    for (name, other) in others {
        if other.is_none() && name == "the node" {
            continue;
        }
        if other != Some(&lines) {
            let differs = other.map(|other| other.iter().zip(&lines).position(|(one, two)| one != two));
            found.push(format!("run {run_id}: {name} has another history: {differs:?} of {}", lines.len()));
        }
    }
}

/// Of which order an event comes: its identity and the kind of event that it must be.
pub fn cause<'a>(kin: &Lineage<'_>, event: &'a Event) -> Option<&'a str> {
    // A program that judges for itself is not in the client log.
    if event.workflow_id.starts_with(program::PREFIX) || !kin.is_new(event) {
        return None;
    }
    match event.kind.as_str() {
        "WorkflowExecutionStarted" if !event.text("continued_run_id").is_empty() => None,
        // What comes of parents and other runs, and of resets, is judged where they are.
        "WorkflowExecutionStarted" if !event.text("parent_run_id").is_empty() => None,
        "WorkflowExecutionSignaled" if !event.text("external_workflow_id").is_empty() => None,
        "WorkflowExecutionTerminated" if event.text("reason") == kinship::BY_PARENT => None,
        "WorkflowExecutionTerminated" if kin.is_replaced(event) => None,
        "WorkflowTaskFailed" if event.text("new_run_id") == event.run_id => Some(event.text("failure")),
        "WorkflowExecutionStarted"
        | "WorkflowExecutionSignaled"
        | "WorkflowExecutionTerminated"
        | "WorkflowTaskCompleted"
        | "ActivityTaskCompleted" => Some(event.text("identity")),
        _comes_by_itself => None,
    }
}

/// The event that an order leaves; none of one that is judged otherwise.
fn effect(deed: &Deed) -> Option<&'static str> {
    Some(match deed {
        Deed::Start => "WorkflowExecutionStarted",
        Deed::Signal { .. } => "WorkflowExecutionSignaled",
        Deed::Terminate => "WorkflowExecutionTerminated",
        Deed::Complete { .. } => "WorkflowTaskCompleted",
        Deed::Return => "ActivityTaskCompleted",
        Deed::Reset { .. } => "WorkflowTaskFailed",
        Deed::Update => return None,
    })
}

/// The numbers of orders that have an effect.
fn effects(kin: &Lineage<'_>, observations: &Observations) -> BTreeSet<usize> {
    let identities = observations.events.iter().filter_map(|event| cause(kin, event));
    let updates = observations.events.iter().filter(|event| event.kind == ACCEPTED);
    let identities = identities.chain(updates.map(|event| event.text("update_id")));
    identities.filter_map(|identity| identity.strip_prefix("call-")?.parse().ok()).collect()
}

/// Acknowledged: exactly once; unknown: at most once; refused: never; and nothing that nobody sent.
fn check_effects(kin: &Lineage<'_>, observations: &Observations, found: &mut Vec<String>) {
    let mut effects: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for event in &observations.events {
        if let Some(identity) = cause(kin, event) {
            *effects.entry((identity, &event.kind, &event.workflow_id)).or_default() += 1;
        }
    }
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    for told in &observations.rejections {
        *refusals.entry(&told.command_id).or_default() += 1;
    }
    for call in &observations.calls {
        let Some(effect) = effect(&call.deed) else { continue };
        let key = (call.identity.as_str(), effect, call.workflow_id.as_str());
        let count = effects.remove(&key).unwrap_or(0);
        let refused = refusals.get(call.identity.as_str()).copied().unwrap_or(0);
        let total = match call.via {
            Via::Grpc => count,
            // What came again may be refused when it has had its effect.
            Via::Record => count.max(refused.min(1)),
        };
        let allowed = match call.fate {
            Fate::Acked if matches!(call.deed, Deed::Complete { refuses: true, .. }) => 0..=1,
            Fate::Acked => 1..=1,
            Fate::Unknown => 0..=1,
            Fate::Refused => 0..=0,
        };
        if !allowed.contains(&total) {
            found.push(format!("{call:?} has {count} effects and {refused} refusals"));
        }
    }
    for ((identity, kind, id), count) in effects {
        found.push(format!("{count} {kind} of {identity:?} in {id}, who sent none"));
    }
}

/// Every record has one reply, and one rejection where the reply says so; and there is no other.
fn check_records(observations: &Observations, found: &mut Vec<String>) {
    let by_place = |told: &[CommandReply]| -> BTreeMap<(i64, i64), Vec<CommandReply>> {
        let mut places: BTreeMap<_, Vec<CommandReply>> = BTreeMap::new();
        told.iter().for_each(|told| places.entry(told.at).or_default().push(told.clone()));
        places
    };
    let (mut replies, mut rejections) = (by_place(&observations.replies), by_place(&observations.rejections));
    for (place, id) in &observations.commands {
        let told = replies.remove(place).unwrap_or_default();
        let refused = rejections.remove(place).unwrap_or_default().len();
        let wanted = told.iter().filter(|told| told.what == "refused").count();
        if told.len() != 1 || told[0].command_id != *id || refused != wanted {
            found
                .push(format!("command {id} at {place:?} has the replies {told:?} and {refused} rejections"));
        }
    }
    for (place, told) in replies.into_iter().chain(rejections) {
        found.push(format!("{told:?}: there is no command at {place:?}"));
    }
}

/// Signals that were sent one after the other stand so.
fn check_order(kin: &Lineage<'_>, observations: &Observations, found: &mut Vec<String>) {
    let places: BTreeMap<&str, i64> = observations
        .events
        .iter()
        .filter(|event| event.kind == "WorkflowExecutionSignaled" && kin.is_new(event))
        .map(|event| (event.text("identity"), event.offset))
        .collect();
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for call in &observations.calls {
        let is_ordered = matches!(call.deed, Deed::Signal { in_order: true, .. });
        let Some(place) = places.get(call.identity.as_str()).filter(|_| is_ordered) else { continue };
        let before = last.insert(&call.workflow_id, *place);
        if before.is_some_and(|before| before > *place) {
            found.push(format!("{call:?} stands before the one that was sent before it"));
        }
    }
}

/// A completed task left the events of its commands, all of them and only once.
fn check_commands(observations: &Observations, runs: &BTreeMap<&str, Vec<&Event>>, found: &mut Vec<String>) {
    let sent: BTreeMap<&str, usize> = observations
        .calls
        .iter()
        .filter_map(|call| match &call.deed {
            Deed::Complete { events, .. } => Some((call.identity.as_str(), *events)),
            _no_task => None,
        })
        .collect();
    for (run_id, events) in runs {
        let tasks = events.iter().filter(|event| event.kind == "WorkflowTaskCompleted");
        for task in tasks.filter(|event| !event.workflow_id.starts_with(program::PREFIX)) {
            let left = events
                .iter()
                .filter(|event| event.number("workflow_task_completed_event_id") == Some(task.event_id))
                .count();
            let wanted = sent.get(task.text("identity")).copied();
            if wanted != Some(left) {
                found.push(format!(
                    "run {run_id}: the task completed by event {} left {left} events, not {wanted:?}",
                    task.event_id
                ));
            }
        }
    }
}
