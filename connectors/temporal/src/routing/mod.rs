//! Calls that another node has to answer: which node that is, and how a call is forwarded to it.

pub(crate) mod delivery_receipt;
pub(crate) mod forward;
pub(crate) mod in_process;
pub(crate) mod partition_reads;
pub(crate) mod peers;
pub(crate) mod route;
