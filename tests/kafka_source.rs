//! The consumers of public topics on a real Kafka: the group that reads commands, and tails and producers of the
//! subcommands.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use everlog_log::consumer::{Assigned, Fetched, Polled, SourceError};
use everlog_log_kafka::commands::source::CommandsSource;
use everlog_log_kafka::topics::topic_io::{
    self, From, OutgoingRecord, Producer, TailStep, TopicTail, TransactionEnd, Trimmer,
};
use everlog_log_kafka::{Options, topic_id, topics};
use everlog_tests::kafka::{self, Cluster, LONG_SESSION, Version};
use everlog_tests::patience;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};

/// How often something is sent that comes, while something else must not: a broker is asked for all partitions at once, so that
/// the one would have come with the other.
const ROUNDS: usize = 4;

/// Topics of a test's own.
struct TestLog {
    options: Options,
    keeps: bool,
}

impl TestLog {
    /// A member of its group that does not leave it keeps its partitions for longer than anybody waits for them.
    fn new() -> anyhow::Result<Self> {
        let mut test_log = Self::on(Cluster::shared()?)?;
        test_log.keeps = false;
        test_log.options.properties.extend(LONG_SESSION.map(|(name, value)| (name.into(), value.into())));
        Ok(test_log)
    }

    fn on(cluster: &Cluster) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(cluster.bootstrap());
        options.prefix = format!("source-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (4, 1);
        topics::create(&options)?;
        Ok(Self { options, keeps: true })
    }

    fn commands(&self) -> String {
        format!("{}commands", self.options.prefix)
    }

    fn source(&self) -> anyhow::Result<Reader> {
        Ok(Reader { source: CommandsSource::open(&self.options)?, assigned: BTreeMap::new() })
    }

    fn producer(&self) -> anyhow::Result<Producer> {
        Ok(Producer::open(&self.options)?)
    }

    /// Texts into one partition, one by one.
    fn produce(&self, partition: u32, texts: &[&str]) -> anyhow::Result<()> {
        let topic = self.commands();
        let records: Vec<_> = texts.iter().map(|text| outgoing(&topic, partition, text)).collect();
        self.producer()?.send(&records)?;
        Ok(())
    }
}

impl Drop for TestLog {
    fn drop(&mut self) {
        if !self.keeps {
            topics::remove(&self.options).expect("topics are removed");
        }
    }
}

fn outgoing<'a>(topic: &'a str, partition: u32, text: &'a str) -> OutgoingRecord<'a> {
    OutgoingRecord {
        topic,
        partition: Some(partition),
        value: Some(text.as_bytes()),
        ..OutgoingRecord::default()
    }
}

/// A source, and what it was given.
struct Reader {
    source: CommandsSource,
    assigned: BTreeMap<u32, Assigned>,
}

impl Reader {
    /// What comes next.
    async fn poll(&mut self) -> anyhow::Result<Result<Polled, SourceError>> {
        let next = poll_fn(|context| self.source.poll_next(context));
        let polled = patience::answer("what comes next", next).await?;
        match &polled {
            Ok(Polled::Assigned(assigned)) => {
                self.assigned.extend(assigned.iter().map(|one| (one.partition, one.clone())));
            }
            Ok(Polled::Revoked(partitions)) => {
                self.assigned.retain(|partition, _| !partitions.contains(partition));
            }
            Ok(Polled::Records(_)) | Err(_) => {}
        }
        Ok(polled)
    }

    /// Until it has so many partitions; nothing is read of them yet.
    async fn until_assigned(&mut self, count: usize) -> anyhow::Result<()> {
        let deadline = patience::deadline();
        while self.assigned.len() < count {
            anyhow::ensure!(!deadline.is_over(), "{} partitions, not {count}", self.assigned.len());
            drop(self.poll().await?);
        }
        Ok(())
    }

    /// Until it has so many partitions; each is begun where it was left, else at its start.
    async fn begin_all(&mut self, count: usize) -> anyhow::Result<()> {
        let deadline = patience::deadline();
        while self.assigned.len() != count {
            anyhow::ensure!(!deadline.is_over(), "{} partitions, not {count}", self.assigned.len());
            if let Ok(Polled::Assigned(assigned)) = self.poll().await? {
                for one in assigned {
                    self.source
                        .begin(one.partition, one.committed.map_or(one.bounds.start, |(_, next)| next));
                }
            }
        }
        Ok(())
    }

    /// So many records; passing trouble is waited out.
    async fn records(&mut self, count: usize) -> anyhow::Result<Vec<Fetched>> {
        let (deadline, mut found) = (patience::deadline(), Vec::new());
        while found.len() < count {
            anyhow::ensure!(!deadline.is_over(), "{} of {count} records came", found.len());
            match self.poll().await.with_context(|| format!("{} of {count} records came", found.len()))? {
                Ok(Polled::Records(records)) => found.extend(records),
                Ok(Polled::Assigned(_) | Polled::Revoked(_)) | Err(SourceError::Passing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// What is sent into a partition comes, and nothing else does.
    async fn records_only_of(&mut self, test_log: &TestLog, partition: u32) -> anyhow::Result<()> {
        for round in 0..ROUNDS {
            let text = format!("round {round}");
            test_log.produce(partition, &[&text])?;
            assert_eq!(texts(&self.records(1).await?), [text]);
        }
        Ok(())
    }

    /// The first failure that lasts.
    async fn failure(&mut self) -> anyhow::Result<SourceError> {
        let deadline = patience::deadline();
        loop {
            anyhow::ensure!(!deadline.is_over(), "nothing failed");
            match self.poll().await? {
                Err(SourceError::Passing(_)) | Ok(_) => {}
                Err(error) => return Ok(error),
            }
        }
    }

    /// Closes it, as a program does that must not wait.
    async fn close(self) -> anyhow::Result<()> {
        Ok(tokio::task::spawn_blocking(move || drop(self.source)).await?)
    }
}

fn texts(records: &[Fetched]) -> Vec<String> {
    let text = |record: &Fetched| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into();
    records.iter().map(text).collect()
}

#[tokio::test]
async fn records_of_transactions_that_were_aborted_or_are_open_do_not_come() -> anyhow::Result<()> {
    let mut test_log = TestLog::new()?;
    // No broker ends the open one.
    test_log.options.transaction_timeout_ms = 900_000;
    let topic = test_log.commands();
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    let mut producer = Producer::open_transactional(&test_log.options, "somebody")?;
    test_log.produce(1, &["a"])?;
    producer.transact(&[outgoing(&topic, 1, "aborted")], TransactionEnd::Abort)?;
    producer.transact(&[outgoing(&topic, 1, "b"), outgoing(&topic, 1, "c")], TransactionEnd::Commit)?;
    assert_eq!(texts(&reader.records(3).await?), ["a", "b", "c"]);
    producer.begin()?;
    producer.send(&[outgoing(&topic, 1, "open")])?;
    test_log.produce(1, &["behind it"])?;
    test_log.produce(2, &["elsewhere"])?;
    assert_eq!(texts(&reader.records(1).await?), ["elsewhere"]);
    // What stands behind an open transaction waits for it.
    reader.records_only_of(&test_log, 2).await?;
    producer.end(TransactionEnd::Commit)?;
    assert_eq!(texts(&reader.records(2).await?), ["open", "behind it"]);
    Ok(())
}

#[tokio::test]
async fn a_record_comes_with_all_that_was_sent_with_it() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let topic = test_log.commands();
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    let headers = [("namespace", Some(&b"default"[..])), ("empty", Some(&[][..])), ("none", None)];
    let outgoing = OutgoingRecord {
        topic: &topic,
        partition: Some(3),
        key: Some(b"order-1"),
        value: None,
        headers: &headers,
    };
    let places = test_log.producer()?.send(&[outgoing])?;
    let record = reader.records(1).await?.remove(0);
    assert_eq!((record.partition, record.offset), places[0]);
    assert_eq!((record.key.as_deref(), record.value), (Some(&b"order-1"[..]), None));
    let found: Vec<_> =
        record.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(found, headers);
    Ok(())
}

#[tokio::test]
async fn what_was_committed_comes_back_with_the_topics_id() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    test_log.produce(0, &["a", "b", "c", "d"])?;
    let id = topic_io::topic(&test_log.options, &test_log.commands())?.incarnation;
    let mut reader = test_log.source()?;
    assert_eq!(reader.source.topic().incarnation, id);
    reader.begin_all(4).await?;
    assert_eq!(reader.assigned[&0], Assigned { partition: 0, committed: None, bounds: 0..4 });
    assert_eq!(reader.records(4).await?.len(), 4);
    reader.source.commit(0, 3);
    reader.close().await?;
    Trimmer::open(&test_log.options)?.delete_below(&test_log.commands(), 0, 2)?;
    let mut next = test_log.source()?;
    next.begin_all(4).await.context("the former member has left")?;
    assert_eq!(next.assigned[&0], Assigned { partition: 0, committed: Some((id, 3)), bounds: 2..4 });
    assert_eq!(texts(&next.records(1).await?), ["d"]);
    // As its own tools show it.
    let group = format!("{}ingress", test_log.options.prefix);
    let arguments = [
        "--bootstrap-server",
        &test_log.options.bootstrap_servers,
        "--describe",
        "--topic",
        &test_log.commands(),
    ];
    let told = kafka::tool("org.apache.kafka.tools.TopicCommand", &arguments, "")?;
    assert!(told.contains(&topic_id::text(&id)), "{told} of {group}");
    Ok(())
}

#[tokio::test]
async fn a_paused_partition_rests_and_goes_on_where_it_was() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    test_log.produce(0, &["a"])?;
    reader.records(1).await?;
    reader.source.pause(0);
    test_log.produce(0, &["b", "c"])?;
    test_log.produce(1, &["elsewhere"])?;
    assert_eq!(texts(&reader.records(1).await?), ["elsewhere"]);
    reader.records_only_of(&test_log, 1).await?;
    reader.source.resume(0);
    assert_eq!(texts(&reader.records(2).await?), ["b", "c"]);
    Ok(())
}

#[tokio::test]
async fn nothing_is_read_before_it_is_said_from_where() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    test_log.produce(2, &["a", "b"])?;
    let mut reader = test_log.source()?;
    reader.until_assigned(4).await?;
    reader.source.begin(3, 0);
    reader.records_only_of(&test_log, 3).await?;
    reader.source.begin(2, 1);
    assert_eq!(texts(&reader.records(1).await?), ["b"]);
    Ok(())
}

#[tokio::test]
async fn more_than_is_taken_waits_within_bounds_and_in_order() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let (topic, text) = (test_log.commands(), "x".repeat(2_000));
    let (mut producer, count) = (test_log.producer()?, 40_000);
    let records: Vec<_> = (0..count / 2).flat_map(|_| [0, 1].map(|to| outgoing(&topic, to, &text))).collect();
    for some in records.chunks(5_000) {
        producer.send(some)?;
    }
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    // Nobody takes anything meanwhile: the queue is full long before somebody else has read it all.
    let mut tail = TopicTail::open(&test_log.options, &topic, None, From::Beginning)?;
    assert_eq!(read_to_the_end(&mut tail)?.len(), count);
    let mut next = BTreeMap::from([(0, 0), (1, 0)]);
    for record in reader.records(count).await? {
        let expected = next.get_mut(&record.partition).expect("produced to");
        assert_eq!(record.offset, *expected);
        *expected += 1;
    }
    assert_eq!(next, BTreeMap::from([(0, 20_000), (1, 20_000)]));
    Ok(())
}

#[tokio::test]
async fn two_members_share_the_partitions_and_one_that_leaves_hands_over() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut first = test_log.source()?;
    first.begin_all(4).await?;
    test_log.produce(0, &["a"])?;
    first.records(1).await?;
    for partition in 0..4 {
        first.source.commit(partition, u64::from(partition == 0));
    }
    let mut second = test_log.source()?;
    let deadline = patience::deadline();
    while first.assigned.len() != 2 || second.assigned.len() != 2 {
        assert!(!deadline.is_over(), "{:?} and {:?}", first.assigned, second.assigned);
        let polled = tokio::select! { polled = first.poll() => polled, polled = second.poll() => polled };
        drop(polled?);
    }
    assert!(first.assigned.keys().all(|partition| !second.assigned.contains_key(partition)));
    for one in second.assigned.values() {
        let (_, next) = one.committed.expect("the first member committed it");
        second.source.begin(one.partition, next);
    }
    for partition in 0..4 {
        test_log.produce(partition, &["b"])?;
    }
    assert_eq!(
        (texts(&first.records(2).await?), texts(&second.records(2).await?)),
        (["b", "b"].map(String::from).into(), ["b", "b"].map(String::from).into())
    );
    // What a member commits that has lost a partition is void.
    let lost = *second.assigned.keys().next().expect("it has some");
    first.source.commit(lost, 0);
    first.close().await?;
    second.begin_all(4).await.context("the first has left")?;
    let again = second.records(2).await?;
    assert!(again.iter().all(|record| record.partition != lost), "not committed by the first, so read again");
    Ok(())
}

#[tokio::test]
async fn what_is_deleted_below_a_reader_is_told_and_never_skipped() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    test_log.produce(0, &["a", "b", "c"])?;
    test_log.produce(1, &["elsewhere"])?;
    Trimmer::open(&test_log.options)?.delete_below(&test_log.commands(), 0, 2)?;
    let mut reader = test_log.source()?;
    reader.until_assigned(4).await?;
    assert_eq!(reader.assigned[&0].bounds, 2..3);
    reader.source.begin(0, 1);
    reader.source.begin(1, 0);
    let failure = reader.failure().await?;
    assert!(matches!(failure, SourceError::OutOfRange { partition: 0, offset: 1, .. }), "{failure}");
    test_log.produce(0, &["d"])?;
    test_log.produce(1, &["still read"])?;
    let deadline = patience::deadline();
    loop {
        assert!(!deadline.is_over(), "the other partitions go on");
        if let Ok(Polled::Records(records)) = reader.poll().await? {
            assert!(records.iter().all(|record| record.partition == 1), "{records:?}");
            if texts(&records).contains(&"still read".to_owned()) {
                return Ok(());
            }
        }
    }
}

/// One batch of so many records, each of so many blanks: little as it is sent.
fn compressed(options: &Options, partition: i32, records: usize, bytes: usize) -> anyhow::Result<()> {
    let producer: ThreadedProducer<_> = ClientConfig::new()
        .set("bootstrap.servers", &options.bootstrap_servers)
        .set("compression.type", "zstd")
        // Together, however long it takes to hand them over.
        .set("linger.ms", "900000")
        .set("message.timeout.ms", "0")
        .set("batch.size", "1000000000")
        .set("batch.num.messages", records.to_string())
        .set("message.max.bytes", "1000000000")
        .set("queue.buffering.max.kbytes", "1000000")
        .create()?;
    let (topic, blanks) = (format!("{}commands", options.prefix), vec![b' '; bytes]);
    for _ in 0..records {
        let record = BaseRecord::<(), _>::to(&topic).partition(partition).payload(&blanks);
        producer.send(record).map_err(|(error, _)| error)?;
    }
    Ok(producer.flush(patience::most())?)
}

#[tokio::test]
async fn a_batch_that_unpacks_to_too_much_is_passed_over_and_told() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    test_log.produce(0, &["before"])?;
    compressed(&test_log.options, 0, 37, 4 << 20)?;
    test_log.produce(0, &["between"])?;
    compressed(&test_log.options, 0, 12, 12 << 20)?;
    compressed(&test_log.options, 0, 1, 140 << 20)?;
    test_log.produce(0, &["behind"])?;
    test_log.produce(1, &["elsewhere"])?;
    let (elsewhere, records): (Vec<_>, Vec<_>) =
        reader.records(7).await?.into_iter().partition(|record| record.partition == 1);
    assert_eq!(texts(&elsewhere), ["elsewhere"]);
    assert_eq!(texts(&records), ["before", "", "between", "", "", "behind"]);
    let places: Vec<_> = records.iter().map(|record| (record.offset, record.lost.is_some())).collect();
    assert_eq!(places, [(0, false), (1, true), (38, false), (39, true), (51, true), (52, false)]);
    let told = records[1].lost.clone().unwrap_or_default();
    assert!(told.contains("offsets 1 to 37, "), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_record_as_large_as_records_may_be_comes_however_well_it_was_compressed() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    let bytes = test_log.options.record_bytes_max;
    compressed(&test_log.options, 0, 1, bytes)?;
    let record = reader.records(1).await?.remove(0);
    assert_eq!((record.lost, record.value.map(|value| value.len())), (None, Some(bytes)));
    Ok(())
}

#[tokio::test]
async fn a_topic_that_is_made_again_is_told_and_not_read_on() -> anyhow::Result<()> {
    let mut test_log = TestLog::new()?;
    test_log.produce(0, &["a", "b"])?;
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    reader.records(2).await?;
    let former = reader.source.topic().clone();
    topics::remove(&test_log.options)?;
    // What is sent into a topic that goes is given up soon, and sent again.
    let within_ms = std::mem::replace(&mut test_log.options.call_timeout_ms, 10_000);
    let deadline = patience::deadline();
    while topics::create(&test_log.options).is_err() || test_log.produce(0, &["A", "B", "C", "D"]).is_err() {
        assert!(!deadline.is_over(), "the topic is never made again");
    }
    test_log.options.call_timeout_ms = within_ms;
    // The topic's id is looked at when the group is assigned anew, and now and then.
    let failure = reader.failure().await?;
    assert!(matches!(failure, SourceError::MadeAgain { .. }), "{failure}");
    assert!(failure.to_string().contains(&topic_id::text(&former.incarnation)), "{failure}");
    reader.close().await?;
    let mut next = test_log.source()?;
    assert_ne!(next.source.topic().incarnation, former.incarnation);
    next.begin_all(4).await?;
    assert_eq!(next.assigned[&0].committed.map(|(id, _)| id), None, "brokers forget what was committed");
    assert_eq!(texts(&next.records(4).await?), ["A", "B", "C", "D"]);
    Ok(())
}

#[tokio::test]
async fn a_source_outlives_a_broker_that_is_killed() -> anyhow::Result<()> {
    let cluster = Cluster::start(Version::V4_4_0, 1)?;
    let test_log = TestLog::on(&cluster)?;
    let mut reader = test_log.source()?;
    reader.begin_all(4).await?;
    test_log.produce(0, &["a", "b"])?;
    assert_eq!(texts(&reader.records(2).await?), ["a", "b"]);
    reader.source.commit(0, 2);
    cluster.kill(1)?;
    cluster.restart(1)?;
    test_log.produce(0, &["c"])?;
    let (deadline, mut found) = (patience::deadline(), Vec::new());
    while found.is_empty() {
        assert!(!deadline.is_over(), "nothing comes any more");
        match reader.poll().await? {
            Ok(Polled::Records(records)) => found.extend(records),
            // It may have been taken for dead meanwhile.
            Ok(Polled::Assigned(assigned)) => {
                for one in assigned {
                    reader.source.begin(one.partition, if one.partition == 0 { 2 } else { 0 });
                }
            }
            Ok(Polled::Revoked(_)) | Err(SourceError::Passing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    assert_eq!(texts(&found), ["c"]);
    Ok(())
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_refused_with_the_way_out() -> anyhow::Result<()> {
    let mut options = Options::new(Cluster::shared()?.bootstrap());
    options.prefix = "nothing-here.".into();
    let refusal = CommandsSource::open(&options).expect_err("refused").to_string();
    assert!(
        refusal.contains("nothing-here.commands") && refusal.contains("everlog topics create"),
        "{refusal}"
    );
    Ok(())
}

#[test]
fn a_tail_brings_what_is_committed_to_the_end_and_on() -> anyhow::Result<()> {
    let mut test_log = TestLog::new()?;
    // Not shorter than librdkafka keeps a message: it refuses the producer.
    test_log.options.transaction_timeout_ms = 900_000;
    let topic = test_log.commands();
    let mut producer = Producer::open_transactional(&test_log.options, "somebody")?;
    producer.transact(&[outgoing(&topic, 0, "a"), outgoing(&topic, 3, "b")], TransactionEnd::Commit)?;
    producer.transact(&[outgoing(&topic, 0, "aborted")], TransactionEnd::Abort)?;
    let mut tail = TopicTail::open(&test_log.options, &topic, None, From::Beginning)?;
    let mut found = read_to_the_end(&mut tail)?;
    found.sort();
    assert_eq!(found, ["a", "b"]);
    // Nothing else came before the end, and nothing comes before this.
    assert_eq!(tail.next(Duration::ZERO)?, TailStep::Nothing);
    test_log.produce(0, &["c"])?;
    let TailStep::Record(record) = tail.next(patience::most())? else { anyhow::bail!("it goes on") };
    assert_eq!((record.partition, record.value.as_deref()), (0, Some(&b"c"[..])));
    assert!(record.time_ms > 1_700_000_000_000);
    let mut later = TopicTail::open(&test_log.options, &topic, Some(0), From::Offset(record.offset))?;
    assert_eq!(read_to_the_end(&mut later)?, ["c"]);
    let mut new = TopicTail::open(&test_log.options, &topic, None, From::End)?;
    assert_eq!(read_to_the_end(&mut new)?, Vec::<String>::new());
    test_log.produce(2, &["d"])?;
    assert!(matches!(new.next(patience::most())?, TailStep::Record(_)));
    let refusal =
        TopicTail::open(&test_log.options, &topic, Some(0), From::Offset(99)).err().expect("not there");
    assert!(refusal.to_string().contains("no offset 99"), "{refusal}");
    Ok(())
}

fn read_to_the_end(tail: &mut TopicTail) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    loop {
        match tail.next(patience::most())? {
            TailStep::Record(record) => {
                found.push(String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned());
            }
            TailStep::End => return Ok(found),
            TailStep::Nothing => anyhow::bail!("the end never came"),
        }
    }
}

#[test]
fn a_key_goes_where_javas_producers_send_it() -> anyhow::Result<()> {
    let test_log = TestLog::new()?;
    let topic = test_log.commands();
    let mut tail = TopicTail::open(&test_log.options, &topic, None, From::End)?;
    let lines: String = (0..20).map(|number| format!("order-{number}:java\n")).collect();
    let arguments = [
        "--bootstrap-server",
        &test_log.options.bootstrap_servers,
        "--topic",
        &topic,
        "--property",
        "parse.key=true",
        "--property",
        "key.separator=:",
    ];
    kafka::tool("kafka.tools.ConsoleProducer", &arguments, &lines)?;
    let mut theirs = BTreeMap::new();
    while theirs.len() < 20 {
        match tail.next(patience::most())? {
            TailStep::Record(record) => theirs.insert(record.key.expect("it has one"), record.partition),
            TailStep::End => None,
            TailStep::Nothing => anyhow::bail!("only these came: {theirs:?}"),
        };
    }
    let records: Vec<_> = theirs
        .keys()
        .map(|key| OutgoingRecord { topic: &topic, key: Some(key), ..OutgoingRecord::default() })
        .collect();
    let ours: Vec<_> =
        test_log.producer()?.send(&records)?.into_iter().map(|(partition, _)| partition).collect();
    assert_eq!(ours, theirs.values().copied().collect::<Vec<_>>());
    Ok(())
}
