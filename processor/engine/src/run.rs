//! A run: the mutable state of one execution of a workflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api_types::{MapEntry, Status, WorkflowType};
use crate::copy_on_write::{CopyOnWrite, Empty};
use crate::event::HistoryEvent;
use crate::machine::activity::Activity;
use crate::machine::attached_requests::Attached;
use crate::machine::child::{Child, Parent};
use crate::machine::continuation::Chain;
use crate::machine::external_workflow::External;
use crate::machine::operator::run_pause::RunPause;
use crate::machine::reset::ResetRun;
use crate::machine::reset_points::Point;
use crate::machine::schedule::Schedule;
use crate::machine::schedule::action::ActionWatcher;
use crate::machine::timer::Timer;
use crate::machine::update::Update;
use crate::machine::worker_versioning::Versioning;
use crate::machine::workflow_task::{Sticky, Task};

/// The state of one run. Cloning is cheap: parts are shared until they change.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What never changes.
    pub start: Arc<Start>,
    /// What changes with every step.
    pub head: ExecutionInfo,
    /// Memo, search attributes, and the builds and versions of its workers.
    pub properties: CopyOnWrite<Properties>,
    /// Open activities by their Scheduled event's id.
    pub activities: CopyOnWrite<BTreeMap<i64, Arc<Activity>>>,
    /// Open timers by their id.
    pub timers: CopyOnWrite<BTreeMap<String, Timer>>,
    /// Children that have not closed, by their Initiated event's id; of a closed run those that it left.
    pub children: CopyOnWrite<BTreeMap<i64, Arc<Child>>>,
    /// Signals and cancellations on their way to other workflows, by their Initiated event's id.
    pub externals: CopyOnWrite<BTreeMap<i64, Arc<External>>>,
    /// Events that wait for the end of the started workflow task to get their ids, in order of arrival.
    pub buffered: CopyOnWrite<Vec<HistoryEvent>>,
    /// What the run that follows by itself is made of, where one may.
    pub chain: Option<Arc<Chain>>,
    /// Updates that are not completed, by their id.
    pub updates: CopyOnWrite<BTreeMap<String, Arc<Update>>>,
    /// Requests that have found the run and left their ids, by these; they stay when it closes.
    pub attached: CopyOnWrite<BTreeMap<String, Attached>>,
    /// Of a schedule: what it is to do, and how far it is. Such a run has no events and no tasks.
    pub schedule: Option<Arc<Schedule>>,
}

/// What is fixed when a run begins.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Start {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// The Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// This run's UUID.
    #[prost(string, tag = "3")]
    pub run_id: String,
    /// The first run of the chain; its own id for the first.
    #[prost(string, tag = "4")]
    pub first_run_id: String,
    /// The workflow type.
    #[prost(message, optional, tag = "5")]
    pub workflow_type: Option<WorkflowType>,
    /// The normal queue of the workflow's tasks.
    #[prost(string, tag = "6")]
    pub task_queue: String,
    /// Limit over the whole chain of runs in ms; 0 = none.
    #[prost(int64, tag = "7")]
    pub execution_timeout_ms: i64,
    /// Limit of this run in ms; 0 = none.
    #[prost(int64, tag = "8")]
    pub run_timeout_ms: i64,
    /// Start-to-close timeout of a workflow task in ms.
    #[prost(int64, tag = "9")]
    pub task_timeout_ms: i64,
    /// When the run began.
    #[prost(int64, tag = "10")]
    pub start_ms: i64,
    /// When the chain must have ended; 0 = never.
    #[prost(int64, tag = "11")]
    pub execution_expires_ms: i64,
    /// When this run must have ended, the chain's end included; 0 = never.
    #[prost(int64, tag = "12")]
    pub run_expires_ms: i64,
    /// How long the first workflow task waits, in ms.
    #[prost(int64, tag = "13")]
    pub first_task_backoff_ms: i64,
    /// The request that started it.
    #[prost(string, tag = "14")]
    pub request_id: String,
    /// How long the run stays readable after its close, in ms.
    #[prost(int64, tag = "15")]
    pub retention_ms: i64,
    /// Summary and details given at the start, opaque.
    #[prost(bytes = "bytes", optional, tag = "16")]
    pub user_metadata: Option<bytes::Bytes>,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub priority: Option<bytes::Bytes>,
    /// When the first run of the chain began.
    #[prost(int64, tag = "18")]
    pub chain_start_ms: i64,
    /// The run before it in the chain; empty for the first.
    #[prost(string, tag = "19")]
    pub continued_run_id: String,
    /// The run timeout was named, even where it is none: so it is of children, and of runs that are continued by their workflow.
    #[prost(bool, tag = "23")]
    pub names_run_timeout: bool,
    /// Whose child the chain is.
    #[prost(message, optional, boxed, tag = "40")]
    pub parent: Option<Box<Parent>>,
    /// The run whose beginning this one has by a reset, or by a row of them; empty where no reset has made it.
    #[prost(string, tag = "20")]
    pub original_run_id: String,
    /// Of a run that a reset has made: the one that was current until then.
    #[prost(string, tag = "21")]
    pub former_run_id: String,
    /// Of a run that a reset has made: when that was.
    #[prost(int64, tag = "22")]
    pub reset_ms: i64,
    /// The journal's offset at which the run began; 0 also where an older release has begun it.
    #[prost(uint64, tag = "24")]
    pub start_offset: u64,
    /// The action of a schedule that has started the chain.
    #[prost(message, optional, boxed, tag = "25")]
    pub watcher: Option<Box<ActionWatcher>>,
}

/// The small part of a run that changes with every step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionInfo {
    /// The id that the next event gets; the history's length + 1.
    #[prost(int64, tag = "1")]
    pub next_event_id: i64,
    /// Encoded bytes of all events.
    #[prost(int64, tag = "2")]
    pub history_bytes: i64,
    /// How the run stands.
    #[prost(enumeration = "Status", tag = "3")]
    pub status: i32,
    /// When it closed; 0 while open.
    #[prost(int64, tag = "4")]
    pub close_ms: i64,
    /// The Started event of the last completed workflow task; 0 before the first.
    #[prost(int64, tag = "5")]
    pub previous_started_event_id: i64,
    /// The pending workflow task.
    #[prost(message, optional, tag = "6")]
    pub task: Option<Task>,
    /// The worker that has the run in its cache.
    #[prost(message, optional, tag = "7")]
    pub sticky: Option<Sticky>,
    /// A cancellation was asked for.
    #[prost(bool, tag = "8")]
    pub cancel_requested: bool,
    /// Signals received.
    #[prost(int64, tag = "9")]
    pub signals: i64,
    /// A task that tried to close the run failed over unseen events: while the next one runs, signals are held off.
    #[prost(bool, tag = "10")]
    pub close_attempted: bool,
    /// Until when the first workflow task waits; 0 = it does not.
    #[prost(int64, tag = "11")]
    pub backoff_until_ms: i64,
    /// Steps that changed the run.
    #[prost(int64, tag = "12")]
    pub transitions: i64,
    /// The run that continues this one; empty = none.
    #[prost(string, tag = "13")]
    pub successor_run_id: String,
    /// Encoded bytes of open activities, timers, children, messages under way, buffered events, memo, search attributes and
    /// attached requests.
    #[prost(int64, tag = "14")]
    pub state_bytes: i64,
    /// The number of the update that was admitted last; updates are counted from 1.
    #[prost(int64, tag = "15")]
    pub updates_admitted: i64,
    /// Updates that were completed.
    #[prost(int64, tag = "16")]
    pub updates_completed: i64,
    /// The run that the last reset to a task of this one has made; empty = none.
    #[prost(string, tag = "17")]
    pub reset_run_id: String,
    /// The first event that the run made by the last reset does not have from this one.
    #[prost(int64, tag = "18")]
    pub reset_event_id: i64,
    /// A reset has ended it: the run that took its place has its parent's ear, and what it had begun goes on.
    #[prost(bool, tag = "19")]
    pub is_replaced: bool,
    /// What resets before the last one have made of it while it waited for answers of others: they may wait as well.
    #[prost(message, repeated, tag = "20")]
    pub former_resets: Vec<ResetRun>,
    /// The journal's offset at which it closed; 0 while it is open, and where an older release has closed it.
    #[prost(uint64, tag = "21")]
    pub close_offset: u64,
}

/// What a run shows of itself, as it stands now: memo, search attributes, and the builds and versions of its workers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Properties {
    /// Sorted by key.
    #[prost(message, repeated, tag = "1")]
    pub memo: Vec<MapEntry>,
    /// Sorted by key.
    #[prost(message, repeated, tag = "2")]
    pub search_attributes: Vec<MapEntry>,
    /// Where builds came in, the oldest first; [`Run::reset_points`] tells them.
    #[prost(message, repeated, tag = "3")]
    pub reset_points: Vec<Point>,
    /// Builds that have completed tasks of the run, in the order of their first one.
    #[prost(string, repeated, tag = "4")]
    pub build_ids: Vec<String>,
    /// The version of the worker that has completed a task last, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub worker_version: Option<bytes::Bytes>,
    /// Which version of its workers the run goes by, where anybody has said so.
    #[prost(message, optional, tag = "6")]
    pub versioning: Option<Versioning>,
    /// The deployment of the worker that has completed a task last, or of the version that the run began with; empty = none.
    #[prost(string, tag = "7")]
    pub deployment_name: String,
    /// Who has paused the run, while it is paused.
    #[prost(message, optional, tag = "8")]
    pub pause: Option<RunPause>,
    /// Priority, opaque, where it is another than that of the start; empty = none.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub priority: Option<bytes::Bytes>,
}

impl Empty for Properties {
    const EMPTY: &'static Self = &Self {
        memo: Vec::new(),
        search_attributes: Vec::new(),
        reset_points: Vec::new(),
        build_ids: Vec::new(),
        worker_version: None,
        versioning: None,
        deployment_name: String::new(),
        pause: None,
        priority: None,
    };
}

/// Which run a Workflow Id means when no run is named: the open one, else the latest.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Current {
    /// The current run.
    #[prost(string, tag = "1")]
    pub run_id: String,
}

impl Start {
    /// The limit of this run in ms; none where nobody has named one.
    pub fn named_run_timeout_ms(&self) -> Option<i64> {
        (self.run_timeout_ms > 0 || self.names_run_timeout).then_some(self.run_timeout_ms)
    }
}

impl Run {
    /// The state before the first event.
    pub fn begin(start: Start) -> Self {
        let head = ExecutionInfo {
            next_event_id: 1,
            status: Status::Running.into(),
            backoff_until_ms: match start.first_task_backoff_ms {
                0 => 0,
                backoff_ms => start.start_ms.saturating_add(backoff_ms),
            },
            ..ExecutionInfo::default()
        };
        Self {
            start: Arc::new(start),
            head,
            properties: CopyOnWrite::default(),
            activities: CopyOnWrite::default(),
            timers: CopyOnWrite::default(),
            children: CopyOnWrite::default(),
            externals: CopyOnWrite::default(),
            buffered: CopyOnWrite::default(),
            chain: None,
            updates: CopyOnWrite::default(),
            attached: CopyOnWrite::default(),
            schedule: None,
        }
    }

    /// True until a closing event.
    pub fn is_open(&self) -> bool {
        self.head.status == i32::from(Status::Running) || self.is_paused()
    }

    /// It is closed, and neither by its own return nor by a continuation.
    pub(crate) fn has_failed(&self) -> bool {
        let failed = [Status::Failed, Status::Canceled, Status::Terminated, Status::TimedOut];
        failed.map(i32::from).contains(&self.head.status)
    }

    /// When the rows of a closed run are to be deleted, in ms.
    pub fn expires_ms(&self) -> i64 {
        self.head.close_ms.saturating_add(self.start.retention_ms)
    }

    /// The workflow type's name.
    pub fn workflow_type(&self) -> &str {
        self.start.workflow_type.as_ref().map_or("", |workflow_type| &workflow_type.name)
    }

    /// The workflow task that a worker has in hand.
    pub fn started_task(&self) -> Option<&Task> {
        self.head.task.as_ref().filter(|task| task.is_started())
    }

    /// The next moment at which the run has something to do by itself, in ms; none where it only waits for others.
    pub fn next_deadline_ms(&self, grace: Grace) -> Option<i64> {
        if !self.is_open() {
            return Some(self.expires_ms());
        }
        if let Some(schedule) = &self.schedule {
            return schedule.progress.alarm_ms;
        }
        let whole = [self.start.run_expires_ms, self.head.backoff_until_ms];
        let whole = whole.into_iter().filter(|due_ms| *due_ms > 0);
        let task =
            self.head.task.as_ref().and_then(|task| task.deadline_ms(self.head.sticky.as_ref(), grace));
        let activities = self.activities.values().filter_map(|activity| activity.deadline_ms(grace));
        let timers = self.timers.values().map(|timer| timer.fire_ms);
        whole.chain(task).chain(activities).chain(timers).min()
    }
}

/// What a new owner grants to workers that could not reach the former one: nothing that they hold times out
/// before a while has passed since the take-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grace {
    /// When the owner took over.
    pub owner_ms: i64,
}

impl Grace {
    /// The least time that a worker has after a take-over, in ms.
    pub const SPAN_MS: i64 = 10_000;

    /// The moment at which something that a worker holds since `since_ms` times out after `timeout_ms`.
    pub fn deadline_ms(self, since_ms: i64, timeout_ms: i64) -> i64 {
        let due_ms = since_ms.saturating_add(timeout_ms);
        if since_ms <= self.owner_ms {
            due_ms.max(self.owner_ms.saturating_add(Self::SPAN_MS))
        } else {
            due_ms
        }
    }
}
