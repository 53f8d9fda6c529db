//! The public commands: the member of the consumer group that reads them, and their retention.

pub(crate) mod member;
pub mod retention;
pub mod source;
pub(crate) mod undecodable_batch;
