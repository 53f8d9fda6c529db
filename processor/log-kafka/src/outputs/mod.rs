//! Outputs: the transactions of a partition group, its fences, and transactions that hang.

pub(crate) mod coordinator_wakeup;
pub(crate) mod fence_table;
pub(crate) mod group;
pub(crate) mod hanging_transactions;
pub(crate) mod transaction;
