//! What reaches a partition: orders, reads, answers of workers, and reports of the log.

use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::machine::update::UpdateStanding;
use everlog_engine::request::RequestRecord;
use everlog_engine::{Reply, TaskGrant};
use everlog_log::Appended;
use everlog_wire::Body;
use everlog_wire::public_command::SourcePosition;
use tokio::sync::{mpsc, oneshot};

use crate::model::admission::{AdmissionSlot, CallFailure, CallResult};
use crate::model::keys::{Address, RunKey};
use crate::model::reply::send_reply;
use crate::model::task_types::{TaskRef, Waiting};
use crate::model::types::{
    Completion, QueryAnswer, QueryOutcome, QueryRequest, Reading, UpdateNews, Want, WorkflowTask,
};
use crate::model::visibility_messages::{VisibilityAnswer, VisibilityRead};

/// Sends an event to the thread that owns a partition; false where it is gone.
pub type PartitionSender = Arc<dyn Fn(u32, InboxMessage) -> bool + std::marker::Send + Sync>;

/// What reaches a partition.
pub enum InboxMessage {
    /// An order to journal.
    Request {
        /// The order.
        input: RequestRecord,
        /// Its place among the waiting requests.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<Reply>>,
    },
    /// A completed workflow task, with answers to the queries that went along with it.
    CompleteTask {
        /// The order.
        input: RequestRecord,
        /// The worker's answers.
        answers: Vec<QueryAnswer>,
        /// Its place among the waiting requests.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<Completion>>,
    },
    /// A reader.
    Read {
        /// The run.
        address: Address,
        /// What to read of it.
        want: Want,
        /// Its place among the waiting readers.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<Option<Reading>>>,
    },
    /// A caller that waits for news of a run.
    Watch {
        /// The run.
        address: Address,
        /// The last event that the caller knows.
        known_event_id: i64,
        /// Its place among the waiting readers; given back once it is noted who waits.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<()>,
    },
    /// An order that brings an update, alone or with a start.
    Update {
        /// The order.
        input: RequestRecord,
        /// Its place among the waiting requests; given back with the answer.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<Reply>>,
        /// Where goes what comes of the update later.
        news: mpsc::Sender<UpdateNews>,
    },
    /// A caller that waits for what comes of an update.
    AwaitUpdate {
        /// The run.
        address: Address,
        /// The update.
        update_id: String,
        /// Its place among the waiting readers; given back with the answer.
        slot: AdmissionSlot,
        /// How it stands; none where the run does not know it.
        reply: oneshot::Sender<CallResult<Option<UpdateStanding>>>,
        /// Where goes what comes of it later.
        news: mpsc::Sender<UpdateNews>,
    },
    /// A list or a count of runs.
    Visibility {
        /// Which runs.
        read: VisibilityRead,
        /// Its place among the waiting readers; given back with the answer.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<VisibilityAnswer>>,
    },
    /// A question to a run's worker.
    Query {
        /// The question.
        request: QueryRequest,
        /// Its place among the waiting requests.
        slot: AdmissionSlot,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<QueryOutcome>>,
    },
    /// A worker's answer to a direct question.
    QueryAnswered {
        /// The answer.
        answer: QueryAnswer,
        /// Its place among the waiting requests.
        slot: AdmissionSlot,
        /// False where nobody waits for it.
        reply: oneshot::Sender<bool>,
    },
    /// A task that was granted with another order wants its history.
    LoadTask {
        /// The task.
        grant: TaskGrant,
        /// Where the answer goes.
        reply: oneshot::Sender<CallResult<WorkflowTask>>,
    },
    /// The dispatcher found a poll for a task of this partition. As many can wait as polls were let in.
    Claim {
        /// The task.
        task: TaskRef,
        /// The poll.
        waiting: Waiting,
    },
    /// The dispatcher found a poll for a question of this partition.
    HandQuery {
        /// The question.
        query_id: String,
        /// The poll.
        waiting: Waiting,
    },
    /// A question that was given to a worker reached nobody.
    QueryLost {
        /// The question.
        query_id: String,
    },
    /// Polls that other nodes have brought, or at whose homes they are, have got nothing: their way has broken. What they have
    /// claimed goes back to its queue.
    PollsLost {
        /// Their ids.
        poll_ids: Arc<[String]>,
        /// What they have claimed something of, where that is known; else it is looked for among what former owners have
        /// handed out last.
        run: Option<RunKey>,
    },
    /// A task that was handed out reached nobody. As many can wait as tasks were claimed, each for a poll that was let
    /// in.
    Release {
        /// The order that takes it back.
        input: RequestRecord,
    },
    /// Public records for a journal that only its owner appends to, in the order of their source. Whoever sends them
    /// sends the next ones for this partition when these are done.
    Ingest {
        /// `Forwarded` or `Unreadable`, each with its place.
        bodies: Vec<Body>,
        /// Told when all of them are applied; dropped where nobody knows, and they are to be sent again.
        done: oneshot::Sender<CallResult<()>>,
    },
    /// Asks how far the records of a source were applied.
    Mark {
        /// The source: its incarnation and its partition.
        source: SourcePosition,
        /// Told the offset behind the last record of it.
        reply: oneshot::Sender<u64>,
    },
    /// Messages of another partition of this process, as journal records.
    Messages {
        /// Who sends them.
        from: u32,
        /// In the order of their numbers.
        messages: Vec<Bytes>,
    },
    /// Messages have arrived.
    MessagesTaken {
        /// At this partition.
        by: u32,
        /// Up to this number.
        number: u64,
    },
    /// The messages on their way have not arrived for sure.
    MessagesLost {
        /// At this partition.
        by: u32,
    },
    /// The nodes have changed: what waits for a worker is offered again, perhaps at another home.
    OfferAgain,
    /// Nothing but an occasion to take a turn.
    Nudge,
    /// An append is durable, or has failed.
    Appended(Result<Option<Appended>, everlog_log::Error>),
    /// A commit is done, or has failed.
    Committed(Result<(), everlog_log::Error>),
    /// Rows of histories that were missing have come, or have not.
    Restored(Result<everlog_log::RestoreChunk, everlog_log::Error>),
}

impl InboxMessage {
    /// What the log tells is for the life of the partition that asked for it, and for no later one.
    pub fn is_report(&self) -> bool {
        matches!(self, Self::Appended(_) | Self::Committed(_) | Self::Restored(_))
    }

    /// The partition is not here, and nothing of this was taken: whoever waits for an answer is told.
    pub fn refuse(self, failure: CallFailure) {
        match self {
            Self::Request { reply, .. } | Self::Update { reply, .. } => send_reply(reply, Err(failure)),
            Self::AwaitUpdate { reply, .. } => send_reply(reply, Err(failure)),
            Self::CompleteTask { reply, .. } => send_reply(reply, Err(failure)),
            Self::Read { reply, .. } => send_reply(reply, Err(failure)),
            Self::Visibility { reply, .. } => send_reply(reply, Err(failure)),
            Self::Query { reply, .. } => send_reply(reply, Err(failure)),
            Self::LoadTask { reply, .. } => send_reply(reply, Err(failure)),
            Self::Watch { .. }
            | Self::QueryAnswered { .. }
            | Self::Claim { .. }
            | Self::HandQuery { .. }
            | Self::QueryLost { .. }
            | Self::PollsLost { .. }
            | Self::Release { .. }
            | Self::Ingest { .. }
            | Self::Mark { .. }
            | Self::Messages { .. }
            | Self::MessagesTaken { .. }
            | Self::MessagesLost { .. }
            | Self::OfferAgain
            | Self::Nudge
            | Self::Appended(_)
            | Self::Committed(_)
            | Self::Restored(_) => {}
        }
    }
}
