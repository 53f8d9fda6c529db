//! Batch jobs on a node: each kind does its work at each run once, through kills, and a job that is stopped keeps its counts.
//!
//! With `EVERLOG_TEST_HOME=kafka` the node's log is on Kafka.

mod jobs;
mod kills;
mod operator;
