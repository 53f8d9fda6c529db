//! Transactions that a broker leaves without an end: Kafka 4.4.0 loses the markers that it has not written yet when it is
//! killed (KAFKA-20734).

use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::contract::Place;
use everlog_log::{Fence, Log, Output, Topic};
use everlog_tests::kafka::{Cluster, Version};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, Message};

use crate::{Spot, WITHIN, append, commit, restored, row, text};

/// How often a broker is killed until it leaves something.
const ATTEMPTS: usize = 20;
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What the transaction of another process writes to.
const WRITTEN: [&str; 3] = ["history", "replies", "changelog"];
/// What is open for so long after a restart hangs.
const STAYS_FOR: Duration = Duration::from_secs(3);

#[test]
fn what_brokers_leave_without_an_end_has_one_end_everywhere() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    for is_commit in [true, false] {
        let is_left = |_| is_left_and_ended(&cluster, is_commit);
        assert!((0..ATTEMPTS).any(is_left), "nothing was left open");
    }
}

/// Whether a broker that was killed left something of a transaction without an end; if so, all of it got one end.
fn is_left_and_ended(cluster: &Cluster, is_commit: bool) -> bool {
    let spot = Spot::on(cluster.bootstrap(), 2);
    let log = spot.open();
    let fence = log.fence(0).expect("fence");
    for _ in 0..5 {
        append(&log, 0, &["a"]).expect("append");
    }
    commit(&log, 0, fence, 1, vec![row(&log, 0, "k", "before")]).expect("commit");
    let (key, incarnation) = (row(&log, 0, "k", "").key, log.incarnation());
    drop(log);
    end_for_its_coordinator(&spot, &key, incarnation, fence, is_commit);
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    let open = left_open(&spot);
    if open == 0 {
        return false;
    }
    // Where nobody can have seen how it ended, all of it is committed.
    let (applied, value, histories, replies) = if is_commit || open == WRITTEN.len() {
        (5, "after", 1, vec!["r"])
    } else {
        (1, "before", 0, vec![])
    };
    let log = spot.open();
    let fence = log.fence(0).expect("what hangs is ended");
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
    assert_eq!(
        replies_of(&spot).into_iter().flatten().collect::<Vec<_>>(),
        replies,
        "readers get to the end"
    );
    commit(&log, 0, fence, 5, vec![row(&log, 0, "k", "later")]).expect("commit");
    true
}

/// Runs a transaction as the log itself does, to what its coordinator takes for the end.
fn end_for_its_coordinator(spot: &Spot, key: &Bytes, incarnation: [u8; 16], fence: Fence, is_commit: bool) {
    let (prefix, producer) = (&spot.options.prefix, begun(spot, "group-0"));
    let position = [&5u64.to_be_bytes()[..], &incarnation, &fence.0.to_be_bytes(), b"p"].concat();
    let position_key = [0xff, 0xff, b'p', 0, 0, 0, 0];
    let [history, replies, changelog] = WRITTEN;
    let rows = [
        (replies, &b"order-1"[..], &b"r"[..]),
        (history, key, b"h"),
        (changelog, key, b"after"),
        (changelog, &position_key, &position),
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
    let end =
        if is_commit { producer.commit_transaction(WITHIN) } else { producer.abort_transaction(WITHIN) };
    end.expect("its coordinator takes it for ended");
}

/// In how many of its topics the transaction stays open.
fn left_open(spot: &Spot) -> usize {
    let (stable, all) = (reader(spot, "read_committed"), reader(spot, "read_uncommitted"));
    for topic in WRITTEN {
        end_of(spot, topic, &all);
    }
    let since = Instant::now();
    let is_open = |topic: &&str| end_of(spot, topic, &stable) < end_of(spot, topic, &all);
    let mut open = WRITTEN.to_vec();
    while since.elapsed() < STAYS_FOR {
        open.retain(is_open);
    }
    open.len()
}

#[test]
fn a_log_that_goes_on_ends_what_a_broker_has_left_of_its_commits() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    for is_taken in [false, true] {
        // The end may come before the broker is killed, or after it is back.
        let is_left = |_| replies_left_by_a_commit(&cluster, is_taken) == [Some("r".to_owned()), None];
        assert!((0..ATTEMPTS).any(is_left), "nothing was left open, or nobody ended it");
    }
}

/// What readers find of a reply whose broker was killed as soon as its commit was answered. Its log goes on.
///
/// Its transactional id may be taken from it, by somebody who commits nothing with it.
fn replies_left_by_a_commit(cluster: &Cluster, is_taken: bool) -> Vec<Option<String>> {
    let spot = Spot::on(cluster.bootstrap(), 2);
    let log = spot.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a"]).expect("append");
    let reply = Output::new(Topic::Replies, "order-1".into(), Some("r".into()));
    commit(&log, 0, fence, 1, vec![reply]).expect("committed, as its coordinator has it");
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    let _taken = is_taken.then(|| begun(&spot, "group-0"));
    // Nothing is committed here, and nothing is taken over.
    replies_of(&spot)
}

fn reader(spot: &Spot, isolation: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &spot.options.bootstrap_servers).set("isolation.level", isolation);
    config.set("group.id", "hanging").set("enable.partition.eof", "true").create().expect("a consumer")
}

fn end_of_replies(spot: &Spot, reader: &BaseConsumer) -> i64 {
    end_of(spot, "replies", reader)
}

/// How far a reader of the first partition of a topic gets.
fn end_of(spot: &Spot, topic: &str, reader: &BaseConsumer) -> i64 {
    end_for(reader, &format!("{}{topic}", spot.options.prefix))
}

/// How far a reader, which is assigned nothing, gets in the first partition of a topic.
pub fn end_for(reader: &BaseConsumer, topic: &str) -> i64 {
    let deadline = Instant::now() + WITHIN;
    loop {
        // Only the time passes.
        let nothing = reader.poll(LOOK_EVERY);
        assert!(nothing.is_none_or(|record| record.is_err()));
        match reader.fetch_watermarks(topic, 0, WITHIN) {
            Ok((_, end)) => return end,
            // A broker that is just back does not know yet what it leads.
            Err(error) => assert!(Instant::now() < deadline, "{topic}: {error}"),
        }
    }
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
    let deadline = Instant::now() + WITHIN;
    while Instant::now() < deadline {
        match stable.poll(LOOK_EVERY) {
            Some(Ok(record)) => values.push(record.payload().map(text)),
            Some(Err(KafkaError::PartitionEOF(_))) => return values,
            // A broker that was restarted is reached again.
            Some(Err(error)) => println!("{error}"),
            None => {}
        }
    }
    panic!("it does not get to the end: {values:?}");
}

/// A transaction of another process, by an id that a log has.
pub fn begun(spot: &Spot, id: &str) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &spot.options.bootstrap_servers);
    config.set("transactional.id", format!("{}{id}", spot.options.prefix));
    let producer: BaseProducer = config.create().expect("a producer");
    producer.init_transactions(WITHIN).expect("init");
    producer.begin_transaction().expect("begin");
    producer
}

pub fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come to that in time");
    }
}
