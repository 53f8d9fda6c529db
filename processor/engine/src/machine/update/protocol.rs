//! What a worker says of updates with a completed task: it takes one, refuses it, or answers it.
//!
//! Each message has an id, by which a command may say where in the history it belongs; the rest come last.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;

use crate::api_types::TaskFailedCause as Cause;
use crate::draft::Draft;
use crate::machine::update::{
    Accepted, Body, Completed, Done, End, Message, Meta, Refer, Update, end, failed,
};
use crate::machine::workflow_task_completed::TaskFailure;

/// How the type of a body begins in front of its name.
const NAMES: &str = "temporal.api.update.v1.";

/// A worker's message: it takes the update.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Acceptance {
    #[prost(string, tag = "1")]
    accepted_request_message_id: String,
    #[prost(int64, tag = "2")]
    accepted_request_sequencing_event_id: i64,
    #[prost(bytes = "bytes", optional, tag = "3")]
    accepted_request: Option<Bytes>,
}

/// A worker's message: it refuses the update.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Refusal {
    #[prost(bytes = "bytes", optional, tag = "3")]
    rejected_request: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    failure: Option<Bytes>,
}

/// A worker's message: the update's outcome.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    outcome: Option<Bytes>,
}

enum Said {
    Acceptance(Acceptance),
    Refusal(Refusal),
    Response(Response),
}

/// What a worker says of updates with a completed task, by the ids of its messages.
pub(crate) struct Messages<'a> {
    by_id: BTreeMap<&'a str, &'a Message>,
    order: &'a [Message],
    /// Updates that have been answered or refused: the run's, and those of this task.
    over: BTreeSet<&'a str>,
}

impl<'a> Messages<'a> {
    pub(crate) fn of(order: &'a [Message], done: &'a BTreeMap<String, Done>) -> Self {
        let by_id = order.iter().map(|message| (message.id.as_str(), message)).collect();
        Self { by_id, order, over: done.keys().map(String::as_str).collect() }
    }

    /// Takes the message in that a command refers to.
    pub(crate) fn take(&mut self, draft: &mut Draft<'_>, command: &Refer) -> Result<(), TaskFailure> {
        if command.message_id.is_empty() {
            return Err(bad("MessageID is not set on ProtocolMessageCommand."));
        }
        let message = self.by_id.remove(command.message_id.as_str()).ok_or_else(|| {
            bad(&format!("ProtocolMessageCommand referenced absent message ID {}", command.message_id))
        })?;
        self.hear(draft, message)
    }

    /// Takes the messages in that no command has referred to. Nothing but refusals can come after the end of a run.
    pub(crate) fn take_rest(&mut self, draft: &mut Draft<'_>) -> Result<(), TaskFailure> {
        for message in self.order {
            let is_left = self.by_id.remove(message.id.as_str()).is_some_and(|left| left == message);
            if is_left && (draft.run.is_open() || is_refusal(message)) {
                self.hear(draft, message)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, draft: &mut Draft<'_>, message: &'a Message) -> Result<(), TaskFailure> {
        if let Some(body) = &message.body
            && body.encoded_len() as i64 > draft.settings.blob_bytes_max
        {
            let reason = format!("Message type {} exceeds size limit.", name(body));
            return Err(TaskFailure::fatal(Cause::BadUpdateWorkflowExecutionMessage, &reason));
        }
        let said = said(message)?;
        let update_id = message.protocol_instance_id.as_str();
        if self.over.contains(update_id) {
            return Err(unexpected(update_id, &said, "Completed"));
        }
        if !matches!(said, Said::Acceptance(_)) {
            self.over.insert(update_id);
        }
        hear(draft, update_id, said)
    }
}

/// True of a message that refuses an update.
pub(crate) fn is_refusal(message: &Message) -> bool {
    matches!(said(message), Ok(Said::Refusal(_)))
}

fn bad(reason: &str) -> TaskFailure {
    TaskFailure::new(Cause::BadUpdateWorkflowExecutionMessage, reason)
}

/// The full name of what a message says.
fn name(body: &Body) -> &str {
    body.type_url.rsplit('/').next().unwrap_or_default()
}

fn said(message: &Message) -> Result<Said, TaskFailure> {
    let Some(body) = &message.body else { return Err(bad("missing body")) };
    let name = name(body);
    let unreadable = |_error| bad(&format!("unable to unmarshal request: a {name} cannot be read"));
    let value = body.value.clone();
    match name.strip_prefix(NAMES) {
        Some("Acceptance") => Acceptance::decode(value).map(Said::Acceptance).map_err(unreadable),
        Some("Rejection") => Refusal::decode(value).map(Said::Refusal).map_err(unreadable),
        Some("Response") => Response::decode(value).map(Said::Response).map_err(unreadable),
        Some(_) | None => Err(bad(&format!("unknown message type: {name}"))),
    }
}

fn hear(draft: &mut Draft<'_>, update_id: &str, said: Said) -> Result<(), TaskFailure> {
    let update = draft.run.updates.get(update_id).cloned();
    if let Some(update) = &update {
        expect(update_id, &said, update)?;
    }
    if update.is_some() || matches!(said, Said::Acceptance(_)) {
        is_whole(update_id, &said)?;
    }
    match (said, update) {
        (Said::Acceptance(acceptance), update) => accept(draft, update_id, update.as_deref(), acceptance)?,
        (Said::Refusal(refusal), Some(_)) => end(draft, update_id, End::Rejected(failed(refusal.failure))),
        // It is as well known now as before.
        (Said::Refusal(Refusal { rejected_request: Some(_), .. }), None) => {}
        (Said::Response(response), Some(update)) => {
            let meta = response.meta.unwrap_or_default();
            let meta = Some(Meta { update_id: update_id.to_owned(), ..meta });
            let accepted_event_id = update.accepted_event_id;
            draft.emit(Completed { meta, outcome: response.outcome, accepted_event_id });
        }
        (Said::Refusal(_) | Said::Response(_), None) => return Err(unknown(update_id)),
    }
    Ok(())
}

/// What each message must have.
fn is_whole(update_id: &str, said: &Said) -> Result<(), TaskFailure> {
    let wrong = match said {
        Said::Acceptance(said) if said.accepted_request_sequencing_event_id == 0 => {
            "Acceptance: accepted_request_sequencing_event_id is not set"
        }
        Said::Acceptance(said) if said.accepted_request_message_id.is_empty() => {
            "Acceptance: accepted_request_message_id is not set"
        }
        Said::Response(Response { meta: None, .. }) => "Response: meta is not set",
        Said::Response(Response { meta: Some(meta), .. }) if meta.update_id.is_empty() => {
            "Response: meta.update_id is not set"
        }
        Said::Response(Response { meta: Some(meta), .. }) if meta.update_id != update_id => {
            return Err(bad(&format!("invalid *update.Response: meta.update_id != {update_id}")));
        }
        Said::Response(Response { outcome: None, .. }) => "Response: outcome is not set",
        Said::Acceptance(_) | Said::Refusal(_) | Said::Response(_) => return Ok(()),
    };
    Err(bad(&format!("invalid *update.{wrong}")))
}

fn unknown(update_id: &str) -> TaskFailure {
    bad(&format!("update {update_id} wasn't found on the server."))
}

/// An update is taken or refused once, and answered once it is taken.
fn expect(update_id: &str, said: &Said, update: &Update) -> Result<(), TaskFailure> {
    match (said, update.accepted_event_id > 0) {
        (Said::Response(_), true) | (Said::Acceptance(_) | Said::Refusal(_), false) => Ok(()),
        (Said::Response(_), false) => Err(unexpected(update_id, said, "Sent")),
        (Said::Acceptance(_) | Said::Refusal(_), true) => Err(unexpected(update_id, said, "Accepted")),
    }
}

fn unexpected(update_id: &str, said: &Said, state: &str) -> TaskFailure {
    let name = match said {
        Said::Acceptance(_) => "Acceptance",
        Said::Refusal(_) => "Rejection",
        Said::Response(_) => "Response",
    };
    bad(&format!(
        "invalid state transition attempted for Update {update_id}: received *update.{name} message while in state {state}"
    ))
}

/// The worker takes the update. One that is not known any more comes back with what the worker says of it.
fn accept(
    draft: &mut Draft<'_>,
    update_id: &str,
    update: Option<&Update>,
    acceptance: Acceptance,
) -> Result<(), TaskFailure> {
    let request = update.and_then(|update| update.request.clone()).or(acceptance.accepted_request);
    let request = request.ok_or_else(|| unknown(update_id))?;
    let accepted_request = Some(request).filter(|_| !update.is_some_and(|update| update.is_written));
    draft.emit(Accepted {
        protocol_instance_id: update_id.to_owned(),
        accepted_request_message_id: acceptance.accepted_request_message_id,
        accepted_request_sequencing_event_id: acceptance.accepted_request_sequencing_event_id,
        accepted_request,
    });
    Ok(())
}
