//! What a node does besides its partitions: calls, schemas, names, topics, public commands.

pub mod auth;
pub mod commands;
pub mod gateway;
pub mod names;
pub mod schemas;
pub mod topics;
