//! Coordinators that rest: Kafka 4.4.0 tries to write down the end of a transaction again only when something else wakes it,
//! or after the `request.timeout.ms` of its brokers.

use everlog_log::Log;
use everlog_log::contract::Backend;
use everlog_tests::kafka::{Cluster, Version};
use everlog_tests::patience;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ConfigSource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseRecord, Producer as _};

use crate::hanging::{begun, end_for};
use crate::{TestLog, again};

const BROKERS: u32 = 3;
/// Where coordinators write down how transactions end.
const STATES: &str = "__transaction_state";
/// A coordinator rests for an hour, where nobody rouses it.
const RESTS: &str = "request.timeout.ms=3600000";
const MIN_REPLICAS: &str = "min.insync.replicas";

#[test]
fn a_coordinator_that_rests_is_roused() {
    let cluster = Cluster::start_with(Version::V4_4_0, BROKERS, &[RESTS]).expect("brokers");
    let test_log = TestLog::replicated(cluster.bootstrap(), 2, BROKERS as u16);
    let log = test_log.open();
    again(|| log.fence(0));
    // What wants as many replicas as there were takes nothing from here on.
    cluster.kill(BROKERS).expect("kill");
    patience::until_blocking("the others do without a broker", || is_missed(&test_log)).expect("in time");
    again(|| log.fence(0));
    rest_with(&test_log, "group-0");
    // Its id is given.
    again(|| log.fence(0));
}

/// Has an id's coordinator rest with the end of a transaction: its marker is in `history`, and it cannot write more.
fn rest_with(test_log: &TestLog, id: &str) {
    let prefix = &test_log.options.prefix;
    let producer = begun(test_log, id);
    let history = format!("{prefix}history");
    producer.send(BaseRecord::<[u8], [u8]>::to(&history).partition(0).key(b"k")).expect("send");
    producer.flush(patience::most()).expect("flush");
    replicas_wanted(test_log, &history, BROKERS);
    producer.abort_transaction(patience::most()).expect("its coordinator takes it for ended");
    replicas_wanted(test_log, STATES, BROKERS);
    replicas_wanted(test_log, &history, BROKERS - 1);
    let is_marked =
        || end_of(test_log, &history, "read_committed") == end_of(test_log, &history, "read_uncommitted");
    patience::until_blocking("its marker is there", is_marked).expect("in time");
    replicas_wanted(test_log, STATES, BROKERS - 1);
}

/// What has fewer replicas in step takes nothing.
fn replicas_wanted(test_log: &TestLog, topic: &str, count: u32) {
    let count = count.to_string();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &test_log.options.bootstrap_servers);
    let admin: AdminClient<DefaultClientContext> = config.create().expect("an admin client");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let options = AdminOptions::new().request_timeout(Some(patience::most()));
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

/// The others do without a broker.
fn is_missed(test_log: &TestLog) -> bool {
    let mut config = ClientConfig::new();
    let asker: BaseConsumer =
        config.set("bootstrap.servers", &test_log.options.bootstrap_servers).create().expect("a consumer");
    let Ok(told) = asker.fetch_metadata(None, patience::most()) else { return false };
    let mut partitions = told.topics().iter().flat_map(|topic| topic.partitions());
    partitions.all(|partition| partition.isr().len() < BROKERS as usize)
}

fn end_of(test_log: &TestLog, topic: &str, isolation: &str) -> i64 {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &test_log.options.bootstrap_servers).set("isolation.level", isolation);
    let reader: BaseConsumer = config.create().expect("a consumer");
    end_for(&reader, topic)
}
