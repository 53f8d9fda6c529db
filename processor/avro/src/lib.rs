//! The public topics: what everyone may read and write, as Avro in Confluent's wire format, commands also as JSON.
//!
//! [`event`] and [`outcome`] and [`rejection`] are written here and read by the world; [`command`] is written by
//! the world and read here: it is checked (`validator`) before anything takes memory for it.

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
