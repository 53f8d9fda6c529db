//! Errors of a log, one variant per reaction of the caller.

use std::path::PathBuf;

use crate::{Fence, Offset, PartitionId};

/// Cloneable, because one failed write answers all its callers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A newer owner took the partition: step down.
    #[error("partition {partition}: fence {} is older than {}", given.0, current.0)]
    Fenced {
        /// The partition of the commit.
        partition: PartitionId,
        /// The fence that the caller showed.
        given: Fence,
        /// The fence that is valid now.
        current: Fence,
    },
    /// The offset is not there: trimmed already, or not written yet.
    #[error("partition {partition}: offset {wanted} is outside {start}..{end}")]
    OutOfRange {
        /// The partition that was asked.
        partition: PartitionId,
        /// The offset that was asked for.
        wanted: Offset,
        /// The first offset that is there.
        start: Offset,
        /// The next offset to be written, or for a trim the highest offset allowed.
        end: Offset,
    },
    /// No room on the disk: nothing was written; the same call works once there is space again.
    #[error("no space left: {detail}")]
    Full {
        /// Which limit was met.
        detail: String,
    },
    /// It may have happened, or happen later: find out before going on.
    #[error("unknown outcome: {detail}")]
    Unknown {
        /// What was attempted, and what was reported.
        detail: String,
    },
    /// The queue in front of the writer is full: nothing was written; try again later.
    #[error("the log is busy: {waiting_items} appends of {waiting_bytes} bytes are waiting")]
    Busy {
        /// Appends that wait.
        waiting_items: usize,
        /// Their bytes.
        waiting_bytes: usize,
    },
    /// The call itself is wrong (unknown partition, foreign bucket, tombstone in an append-only topic, too large).
    #[error("refused: {detail}")]
    Refused {
        /// What is wrong with it.
        detail: String,
    },
    /// The brokers do not permit it: it works once they do.
    #[error("{detail}; to permit it: {fix}")]
    Denied {
        /// Who is denied what.
        detail: String,
        /// The commands that permit it.
        fix: String,
    },
    /// Bytes on the disk are not what was written there.
    #[error("{} is damaged: {detail}. Way out: {way_out}", path.display())]
    Corrupt {
        /// The damaged file, or the directory when no single file is to blame.
        path: PathBuf,
        /// What was found.
        detail: String,
        /// What an operator can do.
        way_out: String,
    },
    /// Another process has the directory.
    #[error("{} is in use by another process", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory was made with other settings or by another version.
    #[error("{what}: the directory has {stored}, wanted is {wanted}")]
    Mismatch {
        /// What differs: "format version" or "partitions".
        what: &'static str,
        /// The directory's value.
        stored: u64,
        /// The wanted value.
        wanted: u64,
    },
    /// The disk or the file system failed. From the writer this is the end of the log: the process should exit.
    #[error("{detail}")]
    Io {
        /// Where, and what the system said.
        detail: String,
    },
    /// The log was closed, or ended after a failed write or sync.
    #[error("the log is closed")]
    Closed,
}

impl Error {
    /// `Full` where the disk is, `Io` else: `what` was attempted with the file at `path`.
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let detail = format!("{what} {}: {error}", path.display());
        if error.kind() == std::io::ErrorKind::StorageFull {
            Error::Full { detail }
        } else {
            Error::Io { detail }
        }
    }

    /// A call that is wrong in itself.
    pub fn refused(detail: impl Into<String>) -> Self {
        Error::Refused { detail: detail.into() }
    }
}
