//! Why a partition cannot go on.

/// An error that ends the ownership of a partition; what was acknowledged is safe in the journal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log refused or failed.
    #[error(transparent)]
    Log(#[from] everlog_log::Error),
    /// The rows could not be read.
    #[error(transparent)]
    Store(#[from] everlog_store::Error),
    /// Bytes that are there cannot be understood.
    #[error(transparent)]
    Wire(#[from] everlog_wire::Error),
    /// Another owner has appended after this one: step down.
    #[error("partition {partition} was taken over by {node}")]
    Superseded {
        /// The partition.
        partition: u32,
        /// Who took it over.
        node: String,
    },
    /// Rows that are kept beside the log do not fit it: set them aside and restore all of them.
    #[error("partition {partition}: the rows kept here cannot be used: {detail}")]
    Stale {
        /// The partition.
        partition: u32,
        /// Why in a word.
        fault: RowsFault,
        /// What does not fit.
        detail: String,
    },
    /// The journal is not what the position says.
    #[error("partition {partition}: {detail}")]
    Journal {
        /// The partition.
        partition: u32,
        /// What does not fit.
        detail: String,
    },
}

/// Why rows that are kept beside the log are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsFault {
    /// They stand further than the log: what they have was never committed, or is lost.
    Ahead,
    /// Bytes on the disk are not those that were written.
    Corrupt,
    /// They belong to other topics.
    Foreign,
    /// They are so old that the log may have forgotten which rows were deleted since.
    Old,
    /// Their first restore was not finished.
    Unfinished,
}

impl RowsFault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ahead, Self::Corrupt, Self::Foreign, Self::Old, Self::Unfinished];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Corrupt => "corrupt",
            Self::Foreign => "foreign",
            Self::Old => "old",
            Self::Unfinished => "unfinished",
        }
    }
}

impl Error {
    /// Topics do not fit each other: something of the log is gone.
    pub(crate) fn lost(partition: u32, detail: &str) -> Self {
        let way_out = "stop every node and find out who deleted records or made a topic again; then restore the topics \
                       from a backup of the cluster, or begin anew with another prefix";
        Self::Journal { partition, detail: format!("{detail}. Way out: {way_out}") }
    }

    pub(crate) fn damaged(what: &'static str, error: &prost::DecodeError) -> Self {
        Self::Wire(everlog_wire::Error::Decode { what, detail: error.to_string() })
    }
}
