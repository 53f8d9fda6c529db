//! The clients of Kafka: what librdkafka does and tells, and a consumer that reads from one offset to another.

pub(crate) mod consumer;
pub(crate) mod librdkafka;
pub(crate) mod log_lines;
pub(crate) mod reachability;
pub(crate) mod statistics;
