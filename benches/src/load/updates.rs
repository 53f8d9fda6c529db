//! The updates that a task brings: each is accepted and completed at once.

use bytes::Bytes;
use everlog_temporal_api::protocol::Message;
use everlog_temporal_api::protocol::message::SequencingId;
use everlog_temporal_api::update::outcome::Value;
use everlog_temporal_api::update::{Acceptance, Outcome, Request, Response};
use prost_types::Any;

use super::orders;
use super::session::Session;

/// What a completion says about updates.
#[derive(Default)]
pub struct Updates {
    pub messages: Vec<Message>,
    /// Encoded, in the order of the messages.
    pub commands: Vec<Bytes>,
}

impl Updates {
    /// Accepts and completes all that are asked for; what is no update is a failure.
    pub fn complete(asked: &[Message], session: &Session) -> Self {
        let mut updates = Self::default();
        for message in asked {
            let body = message.body.as_ref().map(Any::to_msg::<Request>);
            match body {
                Some(Ok(request)) => updates.answer(message, request, &session.payloads),
                other => session.tally.failed("update", "Undecodable", &format!("{other:?}")),
            }
        }
        updates
    }

    fn answer(&mut self, asked: &Message, request: Request, result: &Bytes) {
        let sequencing_event_id = match asked.sequencing_id {
            Some(SequencingId::EventId(event_id)) => event_id,
            _ => 0,
        };
        let meta = request.meta.clone();
        let accepted = Acceptance {
            accepted_request_message_id: asked.id.clone(),
            accepted_request_sequencing_event_id: sequencing_event_id,
            accepted_request: Some(request),
        };
        let outcome = Outcome { value: Some(Value::Success(result.clone())) };
        let answered = Response { meta, outcome: Some(outcome) };
        self.say(asked, "accept", Any::from_msg(&accepted));
        self.say(asked, "complete", Any::from_msg(&answered));
    }

    fn say(&mut self, asked: &Message, what: &str, body: Result<Any, prost::EncodeError>) {
        let id = format!("{}/{what}", asked.id);
        self.commands.push(orders::protocol_message(&id));
        self.messages.push(Message {
            id,
            protocol_instance_id: asked.protocol_instance_id.clone(),
            body: Some(body.expect("a vector takes all")),
            sequencing_id: None,
        });
    }
}
