//! Transactions that a broker leaves without an end: Kafka 4.4.0 loses the markers that it has not written yet when it is
//! killed (KAFKA-20734).

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use everlog_log::contract::Place;
use everlog_log::{Commit, Fence, Log, Output, Topic};
use everlog_log_kafka::Kafka;
use everlog_tests::kafka::{Cluster, Version};
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ConfigSource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, Message};

use crate::{Spot, WITHIN, append, commit, restored, row, text, wait};

/// Long enough in the sending that a topic can be changed meanwhile.
const MANY_ROWS: usize = 150;
const LARGE_BYTES: usize = 900_000;
/// How often a broker is killed until it leaves something.
const ATTEMPTS: usize = 10;
const LOOK_EVERY: Duration = Duration::from_millis(5);
const MIN_REPLICAS: &str = "min.insync.replicas";

#[test]
fn what_brokers_leave_without_an_end_is_ended_as_it_was_meant() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    let spots = [true, false].map(|is_commit| {
        let spot = Spot::on(cluster.bootstrap(), 2);
        let log = spot.open();
        let fence = log.fence(0).expect("fence");
        for _ in 0..5 {
            append(&log, 0, &["a"]).expect("append");
        }
        commit(&log, 0, fence, 1, vec![row(&log, 0, "k", "before")]).expect("commit");
        end_without_markers(&spot, &log, fence, is_commit);
        (spot, is_commit)
    });
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    for (spot, is_commit) in spots {
        ["history", "replies"].iter().for_each(|topic| replicas_wanted(&spot, topic, 1));
        let log = spot.open();
        let fence = log.fence(0).expect("nothing hangs");
        let (applied, value, histories) = if is_commit { (5, "after", 1) } else { (1, "before", 0) };
        assert_eq!(log.position(0).expect("position"), Some((applied, "p".into())));
        assert_eq!(restored(&log, 0), [("k".to_owned(), value.to_owned())]);
        let mut seen = 0;
        let mut visit = |_: &[u8], _: Option<&[u8]>| {
            seen += 1;
            true
        };
        log.restore(Topic::History, 0, 0, &mut visit).expect("restore");
        assert_eq!(seen, histories, "all of it has one end");
        // Whether its end was lost as well is the broker's luck.
        let replies: Vec<_> = replies_of(&spot).into_iter().flatten().collect();
        assert_eq!(replies, if is_commit { vec!["r"] } else { vec![] }, "readers get to the end");
        commit(&log, 0, fence, 5, vec![row(&log, 0, "k", "later")]).expect("commit");
    }
}

/// Runs a transaction as the log itself does, whose end `history` and `replies` cannot be told of.
fn end_without_markers(spot: &Spot, log: &Kafka, fence: Fence, is_commit: bool) {
    let prefix = &spot.options.prefix;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &spot.options.bootstrap_servers);
    config.set("transactional.id", format!("{prefix}group-0"));
    let producer: BaseProducer = config.create().expect("a producer");
    producer.init_transactions(WITHIN).expect("init");
    producer.begin_transaction().expect("begin");
    let key = row(log, 0, "k", "").key;
    let position = [&5u64.to_be_bytes()[..], &log.incarnation(), &fence.0.to_be_bytes(), b"p"].concat();
    let position_key = [0xff, 0xff, b'p', 0, 0, 0, 0];
    let rows = [
        ("replies", &b"order-1"[..], &b"r"[..]),
        ("history", &key, b"h"),
        ("changelog", &key, b"after"),
        ("changelog", &position_key, &position),
    ];
    for (place, (topic, key, value)) in (0u32..).zip(rows) {
        let numbers = [fence.0.to_be_bytes(), 2u64.to_be_bytes(), 5u64.to_be_bytes()].concat();
        let header = [&numbers[..], &place.to_be_bytes()].concat();
        let headers = OwnedHeaders::new().insert(Header { key: "everlog", value: Some(&header) });
        let topic = format!("{prefix}{topic}");
        let record = BaseRecord::to(&topic).partition(0).key(key).payload(value).headers(headers);
        producer.send(record).expect("send");
    }
    producer.flush(WITHIN).expect("flush");
    ["history", "replies"].iter().for_each(|topic| replicas_wanted(spot, topic, 2));
    let end =
        if is_commit { producer.commit_transaction(WITHIN) } else { producer.abort_transaction(WITHIN) };
    end.expect("its coordinator takes it for ended");
}

#[test]
fn a_log_that_goes_on_ends_what_a_broker_has_left_of_its_commits() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    // The end may come before its topic takes none, or after the broker is back.
    let is_left = |_| replies_left_by_a_commit(&cluster) == [Some("r".to_owned()), None];
    assert!((0..ATTEMPTS).any(is_left), "nothing was left open, or nobody ended it");
}

/// What readers find of a reply, where its topic took no end before the broker was killed. Its log goes on.
fn replies_left_by_a_commit(cluster: &Cluster) -> Vec<Option<String>> {
    let spot = Spot::on(cluster.bootstrap(), 2);
    let log = spot.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a"]).expect("append");
    let reply = Output::new(Topic::Replies, "order-1".into(), Some("r".into()));
    let large = "x".repeat(LARGE_BYTES);
    let outputs = (0..MANY_ROWS).map(|number| row(&log, 0, &number.to_string(), &large));
    let outputs = std::iter::once(reply).chain(outputs).collect();
    let (done, finished) = channel();
    let much = Commit { partition: 0, fence, applied: 1, position: "p".into(), outputs };
    log.commit(much, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
    let all = reader(&spot, "read_uncommitted");
    until(|| end_of_replies(&spot, &all) == 1);
    replicas_wanted(&spot, "replies", 2);
    wait(&finished).expect("committed, as its coordinator has it");
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    replicas_wanted(&spot, "replies", 1);
    // Nothing is committed here, and nothing is taken over.
    replies_of(&spot)
}

/// More replicas than there are take nothing.
fn replicas_wanted(spot: &Spot, topic: &str, count: u32) {
    replicas_wanted_by(spot, &format!("{}{topic}", spot.options.prefix), count);
}

/// The same of a topic with that full name.
pub fn replicas_wanted_by(spot: &Spot, topic: &str, count: u32) {
    let count = count.to_string();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &spot.options.bootstrap_servers);
    let admin: AdminClient<DefaultClientContext> = config.create().expect("an admin client");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let options = AdminOptions::new().request_timeout(Some(WITHIN));
    let topic = ResourceSpecifier::Topic(topic);
    let known = runtime.block_on(admin.describe_configs([&topic], &options)).expect("an answer");
    let known = known.into_iter().next().expect("a topic").expect("its settings").entries;
    let own = known.iter().filter(|entry| entry.source == ConfigSource::DynamicTopic);
    // What is not named falls back to what the broker has.
    let mut change = AlterConfig::new(topic);
    for entry in own.filter(|entry| entry.name != MIN_REPLICAS) {
        change = change.set(&entry.name, entry.value.as_deref().unwrap_or_default());
    }
    let change = change.set(MIN_REPLICAS, &count);
    let changed = runtime.block_on(admin.alter_configs([&change], &options)).expect("an answer");
    changed.into_iter().for_each(|topic| drop(topic.expect("a setting")));
}

fn reader(spot: &Spot, isolation: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &spot.options.bootstrap_servers).set("isolation.level", isolation);
    config.set("group.id", "hanging").set("enable.partition.eof", "true").create().expect("a consumer")
}

/// How far a reader of the first partition of `replies` gets.
fn end_of_replies(spot: &Spot, reader: &BaseConsumer) -> i64 {
    let topic = format!("{}replies", spot.options.prefix);
    // It is assigned nothing: only the time passes.
    let nothing = reader.poll(LOOK_EVERY);
    assert!(nothing.is_none_or(|record| record.is_err()));
    reader.fetch_watermarks(&topic, 0, WITHIN).expect("watermarks").1
}

/// What a reader finds there; it gets to the end.
fn replies_of(spot: &Spot) -> Vec<Option<String>> {
    let (stable, all) = (reader(spot, "read_committed"), reader(spot, "read_uncommitted"));
    until(|| end_of_replies(spot, &stable) == end_of_replies(spot, &all));
    let mut from = TopicPartitionList::new();
    let topic = format!("{}replies", spot.options.prefix);
    from.add_partition_offset(&topic, 0, Offset::Beginning).expect("a partition");
    stable.assign(&from).expect("assign");
    let mut values = Vec::new();
    loop {
        match stable.poll(WITHIN).expect("it gets on") {
            Ok(record) => values.push(record.payload().map(text)),
            Err(KafkaError::PartitionEOF(_)) => return values,
            // A broker that was restarted is reached again.
            Err(error) => println!("{error}"),
        }
    }
}

pub fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come to that in time");
    }
}
