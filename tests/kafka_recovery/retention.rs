//! Closed runs whose retention is over: they are gone from what a node answers, from its rows, and from every topic
//! that a node is restored from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use everlog_temporal_api::workflowservice::TerminateWorkflowExecutionRequest;
use everlog_tests::caller::{Caller, execution};
use everlog_tests::kafka::Cluster;
use everlog_tests::patience;
use rdkafka::Message;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tonic::Code;

use crate::client::histories;
use crate::test_log::TestLog;

const RETENTION: Duration = Duration::from_secs(4);
const SIGNALS: usize = 40;
/// What a node's rows are made from.
const TOPICS: [&str; 3] = ["changelog", "history", "timers"];

/// The keys of a compacted topic whose last record is not a tombstone, by partition.
type Keys = BTreeSet<(i32, Vec<u8>)>;

fn keys(test_log: &TestLog, topic: &str) -> anyhow::Result<Keys> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &test_log.options.bootstrap_servers).set("group.id", "retention");
    config.set("enable.auto.commit", "false").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create()?;
    let name = format!("{}{topic}", test_log.options.prefix);
    let mut open: BTreeSet<i32> = (0..i32::try_from(test_log.options.partitions)?).collect();
    let mut assigned = TopicPartitionList::new();
    for partition in &open {
        assigned.add_partition_offset(&name, *partition, Offset::Beginning)?;
    }
    consumer.assign(&assigned)?;
    let (mut last, deadline) = (BTreeMap::new(), patience::deadline());
    while !open.is_empty() {
        ensure!(!deadline.is_over(), "{name} was not read in time");
        match consumer.poll(deadline.left()) {
            Some(Ok(record)) => {
                let key = (record.partition(), record.key().unwrap_or_default().to_vec());
                last.insert(key, record.payload().is_some());
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) => bail!("{name}: {error}"),
            None => {}
        }
    }
    Ok(last.into_iter().filter_map(|(key, is_there)| is_there.then_some(key)).collect())
}

fn all_keys(test_log: &TestLog) -> anyhow::Result<Vec<Keys>> {
    tokio::task::block_in_place(|| TOPICS.iter().map(|topic| keys(test_log, topic)).collect())
}

async fn terminate(client: &Caller, id: &str) -> anyhow::Result<()> {
    let request = TerminateWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: execution(id),
        ..Default::default()
    };
    Ok(client.send(request).await.map(drop)?)
}

/// Waits until none of the runs is found.
async fn until_gone(client: &Caller, ids: &[String]) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    for id in ids {
        loop {
            match client.history(id).await {
                Err(status) if status.code() == Code::NotFound => break,
                Ok(_) => {}
                Err(status) => ensure!(status.code() == Code::Unavailable, "{id}: {status}"),
            }
            ensure!(!deadline.is_over(), "{id} is still there");
            looks.tick().await;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_run_is_gone_from_all_topics_when_its_retention_is_over() -> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    test_log.settings = vec![
        ("EVERLOG_GATEWAY__RETENTION_MIN_MS", "1".into()),
        ("EVERLOG_GATEWAY__DEFAULT_RETENTION_MS", RETENTION.as_millis().to_string()),
    ];
    let (mut node, client) = test_log.start("one").await?;
    let before = all_keys(&test_log)?;
    let ids: Vec<_> = (0..12).map(|number| format!("over-{number}")).collect();
    for id in ids.iter().chain(&["open".to_string()]) {
        client.start(id).await?;
        for number in 0..SIGNALS {
            client.signal(id, &number.to_string()).await?;
        }
    }
    let closing = Instant::now();
    for id in &ids {
        terminate(&client, id).await?;
    }
    // Not a moment before it is over, as long as there is time to look.
    let found = histories(&client, &ids).await;
    let is_over = closing.elapsed() >= RETENTION;
    if !is_over {
        ensure!(found?.iter().all(|events| events.len() > SIGNALS), "all is there until then");
    }
    until_gone(&client, &ids).await?;
    ensure!(closing.elapsed() >= RETENTION, "gone after {:?}", closing.elapsed());
    let deadline = patience::deadline();
    loop {
        let now = all_keys(&test_log)?;
        let left: Vec<_> =
            now.iter().zip(&before).map(|(now, before)| now.difference(before).count()).collect();
        let of_ended = |keys: &Keys| keys.iter().any(|(_, key)| key.windows(5).any(|part| part == b"over-"));
        if !now.iter().any(of_ended) {
            break;
        }
        ensure!(!deadline.is_over(), "keys of closed runs stay, by topic: {left:?}");
    }
    // What is restored from the topics alone has the open one and nothing else.
    node.kill()?;
    std::fs::remove_dir_all(test_log.data())?;
    let (_node, client) = test_log.start("one").await?;
    until_gone(&client, &ids).await?;
    ensure!(histories(&client, &["open".into()]).await?[0].len() > SIGNALS, "the open run is there");
    client.start(&ids[0]).await?;
    Ok(())
}
