//! The journals: appended to, followed, read and truncated.

pub(crate) mod append;
pub(crate) mod follow;
pub(crate) mod read;
pub(crate) mod truncation;
