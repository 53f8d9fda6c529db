//! The threads that own partitions, and how partitions come to them and leave them.

pub mod levels;
pub mod recovery_pool;
pub mod set;
pub mod threads;
