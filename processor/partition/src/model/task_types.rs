//! Tasks that are ready, the queues they wait in, and the polls that wait for them.

use std::num::NonZeroU64;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::model::keys::RunKey;
use crate::model::priority::TaskPriority;
use crate::model::types::{Delivery, Poll};

/// What a task asks of a worker. Its number is part of what nodes tell each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TaskKind {
    /// To run workflow code.
    #[default]
    Workflow = 0,
    /// To run an activity.
    Activity = 1,
}

impl TaskKind {
    /// The kind of a number; none where a later release has made it.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Workflow),
            1 => Some(Self::Activity),
            _later => None,
        }
    }
}

/// A task queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// The namespace's UUID.
    pub namespace_id: String,
    /// The queue's name.
    pub name: String,
    /// What its tasks are.
    pub kind: TaskKind,
}

/// A ready task, by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRef {
    /// The partition that owns the run.
    pub partition: u32,
    /// The run.
    pub run: RunKey,
    /// Its Scheduled event.
    pub scheduled_event_id: i64,
    /// The attempt.
    pub attempt: i32,
    /// The stamp that it was offered under: another one makes this offer void.
    pub stamp: i32,
    /// Where a task of a sticky queue goes when its worker is gone.
    pub normal_queue: Option<String>,
    /// Its place among those that wait.
    pub precedence: TaskPriority,
    /// The node that has offered it; none = a partition of this one has.
    pub offered_by: Option<Arc<str>>,
    /// The term that it was offered in: the offset behind its owner's record in the journal of the partition. None: by a node of a
    /// release that does not tell.
    pub term: Option<NonZeroU64>,
}

/// Something that a poll can get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A workflow or activity task; it is handed out through the journal.
    Task(TaskRef),
    /// A question to a run's worker.
    Query {
        /// The partition that owns the run.
        partition: u32,
        /// The run that is asked.
        run: RunKey,
        /// The question.
        query_id: String,
        /// The normal queue, where it waits in a sticky one.
        normal_queue: Option<String>,
        /// As of a task.
        offered_by: Option<Arc<str>>,
    },
}

/// A poll that waits.
pub struct Waiting {
    /// The poll.
    pub poll: Poll,
    /// Where its task goes.
    pub reply: oneshot::Sender<Delivery>,
    pub(crate) serial: u64,
    /// It waits on another node: nothing here is to keep it.
    pub(crate) is_visitor: bool,
}

impl Ready {
    /// The partition that owns the run.
    pub fn partition(&self) -> u32 {
        match self {
            Self::Task(task) => task.partition,
            Self::Query { partition, .. } => *partition,
        }
    }

    /// The normal queue of what waits in a sticky one.
    pub fn normal_queue(&self) -> Option<&str> {
        let (Self::Task(TaskRef { normal_queue, .. }) | Self::Query { normal_queue, .. }) = self;
        normal_queue.as_deref()
    }

    /// The node that has offered it; none = a partition of this one has.
    pub fn offered_by(&self) -> Option<&Arc<str>> {
        let (Self::Task(TaskRef { offered_by, .. }) | Self::Query { offered_by, .. }) = self;
        offered_by.as_ref()
    }

    /// The term that it was offered in. A question has none: its owner alone knows it.
    pub(crate) fn term(&self) -> Option<NonZeroU64> {
        match self {
            Self::Task(task) => task.term,
            Self::Query { .. } => None,
        }
    }

    /// Of the same thing, true where the other one comes from the same owner or a later one. What an earlier one has offered may be
    /// late, and is not to be had of it any more.
    pub(crate) fn yields_to(&self, other: &Self) -> bool {
        self.term().zip(other.term()).is_none_or(|(own, other)| other >= own)
    }

    /// Of the same thing, true where the other one is no later owner's.
    pub(crate) fn is_as_late_as(&self, other: Option<NonZeroU64>) -> bool {
        self.term().zip(other).is_none_or(|(own, other)| own <= other)
    }

    pub(crate) fn leave_sticky_queue(&mut self) -> Option<String> {
        let (Self::Task(TaskRef { normal_queue, .. }) | Self::Query { normal_queue, .. }) = self;
        normal_queue.take()
    }
}

impl Waiting {
    /// A poll that waits on another node, brought here for something of a partition of this one: where that is gone, it
    /// is told so and waits on there.
    pub fn visitor(poll: Poll, reply: oneshot::Sender<Delivery>) -> Self {
        Self { poll, reply, serial: 0, is_visitor: true }
    }
}

impl QueueKey {
    /// The queue that a poll waits at.
    pub fn of(poll: &Poll) -> Self {
        Self { namespace_id: poll.namespace_id.clone(), name: poll.queue.clone(), kind: poll.kind }
    }
}

/// Something ready on its way to the home of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The queue that it waits in.
    pub queue: QueueKey,
    /// What it is.
    pub ready: Ready,
}
