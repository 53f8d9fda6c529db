//! The position row: how far a partition's outputs are committed, and all that decisions inherit.

use bytes::Bytes;
use everlog_engine::Settings;
use prost::Message;

use crate::Error;

/// Committed together with the outputs up to it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Position {
    /// The offset of the next journal record to apply.
    #[prost(uint64, tag = "1")]
    pub applied: u64,
    /// The time of the last applied record: no later one is earlier.
    #[prost(int64, tag = "2")]
    pub last_stamp_ms: i64,
    /// The offset of the latest `Owner` record.
    #[prost(uint64, tag = "3")]
    pub term: u64,
    /// When it took over.
    #[prost(int64, tag = "4")]
    pub owner_ms: i64,
    /// The limits in force.
    #[prost(message, optional, tag = "5")]
    pub settings: Option<Settings>,
    /// The journal's incarnation.
    #[prost(bytes = "bytes", tag = "6")]
    pub incarnation: Bytes,
    /// The feature level of decisions.
    #[prost(uint32, tag = "7")]
    pub level: u32,
}

impl Position {
    /// The row's bytes.
    pub fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::Decode`].
    pub fn read(bytes: Bytes) -> Result<Self, Error> {
        Self::decode(bytes).map_err(|error| Error::decode("a position row", &error))
    }
}
