//! Tasks and polls on several nodes: offers, claims and receipts between the nodes.

pub(crate) mod receipts;
pub(crate) mod remote;
pub(crate) mod remote_owners;
