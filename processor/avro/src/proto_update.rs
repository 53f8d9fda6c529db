//! Requests and outcomes of updates as Temporal encodes them; payloads stay encoded.

use bytes::Bytes;
use everlog_engine::machine::update::Meta;
use prost::Message;

/// Temporal's `Request`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, optional, tag = "1")]
    pub meta: Option<Meta>,
    #[prost(message, optional, tag = "2")]
    pub input: Option<Input>,
}

/// Temporal's `Input`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Input {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub header: Option<Bytes>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub args: Option<Bytes>,
}

/// Temporal's `Outcome`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Outcome {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub success: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub failure: Option<Bytes>,
}
