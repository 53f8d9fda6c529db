//! Updates: what clients bring, and what workers say of them.

use bytes::Bytes;
use everlog_engine::command::CommandAttributes as CommandOrder;
use everlog_engine::failure::Info;
use everlog_engine::machine::update::{Admit, Body, Message, Meta, Refer, given};
use everlog_engine::request::Request;
use prost::Message as _;

use super::clients::text;
use super::workers::{application, failure_of};
use super::{Turn, World};

/// An update's `Request` as clients write it.
#[derive(Clone, PartialEq, prost::Message)]
struct UpdateRequest {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(message, optional, tag = "2")]
    input: Option<Input>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Input {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(bytes = "bytes", optional, tag = "3")]
    args: Option<Bytes>,
}

/// What workers say: their messages have these fields.
#[derive(Clone, PartialEq, prost::Message)]
struct Acceptance {
    #[prost(string, tag = "1")]
    message_id: String,
    #[prost(int64, tag = "2")]
    sequencing_event_id: i64,
    #[prost(bytes = "bytes", optional, tag = "3")]
    request: Option<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Rejection {
    #[prost(string, tag = "1")]
    message_id: String,
    #[prost(bytes = "bytes", optional, tag = "4")]
    failure: Option<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    outcome: Option<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Outcome {
    #[prost(bytes = "bytes", optional, tag = "1")]
    success: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    failure: Option<Bytes>,
}

/// An outcome in a few words.
pub fn fields_of_outcome(outcome: &Bytes) -> String {
    let outcome = Outcome::decode(outcome.clone()).expect("an outcome");
    match outcome.failure {
        Some(failure) => match failure_of(Some(&failure)).info {
            Some(Info::Application(application)) => application.r#type,
            other => format!("{other:?}"),
        },
        None => "success".into(),
    }
}

/// An update of this id.
pub fn an_update(update_id: &str) -> Admit {
    let request = UpdateRequest {
        meta: Some(Meta { update_id: update_id.into(), identity: "client".into() }),
        input: Some(Input { name: "add".into(), args: Some(text(update_id)) }),
    };
    Admit {
        update_id: update_id.into(),
        request: request.encode_to_vec().into(),
        first_run_id: String::new(),
        this_run_only: false,
        patient: false,
    }
}

fn message(id: &str, update_id: &str, name: &str, value: Vec<u8>) -> Message {
    Message {
        id: id.into(),
        protocol_instance_id: update_id.into(),
        body: Some(Body {
            type_url: format!("type.googleapis.com/temporal.api.update.v1.{name}"),
            value: value.into(),
        }),
    }
}

/// A worker takes the update.
pub fn acceptance(update_id: &str, request: Option<Bytes>) -> Message {
    let message_id = format!("{update_id}/request");
    let acceptance = Acceptance { message_id, sequencing_event_id: 1, request };
    message(&format!("{update_id}/accept"), update_id, "Acceptance", acceptance.encode_to_vec())
}

/// A worker answers the update.
pub fn response(update_id: &str, result: Bytes) -> Message {
    let meta = Some(Meta { update_id: update_id.into(), identity: "client".into() });
    let outcome = Outcome { success: Some(result), failure: None };
    let response = Response { meta, outcome: Some(outcome.encode_to_vec().into()) };
    message(&format!("{update_id}/complete"), update_id, "Response", response.encode_to_vec())
}

/// A worker refuses the update.
pub fn rejection(update_id: &str) -> Message {
    let failure = Some(application("Refused", |_failure| {}));
    let rejection = Rejection { message_id: format!("{update_id}/request"), failure };
    message(&format!("{update_id}/reject"), update_id, "Rejection", rejection.encode_to_vec())
}

/// A message that says nothing.
pub fn bare(update_id: &str, name: &str) -> Message {
    message(&format!("{update_id}/bare"), update_id, name, Vec::new())
}

impl World {
    pub fn update(&mut self, update_id: &str) -> &mut Self {
        self.update_with(update_id, "", |_admit| {})
    }

    pub fn update_with(&mut self, update_id: &str, note: &str, change: impl FnOnce(&mut Admit)) -> &mut Self {
        let mut order = an_update(update_id);
        change(&mut order);
        let text = format!("update {update_id} {note}");
        self.verb(text.trim_end(), Request::Update(order));
        self
    }

    /// An update of a run that is named; `note` says which.
    pub fn update_run(&mut self, run_id: &str, update_id: &str, note: &str) -> &mut Self {
        let outcome = self.order_for(run_id.to_owned(), Request::Update(an_update(update_id)));
        self.say(&format!("> update {update_id} {note}"));
        self.tell(&outcome);
        self.replay();
        self
    }

    /// The updates that went along with the task that was handed out last.
    pub fn given(&self) -> Vec<String> {
        let grant = self.grant.as_ref().expect("a task was handed out");
        given(&grant.run).iter().map(|update| update.update_id.clone()).collect()
    }
}

impl Turn {
    /// A message, and a command that says where it belongs.
    fn say(&mut self, word: &str, message: Message) -> &mut Self {
        let refer = Refer { message_id: message.id.clone() };
        self.order.messages.push(message);
        self.command(word, CommandOrder::ProtocolMessage(refer))
    }

    /// A message without a command.
    pub fn message(&mut self, word: &str, message: Message) -> &mut Self {
        self.words.push(word.into());
        self.order.messages.push(message);
        self
    }

    pub fn accept(&mut self, update_id: &str) -> &mut Self {
        self.say(&format!("accept {update_id}"), acceptance(update_id, None))
    }

    pub fn respond(&mut self, update_id: &str) -> &mut Self {
        self.say(&format!("answer {update_id}"), response(update_id, text("done")))
    }

    pub fn reject(&mut self, update_id: &str) -> &mut Self {
        self.message(&format!("reject {update_id}"), rejection(update_id))
    }

    /// The worker takes events a second time.
    pub fn again(&mut self) -> &mut Self {
        self.order.takes_events_again = true;
        self
    }
}
