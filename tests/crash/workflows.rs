//! The workflows: the commands of each, from its history alone, and how each must end.

use everlog_engine::api_types::{ActivityType, RetryPolicy, TaskQueue};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{activity, close, marker, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use prost::Message;

pub const QUEUE: &str = "crash";
/// How long a workflow task or an attempt of an activity may be lost with a node.
pub const LOST_MS: i64 = 1_000;

/// A workflow of its own type: its id is its type too.
pub struct Workflow {
    pub id: &'static str,
    pub runs: usize,
    pub end: EventType,
}

/// All of them.
pub const WORKFLOWS: [Workflow; 6] = [
    Workflow { id: "order", runs: 1, end: EventType::WorkflowExecutionCompleted },
    Workflow { id: "chain", runs: 2, end: EventType::WorkflowExecutionCompleted },
    Workflow { id: "patient", runs: 1, end: EventType::WorkflowExecutionCanceled },
    Workflow { id: "doomed", runs: 1, end: EventType::WorkflowExecutionTerminated },
    Workflow { id: "greeted", runs: 1, end: EventType::WorkflowExecutionFailed },
    Workflow { id: "flaky", runs: 1, end: EventType::WorkflowExecutionCompleted },
];

/// What a worker says to a task.
pub enum Answer {
    Commands(Vec<Command>),
    /// The worker cannot go on.
    Failure,
}

/// What the history says so far.
struct Past<'a>(&'a [HistoryEvent]);

impl Past<'_> {
    fn has(&self, event_type: EventType) -> bool {
        self.count(event_type) > 0
    }

    fn count(&self, event_type: EventType) -> usize {
        self.0.iter().filter(|event| event.event_type == event_type as i32).count()
    }

    fn started(&self, pick: impl Fn(&str, &Payloads) -> bool) -> bool {
        match self.0.first().and_then(|event| event.attributes.as_ref()) {
            Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
                let input = started.input.clone().unwrap_or_default();
                pick(&started.continued_execution_run_id, &input)
            }
            _ => false,
        }
    }
}

/// What a workflow does next.
pub fn next(id: &str, attempt: i32, events: &[HistoryEvent]) -> Answer {
    let past = Past(events);
    let is_new = !past.has(EventType::TimerStarted) && !past.has(EventType::MarkerRecorded);
    let commands = match id {
        "order" if is_new => vec![mark("priced"), start_timer("pause", 1)],
        "order" if past.has(EventType::TimerFired) && !past.has(EventType::ActivityTaskScheduled) => {
            vec![charge()]
        }
        "order"
            if past.has(EventType::ActivityTaskCompleted)
                && past.count(EventType::WorkflowExecutionSignaled) == 2 =>
        {
            vec![complete()]
        }
        "chain" if past.started(|continued, _input| continued.is_empty()) => chain_begins(&past),
        "chain" => chain_ends(&past, is_new),
        "patient" if past.has(EventType::WorkflowExecutionCancelRequested) => {
            let stop = past.has(EventType::TimerStarted).then(|| stop_timer("long"));
            stop.into_iter()
                .chain([command(CommandAttributes::CancelWorkflow(close::Cancel { details: None }))])
                .collect()
        }
        "patient" | "doomed" if is_new => vec![start_timer("long", 3_600_000)],
        "greeted" if past.count(EventType::WorkflowExecutionSignaled) == 2 => {
            let failure = activity_failure("greeted twice").into();
            vec![
                mark("goodbye"),
                command(CommandAttributes::FailWorkflow(close::Fail { failure: Some(failure) })),
            ]
        }
        "greeted" if is_new => vec![mark("hello")],
        "flaky" if attempt == 1 => return Answer::Failure,
        "flaky" => vec![complete()],
        _waits => Vec::new(),
    };
    Answer::Commands(commands)
}

/// A signal that comes early is handed on, so that none is needed twice.
fn chain_begins(past: &Past<'_>) -> Vec<Command> {
    if !past.has(EventType::TimerStarted) {
        return vec![start_timer("step", 1)];
    }
    if !past.has(EventType::TimerFired) {
        return Vec::new();
    }
    let input = past.has(EventType::WorkflowExecutionSignaled).then(|| payloads("signaled"));
    let next = close::ContinueAsNew { input: input.map(Into::into), ..close::ContinueAsNew::default() };
    vec![command(CommandAttributes::ContinueAsNew(Box::new(next)))]
}

fn chain_ends(past: &Past<'_>, is_new: bool) -> Vec<Command> {
    let is_told = past.started(|_continued, input| !input.payloads.is_empty());
    let begin = is_new.then(|| mark("second"));
    let end = (is_told || past.has(EventType::WorkflowExecutionSignaled)).then(complete);
    begin.into_iter().chain(end).collect()
}

/// The event that a command leaves.
pub fn event_of(command: &Command) -> EventType {
    match &command.order {
        Some(CommandAttributes::ScheduleActivity(_)) => EventType::ActivityTaskScheduled,
        Some(CommandAttributes::StartTimer(_)) => EventType::TimerStarted,
        Some(CommandAttributes::CancelTimer(_)) => EventType::TimerCanceled,
        Some(CommandAttributes::RecordMarker(_)) => EventType::MarkerRecorded,
        Some(CommandAttributes::CompleteWorkflow(_)) => EventType::WorkflowExecutionCompleted,
        Some(CommandAttributes::FailWorkflow(_)) => EventType::WorkflowExecutionFailed,
        Some(CommandAttributes::CancelWorkflow(_)) => EventType::WorkflowExecutionCanceled,
        Some(CommandAttributes::ContinueAsNew(_)) => EventType::WorkflowExecutionContinuedAsNew,
        other => unreachable!("no workflow here asks for {other:?}"),
    }
}

pub fn payloads(text: &str) -> Vec<u8> {
    let data = text.to_owned().into_bytes().into();
    Payloads { payloads: vec![Payload { data, ..Payload::default() }] }.encode_to_vec()
}

/// The text that was made into encoded payloads.
pub fn text_of(payloads: Option<&[u8]>) -> String {
    let payloads = Payloads::decode(payloads.unwrap_or_default()).unwrap_or_default();
    payloads.payloads.first().map(|first| String::from_utf8_lossy(&first.data).into()).unwrap_or_default()
}

/// An encoded failure that may be tried again.
pub fn activity_failure(message: &str) -> Vec<u8> {
    use everlog_temporal_api::full::temporal::api::failure::v1::{
        ApplicationFailureInfo, Failure, failure::FailureInfo,
    };
    let info = FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default());
    Failure { message: message.into(), failure_info: Some(info), ..Failure::default() }.encode_to_vec()
}

fn command(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

fn mark(name: &str) -> Command {
    command(CommandAttributes::RecordMarker(Box::new(marker::Record {
        marker_name: name.into(),
        ..marker::Record::default()
    })))
}

fn start_timer(id: &str, ms: i64) -> Command {
    let start_to_fire_timeout = Some(Span::from_ms(ms));
    command(CommandAttributes::StartTimer(timer::Start { timer_id: id.into(), start_to_fire_timeout }))
}

fn stop_timer(id: &str) -> Command {
    command(CommandAttributes::CancelTimer(timer::Cancel { timer_id: id.into() }))
}

fn complete() -> Command {
    command(CommandAttributes::CompleteWorkflow(close::Complete { result: Some(payloads("done").into()) }))
}

fn charge() -> Command {
    let retry_policy = RetryPolicy {
        initial_interval: Some(Span::from_ms(1)),
        backoff_coefficient: 1.0,
        ..RetryPolicy::default()
    };
    command(CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        start_to_close_timeout: Some(Span::from_ms(LOST_MS)),
        retry_policy: Some(retry_policy),
        ..activity::Schedule::default()
    })))
}
