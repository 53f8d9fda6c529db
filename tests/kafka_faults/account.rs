//! The accounts: workflows that are updated and reset meanwhile, by a client that retries until it has a definite
//! reply.
//!
//! A worker takes a payment and answers it at once, or when a timer has fired; it refuses a debt.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::update::Refer;
use everlog_temporal_api::enums::{EventType, UpdateWorkflowExecutionLifecycleStage as Stage};
use everlog_temporal_api::full::temporal::api::common::v1::Payloads;
use everlog_temporal_api::full::temporal::api::failure::v1::Failure;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::protocol::Message;
use everlog_temporal_api::update::{
    Acceptance, Input, Meta, Outcome, Rejection, Request, Response, WaitPolicy, outcome,
};
use everlog_temporal_api::workflowservice::{
    ResetWorkflowExecutionRequest, ResetWorkflowExecutionResponse, StartWorkflowExecutionResponse,
    UpdateWorkflowExecutionRequest, UpdateWorkflowExecutionResponse,
};
use everlog_tests::dice::Dice;
use everlog_tests::fate::{Fate, is_passing};
use everlog_tests::patience;
use prost::{Message as _, Name};
use prost_types::Any;
use tonic::Code;

use crate::client::{AGAIN_AFTER, Client, NAMESPACE, execution, start};
use crate::client_log::{Answer, Deed, Via};
use crate::reader::Seen;
use crate::workflows::{Past, Said, command, complete, number, payloads, schedule, start_timer, text_in};

/// Updates of an account, and how often it is sent back at most.
const PAYMENTS: u32 = 4;
const RESETS_MAX: i64 = 2;
/// Of a thousand payments, those that a worker refuses, and those that wait for the answer to the end.
const DEBTS_PERMILLE: u32 = 150;
const TO_THE_END_PERMILLE: u32 = 500;
/// Of a thousand orders that were answered, those that are sent again, as if they had not been.
const AGAIN_PERMILLE: u32 = 500;
/// Of a thousand resets, those of the current run; the others are of one before it, perhaps.
const CURRENT_PERMILLE: u32 = 700;
/// The updates, and the signal that ends it all.
const PAY: &str = "pay";
const DEBT: &str = "debt";
const CLOSE: &str = "close";
/// How long a payment is accepted before it is answered, where it is not at once.
const BOOKED_AFTER_MS: i64 = 300;

/// Starts an account, pays and sends it back meanwhile, closes it and waits for its end.
pub async fn keep(client: &Client, seen: &Seen, id: &str, dice: &mut Dice) -> anyhow::Result<()> {
    let taken = client.insist_on_answer(id, Deed::Start, |identity| start(id, identity)).await?;
    ensure!(taken.fate == Fate::Acked, "{id} cannot be started");
    let mut runs = vec![StartWorkflowExecutionResponse::decode(taken.answer)?.run_id];
    let mut resets = number(id) % (RESETS_MAX + 1);
    for payment in 0..PAYMENTS {
        // While the payment is on its way; with the last one at the latest.
        let is_due = dice.permille(1_000 / (PAYMENTS - payment));
        let mut own = dice.fork();
        let payment = pay(client, id, &mut own);
        if resets > 0 && is_due {
            let (paid, run_id) = tokio::join!(payment, send_back(client, id, &runs, dice));
            paid?;
            let run_id = run_id?;
            resets -= i64::from(run_id.is_some());
            runs.extend(run_id);
        } else {
            payment.await?;
        }
    }
    let fate = client.signal(id, CLOSE).await?;
    ensure!(fate != Fate::Refused, "{id} cannot be closed");
    seen.ended(runs.last().context("it was started")?).await;
    Ok(())
}

/// An update under one id, sent until it is known what has come of it.
async fn pay(client: &Client, id: &str, dice: &mut Dice) -> anyhow::Result<()> {
    let (call, update_id) = client.client_log.sent(id, Deed::Update, Via::Grpc);
    let name = if dice.permille(DEBTS_PERMILLE) { DEBT } else { PAY };
    let mut to_the_end = dice.permille(TO_THE_END_PERMILLE);
    let deadline = patience::deadline();
    let mut pause = tokio::time::interval(AGAIN_AFTER);
    loop {
        pause.tick().await;
        ensure!(!deadline.is_over(), "{update_id} of {id} is not answered");
        let stage = if to_the_end { Stage::Completed } else { Stage::Accepted };
        let answer = match client.ask(&update(id, &update_id, name, stage)).await {
            Ok(answer) => heard(answer)?,
            Err(status) if is_passing(&status) || status.code() == Code::FailedPrecondition => continue,
            Err(status) => bail!("{update_id} is not taken by {id}: {status}"),
        };
        match answer {
            UpdateReply::Completed(value) => {
                client.client_log.hear(call, Answer::Completed(value));
                client.client_log.settle(call, Fate::Acked);
                return Ok(());
            }
            UpdateReply::Refused => {
                client.client_log.settle(call, Fate::Refused);
                return Ok(());
            }
            UpdateReply::Accepted => {
                client.client_log.hear(call, Answer::Accepted);
                client.client_log.settle(call, Fate::Acked);
                // Whoever comes again finds it by its id.
                if !to_the_end && !dice.permille(AGAIN_PERMILLE) {
                    return Ok(());
                }
                to_the_end = true;
            }
            UpdateReply::Nothing => {}
        }
    }
}

/// What an answer says of an update.
enum UpdateReply {
    Nothing,
    Accepted,
    Completed(String),
    Refused,
}

fn heard(answer: Bytes) -> anyhow::Result<UpdateReply> {
    let answer = UpdateWorkflowExecutionResponse::decode(answer)?;
    match answer.outcome.and_then(|outcome| outcome.value) {
        Some(outcome::Value::Success(value)) => {
            let value = text_in(&Payloads::decode(value)?).context("a worker answers with a value")?;
            Ok(UpdateReply::Completed(value))
        }
        // Any other failure is that of a run which was replaced meanwhile.
        Some(outcome::Value::Failure(failure)) => Ok(if Failure::decode(failure)?.message == DEBT {
            UpdateReply::Refused
        } else {
            UpdateReply::Nothing
        }),
        None if answer.stage >= Stage::Accepted as i32 => Ok(UpdateReply::Accepted),
        None => Ok(UpdateReply::Nothing),
    }
}

fn update(id: &str, update_id: &str, name: &str, stage: Stage) -> UpdateWorkflowExecutionRequest {
    let meta = Meta { update_id: update_id.into(), identity: update_id.into() };
    let input = Input { name: name.into(), ..Input::default() };
    UpdateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(id, ""),
        wait_policy: Some(WaitPolicy { lifecycle_stage: stage.into() }),
        request: Some(Request { meta: Some(meta), input: Some(input), ..Request::default() }),
        ..UpdateWorkflowExecutionRequest::default()
    }
}

/// Goes back to a task of the current run, or of one before it; the new run, if there was a task to go back to.
async fn send_back(
    client: &Client,
    id: &str,
    runs: &[String],
    dice: &mut Dice,
) -> anyhow::Result<Option<String>> {
    let is_current = dice.permille(CURRENT_PERMILLE);
    let base = if is_current { runs.len() - 1 } else { dice.index(runs.len()) };
    let base_run_id = &runs[base];
    let points = points(&client.history(id, base_run_id).await?);
    if points.is_empty() {
        return Ok(None);
    }
    let finish_event_id = points[dice.index(points.len())];
    let make = |identity: String| ResetWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(id, base_run_id),
        reason: identity.clone(),
        workflow_task_finish_event_id: finish_event_id,
        request_id: identity.clone(),
        identity,
        ..ResetWorkflowExecutionRequest::default()
    };
    let deed = Deed::Reset { base_run_id: base_run_id.clone(), finish_event_id };
    let (call, identity) = client.client_log.sent(id, deed, Via::Grpc);
    let request = make(identity);
    let taken = client.insist_as(call, id, &request).await?;
    if let Some(refusal) = taken.refusal {
        bail!("{id} cannot be sent back to {finish_event_id} of {base_run_id}: {refusal}");
    }
    let run_id = ResetWorkflowExecutionResponse::decode(taken.answer)?.run_id;
    client.client_log.hear(call, Answer::Run(run_id.clone()));
    if dice.permille(AGAIN_PERMILLE) {
        let again = ResetWorkflowExecutionResponse::decode(client.insist_on(&request).await?)?;
        client.client_log.hear(call, Answer::Run(again.run_id));
    }
    Ok(Some(run_id))
}

/// Events that a run can go back to: the ends of started workflow tasks. Others may stand within a batch.
fn points(history: &[HistoryEvent]) -> Vec<i64> {
    let is_point = |event: &&HistoryEvent| match &event.attributes {
        Some(
            Attributes::WorkflowTaskCompletedEventAttributes(_)
            | Attributes::WorkflowTaskFailedEventAttributes(_),
        ) => true,
        Some(Attributes::WorkflowTaskTimedOutEventAttributes(ended)) => ended.started_event_id > 0,
        _other => false,
    };
    history.iter().filter(is_point).map(|event| event.event_id).collect()
}

/// What has come of the updates that a history knows.
#[derive(Default)]
struct Book {
    /// Accepted and not answered.
    open: BTreeSet<String>,
    /// Brought over by a reset, with the events that say so.
    admitted: BTreeMap<String, (i64, Request)>,
    timers: BTreeSet<String>,
    fired: BTreeSet<String>,
    completed: i64,
}

impl Book {
    fn of(past: Past<'_>) -> anyhow::Result<Self> {
        let mut book = Self::default();
        for (event_id, attributes) in past.attributes() {
            match attributes {
                Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(admitted) => {
                    let request = admitted.request.clone().unwrap_or_default().encode_to_vec();
                    let request = Request::decode(request.as_slice())?;
                    let update_id = request.meta.clone().unwrap_or_default().update_id;
                    book.admitted.insert(update_id, (event_id, request));
                }
                Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(accepted) => {
                    book.admitted.remove(&accepted.protocol_instance_id);
                    book.open.insert(accepted.protocol_instance_id.clone());
                }
                Attributes::WorkflowExecutionUpdateCompletedEventAttributes(completed) => {
                    book.open.remove(&completed.meta.clone().unwrap_or_default().update_id);
                    book.completed += 1;
                }
                Attributes::TimerStartedEventAttributes(started) => {
                    book.timers.insert(started.timer_id.clone());
                }
                Attributes::TimerFiredEventAttributes(fired) => {
                    book.fired.insert(fired.timer_id.clone());
                }
                _other => {}
            }
        }
        Ok(book)
    }
}

/// What an account does next.
pub fn next(past: Past<'_>, messages: Vec<Message>) -> Said {
    let mut said = Said::default();
    if !past.has(EventType::TimerStarted) {
        said.commands = vec![start_timer("pause", BOOKED_AFTER_MS), schedule()];
    }
    let book = Book::of(past).unwrap_or_default();
    let mut open = 0;
    for update_id in &book.open {
        if book.timers.contains(update_id) && !book.fired.contains(update_id) {
            open += 1;
        } else {
            respond(&mut said, update_id);
        }
    }
    let brought = messages.into_iter().filter_map(|message| {
        let request = Request::decode(message.body?.value.as_slice()).ok()?;
        Some((message.id, request))
    });
    let kept = book.admitted.into_values().map(|(event_id, request)| (format!("event {event_id}"), request));
    for (message_id, request) in kept.chain(brought) {
        open += usize::from(take(&mut said, &message_id, request));
    }
    let is_charged = past.has(EventType::ActivityTaskCompleted) || past.has(EventType::ActivityTaskFailed);
    if open == 0 && is_charged && past.is_signaled(CLOSE) && book.fired.contains("pause") {
        // Nothing of what is answered here may be left out.
        let answers = said.messages.iter().filter(|message| message.id.ends_with(Response::NAME)).count();
        said.commands.push(complete(book.completed + answers as i64));
    }
    said
}

/// Takes an update or refuses it; true where it is to be answered later.
fn take(said: &mut Said, message_id: &str, request: Request) -> bool {
    let update_id = request.meta.clone().unwrap_or_default().update_id;
    if request.input.as_ref().is_none_or(|input| input.name == DEBT) {
        let failure = Failure { message: DEBT.into(), ..Failure::default() };
        let rejection = Rejection {
            rejected_request_message_id: message_id.into(),
            rejected_request: Some(request),
            failure: Some(failure.encode_to_vec().into()),
            ..Rejection::default()
        };
        said.messages.push(message(&update_id, &rejection));
        return false;
    }
    let acceptance = Acceptance {
        accepted_request_message_id: message_id.into(),
        // Behind some event: which one it says is no matter to anybody.
        accepted_request_sequencing_event_id: 1,
        accepted_request: Some(request),
    };
    say(said, message(&update_id, &acceptance));
    if number(&update_id) % 2 == 0 {
        respond(said, &update_id);
        return false;
    }
    said.commands.push(start_timer(&update_id, BOOKED_AFTER_MS));
    true
}

/// The answer to a payment: its id, booked.
fn respond(said: &mut Said, update_id: &str) {
    let meta = Some(Meta { update_id: update_id.into(), identity: "worker".into() });
    let value = payloads(&format!("booked {update_id}")).encode_to_vec();
    let outcome = Some(Outcome { value: Some(outcome::Value::Success(value.into())) });
    say(said, message(update_id, &Response { meta, outcome }));
}

/// A message, and the command that says where it stands.
fn say(said: &mut Said, message: Message) {
    said.commands.push(refer(&message));
    said.messages.push(message);
}

fn refer(message: &Message) -> Command {
    command(CommandAttributes::ProtocolMessage(Refer { message_id: message.id.clone() }))
}

fn message<M: prost::Message + Name>(update_id: &str, body: &M) -> Message {
    Message {
        id: format!("{update_id}/{}", M::NAME),
        protocol_instance_id: update_id.into(),
        body: Some(Any { type_url: M::type_url(), value: body.encode_to_vec() }),
        ..Message::default()
    }
}
