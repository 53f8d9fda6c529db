//! Tasks and polls on several nodes: offers, claims and receipts between the nodes.

pub(crate) mod remote;
