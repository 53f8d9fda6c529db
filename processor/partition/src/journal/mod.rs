//! Appending to the partition's journal, applying its records in order, and committing what they yield.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod commit;
pub(crate) mod commits;
pub(crate) mod in_flight;
pub(crate) mod journal_queue;
pub(crate) mod observers;
pub(crate) mod refusal_log;
pub(crate) mod uncommitted_budget;
