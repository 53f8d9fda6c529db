//! A reset: a run goes back to one of its workflow tasks, as a new run with the same beginning.
//!
//! base                    --reset-->  stays as it is, and knows the new run
//! current, where open     --reset-->  terminated, and replaced: what it had begun goes on, and its parent hears nothing
//! (none)                  --reset-->  the base's events up to a workflow task, which fails; what is to be kept of those
//!                                     behind it; and a workflow task
//!
//! Of a task under way at that point all that was written is taken over; attempts at activities that had begun fail, the
//! others wait for workers again. Timers stand as they stood. What came later and is kept, also by runs that went on as new
//! ones: signals, updates that were accepted, requests that found the run, and what others answered to children and messages
//! that the new run waits for.
//! Answers that come even later are passed on to every run that was made of it; those that a closed run hears stay with it,
//! for a reset that comes after them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{RetryState, TaskFailedCause};
use crate::decide::View;
use crate::draft::{Change, Draft, Extras, Step};
use crate::event::{Attributes, History, HistoryEvent};
use crate::failure;
use crate::machine::activity::{self, Activity};
use crate::machine::child::Child;
use crate::machine::close::Terminate;
use crate::machine::external_workflow::{Answered, External};
use crate::machine::operator::run_options::{self, UpdateRunOptions};
use crate::machine::parent_child::Opened;
use crate::machine::schedule::action::ActionWatcher;
use crate::machine::signal::Signaled;
use crate::machine::start::{self, StartContext};
use crate::machine::update::Admitted;
use crate::machine::workflow_task::{self, Failed, Task};
use crate::machine::{close, external_workflow, parent_child, update};
use crate::outcome::{Outcome, Rejection, Reply};
use crate::request::{Request, RequestRecord};
use crate::run::{Current, Run, Start};
use crate::settings::Settings;
use crate::stamp::Stamp;

/// Who fails the task that a run goes back to.
const IDENTITY: &str = "history-service";
/// The poll that has got a task which nobody had, in the words of Temporal's server.
const NO_POLL: &str = "emptyUuid";
/// Who terminates the run that was current.
const TERMINATOR: &str = "history-resetter";

/// Order: go back to a workflow task of the addressed run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reset {
    /// The first event that is not taken over: the end of the task, or its Started event.
    #[prost(int64, tag = "1")]
    pub finish_event_id: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// The same id is taken once, as long as the run that it made is the current one or was lately; never empty.
    #[prost(string, tag = "3")]
    pub request_id: String,
    /// Signals that came later are left behind.
    #[prost(bool, tag = "4")]
    pub without_signals: bool,
    /// Updates that were accepted later are left behind.
    #[prost(bool, tag = "5")]
    pub without_updates: bool,
    /// Changes of the run's options that came later are left behind.
    #[prost(bool, tag = "6")]
    pub without_options: bool,
    /// Options that the new run gets behind what it takes over.
    #[prost(message, optional, tag = "7")]
    pub options: Option<UpdateRunOptions>,
}

/// What has been written of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryBatches {
    /// The run.
    pub run_id: String,
    /// Its events, batch by batch; of a run that continues the addressed one, as far as [`is_kept`] wants them.
    pub batches: Vec<History>,
}

impl HistoryBatches {
    fn events(&self) -> impl Iterator<Item = &HistoryEvent> {
        self.batches.iter().flat_map(|batch| &batch.events)
    }

    /// The Started event of an activity.
    fn started(&self, scheduled_event_id: i64) -> i64 {
        let started = self.events().find(|event| match &event.attributes {
            Some(Attributes::ActivityStarted(started)) => started.scheduled_event_id == scheduled_event_id,
            Some(_) | None => false,
        });
        started.map_or(0, |event| event.event_id)
    }
}

/// True of events that a reset takes over from a run which continues the one that is reset.
pub fn is_kept(event: &HistoryEvent) -> bool {
    matches!(
        event.attributes,
        Some(
            Attributes::WorkflowSignaled(_)
                | Attributes::UpdateAdmitted(_)
                | Attributes::UpdateAccepted(_)
                | Attributes::OptionsUpdated(_)
        )
    )
}

/// The run that a run went on as by its own wish, if this is its last event.
pub fn continued_by(last: &HistoryEvent) -> Option<&str> {
    match &last.attributes {
        Some(Attributes::WorkflowContinuedAsNew(closed)) => Some(&closed.new_execution_run_id),
        Some(_) | None => None,
    }
}

/// An answer that came when the run had closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LateAnswer {
    /// To the start of a child.
    Child(Opened),
    /// To a signal or a request.
    External(Answered),
}

/// What a reset has made of a run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResetRun {
    /// The run that it has made.
    #[prost(string, tag = "1")]
    pub run_id: String,
    /// The first event that this does not have from the run.
    #[prost(int64, tag = "2")]
    pub event_id: i64,
}

/// What came too late for a run is for the ones that are made of it: it stays here for a later reset, and goes on to the
/// runs that resets have made already, if they wait for it as well.
pub(crate) fn come_late(
    run: &Run,
    input: &RequestRecord,
    order: &Request,
    stamp: &Stamp,
    settings: &Settings,
) -> Option<Outcome> {
    if !matches!(order, Request::ChildOpened(_) | Request::ExternalAnswered(_) | Request::ChildClosed(_)) {
        return None;
    }
    let mut draft = Draft::new(run.clone(), stamp, settings);
    keep_late(&mut draft, input, order);
    let step = draft.finish();
    match step.changes.is_empty() {
        true => Some(Outcome { messages: step.messages, ..Outcome::answer(Reply::Done) }),
        false => Some(Outcome { steps: vec![step], ..Outcome::answer(Reply::Done) }),
    }
}

/// The same in a step of its own, or in the one that closes the run instead of taking what came.
pub(crate) fn keep_late(draft: &mut Draft<'_>, input: &RequestRecord, order: &Request) {
    let run = &draft.run;
    let (initiated_event_id, late) = match order {
        Request::ChildOpened(answer) => {
            let waits = |child: &Arc<Child>| child.run_id.is_empty() && child.late.is_none();
            let is_new = run.children.get(&answer.initiated_event_id).is_some_and(waits);
            (answer.initiated_event_id, is_new.then(|| LateAnswer::Child(answer.clone())))
        }
        Request::ExternalAnswered(answer) => {
            let waits = |external: &Arc<External>| external.late.is_none();
            let is_new = run.externals.get(&answer.initiated_event_id).is_some_and(waits);
            (answer.initiated_event_id, is_new.then_some(LateAnswer::External(*answer)))
        }
        Request::ChildClosed(answer) => (answer.initiated_event_id, None),
        _other => return,
    };
    let head = &run.head;
    let last = (!head.reset_run_id.is_empty()).then_some((&head.reset_run_id, head.reset_event_id));
    let made = head.former_resets.iter().map(|made| (&made.run_id, made.event_id)).chain(last);
    let shared = made.filter(|(_, event_id)| initiated_event_id < *event_id);
    let mut messages: Vec<_> =
        shared.map(|(run_id, _)| RequestRecord { run_id: run_id.clone(), ..input.clone() }).collect();
    if let (Request::ChildOpened(answer), true) = (order, messages.is_empty()) {
        messages.extend(parent_child::begin_abandoned(run, answer));
    }
    if let Some(late) = late {
        draft.change(Change::Late(late));
    }
    messages.into_iter().for_each(|message| draft.send(message));
}

/// The run knows what the last reset has made of it, and where it waits for answers what those before have made.
pub(crate) fn apply_reset_to(run: &mut Run, run_id: &str, event_id: i64) {
    let waits = !run.children.is_empty() || !run.externals.is_empty();
    let head = &mut run.head;
    let former_id = std::mem::replace(&mut head.reset_run_id, run_id.to_owned());
    let former_event_id = std::mem::replace(&mut head.reset_event_id, event_id);
    if waits && !former_id.is_empty() {
        head.former_resets.push(ResetRun { run_id: former_id, event_id: former_event_id });
    }
}

/// Goes back to a task of `base`. An id whose latest run was deleted is unknown, as a Temporal server has it.
pub(crate) fn reset(base: &Arc<Run>, view: &View, order: &Reset, place: StartContext<'_>) -> Outcome {
    let Some(current) = &view.current else {
        return Outcome::refuse(Rejection::unknown_run(place.workflow_id, ""));
    };
    let checked = check(base, view, order);
    if let (Ok(_), Some(made)) = (&checked, &view.seen) {
        return Outcome::answer(start::found(made, true));
    }
    let made = checked.and_then(|past| begin(base, current, past, order, place));
    let mut fresh = match made {
        Ok(fresh) => fresh,
        Err(rejection) => return Outcome::refuse(rejection),
    };
    let run_id = fresh.run.start.run_id.clone();
    let mut steps = Vec::new();
    let mut pointed = Draft::new(base.as_ref().clone(), place.stamp, place.settings);
    pointed.change(Change::ResetTo(run_id.clone(), order.finish_event_id));
    if !current.is_open() && current.start.run_id != base.start.run_id {
        // Nothing becomes of it, but a Temporal server counts that it was there.
        let mut counted = Draft::new(current.as_ref().clone(), place.stamp, place.settings);
        counted.change(Change::Transition);
        steps.push(counted.finish());
    }
    let last = if base.is_open() {
        Some(pointed)
    } else {
        steps.push(pointed.finish());
        current.is_open().then(|| Draft::new(current.as_ref().clone(), place.stamp, place.settings))
    };
    match last {
        Some(mut last) => {
            last.change(Change::Replaced);
            let (reason, identity) = (order.reason.clone(), TERMINATOR.into());
            close::end_as_ordered(&mut last, &Terminate { reason, identity, ..Terminate::default() });
            keep(&mut fresh, view, order, Some(&last));
            update::close(&mut last, Some(&mut fresh));
            steps.push(last.finish());
        }
        None => keep(&mut fresh, view, order, None),
    }
    hear_late(&mut fresh, base);
    if let Some(options) = &order.options
        && let Err(rejection) = run_options::change_options(&mut fresh, options)
    {
        return Outcome::refuse(rejection);
    }
    if fresh.run.head.task.is_none() {
        workflow_task::schedule(&mut fresh, 1);
    }
    steps.push(fresh.finish());
    let reply = steps.last().map_or(Reply::Done, |step: &Step| start::found(&step.run, true));
    Outcome { steps, current: Some(Current { run_id }), ..Outcome::answer(reply) }
}

/// The base's events, if a reset can begin with them.
fn check<'a>(base: &Run, view: &'a View, order: &Reset) -> Result<&'a HistoryBatches, Rejection> {
    let invalid = |reason: &str| Err(Rejection::InvalidArgument(reason.into()));
    if order.finish_event_id <= 1 || order.finish_event_id >= base.head.next_event_id {
        return invalid("Workflow task finish ID must be > 1 && <= workflow last event ID.");
    }
    let past = view.past.first().filter(|past| past.run_id == base.start.run_id);
    past.ok_or_else(|| Rejection::NotReady("The history of the workflow cannot be read.".into()))
}

/// The new run up to the task that it goes back to, which fails.
fn begin<'a>(
    base: &Run,
    current: &Run,
    past: &HistoryBatches,
    order: &Reset,
    place: StartContext<'a>,
) -> Result<Draft<'a>, Rejection> {
    let start = start_again(base, current, order, place);
    let run_id = start.run_id.clone();
    let mut fresh = Draft::new(Run::begin(start), place.stamp, place.settings);
    for batch in &past.batches {
        let events = &batch.events;
        let taken = events.partition_point(|event| event.event_id < order.finish_event_id);
        if (1..events.len()).contains(&taken) {
            return Err(inside_a_batch(order.finish_event_id - 1));
        }
        if taken > 0 {
            fresh.take_over(events);
        }
    }
    let Some(task) = fresh.run.head.task.clone() else {
        return Err(Rejection::InvalidArgument(format!(
            "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {}",
            order.finish_event_id
        )));
    };
    fresh.begin_row();
    let started_event_id = match task.started_event_id {
        0 => {
            let (identity, request_id) = (IDENTITY.into(), NO_POLL.into());
            let history_bytes = fresh.run.head.history_bytes;
            let started = Task { identity, request_id, history_bytes, ..task.clone() }.started();
            fresh.emit(started)
        }
        started_event_id => started_event_id,
    };
    fresh.emit(Failed {
        scheduled_event_id: task.scheduled_event_id,
        started_event_id,
        base_run_id: base.start.run_id.clone(),
        new_run_id: run_id,
        failure: Some(failure::of_reset(&order.reason, None)),
        ..Failed::because(TaskFailedCause::ResetWorkflow, None, IDENTITY)
    });
    fresh.change(Change::Task(None));
    fresh.change(Change::Transition);
    settle_activities(&mut fresh, past, order);
    Ok(fresh)
}

/// What was written at once is kept at once: a Temporal server can rebuild a run up to the end of a batch only.
fn inside_a_batch(event_id: i64) -> Rejection {
    Rejection::InvalidArgument(format!(
        "StateRebuilder unable to Rebuild mutable state to event ID: {event_id}, version: 0, \
         this event must be at the boundary"
    ))
}

/// As the base began, with all its time before it.
fn start_again(base: &Run, current: &Run, order: &Reset, place: StartContext<'_>) -> Start {
    let old = base.start.as_ref();
    let now_ms = place.stamp.now_ms;
    let original_run_id = match old.original_run_id.as_str() {
        "" => old.run_id.clone(),
        original => original.to_owned(),
    };
    let after = |timeout_ms: i64| if timeout_ms == 0 { 0 } else { now_ms.saturating_add(timeout_ms) };
    let execution_expires_ms = after(old.execution_timeout_ms);
    let run_expires_ms = after(old.run_timeout_ms);
    let both = [execution_expires_ms, run_expires_ms].into_iter().filter(|expires_ms| *expires_ms > 0);
    Start {
        run_id: place.stamp.run_id(0),
        request_id: order.request_id.clone(),
        run_expires_ms: both.min().unwrap_or(0),
        execution_expires_ms,
        original_run_id,
        former_run_id: current.start.run_id.clone(),
        reset_ms: now_ms,
        start_offset: place.stamp.offset,
        watcher: ActionWatcher::of_reset(old, current),
        ..old.clone()
    }
}

/// What a worker has begun there is no more; what waits for one waits anew.
fn settle_activities(fresh: &mut Draft<'_>, past: &HistoryBatches, order: &Reset) {
    let now_ms = fresh.now_ms();
    let open: Vec<Arc<Activity>> = fresh.run.activities.values().cloned().collect();
    for open in open {
        if !open.is_started() {
            // All of its time begins anew.
            let passed_ms = now_ms.saturating_sub(open.first_scheduled_ms);
            let expires_ms = if open.expires_ms > 0 { open.expires_ms.saturating_add(passed_ms) } else { 0 };
            let anew = Activity {
                scheduled_ms: now_ms,
                first_scheduled_ms: now_ms,
                expires_ms,
                ..open.as_ref().clone()
            };
            fresh.change(Change::Activity(Box::new(anew)));
            continue;
        }
        let heartbeat = open.heartbeat_details.clone();
        fresh.emit(activity::Failed {
            failure: Some(failure::of_reset(&order.reason, heartbeat)),
            scheduled_event_id: open.scheduled_event_id,
            started_event_id: past.started(open.scheduled_event_id),
            identity: open.identity.clone(),
            retry_state: RetryState::NonRetryableFailure.into(),
            ..activity::Failed::default()
        });
    }
}

/// Takes over what came later: in the base, in the runs that it went on as, and as the current one was terminated. Ends of
/// children come last, as wherever several events come at once.
fn keep(fresh: &mut Draft<'_>, view: &View, order: &Reset, last: Option<&Draft<'_>>) {
    let mut later: Vec<&HistoryEvent> = Vec::new();
    for (index, past) in view.past.iter().enumerate() {
        let from_event_id = if index == 0 { order.finish_event_id } else { 0 };
        later.extend(past.events().filter(|event| event.event_id >= from_event_id));
    }
    let visited = view.past.last().map(|past| past.run_id.as_str());
    if let Some(last) = last.filter(|last| visited == Some(last.run.start.run_id.as_str())) {
        later.extend(last.changes().iter().filter_map(|change| match change {
            Change::Event(event) => Some(event.as_ref()),
            _silent => None,
        }));
    }
    let ends =
        |event: &HistoryEvent| event.attributes.as_ref().and_then(parent_child::closed_child).is_some();
    let (ends, others): (Vec<_>, Vec<_>) = later.into_iter().partition(|event| ends(event));
    let mut known = Known::of(fresh);
    others.into_iter().chain(ends).for_each(|event| keep_event(fresh, order, &mut known, event));
}

/// What others answered when the base had closed.
fn hear_late(fresh: &mut Draft<'_>, base: &Run) {
    let opened = base.children.values().filter_map(|child| child.late.as_ref());
    opened.for_each(|opened| parent_child::opened(fresh, opened));
    let answered = base.externals.values().filter_map(|external| external.late.as_ref());
    answered.for_each(|answered| external_workflow::answered(fresh, answered));
}

/// What the new run has taken already, and takes no second time: signals by their request ids, updates.
struct Known {
    signals: BTreeSet<String>,
    updates: BTreeSet<String>,
}

impl Known {
    fn of(fresh: &Draft<'_>) -> Self {
        let mut known = Self { signals: BTreeSet::new(), updates: BTreeSet::new() };
        for change in fresh.changes() {
            let Change::Event(event) = change else { continue };
            match &event.attributes {
                Some(Attributes::WorkflowSignaled(signaled)) => {
                    known.signals.insert(signaled.request_id.clone());
                }
                Some(Attributes::UpdateAccepted(accepted)) => {
                    known.updates.insert(accepted.protocol_instance_id.clone());
                }
                Some(_) | None => {}
            }
        }
        known.updates.extend(fresh.run.updates.keys().cloned());
        known
    }

    fn is_new(&mut self, signaled: &Signaled) -> bool {
        signaled.request_id.is_empty() || self.signals.insert(signaled.request_id.clone())
    }
}

fn keep_event(fresh: &mut Draft<'_>, order: &Reset, known: &mut Known, event: &HistoryEvent) {
    let Some(attributes) = &event.attributes else { return };
    match attributes {
        Attributes::WorkflowSignaled(signaled) => {
            if order.without_signals || !known.is_new(signaled) {
                return;
            }
            fresh.change(Change::Signals(fresh.run.head.signals.saturating_add(1)));
            let again = Signaled { external_workflow_execution: None, ..signaled.clone() };
            let extras = Extras { links: event.links.clone(), ..Extras::default() };
            fresh.emit_at(fresh.now_ms(), again.into(), extras);
        }
        Attributes::UpdateAdmitted(admitted) if !order.without_updates => {
            admit(fresh, known, admitted.request.as_ref());
        }
        Attributes::UpdateAccepted(accepted) if !order.without_updates => {
            admit(fresh, known, accepted.accepted_request.as_ref());
        }
        Attributes::OptionsUpdated(updated) => {
            if !order.without_options && !fresh.run.attached.contains_key(&updated.attached_request_id) {
                let extras = Extras { links: event.links.clone(), ..Extras::default() };
                fresh.emit_at(fresh.now_ms(), updated.clone().into(), extras);
            }
        }
        answer => {
            if answers(&fresh.run, answer) {
                let mut answer = answer.clone();
                let child = parent_child::closed_child(&answer).and_then(|id| fresh.run.children.get(&id));
                if let Some(started_event_id) = child.map(|child| child.started_event_id) {
                    parent_child::set_started(&mut answer, started_event_id);
                }
                fresh.emit(answer);
            }
        }
    }
}

/// An update that was accepted later waits for a worker's word again.
fn admit(fresh: &mut Draft<'_>, known: &mut Known, request: Option<&Bytes>) {
    let Some(request) = request else { return };
    let update_id = update::named(request);
    if !update_id.is_empty() && known.updates.insert(update_id) {
        fresh.emit(Admitted { request: Some(request.clone()), origin: update::REAPPLIED });
    }
}

/// Tells a new run of a child, or of a message, what it waits for.
fn answers(run: &Run, attributes: &Attributes) -> bool {
    match attributes {
        Attributes::ChildStarted(started) => {
            let child = run.children.get(&started.initiated_event_id);
            child.is_some_and(|child| child.run_id.is_empty())
        }
        Attributes::StartChildFailed(failed) => run.children.contains_key(&failed.initiated_event_id),
        Attributes::SignalExternalFailed(answer) => run.externals.contains_key(&answer.initiated_event_id),
        Attributes::ExternalSignaled(answer) => run.externals.contains_key(&answer.initiated_event_id),
        Attributes::CancelExternalFailed(answer) => run.externals.contains_key(&answer.initiated_event_id),
        Attributes::ExternalCancelRequested(answer) => run.externals.contains_key(&answer.initiated_event_id),
        other => parent_child::closed_child(other).is_some_and(|id| run.children.contains_key(&id)),
    }
}

/// True of an update that a run has taken already, as a reset has made it.
pub(crate) fn has_taken(draft: &Draft<'_>, update_id: &str) -> bool {
    let accepted = |change: &Change| match change {
        Change::Event(event) => match &event.attributes {
            Some(Attributes::UpdateAccepted(accepted)) => accepted.protocol_instance_id == update_id,
            Some(_) | None => false,
        },
        _silent => false,
    };
    draft.run.updates.contains_key(update_id) || draft.changes().iter().any(accepted)
}
