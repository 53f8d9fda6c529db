//! Where a node keeps things: its log, the rows of its partitions, the keys of task tokens.

pub mod control_rows;
pub mod log_backend;
pub mod retention;
pub mod row_directories;
pub mod token_keys;
