//! The workers: they bring each workflow on, as its program says, and their activities return.

use std::collections::BTreeMap;
use std::time::Duration;

use everlog_temporal_api::enums::QueryResultType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RespondActivityTaskCompletedRequest, RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
};
use prost::Message;
use tokio::task::JoinSet;

use crate::client::{Client, NAMESPACE, queue};
use crate::ledger::Deed;
use crate::{register, workflows};

const AGAIN_AFTER: Duration = Duration::from_millis(100);

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
    let said = workflows::next(&id, &history, task.messages);
    let deed = Deed::Complete { events: said.events(), refuses: said.refuses() };
    let make = |identity| RespondWorkflowTaskCompletedRequest {
        task_token: task.task_token,
        commands: said.commands,
        messages: said.messages,
        query_results: answers(task.queries.into_keys(), &history),
        identity,
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    // As SDKs do: the task would be its own until it is over, and after a take-over that is ten seconds later.
    client.insist(&id, deed, make).await?;
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
