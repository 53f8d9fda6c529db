//! Transactions that a broker leaves without an end: Kafka 4.4.0 loses the markers that it has not written yet when it is
//! killed (KAFKA-20734).

use std::time::Duration;

use bytes::Bytes;
use everlog_log::contract::Backend;
use everlog_log::{Fence, Log, Output, Topic};
use everlog_tests::kafka::{self, Cluster, Version};
use everlog_tests::patience;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, Message};

use crate::{TestLog, again, append, commit, restored, row, text};

/// How often a broker is killed until it leaves something.
const ATTEMPTS: usize = 20;
/// What the transaction of another process writes to.
const WRITTEN: [&str; 3] = ["history", "replies", "changelog"];

#[test]
fn what_brokers_leave_without_an_end_has_one_end_everywhere() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    for is_commit in [true, false] {
        until_left(|| is_left_and_ended(&cluster, is_commit));
    }
}

/// Kills a broker again and again until it has left something. It must die at the right moment: where it never does there was
/// nothing to see, and nothing is wrong.
fn until_left(mut is_left: impl FnMut() -> bool) {
    if !(0..ATTEMPTS).any(|_| is_left()) {
        println!("nothing was left open in {ATTEMPTS} attempts: nothing is shown");
    }
}

/// Whether a broker that was killed left something of a transaction without an end; if so, all of it got one end.
fn is_left_and_ended(cluster: &Cluster, is_commit: bool) -> bool {
    let test_log = TestLog::on(cluster.bootstrap(), 2);
    let log = test_log.open();
    let fence = log.fence(0).expect("fence");
    for _ in 0..5 {
        append(&log, 0, &["a"]).expect("append");
    }
    commit(&log, 0, fence, 1, vec![row(&log, 0, "k", "before")]).expect("commit");
    let (key, incarnation) = (row(&log, 0, "k", "").key, log.incarnation());
    drop(log);
    end_for_its_coordinator(&test_log, &key, incarnation, fence, is_commit);
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    let open = left_open(&test_log);
    if open == 0 {
        return false;
    }
    // Where nobody can have seen how it ended, all of it is committed.
    let (applied, value, histories, replies) = if is_commit || open == WRITTEN.len() {
        (5, "after", 1, vec!["r"])
    } else {
        (1, "before", 0, vec![])
    };
    let log = test_log.open();
    // What hangs is ended.
    again(|| log.fence(0));
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
        replies_of(&test_log).into_iter().flatten().collect::<Vec<_>>(),
        replies,
        "readers get to the end"
    );
    again(|| commit(&log, 0, log.fence(0)?, 5, vec![row(&log, 0, "k", "later")]));
    true
}

/// Runs a transaction as the log itself does, to what its coordinator takes for the end.
fn end_for_its_coordinator(
    test_log: &TestLog,
    key: &Bytes,
    incarnation: [u8; 16],
    fence: Fence,
    is_commit: bool,
) {
    let (prefix, producer) = (&test_log.options.prefix, begun(test_log, "group-0"));
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
    producer.flush(patience::most()).expect("flush");
    let end = match is_commit {
        true => producer.commit_transaction(patience::most()),
        false => producer.abort_transaction(patience::most()),
    };
    end.expect("its coordinator takes it for ended");
}

/// In how many of its topics the transaction stays open: it is over for its coordinator, which sends no more markers.
fn left_open(test_log: &TestLog) -> usize {
    let id = format!("{}group-0", test_log.options.prefix);
    let asked =
        ["--bootstrap-server", &test_log.options.bootstrap_servers, "describe", "--transactional-id", &id];
    let state = || kafka::tool("org.apache.kafka.tools.TransactionsCommand", &asked, "");
    let is_over =
        || state().is_ok_and(|told| told.contains("CompleteCommit") || told.contains("CompleteAbort"));
    patience::until_blocking("it is over for its coordinator", is_over).expect("in time");
    let (stable, all) = (reader(test_log, "read_committed"), reader(test_log, "read_uncommitted"));
    let is_open = |topic: &&str| end_of(test_log, topic, &stable) < end_of(test_log, topic, &all);
    WRITTEN.iter().copied().filter(is_open).count()
}

#[test]
fn a_log_that_goes_on_ends_what_a_broker_has_left_of_its_commits() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    for is_taken in [false, true] {
        // The end may come before the broker is killed, or after it is back. What nobody ends keeps readers from the end.
        let (reply, mut is_there) = (Some("r".to_owned()), false);
        until_left(|| {
            let found = replies_left_by_a_commit(&cluster, is_taken);
            is_there |= found.first() == Some(&reply);
            found == [reply.clone(), None]
        });
        assert!(is_there, "its commit was answered, and is nowhere");
    }
}

/// What readers find of a reply whose broker was killed as soon as its commit was answered. Its log goes on.
///
/// Its transactional id may be taken from it, by somebody who commits nothing with it.
fn replies_left_by_a_commit(cluster: &Cluster, is_taken: bool) -> Vec<Option<String>> {
    let test_log = TestLog::on(cluster.bootstrap(), 2);
    let log = test_log.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a"]).expect("append");
    let reply = Output::new(Topic::Replies, "order-1".into(), Some("r".into()));
    commit(&log, 0, fence, 1, vec![reply]).expect("committed, as its coordinator has it");
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    let _taken = is_taken.then(|| begun(&test_log, "group-0"));
    // Nothing is committed here, and nothing is taken over.
    replies_of(&test_log)
}

fn reader(test_log: &TestLog, isolation: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &test_log.options.bootstrap_servers).set("isolation.level", isolation);
    config.set("group.id", "hanging").set("enable.partition.eof", "true").create().expect("a consumer")
}

fn end_of_replies(test_log: &TestLog, reader: &BaseConsumer) -> i64 {
    end_of(test_log, "replies", reader)
}

/// How far a reader of the first partition of a topic gets.
fn end_of(test_log: &TestLog, topic: &str, reader: &BaseConsumer) -> i64 {
    end_for(reader, &format!("{}{topic}", test_log.options.prefix))
}

/// How far a reader, which is assigned nothing, gets in the first partition of a topic.
pub fn end_for(reader: &BaseConsumer, topic: &str) -> i64 {
    let mut end = None;
    let is_told = || {
        // Errors of its connections.
        while let Some(nothing) = reader.poll(Duration::ZERO) {
            assert!(nothing.is_err());
        }
        // A broker that is just back does not know yet what it leads.
        end = reader.fetch_watermarks(topic, 0, patience::most()).ok();
        end.is_some()
    };
    patience::until_blocking(topic, is_told).expect("in time");
    end.expect("it is told").1
}

/// What a reader finds there; it gets to the end.
fn replies_of(test_log: &TestLog) -> Vec<Option<String>> {
    let (stable, all) = (reader(test_log, "read_committed"), reader(test_log, "read_uncommitted"));
    let has_ended = || end_of_replies(test_log, &stable) == end_of_replies(test_log, &all);
    patience::until_blocking("the replies have their ends", has_ended).expect("in time");
    let mut from = TopicPartitionList::new();
    let topic = format!("{}replies", test_log.options.prefix);
    from.add_partition_offset(&topic, 0, Offset::Beginning).expect("a partition");
    stable.assign(&from).expect("assign");
    let mut values = Vec::new();
    let deadline = patience::deadline();
    while !deadline.is_over() {
        match stable.poll(deadline.left()) {
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
pub fn begun(test_log: &TestLog, id: &str) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &test_log.options.bootstrap_servers);
    config.set("transactional.id", format!("{}{id}", test_log.options.prefix));
    let producer: BaseProducer = config.create().expect("a producer");
    producer.init_transactions(patience::most()).expect("init");
    producer.begin_transaction().expect("begin");
    producer
}
