//! State rows as bytes: what a partition has changed lies in memory over the rows that are committed.
//!
//! Knows nothing of workflows or of the log: a commit is handed out as a list of rows, and whoever writes it to the
//! log says when it is there; where the log does not keep rows itself, they are written to a base of our own then.

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
    /// The bytes on the disk are not those that were written: stop the partition.
    #[error("damaged rows: {detail}")]
    Corrupt {
        /// What the database found, with the file's name.
        detail: String,
    },
    /// The disk or the file system failed: stop the partition.
    #[error("{detail}")]
    Io {
        /// What the system said.
        detail: String,
    },
}
