//! What deciding a record yields: new states, events, and an answer for whoever waits.

use std::sync::Arc;

use crate::api_types::Status;
use crate::draft::Step;
use crate::event::HistoryEvent;
use crate::machine::activity::Activity;
use crate::machine::operator::activity_options::ActivityOptions;
use crate::machine::operator::run_options::RunOptions;
use crate::machine::schedule::event::ScheduleEvent;
use crate::machine::update::UpdateStanding;
use crate::request::RequestRecord;
use crate::run::{Current, Run};

/// Everything that one journal record yields.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer to whoever waits for the record.
    pub reply: Reply,
    /// The runs that changed, in order; a run that closes stands before the one that continues it.
    pub steps: Vec<Step>,
    /// The Workflow Id means another run now.
    pub current: Option<Current>,
    /// The signal's request id, to be remembered with the run of the last step.
    pub seen: Option<String>,
    /// The addressed run's rows are to be deleted: its retention is over.
    pub expired: bool,
    /// Orders for other Workflow Ids, each to be taken once and in this order.
    pub messages: Vec<RequestRecord>,
    /// What has happened to a schedule, in order.
    pub schedule_events: Vec<ScheduleEvent>,
}

impl Outcome {
    /// An answer without any change.
    pub fn answer(reply: Reply) -> Self {
        Self {
            reply,
            steps: Vec::new(),
            current: None,
            seen: None,
            expired: false,
            messages: Vec::new(),
            schedule_events: Vec::new(),
        }
    }

    /// An answer with what it did to a run, and with the first step of the run that follows it, where one does.
    pub(crate) fn of(reply: Reply, step: Step, successor: Option<Step>) -> Self {
        let current = successor.as_ref().map(|next| Current { run_id: next.run.start.run_id.clone() });
        let steps = std::iter::once(step).chain(successor).collect();
        Self { steps, current, ..Self::answer(reply) }
    }

    /// A refusal: it leaves nothing.
    pub fn refuse(rejection: Rejection) -> Self {
        Self::answer(Reply::Rejected(rejection))
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It is done, and there is nothing to tell.
    Done,
    /// It was refused.
    Rejected(Rejection),
    /// A run was started, or found.
    Started(Started),
    /// A workflow task was handed out.
    Task(Box<TaskGrant>),
    /// An activity task was handed out.
    Activity(Box<ActivityGrant>),
    /// The task that was claimed is gone.
    Gone,
    /// A workflow task was completed.
    Completed(Box<Completed>),
    /// A heartbeat was taken.
    Heartbeat(HeartbeatAnswer),
    /// Options of an activity were changed, or restored: those in force.
    ActivityOptions(Box<ActivityOptions>),
    /// Options of a run were changed: those in force.
    RunOptions(Box<RunOptions>),
    /// An update was admitted, or found.
    Update(Box<UpdateStanding>),
    /// A schedule was made, found, or changed.
    Schedule(ScheduleStanding),
}

/// What a worker hears with a heartbeat. Each asks it to end the attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// The workflow has asked for the cancellation.
    pub cancel_requested: bool,
    /// An operator has paused the activity.
    pub paused: bool,
    /// An operator has reset the activity.
    pub reset: bool,
}

/// How a schedule stands behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStanding {
    /// Its run: a schedule of the same id that is made later has another.
    pub run_id: String,
    /// What an update has to name that goes by what the schedule is now; from 1 on.
    pub conflict_token: u64,
}

/// A run that a start made or found.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// The run.
    pub run_id: String,
    /// The first run of its chain.
    pub first_run_id: String,
    /// False where a running run was found and used.
    pub started: bool,
    /// How the run stands.
    pub status: Status,
    /// The first workflow task, where it was asked for with the start.
    pub task: Option<Box<TaskGrant>>,
    /// The update that came with the start.
    pub update: Option<Box<UpdateStanding>>,
}

/// What the completion of a workflow task yields.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Completed {
    /// The next workflow task, where it was asked for with the completion.
    pub task: Option<TaskGrant>,
    /// Activities that the worker asked to get at once, in the order of their commands.
    pub activities: Vec<ActivityGrant>,
    /// The task left no trace: the worker has the run as it was behind this Started event. 0 = it left one.
    pub reset_event_id: i64,
}

/// A workflow task in a worker's hand.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskGrant {
    /// The run as it stands.
    pub run: Arc<Run>,
    /// True where the worker has the run in its cache: the history begins behind the last completed task.
    pub sticky: bool,
    /// Scheduled and Started of a task whose events are not written yet.
    pub tail: Vec<HistoryEvent>,
}

/// An activity task in a worker's hand.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityGrant {
    /// The run as it stands.
    pub run: Arc<Run>,
    /// The attempt.
    pub activity: Arc<Activity>,
}

/// A refusal, by what the caller can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The run, task or activity is not there (any more).
    NotFound(String),
    /// The request can never succeed.
    InvalidArgument(String),
    /// Too much at the moment for this workflow.
    Busy(String),
    /// The run cannot do that now.
    NotReady(String),
    /// What the request goes by has changed since it was read.
    Outdated(String),
    /// Too many at once: it may go through when some are done.
    TooManyAtOnce(String),
    /// Too many in all.
    TooMany(String),
    /// No namespace has this name.
    NamespaceUnknown(String),
    /// The namespace of this UUID was deleted.
    NamespaceDeleted(String),
    /// The Workflow Id is taken.
    AlreadyStarted {
        /// What is in the way.
        message: String,
        /// The run that is in the way.
        run_id: String,
        /// The first run of its chain.
        first_run_id: String,
        /// The request that started it.
        request_id: String,
    },
}

impl Rejection {
    /// No such workflow.
    pub fn unknown() -> Self {
        Self::NotFound("workflow execution not found".into())
    }

    /// Nothing is known of this Workflow Id, or of this run of it.
    pub fn unknown_run(workflow_id: &str, run_id: &str) -> Self {
        Self::NotFound(match run_id {
            "" => format!("workflow not found for ID: {workflow_id}"),
            run_id => {
                format!(
                    "workflow execution not found for workflow ID \"{workflow_id}\" and run ID \"{run_id}\""
                )
            }
        })
    }

    /// The run is closed.
    pub fn closed() -> Self {
        Self::NotFound("workflow execution already completed".into())
    }
}
