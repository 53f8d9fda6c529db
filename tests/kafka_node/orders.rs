//! The workflow of these tests: an order with an activity, a timer and a signal; its worker, and what it leaves.

use anyhow::ensure;
use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, TaskQueue as EngineQueue};
use everlog_engine::command::{self, CommandAttributes};
use everlog_engine::machine::{activity, close, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, PollActivityTaskQueueRequest, PollActivityTaskQueueResponse,
    RespondActivityTaskCompletedRequest,
};
use everlog_tests::caller::{Caller, QUEUE, execution, queue};
use everlog_tests::patience;
use prost::Message;

/// What every finished order here has once.
pub fn check_history(id: &str, history: &[HistoryEvent]) -> anyhow::Result<()> {
    for once in [
        EventType::WorkflowExecutionStarted,
        EventType::ActivityTaskScheduled,
        EventType::ActivityTaskCompleted,
        EventType::TimerStarted,
        EventType::TimerFired,
        EventType::WorkflowExecutionSignaled,
        EventType::WorkflowExecutionCompleted,
    ] {
        let count = count(history, once);
        ensure!(count == 1, "{id}: {once:?} is there {count} times");
    }
    let in_order = (1..).zip(history).all(|(number, event)| event.event_id == number);
    ensure!(in_order, "{id}: its events are numbered without a gap");
    Ok(())
}

pub fn count(history: &[HistoryEvent], kind: EventType) -> usize {
    history.iter().filter(|event| event.event_type == kind as i32).count()
}

/// What the workflow does next: an activity and a timer, and its end when both and a signal are there.
fn next(history: &[HistoryEvent]) -> Vec<command::Command> {
    let has = |kind| count(history, kind) > 0;
    if !has(EventType::TimerStarted) {
        let schedule = activity::Schedule {
            activity_id: "charge".into(),
            activity_type: Some(ActivityType { name: "Charge".into() }),
            task_queue: Some(EngineQueue::normal(QUEUE)),
            start_to_close_timeout: Some(Span::from_ms(5_000)),
            ..activity::Schedule::default()
        };
        let start_to_fire_timeout = Some(Span::from_ms(300));
        let timer = timer::Start { timer_id: "pause".into(), start_to_fire_timeout };
        return vec![
            order(CommandAttributes::ScheduleActivity(Box::new(schedule))),
            order(CommandAttributes::StartTimer(timer)),
        ];
    }
    let all = [EventType::ActivityTaskCompleted, EventType::TimerFired, EventType::WorkflowExecutionSignaled];
    let complete = || order(CommandAttributes::CompleteWorkflow(close::Complete { result: None }));
    all.into_iter().all(has).then(complete).into_iter().collect()
}

fn order(order: CommandAttributes) -> command::Command {
    command::Command { command_type: order.command_type(), order: Some(order), ..Default::default() }
}

/// History and describe of each.
pub async fn read_all(client: &Caller, ids: &[String]) -> anyhow::Result<Vec<(Vec<HistoryEvent>, Bytes)>> {
    let mut all = Vec::new();
    for id in ids {
        let describe =
            DescribeWorkflowExecutionRequest { namespace: "default".into(), execution: execution(id) };
        // Histories come behind ownership: until one is there it is unavailable.
        let deadline = patience::deadline();
        let history = loop {
            match client.history(id).await {
                Err(_later) if !deadline.is_over() => tokio::task::yield_now().await,
                told => break told?,
            }
        };
        all.push((history, client.send(describe).await?));
    }
    Ok(all)
}

/// Works until every history has an event of a kind; what a worker was told of a lost task is no error.
pub async fn work_until(client: &Caller, what: &str, ids: &[String], kind: EventType) -> anyhow::Result<()> {
    let done = async {
        let mut looks = patience::looks();
        for id in ids {
            while count(&client.history(id).await.unwrap_or_default(), kind) == 0 {
                looks.tick().await;
            }
        }
        anyhow::Ok(())
    };
    tokio::select! {
        done = patience::answer(what, done) => done?,
        never = async { loop { work(client).await.ok(); tokio::task::yield_now().await } } => never,
        never = async { loop { labour(client).await.ok(); tokio::task::yield_now().await } } => never,
    }
}

async fn work(client: &Caller) -> anyhow::Result<()> {
    let Some(task) = client.take().await? else { return Ok(()) };
    let commands = next(&task.history);
    Ok(client.complete(task, commands).await?)
}

async fn labour(client: &Caller) -> anyhow::Result<()> {
    let poll = PollActivityTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue(),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = PollActivityTaskQueueResponse::decode(client.send(poll).await?)?;
    if task.task_token.is_empty() {
        return Ok(());
    }
    let answer = RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        namespace: "default".into(),
        ..Default::default()
    };
    client.send(answer).await?;
    Ok(())
}
