//! The workflows: the commands of each, from its history alone and the updates that came with its task.
//!
//! A Workflow Id says which program it has, and its number what differs from one to the other.

use everlog_engine::api_types::{
    ActivityType, Execution, ParentClosePolicy, RetryPolicy, TaskQueue, WorkflowType,
};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{activity, child, close, external_workflow, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::full::temporal::api::failure::v1::Failure;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::protocol::Message;
use prost::Message as _;

use crate::account;
use crate::client::{QUEUE, TASK_TIMEOUT_S, TYPE};

/// Signals, named `go-0` and so on, that a workflow waits for.
pub const SIGNALS: usize = 2;
/// How long an attempt of an activity may be lost with a worker or a node: longer than a hand-over, so that nothing which
/// reached nobody looks like one.
const ATTEMPT_MS: i64 = 20_000;
/// Attempts that a repair gets.
pub const ATTEMPTS_MAX: i32 = 4;
/// How long the next attempt waits.
const AGAIN_AFTER_MS: i64 = 50;
/// Children of a house; it waits for the end of all but the last.
const ROOMS: i64 = 4;
/// The signal by which a house tells a room to begin.
pub const PAINT: &str = "paint";

/// What a worker says when it completes a task.
#[derive(Default)]
pub struct Said {
    pub commands: Vec<Command>,
    pub messages: Vec<Message>,
}

impl Said {
    pub fn of(commands: Vec<Command>) -> Self {
        Self { commands, messages: Vec::new() }
    }

    /// How many events its commands leave that name the task; what a message says does not.
    pub fn events(&self) -> usize {
        let is_message =
            |command: &&Command| matches!(command.order, Some(CommandAttributes::ProtocolMessage(_)) | None);
        self.commands.len() - self.commands.iter().filter(is_message).count()
    }

    /// Its run ends with it.
    pub fn closes(&self) -> bool {
        let is_last = |command: &Command| {
            matches!(
                command.order,
                Some(
                    CommandAttributes::CompleteWorkflow(_)
                        | CommandAttributes::FailWorkflow(_)
                        | CommandAttributes::ContinueAsNew(_)
                )
            )
        };
        self.commands.iter().any(is_last)
    }

    /// It does nothing but refuse updates.
    pub fn refuses(&self) -> bool {
        self.commands.is_empty() && !self.messages.is_empty()
    }
}

/// A history as programs look at it.
#[derive(Clone, Copy)]
pub struct Past<'a>(pub &'a [HistoryEvent]);

impl<'a> Past<'a> {
    pub fn has(self, kind: EventType) -> bool {
        self.0.iter().any(|event| event.event_type == kind as i32)
    }

    pub fn attributes(self) -> impl Iterator<Item = (i64, &'a Attributes)> {
        self.0.iter().filter_map(|event| Some((event.event_id, event.attributes.as_ref()?)))
    }

    pub fn is_signaled(self, name: &str) -> bool {
        self.attributes().any(|(_, attributes)| match attributes {
            Attributes::WorkflowExecutionSignaledEventAttributes(signal) => signal.signal_name == name,
            _ => false,
        })
    }

    /// Which attempt of its chain a run is, counted from 1.
    fn attempt(self) -> i32 {
        let attempt = self.attributes().find_map(|(_, attributes)| match attributes {
            Attributes::WorkflowExecutionStartedEventAttributes(started) => Some(started.attempt),
            _ => None,
        });
        attempt.unwrap_or(1).max(1)
    }

    fn is_continued(self) -> bool {
        self.attributes().any(|(_, attributes)| match attributes {
            Attributes::WorkflowExecutionStartedEventAttributes(started) => {
                !started.continued_execution_run_id.is_empty()
            }
            _ => false,
        })
    }

    /// The last result of its chain; 0 = there is none.
    fn last_result(self) -> i64 {
        let last = self.attributes().find_map(|(_, attributes)| match attributes {
            Attributes::WorkflowExecutionStartedEventAttributes(started) => {
                number_in(started.last_completion_result.as_ref()?)
            }
            _ => None,
        });
        last.unwrap_or(0)
    }
}

/// What the workflow does next.
pub fn next(id: &str, history: &[HistoryEvent], messages: Vec<Message>) -> Said {
    let past = Past(history);
    match id.split('-').next() {
        Some("account") => account::next(past, messages),
        Some("house") => Said::of(house(number(id), past)),
        Some("room") => Said::of(room(number(id), past)),
        Some("repair") => Said::of(repair(number(id), past)),
        Some("round") => Said::of(vec![complete(past.last_result() + 1)]),
        _most => Said::of(order(id, past)),
    }
}

/// An activity and a timer; when both and all signals are there, the end, or for a chain another run, which is short.
fn order(id: &str, past: Past<'_>) -> Vec<Command> {
    let is_second = past.is_continued();
    if !past.has(EventType::TimerStarted) {
        let mut commands = vec![pause(number(id))];
        if !is_second {
            commands.push(schedule());
        }
        return commands;
    }
    if is_second {
        return past.has(EventType::TimerFired).then(end).into_iter().collect();
    }
    let signals = (0..SIGNALS).all(|number| past.is_signaled(&format!("go-{number}")));
    if !signals || !past.has(EventType::TimerFired) || !past.has(EventType::ActivityTaskCompleted) {
        return Vec::new();
    }
    if id.starts_with("chain") {
        return vec![command(CommandAttributes::ContinueAsNew(Box::default()))];
    }
    vec![end()]
}

/// How often a repair fails; one that fails too often does so for good.
pub fn fails(id: &str) -> i32 {
    i32::try_from(number(id) % 5).unwrap_or(0)
}

/// Fails at first, as often as its number says.
fn repair(number: i64, past: Past<'_>) -> Vec<Command> {
    let attempt = past.attempt();
    if attempt == 1 && !past.has(EventType::ActivityTaskScheduled) {
        return vec![schedule()];
    }
    if attempt == 1 && !past.has(EventType::ActivityTaskCompleted) {
        return Vec::new();
    }
    let fails = i64::from(attempt) <= number % 5;
    vec![if fails { fail(&format!("attempt {attempt}")) } else { complete(i64::from(attempt)) }]
}

/// The children of a house.
pub fn rooms(house: &str) -> Vec<String> {
    let number = number(house);
    (0..ROOMS).map(|room| format!("room-{}", number * 10 + room)).collect()
}

/// Its house waits for its end.
pub fn is_awaited(room: &str) -> bool {
    number(room) % 10 < ROOMS - 1
}

/// Begins only when it is painted, and does what its number says: rests, falls down, is tried again, or belongs to nobody.
/// The last of a house is bound, and ends with it, or free.
fn room(number: i64, past: Past<'_>) -> Vec<Command> {
    let is_painted = past.is_signaled(PAINT) || past.attempt() > 1;
    match number % 10 {
        3 if is_bound(number) => Vec::new(),
        3 => rest(number, past),
        _waits if !is_painted => Vec::new(),
        0 => rest(number, past),
        1 if !past.has(EventType::ActivityTaskScheduled) => vec![schedule()],
        1 if !past.has(EventType::ActivityTaskCompleted) => Vec::new(),
        1 => vec![fail("it fell down")],
        _again if past.attempt() == 1 => vec![fail("not yet")],
        _again => vec![complete(number)],
    }
}

/// Its house ends it.
fn is_bound(number: i64) -> bool {
    number / 10 % 2 == 0
}

fn rest(number: i64, past: Past<'_>) -> Vec<Command> {
    if !past.has(EventType::TimerStarted) {
        return vec![pause(number)];
    }
    past.has(EventType::TimerFired).then(|| complete(number)).into_iter().collect()
}

/// Starts its rooms all at once, paints each when it is there, and ends when it has heard of those it waits for.
fn house(number: i64, past: Past<'_>) -> Vec<Command> {
    if !past.has(EventType::StartChildWorkflowExecutionInitiated) {
        return rooms(&format!("house-{number}")).iter().map(|id| start_room(id)).collect();
    }
    let (mut there, mut painted, mut answered, mut heard) = (Vec::new(), Vec::new(), 0, 0);
    for (_, attributes) in past.attributes() {
        match attributes {
            Attributes::ChildWorkflowExecutionStartedEventAttributes(started) => {
                there.push(started.workflow_execution.clone().unwrap_or_default().workflow_id);
            }
            Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(letter) => {
                painted.push(letter.workflow_execution.clone().unwrap_or_default().workflow_id);
            }
            Attributes::ExternalWorkflowExecutionSignaledEventAttributes(_)
            | Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(_) => answered += 1,
            Attributes::ChildWorkflowExecutionCompletedEventAttributes(ended) => {
                heard += usize::from(ended.workflow_execution.as_ref().is_some_and(is_awaited_run));
            }
            Attributes::ChildWorkflowExecutionFailedEventAttributes(ended) => {
                heard += usize::from(ended.workflow_execution.as_ref().is_some_and(is_awaited_run));
            }
            _other => {}
        }
    }
    let rooms = ROOMS as usize;
    if answered == rooms && heard == rooms - 1 {
        return vec![complete(number)];
    }
    there.iter().filter(|id| !painted.contains(id)).map(|id| paint(id)).collect()
}

fn is_awaited_run(
    execution: &everlog_temporal_api::full::temporal::api::common::v1::WorkflowExecution,
) -> bool {
    is_awaited(&execution.workflow_id)
}

fn start_room(id: &str) -> Command {
    let number = number(id);
    let once_more = RetryPolicy {
        initial_interval: Some(Span::from_ms(AGAIN_AFTER_MS)),
        maximum_attempts: 2,
        ..RetryPolicy::default()
    };
    let policy = match number % 10 {
        3 if !is_bound(number) => ParentClosePolicy::Abandon,
        _most => ParentClosePolicy::Terminate,
    };
    command(CommandAttributes::StartChild(Box::new(child::Start {
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: TYPE.into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        workflow_task_timeout: Some(Span::from_ms(TASK_TIMEOUT_S * 1_000)),
        parent_close_policy: policy.into(),
        retry_policy: (number % 10 == 2).then_some(once_more),
        ..child::Start::default()
    })))
}

fn paint(id: &str) -> Command {
    command(CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        execution: Some(Execution { workflow_id: id.into(), run_id: String::new() }),
        signal_name: PAINT.into(),
        child_workflow_only: true,
        ..external_workflow::SignalOther::default()
    })))
}

/// The number at the end of a Workflow Id: what differs from one to the other.
pub fn number(id: &str) -> i64 {
    id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

pub fn command(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

fn end() -> Command {
    command(CommandAttributes::CompleteWorkflow(close::Complete { result: None }))
}

pub fn complete(result: i64) -> Command {
    let result = Some(payloads(&result.to_string()).encode_to_vec().into());
    command(CommandAttributes::CompleteWorkflow(close::Complete { result }))
}

fn fail(message: &str) -> Command {
    let failure = Failure { message: message.into(), ..Failure::default() };
    command(CommandAttributes::FailWorkflow(close::Fail { failure: Some(failure.encode_to_vec().into()) }))
}

/// A value as a list of one.
pub fn payloads(value: &str) -> Payloads {
    let data = value.to_owned().into_bytes().into();
    Payloads { payloads: vec![Payload { data, ..Payload::default() }] }
}

/// The first value of a list.
pub fn text_in(payloads: &Payloads) -> Option<String> {
    Some(String::from_utf8_lossy(&payloads.payloads.first()?.data).into_owned())
}

fn number_in(payloads: &Payloads) -> Option<i64> {
    text_in(payloads)?.parse().ok()
}

/// A timer that is the shorter or longer with the number.
fn pause(number: i64) -> Command {
    start_timer("pause", 50 + number * 137 % 1_500)
}

pub fn start_timer(timer_id: &str, span_ms: i64) -> Command {
    let start_to_fire_timeout = Some(Span::from_ms(span_ms));
    command(CommandAttributes::StartTimer(timer::Start { timer_id: timer_id.into(), start_to_fire_timeout }))
}

pub fn schedule() -> Command {
    command(CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        start_to_close_timeout: Some(Span::from_ms(ATTEMPT_MS)),
        ..activity::Schedule::default()
    })))
}
