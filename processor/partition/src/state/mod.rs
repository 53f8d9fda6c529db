//! The runs of the partition, in memory over the rows of the store, and their deletion.

pub(crate) mod history_deletion;
pub(crate) mod index_rows;
pub(crate) mod namespace_deletion;
pub(crate) mod reset_history;
pub(crate) mod run_index;
pub(crate) mod run_lookup;
pub(crate) mod run_store;
