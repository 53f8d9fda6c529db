//! The protocol messages of updates, in a workflow task and in its completion.

use everlog_engine::Run;
use everlog_engine::machine::update::{Body, Message, Update, given};
use everlog_temporal_api::protocol::message::SequencingId;
use everlog_temporal_api::{protocol, update};
use prost::Name;
use prost_types::Any;

/// The messages of the updates that are delivered with a started task.
pub(crate) fn for_worker(run: &Run, started_event_id: i64) -> Vec<protocol::Message> {
    let message = |update: &Update| protocol::Message {
        id: format!("{}/request", update.update_id),
        protocol_instance_id: update.update_id.clone(),
        sequencing_id: Some(SequencingId::EventId(started_event_id - 1)),
        body: Some(Any {
            type_url: update::Request::type_url(),
            value: update.request.as_ref().map(|request| request.to_vec()).unwrap_or_default(),
        }),
    };
    given(run).into_iter().map(message).collect()
}

/// The messages of a completed task, for the engine.
pub(crate) fn from_worker(messages: Vec<protocol::Message>) -> Vec<Message> {
    let said = |message: protocol::Message| Message {
        id: message.id,
        protocol_instance_id: message.protocol_instance_id,
        body: message.body.map(|body| Body { type_url: body.type_url, value: body.value.into() }),
    };
    messages.into_iter().map(said).collect()
}
