//! RocksDB: the embedded log, and the committed rows of partitions. No other crate imports it.

pub mod log;
pub mod rows;
