//! A journal record: who appended it, under which term, and what it asks for.

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::request::Input;
use prost::Message;

use crate::Error;
use crate::public_command::{DeliverDelayed, InvalidCommand, PublicCommand};

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
    #[prost(oneof = "Body", tags = "3, 4, 5, 6, 7, 8, 9, 10, 11")]
    pub body: Option<Body>,
    /// By which its sender knows it again in a journal that others write too; counted from 1, 0 = none.
    #[prost(uint64, tag = "14")]
    pub serial: u64,
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
    /// A public command. It stands under no term: whoever brought it counts by its mark.
    #[prost(message, tag = "6")]
    PublicCommand(PublicCommand),
    /// A public record that is no command. It stands under no term, either.
    #[prost(message, tag = "7")]
    InvalidCommand(InvalidCommand),
    /// Nothing: once it is applied, so is all that was durable when it was sent.
    #[prost(message, tag = "8")]
    Barrier(Barrier),
    /// The moment has come for a public command that was to wait.
    #[prost(message, tag = "9")]
    DeliverDelayed(DeliverDelayed),
    /// An order that a run of another partition, or of this one, has sent. It stands under no term: its number counts.
    #[prost(message, tag = "10")]
    OutboxMessage(OutboxMessage),
    /// A namespace was deleted: from here on nothing begins in it.
    #[prost(message, tag = "11")]
    NamespaceDeleted(NamespaceDeleted),
}

/// An order from one partition to another, numbered without a gap for each pair of them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutboxMessage {
    /// The partition whose journal has yielded it.
    #[prost(uint32, tag = "1")]
    pub from: u32,
    /// From 1.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// The order.
    #[prost(message, optional, tag = "3")]
    pub input: Option<Input>,
}

impl OutboxMessage {
    /// The bytes of the journal record that carries it.
    pub fn record(self) -> Bytes {
        Record::new(0, Body::OutboxMessage(self)).encode()
    }
}

/// Who takes a partition over.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Owner {
    /// The node.
    #[prost(string, tag = "1")]
    pub node: String,
    /// Random, made each time that a node takes a partition over.
    #[prost(bytes = "bytes", tag = "2")]
    pub instance: Bytes,
    /// The level of decisions from here on; a release that knew of none says 0.
    #[prost(uint32, tag = "3")]
    pub level: u32,
}

/// The end of a namespace, in one partition.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NamespaceDeleted {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
}

/// What a reader waits for where nothing else is being appended.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Barrier {}

impl Record {
    /// A record of this release.
    pub fn new(term: u64, body: Body) -> Self {
        Self { version: VERSION, term, body: Some(body), serial: 0 }
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
