//! Topics that were deleted and made again under a stopped node: what does not fit together is refused, with a way out.

use std::sync::mpsc::Sender;

use anyhow::ensure;
use bytes::Bytes;
use everlog_log::Log;
use everlog_log_kafka::{Kafka, topics};
use everlog_tests::kafka::{self, Cluster};
use everlog_tests::patience;
use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use crate::test_log::TestLog;

/// Deletes a topic and makes it again, with nothing in it. The log must not know its id for that.
fn make_again(test_log: &TestLog, topic: &str) -> anyhow::Result<()> {
    let name = format!("{}{topic}", test_log.options.prefix);
    let arguments = ["--bootstrap-server", &test_log.options.bootstrap_servers, "--delete", "--topic", &name];
    kafka::tool("org.apache.kafka.tools.TopicCommand", &arguments, "")?;
    let deadline = patience::deadline();
    let refusal = loop {
        match topics::create(&test_log.options) {
            Err(refusal) => break refusal.to_string(),
            Ok(_still_there) => ensure!(!deadline.is_over(), "{name} is still there"),
        }
    };
    ensure!(refusal.contains("missing is what the state of this log is made of"), "{refusal}");
    ensure!(refusal.contains(&name), "{refusal}");
    write_id(test_log, topic, None)?;
    // It goes a while after it was said to be gone.
    while topics::create(&test_log.options).is_err() || !topics::check(&test_log.options)?.is_empty() {
        ensure!(!deadline.is_over(), "{name} is not there again");
    }
    Ok(())
}

/// Writes the row of `control` with the id of a topic, or deletes it.
fn write_id(test_log: &TestLog, topic: &str, id: Option<&[u8]>) -> anyhow::Result<()> {
    let (done, written) = std::sync::mpsc::channel();
    let reports = Reports(done);
    let producer: BaseProducer<Reports> = ClientConfig::new()
        .set("bootstrap.servers", &test_log.options.bootstrap_servers)
        .create_with_context(reports)?;
    let (control, key) =
        (format!("{}control", test_log.options.prefix), [b"\xfft", topic.as_bytes()].concat());
    let mut row: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&control).partition(0).key(&key);
    row.payload = id;
    producer.send(row).map_err(|(error, _)| error)?;
    producer.flush(patience::most())?;
    Ok(written.recv()??)
}

struct Reports(Sender<Result<(), KafkaError>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let _nobody_waits = self.0.send(result.as_ref().map(drop).map_err(|(error, _)| error.clone()));
    }
}

/// As many records in each journal as there were, and more.
fn refill(test_log: &TestLog) -> anyhow::Result<()> {
    let log = Kafka::open(test_log.options.clone())?;
    for partition in 0..test_log.options.partitions {
        let (done, appended) = std::sync::mpsc::channel();
        let records = (0..500).map(|number: u32| Bytes::copy_from_slice(&number.to_be_bytes())).collect();
        log.append(partition, records, Box::new(move |outcome| drop(done.send(outcome))));
        appended.recv_timeout(patience::most())??;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_that_were_made_again_are_refused_with_the_way_out() -> anyhow::Result<()> {
    let cluster = Cluster::shared()?;
    for topic in ["journal", "changelog", "timers", "history"] {
        let test_log = TestLog::new(cluster.bootstrap())?;
        let (mut node, client) = test_log.start("one").await?;
        for number in 0..8 {
            let id = format!("register-{number}");
            client.start(&id).await?;
            client.signal(&id, "there").await?;
        }
        node.stop().await?;
        tokio::task::block_in_place(|| {
            make_again(&test_log, topic)?;
            if topic == "journal" { refill(&test_log) } else { Ok(()) }
        })?;
        let mut node = test_log.spawn("one", &test_log.data())?;
        let (code, said) = node.ended().await?;
        ensure!(code == Some(1) || code == Some(2), "{topic}: it ended with {code:?}: {said}");
        ensure!(said.contains("Way out: stop every node"), "{topic}: {said}");

        // Where the log knows the id it needs no look at records, and no rows of its own.
        tokio::task::block_in_place(|| write_id(&test_log, topic, Some(&[7; 16])))?;
        let mut node = test_log.spawn("two", &test_log.data().join("empty"))?;
        let (code, said) = node.ended().await?;
        ensure!(code == Some(1), "{topic}: it ended with {code:?}: {said}");
        let remade = format!("{topic}: topic id is ");
        ensure!(said.contains(&remade) && said.contains("BwcHBwcHBwcHBwcHBwcHBw"), "{said}");
    }
    Ok(())
}
