//! What the ingress brings into a journal: public commands, each marked with where it stood in its topic.

use bytes::Bytes;
use everlog_engine::request::Input;

/// How far the records of one partition of a source topic were applied: one row per source, and what a journal record
/// carries. A record is applied only if its offset is not below the mark's `next`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SourcePosition {
    /// The topic's id, 16 bytes: a topic of the same name made later is another one.
    #[prost(bytes = "bytes", tag = "1")]
    pub incarnation: Bytes,
    /// The partition.
    #[prost(uint32, tag = "2")]
    pub partition: u32,
    /// Of a journal record: the record's offset. Of a mark: the offset after the last one that was applied.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    /// The topic's name, for people.
    #[prost(string, tag = "4")]
    pub topic: String,
    /// Of a journal record: the record counts only if the mark has reached this offset, the one after the record before
    /// it in the same append. Of an append whose outcome is unknown a part may be missing; all of it comes again.
    #[prost(uint64, tag = "5")]
    pub follows: u64,
}

/// A header of a public record.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Header {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub value: Option<Bytes>,
}

/// A public record as it was.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Original {
    /// The key.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub key: Option<Bytes>,
    /// The value, cut where it is larger than a record may be.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub value: Option<Bytes>,
    /// How many bytes the value had.
    #[prost(uint64, tag = "3")]
    pub value_bytes: u64,
    /// The headers, in order.
    #[prost(message, repeated, tag = "4")]
    pub headers: Vec<Header>,
}

/// Where the outcome of a command goes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReplyTo {
    /// The topic, which was held against the allow-list.
    #[prost(string, tag = "1")]
    pub topic: String,
    /// Handed back with the outcome.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub correlation_id: Option<Bytes>,
}

/// A public command that could be read: an order, what its headers ask for, and the record itself for a rejection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PublicCommand {
    /// Where it stood.
    #[prost(message, optional, tag = "1")]
    pub source: Option<SourcePosition>,
    /// The order.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Input>,
    /// The namespace, by name.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The command's id.
    #[prost(string, optional, tag = "4")]
    pub command_id: Option<String>,
    /// Where the outcome goes, if anywhere.
    #[prost(message, optional, tag = "5")]
    pub reply_to: Option<ReplyTo>,
    /// Not before this moment, in ms since 1970-01-01 UTC; 0 = at once.
    #[prost(int64, tag = "6")]
    pub deliver_at_ms: i64,
    /// W3C trace context.
    #[prost(string, optional, tag = "7")]
    pub traceparent: Option<String>,
    /// The record, for a rejection.
    #[prost(message, optional, tag = "8")]
    pub original: Option<Original>,
}

/// A public record that is no command: it becomes a rejection, in the order in which it came.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct InvalidCommand {
    /// Where it stood.
    #[prost(message, optional, tag = "1")]
    pub source: Option<SourcePosition>,
    /// Why it is refused, for programs: the name of a `command::Code` in the crate avro.
    #[prost(string, tag = "2")]
    pub code: String,
    /// Why it is refused, for people.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// The namespace, by name, where it could be read.
    #[prost(string, optional, tag = "4")]
    pub namespace: Option<String>,
    /// The command's id, where it could be read.
    #[prost(string, optional, tag = "5")]
    pub command_id: Option<String>,
    /// Where the outcome goes, if anywhere.
    #[prost(message, optional, tag = "6")]
    pub reply_to: Option<ReplyTo>,
    /// The record.
    #[prost(message, optional, tag = "7")]
    pub original: Option<Original>,
}

/// Takes a command out that waited for its moment, and applies it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeliverDelayed {
    /// The key of the row in which it waits.
    #[prost(bytes = "bytes", tag = "1")]
    pub row: Bytes,
}
