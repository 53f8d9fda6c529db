//! The public commands: the member of the group that reads them, and how long they are kept.

pub(crate) mod member;
pub mod retention;
pub mod source;
pub(crate) mod undecodable_batch;
