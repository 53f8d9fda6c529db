//! The completion of a workflow task: the worker's commands, taken all together or not at all.
//!
//! started  --all commands and messages are right-->      (none), and what they ask for is done
//! started  --one is wrong-->                             (none), failed: it is tried again
//! started  --one is wrong for ever-->                    (none), and the run is terminated
//! started  --one names what nobody knows-->              started: the worker keeps it
//! started  --it closes the run, behind what it has not seen-->  (none), failed: it is tried again with that
//!
//! What comes to a task in hand by other ways: see `turn.rs`.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::api_types::{TaskFailedCause as Cause, VersioningBehavior};
use crate::command::{Command, CommandAttributes};
use crate::draft::{Change, Draft, Extras, Step};
use crate::failure;
use crate::level;
use crate::machine::update::protocol::{self, Messages};
use crate::machine::update::{self, Done, Message};
use crate::machine::workflow_task::{self, Completed, Failed, Sticky, Task, Token};
use crate::machine::{
    activity, activity_attempt, child, close, command_validation, continuation, external_workflow, marker,
    memo_and_search_attributes, timer, worker_versioning, workflow_task_started,
};
use crate::outcome::{ActivityGrant, Completed as CompletedReply, Outcome, Rejection, Reply};
use crate::payload::check_user_metadata;
use crate::run::Run;

/// Order: a worker completes a workflow task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Complete {
    /// The task.
    #[prost(message, optional, tag = "1")]
    pub token: Option<Token>,
    /// What the workflow asks for, in order.
    #[prost(message, repeated, tag = "2")]
    pub commands: Vec<Command>,
    /// The worker.
    #[prost(string, tag = "3")]
    pub identity: String,
    /// The worker keeps the run in its cache and polls this queue for it.
    #[prost(message, optional, tag = "4")]
    pub sticky: Option<Sticky>,
    /// The worker takes the next task, if there is one, with the answer.
    #[prost(bool, tag = "5")]
    pub return_new_task: bool,
    /// A new task whether or not anything happened: the worker needs more time.
    #[prost(bool, tag = "6")]
    pub force_new_task: bool,
    /// Flags of the SDK that replay needs, opaque.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub sdk_metadata: Option<Bytes>,
    /// What the SDK counted, opaque.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub metering_metadata: Option<Bytes>,
    /// The worker's binary.
    #[prost(string, tag = "9")]
    pub binary_checksum: String,
    /// The worker's version, opaque.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub worker_version: Option<Bytes>,
    /// Protocol messages came along: more than a sign of life.
    #[prost(bool, tag = "11")]
    pub has_messages: bool,
    /// What the worker says of updates.
    #[prost(message, repeated, tag = "12")]
    pub messages: Vec<Message>,
    /// The worker takes events a second time that came with a task which left no trace.
    #[prost(bool, tag = "13")]
    pub takes_events_again: bool,
    /// What is wrong with commands by what is no part of the state: which search attributes the namespace has, and which
    /// other namespaces there are. Whoever brings the completion has looked.
    #[prost(message, repeated, tag = "14")]
    pub findings: Vec<ValidationFailure>,
    /// How the run goes by versions of its workers.
    #[prost(enumeration = "VersioningBehavior", tag = "15")]
    pub versioning_behavior: i32,
    /// The worker's deployment.
    #[prost(string, tag = "16")]
    pub deployment_name: String,
    /// The version of it.
    #[prost(message, optional, tag = "17")]
    pub deployment_version: Option<worker_versioning::Version>,
    /// The name of the run's namespace, for what it asks of other workflows.
    #[prost(string, tag = "40")]
    pub namespace: String,
    /// The other namespaces that commands may go to. Whoever brings the completion has judged its caller in each.
    #[prost(message, repeated, tag = "41")]
    pub other_namespaces: Vec<OtherNamespace>,
}

/// Another namespace, that commands may go to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OtherNamespace {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its UUID.
    #[prost(string, tag = "2")]
    pub id: String,
    /// How long it keeps closed runs, in ms.
    #[prost(int64, tag = "3")]
    pub retention_ms: i64,
}

impl Complete {
    /// The namespace that a command names: the run's own, or one of those that its commands may go to.
    ///
    /// # Errors
    /// It may not go there.
    pub(crate) fn target(&self, draft: &Draft<'_>, given: &str) -> Result<OtherNamespace, String> {
        let (start, own) = (&draft.run.start, &self.namespace);
        if given.is_empty() || given == own {
            let (name, id) = (own.clone(), start.namespace_id.clone());
            return Ok(OtherNamespace { name, id, retention_ms: start.retention_ms });
        }
        let allowed = self.other_namespaces.iter().filter(|_| draft.stamp.level >= level::OTHER_NAMESPACES);
        let found = allowed.into_iter().find(|other| other.name == given).cloned();
        found.ok_or_else(|| {
            format!("cross-namespace commands are not allowed: {own:?} asks something of {given:?}.")
        })
    }
}

/// A command that does not fit what is there.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ValidationFailure {
    /// Its place among the commands, from 0.
    #[prost(uint32, tag = "1")]
    pub command: u32,
    /// What is wrong with it, in words.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// What it is that does not fit.
    #[prost(enumeration = "Fault", tag = "3")]
    pub fault: i32,
}

/// What does not fit what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Fault {
    /// Search attributes that the namespace has not.
    Attributes = 0,
    /// Search attributes that only the server sets, or whose values are of another type.
    Values = 1,
    /// The namespace that is meant: there is none of the name that is the reason.
    Namespace = 2,
}

/// Why a completion is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskFailure {
    cause: Cause,
    reason: String,
    then: Then,
}

/// What becomes of a task whose completion is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It fails, and there is another one.
    TryAgain,
    /// Trying again cannot help: the run is terminated.
    Terminate,
    /// Its worker keeps it, until it brings another completion or the time is over.
    Keep,
    /// The same, since nobody knows the namespace that is the reason.
    KeepUnknown,
}

impl TaskFailure {
    pub(crate) fn new(cause: Cause, reason: &str) -> Self {
        Self { cause, reason: shortened(reason), then: Then::TryAgain }
    }

    /// A failure that ends the run.
    pub(crate) fn fatal(cause: Cause, reason: &str) -> Self {
        Self { cause, reason: shortened(reason), then: Then::Terminate }
    }

    /// A refusal by which nothing changes: so Temporal's server takes bad retry policies, cron schedules and task queues.
    pub(crate) fn kept(reason: String) -> Self {
        Self { cause: Cause::Unspecified, reason: shortened(&reason), then: Then::Keep }
    }

    /// A refusal by which nothing changes either: there is no namespace of this name.
    pub(crate) fn unknown_namespace(name: &str) -> Self {
        Self { cause: Cause::Unspecified, reason: shortened(name), then: Then::KeepUnknown }
    }

    /// What is wrong.
    pub(crate) fn into_reason(self) -> String {
        self.reason
    }

    fn message(&self) -> String {
        match (self.then, self.cause) {
            (Then::Keep | Then::KeepUnknown, _) => self.reason.clone(),
            (_, Cause::UnhandledCommand) => "UnhandledCommand".into(),
            (_, cause) => format!("{cause:?}: {}", self.reason),
        }
    }
}

/// A reason names ids, and stands in the history: one that is too long must not be kept there for being so.
const REASON_BYTES_MAX: usize = 4_096;

fn shortened(reason: &str) -> String {
    reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned()
}

/// What a command names is not there, or there already, in the words of Temporal's server.
pub(crate) fn not_now(action: &str, place: &str) -> String {
    format!("invalid history builder state for action: {action}, {place}")
}

/// What the commands did besides events.
#[derive(Default)]
struct Effects {
    successor: Option<Step>,
    eager: Vec<i64>,
    /// Events that stand behind all that the commands bring.
    held: usize,
    /// The task was as if it had never been.
    traceless: bool,
}

/// Events that a worker is shown a second time because the task that it saw them with left no trace.
const SHOWN_AGAIN_MAX: i64 = 10;

/// Metadata of a command goes onto its event.
pub(crate) fn extras(command: &Command) -> Extras {
    Extras {
        user_metadata: command.user_metadata.clone(),
        links: Vec::new(),
        event_group_markers: command.event_group_markers.clone(),
    }
}

/// Completes the task with all its commands, or fails it. `done`: updates that were completed before.
/// `run`: the draft's, before the record.
pub(crate) fn complete(
    mut draft: Draft<'_>,
    run: &Run,
    order: &Complete,
    done: &BTreeMap<String, Done>,
) -> Outcome {
    let task = match check(run, order) {
        Ok(task) => task,
        Err(rejection) => return too_late(draft, order, rejection),
    };
    let alive_ms = draft.now_ms().saturating_sub(task.first_scheduled_ms);
    if is_heartbeat(order) && alive_ms > draft.settings.task_heartbeat_max_ms {
        workflow_task_started::time_out_started(&mut draft);
        let reply = Reply::Rejected(Rejection::NotFound("workflow task heartbeat timeout".into()));
        return Outcome { steps: vec![draft.finish()], ..Outcome::answer(reply) };
    }
    if leaves_no_trace(&draft, order, task) {
        return discard(draft, run, order, (task, done));
    }
    match execute_all(&mut draft, order, done) {
        Ok(effects) => finish(draft, order, task, effects),
        Err(failure) => {
            draft.roll_back(run.clone());
            refuse(draft, task, &failure, order)
        }
    }
}

/// The completion is refused. A worker that is told so drops the run from its cache, so from here on it is no longer
/// the one to ask: with nothing pending, a query to it would be answered from whatever history it reads anew.
fn too_late(mut draft: Draft<'_>, order: &Complete, rejection: Rejection) -> Outcome {
    let cached = |sticky: &Sticky| order.sticky.as_ref().is_some_and(|own| own.queue == sticky.queue);
    let drops = matches!(rejection, Rejection::NotFound(_)) && draft.run.head.task.is_none();
    if !drops || !draft.run.head.sticky.as_ref().is_some_and(cached) {
        return Outcome::refuse(rejection);
    }
    draft.change(Change::Sticky(None));
    Outcome { steps: vec![draft.finish()], ..Outcome::answer(Reply::Rejected(rejection)) }
}

/// What is refused here changes no more than that: the worker keeps the task until it times out.
fn check<'a>(run: &'a Run, order: &Complete) -> Result<&'a Task, Rejection> {
    let task = workflow_task_started::started(run, order.token.as_ref())?;
    if order.force_new_task && run.is_paused() {
        let why = "Workflow is paused and force create new workflow task is not allowed.";
        return Err(Rejection::NotReady(why.into()));
    }
    for (index, command) in order.commands.iter().enumerate() {
        let Some(kind) = command.kind() else {
            let named = match command.command_type {
                0 => "Unspecified".to_owned(),
                unknown => unknown.to_string(),
            };
            return Err(Rejection::InvalidArgument(format!("unknown command type: {named}")));
        };
        if kind.closes && index + 1 < order.commands.len() {
            let name = |command: &Command| {
                command.kind().map_or_else(|| command.command_type.to_string(), |kind| kind.name.to_owned())
            };
            let names: Vec<String> = order.commands.iter().map(name).collect();
            let (names, last) = (names.join(", "), kind.name);
            let message =
                format!("invalid command sequence: [{names}], command {last} must be the last command.");
            return Err(Rejection::InvalidArgument(message));
        }
    }
    Ok(task)
}

fn is_heartbeat(order: &Complete) -> bool {
    order.force_new_task && order.commands.is_empty() && !order.has_messages
}

/// A speculative task that brought nothing but refusals is as if it had never been; unless its worker has been shown
/// events that it would not take a second time, or many.
fn leaves_no_trace(draft: &Draft<'_>, order: &Complete, task: &Task) -> bool {
    let behind = task.scheduled_event_id.saturating_sub(draft.run.head.previous_started_event_id);
    // Between the two there is always the Completed event of the last task.
    let shown = behind.saturating_sub(2);
    let shown_max = if order.takes_events_again { SHOWN_AGAIN_MAX } else { 0 };
    task.speculative
        && order.commands.is_empty()
        && !order.force_new_task
        && shown <= shown_max
        && order.messages.iter().all(protocol::is_refusal)
}

fn discard(
    mut draft: Draft<'_>,
    run: &Run,
    order: &Complete,
    (task, done): (&Task, &BTreeMap<String, Done>),
) -> Outcome {
    workflow_task_started::end(&mut draft);
    keep_worker(&mut draft, order);
    if let Err(failure) = Messages::of(&order.messages, done).take_rest(&mut draft) {
        draft.roll_back(run.clone());
        return refuse(draft, task, &failure, order);
    }
    finish(draft, order, task, Effects { traceless: true, ..Effects::default() })
}

/// The worker that completed a task has the run in its cache, or has not.
fn keep_worker(draft: &mut Draft<'_>, order: &Complete) {
    let sticky = order.sticky.as_ref().filter(|sticky| !sticky.queue.is_empty());
    if draft.run.head.sticky.as_ref() != sticky {
        draft.change(Change::Sticky(sticky.cloned()));
    }
}

fn execute_all(
    draft: &mut Draft<'_>,
    order: &Complete,
    done: &BTreeMap<String, Done>,
) -> Result<Effects, TaskFailure> {
    workflow_task_started::write_started(draft, order.worker_version.clone());
    let ids = |task: &Task| (task.scheduled_event_id, task.started_event_id);
    let (scheduled_event_id, started_event_id) = draft.run.head.task.as_ref().map(ids).unwrap_or_default();
    let completed = draft.emit(Completed {
        scheduled_event_id,
        started_event_id,
        identity: order.identity.clone(),
        binary_checksum: order.binary_checksum.clone(),
        worker_version: order.worker_version.clone(),
        sdk_metadata: order.sdk_metadata.clone(),
        metering_metadata: order.metering_metadata.clone(),
        versioning_behavior: order.versioning_behavior,
        worker_deployment_name: order.deployment_name.clone(),
        deployment_version: order.deployment_version.clone(),
    });
    workflow_task_started::end(draft);
    draft.change(Change::TaskDone(started_event_id));
    keep_worker(draft, order);
    let mut messages = Messages::of(&order.messages, done);
    let mut effects = Effects::default();
    for (command, place) in order.commands.iter().zip(0_u32..) {
        let Some(kind) = command.kind() else { continue };
        if draft.run.head.next_event_id.saturating_sub(started_event_id) > draft.settings.history_events_max {
            // More than a whole history may have: the run will be ended for it, so the rest need not be looked at.
            break;
        }
        if kind.closes {
            // What this very task has cancelled is no news, and is never written where the run ends.
            let has_news = draft.run.buffered.len() > effects.held;
            if has_news {
                return Err(TaskFailure::new(Cause::UnhandledCommand, ""));
            }
            for place in (0..std::mem::take(&mut effects.held)).rev() {
                draft.change(Change::Unbuffered(place));
            }
            messages.take_rest(draft)?;
        }
        check_user_metadata(command.user_metadata.as_ref(), draft.settings)
            .map_err(|reason| TaskFailure::new(kind.bad, reason))?;
        let Some(said) = command.said() else {
            let reason = format!("{0}CommandAttributes is not set on {0}Command.", kind.name);
            return Err(TaskFailure::new(kind.bad, &reason));
        };
        if let Some(found) = order.findings.iter().find(|found| found.command == place) {
            return Err(command_validation::unfit(draft, said, found, &order.namespace));
        }
        match said {
            CommandAttributes::ProtocolMessage(refer) => messages.take(draft, refer)?,
            said => execute(draft, command, said, completed, order, &mut effects)?,
        }
    }
    messages.take_rest(draft)?;
    Ok(effects)
}

fn execute(
    draft: &mut Draft<'_>,
    command: &Command,
    said: &CommandAttributes,
    completed: i64,
    from: &Complete,
    effects: &mut Effects,
) -> Result<(), TaskFailure> {
    let identity = &from.identity;
    let later = |cause, what: &str| Err(TaskFailure::new(cause, &format!("{what} are not supported yet.")));
    match said {
        CommandAttributes::ScheduleActivity(order) => {
            let scheduled_event_id = activity::schedule(draft, command, order, completed)?;
            if order.request_eager_execution && order.runs_on(&draft.run.start.task_queue) {
                effects.eager.push(scheduled_event_id);
            }
            Ok(())
        }
        CommandAttributes::RequestCancelActivity(order) => {
            let is_closed = activity::request_cancel(draft, command, order, completed, identity)?;
            effects.held += usize::from(is_closed);
            Ok(())
        }
        CommandAttributes::StartTimer(order) => timer::start(draft, command, order, completed),
        CommandAttributes::CancelTimer(order) => timer::cancel(draft, command, order, completed, identity),
        CommandAttributes::RecordMarker(order) => marker::record(draft, command, order, completed),
        CommandAttributes::UpsertSearchAttributes(order) => {
            memo_and_search_attributes::upsert_search_attributes(draft, command, order, completed)
        }
        CommandAttributes::ModifyProperties(order) => {
            memo_and_search_attributes::modify(draft, command, order, completed)
        }
        CommandAttributes::CompleteWorkflow(order) => {
            effects.successor = close::complete(draft, command, order, completed)?;
            Ok(())
        }
        CommandAttributes::FailWorkflow(order) => {
            effects.successor = close::fail(draft, command, order, completed)?;
            Ok(())
        }
        CommandAttributes::CancelWorkflow(order) => {
            close::cancel(draft, command, order, completed);
            Ok(())
        }
        CommandAttributes::ContinueAsNew(order) => {
            effects.successor = continuation::continue_as_new(draft, command, order, completed)?;
            Ok(())
        }
        CommandAttributes::StartChild(order) => child::start(draft, command, order, completed, from),
        CommandAttributes::RequestCancelExternal(order) => {
            external_workflow::send_cancel(draft, command, order, completed, from)
        }
        CommandAttributes::SignalExternal(order) => {
            external_workflow::send_signal(draft, command, order, completed, from)
        }
        CommandAttributes::ProtocolMessage(_) => Ok(()),
        CommandAttributes::ScheduleNexusOperation(_) => {
            later(Cause::BadScheduleNexusOperationAttributes, "Nexus operations")
        }
        CommandAttributes::RequestCancelNexusOperation(_) => {
            later(Cause::BadRequestCancelNexusOperationAttributes, "Nexus operations")
        }
    }
}

fn finish(mut draft: Draft<'_>, order: &Complete, task: &Task, effects: Effects) -> Outcome {
    let Effects { successor, eager, held: _, traceless } = effects;
    let mut grant = None;
    let mut claims = Vec::new();
    if !draft.run.is_open() {
        // Whoever asks something of others has to be there for the answer: at Temporal's server as well, nothing comes of it.
        draft.send_nothing();
        update::close(&mut draft, None);
    } else {
        if !order.force_new_task {
            update::reject_ignored(&mut draft, task.updates_given);
        }
        let eager = if draft.run.is_paused() { Vec::new() } else { eager };
        for (index, scheduled_event_id) in (0..).zip(eager) {
            claims.extend(activity_attempt::start_at_once(
                &mut draft,
                index,
                scheduled_event_id,
                &order.identity,
            ));
        }
        if order.force_new_task || !draft.run.buffered.is_empty() {
            let first_ms = if is_heartbeat(order) { task.first_scheduled_ms } else { draft.now_ms() };
            let is_held = order.force_new_task && order.return_new_task;
            let held = if is_held { task.updates_given } else { 0 };
            workflow_task::schedule_since(&mut draft, first_ms, held);
        } else {
            // One that its worker does not take at once is written, as at Temporal's server.
            workflow_task::settle_updates(&mut draft, !order.return_new_task);
        }
        if draft.run.head.task.is_some() && order.return_new_task {
            grant = Some(workflow_task_started::start_at_once(&mut draft, &order.identity, true));
        }
    }
    let step = draft.finish();
    let activities = claims
        .into_iter()
        .filter_map(|id| step.run.activities.get(&id))
        .map(|activity| ActivityGrant { run: step.run.clone(), activity: activity.clone() })
        .collect();
    let reset_event_id = if traceless { step.run.head.previous_started_event_id } else { 0 };
    let reply = CompletedReply { task: grant.map(|grant| grant.of(&step)), activities, reset_event_id };
    Outcome::of(Reply::Completed(Box::new(reply)), step, successor)
}

/// The completion is not accepted: the task fails and says why. A repeated failure is not written again, whatever it
/// is; the task then simply times out.
fn refuse(mut draft: Draft<'_>, task: &Task, failure: &TaskFailure, order: &Complete) -> Outcome {
    let message = failure.message();
    if failure.then == Then::KeepUnknown {
        return Outcome::refuse(Rejection::NamespaceUnknown(message));
    }
    let reply = Reply::Rejected(Rejection::InvalidArgument(message.clone()));
    let unhandled = failure.cause == Cause::UnhandledCommand;
    if failure.then == Then::Keep {
        return Outcome::answer(reply);
    }
    // What came meanwhile is no fault of its worker: the updates go along with the next attempt.
    if !unhandled {
        update::abort_given(&mut draft, task.updates_given);
    }
    if task.attempt > 1 && !unhandled {
        let step = draft.finish();
        let steps = if step.changes.is_empty() { Vec::new() } else { vec![step] };
        return Outcome { steps, ..Outcome::answer(reply) };
    }
    let failed = Failed {
        binary_checksum: order.binary_checksum.clone(),
        ..Failed::because(failure.cause, Some(failure::of_task(&message)), &order.identity)
    };
    if failure.then == Then::Terminate {
        workflow_task_started::fail_for_good(&mut draft, failed);
        close::terminate(&mut draft, &message, None, "history-service");
    } else {
        workflow_task_started::fail_started(&mut draft, failed);
    }
    if unhandled {
        draft.change(Change::CloseAttempted(true));
    }
    Outcome { steps: vec![draft.finish()], ..Outcome::answer(reply) }
}
