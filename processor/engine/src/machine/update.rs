//! An update: a request to an open run that its worker takes or refuses, and answers.
//!
//! (none)    --admit-->                     admitted: it goes along with the next workflow task, as a message
//! admitted  --accept-->                    accepted, an event
//! admitted  --reject, ignore-->            (none), without a trace in the history
//! admitted  --fail, time out, release-->   admitted: it goes along with the next attempt of the task
//! admitted  --refuse the completion-->     (none), without a trace in the history; a patient one goes along with the next attempt
//! admitted  --continue as new, reset-->    (none), and admitted in the next run, unless it is meant for this run only, or
//!                                          was brought back by a reset
//! admitted  --close-->                     (none), without a trace in the history
//! accepted  --complete-->                  (none), an event; its id is remembered as long as the run
//! accepted  --close-->                     accepted: it failed with its run
//! (none)    --reset-->                     admitted, an event: the run that was reset had accepted it
//!
//! What a started task has been given are the updates whose numbers are above `updates_held` and up to `updates_given`:
//! see `workflow_task.rs`. What a worker says of them: see `update/protocol.rs`.

pub(crate) mod protocol;

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use crate::draft::{Change, Draft};
use crate::failure;
use crate::machine::{reset, workflow_task};
use crate::outcome::Rejection;
use crate::run::Run;

/// Attempts of a workflow task from which on its run takes no update.
pub const FAILING_ATTEMPTS: i32 = 3;

/// An update that is not completed yet.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Update {
    /// Its id, unique in the run.
    #[prost(string, tag = "1")]
    pub update_id: String,
    /// From 1, in the order in which the run's updates were admitted.
    #[prost(int64, tag = "2")]
    pub number: i64,
    /// The encoded `Request`, until it is accepted.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub request: Option<Bytes>,
    /// Its Accepted event; 0 while it is not accepted.
    #[prost(int64, tag = "4")]
    pub accepted_event_id: i64,
    /// It does not go over to a run that continues this one.
    #[prost(bool, tag = "5")]
    pub this_run_only: bool,
    /// A completion that is refused does not end it: it goes along with the next task.
    #[prost(bool, tag = "6")]
    pub patient: bool,
    /// Its request stands in an Admitted event: a worker finds it there.
    #[prost(bool, tag = "7")]
    pub is_written: bool,
}

/// Where the outcome of a completed update stands.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Done {
    /// Its Completed event.
    #[prost(int64, tag = "1")]
    pub event_id: i64,
    /// The first event of the batch that the event is stored in.
    #[prost(int64, tag = "2")]
    pub batch_event_id: i64,
}

/// Order: bring an update to a run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Admit {
    /// The same id is taken once per run; never empty.
    #[prost(string, tag = "1")]
    pub update_id: String,
    /// The encoded `Request`, which names the id as well.
    #[prost(bytes = "bytes", tag = "2")]
    pub request: Bytes,
    /// If set, the run must belong to the chain that began with this run.
    #[prost(string, tag = "3")]
    pub first_run_id: String,
    /// It is meant for no run that continues this one.
    #[prost(bool, tag = "4")]
    pub this_run_only: bool,
    /// Nobody waits who could ask again: it is admitted, and stays, while the run's tasks fail.
    #[prost(bool, tag = "5")]
    pub patient: bool,
}

/// A message of a worker that came with a completed task. Field numbers are those of Temporal's `Message`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Message {
    /// Commands refer to it by this.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The update.
    #[prost(string, tag = "2")]
    pub protocol_instance_id: String,
    /// What it says.
    #[prost(message, optional, tag = "5")]
    pub body: Option<Body>,
}

/// What a message says, as an `Any`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Body {
    /// The type's name, behind a domain and a slash.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message of that type.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// Command: here stands what a message says.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Refer {
    /// The message.
    #[prost(string, tag = "1")]
    pub message_id: String,
}

/// Which update, and who asked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Meta {
    /// The update.
    #[prost(string, tag = "1")]
    pub update_id: String,
    /// Who asked.
    #[prost(string, tag = "2")]
    pub identity: String,
}

/// Event: an update that was accepted before a reset waits for the worker's word again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Admitted {
    /// The `Request`, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub request: Option<Bytes>,
    /// Why it is written: see [`REAPPLIED`].
    #[prost(int32, tag = "2")]
    pub origin: i32,
}

pub(crate) const REAPPLIED: i32 = 1;

/// The part of a `Request` that names its update.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Named {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
}

/// Event: the worker took the update.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Accepted {
    /// The update.
    #[prost(string, tag = "1")]
    pub protocol_instance_id: String,
    /// The message that brought it to the worker.
    #[prost(string, tag = "2")]
    pub accepted_request_message_id: String,
    /// The event behind which the worker got it.
    #[prost(int64, tag = "3")]
    pub accepted_request_sequencing_event_id: i64,
    /// The `Request`, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub accepted_request: Option<Bytes>,
}

/// Event: the worker answered the update.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Completed {
    /// The update.
    #[prost(message, optional, tag = "1")]
    pub meta: Option<Meta>,
    /// The `Outcome`, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub outcome: Option<Bytes>,
    /// Its Accepted event.
    #[prost(int64, tag = "3")]
    pub accepted_event_id: i64,
}

/// An `Outcome` that is a failure.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Failed {
    #[prost(bytes = "bytes", optional, tag = "2")]
    failure: Option<Bytes>,
}

/// How an update ended that leaves no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was rejected: the encoded `Outcome`.
    Rejected(Bytes),
    /// Its run was closed before it was accepted.
    Closed,
    /// The completion of the workflow task that it went along with was refused.
    TaskFailed,
    /// It waits in this run now.
    Moved(String),
}

/// How far an update is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for a worker's word.
    Admitted,
    /// A worker has taken it.
    Accepted,
    /// It has this encoded `Outcome`.
    Completed(Bytes),
    /// It has an outcome, which stands in the history.
    Done(Done),
}

/// How an update stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateStanding {
    /// The run that it is in.
    pub run_id: String,
    /// Its id.
    pub update_id: String,
    /// How far it is.
    pub stage: Stage,
}

/// How an update of a run stands; none of one that the run does not know. `done`: where its outcome stands, if it has one.
pub fn standing(run: &Run, update_id: &str, done: Option<&Done>) -> Option<UpdateStanding> {
    let stage = match (done, run.updates.get(update_id)) {
        (Some(done), _) => Stage::Done(*done),
        (None, None) => return None,
        (None, Some(update)) if update.accepted_event_id == 0 => Stage::Admitted,
        (None, Some(_)) if run.is_open() => Stage::Accepted,
        (None, Some(_)) => Stage::Completed(unfinished()),
    };
    Some(UpdateStanding { run_id: run.start.run_id.clone(), update_id: update_id.to_owned(), stage })
}

/// The outcome of an accepted update whose run is closed.
pub fn unfinished() -> Bytes {
    let message = "Workflow Update failed because the Workflow completed before the Update completed.";
    failed(Some(failure::of_update(message, "AcceptedUpdateCompletedWorkflow")))
}

pub(crate) fn failed(failure: Option<Bytes>) -> Bytes {
    Failed { failure }.encode_to_vec().into()
}

/// Updates that go along with the started task, in the order in which they were admitted.
pub fn given(run: &Run) -> Vec<&Update> {
    let Some(task) = run.started_task() else { return Vec::new() };
    let mut given: Vec<&Update> = carried(run)
        .filter(|update| update.number > task.updates_held && update.number <= task.updates_given)
        .collect();
    given.sort_by_key(|update| update.number);
    given
}

/// Updates that nobody has accepted.
fn waiting(run: &Run) -> impl Iterator<Item = &Update> {
    run.updates.values().map(Arc::as_ref).filter(|update| update.accepted_event_id == 0)
}

/// Those that workflow tasks bring; what a reset has brought over stands in the history, where workers find it.
fn carried(run: &Run) -> impl Iterator<Item = &Update> {
    waiting(run).filter(|update| !update.is_written)
}

/// True where an update waits that the run's worker, or the one that had the last task, was not given.
pub(crate) fn is_ungiven(run: &Run, given: i64) -> bool {
    carried(run).any(|update| update.number > given)
}

/// True where the worker should be advised to continue as new before no update is taken any more.
pub(crate) fn are_many(draft: &Draft<'_>) -> bool {
    let settings = draft.settings;
    settings.updates_max > 0 && total(&draft.run) >= settings.updates_max.saturating_mul(9) / 10
}

fn total(run: &Run) -> i64 {
    run.head.updates_completed.saturating_add(run.updates.len() as i64)
}

/// Admits an update, or finds it again.
pub(crate) fn admit(
    draft: &mut Draft<'_>,
    order: &Admit,
    done: Option<&Done>,
) -> Result<UpdateStanding, Rejection> {
    if let Some(standing) = standing(&draft.run, &order.update_id, done) {
        return Ok(standing);
    }
    check(draft, order)?;
    draft.change(Change::Update(Box::new(Update {
        update_id: order.update_id.clone(),
        number: draft.run.head.updates_admitted.saturating_add(1),
        request: Some(order.request.clone()),
        accepted_event_id: 0,
        this_run_only: order.this_run_only,
        patient: order.patient,
        is_written: false,
    })));
    workflow_task::settle_updates(draft, false);
    let (run_id, update_id) = (draft.run.start.run_id.clone(), order.update_id.clone());
    Ok(UpdateStanding { run_id, update_id, stage: Stage::Admitted })
}

fn check(draft: &Draft<'_>, order: &Admit) -> Result<(), Rejection> {
    let (run, settings) = (&draft.run, draft.settings);
    if run.is_paused() {
        return Err(Rejection::NotReady("Workflow is paused. Cannot update the workflow.".into()));
    }
    if !order.patient && run.head.task.as_ref().is_some_and(|task| task.attempt >= FAILING_ATTEMPTS) {
        let message = "Unable to perform workflow execution update due to Workflow Task in failed state.";
        return Err(Rejection::NotReady(message.into()));
    }
    if !order.patient && run.head.close_attempted && run.started_task().is_some() {
        let message = "workflow operation can not be applied because workflow is closing";
        return Err(Rejection::Busy(message.into()));
    }
    let in_flight = run.updates.len() as i64;
    let most = settings.updates_in_flight_max;
    if most > 0 && in_flight >= most {
        let message = format!("limit on number of concurrent in-flight updates has been reached ({most})");
        return Err(Rejection::TooManyAtOnce(message));
    }
    let bytes: usize = waiting(run).filter_map(|update| update.request.as_ref()).map(Bytes::len).sum();
    let most = settings.updates_bytes_max;
    if most > 0 && bytes.saturating_add(order.request.len()) as i64 >= most {
        let message =
            format!("limit on total payload size of in-flight updates has been reached ({most} bytes)");
        return Err(Rejection::TooManyAtOnce(message));
    }
    let most = settings.updates_max;
    if most > 0 && total(run) >= most {
        let message = format!(
            "The limit on the total number of distinct updates in this workflow has been reached ({most}). An update that is sent again has to \
             keep its id; a workflow that takes many has to continue as new."
        );
        return Err(Rejection::TooMany(message));
    }
    Ok(())
}

/// Updates that the worker was given and said nothing of: it does not know what they are.
pub(crate) fn reject_ignored(draft: &mut Draft<'_>, given: i64) {
    let message = "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow Update is \
                   not supported by the worker.";
    for update_id in ids(carried(&draft.run), given) {
        let failure = failure::of_update(message, "UnprocessedUpdate");
        end(draft, &update_id, End::Rejected(failed(Some(failure))));
    }
}

/// The completion of the task that they went along with is refused: callers are told, and may ask again. Patient ones wait
/// for the next task.
pub(crate) fn abort_given(draft: &mut Draft<'_>, given: i64) {
    for update_id in ids(carried(&draft.run), given) {
        if !draft.run.updates.get(&update_id).is_some_and(|update| update.patient) {
            end(draft, &update_id, End::TaskFailed);
        }
    }
}

/// The run is closed: what nobody has accepted goes over to the run that continues it, if there is one, or ends. What a
/// reset has brought back ends: its worker has seen it in the history.
pub(crate) fn close(draft: &mut Draft<'_>, mut next: Option<&mut Draft<'_>>) {
    for update_id in ids(waiting(&draft.run), i64::MAX) {
        let moves =
            draft.run.updates.get(&update_id).filter(|update| !update.this_run_only && !update.is_written);
        let moves = moves.cloned();
        let how = match (moves, &mut next) {
            (Some(update), Some(next)) => {
                if !reset::has_taken(next, &update_id) {
                    let number = next.run.head.updates_admitted.saturating_add(1);
                    let moved = Update { number, is_written: false, ..update.as_ref().clone() };
                    next.change(Change::Update(Box::new(moved)));
                }
                End::Moved(next.run.start.run_id.clone())
            }
            (Some(_) | None, _) => End::Closed,
        };
        end(draft, &update_id, how);
    }
}

/// Their ids in the order in which they were admitted, up to a number.
fn ids<'a>(updates: impl Iterator<Item = &'a Update>, up_to: i64) -> Vec<String> {
    let mut updates: Vec<_> = updates.filter(|update| update.number <= up_to).collect();
    updates.sort_by_key(|update| update.number);
    updates.into_iter().map(|update| update.update_id.clone()).collect()
}

pub(crate) fn end(draft: &mut Draft<'_>, update_id: &str, end: End) {
    draft.change(Change::UpdateEnded(update_id.to_owned(), end));
}

/// The id of the update that an encoded `Request` asks for; empty where it says none.
pub(crate) fn named(request: &Bytes) -> String {
    let meta = Named::decode(request.clone()).ok().and_then(|named| named.meta);
    meta.map(|meta| meta.update_id).unwrap_or_default()
}

pub(crate) fn apply_written(run: &mut Run, admitted: &Admitted) {
    let request = admitted.request.clone().unwrap_or_default();
    let number = run.head.updates_admitted.saturating_add(1);
    let update_id = named(&request);
    let update = Update { update_id, number, request: Some(request), is_written: true, ..Update::default() };
    apply_admitted(run, &update);
}

pub(crate) fn apply_admitted(run: &mut Run, update: &Update) {
    run.head.updates_admitted = update.number;
    run.updates.make_mut().insert(update.update_id.clone(), Arc::new(update.clone()));
}

pub(crate) fn apply_ended(run: &mut Run, update_id: &str) {
    run.updates.make_mut().remove(update_id);
}

pub(crate) fn apply_accepted(run: &mut Run, event_id: i64, accepted: &Accepted) {
    let update_id = accepted.protocol_instance_id.clone();
    let number = run.updates.get(&update_id).map_or(0, |update| update.number);
    let update = Update { update_id, number, accepted_event_id: event_id, ..Update::default() };
    run.updates.make_mut().insert(update.update_id.clone(), Arc::new(update));
}

pub(crate) fn apply_completed(run: &mut Run, completed: &Completed) {
    let update_id = completed.meta.as_ref().map_or("", |meta| meta.update_id.as_str());
    run.updates.make_mut().remove(update_id);
    run.head.updates_completed = run.head.updates_completed.saturating_add(1);
}
