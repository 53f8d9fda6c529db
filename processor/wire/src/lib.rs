//! Internal bytes: journal records, state rows and positions, as tagged fields of protocol buffers.
//!
//! Public topics are in the crate `avro`. A tag that was released keeps its meaning.

mod position;
pub mod public_command;
mod record;
pub mod rows;

pub use crate::position::{MessageCursor, Position, RestoreCheckpoint};
pub use crate::record::{
    Barrier, Body, LEVEL_VERSION, LevelRaised, NamespaceDeleted, OutboxMessage, Owner, Record, VERSION,
};

/// Bytes that cannot be read as what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They are not an encoded message of the kind.
    #[error("{what} cannot be decoded: {detail}")]
    Decode {
        /// What was read.
        what: &'static str,
        /// What the decoder says.
        detail: String,
    },
    /// They were written by a later release.
    #[error(
        "{what} has version {version}, this release reads up to {known}: install the release that wrote it, or a newer one"
    )]
    Version {
        /// What was read.
        what: &'static str,
        /// The version found.
        version: u32,
        /// The newest version that is understood.
        known: u32,
    },
}

impl Error {
    fn decode(what: &'static str, error: &prost::DecodeError) -> Self {
        Self::Decode { what, detail: error.to_string() }
    }
}
