//! What a node does besides its partitions: calls, certificates, schemas, names, topics, public commands.

pub mod auth;
pub mod certificates;
pub mod command_spans;
pub mod commands;
pub mod gateway;
pub mod names;
pub mod partition_options;
pub mod schemas;
pub mod topics;
