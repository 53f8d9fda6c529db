//! Committed rows, read for a restore.

pub(crate) mod committed;
pub(crate) mod stream;
