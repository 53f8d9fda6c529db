//! Certificates change while clients are connected.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse, StartWorkflowExecutionRequest,
};
use everlog_tests::{page, patience, raw};
use prost::Message;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::transport::Channel;

use crate::client::certificate;
use crate::secured::Secured;

const CONNECTIONS: usize = 20;
const POLLS: usize = 1_000;
/// Starts at once.
const STARTS: usize = 50;

fn queue(number: usize) -> Option<TaskQueue> {
    Some(TaskQueue { name: format!("queue-{number}"), ..Default::default() })
}

async fn poll(channel: Channel, number: usize) -> Result<Bytes, Status> {
    let poll = PollWorkflowTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue(number),
        identity: "worker".into(),
        ..Default::default()
    };
    raw::send(&channel, poll).await
}

async fn start(channel: &Channel, number: usize) -> Result<(), Status> {
    let start = StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: format!("order-{number}"),
        workflow_type: Some(WorkflowType { name: "order".into() }),
        task_queue: queue(number),
        request_id: format!("start {number}"),
        ..Default::default()
    };
    raw::send(channel, start).await.map(drop)
}

#[tokio::test]
async fn no_poll_ends_when_certificates_change_and_new_connections_see_the_new_one() -> anyhow::Result<()> {
    let secured = Secured::start().await?;
    let (calls, face, metrics) = (secured.calls()?, secured.face()?, secured.server.metrics_address());
    let mut polls = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = calls.channel().await?;
        for number in (connection..POLLS).step_by(CONNECTIONS) {
            polls.spawn(poll(channel.clone(), number));
        }
    }
    let pending = async || page::metric(metrics, "service_pending_requests").await.ok().flatten();
    let all_wait = async || pending().await == Some(POLLS as f64);
    patience::until("all polls wait", all_wait).await?;
    for _ in 0..3 {
        let next = certificate(&secured.rotate()?.certificate)?.to_vec();
        let is_shown = async || calls.shown().await.is_ok_and(|shown| shown == next);
        patience::until("the new certificate is shown", is_shown).await?;
        ensure!(face.shown().await? == next, "both listeners have the same");
    }
    std::fs::write(secured.path().join("server.key"), "half a k")?;
    let next = calls.channel().await.context("the former certificate stays in use")?;
    ensure!(polls.try_join_next().is_none(), "a poll has ended");
    ensure!(pending().await == Some(POLLS as f64), "a poll has ended");
    for first in (0..POLLS).step_by(STARTS) {
        let mut starts = JoinSet::new();
        for number in first..first + STARTS {
            let channel = next.clone();
            starts.spawn(async move { start(&channel, number).await });
        }
        starts.join_all().await.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    let answers = patience::answer("a task for each poll", polls.join_all()).await?;
    for answer in answers {
        let task = PollWorkflowTaskQueueResponse::decode(answer?)?;
        ensure!(!task.task_token.is_empty(), "the poll has ended without a task");
    }
    Ok(())
}

#[tokio::test]
async fn metrics_stay_in_plain_text_and_tell_of_certificates() -> anyhow::Result<()> {
    let secured = Secured::start().await?;
    let metrics = secured.server.metrics_address();
    let left = page::metric(metrics, "everlog_certificate_expires_seconds").await?.context("it has one")?;
    ensure!(left > 14.0 * 86_400.0, "{left}");
    let (status, told) = page::get(secured.server.http_address(), "/subjects").await?;
    ensure!(status == 400 && told.contains("this port speaks TLS"), "{status}: {told}");
    let is_counted = async || {
        let counted = page::metric(metrics, "everlog_tls_handshakes_failed_total").await;
        counted.is_ok_and(|count| count.is_some_and(|count| count >= 1.0))
    };
    patience::until("the failure is counted", is_counted).await?;
    let told = secured.face()?.get("/subjects").await?;
    ensure!(told.starts_with("HTTP/1.1 200 "), "{told}");
    Ok(())
}
