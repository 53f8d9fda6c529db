//! What a server has given out before a kill is good after it: tokens of tasks and of pages.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_engine::command::{Command, Order};
use everlog_engine::machine::close;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse,
};
use everlog_tests::caller::{Caller, execution};
use everlog_tests::server::Server;
use prost::Message;

const ID: &str = "order-1";
const SIGNALS: usize = 6;
const PAGE_EVENTS: i32 = 3;

/// A page of the history, and the token of the next one.
async fn page(caller: &Caller, next_page_token: Bytes) -> anyhow::Result<(Vec<HistoryEvent>, Bytes)> {
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: "default".into(),
        execution: execution(ID),
        maximum_page_size: PAGE_EVENTS,
        next_page_token,
        ..GetWorkflowExecutionHistoryRequest::default()
    };
    let page = GetWorkflowExecutionHistoryResponse::decode(caller.send(request).await?)?;
    Ok((History::decode(page.history.unwrap_or_default())?.events, page.next_page_token))
}

#[tokio::test]
async fn a_history_is_read_on_and_a_task_completed_after_a_kill_with_the_tokens_of_before()
-> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    caller.start_patient(ID).await?;
    for number in 0..SIGNALS {
        caller.signal(ID, &number.to_string()).await?;
    }
    let task = caller.take().await?.context("a task waits")?;
    let whole = caller.history(ID).await?;
    let (mut read, mut token) = page(&caller, Bytes::new()).await?;
    ensure!(!read.is_empty() && read.len() < whole.len() && !token.is_empty(), "it has a second page");

    server.crash().await?;
    let caller = Caller(server.connect().await?);
    while !token.is_empty() {
        let (more, next) = page(&caller, token).await?;
        read.extend(more);
        token = next;
    }
    ensure!(read == whole, "{read:?}");

    let order = Order::CompleteWorkflow(close::Complete::default());
    let complete = Command { command_type: order.command_type(), order: Some(order), ..Command::default() };
    caller.complete(task, vec![complete]).await?;
    let ends = caller.history(ID).await?.split_off(whole.len());
    let types: Vec<_> = ends.iter().map(HistoryEvent::event_type).collect();
    ensure!(types == [EventType::WorkflowTaskCompleted, EventType::WorkflowExecutionCompleted], "{types:?}");
    Ok(())
}
