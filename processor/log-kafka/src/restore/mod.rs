//! Restores: committed rows and positions, read at once or in chunks, of the last commit or of one before it.

pub(crate) mod committed;
pub(crate) mod past_commit;
pub(crate) mod stream;
