//! What passes between gateways and partitions besides orders: polls, tasks, reads and queries.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use everlog_engine::machine::activity::{Activity, Scheduled};
use everlog_engine::machine::update::UpdateStanding;
use everlog_engine::{Rejection, Reply, Run};

use crate::TaskKind;
use crate::model::keys::{Address, RunKey};

/// A worker that waits for a task.
#[derive(Clone, Debug)]
pub struct Poll {
    /// The namespace's UUID.
    pub namespace_id: String,
    /// The queue's name, as it is polled.
    pub queue: String,
    /// What tasks it waits for.
    pub kind: TaskKind,
    /// The queue is the private one of a worker (workflow tasks only).
    pub sticky: bool,
    /// The queue that a sticky one belongs to, where the worker says so.
    pub normal_queue: Option<String>,
    /// Who polls.
    pub identity: String,
    /// A UUID of this poll; it stands in the Started event.
    pub poll_id: String,
    /// Activity tasks per second that the whole queue may hand out; none = no limit.
    pub rate_per_second: Option<f64>,
    /// What the worker says of its version: the fields of the API's `PollerInfo` that do, encoded.
    pub version: Option<Bytes>,
}

/// What a poll got. A task that is dropped without [`Receipt::accept`] goes back to its queue.
#[derive(Debug)]
pub enum Delivery {
    /// A workflow task.
    Workflow(Box<WorkflowTask>),
    /// An activity task.
    Activity(Box<ActivityTask>),
    /// A query for a run in which nothing happens.
    Query(Box<QueryTask>),
    /// A task or a query of a partition on another node, as its worker is to be told.
    Remote(RemoteClaim),
    /// Nothing: the queue was retired.
    Nothing,
}

/// The answer to a poll, made by the node that owns the run.
#[derive(Debug)]
pub struct RemoteClaim {
    /// The encoded message of the gateway's API.
    pub answer: Bytes,
    /// Tells the owner whether the answer has reached somebody.
    pub receipt: Option<Receipt>,
}

/// A workflow task with everything that its worker is told.
#[derive(Debug)]
pub struct WorkflowTask {
    /// The run; its pending task is this one.
    pub run: Arc<Run>,
    /// The history begins behind the last completed task: the worker has the run in its cache.
    pub sticky: bool,
    /// The history's first page.
    pub history: Page,
    /// Queries to be answered with the completion: id and encoded `WorkflowQuery`.
    pub queries: Vec<(String, Bytes)>,
    /// Other tasks that wait in the same queue.
    pub backlog: usize,
    /// Gives the task back if it reaches nobody; none where it is part of an answer.
    pub receipt: Option<Receipt>,
}

/// An activity task with everything that its worker is told.
#[derive(Debug)]
pub struct ActivityTask {
    /// The run.
    pub run: Arc<Run>,
    /// The attempt.
    pub activity: Arc<Activity>,
    /// What the workflow asked for: input, header, timeouts.
    pub scheduled: Scheduled,
    /// Gives the task back if it reaches nobody; none where it is part of an answer.
    pub receipt: Option<Receipt>,
}

/// A query that is not part of a workflow task.
#[derive(Debug)]
pub struct QueryTask {
    /// The run.
    pub run: Arc<Run>,
    /// The worker has the run in its cache: no history goes along.
    pub sticky: bool,
    /// The history's first page; empty for a sticky worker.
    pub history: Page,
    /// The encoded `WorkflowQuery`.
    pub query: Bytes,
    /// What the answer has to name.
    pub query_id: String,
    /// Gives the question to another worker if it reaches nobody.
    pub receipt: Option<Receipt>,
}

/// A piece of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// An encoded `History` message: whole batches of events.
    pub history: Bytes,
    /// The event that the next page begins with; 0 = this is the last page.
    pub next_event_id: i64,
}

/// Runs when a task is dropped before anybody took it.
pub struct Receipt {
    give_back: Option<Act>,
    taken: Option<Act>,
    claimed: Option<(u32, RunKey)>,
}

type Act = Box<dyn FnOnce() + Send + Sync>;

impl Receipt {
    /// A receipt that calls `give_back` unless it is accepted.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { give_back: Some(Box::new(give_back)), taken: None, claimed: None }
    }

    /// A receipt that calls `taken` when it is accepted, and `give_back` otherwise.
    pub fn answered(
        taken: impl FnOnce() + Send + Sync + 'static,
        give_back: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        Self { give_back: Some(Box::new(give_back)), taken: Some(Box::new(taken)), claimed: None }
    }

    /// Of a task of this run, in this partition: who is told of it when its owner is gone finds it by that.
    #[must_use]
    pub fn of_task(self, partition: u32, run: RunKey) -> Self {
        let mut receipt = self;
        receipt.claimed = Some((partition, run));
        receipt
    }

    /// The partition and the run of the task, where it is one of a task.
    pub fn claimed(&self) -> Option<(u32, RunKey)> {
        self.claimed.clone()
    }

    /// The task is on its way to the worker.
    pub fn accept(mut self) {
        self.give_back = None;
        if let Some(taken) = self.taken.take() {
            taken();
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(give_back) = self.give_back.take() {
            give_back();
        }
    }
}

impl std::fmt::Debug for Receipt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Receipt")
    }
}

/// The answer to the completion of a workflow task.
#[derive(Debug)]
pub struct Completion {
    /// [`Reply::Completed`] or a rejection. Tasks in it are repeated below with all that a worker is told.
    pub reply: Reply,
    /// The next workflow task, where it was asked for.
    pub task: Option<WorkflowTask>,
    /// Activities that the worker asked to get at once.
    pub activities: Vec<ActivityTask>,
}

/// What a reader wants to know of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Only its state.
    State,
    /// Its state and a page of its history: whole batches from the one that begins with `from_event_id` (1 = all),
    /// at most `batches_max` (0 = as many as fit), at least one where there is one.
    History {
        /// The first event of a batch.
        from_event_id: i64,
        /// Batches on the page.
        batches_max: usize,
    },
    /// Its state and the last batch of its history.
    LastBatch,
    /// Its state and a page that ends with the batch before `below_event_id` (0 = with the last batch).
    Reverse {
        /// The first event of the batch behind the page; 0 = none.
        below_event_id: i64,
        /// Batches on the page.
        batches_max: usize,
    },
}

/// What a reader is told.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The run as it is applied.
    pub run: Arc<Run>,
    /// It is the current run of its Workflow Id.
    pub is_current: bool,
    /// What was asked for of its history. For `Reverse`, `next_event_id` is what `below_event_id` has to be for the
    /// page before this one.
    pub page: Page,
}

/// A question to a run's worker.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// The run.
    pub address: Address,
    /// The encoded `WorkflowQuery`.
    pub query: Bytes,
    /// Do not ask a run that is not open.
    pub only_open: bool,
    /// Do not ask a run that ended otherwise than completed.
    pub only_completed_cleanly: bool,
    /// How long the caller waits for the answer, in ms.
    pub patience_ms: i64,
    /// Set when a worker gets the question.
    pub is_taken: Arc<AtomicBool>,
}

/// What came of a question.
#[derive(Clone, Debug)]
pub enum QueryOutcome {
    /// The worker answered.
    Answered(QueryAnswer),
    /// Not asked: the run stands as it was not wished; its status.
    NotWished(i32),
    /// The run is not there.
    Refused(Rejection),
    /// The run cannot be asked now, and why.
    NotReady(String),
    /// Too many questions wait for this run.
    Busy,
}

/// What a caller hears of an update behind the first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateNews {
    /// It is further than before.
    UpdateStanding(UpdateStanding),
    /// Its run was closed before a worker took it.
    Closed,
    /// The workflow task that it went along with failed.
    TaskFailed,
}

/// A worker's answer.
#[derive(Clone, Debug)]
pub struct QueryAnswer {
    /// Which question.
    pub query_id: String,
    /// The handler returned; otherwise it failed.
    pub succeeded: bool,
    /// The result, encoded payloads.
    pub result: Option<Bytes>,
    /// Why it failed.
    pub error_message: String,
    /// Why it failed, an encoded failure.
    pub failure: Option<Bytes>,
}

/// Tasks that are looked at again in one sweep.
pub(crate) const PARKED_MAX: usize = 1_000;
