//! The codec of all calls. Before a request is decoded, it is checked as every client would read it, and the memory that it will take
//! is counted.
//!
//! An empty entry of a list takes two bytes in a message and a hundred in memory. So a limit of the message's bytes does not bound
//! the memory.

use std::marker::PhantomData;

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

use crate::wellformed;

/// Bytes that the fields and list entries of a request may take in memory, without their contents.
pub const STRUCTURE_BYTES_MAX: usize = 32 << 20;

/// The beginning of the refusal of a request that would take more. SDKs know it as a message that is too large.
pub const TOO_LARGE: &str = "grpc: received message larger than max (";

/// The beginning of the refusal of a request that no client can read, as by Temporal's server.
pub const UNREADABLE: &str = "grpc: error unmarshalling request";

/// How a field is counted.
struct CountedField {
    tag: u32,
    /// Bytes of one occurrence in memory, with the spare capacity of a growing list.
    bytes: usize,
    /// The fields that are counted within it.
    parts: &'static [CountedField],
}

/// Bytes that any other field of a request counts.
const FIELD_BYTES: usize = 64;

const fn leaf(tag: u32, bytes: usize) -> CountedField {
    CountedField { tag, bytes, parts: &[] }
}

const RETRY_POLICY: &[CountedField] = &[leaf(5, 48)];

const COMMAND: &[CountedField] = &[
    CountedField { tag: 2, bytes: 512, parts: &[CountedField { tag: 11, bytes: 0, parts: RETRY_POLICY }] },
    CountedField { tag: 10, bytes: 192, parts: &[leaf(2, 96)] },
    CountedField { tag: 11, bytes: 768, parts: &[CountedField { tag: 7, bytes: 0, parts: RETRY_POLICY }] },
    leaf(302, 48),
];

/// Callbacks and links of an update.
const UPDATE: &[CountedField] = &[CountedField { tag: 5, bytes: 256, parts: &[leaf(4, 48), leaf(5, 48)] }];

/// Requests with lists within lists.
const NESTED: &[(&str, &[CountedField])] = &[
    (
        "RespondWorkflowTaskCompletedRequest",
        &[CountedField { tag: 2, bytes: 192, parts: COMMAND }, leaf(8, 256), leaf(11, 192)],
    ),
    ("RespondWorkflowTaskFailedRequest", &[leaf(7, 192)]),
    ("StartWorkflowExecutionRequest", &[CountedField { tag: 12, bytes: 0, parts: RETRY_POLICY }]),
    ("UpdateWorkflowExecutionRequest", UPDATE),
    (
        "ExecuteMultiOperationRequest",
        &[CountedField {
            tag: 2,
            bytes: 2_048,
            parts: &[
                CountedField {
                    tag: 1,
                    bytes: 0,
                    parts: &[
                        CountedField { tag: 12, bytes: 0, parts: RETRY_POLICY },
                        leaf(21, 48),
                        leaf(24, 48),
                    ],
                },
                CountedField { tag: 2, bytes: 0, parts: UPDATE },
            ],
        }],
    ),
    ("SignalWithStartWorkflowExecutionRequest", &[CountedField { tag: 15, bytes: 0, parts: RETRY_POLICY }]),
];

/// Bytes that the fields and list entries of a request of this name take in memory. It stops at bytes that cannot be read; the decoder
/// refuses them.
pub fn structure_bytes(name: &str, message: &[u8]) -> usize {
    let parts = NESTED.iter().find(|(nested, _)| *nested == name).map_or(&[][..], |(_, parts)| parts);
    count(message, parts, FIELD_BYTES)
}

fn count(mut rest: &[u8], parts: &[CountedField], other_bytes: usize) -> usize {
    let mut sum = 0_usize;
    while let Ok((tag, wire_type)) = decode_key(&mut rest) {
        let part = parts.iter().find(|part| part.tag == tag);
        sum = sum.saturating_add(part.map_or(other_bytes, |part| part.bytes));
        if wire_type != WireType::LengthDelimited {
            if skip_field(wire_type, tag, &mut rest, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let length = decode_varint(&mut rest).map(usize::try_from);
        let Ok(Ok(length)) = length else { break };
        let Some((body, behind)) = rest.split_at_checked(length) else { break };
        if let Some(part) = part.filter(|part| !part.parts.is_empty()) {
            sum = sum.saturating_add(count(body, part.parts, 0));
        }
        rest = behind;
    }
    sum
}

/// A protobuf codec that refuses requests which would take too much memory.
#[derive(Debug)]
pub struct Counted<T, U> {
    types: PhantomData<(T, U)>,
}

impl<T, U> Default for Counted<T, U> {
    fn default() -> Self {
        Self { types: PhantomData }
    }
}

impl<T, U> Codec for Counted<T, U>
where
    T: Message + Send + 'static,
    U: Message + Name + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = CountedDecoder<T, U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CountedDecoder { inner: ProstCodec::<T, U>::default().decoder(), types: PhantomData }
    }
}

/// Checks and counts a request, then decodes it.
#[derive(Debug)]
pub struct CountedDecoder<T, U> {
    inner: ProstDecoder<U>,
    types: PhantomData<T>,
}

impl<T, U> Decoder for CountedDecoder<T, U>
where
    T: Send + 'static,
    U: Message + Name + Default + Send + 'static,
{
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // tonic passes a message as one chunk. Further chunks would be decoded without being counted.
        if U::NAME.ends_with("Request") {
            wellformed::check(&U::full_name(), message.chunk())
                .map_err(|fault| Status::internal(format!("{UNREADABLE}: {fault}")))?;
            let bytes = structure_bytes(U::NAME, message.chunk());
            if bytes > STRUCTURE_BYTES_MAX {
                let text = format!("{TOO_LARGE}{bytes} bytes in memory vs. {STRUCTURE_BYTES_MAX})");
                return Err(Status::resource_exhausted(text));
            }
        }
        self.inner.decode(message)
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::{MapEntry, RetryPolicy};
    use everlog_engine::command::{Command, CommandAttributes};
    use everlog_engine::machine::{activity, marker};

    use super::*;
    use crate::workflowservice::{RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionRequest};

    fn counted<M: Message + Name>(message: &M) -> usize {
        structure_bytes(M::NAME, &message.encode_to_vec())
    }

    fn completion(commands: Vec<Command>) -> RespondWorkflowTaskCompletedRequest {
        RespondWorkflowTaskCompletedRequest { commands, ..Default::default() }
    }

    fn command(order: CommandAttributes) -> Command {
        Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
    }

    #[test]
    fn what_is_small_on_the_wire_and_large_in_memory_is_counted_as_large() {
        let entries = 1_000;
        let details = vec![MapEntry::default(); entries];
        let marker =
            CommandAttributes::RecordMarker(Box::new(marker::Record { details, ..Default::default() }));
        assert!(counted(&completion(vec![command(marker)])) >= entries * size_of::<MapEntry>());
        assert!(counted(&completion(vec![Command::default(); entries])) >= entries * size_of::<Command>());
        let policy =
            RetryPolicy { non_retryable_error_types: vec![String::new(); entries], ..RetryPolicy::default() };
        let schedule = activity::Schedule { retry_policy: Some(policy), ..Default::default() };
        let schedule = command(CommandAttributes::ScheduleActivity(Box::new(schedule)));
        assert!(counted(&completion(vec![schedule])) >= entries * size_of::<String>());
        let links = vec![Default::default(); entries];
        let start = StartWorkflowExecutionRequest { links, ..Default::default() };
        assert!(counted(&start) >= entries * size_of::<prost::bytes::Bytes>());
    }

    #[test]
    fn a_completion_of_a_whole_history_is_small_enough() {
        let schedule = activity::Schedule { activity_id: "50000".into(), ..Default::default() };
        let command = command(CommandAttributes::ScheduleActivity(Box::new(schedule)));
        let largest = completion(vec![command; 40_000]);
        assert!(counted(&largest) <= STRUCTURE_BYTES_MAX, "{} bytes", counted(&largest));
    }

    #[test]
    fn what_a_boxed_command_takes_is_not_counted_too_low() {
        assert!(size_of::<activity::Schedule>() <= 512 && size_of::<marker::Record>() <= 192);
        assert!(size_of::<everlog_engine::machine::close::ContinueAsNew>() <= 768);
    }

    #[test]
    fn contents_are_not_counted_and_garbage_is_left_to_the_decoder() {
        let input = Some(vec![0; 1 << 20].into());
        let start = StartWorkflowExecutionRequest { input, ..Default::default() };
        assert_eq!(counted(&start), FIELD_BYTES);
        assert_eq!(structure_bytes("StartWorkflowExecutionRequest", b"\x2a\x7fabc"), FIELD_BYTES);
        assert_eq!(structure_bytes("StartWorkflowExecutionRequest", b"\xff\xff\xff"), 0);
    }
}
