//! A journal record: who appended it, under which term, and what it asks for.

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::input::Input;
use prost::Message;

use crate::Error;

/// The newest version of a record that this release writes and reads.
pub const VERSION: u32 = 1;

/// One record of a journal.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Record {
    /// Of the encoding; raised when an old reader must not go on.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The offset of the `Owner` record under which it was appended; 0 for an `Owner` record itself.
    #[prost(uint64, tag = "2")]
    pub term: u64,
    /// What it asks for.
    #[prost(oneof = "Body", tags = "3, 4, 5")]
    pub body: Option<Body>,
}

/// What a record asks for. Records are handled one at a time, so the largest kind may set the size.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(clippy::large_enum_variant)]
pub enum Body {
    /// A node takes the partition over; the record's offset becomes the term.
    #[prost(message, tag = "3")]
    Owner(Owner),
    /// From here on these limits hold.
    #[prost(message, tag = "4")]
    Settings(Settings),
    /// An order for a Workflow Id.
    #[prost(message, tag = "5")]
    Input(Input),
}

/// Who takes a partition over.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Owner {
    /// The node.
    #[prost(string, tag = "1")]
    pub node: String,
}

/// One entry of the `events` topic in the embedded log: the events that one record gave one run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EventBatch {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The run.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The id of the first event.
    #[prost(int64, tag = "4")]
    pub first_event_id: i64,
    /// The events, an encoded `History`.
    #[prost(bytes = "bytes", tag = "5")]
    pub history: Bytes,
    /// The journal record that caused them.
    #[prost(uint64, tag = "6")]
    pub offset: u64,
}

impl Record {
    /// A record of this release.
    pub fn new(term: u64, body: Body) -> Self {
        Self { version: VERSION, term, body: Some(body) }
    }

    /// The record's bytes.
    pub fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`Error::Decode`]: not a record; [`Error::Version`]: written by a later release.
    pub fn read(bytes: Bytes) -> Result<Self, Error> {
        let record = Self::decode(bytes).map_err(|error| Error::decode("a journal record", &error))?;
        if record.version > VERSION {
            return Err(Error::Version { what: "a journal record", version: record.version, known: VERSION });
        }
        Ok(record)
    }
}
