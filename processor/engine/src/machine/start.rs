//! The start of a run: who may use a Workflow Id, and the first events.
//!
//! (none)  --start-->                                       open
//! any     --start, of a request that its chain knows-->     as it is: found again, the run that has taken it
//! closed  --start, the reuse policy allows it-->           closed, and a new run
//! closed  --start, else-->                                 closed: refused
//! open    --start, conflict policy Fail-->                 open: refused
//! open    --start, conflict policy UseExisting-->          open, with what goes along: a signal, an update, `attached_requests.rs`
//! open    --start, conflict policy TerminateExisting-->    closed, and a new run, in one step

use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{
    ConflictPolicy, Execution, Initiator, RetryPolicy, ReusePolicy, Status, TaskQueue, WorkflowType,
};
use crate::cron;
use crate::decide::View;
use crate::draft::{Change, Draft, Extras, Step, bytes};
use crate::machine::attached_requests::{self, OnConflict};
use crate::machine::child::Parent;
use crate::machine::reset_points::Points;
use crate::machine::schedule::{self, action::ActionWatcher};
use crate::machine::signal::{self, Signal};
use crate::machine::update::{self, Admit};
use crate::machine::worker_versioning::{self, Override, Version};
use crate::machine::workflow_task::{self, Task};
use crate::machine::{close, continuation, memo_and_search_attributes, workflow_task_started};
use crate::outcome::{Outcome, Rejection, Reply, Started as StartedReply, TaskGrant};
use crate::payload;
use crate::retry;
use crate::run::{Current, Properties, Run, Start};
use crate::settings::Settings;
use crate::stamp::Stamp;
use crate::time::{DURATION_MS_MAX, Duration, Timestamp, span_ms};

/// The event that hands out the first workflow task of a run together with its start.
const EAGER_STARTED_EVENT_ID: i64 = 3;

/// Order: start a run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// The same id is taken once per Workflow Id; never empty.
    #[prost(string, tag = "1")]
    pub request_id: String,
    /// The workflow type.
    #[prost(string, tag = "2")]
    pub workflow_type: String,
    /// The queue of its tasks.
    #[prost(string, tag = "3")]
    pub task_queue: String,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub input: Option<Bytes>,
    /// Limit over the chain of runs in ms; 0 = none.
    #[prost(int64, tag = "5")]
    pub execution_timeout_ms: i64,
    /// Limit of each run in ms; 0 = none.
    #[prost(int64, tag = "6")]
    pub run_timeout_ms: i64,
    /// Start-to-close timeout of a workflow task in ms; 0 = the default.
    #[prost(int64, tag = "7")]
    pub task_timeout_ms: i64,
    /// Who starts it.
    #[prost(string, tag = "8")]
    pub identity: String,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub search_attributes: Option<Bytes>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "11")]
    pub header: Option<Bytes>,
    /// What to do about a closed run of the id.
    #[prost(enumeration = "ReusePolicy", tag = "12")]
    pub reuse_policy: i32,
    /// What to do about an open run of the id.
    #[prost(enumeration = "ConflictPolicy", tag = "13")]
    pub conflict_policy: i32,
    /// How long the first workflow task waits, in ms.
    #[prost(int64, tag = "14")]
    pub start_delay_ms: i64,
    /// Summary and details, opaque.
    #[prost(bytes = "bytes", optional, tag = "15")]
    pub user_metadata: Option<Bytes>,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "16")]
    pub links: Vec<Bytes>,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub priority: Option<Bytes>,
    /// The caller takes the first workflow task itself.
    #[prost(bool, tag = "18")]
    pub eager: bool,
    /// How long the run stays readable after its close, in ms.
    #[prost(int64, tag = "19")]
    pub retention_ms: i64,
    /// A signal that goes with the start, or to the run that is there.
    #[prost(message, optional, tag = "20")]
    pub signal: Option<Signal>,
    /// A failure of an earlier run, opaque.
    #[prost(bytes = "bytes", optional, tag = "21")]
    pub continued_failure: Option<Bytes>,
    /// A result of an earlier run, opaque.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub last_completion_result: Option<Bytes>,
    /// When a failed run is tried again; never where absent.
    #[prost(message, optional, tag = "23")]
    pub retry_policy: Option<RetryPolicy>,
    /// When runs come; empty = once, at once.
    #[prost(string, tag = "24")]
    pub cron_schedule: String,
    /// Whose child it is: its first workflow task waits until the parent knows of it.
    #[prost(message, optional, boxed, tag = "40")]
    pub parent: Option<Box<Parent>>,
    /// An update that goes with the start, or to the run that is there.
    #[prost(message, optional, tag = "25")]
    pub update: Option<Admit>,
    /// What it leaves with an open run that is to be used.
    #[prost(message, optional, tag = "26")]
    pub on_conflict: Option<OnConflict>,
    /// What it says of the version of its workers.
    #[prost(message, optional, tag = "27")]
    pub versioning_override: Option<Override>,
    /// The version that its parent stays with.
    #[prost(message, optional, tag = "28")]
    pub inherited_pinned_version: Option<Version>,
    /// The action of a schedule that it is.
    #[prost(message, optional, boxed, tag = "29")]
    pub watcher: Option<Box<ActionWatcher>>,
}

/// Event: a run began.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Started {
    /// The workflow type.
    #[prost(message, optional, tag = "1")]
    pub workflow_type: Option<WorkflowType>,
    /// The name of the parent's namespace.
    #[prost(string, tag = "2")]
    pub parent_workflow_namespace: String,
    /// The run whose child it is.
    #[prost(message, optional, tag = "3")]
    pub parent_workflow_execution: Option<Execution>,
    /// The event in the parent's history that asked for it.
    #[prost(int64, tag = "4")]
    pub parent_initiated_event_id: i64,
    /// The queue of its tasks.
    #[prost(message, optional, tag = "5")]
    pub task_queue: Option<TaskQueue>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub input: Option<Bytes>,
    /// Limit over the chain of runs.
    #[prost(message, optional, tag = "7")]
    pub workflow_execution_timeout: Option<Duration>,
    /// Limit of this run.
    #[prost(message, optional, tag = "8")]
    pub workflow_run_timeout: Option<Duration>,
    /// Start-to-close timeout of its tasks.
    #[prost(message, optional, tag = "9")]
    pub workflow_task_timeout: Option<Duration>,
    /// The run before this one in the chain.
    #[prost(string, tag = "10")]
    pub continued_execution_run_id: String,
    /// Who made the run, if it continues another.
    #[prost(enumeration = "Initiator", tag = "11")]
    pub initiator: i32,
    /// The failure of the run before, opaque.
    #[prost(bytes = "bytes", optional, tag = "12")]
    pub continued_failure: Option<Bytes>,
    /// The last result of the chain, opaque.
    #[prost(bytes = "bytes", optional, tag = "13")]
    pub last_completion_result: Option<Bytes>,
    /// This run's own id: the seed of an SDK's random numbers.
    #[prost(string, tag = "14")]
    pub original_execution_run_id: String,
    /// Who started it.
    #[prost(string, tag = "15")]
    pub identity: String,
    /// The first run of the chain.
    #[prost(string, tag = "16")]
    pub first_execution_run_id: String,
    /// When a failed run is tried again, with all its defaults filled in.
    #[prost(message, optional, tag = "17")]
    pub retry_policy: Option<RetryPolicy>,
    /// From 1, counted anew by each run that is no retry.
    #[prost(int32, tag = "18")]
    pub attempt: i32,
    /// When the chain must have ended.
    #[prost(message, optional, tag = "19")]
    pub workflow_execution_expiration_time: Option<Timestamp>,
    /// When runs come; empty = there is no schedule.
    #[prost(string, tag = "20")]
    pub cron_schedule: String,
    /// How long the first workflow task waits.
    #[prost(message, optional, tag = "21")]
    pub first_workflow_task_backoff: Option<Duration>,
    /// An encoded map, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub memo: Option<Bytes>,
    /// An encoded map, as it was sent.
    #[prost(bytes = "bytes", optional, tag = "23")]
    pub search_attributes: Option<Bytes>,
    /// Where builds came in during the runs before.
    #[prost(message, optional, tag = "24")]
    pub prev_auto_reset_points: Option<Points>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "25")]
    pub header: Option<Bytes>,
    /// The UUID of the parent's namespace.
    #[prost(string, tag = "27")]
    pub parent_workflow_namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "28")]
    pub workflow_id: String,
    /// The workflow at the root of a tree of children; absent for the root itself.
    #[prost(message, optional, tag = "31")]
    pub root_workflow_execution: Option<Execution>,
    /// What the start says of the version of its workers.
    #[prost(message, optional, tag = "33")]
    pub versioning_override: Option<Override>,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "35")]
    pub priority: Option<Bytes>,
    /// The version that its parent, or the run before it, stays with.
    #[prost(message, optional, tag = "37")]
    pub inherited_pinned_version: Option<Version>,
    /// The first task was handed out with the start.
    #[prost(bool, tag = "38")]
    pub eager_execution_accepted: bool,
}

/// Where a start happens.
#[derive(Clone, Copy, Debug)]
pub struct StartContext<'a> {
    /// The namespace's UUID.
    pub namespace_id: &'a str,
    /// The Workflow Id.
    pub workflow_id: &'a str,
    /// The record.
    pub stamp: &'a Stamp,
    /// Limits and defaults.
    pub settings: &'a Settings,
}

/// What no gateway lets through and no start may have: maps that take much more memory than they have bytes, policies
/// that contradict themselves, schedules that never come.
pub(crate) fn check(order: &Begin, settings: &Settings) -> Result<(), Rejection> {
    continuation::check(order.retry_policy.as_ref(), &order.cron_schedule)
        .map_err(Rejection::InvalidArgument)?;
    if memo_and_search_attributes::has_too_many_keys(order.memo.as_ref(), settings) {
        return Err(Rejection::InvalidArgument("Memo size exceeds limit.".into()));
    }
    let number = |given| memo_and_search_attributes::check_number(given, settings);
    order.search_attributes.as_ref().map_or(Ok(()), number).map_err(Rejection::InvalidArgument)
}

/// Starts a run, or answers what is in the way.
pub(crate) fn begin(view: &View, order: &Begin, place: StartContext<'_>) -> Outcome {
    if let Err(rejection) = check(order, place.settings).and_then(|()| schedule::keep_id_free(place)) {
        return Outcome::refuse(rejection);
    }
    let Some(run) = &view.current else { return create(Vec::new(), order, place) };
    if let Some(update) = &order.update
        && let Some(outcome) = update_existing(run, view, (order, update), place)
    {
        return outcome;
    }
    if let Some(taker) = &view.seen {
        return Outcome::answer(found_again(taker, order));
    }
    if !run.is_open() {
        return match reuse(run, order) {
            Ok(()) => create(Vec::new(), order, place),
            Err(rejection) => Outcome::refuse(rejection),
        };
    }
    match conflict(order) {
        ConflictPolicy::Unspecified | ConflictPolicy::Fail => {
            Outcome::refuse(taken(run, "Workflow execution is already running.", ""))
        }
        ConflictPolicy::UseExisting => use_existing(run, order, place),
        ConflictPolicy::TerminateExisting => {
            let mut draft = Draft::new(run.as_ref().clone(), place.stamp, place.settings);
            let details = payload::json_text(&format!("terminated by new runID: {}", place.stamp.run_id(0)));
            let reason = "TerminateIfRunning WorkflowIdReusePolicy";
            close::terminate(&mut draft, reason, Some(details), "history-service");
            create(vec![draft.finish()], order, place)
        }
    }
}

/// The answer to a request that came before. Its caller gets the first workflow task again, if it is still the one
/// that was handed out with the start.
fn found_again(run: &Arc<Run>, order: &Begin) -> Reply {
    let first = |task: &&Task| task.started_event_id == EAGER_STARTED_EVENT_ID && task.attempt == 1;
    let eager = order.eager && run.started_task().filter(first).is_some();
    let grant = eager.then(|| Box::new(TaskGrant { run: run.clone(), sticky: false, tail: Vec::new() }));
    match found(run, order.signal.is_none() && made(run, order)) {
        Reply::Started(reply) => Reply::Started(StartedReply { task: grant, ..reply }),
        other => other,
    }
}

/// The request has made the run.
fn made(run: &Run, order: &Begin) -> bool {
    !order.request_id.is_empty() && run.start.request_id == order.request_id
}

fn conflict(order: &Begin) -> ConflictPolicy {
    if order.reuse_policy == i32::from(ReusePolicy::TerminateIfRunning) {
        return ConflictPolicy::TerminateExisting;
    }
    match (ConflictPolicy::try_from(order.conflict_policy), &order.signal) {
        (Ok(ConflictPolicy::Unspecified) | Err(_), Some(_)) => ConflictPolicy::UseExisting,
        (Ok(policy), _) => policy,
        (Err(_), None) => ConflictPolicy::Fail,
    }
}

fn reuse(run: &Run, order: &Begin) -> Result<(), Rejection> {
    match ReusePolicy::try_from(order.reuse_policy).unwrap_or(ReusePolicy::Unspecified) {
        ReusePolicy::Unspecified | ReusePolicy::AllowDuplicate | ReusePolicy::TerminateIfRunning => Ok(()),
        ReusePolicy::AllowDuplicateFailedOnly if run.has_failed() => Ok(()),
        ReusePolicy::AllowDuplicateFailedOnly => {
            let policy = " Workflow Id reuse policy: allow duplicate workflow Id if last run failed.";
            Err(taken(run, "Workflow execution already finished successfully.", policy))
        }
        ReusePolicy::RejectDuplicate => {
            let policy = " Workflow Id reuse policy: reject duplicate workflow Id.";
            Err(taken(run, "Workflow execution already finished.", policy))
        }
    }
}

fn taken(run: &Run, what: &str, policy: &str) -> Rejection {
    let (workflow_id, run_id) = (&run.start.workflow_id, &run.start.run_id);
    Rejection::AlreadyStarted {
        message: format!("{what} WorkflowId: {workflow_id}, RunId: {run_id}.{policy}"),
        run_id: run_id.clone(),
        first_run_id: run.start.first_run_id.clone(),
        request_id: run.start.request_id.clone(),
    }
}

/// The answer that names a run.
pub(crate) fn found(run: &Run, started: bool) -> Reply {
    Reply::Started(StartedReply {
        run_id: run.start.run_id.clone(),
        first_run_id: run.start.first_run_id.clone(),
        started,
        status: Status::try_from(run.head.status).unwrap_or(Status::Unspecified),
        task: None,
        update: None,
    })
}

/// The update that goes with a start is for the run that is there: it has the update already, or it is open and is to
/// be used. An update that was accepted and not answered is nothing to come back to once its run is closed, unless the same
/// request asks again: that is told what the run before has made of it, too. None where a run is to be started, or the start is
/// refused.
fn update_existing(
    run: &Run,
    view: &View,
    (order, update): (&Begin, &Admit),
    place: StartContext<'_>,
) -> Option<Outcome> {
    let done = view.done.get(&update.update_id);
    let is_known = view.seen.is_some();
    if (run.is_open() || done.is_some() || is_known)
        && let Some(standing) = update::standing(run, &update.update_id, done)
    {
        return Some(Outcome::answer(updated(found(run, false), standing)));
    }
    if let Some(taker) = view.seen.as_ref().filter(|taker| taker.start.run_id != run.start.run_id)
        && let Some(standing) = update::standing(taker, &update.update_id, view.done_before.as_ref())
    {
        return Some(Outcome::answer(updated(found(taker, false), standing)));
    }
    if !run.is_open() {
        return is_known.then(|| Outcome::refuse(Rejection::closed()));
    }
    if !is_known && conflict(order) != ConflictPolicy::UseExisting {
        return None;
    }
    let mut draft = Draft::new(run.clone(), place.stamp, place.settings);
    Some(match update::admit(&mut draft, update, None) {
        Ok(standing) => {
            let reply = updated(found(run, made(run, order)), standing);
            Outcome { steps: vec![draft.finish()], ..Outcome::answer(reply) }
        }
        Err(rejection) => Outcome::refuse(rejection),
    })
}

fn updated(reply: Reply, standing: update::UpdateStanding) -> Reply {
    match reply {
        Reply::Started(reply) => Reply::Started(StartedReply { update: Some(Box::new(standing)), ..reply }),
        other => other,
    }
}

fn use_existing(run: &Run, order: &Begin, place: StartContext<'_>) -> Outcome {
    let mut draft = Draft::new(run.clone(), place.stamp, place.settings);
    let Some(order) = &order.signal else {
        let Some(what) = order.on_conflict else { return Outcome::answer(found(run, false)) };
        attached_requests::attach(&mut draft, order, what);
        return Outcome { steps: vec![draft.finish()], ..Outcome::answer(found(run, false)) };
    };
    if draft.run.head.backoff_until_ms > 0 {
        draft.change(Change::BackoffOver);
    }
    if let Err(rejection) = signal::signal(&mut draft, order) {
        return Outcome::refuse(rejection);
    }
    let seen = Some(order.request_id.clone()).filter(|id| !id.is_empty());
    Outcome { steps: vec![draft.finish()], seen, ..Outcome::answer(found(run, false)) }
}

fn create(mut steps: Vec<Step>, order: &Begin, place: StartContext<'_>) -> Outcome {
    let run_id = place.stamp.run_id(0);
    let start = first_start(order, &run_id, place);
    let eager =
        order.eager && order.signal.is_none() && order.parent.is_none() && start.first_task_backoff_ms == 0;
    let is_repeated = !order.cron_schedule.is_empty();
    let started = Started {
        initiator: if is_repeated { Initiator::Cron.into() } else { Initiator::Unspecified.into() },
        retry_policy: retry::of_workflow(order.retry_policy.as_ref()).unwrap_or_default(),
        cron_schedule: order.cron_schedule.clone(),
        input: order.input.clone(),
        identity: order.identity.clone(),
        header: order.header.clone(),
        memo: order.memo.clone(),
        search_attributes: order.search_attributes.clone(),
        continued_failure: order.continued_failure.clone(),
        last_completion_result: order.last_completion_result.clone(),
        eager_execution_accepted: eager,
        versioning_override: order.versioning_override.clone(),
        inherited_pinned_version: order.inherited_pinned_version.clone(),
        ..started(&start)
    };
    let extras = Extras {
        user_metadata: order.user_metadata.clone(),
        links: order.links.clone(),
        event_group_markers: Vec::new(),
    };
    let mut draft = open(start, started, extras, place);
    if let Some(order) = &order.signal {
        draft.change(Change::Signals(1));
        let extras = Extras { links: order.links.clone(), ..Extras::default() };
        draft.emit_at(place.stamp.now_ms, signal::signaled(order).into(), extras);
    }
    if draft.run.head.backoff_until_ms == 0 && order.parent.is_none() {
        workflow_task::schedule(&mut draft, 1);
    }
    let update = match order.update.as_ref().map(|update| update::admit(&mut draft, update, None)) {
        Some(Ok(standing)) => Some(Box::new(standing)),
        Some(Err(rejection)) => return Outcome::refuse(rejection),
        None => None,
    };
    let grant = eager.then(|| workflow_task_started::start_at_once(&mut draft, &order.identity, false));
    let step = draft.finish();
    let task = grant.map(|grant| Box::new(grant.of(&step)));
    let reply = match found(&step.run, true) {
        Reply::Started(reply) => Reply::Started(StartedReply { task, update, ..reply }),
        other => other,
    };
    let seen = order.signal.as_ref().map(|signal| signal.request_id.clone()).filter(|id| !id.is_empty());
    steps.push(step);
    Outcome { steps, current: Some(Current { run_id }), seen, ..Outcome::answer(reply) }
}

fn first_start(order: &Begin, run_id: &str, place: StartContext<'_>) -> Start {
    let now_ms = place.stamp.now_ms;
    let span_ms = |given_ms: i64| given_ms.clamp(0, DURATION_MS_MAX);
    let execution_timeout_ms = span_ms(order.execution_timeout_ms);
    let start = Start {
        namespace_id: place.namespace_id.into(),
        workflow_id: place.workflow_id.into(),
        run_id: run_id.into(),
        first_run_id: run_id.into(),
        workflow_type: Some(WorkflowType { name: order.workflow_type.clone() }),
        task_queue: order.task_queue.clone(),
        execution_timeout_ms,
        run_timeout_ms: span_ms(order.run_timeout_ms),
        task_timeout_ms: span_ms(order.task_timeout_ms),
        start_ms: now_ms,
        chain_start_ms: now_ms,
        execution_expires_ms: match execution_timeout_ms {
            0 => 0,
            timeout_ms => now_ms.saturating_add(timeout_ms),
        },
        first_task_backoff_ms: match span_ms(order.start_delay_ms) {
            0 => cron::backoff_ms(&order.cron_schedule, now_ms, now_ms).unwrap_or(0),
            delay_ms => delay_ms,
        },
        request_id: order.request_id.clone(),
        retention_ms: span_ms(order.retention_ms),
        user_metadata: order.user_metadata.clone(),
        priority: order.priority.clone(),
        names_run_timeout: order.parent.is_some(),
        parent: order.parent.clone(),
        watcher: order.watcher.clone(),
        ..Start::default()
    };
    bounded(start, place.settings)
}

/// The run's and the task's limit of what is started with these spans: of a chain, a run and a task.
pub(crate) fn filled_in(spans: [Option<Duration>; 3], settings: &Settings) -> (Duration, Duration) {
    let [execution_timeout_ms, run_timeout_ms, task_timeout_ms] = spans.map(span_ms);
    let given = Start { execution_timeout_ms, run_timeout_ms, task_timeout_ms, ..Start::default() };
    let start = bounded(given, settings);
    (Duration::from_ms(start.run_timeout_ms), Duration::from_ms(start.task_timeout_ms))
}

/// Fits timeouts into one another: the run's into the chain's, the task's into the run's.
pub(crate) fn bounded(mut start: Start, settings: &Settings) -> Start {
    let execution_ms = start.execution_timeout_ms;
    if execution_ms > 0 && (start.run_timeout_ms == 0 || start.run_timeout_ms > execution_ms) {
        start.run_timeout_ms = execution_ms;
    }
    if start.task_timeout_ms <= 0 {
        start.task_timeout_ms = settings.task_timeout_default_ms;
    }
    start.task_timeout_ms = start.task_timeout_ms.min(settings.task_timeout_max_ms);
    if start.run_timeout_ms > 0 {
        start.task_timeout_ms = start.task_timeout_ms.min(start.run_timeout_ms);
        let begins_ms = start.start_ms.saturating_add(start.first_task_backoff_ms);
        start.run_expires_ms = begins_ms.saturating_add(start.run_timeout_ms);
    }
    if start.execution_expires_ms > 0 {
        let expires_ms = start.execution_expires_ms;
        start.run_expires_ms =
            if start.run_expires_ms == 0 { expires_ms } else { start.run_expires_ms.min(expires_ms) };
    }
    start
}

/// The Started event as far as the start state gives it. A run that is continued without a wait says nothing of one.
pub(crate) fn started(start: &Start) -> Started {
    let execution_ms = Some(start.execution_timeout_ms).filter(|timeout_ms| *timeout_ms > 0);
    let backoff_ms = Some(start.first_task_backoff_ms);
    let is_first = start.continued_run_id.is_empty();
    Started {
        workflow_type: start.workflow_type.clone(),
        task_queue: Some(TaskQueue::normal(&start.task_queue)),
        workflow_execution_timeout: execution_ms.map(Duration::from_ms),
        workflow_run_timeout: start.named_run_timeout_ms().map(Duration::from_ms),
        workflow_task_timeout: Some(Duration::from_ms(start.task_timeout_ms)),
        original_execution_run_id: start.run_id.clone(),
        first_execution_run_id: start.first_run_id.clone(),
        attempt: 1,
        workflow_execution_expiration_time: match start.execution_expires_ms {
            0 => None,
            expires_ms => Some(Timestamp::from_ms(expires_ms)),
        },
        first_workflow_task_backoff: backoff_ms.filter(|ms| is_first || *ms > 0).map(Duration::from_ms),
        workflow_id: start.workflow_id.clone(),
        priority: start.priority.clone(),
        ..kin(start)
    }
}

/// The Started event as far as the parent gives it.
fn kin(start: &Start) -> Started {
    let Some(parent) = &start.parent else { return Started::default() };
    Started {
        parent_workflow_namespace: parent.namespace.clone(),
        parent_workflow_namespace_id: parent.namespace_id.clone(),
        parent_workflow_execution: Some(parent.execution()),
        parent_initiated_event_id: parent.initiated_event_id,
        root_workflow_execution: parent.root.clone(),
        ..Started::default()
    }
}

/// A new run with its first event.
pub(crate) fn open<'a>(start: Start, started: Started, extras: Extras, place: StartContext<'a>) -> Draft<'a> {
    let start = Start { start_offset: place.stamp.offset, ..start };
    let mut draft = Draft::new(Run::begin(start), place.stamp, place.settings);
    draft.emit_at(place.stamp.now_ms, started.into(), extras);
    draft
}

pub(crate) fn apply_started(run: &mut Run, started: &Started) {
    let reset_points = started.prev_auto_reset_points.clone().unwrap_or_default().points;
    let given = Properties::given(started.memo.as_ref(), started.search_attributes.as_ref());
    let mut properties = Properties { reset_points, ..given };
    worker_versioning::apply_started(&mut properties, started);
    run.head.state_bytes += bytes(&properties);
    run.properties = properties.into();
}
