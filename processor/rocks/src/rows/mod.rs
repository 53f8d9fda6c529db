//! Committed rows in RocksDB: in the database of the embedded log, or in one database per partition.

mod local_rows;
mod shared_rows;

pub use local_rows::{DatabaseMemory, LocalRows};
pub use shared_rows::SharedRows;
