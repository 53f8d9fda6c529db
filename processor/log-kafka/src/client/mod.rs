//! Clients of Kafka: log lines, statistics, calls that the bindings lack, and reading from one offset to another.

pub(crate) mod consumer;
pub(crate) mod group_offsets;
pub(crate) mod librdkafka;
pub(crate) mod log_lines;
pub(crate) mod properties;
pub(crate) mod properties_file;
pub(crate) mod reachability;
pub(crate) mod settings;
pub(crate) mod statistics;
pub(crate) mod visible_topics;
