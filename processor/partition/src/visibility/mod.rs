//! Visibility: the index of the partition's runs, written with the rows of their state, and lists and counts over it.

pub(crate) mod check;
pub(crate) mod index_rows;
pub(crate) mod messages;
pub(crate) mod reads;
pub(crate) mod run_index;
