//! All that knows RocksDB: the embedded log, and the committed rows of partitions.

pub mod log;
pub mod rows;
