//! Public commands as the ingress appends them to a journal, each with its position in the source topic.

use bytes::Bytes;
use everlog_engine::request::RequestRecord;

/// A position in one partition of a source topic. The position row holds the next one per source, a journal record its own;
/// the record is applied only if its offset is not below the next one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SourcePosition {
    /// The topic's id, 16 bytes: a topic of the same name made later is another one.
    #[prost(bytes = "bytes", tag = "1")]
    pub incarnation: Bytes,
    /// The partition.
    #[prost(uint32, tag = "2")]
    pub partition: u32,
    /// In a journal record: the record's offset. In the position row: the offset after the last applied one.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    /// The topic's name, for people.
    #[prost(string, tag = "4")]
    pub topic: String,
    /// In a journal record: the offset after the record before it in the same append. The record counts only if all up to it
    /// was applied, because a part of an append with an unknown outcome may be missing; the whole append is repeated.
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

/// The topic of a command's outcome.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReplyTo {
    /// The topic, checked against the allow-list.
    #[prost(string, tag = "1")]
    pub topic: String,
    /// Returned with the outcome.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub correlation_id: Option<Bytes>,
}

/// A valid public command: a request, the options of its headers, and the record itself for a rejection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PublicCommand {
    /// Its position in the source.
    #[prost(message, optional, tag = "1")]
    pub source: Option<SourcePosition>,
    /// The request.
    #[prost(message, optional, tag = "2")]
    pub input: Option<RequestRecord>,
    /// The namespace, by name.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The command's id.
    #[prost(string, optional, tag = "4")]
    pub command_id: Option<String>,
    /// The topic of the outcome, if one is wanted.
    #[prost(message, optional, tag = "5")]
    pub reply_to: Option<ReplyTo>,
    /// Delivered not before this time, in ms since 1970-01-01 UTC; 0 = at once.
    #[prost(int64, tag = "6")]
    pub deliver_at_ms: i64,
    /// W3C trace context.
    #[prost(string, optional, tag = "7")]
    pub traceparent: Option<String>,
    /// The record, for a rejection.
    #[prost(message, optional, tag = "8")]
    pub original: Option<Original>,
}

/// A public record that is no valid command. It becomes a rejection, in the order of the source.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct InvalidCommand {
    /// Its position in the source.
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
    /// The topic of the outcome, if one is wanted.
    #[prost(message, optional, tag = "6")]
    pub reply_to: Option<ReplyTo>,
    /// The record.
    #[prost(message, optional, tag = "7")]
    pub original: Option<Original>,
}

/// Delivers a delayed command.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeliverDelayed {
    /// The key of its row.
    #[prost(bytes = "bytes", tag = "1")]
    pub row: Bytes,
}
