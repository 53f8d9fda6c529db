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

impl Error {
    pub(crate) fn damaged(what: &'static str, error: &prost::DecodeError) -> Self {
        Self::Wire(everlog_wire::Error::Decode { what, detail: error.to_string() })
    }
}
