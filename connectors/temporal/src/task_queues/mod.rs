//! What is set for task queues: their configuration and their build ids.

pub(crate) mod build_ids;
pub(crate) mod config;
pub(crate) mod registry;
