//! Recovery on a real Kafka: rows that are old, damaged or foreign, topics that were made again, a process that slept.

mod client;
mod house;
mod pause;
mod rows;
mod topics;
