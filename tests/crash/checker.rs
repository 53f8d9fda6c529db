//! The independent checker: it compares the client's log with the histories.

use std::collections::{BTreeMap, BTreeSet};

use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::workflowservice::{
    SignalWithStartWorkflowExecutionResponse, StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
};
use everlog_tests::fate::Fate;
use everlog_tests::raw::path_of;
use prost::Message;

use crate::client_log::{Attempt, Call, ClientLog, Note};
use crate::workflows::WORKFLOWS;

/// What the server calls itself in events.
const SERVER: &str = "history-service";

/// A run, as it is read at the end.
#[derive(Clone, Debug)]
pub struct Run {
    pub workflow_id: String,
    pub run_id: String,
    pub events: Vec<HistoryEvent>,
}

/// Everything that is wrong.
pub fn check(client_log: &ClientLog, runs: &[Run]) -> Vec<String> {
    let mut found = Vec::new();
    for run in runs {
        check_history(run, &mut found);
        check_pairs(run, &mut found);
    }
    check_chains(runs, &mut found);
    check_effects(client_log, runs, &mut found);
    check_starts(client_log, runs, &mut found);
    check_commands(client_log, runs, &mut found);
    check_tasks(client_log, runs, &mut found);
    check_attempts(client_log, &mut found);
    for query in &client_log.queries {
        let seen: Vec<_> = query.seen.split_whitespace().collect();
        for name in query.acked.iter().filter(|name| !seen.contains(&name.as_str())) {
            found.push(format!("a query to {} misses the signal {name}", query.workflow_id));
        }
    }
    for (id, events) in &client_log.reads {
        if !runs.iter().any(|run| run.workflow_id == *id && run.events.starts_with(lasting(events))) {
            let types: Vec<_> = events.iter().map(Typed::event_type).collect();
            found.push(format!("{id}: what was read is not there any more: {types:?}"));
        }
    }
    found
}

/// Without the events of a later attempt of a workflow task at the end: they are shown, and written when it completes.
fn lasting(events: &[HistoryEvent]) -> &[HistoryEvent] {
    let shown = events.iter().rev().take_while(|event| {
        matches!(event.event_type(), EventType::WorkflowTaskScheduled | EventType::WorkflowTaskStarted)
    });
    let kept = events.len() - shown.count();
    let is_later = events[..kept].last().is_some_and(|event| {
        matches!(event.event_type(), EventType::WorkflowTaskFailed | EventType::WorkflowTaskTimedOut)
    });
    if is_later { &events[..kept] } else { events }
}

/// The run id of what a run continues, and that of the first one.
pub fn origin(events: &[HistoryEvent]) -> (String, String) {
    match events.first().and_then(|event| event.attributes.as_ref()) {
        Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
            (started.continued_execution_run_id.clone(), started.first_execution_run_id.clone())
        }
        _ => Default::default(),
    }
}

pub fn signal_name(event: &HistoryEvent) -> Option<String> {
    match event.attributes.as_ref()? {
        Attributes::WorkflowExecutionSignaledEventAttributes(signaled) => Some(signaled.signal_name.clone()),
        _ => None,
    }
}

pub fn is_closed(events: &[HistoryEvent]) -> bool {
    events.last().is_some_and(is_closing)
}

fn is_closing(event: &HistoryEvent) -> bool {
    matches!(
        event.event_type(),
        EventType::WorkflowExecutionCompleted
            | EventType::WorkflowExecutionFailed
            | EventType::WorkflowExecutionTimedOut
            | EventType::WorkflowExecutionCanceled
            | EventType::WorkflowExecutionTerminated
            | EventType::WorkflowExecutionContinuedAsNew
    )
}

/// An event's type as this crate's enum names it.
trait Typed {
    fn event_type(&self) -> EventType;
}

impl Typed for HistoryEvent {
    fn event_type(&self) -> EventType {
        EventType::try_from(self.event_type).unwrap_or_default()
    }
}

/// Numbers without a gap, one beginning and one end.
fn check_history(run: &Run, found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("{} {}: {what}", run.workflow_id, run.run_id));
    for (event, number) in run.events.iter().zip(1..) {
        if event.event_id != number {
            wrong(format!("event {} stands at place {number}", event.event_id));
        }
        if (event.event_type() == EventType::WorkflowExecutionStarted) != (number == 1) {
            wrong(format!("event {number} is {:?}", event.event_type()));
        }
        if is_closing(event) && event.event_id != run.events.len() as i64 {
            wrong(format!("{:?} is not its last event", event.event_type()));
        }
    }
    if !is_closed(&run.events) {
        wrong(format!("it never ended, after {} events", run.events.len()));
    }
}

/// What an event answers: the number of the event before it, its type, and if only one may answer that.
fn answered(event: &HistoryEvent) -> Vec<(i64, EventType)> {
    use Attributes as A;
    use EventType as E;
    let Some(attributes) = &event.attributes else { return Vec::new() };
    match attributes {
        A::WorkflowTaskStartedEventAttributes(a) => vec![(a.scheduled_event_id, E::WorkflowTaskScheduled)],
        A::WorkflowTaskCompletedEventAttributes(a) => vec![(a.started_event_id, E::WorkflowTaskStarted)],
        A::WorkflowTaskFailedEventAttributes(a) if a.started_event_id == 0 => {
            vec![(a.scheduled_event_id, E::WorkflowTaskScheduled)]
        }
        A::WorkflowTaskFailedEventAttributes(a) => vec![(a.started_event_id, E::WorkflowTaskStarted)],
        A::WorkflowTaskTimedOutEventAttributes(a) => vec![(a.started_event_id, E::WorkflowTaskStarted)],
        A::ActivityTaskStartedEventAttributes(a) => vec![(a.scheduled_event_id, E::ActivityTaskScheduled)],
        A::ActivityTaskCompletedEventAttributes(a) => vec![(a.started_event_id, E::ActivityTaskStarted)],
        A::TimerFiredEventAttributes(a) => vec![(a.started_event_id, E::TimerStarted)],
        A::TimerCanceledEventAttributes(a) => vec![(a.started_event_id, E::TimerStarted)],
        _ => Vec::new(),
    }
}

/// Times of a history may go back, since an event that came during a task stands behind it with its own time.
fn time_ms(event: &HistoryEvent) -> i64 {
    event.event_time.map_or(0, |time| time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000)
}

/// The least time between an event and the one that it answers.
fn span_ms(target: &HistoryEvent, event: &HistoryEvent) -> i64 {
    match &target.attributes {
        Some(Attributes::TimerStartedEventAttributes(timer))
            if event.event_type() == EventType::TimerFired =>
        {
            let span = timer.start_to_fire_timeout.unwrap_or_default();
            span.seconds * 1_000 + i64::from(span.nanos) / 1_000_000
        }
        _ => 0,
    }
}

/// Nothing is answered twice, and nothing that is not there. What is open when a run is completed has been answered.
fn check_pairs(run: &Run, found: &mut Vec<String>) {
    let mut answers = BTreeSet::new();
    for event in &run.events {
        for (number, wanted) in answered(event) {
            let target = usize::try_from(number - 1).ok().and_then(|place| run.events.get(place));
            if target.is_none_or(|target| target.event_type() != wanted || number >= event.event_id) {
                found.push(format!("{}: event {} answers no {wanted:?}", run.workflow_id, event.event_id));
            }
            if target.is_some_and(|target| time_ms(event) < time_ms(target) + span_ms(target, event)) {
                found.push(format!("{}: event {} comes too early", run.workflow_id, event.event_id));
            }
            if !answers.insert(number) {
                found.push(format!("{}: event {number} is answered twice", run.workflow_id));
            }
        }
    }
}

/// As many runs as there must be, linked with each other, with the end that there must be.
fn check_chains(runs: &[Run], found: &mut Vec<String>) {
    for workflow in &WORKFLOWS {
        let own: Vec<_> = runs.iter().filter(|run| run.workflow_id == workflow.id).collect();
        let mut wrong = |what: String| found.push(format!("{}: {what}", workflow.id));
        if own.len() != workflow.runs {
            wrong(format!("{} runs, not {}", own.len(), workflow.runs));
        }
        let Some((first, last)) = own.first().zip(own.last()) else { continue };
        let end = last.events.last().map(Typed::event_type);
        if end != Some(workflow.end) {
            wrong(format!("it ended with {end:?}"));
        }
        let mut before = "";
        for run in &own {
            if origin(&run.events) != (before.to_owned(), first.run_id.clone()) {
                wrong(format!("run {} comes from {:?}", run.run_id, origin(&run.events)));
            }
            before = &run.run_id;
        }
        for pair in own.windows(2) {
            match pair[0].events.last().and_then(|event| event.attributes.as_ref()) {
                Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(next))
                    if next.new_execution_run_id == pair[1].run_id => {}
                other => wrong(format!("run {} is followed by another: {other:?}", pair[0].run_id)),
            }
        }
    }
}

/// Whose call an event comes of.
fn identity(event: &HistoryEvent) -> Option<&str> {
    use Attributes as A;
    let identity = match event.attributes.as_ref()? {
        A::WorkflowExecutionStartedEventAttributes(a) if a.continued_execution_run_id.is_empty() => {
            &a.identity
        }
        A::WorkflowExecutionSignaledEventAttributes(a) => &a.identity,
        A::WorkflowExecutionCancelRequestedEventAttributes(a) => &a.identity,
        A::WorkflowExecutionTerminatedEventAttributes(a) => &a.identity,
        A::WorkflowTaskStartedEventAttributes(a) => &a.identity,
        A::WorkflowTaskCompletedEventAttributes(a) => &a.identity,
        // The server itself fails a task whose commands it cannot take.
        A::WorkflowTaskFailedEventAttributes(a) if a.identity == SERVER => return None,
        A::WorkflowTaskFailedEventAttributes(a) => &a.identity,
        A::ActivityTaskStartedEventAttributes(a) => &a.identity,
        A::ActivityTaskCompletedEventAttributes(a) => &a.identity,
        _ => return None,
    };
    Some(identity)
}

/// Acknowledged: exactly once; unknown: at most once; refused: never; and nothing that nobody sent.
fn check_effects(client_log: &ClientLog, runs: &[Run], found: &mut Vec<String>) {
    let mut effects: BTreeMap<(&str, EventType), usize> = BTreeMap::new();
    for event in runs.iter().flat_map(|run| &run.events) {
        if let Some(identity) = identity(event) {
            *effects.entry((identity, event.event_type())).or_default() += 1;
        }
    }
    for call in &client_log.calls {
        let mut count = |event_type: Option<EventType>| {
            event_type
                .and_then(|event_type| effects.remove(&(call.identity.as_str(), event_type)))
                .unwrap_or(0)
        };
        let (count, side_count) = (count(call.effect), count(call.side_effect));
        let Call { identity, path, fate, .. } = call;
        let allowed = match (call.effect, fate) {
            (None, _) => 0..=0,
            (Some(_), Fate::Unknown) => 0..=1,
            (Some(_), Fate::Acked) => 1..=1,
            (Some(_), Fate::Refused) => 0..=0,
        };
        if !allowed.contains(&count) || side_count > 1 {
            found.push(format!(
                "{identity} ({path}) is {fate:?} and stands {count} and {side_count} times in histories"
            ));
        }
    }
    for ((identity, event_type), count) in effects {
        found.push(format!("{count} {event_type:?} of {identity:?}, who sent none"));
    }
}

/// An acknowledged start is the run that it was answered with.
fn check_starts(client_log: &ClientLog, runs: &[Run], found: &mut Vec<String>) {
    for call in &client_log.calls {
        let starts = [call.effect, call.side_effect].contains(&Some(EventType::WorkflowExecutionStarted));
        if !starts || call.fate != Fate::Acked {
            continue;
        }
        let answer = call.answer.clone();
        let run_id = if call.path == path_of::<StartWorkflowExecutionRequest>() {
            StartWorkflowExecutionResponse::decode(answer).map(|answer| answer.run_id)
        } else {
            SignalWithStartWorkflowExecutionResponse::decode(answer).map(|answer| answer.run_id)
        };
        if !runs.iter().any(|run| Ok(&run.run_id) == run_id.as_ref()) {
            found.push(format!("{} was answered with {run_id:?}, which is not there", call.identity));
        }
    }
}

/// A completed task left the events of its commands, all of them and only once.
fn check_commands(client_log: &ClientLog, runs: &[Run], found: &mut Vec<String>) {
    let sent: BTreeMap<&str, &Vec<EventType>> = client_log
        .calls
        .iter()
        .filter_map(|call| match &call.note {
            Note::Commands(commands) => Some((call.identity.as_str(), commands)),
            Note::Nothing | Note::Signal(..) | Note::Heartbeat(_) | Note::Failure(_) => None,
        })
        .collect();
    for run in runs {
        for event in run.events.iter().filter(|event| event.event_type() == EventType::WorkflowTaskCompleted)
        {
            let left: Vec<_> = run
                .events
                .iter()
                .filter(|other| cause(other) == Some(event.event_id))
                .map(Typed::event_type)
                .collect();
            let sent = identity(event).and_then(|identity| sent.get(identity));
            if sent.is_none_or(|sent| **sent != left) {
                let (id, number) = (&run.workflow_id, event.event_id);
                found.push(format!("{id}: the task completed by event {number} left {left:?}, not {sent:?}"));
            }
        }
    }
}

/// The completion that an event comes of.
fn cause(event: &HistoryEvent) -> Option<i64> {
    use Attributes as A;
    Some(match event.attributes.as_ref()? {
        A::ActivityTaskScheduledEventAttributes(a) => a.workflow_task_completed_event_id,
        A::TimerStartedEventAttributes(a) => a.workflow_task_completed_event_id,
        A::TimerCanceledEventAttributes(a) => a.workflow_task_completed_event_id,
        A::MarkerRecordedEventAttributes(a) => a.workflow_task_completed_event_id,
        A::WorkflowExecutionCompletedEventAttributes(a) => a.workflow_task_completed_event_id,
        A::WorkflowExecutionFailedEventAttributes(a) => a.workflow_task_completed_event_id,
        A::WorkflowExecutionCanceledEventAttributes(a) => a.workflow_task_completed_event_id,
        A::WorkflowExecutionContinuedAsNewEventAttributes(a) => a.workflow_task_completed_event_id,
        _ => return None,
    })
}

/// A task is handed out once, and what it showed stays.
fn check_tasks(client_log: &ClientLog, runs: &[Run], found: &mut Vec<String>) {
    let mut handed_out = BTreeSet::new();
    for task in &client_log.tasks {
        let named =
            format!("task {} of run {}, attempt {}", task.started_event_id, task.run_id, task.attempt);
        if !handed_out.insert((&task.run_id, task.started_event_id, task.attempt)) {
            found.push(format!("{named} was handed out twice"));
        }
        let Some(run) = runs.iter().find(|run| run.run_id == task.run_id) else {
            found.push(format!("{named}: the run is not there"));
            continue;
        };
        // The last two events of a later attempt are written when it completes.
        let kept = if task.attempt > 1 { task.events.len().saturating_sub(2) } else { task.events.len() };
        if !run.events.starts_with(&task.events[..kept]) {
            found.push(format!("{named}: its history is not that of the run"));
        }
        if task.events.last().map(|event| event.event_id) != Some(task.started_event_id) {
            found.push(format!("{named}: its history has {} events", task.events.len()));
        }
        if task.attempt == 1 && task.events.last().and_then(identity) != Some(task.identity.as_str()) {
            found.push(format!("{named}: it is not that of {}", task.identity));
        }
    }
}

/// Attempts of an activity are handed out once, none after a failure of it was acknowledged, and heartbeats are kept.
fn check_attempts(client_log: &ClientLog, found: &mut Vec<String>) {
    let mut handed_out = BTreeSet::new();
    for attempt in &client_log.attempts {
        let Attempt { run_id, activity_id, attempt: number, details, before } = attempt;
        let named = format!("attempt {number} of {activity_id} of run {run_id}");
        if !handed_out.insert((run_id, activity_id, number)) {
            found.push(format!("{named} was handed out twice"));
        }
        if before.iter().any(|(note, fate)| {
            matches!(note, Note::Failure(failed) if failed >= number) && *fate == Fate::Acked
        }) {
            found.push(format!("{named} was handed out after its failure"));
        }
        let beats = |wanted: &[Fate]| {
            before
                .iter()
                .filter_map(|(note, fate)| match note {
                    Note::Heartbeat(beat) if wanted.contains(fate) => Some(*beat),
                    _ => None,
                })
                .max()
                .unwrap_or(0)
        };
        let told: u64 = details.parse().unwrap_or(0);
        if told < beats(&[Fate::Acked]) || told > beats(&[Fate::Acked, Fate::Unknown]) {
            found.push(format!("{named} was told of heartbeat {details:?}"));
        }
    }
}
