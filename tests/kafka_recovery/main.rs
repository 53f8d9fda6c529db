//! Recovery on a real Kafka: rows that are old, damaged or foreign, topics that were made again, a process that slept.

mod client;
mod house;
mod pages;
mod pause;
mod retention;
mod rows;
mod topics;
