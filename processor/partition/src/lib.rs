//! When it happens: the single-threaded owner of a partition, its alarms, its task hand-out and its recovery.
//!
//! A [`Partition`] owns no thread, socket or timer: whoever drives it brings events, the time, and a log.

mod config;
mod context;
mod error;
mod invariants;
mod journal;
mod matching;
mod model;
mod outbox;
mod partition;
mod public;
mod reads;
mod recovery;
mod router;
mod state;
mod stats;
mod tasks;
mod timers;
pub mod transfer;
mod visibility;

pub use crate::config::{Config, LevelSource};
pub use crate::error::{Error, RowsFault};
pub use crate::invariants::{AllRules, Rule, Rules};
pub use crate::journal::journal_queue::level_record;
pub use crate::journal::uncommitted_budget::UncommittedBudget;
pub use crate::matching::claims::{
    BoxedFuture, ClaimReply, NodeLink, RemoteClaims, Whereabouts, add_kept_back,
};
pub use crate::matching::dispatcher::{
    Backlog, Dispatcher, LevelStatus, PollTicket, PollerStatus, QueueBacklog, QueueConfig, QueueCounts,
    QueueLimits, QueueStatus, ReadyId, STICKY_LIVE_MS,
};
pub use crate::matching::remote::{KeptBack, RemoteQueues};
pub use crate::matching::server_queues::SERVER_QUEUE_PREFIX;
pub use crate::model::admission::{Admission, AdmissionSlot, CallFailure, CallResult};
pub use crate::model::inbox_message::{InboxMessage, PartitionSender};
pub use crate::model::keys::{Address, BUCKETS, RunKey, WorkflowKey};
pub use crate::model::priority::{STRIDE, TaskPriority};
pub use crate::model::task_types::{Offer, QueueKey, Ready, TaskKind, TaskRef, Waiting};
pub use crate::model::types::{
    ActivityTask, Completion, Delivery, Page, Poll, QueryAnswer, QueryOutcome, QueryRequest, QueryTask,
    Reading, Receipt, RemoteClaim, UpdateNews, Want, WorkflowTask,
};
pub use crate::model::visibility_messages::{
    LogPosition, VisibilityAnswer, VisibilityRead, VisibilityWant, VisibleCount, VisibleRun, VisibleSchedule,
    WantedCount, WantedPage,
};
pub use crate::partition::Partition;
pub use crate::public::command_observer::{CommandObserver, DecidedCommand};
pub use crate::public::outputs::{NameResolver, Unnamed};
pub use crate::recovery::previous_owner::PreviousOwner;
pub use crate::router::{Router, UpdateCall};
pub use crate::stats::{EndingCounts, Rejections, Stats, Uncounted};
pub use crate::visibility::check::index_differences;
pub use crate::visibility::reads::COUNT_GROUPS_MAX;
