//! Recovery on a real Kafka: rows that are old, damaged or foreign, topics that were made again, a process that slept.

mod client;
mod pages;
mod pause;
mod retention;
mod rows;
mod test_log;
mod topics;
