//! Updates: their callers, how workers answer them, and what must hold of them at the end.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_avro::outcome::Outcome;
use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::update::{self, Admit, Body, Message, Meta, Refer, Stage, UpdateStanding};
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply, Run};
use everlog_partition::{CallResult, UpdateCall, UpdateNews};
use prost::Message as _;

use crate::clients::{ClientContext, input};
use crate::dice::Dice;

/// Workers refuse updates whose ids end so.
const REFUSED: &str = "/no";

/// A worker's outcome of an update.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    outcome: Option<Bytes>,
}

/// Temporal's `Outcome`, of a success without a value.
const OUTCOME: Bytes = Bytes::from_static(b"\x0a\x00");
/// Temporal's `Acceptance`, of a message `m` behind event 1.
const ACCEPTANCE: &[u8] = b"\x0a\x01m\x10\x01";
/// Temporal's `Rejection`, with a failure that has a message.
const REJECTION: &[u8] = b"\x22\x04\x0a\x02no";

/// How an update ended, as its caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateEnd {
    /// By this run, with this outcome.
    Completed(String, Bytes),
    /// By the end of its run.
    Closed,
}

/// What a worker says of the updates that came with its task: each is answered at once.
pub fn said(run: &Run) -> (Vec<Message>, Vec<Command>) {
    let mut messages = Vec::new();
    for update in update::given(run) {
        let id = update.update_id.as_str();
        let meta = Some(Meta { update_id: id.into(), identity: String::new() });
        if id.ends_with(REFUSED) {
            messages.push(message(id, "Rejection", REJECTION.to_vec()));
        } else {
            messages.push(message(id, "Acceptance", ACCEPTANCE.to_vec()));
            let response = Response { meta, outcome: Some(OUTCOME) };
            messages.push(message(id, "Response", response.encode_to_vec()));
        }
    }
    let refer = |message: &Message| {
        let order = command::CommandAttributes::ProtocolMessage(Refer { message_id: message.id.clone() });
        Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
    };
    let commands = messages.iter().map(refer).collect();
    (messages, commands)
}

fn message(update_id: &str, name: &str, value: Vec<u8>) -> Message {
    let type_url = format!("type.googleapis.com/temporal.api.update.v1.{name}");
    Message {
        id: format!("{update_id}/{name}"),
        protocol_instance_id: update_id.into(),
        body: Some(Body { type_url, value: value.into() }),
    }
}

impl ClientContext {
    /// Brings updates one after the other, each until it is known how it ended.
    pub async fn update(self, workflow_id: String, count: usize, mut dice: Dice) {
        for number in 0..count {
            let end = if dice.permille(200) { REFUSED } else { "" };
            let id = format!("{workflow_id}/update/{number}{end}");
            self.bring(&workflow_id, &id, &mut dice).await;
            self.rest(&mut dice).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    async fn bring(&self, workflow_id: &str, id: &str, dice: &mut Dice) {
        let request = Bytes::from_static(b"\x0a\x00");
        let admit = Admit { update_id: id.into(), request, patient: dice.permille(300), ..Admit::default() };
        loop {
            self.rest(dice).await;
            let Some(router) = self.router(dice) else { continue };
            let order = input(workflow_id, "", Request::Update(admit.clone()));
            let called = self.call("an update", dice, router.update(order)).await;
            if let Some(told) = self.hear(id, called, dice).await {
                self.observations.borrow_mut().updates.insert(id.to_owned(), told);
                return;
            }
        }
    }

    /// How the update ended; none where it has to be brought again.
    async fn hear(
        &self,
        id: &str,
        called: CallResult<UpdateCall<Reply>>,
        dice: &mut Dice,
    ) -> Option<UpdateEnd> {
        let UpdateCall { first, mut news } = called.ok()?;
        let mut standing = match first {
            Reply::Update(standing) => *standing,
            // The workflow may not be started yet.
            Reply::Rejected(Rejection::NotFound(what)) => {
                return what.contains("completed").then_some(UpdateEnd::Closed);
            }
            Reply::Rejected(Rejection::Busy(_) | Rejection::NotReady(_) | Rejection::TooManyAtOnce(_)) => {
                return None;
            }
            other => {
                self.observations.borrow_mut().violate(format!("update {id} yields {other:?}"));
                return Some(UpdateEnd::Closed);
            }
        };
        let until_ms = self.clock.now_ms() + dice.span(1_000, 8_000);
        loop {
            if let UpdateStanding { run_id, stage: Stage::Completed(outcome), .. } = standing {
                return Some(UpdateEnd::Completed(run_id, outcome));
            }
            match self.clock.within(until_ms - self.clock.now_ms(), news.recv()).await {
                Some(Some(UpdateNews::UpdateStanding(next))) => standing = next,
                Some(Some(UpdateNews::Closed)) => return Some(UpdateEnd::Closed),
                Some(Some(UpdateNews::TaskFailed) | None) | None => return None,
            }
        }
    }
}

/// The runs that have answered each update, as often as they have.
pub fn completed(histories: &BTreeMap<String, Vec<HistoryEvent>>) -> BTreeMap<&str, Vec<&str>> {
    let mut completed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (run_id, events) in histories {
        for event in events {
            if let Some(Attributes::UpdateCompleted(done)) = &event.attributes {
                let id = done.meta.as_ref().map_or("", |meta| meta.update_id.as_str());
                completed.entry(id).or_default().push(run_id);
            }
        }
    }
    completed
}

/// Whoever was replied that a record's update was answered can read so in its run.
pub fn replied(outcome: &Outcome, histories: &BTreeMap<String, Vec<HistoryEvent>>) -> Result<(), String> {
    let Some(id) = &outcome.update_id else { return Ok(()) };
    let run_id = outcome.run_id.as_deref().unwrap_or_default();
    let is_there = completed(histories).get(id.as_str()).is_some_and(|runs| runs.contains(&run_id));
    match (outcome.status.as_str(), is_there) {
        ("completed", true) | ("refused", false) => Ok(()),
        (status, _) => Err(format!("update {id} in {run_id} is {status} by its reply; answered: {is_there}")),
    }
}

/// A run accepts and answers an update once; what a caller was told is there; and what was refused left nothing.
pub fn check(
    told: &BTreeMap<String, UpdateEnd>,
    histories: &BTreeMap<String, Vec<HistoryEvent>>,
    found: &mut Vec<String>,
) {
    let completed = completed(histories);
    for (id, runs) in &completed {
        let mut distinct = runs.clone();
        distinct.dedup();
        if distinct.len() != runs.len() || id.ends_with(REFUSED) {
            found.push(format!("update {id} was answered in {runs:?}"));
        }
    }
    for (run_id, events) in histories {
        let accepted =
            |event: &&HistoryEvent| matches!(event.attributes, Some(Attributes::UpdateAccepted(_)));
        let accepted = events.iter().filter(accepted).count();
        let answered = completed.values().flatten().filter(|run| *run == run_id).count();
        if accepted != answered {
            found.push(format!("run {run_id} has accepted {accepted} updates and answered {answered}"));
        }
    }
    for (id, told) in told {
        let UpdateEnd::Completed(run_id, outcome) = told else { continue };
        let is_there = completed.get(id.as_str()).is_some_and(|runs| runs.contains(&run_id.as_str()));
        let is_success = *outcome == OUTCOME;
        if is_success != is_there || is_success == id.ends_with(REFUSED) {
            found.push(format!("the caller of {id} was told {told:?}, which is there: {is_there}"));
        }
    }
}
