//! A journal record: its sender, its term, and its body.

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::request::RequestRecord;
use prost::Message;

use crate::Error;
use crate::public_command::{DeliverDelayed, InvalidCommand, PublicCommand};

/// The version of most records.
pub const VERSION: u32 = 1;
/// The version of `Level` records, and the newest that this release reads. A release of before does not go on behind one.
pub const LEVEL_VERSION: u32 = 2;

/// One record of a journal.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Record {
    /// Of the encoding; raised when an old reader must not go on.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The offset of the `Owner` record under which it was appended; 0 for an `Owner` record itself.
    #[prost(uint64, tag = "2")]
    pub term: u64,
    /// Its body.
    #[prost(oneof = "Body", tags = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub body: Option<Body>,
    /// The sender's number of the record, in a journal with several writers; counted from 1, 0 = none.
    #[prost(uint64, tag = "14")]
    pub serial: u64,
}

/// The body of a record. Records are handled one at a time, so the largest kind may set the size.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(clippy::large_enum_variant)]
pub enum Body {
    /// A node takes the partition over; the record's offset becomes the term.
    #[prost(message, tag = "3")]
    Owner(Owner),
    /// These limits are in force from here on.
    #[prost(message, tag = "4")]
    Settings(Settings),
    /// A request to a Workflow Id.
    #[prost(message, tag = "5")]
    Input(RequestRecord),
    /// A public command. It has no term: it counts once by its source position.
    #[prost(message, tag = "6")]
    PublicCommand(PublicCommand),
    /// A public record that is no valid command. It has no term either.
    #[prost(message, tag = "7")]
    InvalidCommand(InvalidCommand),
    /// Empty: once it is applied, so is everything that was durable when it was sent.
    #[prost(message, tag = "8")]
    Barrier(Barrier),
    /// The time of a delayed public command has come.
    #[prost(message, tag = "9")]
    DeliverDelayed(DeliverDelayed),
    /// A request sent by a run of another partition, or of this one. It has no term: it counts once by its number.
    #[prost(message, tag = "10")]
    OutboxMessage(OutboxMessage),
    /// A namespace was deleted: no run starts in it from here on.
    #[prost(message, tag = "11")]
    NamespaceDeleted(NamespaceDeleted),
    /// The level of decisions was raised. It has no term: it counts whoever owns the partition.
    #[prost(message, tag = "12")]
    Level(LevelRaised),
}

/// A request from one partition to another, numbered without gaps for each pair of partitions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutboxMessage {
    /// The sending partition.
    #[prost(uint32, tag = "1")]
    pub from: u32,
    /// From 1.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// The request.
    #[prost(message, optional, tag = "3")]
    pub input: Option<RequestRecord>,
    /// What the sender had applied of its journal when it sent this: the offset behind the record that it follows from.
    /// 0 = not known. Nothing is decided by it; an export finds by it what belongs together.
    #[prost(uint64, tag = "4")]
    pub sender_applied: u64,
}

impl OutboxMessage {
    /// The bytes of the journal record that carries it.
    pub fn record(self) -> Bytes {
        Record::new(0, Body::OutboxMessage(self)).encode()
    }
}

/// The owner that takes a partition over.
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

/// The deletion of a namespace, in one partition.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NamespaceDeleted {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
}

/// The level of decisions, from here on unless the partition has a higher one.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct LevelRaised {
    /// The level.
    #[prost(uint32, tag = "1")]
    pub level: u32,
}

/// A record that a reader waits for where nothing else is appended.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Barrier {}

impl Record {
    /// A record of this release.
    pub fn new(term: u64, body: Body) -> Self {
        let version = if matches!(body, Body::Level(_)) { LEVEL_VERSION } else { VERSION };
        Self { version, term, body: Some(body), serial: 0 }
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
        if record.version > LEVEL_VERSION {
            return Err(Error::Version {
                what: "a journal record",
                version: record.version,
                known: LEVEL_VERSION,
            });
        }
        Ok(record)
    }
}
