//! The workers: what each workflow does next, from its history alone, and activities that return.

use std::collections::BTreeMap;
use std::time::Duration;

use everlog_engine::command::{Command, Order};
use everlog_engine::machine::{activity, close, timer};
use everlog_engine::time::Duration as Span;
use everlog_engine::vocabulary::{ActivityType, TaskQueue};
use everlog_temporal_api::enums::{EventType, QueryResultType};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RespondActivityTaskCompletedRequest, RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
};
use prost::Message;
use tokio::task::JoinSet;

use crate::client::{Client, NAMESPACE, QUEUE, queue};
use crate::ledger::Deed;
use crate::register;

/// Signals, named `go-0` and so on, that a workflow waits for.
pub const SIGNALS: usize = 2;
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How long an attempt of an activity may be lost with a worker or a node.
const ATTEMPT_MS: i64 = 3_000;

/// Workers, so many of each kind; they end when this is dropped.
pub fn employ(client: &Client, each: usize) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    for _ in 0..each {
        let own = client.clone();
        workers.spawn(async move {
            let mut pause = tokio::time::interval(AGAIN_AFTER);
            // What a worker is told of a task that it lost is no error, and a node that is away comes back.
            loop {
                if work(&own).await.is_err() {
                    pause.tick().await;
                }
            }
        });
        let own = client.clone();
        workers.spawn(async move {
            let mut pause = tokio::time::interval(AGAIN_AFTER);
            loop {
                if labour(&own).await.is_err() {
                    pause.tick().await;
                }
            }
        });
    }
    workers
}

async fn work(client: &Client) -> anyhow::Result<()> {
    let poll = PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: queue(),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = PollWorkflowTaskQueueResponse::decode(client.ask(&poll).await?)?;
    if task.task_token.is_empty() {
        return Ok(());
    }
    let id = task.workflow_execution.map(|execution| execution.workflow_id).unwrap_or_default();
    let history = History::decode(task.history.unwrap_or_default())?.events;
    if task.query.is_some() {
        let answer = RespondQueryTaskCompletedRequest {
            task_token: task.task_token,
            completed_type: QueryResultType::Answered.into(),
            query_result: Some(register::answer(&history)),
            namespace: NAMESPACE.into(),
            ..Default::default()
        };
        client.ask(&answer).await?;
        return Ok(());
    }
    let commands = next(&id, &history);
    let deed = Deed::Complete { commands: commands.len() };
    let make = |identity| RespondWorkflowTaskCompletedRequest {
        task_token: task.task_token,
        commands,
        query_results: answers(task.queries.into_keys(), &history),
        identity,
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    client.once(&id, deed, make).await?;
    Ok(())
}

/// Answers to the queries that came with a task.
fn answers(
    ids: impl Iterator<Item = String>,
    history: &[HistoryEvent],
) -> BTreeMap<String, WorkflowQueryResult> {
    let result_type = QueryResultType::Answered.into();
    let answer = Some(register::answer(history));
    let result = WorkflowQueryResult { result_type, answer, ..Default::default() };
    ids.map(|id| (id, result.clone())).collect()
}

async fn labour(client: &Client) -> anyhow::Result<()> {
    let poll = PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: queue(),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = PollActivityTaskQueueResponse::decode(client.ask(&poll).await?)?;
    if task.task_token.is_empty() {
        return Ok(());
    }
    let id = task.workflow_execution.map(|execution| execution.workflow_id).unwrap_or_default();
    let make = |identity| RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        identity,
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    client.once(&id, Deed::Return, make).await?;
    Ok(())
}

/// An activity and a timer; when both and all signals are there, the end, or for a chain another run, which is short.
fn next(id: &str, history: &[HistoryEvent]) -> Vec<Command> {
    let has = |kind| history.iter().any(|event| event.event_type == kind as i32);
    let is_second = matches!(
        history.first().and_then(|event| event.attributes.as_ref()),
        Some(Attributes::WorkflowExecutionStartedEventAttributes(started))
            if !started.continued_execution_run_id.is_empty()
    );
    if !has(EventType::TimerStarted) {
        let mut commands = vec![start_timer(number(id))];
        if !is_second {
            commands.push(schedule());
        }
        return commands;
    }
    if is_second {
        return has(EventType::TimerFired).then(complete).into_iter().collect();
    }
    let signals = (0..SIGNALS).all(|number| history.iter().any(|event| is_signal(event, number)));
    if !signals || !has(EventType::TimerFired) || !has(EventType::ActivityTaskCompleted) {
        return Vec::new();
    }
    let end =
        if id.starts_with("chain") { Order::ContinueAsNew(Box::default()) } else { return vec![complete()] };
    vec![command(end)]
}

fn is_signal(event: &HistoryEvent, number: usize) -> bool {
    match &event.attributes {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => {
            signal.signal_name == format!("go-{number}")
        }
        _ => false,
    }
}

/// The number at the end of a Workflow Id: what differs from one to the other.
fn number(id: &str) -> i64 {
    id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn command(order: Order) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

fn complete() -> Command {
    command(Order::CompleteWorkflow(close::Complete { result: None }))
}

fn start_timer(number: i64) -> Command {
    let start_to_fire_timeout = Some(Span::from_ms(50 + number * 137 % 1_500));
    command(Order::StartTimer(timer::Start { timer_id: "pause".into(), start_to_fire_timeout }))
}

fn schedule() -> Command {
    command(Order::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        start_to_close_timeout: Some(Span::from_ms(ATTEMPT_MS)),
        ..activity::Schedule::default()
    })))
}
