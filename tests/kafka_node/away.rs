//! What nodes say and do while no broker answers.

use anyhow::ensure;
use everlog_tests::kafka::{Cluster, Version};
use everlog_tests::patience;
use everlog_tests::process::Process;

use crate::Place;
use crate::nodes::node;

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

async fn is_ready(node: &Process) -> anyhow::Result<()> {
    let is_ready = async || node.page("/health/ready").await.is_ok_and(|page| page.starts_with("ready\n"));
    Ok(patience::until("the node is ready", is_ready).await?)
}

/// A node may be ready for a moment after its brokers are gone, and not until somebody writes.
#[tokio::test]
async fn while_no_broker_answers_no_node_is_ready_and_each_says_why() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 1)?;
    let place = Place::new(cluster.bootstrap())?;
    let (mut one, mut two) = (node(&place, "one", &[])?, node(&place, "two", &[])?);
    for node in [&mut one, &mut two] {
        node.ready().await?;
        is_ready(node).await?;
    }
    cluster.kill(1)?;
    for node in [&one, &two] {
        silence(node, cluster.bootstrap(), 12).await?;
        ensure!(node.page("/health/live").await? == "alive\n", "it goes on when they come back");
    }
    cluster.restart(1)?;
    for node in [&one, &two] {
        is_ready(node).await?;
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
    let place = Place::new(cluster.bootstrap())?;
    let patient = PATIENT.map(|name| (name, FOR_EVER.to_owned()));
    let (mut one, mut two) = (node(&place, "one", &patient)?, node(&place, "two", &patient)?);
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
