//! Faults that stop one partition or one node, and must not stop the others.

use std::sync::{Arc, Mutex};

use anyhow::{Context, ensure};
use everlog_log_kafka::Options;
use everlog_log_kafka::topics::topic_io::Trimmer;
use everlog_tests::caller::Caller;
use everlog_tests::kafka::{Cluster, LONG_SESSION};
use everlog_tests::patience;
use everlog_tests::process::Process;
use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use tonic::Code;

use crate::nodes::node;
use crate::{TestLog, status};

const STARTS: usize = 16;

/// Where a record came to stand.
#[derive(Clone, Default)]
struct Delivered(Arc<Mutex<Option<u64>>>);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let (Ok(record), Ok(mut offset)) = (result, self.0.lock()) {
            *offset = u64::try_from(record.offset()).ok();
        }
    }
}

/// Starts of workflows, again and again until at least so many are acknowledged; how many then were. All are answered.
async fn started(client: &Caller, prefix: &str, at_least: usize) -> anyhow::Result<usize> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        let mut acknowledged = 0;
        for number in 0..STARTS {
            match client.start(&format!("{prefix}-{number}")).await {
                Ok(()) => acknowledged += 1,
                Err(status) => ensure!(status.code() != Code::DeadlineExceeded, "{status}"),
            }
        }
        if acknowledged >= at_least {
            return Ok(acknowledged);
        }
        ensure!(!deadline.is_over(), "{acknowledged} starts of {STARTS} are acknowledged, not {at_least}");
        looks.tick().await;
    }
}

async fn says(node: &mut Process, what: &str) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    while !node.said()?.contains(what) {
        looks.tick().await;
        ensure!(node.is_running(), "it has ended: {}", node.said()?);
        ensure!(!deadline.is_over(), "\"{what}\" is not said: {}", node.said()?);
    }
    Ok(())
}

fn options(test_log: &TestLog) -> Options {
    let mut options = Options::new(test_log.bootstrap());
    options.prefix = test_log.prefix().into();
    options
}

/// Deletes a record of a partition's journal that nobody has applied.
async fn lose_a_record(test_log: &TestLog, partition: u32) -> anyhow::Result<()> {
    let topic = format!("{}journal", test_log.prefix());
    let producer: ThreadedProducer<Delivered> = ClientConfig::new()
        .set("bootstrap.servers", test_log.bootstrap())
        .create_with_context(Delivered::default())?;
    let record = BaseRecord::to(&topic).partition(partition as i32).key("nobody").payload("nothing");
    producer.send(record).map_err(|(error, _)| error)?;
    let (options, delivered) = (options(test_log), producer.context().0.clone());
    tokio::task::spawn_blocking(move || {
        producer.flush(patience::most())?;
        let offset = delivered.lock().ok().and_then(|offset| *offset).context("it was not delivered")?;
        Ok(Trimmer::open(&options)?.delete_below(&topic, partition, offset + 1)?)
    })
    .await?
}

/// What no node can go on with would end whoever has the partition, and the next one, and the next.
#[tokio::test]
async fn a_partition_whose_journal_lacks_a_record_is_closed_and_ends_no_node() -> anyhow::Result<()> {
    const CLOSED: &str = "partition closed";
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let apart = [("EVERLOG_KAFKA__GROUP_PARTITIONS", "1".to_owned())];
    let mut first = node(&test_log, "one", &apart)?;
    let client = first.ready().await?;
    // All partitions serve.
    started(&client, "before", STARTS).await?;
    first.stop().await?;
    lose_a_record(&test_log, 0).await?;
    let mut first = node(&test_log, "one", &apart)?;
    let client = first.ready().await?;
    says(&mut first, CLOSED).await?;
    let some = started(&client, "closed", 1).await?;
    ensure!(some < STARTS, "one partition does not serve, the others do: {some}");

    let mut second = node(&test_log, "two", &apart)?;
    let client = second.ready().await?;
    first.kill()?;
    says(&mut second, CLOSED).await?;
    let some = started(&client, "moved", 1).await?;
    ensure!(some < STARTS, "nor does it at the next node, which goes on: {some}");
    let is_shown = async || {
        status(&test_log.variables, &[])
            .is_ok_and(|shown| shown.matches("is closed: its node's log says why").count() == 1)
    };
    patience::until("one partition is shown as closed", is_shown).await?;
    let page = second.page("/health/ready").await?;
    ensure!(page.contains("partitions serve"), "{page}");
    ensure!(second.is_running(), "{}", second.said()?);
    Ok(())
}

/// One that is slow to answer has not gone: who comes meanwhile would take all that it has.
#[tokio::test]
async fn a_node_that_comes_while_the_other_does_not_answer_takes_nothing_from_it() -> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    // The brokers take the first for alive, however long the second takes to come.
    let session = LONG_SESSION.map(|(name, value)| format!("{name}={value}"));
    test_log.variables.push(("EVERLOG_KAFKA__PROPERTIES", session.join(";")));
    let mut first = node(&test_log, "one", &[])?;
    let client = first.ready().await?;
    client.start("before").await?;
    first.signal("STOP")?;
    let mut second = node(&test_log, "two", &[])?;
    let said = says(&mut second, "nothing is taken over until that changes").await;
    first.signal("CONT")?;
    said?;
    let other = second.ready().await?;
    other.signal("before", "go").await?;
    ensure!(first.metric("everlog_partition_serving", "").await? == 4.0, "{}", first.said()?);
    ensure!(!first.said()?.contains("partition taken over by another node"), "{}", first.said()?);
    Ok(())
}
