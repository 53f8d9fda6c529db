//! The journals: append, follow, read, truncate.

pub(crate) mod append;
pub(crate) mod follow;
pub(crate) mod read;
pub(crate) mod truncation;
