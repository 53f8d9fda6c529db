//! Outputs: the transactions of a partition group, its fences, and hanging transactions.

pub(crate) mod coordinator_wakeup;
pub(crate) mod fence_table;
pub(crate) mod group;
pub(crate) mod hanging_transactions;
pub(crate) mod transaction;
