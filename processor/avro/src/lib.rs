//! The public topics, as Avro in Confluent's wire format; commands also as JSON.
//!
//! [`event`], [`outcome`] and [`rejection`] are written here and read by others. [`command`] is written by others and read
//! here: its bytes are validated (`validator`) before they are decoded. Internal bytes are in the crate `wire`.

pub mod blob;
mod codec;
pub mod command;
mod compiled_schema;
pub mod event;
pub mod failure;
pub mod outcome;
pub mod payload;
mod proto_update;
pub mod rejection;
pub mod schema;
mod validator;
mod writer;

pub use crate::codec::{Framed, HEAD_BYTES, frame, read, write};
pub use crate::schema::{PublicTopic, Writer, WriterError};
pub use crate::validator::Bounds;

/// Bytes of a public topic that cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They do not begin with 0 and the id of a schema.
    #[error("not Avro in Confluent's wire format: {detail}")]
    Frame {
        /// What is wrong.
        detail: &'static str,
    },
    /// They are not what their schema says, or more than is taken.
    #[error("not a {noun}: {detail}")]
    Body {
        /// What they should be.
        noun: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// A record that its own schema does not take: a fault of this release.
    #[error("a {noun} cannot be written: {detail}")]
    Write {
        /// What was to be written.
        noun: &'static str,
        /// What the encoder says.
        detail: String,
    },
}
