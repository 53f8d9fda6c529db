//! Plain Kafka clients, none of our code in them: what the brokers themselves cost, and what anybody sees of the topics.

pub mod commands;
pub mod events;
pub mod probe;

mod topic;

use std::time::Duration;

use rdkafka::ClientConfig;

/// How long a broker may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// What every client here is told.
fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    config
}

/// A producer as the journal has it: acknowledged by all replicas, each record once, nothing held back.
fn idempotent(bootstrap: &str) -> ClientConfig {
    let mut config = client(bootstrap);
    config.set("acks", "all").set("enable.idempotence", "true").set("linger.ms", "0");
    config
}
