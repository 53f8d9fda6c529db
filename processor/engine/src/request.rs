//! A journal record as the engine sees it: an order for one Workflow Id.

use std::collections::BTreeSet;

use crate::api_types::Execution;
use crate::machine::operator::{activity_control, run_options, run_pause};
use crate::machine::{
    activity_attempt, cancel, child, close, external_workflow, fire_timers, parent_child, reset, schedule,
    signal, start, update, workflow_task, workflow_task_completed,
};
use crate::run::Run;

/// An order for one Workflow Id.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RequestRecord {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// The run; empty = the current one.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The run that orders it, if one does: the order is a message.
    #[prost(message, optional, tag = "4")]
    pub sender: Option<Sender>,
    /// What is ordered.
    #[prost(
        oneof = "Request",
        tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57"
    )]
    pub request: Option<Request>,
}

/// The run that sent a message, and what made it do so.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Sender {
    /// Its namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// Its Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// Its run.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The event of its history that the answer belongs to; 0 = none is wanted.
    #[prost(int64, tag = "4")]
    pub initiated_event_id: i64,
    /// Only a child of the sender is meant.
    #[prost(bool, tag = "5")]
    pub child_only: bool,
    /// The run whose beginning it has by a reset; empty = none.
    #[prost(string, tag = "6")]
    pub original_run_id: String,
}

/// What is ordered, by kind.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(missing_docs)]
pub enum Request {
    #[prost(message, boxed, tag = "10")]
    Start(Box<start::Begin>),
    #[prost(message, tag = "11")]
    Signal(signal::Signal),
    #[prost(message, tag = "12")]
    Cancel(cancel::Request),
    #[prost(message, tag = "13")]
    Terminate(close::Terminate),
    #[prost(message, tag = "14")]
    ClaimTask(workflow_task::Claim),
    #[prost(message, boxed, tag = "15")]
    CompleteTask(Box<workflow_task_completed::Complete>),
    #[prost(message, tag = "16")]
    FailTask(workflow_task::Fail),
    #[prost(message, tag = "17")]
    ReleaseTask(workflow_task::Release),
    #[prost(message, tag = "18")]
    ClaimActivity(activity_attempt::Claim),
    #[prost(message, tag = "19")]
    CompleteActivity(activity_attempt::Complete),
    #[prost(message, tag = "20")]
    FailActivity(activity_attempt::Fail),
    #[prost(message, tag = "21")]
    CancelActivity(activity_attempt::Cancel),
    #[prost(message, tag = "22")]
    HeartbeatActivity(activity_attempt::Heartbeat),
    #[prost(message, tag = "23")]
    ReleaseActivity(activity_attempt::Release),
    #[prost(message, tag = "24")]
    FireTimers(fire_timers::FireTimers),
    #[prost(message, tag = "25")]
    ResetSticky(ResetSticky),
    #[prost(message, tag = "26")]
    Update(update::Admit),
    #[prost(message, tag = "27")]
    Reset(reset::Reset),
    #[prost(message, tag = "40")]
    ChildOpened(parent_child::Opened),
    #[prost(message, tag = "41")]
    BeginChild(parent_child::Begin),
    #[prost(message, tag = "42")]
    ChildClosed(parent_child::Closed),
    #[prost(message, tag = "43")]
    ExternalAnswered(external_workflow::Answered),
    #[prost(message, tag = "44")]
    Delete(Delete),
    #[prost(message, boxed, tag = "45")]
    CreateSchedule(Box<schedule::request::CreateSchedule>),
    #[prost(message, boxed, tag = "46")]
    UpdateSchedule(Box<schedule::request::UpdateSchedule>),
    #[prost(message, tag = "47")]
    PatchSchedule(schedule::request::PatchSchedule),
    #[prost(message, tag = "48")]
    DeleteSchedule(schedule::request::DeleteSchedule),
    #[prost(message, tag = "49")]
    ScheduleActionOpened(schedule::action::ScheduleActionOpened),
    #[prost(message, tag = "50")]
    ScheduleActionClosed(schedule::action::ScheduleActionClosed),
    #[prost(message, tag = "51")]
    PauseActivity(activity_control::PauseActivity),
    #[prost(message, tag = "52")]
    UnpauseActivity(activity_control::UnpauseActivity),
    #[prost(message, tag = "53")]
    ResetActivity(activity_control::ResetActivity),
    #[prost(message, tag = "54")]
    UpdateActivityOptions(activity_control::UpdateActivityOptions),
    #[prost(message, tag = "55")]
    PauseRun(run_pause::PauseRun),
    #[prost(message, tag = "56")]
    UnpauseRun(run_pause::UnpauseRun),
    #[prost(message, tag = "57")]
    UpdateRunOptions(run_options::UpdateRunOptions),
}

/// Order: forget the run, at once and for ever; one that is open is terminated first.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Delete {}

/// Order: forget the worker that has the run in its cache.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ResetSticky {}

impl Sender {
    /// A run as it signs its messages.
    pub(crate) fn of(run: &Run, initiated_event_id: i64) -> Self {
        Self {
            namespace_id: run.start.namespace_id.clone(),
            workflow_id: run.start.workflow_id.clone(),
            run_id: run.start.run_id.clone(),
            initiated_event_id,
            child_only: false,
            original_run_id: run.start.original_run_id.clone(),
        }
    }

    /// As the receiver's history names it.
    pub(crate) fn execution(&self) -> Execution {
        Execution { workflow_id: self.workflow_id.clone(), run_id: self.run_id.clone() }
    }

    /// A message back.
    pub(crate) fn answer(&self, order: Request) -> RequestRecord {
        RequestRecord {
            namespace_id: self.namespace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            run_id: self.run_id.clone(),
            sender: None,
            request: Some(order),
        }
    }

    /// The run belongs to this one's child, or need not.
    pub(crate) fn reaches(&self, run: &Run) -> bool {
        let is_parent = |parent: &child::Parent| {
            let origin_of_parent = origin(&parent.run_id, &parent.original_run_id);
            let ids = (&parent.namespace_id, &parent.workflow_id, origin_of_parent);
            ids == (&self.namespace_id, &self.workflow_id, origin(&self.run_id, &self.original_run_id))
        };
        !self.child_only || run.start.parent.as_deref().is_some_and(is_parent)
    }
}

/// A run, or what that was before it was reset: it has the children that it had begun until then.
fn origin<'a>(run_id: &'a str, original_run_id: &'a str) -> &'a str {
    if original_run_id.is_empty() { run_id } else { original_run_id }
}

impl RequestRecord {
    /// The signal's request id, if it must be looked up among those seen before.
    pub fn signal_request_id(&self) -> Option<&str> {
        match &self.request {
            Some(Request::Signal(signal)) => Some(signal.request_id.as_str()),
            Some(Request::Start(begin)) => begin.signal.as_ref().map(|signal| signal.request_id.as_str()),
            _without_signal => None,
        }
        .filter(|request_id| !request_id.is_empty())
    }

    /// The request id of what begins a run and brings no signal, if it must be looked up among those that the runs of
    /// the chain came of.
    pub fn creation_request_id(&self) -> Option<&str> {
        match &self.request {
            Some(Request::Start(begin)) if begin.signal.is_none() => Some(begin.request_id.as_str()),
            Some(Request::Reset(reset)) => Some(reset.request_id.as_str()),
            _another => None,
        }
        .filter(|request_id| !request_id.is_empty())
    }

    /// Ids of updates that must be looked up among those that the run has completed: all that the order speaks of and that
    /// the run has not at hand.
    pub fn update_ids(&self, run: &Run) -> BTreeSet<&str> {
        let mut ids: BTreeSet<&str> = match &self.request {
            Some(Request::Update(update)) => BTreeSet::from([update.update_id.as_str()]),
            Some(Request::Start(begin)) => {
                begin.update.iter().map(|update| update.update_id.as_str()).collect()
            }
            Some(Request::CompleteTask(complete)) => {
                complete.messages.iter().map(|message| message.protocol_instance_id.as_str()).collect()
            }
            _without_updates => BTreeSet::new(),
        };
        ids.retain(|id| !run.updates.contains_key(*id));
        ids
    }
}
