//! What keeps a partition, or a node, from its part, and must not keep the others from theirs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use everlog_tests::kafka::Cluster;
use everlog_tests::process::Process;

use crate::Place;
use crate::nodes::node;
use crate::orders::{LOOK_EVERY, WITHIN};

async fn says(node: &mut Process, what: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + WITHIN;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while !node.said()?.contains(what) {
        looks.tick().await;
        ensure!(node.is_running(), "it has ended: {}", node.said()?);
        ensure!(Instant::now() < deadline, "\"{what}\" is not said: {}", node.said()?);
    }
    Ok(())
}

/// One that is slow to answer has not gone: who comes meanwhile would take all that it has.
#[tokio::test]
async fn a_node_that_comes_while_the_other_does_not_answer_takes_nothing_from_it() -> anyhow::Result<()> {
    let place = Place::new(Cluster::shared()?.bootstrap())?;
    let mut first = node(&place, "one", &[])?;
    let client = first.ready().await?;
    client.start("before").await?;
    first.signal("STOP")?;
    let mut second = node(&place, "two", &[])?;
    let said = says(&mut second, "nothing is taken over until that changes").await;
    first.signal("CONT")?;
    said?;
    let other = second.ready().await?;
    other.signal("before", "go").await?;
    ensure!(first.metric("everlog_partition_serving", "").await? == 4.0, "{}", first.said()?);
    ensure!(!first.said()?.contains("another node has the partition now"), "{}", first.said()?);
    Ok(())
}
