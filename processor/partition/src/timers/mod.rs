//! Deadlines of runs and delayed commands, in the order in which they become due by the log's time.

pub(crate) mod delayed_commands;
pub(crate) mod due_index;
pub(crate) mod fire;
pub(crate) mod log_clock;
pub(crate) mod timer_rows;
pub(crate) mod timer_schedule;
