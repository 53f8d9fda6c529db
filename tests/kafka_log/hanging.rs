//! Transactions that a broker leaves without an end.

use everlog_log::contract::Place;
use everlog_log::{Fence, Log, Topic};
use everlog_log_kafka::Kafka;
use everlog_tests::kafka::{Cluster, Version, tool};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::{Spot, WITHIN, append, commit, restored, row};

/// Kafka 4.4.0 loses the markers that it has not written yet when it is killed (KAFKA-20734).
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
        end_without_markers_in_history(&spot, &log, fence, is_commit);
        (spot, is_commit)
    });
    cluster.kill(1).expect("kill");
    cluster.restart(1).expect("restart");
    for (spot, is_commit) in spots {
        replicas_wanted(&spot, 1);
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
        commit(&log, 0, fence, 5, vec![row(&log, 0, "k", "later")]).expect("commit");
    }
}

/// Runs a transaction as the log itself does, whose end `history` cannot be told of.
fn end_without_markers_in_history(spot: &Spot, log: &Kafka, fence: Fence, is_commit: bool) {
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
        ("history", &key[..], &b"h"[..]),
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
    replicas_wanted(spot, 2);
    let end =
        if is_commit { producer.commit_transaction(WITHIN) } else { producer.abort_transaction(WITHIN) };
    end.expect("its coordinator takes it for ended");
}

/// More replicas than there are take nothing.
fn replicas_wanted(spot: &Spot, count: u32) {
    let (topic, config) = (format!("{}history", spot.options.prefix), format!("min.insync.replicas={count}"));
    let brokers =
        ["--bootstrap-server", &spot.options.bootstrap_servers, "--alter", "--entity-type", "topics"];
    let change = ["--entity-name", &topic, "--add-config", &config];
    tool("kafka.admin.ConfigCommand", &[&brokers[..], &change].concat(), "").expect("a setting");
}
