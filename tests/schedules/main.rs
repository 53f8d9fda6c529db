//! Schedules on a node: through kills each time of a specification has one action, or is counted among those that have none.
//!
//! With `EVERLOG_TEST_HOME=kafka` the node's log is on Kafka.

mod kills;
mod planner;
