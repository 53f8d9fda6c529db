//! Restores: committed rows and positions, read at once or in chunks.

pub(crate) mod committed;
pub(crate) mod stream;
