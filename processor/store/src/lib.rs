//! State rows of a partition: uncommitted changes in memory over committed rows.
//!
//! A row is bytes: this crate knows no workflow and writes to no log. The partition takes the changes of a commit from
//! here, writes them to the log, and reports when they are committed; then they become committed rows.

mod committed_rows;
mod overlay;
mod store;

pub use everlog_log::Space;

pub use crate::committed_rows::{CommittedRows, MemoryRows, RowChange, RowsCheckpoint, Seek};
pub use crate::store::Store;

/// One row of a commit: None deletes.
pub type Change = (Space, bytes::Bytes, Option<bytes::Bytes>);

/// Why a row could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes on the disk are not those that were written: the partition stops.
    #[error("damaged rows: {detail}")]
    Corrupt {
        /// What the database found, with the file's name.
        detail: String,
    },
    /// The disk or the file system failed: the partition stops.
    #[error("{detail}")]
    Io {
        /// What the system said.
        detail: String,
    },
}
