//! Several nodes: authentication between them, takeovers, and tasks whose delivery to another node's worker fails.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse, StartWorkflowExecutionRequest,
};
use everlog_tests::caller::Caller;
use everlog_tests::certificates::{Authority, Certified};
use everlog_tests::kafka::Cluster;
use everlog_tests::process::Process;
use everlog_tests::{patience, raw};
use prost::Message;
use rdkafka::config::ClientConfig;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use serde_json::Value;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

use crate::orders::{check_history, count, work_until};
use crate::{TestLog, status};

/// A workflow task that nobody gives back would be handed out again after this, in s: nobody waits for so long.
const TASK_TIMEOUT_S: i64 = 3_600;
const QUEUES: usize = 9;
/// What a node has brought of rows.
const ROWS: &str = "everlog_restore_rows_total";

type Variables = Vec<(&'static str, String)>;

/// The settings of a node that shows this certificate.
fn certified(dir: &Path, name: &str, shown: &Certified, authority: &Authority) -> anyhow::Result<Variables> {
    let put = |kind: &str, text: &str| -> anyhow::Result<String> {
        let path: PathBuf = dir.join(format!("{name}.{kind}"));
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    Ok(vec![
        ("EVERLOG_CLUSTER__CERTIFICATE_FILE", put("certificate", &shown.certificate)?),
        ("EVERLOG_CLUSTER__KEY_FILE", put("key", &shown.key)?),
        ("EVERLOG_CLUSTER__CA_FILE", put("ca", &authority.certificate())?),
    ])
}

pub fn node(test_log: &TestLog, name: &str, more: &[(&'static str, String)]) -> anyhow::Result<Process> {
    let variables = [&test_log.variables[..], more].concat();
    Process::start(test_log.bootstrap(), name, &test_log.dir.path().join(name), &variables)
}

/// Waits until a node says why it is not among the others, on its page and in its log.
async fn told(stranger: &mut Process, why: &str) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let page = stranger.page("/health/ready").await.unwrap_or_default();
        let said = stranger.said()?;
        let is_on_page = page.contains("not in the assignment") && page.contains("; one: ");
        if is_on_page && page.contains(why) && said.contains("do not trust each other") && said.contains(why)
        {
            return Ok(());
        }
        ensure!(stranger.is_running(), "it ended: {said}");
        ensure!(!deadline.is_over(), "{page}\n{said}");
    }
}

/// What a node says late, of a group that another one has taken meanwhile, must not keep the others from balancing.
#[tokio::test]
async fn a_late_word_on_who_has_a_group_is_put_right() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let apart = [("EVERLOG_KAFKA__GROUP_PARTITIONS", "1".to_owned())];
    let mut first = node(&test_log, "one", &apart)?;
    first.ready().await?;
    let producer: ThreadedProducer<_> = ClientConfig::new()
        .set("bootstrap.servers", test_log.bootstrap())
        .create_with_context(DefaultProducerContext)?;
    let (topic, row) = (format!("{}control", test_log.prefix()), r#"{"node":"nobody","serves":true}"#);
    let record = BaseRecord::to(&topic).partition(0).key("owner/0").payload(row);
    producer.send(record).map_err(|(error, _)| error)?;
    tokio::task::spawn_blocking(move || producer.flush(patience::most())).await??;
    let mut second = node(&test_log, "two", &apart)?;
    second.ready().await?;
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    while !second.said()?.contains("partition group taken over") {
        looks.tick().await;
        ensure!(!deadline.is_over(), "nothing is moved: {}\n{}", first.said()?, second.said()?);
    }
    Ok(())
}

#[tokio::test]
async fn nodes_with_certificates_serve_together_and_a_stranger_takes_nothing() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let good = |name| certified(test_log.dir.path(), name, &authority.certify("127.0.0.1"), &authority);
    let mut first = node(&test_log, "one", &good("one")?)?;
    let client = first.ready().await?;
    let ids: Vec<String> = (0..8).map(|number| format!("known-{number}")).collect();
    for id in &ids {
        client.start(id).await?;
    }
    work_until(&client, "they wait", &ids, EventType::TimerStarted).await?;

    let foreign = other.certify("127.0.0.1");
    let mut foreign =
        node(&test_log, "foreign", &certified(test_log.dir.path(), "foreign", &foreign, &authority)?)?;
    told(&mut foreign, "TLS: it does not take this node").await?;
    let mut plain = node(&test_log, "plain", &[])?;
    told(&mut plain, "(cluster.certificate_file)").await?;

    let mut second = node(&test_log, "two", &good("two")?)?;
    let client = second.ready().await?;
    for id in &ids {
        client.signal(id, "go").await?;
    }
    work_until(&client, "they end", &ids, EventType::WorkflowExecutionCompleted).await?;
    for id in &ids {
        check_history(id, &client.history(id).await?)?;
    }
    let variables = [&test_log.variables[..], &good("command")?].concat();
    let wanted = [("one ", "serves"), ("two ", "serves"), ("plain ", "does not trust")];
    let deadline = patience::deadline();
    loop {
        let shown = status(&variables, &[])?;
        let is_so = |(name, state): &(&str, &str)| {
            shown.lines().any(|line| line.starts_with(name) && line.ends_with(state))
        };
        // A node serves calls before it is placed.
        if wanted.iter().all(is_so) {
            break;
        }
        ensure!(!deadline.is_over(), "{shown}");
    }
    for node in [&mut first, &mut second, &mut foreign, &mut plain] {
        ensure!(node.is_running(), "{}", node.said()?);
    }
    Ok(())
}

#[tokio::test]
async fn a_node_with_another_secret_takes_nothing() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let secret = |name: &str| -> anyhow::Result<Variables> {
        let path = test_log.dir.path().join(name);
        std::fs::write(&path, format!("the-secret-of-{name}"))?;
        Ok(vec![("EVERLOG_CLUSTER__SECRET_FILE", path.display().to_string())])
    };
    let mut first = node(&test_log, "one", &secret("all-of-them")?)?;
    let client = first.ready().await?;
    for (name, stranger) in [("stranger", secret("somebody")?), ("without", Variables::new())] {
        let mut stranger = node(&test_log, name, &stranger)?;
        told(&mut stranger, "cluster.secret_file").await?;
    }
    client.start("still-served").await?;
    ensure!(!client.history("still-served").await?.is_empty());
    Ok(())
}

/// Nodes without a secret would take anybody: then whoever has one, and refuses them, would not be told why it has nothing.
#[tokio::test]
async fn a_node_with_a_secret_among_nodes_without_one_is_told_why_it_has_nothing() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let mut first = node(&test_log, "one", &[])?;
    first.ready().await?;
    let path = test_log.dir.path().join("secret");
    std::fs::write(&path, "the-secret-of-somebody")?;
    let secret = [("EVERLOG_CLUSTER__SECRET_FILE", path.display().to_string())];
    let mut stranger = node(&test_log, "stranger", &secret)?;
    told(&mut stranger, "cluster.secret_file").await
}

/// Waits until a node that was just started says that it follows the rows of all partitions: it has brought what was committed
/// before.
async fn follows_all(test_log: &TestLog, name: &str) -> anyhow::Result<()> {
    let follows = async || {
        let shown = status(&test_log.variables, &["--json"]).unwrap_or_default();
        let mut lines = shown.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let node = lines.find(|line| line["node"] == name && line["partition"].is_null());
        node.is_some_and(|node| node["follows"].as_array().is_some_and(|follows| follows.len() == 4))
    };
    Ok(patience::until("all partitions are followed", follows).await?)
}

#[tokio::test]
async fn who_has_followed_the_rows_of_a_dead_node_restores_nothing() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let replicas = [("EVERLOG_CLUSTER__REPLICAS", "1".to_owned())];
    let mut first = node(&test_log, "one", &replicas)?;
    let client = first.ready().await?;
    let mut second = node(&test_log, "two", &replicas)?;
    second.ready().await?;
    let ids: Vec<String> = (0..20).map(|number| format!("followed-{number}")).collect();
    for id in &ids {
        client.start(id).await?;
    }
    // Until somebody signals them they change no more.
    work_until(&client, "their activities are done", &ids, EventType::ActivityTaskCompleted).await?;
    work_until(&client, "their timers have fired", &ids, EventType::TimerFired).await?;
    let are_followed = async || second.metric(ROWS, "").await.is_ok_and(|rows| rows >= ids.len() as f64);
    patience::until("their rows are followed", are_followed).await?;
    ensure!(second.metric("everlog_partition_serving", "").await? == 0.0, "it is the other's");
    let lag = "everlog_partition_lag_records";
    let is_committed = async || first.metric(lag, "").await.is_ok_and(|records| records == 0.0);
    patience::until("all that was done is committed", is_committed).await?;
    // Of a node that has just begun to follow it is told that it has all of them.
    second.stop().await?;
    second = node(&test_log, "two", &replicas)?;
    let other = second.ready().await?;
    follows_all(&test_log, "two").await?;
    let before = second.metric(ROWS, "").await?;

    first.kill()?;
    for id in &ids {
        let deadline = patience::deadline();
        while let Err(status) = other.signal(id, "go").await {
            ensure!(!deadline.is_over(), "{status}: {}", second.said()?);
        }
    }
    let restored = second.metric(ROWS, "").await? - before;
    // A run has several, and one whose worker has just gone may have changed once more.
    ensure!(restored < ids.len() as f64, "{restored} rows were left to restore, after {before}");
    work_until(&other, "they end", &ids, EventType::WorkflowExecutionCompleted).await?;
    for id in &ids {
        check_history(id, &other.history(id).await?)?;
    }
    Ok(())
}

fn queue(number: usize) -> Option<TaskQueue> {
    Some(TaskQueue { name: format!("queue-{number}"), kind: 1, ..Default::default() })
}

fn poll(number: usize) -> PollWorkflowTaskQueueRequest {
    PollWorkflowTaskQueueRequest {
        namespace: "default".into(),
        task_queue: queue(number),
        identity: "worker".into(),
        ..Default::default()
    }
}

/// The settings of nodes whose workers wait for long, and may keep what they get for long.
fn patient() -> Variables {
    vec![
        ("EVERLOG_GATEWAY__POLL_WAIT_MS", "60000".into()),
        ("EVERLOG_LIMITS__TASK_TIMEOUT_MAX_MS", (TASK_TIMEOUT_S * 1_000).to_string()),
    ]
}

/// A workflow for each queue, whose first task is on its way to a worker that is connected, and takes no byte of it.
async fn on_the_way(prefix: &str, client: &Caller, deaf: &Caller) -> anyhow::Result<JoinSet<()>> {
    let mut polls = JoinSet::new();
    for number in 0..QUEUES {
        let start = StartWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_id: format!("{prefix}-{number}"),
            workflow_type: Some(WorkflowType { name: "waits".into() }),
            task_queue: queue(number),
            workflow_task_timeout: Some(prost_types::Duration { seconds: TASK_TIMEOUT_S, nanos: 0 }),
            request_id: format!("start {prefix}-{number}"),
            ..Default::default()
        };
        client.send(start).await?;
        let deaf = deaf.clone();
        polls.spawn(async move {
            while raw::send(&deaf.0, poll(number)).await.is_err() {
                tokio::task::yield_now().await;
            }
        });
    }
    for number in 0..QUEUES {
        let id = format!("{prefix}-{number}");
        let is_taken = async || {
            let history = client.history(&id).await.unwrap_or_default();
            count(&history, EventType::WorkflowTaskStarted) > 0
        };
        patience::until(&format!("{id} is on its way"), is_taken).await?;
    }
    Ok(polls)
}

/// Every one of them gets to this worker, before its timeout.
async fn again(prefix: &str, client: &Caller) -> anyhow::Result<()> {
    let deadline = patience::deadline();
    for number in 0..QUEUES {
        loop {
            ensure!(!deadline.is_over(), "{prefix}-{number} is lost until its timeout");
            let Ok(answer) = client.send(poll(number)).await else { continue };
            let task = PollWorkflowTaskQueueResponse::decode(answer)?;
            if task.workflow_execution.is_some_and(|run| run.workflow_id == format!("{prefix}-{number}")) {
                break;
            }
        }
    }
    Ok(())
}

/// A worker at a node that reads nothing of what it is sent.
async fn deaf(node: &Process) -> anyhow::Result<Caller> {
    let endpoint = Endpoint::from_shared(format!("http://{}", node.address()))?;
    Ok(Caller(endpoint.initial_stream_window_size(0).connect().await?))
}

#[tokio::test]
async fn a_task_that_reaches_no_worker_is_handed_out_again_before_its_timeout() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    // One group: the first has it, and the two others have polls only.
    let mut first = node(&test_log, "one", &patient())?;
    let client = first.ready().await?;
    let mut second = node(&test_log, "two", &patient())?;
    second.ready().await?;
    let mut third = node(&test_log, "three", &patient())?;
    let other = third.ready().await?;
    let worker = deaf(&second).await.context("a worker at the second")?;
    drop((on_the_way("gone", &client, &worker).await?, worker));
    again("gone", &other).await?;
    let worker = deaf(&second).await?;
    let polls = on_the_way("killed", &client, &worker).await?;
    second.kill()?;
    drop(polls);
    again("killed", &other).await?;
    ensure!(first.is_running() && third.is_running());
    Ok(())
}

/// The owner is gone, and with it the homes of some of the queues: whoever has brought the polls knows that nobody has got
/// what they claimed.
#[tokio::test]
async fn a_task_on_its_way_is_handed_out_again_when_its_owner_dies() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let mut first = node(&test_log, "one", &patient())?;
    let client = first.ready().await?;
    let mut second = node(&test_log, "two", &patient())?;
    second.ready().await?;
    let mut third = node(&test_log, "three", &patient())?;
    let other = third.ready().await?;
    let worker = deaf(&second).await?;
    let polls = on_the_way("owned", &client, &worker).await?;
    first.kill()?;
    drop((polls, worker));
    again("owned", &other).await?;
    ensure!(second.is_running() && third.is_running());
    Ok(())
}
