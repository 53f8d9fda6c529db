//! Calls that change nothing: reads of a run, waits for its history or an update, and queries to its worker.

pub(crate) mod history_watch;
pub(crate) mod queries;
pub(crate) mod query_dispatch;
pub(crate) mod read;
pub(crate) mod read_waiters;
pub(crate) mod update_waiters;
