//! The public topics of a node on a real Kafka: each command has one outcome, and each event is there once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::rejection::Rejection;
use everlog_avro::{PublicTopic, Writer, frame};
use everlog_log_kafka::Options;
use everlog_log_kafka::commands::retention::CommandsRetention;
use everlog_log_kafka::topics::topic_io::{
    From, OutgoingRecord, Producer, Record, TailStep, TopicTail, Trimmer,
};
use everlog_tests::kafka::Cluster;
use everlog_tests::server::Server;
use everlog_tests::{page, patience};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const PARTITIONS: u32 = 4;

/// A log of a test's own, and the directory of its node.
struct TestLog {
    options: Options,
    dir: tempfile::TempDir,
}

/// Key, value and headers of a command.
type Sent<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

impl TestLog {
    fn new() -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(Cluster::shared()?.bootstrap());
        options.prefix = format!("face-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (PARTITIONS, 1);
        Ok(Self { options, dir: tempfile::tempdir()? })
    }

    async fn start(&self, further: &[(&str, &str)]) -> anyhow::Result<Server> {
        let partitions = PARTITIONS.to_string();
        let mut variables = vec![
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", self.options.bootstrap_servers.as_str()),
            ("EVERLOG_KAFKA__PREFIX", self.options.prefix.as_str()),
            ("EVERLOG_KAFKA__PARTITIONS", partitions.as_str()),
        ];
        variables.extend_from_slice(further);
        Server::start(self.dir.path(), &variables).await
    }

    fn topic(&self, noun: PublicTopic) -> String {
        format!("{}{}", self.options.prefix, noun.topic())
    }

    /// Produces commands as any client would: the key finds the partition.
    fn command(&self, records: &[Sent<'_>]) -> anyhow::Result<Vec<(u32, u64)>> {
        let topic = self.topic(PublicTopic::Command);
        let headers: Vec<Vec<_>> = records
            .iter()
            .map(|(.., headers)| {
                headers.iter().map(|(name, value)| (*name, Some(value.as_bytes()))).collect()
            })
            .collect();
        let records: Vec<_> = records
            .iter()
            .zip(&headers)
            .map(|((key, value, _), headers)| OutgoingRecord {
                topic: &topic,
                key: Some(key.as_bytes()),
                value: Some(value.as_bytes()),
                headers,
                ..OutgoingRecord::default()
            })
            .collect();
        Ok(Producer::open(&self.options)?.send(&records)?)
    }

    /// Reads a topic from its beginning until what was read is enough.
    fn read_until(
        &self,
        noun: PublicTopic,
        enough: impl Fn(&[Record]) -> bool,
    ) -> anyhow::Result<Vec<Record>> {
        let mut tail = TopicTail::open(&self.options, &self.topic(noun), None, From::Beginning)?;
        let (mut read, deadline) = (Vec::new(), patience::deadline());
        while !enough(&read) {
            ensure!(!deadline.is_over(), "{noun:?}: only {} records came: {read:?}", read.len());
            if let TailStep::Record(record) = tail.next(deadline.left())? {
                read.push(record);
            }
        }
        Ok(read)
    }

    /// All that is in a topic now.
    fn read_all(&self, noun: PublicTopic) -> anyhow::Result<Vec<Record>> {
        let mut tail = TopicTail::open(&self.options, &self.topic(noun), None, From::Beginning)?;
        let mut read = Vec::new();
        loop {
            match tail.next(patience::most())? {
                TailStep::Record(record) => read.push(record),
                TailStep::End => return Ok(read),
                TailStep::Nothing => bail!("{noun:?}: its end does not come"),
            }
        }
    }

    /// The group of the ingress passes over what it has not read, as a tool has it do.
    fn pass_over(&self) -> anyhow::Result<()> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.options.bootstrap_servers);
        config.set("group.id", format!("{}ingress", self.options.prefix));
        let (consumer, topic): (BaseConsumer, _) = (config.create()?, self.topic(PublicTopic::Command));
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS as i32 {
            let (_, end) = consumer.fetch_watermarks(&topic, partition, patience::most())?;
            list.add_partition_offset(&topic, partition, Offset::Offset(end))?;
        }
        Ok(consumer.commit(&list, CommitMode::Sync)?)
    }

    fn outcomes(&self, count: usize) -> anyhow::Result<Vec<(Outcome, Record)>> {
        let read = self.read_until(PublicTopic::Outcome, |read| read.len() >= count)?;
        let outcome = |record: Record| {
            let value = record.value.clone().context("it has a value")?;
            Ok((Outcome::read(&Writer::own(PublicTopic::Outcome), &value)?, record))
        };
        read.into_iter().map(outcome).collect()
    }
}

fn events(read: &[Record]) -> Vec<WorkflowEvent<'static>> {
    let event = |record: &Record| {
        let value = record.value.as_deref().expect("it has a value");
        WorkflowEvent::read(&Writer::own(PublicTopic::Event), value).expect("it is an event")
    };
    read.iter().map(event).collect()
}

/// The id under which the node's registry knows the schema of a topic.
async fn schema_id(server: &Server, topic: &str) -> anyhow::Result<u32> {
    let path = format!("/subjects/{topic}-value/versions/latest");
    let (status, body) = page::get(server.http_address(), &path).await?;
    ensure!(status == 200, "{status}: {body}");
    let told: serde_json::Value = serde_json::from_str(&body)?;
    Ok(u32::try_from(told["id"].as_u64().context("it has an id")?)?)
}

const START: &str = r#"{"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders", "input": [{"total": 12}]}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_in_json_is_answered_once_and_its_events_are_told_by_name_whoever_is_killed()
-> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut server = test_log.start(&[]).await?;
    let replies = test_log.topic(PublicTopic::Outcome);
    let returned = [("correlation-id", "\u{1}call-7"), ("traceparent", "00-4bf92f3577b34da6-00f067aa-01")];
    let asks = [[("reply-topic", replies.as_str())].as_slice(), &returned].concat();
    let placed = test_log.command(&[
        ("order-1", START, &asks),
        ("order-2", "nonsense", &asks),
        ("order-3", START, &[]),
    ])?;

    let outcomes = test_log.outcomes(2)?;
    let (started, record) =
        outcomes.iter().find(|(outcome, _)| outcome.status == "started").context("started")?;
    ensure!((started.partition as u32, started.offset as u64) == placed[0], "{started:?}");
    ensure!(
        started.namespace.as_deref() == Some("default") && started.workflow_id.as_deref() == Some("order-1")
    );
    ensure!(
        started.correlation_id.as_ref().is_some_and(|id| id.0 == "\u{1}call-7".as_bytes()),
        "{started:?}"
    );
    for (name, value) in returned {
        let header = record.headers.iter().find(|(found, _)| found == name);
        ensure!(header.and_then(|(_, value)| value.as_deref()) == Some(value.as_bytes()), "{record:?}");
    }
    let (refused, _) = outcomes.iter().find(|(outcome, _)| outcome.status == "refused").context("refused")?;
    ensure!(refused.code.as_deref() == Some("not_avro"), "{refused:?}");

    let rejected = test_log.read_until(PublicTopic::Rejection, |read| !read.is_empty())?;
    let value = rejected[0].value.as_deref().context("it has a value")?;
    let rejection = Rejection::read(&Writer::own(PublicTopic::Rejection), value)?;
    ensure!((rejection.partition as u32, rejection.offset as u64) == placed[1], "{rejection:?}");
    ensure!(rejection.value.as_ref().is_some_and(|value| &value.0[..] == b"nonsense"), "{rejection:?}");

    let begun = |read: &[Record]| {
        events(read).iter().filter(|event| event.r#type == "WorkflowExecutionStarted").count() == 2
    };
    let read = test_log.read_until(PublicTopic::Event, begun)?;
    for (noun, record) in [
        (PublicTopic::Event, &read[0]),
        (PublicTopic::Rejection, &rejected[0]),
        (PublicTopic::Outcome, record),
    ] {
        let id = frame(record.value.as_deref().context("it has a value")?)?.schema_id;
        ensure!(id == schema_id(&server, &test_log.topic(noun)).await?, "{noun:?} has the id {id}");
    }
    ensure!(events(&read).iter().all(|event| event.namespace == "default"));

    server.crash().await?;
    test_log.command(&[("order-4", START, &asks)])?;
    test_log.outcomes(3)?;
    check_once(&test_log)?;
    let metric = page::metric(server.metrics_address(), "everlog_ingress_records_total").await?;
    ensure!(metric.is_some_and(|records| records >= 1.0), "{metric:?}");
    Ok(())
}

/// Every command has one outcome and one beginning, and what was refused stands there once.
fn check_once(test_log: &TestLog) -> anyhow::Result<()> {
    let mut begun: BTreeMap<String, u32> = BTreeMap::new();
    for event in events(&test_log.read_all(PublicTopic::Event)?) {
        if event.r#type == "WorkflowExecutionStarted" {
            *begun.entry(event.workflow_id.into_owned()).or_default() += 1;
        }
    }
    let once = ["order-1", "order-3", "order-4"].map(|id| (id.to_owned(), 1)).into();
    ensure!(begun == once, "{begun:?}");
    let outcomes = test_log.read_all(PublicTopic::Outcome)?.len();
    ensure!(outcomes == 3, "{outcomes} outcomes");
    let rejections = test_log.read_all(PublicTopic::Rejection)?.len();
    ensure!(rejections == 1, "{rejections} rejections");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_went_unread_stop_their_partition_with_a_reason_and_nothing_else() -> anyhow::Result<()>
{
    let test_log = TestLog::new()?;
    let mut server = test_log.start(&[]).await?;
    let asks = [("reply-topic", test_log.topic(PublicTopic::Outcome))];
    let asks: Vec<_> = asks.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let keys: Vec<String> = (0..16).map(|number| format!("order-{number}")).collect();
    let records: Vec<_> = keys.iter().map(|key| (key.as_str(), START, asks.as_slice())).collect();
    let first = test_log.command(&records)?;
    test_log.outcomes(records.len())?;
    server.stop()?;
    let second = test_log.command(&records)?;
    let (lost, _) = first[0];
    let in_lost = second.iter().filter(|(partition, _)| *partition == lost).count();
    let end = second.iter().filter(|(partition, _)| *partition == lost).map(|(_, offset)| offset + 1).max();
    let trimmer = Trimmer::open(&test_log.options)?;
    trimmer.delete_below(&test_log.topic(PublicTopic::Command), lost, end.context("it has records")?)?;

    let server = test_log.start(&[]).await?;
    let reason = format!("commands of partition {lost} are not read: ");
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
        if status == 503 && page.contains(&reason) && page.contains("commands may be lost") {
            break;
        }
        ensure!(!deadline.is_over(), "{status}: {page}");
    }
    let metric = page::metric(server.metrics_address(), "everlog_ingress_stopped_partitions").await?;
    ensure!(metric == Some(1.0), "{metric:?}");
    let lag = async |partition: Option<u32>| {
        let label = partition.map(|partition| format!("{{partition=\"{partition}\"}}")).unwrap_or_default();
        let name = format!("everlog_ingress_lag_records{label}");
        page::metric(server.metrics_address(), &name).await.map(Option::unwrap_or_default)
    };
    ensure!(lag(Some(lost)).await? == in_lost as f64, "what was lost has gone nowhere");
    let outcomes = test_log.outcomes(records.len() + records.len() - in_lost)?;
    let refused = outcomes.iter().filter(|(outcome, _)| outcome.code.as_deref() == Some("already_started"));
    ensure!(refused.count() == records.len() - in_lost, "the other partitions are read on");
    let appended = page::metric(server.metrics_address(), "everlog_partition_appended_total").await?;
    ensure!(appended.is_some_and(|appended| appended > 0.0), "an owner begins with a record: {appended:?}");
    let deadline = patience::deadline();
    while lag(None).await? > in_lost as f64 {
        looks.tick().await;
        ensure!(!deadline.is_over(), "{:?} records of other partitions are not read", lag(None).await?);
    }
    ensure!(server.connect().await.is_ok(), "calls are served");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_go_once_they_were_read_and_kept_and_no_sooner() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut server = test_log.start(&[]).await?;
    let replies = test_log.topic(PublicTopic::Outcome);
    let asks = [("reply-topic", replies.as_str())];
    test_log.command(&[("order-1", START, &asks), ("order-2", START, &asks)])?;
    test_log.outcomes(2)?;
    server.stop()?;
    ensure!(test_log.read_all(PublicTopic::Command)?.len() == 2, "they are kept for a day");
    test_log.command(&[("order-3", START, &asks)])?;

    let _server = test_log.start(&[("EVERLOG_INGRESS__KEEP_MS", "0")]).await?;
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        // Who reads while they are deleted is told so.
        match test_log.read_all(PublicTopic::Command) {
            Ok(left) if left.is_empty() => break,
            left => ensure!(!deadline.is_over(), "they are still there: {left:?}"),
        }
        looks.tick().await;
    }
    ensure!(test_log.outcomes(3)?.len() == 3, "the one that came meanwhile was taken before it went");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_a_tool_had_the_group_pass_over_stay_and_are_read() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut server = test_log.start(&[]).await?;
    let replies = test_log.topic(PublicTopic::Outcome);
    let asks = [("reply-topic", replies.as_str())];
    test_log.command(&[("order-1", START, &asks)])?;
    test_log.outcomes(1)?;
    server.stop()?;
    test_log.command(&[("order-2", START, &asks)])?;
    test_log.pass_over()?;
    CommandsRetention::open(&test_log.options)?.trim(i64::MAX)?;
    ensure!(test_log.read_all(PublicTopic::Command)?.len() == 2, "what was passed over was not read");

    let _server = test_log.start(&[]).await?;
    ensure!(test_log.outcomes(2)?.len() == 2, "nothing is passed over");
    Ok(())
}
