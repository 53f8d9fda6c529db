//! Public events of updates.

use std::borrow::Cow;

use bytes::Bytes;
use everlog_engine::machine::update;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;
use crate::event::fields::{failure, fields, id, payloads, text, text_of};
use crate::failure::Failure;
use crate::payload::{Fields, Payload};
use crate::proto_update;

/// What can be read of an encoded message, and the whole where that is not all.
fn read<M: Message + Default>(given: Option<&Bytes>) -> (M, Option<Blob>) {
    let Some(bytes) = given else { return (M::default(), None) };
    match M::decode(bytes.clone()) {
        Ok(read) if read.encode_to_vec() == *bytes => (read, None),
        Ok(read) => (read, Some(Blob(bytes.clone()))),
        Err(_error) => (M::default(), Some(Blob(bytes.clone()))),
    }
}

/// A worker took an update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionUpdateAccepted<'a> {
    /// The update's id.
    pub update_id: Cow<'a, str>,
    /// The name of its handler.
    pub update_name: Option<Cow<'a, str>>,
    /// Its arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// Who sent it.
    pub identity: Option<Cow<'a, str>>,
    /// The message that brought it to the worker.
    pub message_id: Option<Cow<'a, str>>,
    /// The event behind which the worker got it.
    pub sequencing_event_id: Option<i64>,
    /// All of it, where it says more than stands above.
    pub request: Option<Blob>,
}

impl<'a> From<&'a update::Accepted> for WorkflowExecutionUpdateAccepted<'a> {
    fn from(event: &'a update::Accepted) -> Self {
        let (request, whole) = read::<proto_update::Request>(event.accepted_request.as_ref());
        let input = request.input.unwrap_or_default();
        let meta = request.meta.unwrap_or_default();
        let is_its = meta.update_id == event.protocol_instance_id;
        let owned = |given: String| (!given.is_empty()).then_some(Cow::Owned(given));
        Self {
            update_id: Cow::Borrowed(&event.protocol_instance_id),
            update_name: owned(input.name),
            input: payloads(input.args.as_ref()),
            header: fields(input.header.as_ref()),
            identity: owned(meta.identity),
            message_id: text(&event.accepted_request_message_id),
            sequencing_event_id: id(event.accepted_request_sequencing_event_id),
            request: whole.or_else(|| event.accepted_request.clone().filter(|_| !is_its).map(Blob)),
        }
    }
}

/// An update that was accepted before a reset waits for the worker's word again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionUpdateAdmitted<'a> {
    /// The update's id.
    pub update_id: Cow<'a, str>,
    /// The name of its handler.
    pub update_name: Option<Cow<'a, str>>,
    /// Its arguments.
    pub input: Option<Vec<Payload<'a>>>,
    /// Headers of the SDK: context that is handed on.
    pub header: Option<Fields<'a>>,
    /// Who sent it.
    pub identity: Option<Cow<'a, str>>,
    /// Why it stands here, as Temporal's number: 1 = a reset has brought it over.
    pub origin: Option<i64>,
    /// All of it, where it says more than stands above.
    pub request: Option<Blob>,
}

impl<'a> From<&'a update::Admitted> for WorkflowExecutionUpdateAdmitted<'a> {
    fn from(event: &'a update::Admitted) -> Self {
        let (request, whole) = read::<proto_update::Request>(event.request.as_ref());
        let input = request.input.unwrap_or_default();
        let meta = request.meta.unwrap_or_default();
        let owned = |given: String| (!given.is_empty()).then_some(Cow::Owned(given));
        Self {
            update_id: Cow::Owned(meta.update_id),
            update_name: owned(input.name),
            input: payloads(input.args.as_ref()),
            header: fields(input.header.as_ref()),
            identity: owned(meta.identity),
            origin: id(i64::from(event.origin)),
            request: whole,
        }
    }
}

/// A worker answered an update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowExecutionUpdateCompleted<'a> {
    /// The update's id.
    pub update_id: Option<Cow<'a, str>>,
    /// Its Accepted event.
    pub accepted_event_id: i64,
    /// What its handler returned.
    pub result: Option<Vec<Payload<'a>>>,
    /// Why it failed.
    pub failure: Option<Vec<Failure<'a>>>,
    /// Who sent it.
    pub identity: Option<Cow<'a, str>>,
    /// All of the outcome, where it says more than stands above.
    pub outcome: Option<Blob>,
}

impl<'a> From<&'a update::Completed> for WorkflowExecutionUpdateCompleted<'a> {
    fn from(event: &'a update::Completed) -> Self {
        let (outcome, whole) = read::<proto_update::Outcome>(event.outcome.as_ref());
        Self {
            update_id: text_of(event.meta.as_ref().map(|meta| meta.update_id.as_str())),
            accepted_event_id: event.accepted_event_id,
            result: payloads(outcome.success.as_ref()),
            failure: failure(outcome.failure.as_ref()),
            identity: event.meta.as_ref().and_then(|meta| text(&meta.identity)),
            outcome: whole,
        }
    }
}
