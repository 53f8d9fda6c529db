//! Schedules on a node: through kills each time of a specification has one action, or is counted among those that have none.
//!
//! With `EVERLOG_TEST_HOME=kafka` two nodes share a log on Kafka, and one is killed at a time. `EVERLOG_FULL=1` has more schedules,
//! times and kills.

mod kills;
mod nodes;
mod planner;
