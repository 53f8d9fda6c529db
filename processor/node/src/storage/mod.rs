//! Where a node keeps things: its log, the rows of its partitions, the keys of task tokens, certificates for
//! development.

pub mod control_rows;
pub mod dev_certificates;
pub mod log_backend;
pub mod retention;
pub mod row_directories;
pub mod token_keys;
