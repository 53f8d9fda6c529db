//! A node without brokers: what it reports and how it continues when they are back.

use std::collections::BTreeMap;

use anyhow::ensure;
use everlog_tests::kafka::{Cluster, Version};
use everlog_tests::patience;
use everlog_tests::process::Process;
use serde_json::Value;

use crate::TestLog;
use crate::nodes::node;

/// What is tried once a second, in s, has failed often by then.
const SILENT_S: u64 = 40;

/// Waits until the page says for how long no broker has answered, and that this is so long; what it says, in s.
async fn silence(node: &Process, brokers: &str, at_least_s: u64) -> anyhow::Result<u64> {
    let begin = format!("not ready: no broker of {brokers} answers, for ");
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let page = node.page("/health/ready").await?;
        let said = page.strip_prefix(&begin).and_then(|rest| rest.split(' ').next()?.parse().ok());
        if let Some(said_s) = said.filter(|said_s| *said_s >= at_least_s) {
            return Ok(said_s);
        }
        ensure!(!deadline.is_over(), "{page}{}", node.said()?);
    }
}

/// How often a node has said the same of the same.
fn often_told(said: &str) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for line in said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = line["message"].as_str().unwrap_or_default();
        // What librdkafka says has addresses and times in it, behind what it is about.
        let text = match line["facility"].as_str() {
            Some(facility) => facility,
            None => text.split('(').next().unwrap_or_default(),
        };
        let of = ["level", "client", "partition", "group"].map(|field| line[field].to_string());
        *told.entry(format!("{text} {}", of.join(" "))).or_default() += 1;
    }
    told
}

async fn is_ready(node: &Process) -> anyhow::Result<()> {
    let is_ready = async || node.page("/health/ready").await.is_ok_and(|page| page.starts_with("ready\n"));
    Ok(patience::until("the node is ready", is_ready).await?)
}

/// A node may be ready for a moment after its brokers are gone, and not until somebody writes.
#[tokio::test]
async fn while_no_broker_answers_no_node_is_ready_and_each_says_why() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 1)?;
    let test_log = TestLog::new(cluster.bootstrap())?;
    let (mut one, mut two) = (node(&test_log, "one", &[])?, node(&test_log, "two", &[])?);
    for node in [&mut one, &mut two] {
        node.ready().await?;
        is_ready(node).await?;
    }
    cluster.kill(1)?;
    for node in [&one, &two] {
        silence(node, cluster.bootstrap(), 12).await?;
        ensure!(node.page("/health/live").await? == "alive\n", "it goes on when they come back");
    }
    let silent_s = silence(&one, cluster.bootstrap(), SILENT_S).await?;
    for node in [&one, &two] {
        let told = often_told(&node.said()?);
        // It was silent for a while before that counted, and a minute may have ended since.
        ensure!(told.values().all(|lines| *lines <= 2 + silent_s / 60), "{told:#?}");
    }
    cluster.restart(1)?;
    for node in [&one, &two] {
        is_ready(node).await?;
        let is_told = async || node.said().is_ok_and(|said| said.contains("the brokers answer again"));
        patience::until("it says that they answer again", is_told).await?;
    }
    Ok(())
}

/// Nobody waits for so long, in ms: whatever waits for an answer of brokers waits longer than a test.
const FOR_EVER: &str = "900000";
const PATIENT: [&str; 3] = [
    "EVERLOG_KAFKA__CALL_TIMEOUT_MS",
    "EVERLOG_KAFKA__APPEND_TIMEOUT_MS",
    "EVERLOG_KAFKA__TRANSACTION_TIMEOUT_MS",
];

/// Orchestrators kill what takes longer than 30 s; whatever has been acknowledged is in the journal.
#[tokio::test]
async fn while_no_broker_answers_a_node_that_is_asked_to_end_waits_for_none() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 1)?;
    let test_log = TestLog::new(cluster.bootstrap())?;
    let patient = PATIENT.map(|name| (name, FOR_EVER.to_owned()));
    let (mut one, mut two) = (node(&test_log, "one", &patient)?, node(&test_log, "two", &patient)?);
    for node in [&mut one, &mut two] {
        let client = node.ready().await?;
        is_ready(node).await?;
        client.start(&format!("at-{}", node.address())).await?;
    }
    cluster.kill(1)?;
    for node in [&mut one, &mut two] {
        silence(node, cluster.bootstrap(), 10).await?;
        node.stop().await?;
    }
    Ok(())
}
