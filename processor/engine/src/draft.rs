//! The working copy of a run while one journal record is decided.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use crate::api_types::Status;
use crate::copy_on_write::CopyOnWrite;
use crate::event::{Attributes, HistoryEvent};
use crate::machine::activity::{self, Activity};
use crate::machine::operator::{run_options, run_pause};
use crate::machine::reset::{self, LateAnswer};
use crate::machine::schedule::Schedule;
use crate::machine::update::{self, Update};
use crate::machine::workflow_task::{Sticky, Task};
use crate::machine::{
    cancel, child, close, continuation, external_workflow, memo_and_search_attributes, parent_child,
    reset_points, schedule, start, timer, worker_versioning, workflow_task,
};
use crate::rebuild;
use crate::request::RequestRecord;
use crate::run::{Properties, Run};
use crate::settings::Settings;
use crate::stamp::Stamp;
use crate::time::Timestamp;

/// A run that is being changed. Only [`Draft::change`] changes it, and it keeps what it did.
pub struct Draft<'a> {
    /// The run as it stands after the changes so far.
    pub run: Run,
    /// Time, position and seed.
    pub stamp: &'a Stamp,
    /// Limits and defaults.
    pub settings: &'a Settings,
    changes: Vec<Change>,
    messages: Vec<RequestRecord>,
    batch_event_id: i64,
    /// What has changed so far is a transition.
    counts: bool,
    /// Before the record.
    was_open: bool,
}

/// One change of a run: what [`apply`] takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A fact with its id: it stands in the history.
    Event(Box<HistoryEvent>),
    /// A fact that waits for its id until the started workflow task is over.
    Buffered(Box<HistoryEvent>),
    /// The buffered event at this place will never be written.
    Unbuffered(usize),
    /// The buffered events get their ids now; events follow.
    Flushed,
    /// The workflow task as it is now.
    Task(Option<Box<Task>>),
    /// The worker that has the run in its cache.
    Sticky(Option<Sticky>),
    /// A workflow task was completed; its Started event's id.
    TaskDone(i64),
    /// An activity as it is now.
    Activity(Box<Activity>),
    /// The first workflow task need not wait any longer.
    BackoffOver,
    /// A task tried to close the run over unseen events, or a later one was completed.
    CloseAttempted(bool),
    /// Signals received so far.
    Signals(i64),
    /// The run that continues this one.
    Successor(String),
    /// A reset has made this run of what stood here before this event.
    ResetTo(String, i64),
    /// A reset has ended the run: another takes its place.
    Replaced,
    /// An answer has come that the closed run waited for: a run that a reset makes of it takes it over.
    Late(LateAnswer),
    /// Events from here on are stored apart from those before.
    Batch,
    /// An update waits for a worker's word.
    Update(Box<Update>),
    /// An update ended without an event.
    UpdateEnded(String, update::End),
    /// One more of the transitions that a description counts.
    Transition,
    /// The record at this offset of the journal has closed the run.
    ClosedAt(u64),
    /// A schedule as it is now.
    Schedule(Arc<Schedule>),
    /// Memo and search attributes of a schedule.
    Properties(Box<Properties>),
}

/// What a history event carries besides its attributes.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Summary and details, opaque.
    pub user_metadata: Option<Bytes>,
    /// Links, opaque.
    pub links: Vec<Bytes>,
    /// Group markers, opaque.
    pub event_group_markers: Vec<Bytes>,
}

impl<'a> Draft<'a> {
    /// A draft of `run` as it stands before the record.
    pub fn new(run: Run, stamp: &'a Stamp, settings: &'a Settings) -> Self {
        let (batch_event_id, was_open) = (run.head.next_event_id, run.is_open());
        Self {
            run,
            stamp,
            settings,
            changes: Vec::new(),
            messages: Vec::new(),
            batch_event_id,
            counts: false,
            was_open,
        }
    }

    /// The record's time.
    pub fn now_ms(&self) -> i64 {
        self.stamp.now_ms
    }

    /// The id of the first event of the present batch: the key of the row that holds its events.
    pub fn batch_event_id(&self) -> i64 {
        self.batch_event_id
    }

    /// A new batch begins here: see [`Step::batches`].
    fn begin_batch(&mut self) {
        self.batch_event_id = self.run.head.next_event_id;
    }

    /// A new batch begins here, and is stored as one whatever its first event is.
    pub(crate) fn begin_row(&mut self) {
        self.begin_batch();
        self.change(Change::Batch);
    }

    /// Takes over a batch of another run's history as it stands, with all that followed from it.
    pub(crate) fn take_over(&mut self, events: &[HistoryEvent]) {
        self.begin_row();
        for event in events {
            self.change(Change::Event(Box::new(event.clone())));
            for change in rebuild::implied(&self.run, self.batch_event_id, event) {
                self.change(change);
            }
        }
    }

    /// Applies a change and keeps it.
    pub fn change(&mut self, change: Change) {
        self.counts |= is_transition(&self.run, &change);
        apply(&mut self.run, &change);
        self.changes.push(change);
    }

    /// Writes an event into the history and returns its id.
    pub fn emit(&mut self, attributes: impl Into<Attributes>) -> i64 {
        self.emit_at(self.now_ms(), attributes.into(), Extras::default())
    }

    /// Writes an event that happened at `time_ms`, with metadata, and returns its id.
    pub fn emit_at(&mut self, time_ms: i64, attributes: Attributes, extras: Extras) -> i64 {
        let event_id = self.run.head.next_event_id;
        let event = HistoryEvent { event_id, task_id: event_id, ..event(time_ms, attributes, extras) };
        let is_last = ends_batch(&event);
        self.change(Change::Event(Box::new(event)));
        if is_last {
            self.begin_batch();
        }
        event_id
    }

    /// Writes an event, or buffers it while a worker has a workflow task of the run in hand.
    pub fn record(&mut self, attributes: impl Into<Attributes>) {
        self.record_with(attributes.into(), Extras::default());
    }

    /// [`Draft::record`] with metadata.
    pub fn record_with(&mut self, attributes: Attributes, extras: Extras) {
        self.record_at(self.now_ms(), attributes, extras);
    }

    /// [`Draft::record`] of what happened at `time_ms`. Returns the event's id; 0 where it is buffered and has none yet.
    pub fn record_at(&mut self, time_ms: i64, attributes: Attributes, extras: Extras) -> i64 {
        workflow_task::make_normal(self);
        if self.run.started_task().is_some() {
            self.change(Change::Buffered(Box::new(event(time_ms, attributes, extras))));
            return 0;
        }
        self.emit_at(time_ms, attributes, extras)
    }

    /// Buffers an event that stands behind whatever else the commands of a completed task bring.
    pub(crate) fn hold(&mut self, attributes: impl Into<Attributes>) {
        let event = event(self.now_ms(), attributes.into(), Extras::default());
        self.change(Change::Buffered(Box::new(event)));
    }

    /// Sends an order to another Workflow Id once the record is decided.
    pub(crate) fn send(&mut self, message: RequestRecord) {
        self.messages.push(message);
    }

    /// Forgets what was to be sent.
    pub(crate) fn send_nothing(&mut self) {
        self.messages.clear();
    }

    /// What was changed so far.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Goes back to the beginning: `run` as it stood before the record.
    pub fn roll_back(&mut self, run: Run) {
        self.run = run;
        self.changes.clear();
        self.messages.clear();
        self.counts = false;
        self.begin_batch();
    }

    /// The finished step.
    pub fn finish(mut self) -> Step {
        if self.counts {
            self.change(Change::Transition);
        }
        if self.was_open && !self.run.is_open() {
            self.change(Change::ClosedAt(self.stamp.offset));
        }
        Step { run: Arc::new(self.run), changes: self.changes, messages: self.messages }
    }
}

/// What one record did to one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The run as it stands now.
    pub run: Arc<Run>,
    /// Every change, in order.
    pub changes: Vec<Change>,
    /// What the run asks of others, in order; [`crate::Outcome::messages`] has it in the end.
    pub(crate) messages: Vec<RequestRecord>,
}

impl Step {
    /// The events that were written, in order.
    pub fn events(&self) -> impl Iterator<Item = &HistoryEvent> {
        self.changes.iter().filter_map(Change::event)
    }

    /// Request ids of signals that a reset has taken over; they count as taken by the run that it has made.
    pub fn requests_taken_over(&self) -> impl Iterator<Item = &str> {
        let by_reset = self.is_by_reset();
        let requests = self.events().filter_map(|event| match &event.attributes {
            Some(Attributes::WorkflowSignaled(signaled)) => Some(signaled.request_id.as_str()),
            Some(_) | None => None,
        });
        requests.filter(move |request_id| by_reset && !request_id.is_empty())
    }

    /// A reset has made the run: much of what is written is copied.
    pub(crate) fn is_by_reset(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Batch))
    }

    /// The event that has closed the run, if this step did.
    pub(crate) fn closing_event(&self) -> Option<&HistoryEvent> {
        if self.run.is_open() { None } else { self.events().last() }
    }

    /// The events that were written, batch by batch. A history is stored in batches, each read from its first event
    /// on; a worker that has a run in its cache reads from WorkflowTaskCompleted on, so a batch begins there. It begins
    /// at the other ends of a started task as well, for runs are reset to the beginnings of batches.
    pub fn batches(&self) -> Vec<Vec<&HistoryEvent>> {
        let mut batches: Vec<Vec<&HistoryEvent>> = Vec::new();
        let mut begins = true;
        for change in &self.changes {
            begins |= matches!(change, Change::Batch);
            let Some(event) = change.event() else { continue };
            match batches.last_mut() {
                Some(batch) if !begins => batch.push(event),
                Some(_) | None => batches.push(vec![event]),
            }
            begins = ends_batch(event);
        }
        batches
    }
}

/// The end of a started task stands in a batch of its own, with what follows from it.
fn ends_batch(event: &HistoryEvent) -> bool {
    matches!(event.attributes, Some(Attributes::TaskStarted(_)))
}

impl Change {
    fn event(&self) -> Option<&HistoryEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::Buffered(_)
            | Self::Unbuffered(_)
            | Self::Flushed
            | Self::Task(_)
            | Self::Sticky(_)
            | Self::TaskDone(_)
            | Self::Activity(_)
            | Self::BackoffOver
            | Self::CloseAttempted(_)
            | Self::Signals(_)
            | Self::Successor(_)
            | Self::ResetTo(..)
            | Self::Replaced
            | Self::Late(_)
            | Self::Batch
            | Self::Update(_)
            | Self::UpdateEnded(..)
            | Self::Transition
            | Self::ClosedAt(_)
            | Self::Schedule(_)
            | Self::Properties(_) => None,
        }
    }
}

/// True of what Temporal's server would write down. It keeps in memory which worker has a run in its cache, updates that
/// nobody has accepted, and the tasks that are there for nothing else; and an attempt at an activity begins there when its
/// wait is over, without a further record. Tasks do not rest there.
fn is_transition(run: &Run, change: &Change) -> bool {
    match change {
        Change::Task(task) => {
            let rested = run.head.task.as_ref().is_some_and(Task::is_resting);
            !rested && task.as_ref().is_some_and(|task| !task.speculative)
        }
        Change::Activity(next) => {
            let now = run.activities.get(&next.scheduled_event_id);
            let waited = now.is_some_and(|now| now.backing_off && now.stamp == next.stamp);
            !waited || next.backing_off || next.is_started()
        }
        Change::Sticky(_)
        | Change::TaskDone(_)
        | Change::BackoffOver
        | Change::CloseAttempted(_)
        | Change::Late(_)
        | Change::Batch
        | Change::Update(_)
        | Change::UpdateEnded(..)
        | Change::Transition
        | Change::ClosedAt(_)
        | Change::Schedule(_)
        | Change::Properties(_) => false,
        Change::Event(_)
        | Change::Buffered(_)
        | Change::Unbuffered(_)
        | Change::Flushed
        | Change::Signals(_)
        | Change::Successor(_)
        | Change::ResetTo(..)
        | Change::Replaced => true,
    }
}

fn event(time_ms: i64, attributes: Attributes, extras: Extras) -> HistoryEvent {
    HistoryEvent {
        event_id: 0,
        event_time: Some(Timestamp::from_ms(time_ms)),
        event_type: attributes.event_type(),
        task_id: 0,
        worker_may_ignore: attributes.may_be_ignored(),
        user_metadata: extras.user_metadata,
        links: extras.links,
        event_group_markers: extras.event_group_markers,
        attributes: Some(attributes),
    }
}

/// Applies one change. Total: what has happened cannot fail.
pub fn apply(run: &mut Run, change: &Change) {
    match change {
        Change::Event(event) => {
            run.head.next_event_id = event.event_id.saturating_add(1);
            run.head.history_bytes = run.head.history_bytes.saturating_add(encoded_bytes(event));
            apply_fact(run, event);
        }
        Change::Buffered(event) => {
            run.buffered.make_mut().push(event.as_ref().clone());
            run.head.state_bytes += bytes(event.as_ref());
            apply_fact(run, event);
        }
        Change::Unbuffered(index) => {
            let event = run.buffered.make_mut().remove(*index);
            run.head.state_bytes -= bytes(&event);
        }
        Change::Flushed => {
            run.head.state_bytes -= run.buffered.iter().map(bytes).sum::<i64>();
            run.buffered = CopyOnWrite::default();
        }
        Change::Task(task) => run.head.task = task.as_deref().cloned(),
        Change::Sticky(sticky) => run.head.sticky.clone_from(sticky),
        Change::TaskDone(started_event_id) => run.head.previous_started_event_id = *started_event_id,
        Change::Activity(activity) => {
            let activity = Arc::new(activity.as_ref().clone());
            run.head.state_bytes += bytes(activity.as_ref());
            let before = run.activities.make_mut().insert(activity.scheduled_event_id, activity);
            run.head.state_bytes -= before.map_or(0, |before| bytes(before.as_ref()));
        }
        Change::BackoffOver => run.head.backoff_until_ms = 0,
        Change::CloseAttempted(attempted) => run.head.close_attempted = *attempted,
        Change::Signals(count) => run.head.signals = *count,
        Change::Successor(run_id) => run.head.successor_run_id.clone_from(run_id),
        Change::ResetTo(run_id, event_id) => {
            reset::apply_reset_to(run, run_id, *event_id);
        }
        Change::Replaced => run.head.is_replaced = true,
        Change::Late(LateAnswer::Child(opened)) => child::apply_late(run, opened),
        Change::Late(LateAnswer::External(answered)) => external_workflow::apply_late(run, *answered),
        Change::Batch => {}
        Change::Update(update) => update::apply_admitted(run, update),
        Change::UpdateEnded(update_id, _) => update::apply_ended(run, update_id),
        Change::Transition => run.head.transitions = run.head.transitions.saturating_add(1),
        Change::ClosedAt(offset) => run.head.close_offset = *offset,
        Change::Schedule(schedule) => schedule::definition::apply_schedule(run, schedule),
        Change::Properties(properties) => {
            memo_and_search_attributes::change(run, |shown| shown.clone_from(properties));
        }
    }
}

/// Bytes that a part of the state takes in its row.
pub(crate) fn bytes(part: &impl Message) -> i64 {
    i64::try_from(part.encoded_len()).unwrap_or(i64::MAX)
}

/// Bytes that the event takes in a stored history.
fn encoded_bytes(event: &HistoryEvent) -> i64 {
    let body = event.encoded_len();
    i64::try_from(body + prost::length_delimiter_len(body) + 1).unwrap_or(i64::MAX)
}

/// What a fact means for the state, whether it has its id already or is buffered.
fn apply_fact(run: &mut Run, event: &HistoryEvent) {
    let Some(attributes) = &event.attributes else { return };
    match attributes {
        Attributes::WorkflowStarted(started) => {
            start::apply_started(run, started);
            continuation::apply_started(run, event, started);
        }
        Attributes::TaskScheduled(_)
        | Attributes::TaskStarted(_)
        | Attributes::TaskTimedOut(_)
        | Attributes::TaskFailed(_)
        | Attributes::ActivityStarted(_)
        | Attributes::ActivityScheduled(_)
        | Attributes::ActivityCancelRequested(_)
        | Attributes::WorkflowSignaled(_)
        | Attributes::MarkerRecorded(_) => {}
        Attributes::TaskCompleted(completed) => {
            reset_points::apply_completed(run, event, completed);
            worker_versioning::apply_completed(run, completed);
        }
        Attributes::StartChildInitiated(initiated) => child::apply_initiated(run, event, initiated),
        Attributes::StartChildFailed(failed) => child::apply_closed(run, failed.initiated_event_id),
        Attributes::ChildStarted(started) => child::apply_started(run, event, started),
        Attributes::ChildCompleted(_)
        | Attributes::ChildFailed(_)
        | Attributes::ChildCanceled(_)
        | Attributes::ChildTimedOut(_)
        | Attributes::ChildTerminated(_) => {
            parent_child::closed_child(attributes).into_iter().for_each(|id| child::apply_closed(run, id));
        }
        Attributes::SignalExternalInitiated(initiated) => {
            external_workflow::apply_signal_initiated(run, event, initiated);
        }
        Attributes::CancelExternalInitiated(initiated) => {
            external_workflow::apply_cancel_initiated(run, event, initiated);
        }
        Attributes::SignalExternalFailed(_)
        | Attributes::ExternalSignaled(_)
        | Attributes::CancelExternalFailed(_)
        | Attributes::ExternalCancelRequested(_) => external_workflow::apply_answered(run, attributes),
        Attributes::ActivityCompleted(done) => activity::apply_closed(run, done.scheduled_event_id),
        Attributes::ActivityFailed(failed) => activity::apply_closed(run, failed.scheduled_event_id),
        Attributes::ActivityTimedOut(timed_out) => activity::apply_closed(run, timed_out.scheduled_event_id),
        Attributes::ActivityCanceled(canceled) => activity::apply_closed(run, canceled.scheduled_event_id),
        Attributes::TimerStarted(started) => timer::apply_started(run, event, started),
        Attributes::TimerFired(fired) => timer::apply_closed(run, &fired.timer_id, fired.started_event_id),
        Attributes::TimerCanceled(canceled) => {
            timer::apply_closed(run, &canceled.timer_id, canceled.started_event_id);
        }
        Attributes::WorkflowCancelRequested(_) => cancel::apply_requested(run),
        Attributes::UpdateAdmitted(admitted) => update::apply_written(run, admitted),
        Attributes::UpdateAccepted(accepted) => update::apply_accepted(run, event.event_id, accepted),
        Attributes::UpdateCompleted(completed) => update::apply_completed(run, completed),
        Attributes::SearchAttributesUpserted(upserted) => {
            memo_and_search_attributes::apply_search_attributes(run, upserted)
        }
        Attributes::PropertiesModified(modified) => memo_and_search_attributes::apply_memo(run, modified),
        Attributes::OptionsUpdated(updated) => run_options::apply_updated(run, event, updated),
        Attributes::WorkflowPaused(paused) => run_pause::apply_paused(run, event, paused),
        Attributes::WorkflowUnpaused(_) => run_pause::apply_unpaused(run),
        Attributes::WorkflowCompleted(_) => close::apply_closed(run, event, Status::Completed),
        Attributes::WorkflowFailed(_) => close::apply_closed(run, event, Status::Failed),
        Attributes::WorkflowTimedOut(_) => close::apply_closed(run, event, Status::TimedOut),
        Attributes::WorkflowTerminated(_) => close::apply_closed(run, event, Status::Terminated),
        Attributes::WorkflowCanceled(_) => close::apply_closed(run, event, Status::Canceled),
        Attributes::WorkflowContinuedAsNew(_) => close::apply_closed(run, event, Status::ContinuedAsNew),
    }
}
