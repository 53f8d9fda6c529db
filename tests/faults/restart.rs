//! What a server has given out before a kill is good after it: tokens of tasks and of pages; and it ends when it is asked to.

use std::path::Path;
use std::process::{Command as Spawned, Stdio};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::close;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse, QueryWorkflowRequest,
};
use everlog_tests::caller::{Caller, execution};
use everlog_tests::page::get;
use everlog_tests::patience;
use everlog_tests::server::{Server, binary, free_address};
use prost::Message;
use tonic::{Code, Status};

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

    let order = CommandAttributes::CompleteWorkflow(close::Complete::default());
    let complete = Command { command_type: order.command_type(), order: Some(order), ..Command::default() };
    caller.complete(task, vec![complete]).await?;
    let ends = caller.history(ID).await?.split_off(whole.len());
    let types: Vec<_> = ends.iter().map(HistoryEvent::event_type).collect();
    ensure!(types == [EventType::WorkflowTaskCompleted, EventType::WorkflowExecutionCompleted], "{types:?}");
    Ok(())
}

/// What a query gets that nobody answers.
async fn unanswered_query(caller: &Caller) -> anyhow::Result<Status> {
    let query = WorkflowQuery { query_type: "state".into(), ..WorkflowQuery::default() };
    let request = QueryWorkflowRequest {
        namespace: "default".into(),
        execution: execution(ID),
        query: Some(query),
        ..QueryWorkflowRequest::default()
    };
    caller.send(request).await.err().context("nobody answers")
}

/// A poll of before the kill is not remembered, so the queue has had none for 20 s.
#[tokio::test]
async fn a_query_that_nobody_polls_for_says_so() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[("EVERLOG_GATEWAY__QUERY_WAIT_MS", "1000")]).await?;
    let caller = Caller(server.connect().await?);
    caller.start_patient(ID).await?;
    let task = caller.take().await?.context("a task waits")?;
    caller.complete(task, Vec::new()).await?;
    let (_the_query, taken) = tokio::join!(caller.take(), unanswered_query(&caller));
    let taken = taken?;
    ensure!(taken.code() == Code::DeadlineExceeded, "a worker has it: {taken}");

    server.crash().await?;
    let caller = Caller(server.connect().await?);
    let unpolled = unanswered_query(&caller).await?;
    ensure!(unpolled.code() == Code::FailedPrecondition, "{unpolled}");
    ensure!(unpolled.message().starts_with("no poller seen for task queue recently"), "{unpolled}");

    caller.signal(ID, "news").await?;
    let waits_for_its_task = unanswered_query(&caller).await?;
    ensure!(waits_for_its_task.code() == Code::DeadlineExceeded, "{waits_for_its_task}");
    Ok(())
}

#[tokio::test]
async fn a_node_that_waits_for_its_brokers_at_its_start_ends_when_it_is_asked_to() -> anyhow::Result<()> {
    let (dir, metrics) = (tempfile::tempdir()?, free_address()?);
    let mut command = Spawned::new(binary()?);
    command.arg("serve").stdin(Stdio::null()).stderr(Stdio::null()).envs([
        ("EVERLOG_SERVER__DATA_DIR", dir.path().display().to_string()),
        ("EVERLOG_SERVER__ADDRESS", free_address()?.to_string()),
        ("EVERLOG_SERVER__METRICS_ADDRESS", metrics.to_string()),
        ("EVERLOG_HTTP__ADDRESS", free_address()?.to_string()),
        ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1".into()),
        // Longer than any test.
        ("EVERLOG_KAFKA__CALL_TIMEOUT_MS", "900000".into()),
    ]);
    let mut node = command.spawn()?;
    let ended = async {
        let serves = async || get(metrics, "/health/live").await.is_ok();
        patience::until("its pages are served", serves).await?;
        let asked = Spawned::new("kill").arg("-TERM").arg(node.id().to_string()).status()?;
        ensure!(asked.success(), "kill -TERM");
        let mut code = None;
        let ends = async || {
            code = node.try_wait().ok().flatten();
            code.is_some()
        };
        patience::until("it ends", ends).await?;
        anyhow::Ok(code.and_then(|status| status.code()))
    };
    let ended = ended.await;
    // It is gone already where all is well.
    node.kill().ok();
    node.wait()?;
    ensure!(ended? == Some(0), "it was asked to end, and has");
    Ok(())
}

/// It would start empty there, and the workflows seem lost.
#[test]
fn a_node_is_refused_in_the_directory_of_one_whose_log_is_elsewhere() -> anyhow::Result<()> {
    let refused = |data: &Path, more: &[&str]| -> anyhow::Result<String> {
        let mut command = Spawned::new(binary()?);
        command.arg("dev").arg("--data-dir").arg(data).args(more);
        command.args(["--address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0"]);
        command.args(["--http-address", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut node = command.stderr(Stdio::piped()).spawn()?;
        let ended = patience::until_blocking("it ends", || matches!(node.try_wait(), Ok(Some(_))));
        // It is gone already where all is well.
        node.kill().ok();
        let output = node.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ended.with_context(|| said.clone())?;
        ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
        Ok(said)
    };
    let dir = tempfile::tempdir()?;
    let (on_kafka, embedded) = (dir.path().join("on-kafka"), dir.path().join("embedded"));
    for folder in [on_kafka.join("rows"), embedded.join("db")] {
        std::fs::create_dir_all(folder)?;
    }
    let said = refused(&on_kafka, &[])?;
    ensure!(said.contains("start it with --kafka"), "{said}");
    // Nobody is asked there: the directory comes first.
    let said = refused(&embedded, &["--kafka-bootstrap", "127.0.0.1:1"])?;
    ensure!(said.contains("start it without --kafka"), "{said}");
    Ok(())
}
