//! Temporal's public gRPC API: messages, server traits and clients, generated when this crate is built.
//!
//! What the server does not read (payloads, headers, failures, memos, histories ...) is a field of type [`bytes::Bytes`]
//! with the encoded message. It passes through byte for byte and is never decoded. [`full`] has the same types decoded.
//!
//! Commands are the engine's own type, [`everlog_engine::command::Command`]: the same fields under the same numbers.
//!
//! Opaque fields differ from message fields in two ways, which no SDK's messages show. If a singular field occurs twice, the second
//! one replaces the first; messages would be merged. An empty value in a map is written as an entry without a value, which reads as an
//! empty value.

pub mod codec;
pub mod wellformed;

/// The generated tree; [`temporal`] and [`google`] are its modules.
#[allow(missing_docs, clippy::all)]
mod opaque {
    include!(concat!(env!("OUT_DIR"), "/tree.rs"));
}

/// Messages without opaque fields: common, failure, history, errordetails, `google.rpc`, the types that are opaque in
/// the other tree, and what these need. The enums are those of [`temporal::api::enums`].
#[allow(missing_docs, clippy::all)]
pub mod full {
    include!(concat!(env!("OUT_DIR"), "/full/tree.rs"));
}

pub use opaque::{google, temporal};

pub use google::rpc;
pub use temporal::api::activity::v1 as activity;
pub use temporal::api::command::v1 as command;
pub use temporal::api::common::v1 as common;
pub use temporal::api::enums::v1 as enums;
pub use temporal::api::errordetails::v1 as errordetails;
pub use temporal::api::failure::v1 as failure;
pub use temporal::api::history::v1 as history;
pub use temporal::api::namespace::v1 as namespace;
pub use temporal::api::operatorservice::v1 as operatorservice;
pub use temporal::api::protocol::v1 as protocol;
pub use temporal::api::query::v1 as query;
pub use temporal::api::replication::v1 as replication;
pub use temporal::api::schedule::v1 as schedule;
pub use temporal::api::sdk::v1 as sdk;
pub use temporal::api::taskqueue::v1 as taskqueue;
pub use temporal::api::update::v1 as update;
pub use temporal::api::version::v1 as version;
pub use temporal::api::workflow::v1 as workflow;
pub use temporal::api::workflowservice::v1 as workflowservice;

/// The encoded `FileDescriptorSet` of the services and all their imports, without comments. gRPC reflection serves it.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::{Message, Name};
    use prost_types::{Any, FileDescriptorSet};

    use super::full::temporal::api as decoded;
    use super::*;

    fn payload(data: &'static str) -> decoded::common::v1::Payload {
        let metadata = [("encoding", "json/plain"), ("type", "Keyword")];
        decoded::common::v1::Payload {
            metadata: metadata
                .into_iter()
                .map(|(key, value)| (key.to_string(), Bytes::from(value)))
                .collect(),
            data: Bytes::from(data),
            ..Default::default()
        }
    }

    fn payloads(data: &[&'static str]) -> decoded::common::v1::Payloads {
        decoded::common::v1::Payloads { payloads: data.iter().map(|data| payload(data)).collect() }
    }

    /// A length-delimited field as it stands on the wire; numbers below 4,096 and bodies below 16,384 bytes.
    fn field(number: u32, body: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut wire);
        prost::encoding::encode_varint(body.len() as u64, &mut wire);
        wire.extend_from_slice(body);
        wire
    }

    fn round_trip<M: Message + Default>(wire: &[u8]) -> (M, Vec<u8>) {
        let message = M::decode(Bytes::copy_from_slice(wire)).unwrap();
        let again = message.encode_to_vec();
        (message, again)
    }

    #[test]
    fn a_start_request_passes_byte_for_byte_with_what_this_server_does_not_know() {
        let unknown = field(999, b"from a newer client");
        let input = [payloads(&["1", "\"two\""]).encode_to_vec(), unknown.clone()].concat();
        let fields = [("b", "2"), ("a", "1")].map(|(key, data)| (key.to_string(), payload(data)));
        let memo = decoded::common::v1::Memo { fields: fields.into() };
        // Map entries in an order that no encoder of ours would choose, and one entry with a field too many.
        let entry = [field(1, b"z"), field(2, &payload("26").encode_to_vec()), unknown.clone()].concat();
        let attributes = [memo.encode_to_vec(), field(1, &entry), unknown].concat();
        let wire = [
            field(1, b"default"),
            field(2, b"order-1"),
            field(3, &field(1, b"Order")),
            field(5, &input),
            field(14, &memo.encode_to_vec()),
            field(15, &attributes),
            field(16, &field(1, &entry)),
        ]
        .concat();

        let (request, again) = round_trip::<workflowservice::StartWorkflowExecutionRequest>(&wire);

        assert_eq!(again, wire);
        assert_eq!(request.workflow_id, "order-1");
        assert_eq!(request.input.as_deref(), Some(input.as_slice()));
        let decoded_input = decoded::common::v1::Payloads::decode(request.input.unwrap()).unwrap();
        assert_eq!(decoded_input, payloads(&["1", "\"two\""]));
    }

    #[test]
    fn an_empty_message_stays_apart_from_an_absent_one() {
        let wire = [field(1, b"default"), field(5, b"")].concat();
        let (request, again) = round_trip::<workflowservice::StartWorkflowExecutionRequest>(&wire);
        assert_eq!((again, request.input, request.header), (wire, Some(Bytes::new()), None));

        // The same inside a oneof: an empty failure is a failure.
        let wire = field(2, b"");
        let (outcome, again) = round_trip::<update::Outcome>(&wire);
        assert_eq!((again, outcome.value), (wire, Some(update::outcome::Value::Failure(Bytes::new()))));
    }

    #[test]
    fn values_of_maps_pass_byte_for_byte() {
        let details = [("a", vec!["1"]), ("data", vec!["2", "3"])];
        let details = details.map(|(name, data)| (name.to_string(), payloads(&data)));
        let marker = decoded::history::v1::MarkerRecordedEventAttributes {
            marker_name: "Version".into(),
            details: details.into(),
            workflow_task_completed_event_id: 4,
            ..Default::default()
        };
        let wire = marker.encode_to_vec();
        let (opaque, again) = round_trip::<history::MarkerRecordedEventAttributes>(&wire);
        assert_eq!(again, wire);
        assert_eq!(opaque.details["data"], payloads(&["2", "3"]).encode_to_vec());
    }

    #[test]
    fn a_history_of_opaque_events_reads_as_a_decoded_one() {
        let cause = decoded::failure::v1::Failure { message: "inner".into(), ..Default::default() };
        let failure = decoded::failure::v1::Failure {
            message: "outer".into(),
            cause: Some(Box::new(cause)),
            ..Default::default()
        };
        let attributes = history::ActivityTaskFailedEventAttributes {
            failure: Some(failure.encode_to_vec().into()),
            scheduled_event_id: 5,
            ..Default::default()
        };
        let event = history::HistoryEvent {
            event_id: 7,
            event_type: enums::EventType::ActivityTaskFailed.into(),
            attributes: Some(history::history_event::Attributes::ActivityTaskFailedEventAttributes(
                attributes,
            )),
            ..Default::default()
        };
        let events = history::History { events: vec![event.encode_to_vec().into()] };
        let decoded = decoded::history::v1::History::decode(events.encode_to_vec().as_slice()).unwrap();
        let Some(decoded::history::v1::history_event::Attributes::ActivityTaskFailedEventAttributes(read)) =
            &decoded.events[0].attributes
        else {
            panic!("{:?} is not a failed activity", decoded.events[0]);
        };
        assert_eq!(decoded.events[0].event_type(), enums::EventType::ActivityTaskFailed);
        assert_eq!(read.failure, Some(failure));
    }

    #[test]
    fn error_details_know_their_names() {
        let detail = errordetails::WorkflowExecutionAlreadyStartedFailure {
            run_id: "run".into(),
            ..Default::default()
        };
        let status =
            rpc::Status { code: 6, details: vec![Any::from_msg(&detail).unwrap()], ..Default::default() };
        let read = rpc::Status::decode(status.encode_to_vec().as_slice()).unwrap();
        assert_eq!(
            read.details[0].type_url,
            "type.googleapis.com/temporal.api.errordetails.v1.WorkflowExecutionAlreadyStartedFailure"
        );
        assert_eq!(
            read.details[0].to_msg::<errordetails::WorkflowExecutionAlreadyStartedFailure>().unwrap(),
            detail
        );
        assert_eq!(errordetails::NamespaceNotFoundFailure::NAME, "NamespaceNotFoundFailure");
    }

    #[test]
    fn the_descriptor_is_complete_and_unchanged() {
        let set = FileDescriptorSet::decode(DESCRIPTOR).unwrap();
        let names: Vec<&str> = set.file.iter().map(|file| file.name()).collect();
        let mut imports = set.file.iter().flat_map(|file| &file.dependency);
        assert!(imports.all(|import| names.contains(&import.as_str())));
        let services = set.file.iter().flat_map(|file| &file.service);
        assert_eq!(services.count(), 2);
        let mut messages = set.file.iter().flat_map(|file| &file.message_type);
        let start = messages.find(|message| message.name() == "StartWorkflowExecutionRequest").unwrap();
        let input = start.field.iter().find(|field| field.name() == "input").unwrap();
        assert_eq!(input.type_name(), ".temporal.api.common.v1.Payloads");
    }
}
