//! The router: how a gateway reaches the partitions of a node, whatever thread they live on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use everlog_engine::input::{Input, Order};
use everlog_engine::{Reply, TaskGrant};
use tokio::sync::oneshot;

use crate::address::Address;
use crate::delivery::{
    Completion, Delivery, Poll, QueryAnswer, QueryOutcome, QueryRequest, Reading, Want, WorkflowTask,
};
use crate::dispatch::{Dispatcher, PollTicket, QueueStatus};
use crate::partition::Event;

/// Sends an event to the thread that owns a partition; false where it is gone.
pub type Send = Arc<dyn Fn(u32, Event) -> bool + std::marker::Send + Sync>;

/// Why a call got no answer from a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Too much is waiting already; later it may go through.
    #[error("the partition has too many requests waiting")]
    Busy,
    /// The partition is stopping or gone. What was asked may or may not have happened.
    #[error("the partition is not available")]
    Unavailable,
    /// The disk has no room; nothing was taken.
    #[error("the log has no space left")]
    Full,
    /// The record could not be applied; it was skipped.
    #[error("internal error")]
    Internal,
}

/// What an order came to.
pub type Answer<T> = Result<T, Failure>;

/// Reaches every partition. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    partitions: u32,
    send: Send,
    dispatcher: Arc<Dispatcher>,
    admission: Arc<Admission>,
}

/// How many requests wait, per partition, against two limits: completions and cancellations are let in when starts
/// and signals no longer are.
pub struct Admission {
    waiting: Vec<AtomicUsize>,
    ordinary_max: usize,
    urgent_max: usize,
}

impl Admission {
    /// Limits per partition: ordinary orders up to `ordinary_max`, urgent ones up to twice as many.
    pub fn new(partitions: u32, ordinary_max: usize) -> Self {
        let waiting = (0..partitions).map(|_| AtomicUsize::new(0)).collect();
        Self { waiting, ordinary_max, urgent_max: ordinary_max.saturating_mul(2) }
    }

    /// Requests that wait for a partition.
    pub fn waiting(&self, partition: u32) -> usize {
        self.waiting[partition as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn enter(self: &Arc<Self>, partition: u32, urgent: bool) -> Answer<Slot> {
        let limit = if urgent { self.urgent_max } else { self.ordinary_max };
        let count = &self.waiting[partition as usize];
        if count.fetch_add(1, Ordering::Relaxed) >= limit {
            count.fetch_sub(1, Ordering::Relaxed);
            return Err(Failure::Busy);
        }
        Ok(Slot { admission: self.clone(), partition })
    }
}

/// A place among the waiting requests; given back when dropped.
pub struct Slot {
    admission: Arc<Admission>,
    partition: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.waiting[self.partition as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

impl Router {
    /// A router over `partitions` partitions that share a dispatcher.
    pub fn new(partitions: u32, send: Send, dispatcher: Arc<Dispatcher>, admission: Arc<Admission>) -> Self {
        Self { partitions, send, dispatcher, admission }
    }

    /// Journals an order and answers when it is durable and applied.
    ///
    /// # Errors
    /// [`Failure`]; after `Unavailable` the order may or may not have been taken.
    pub async fn order(&self, input: Input) -> Answer<Reply> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, is_urgent(&input))?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Order { input, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    /// Starts a run; the second part is the first workflow task where it was asked for with the start.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn start(&self, input: Input) -> Answer<(Reply, Option<WorkflowTask>)> {
        let address = Address::of(&input);
        let reply = self.order(input).await?;
        let grant = match &reply {
            Reply::Started(started) => started.task.as_deref().cloned(),
            _no_task => None,
        };
        let task = match grant {
            Some(grant) => Some(self.furnish(&address, grant).await?),
            None => None,
        };
        Ok((reply, task))
    }

    /// Completes a workflow task; answers to the queries that were attached to it go along.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn complete_task(&self, input: Input, answers: Vec<QueryAnswer>) -> Answer<Completion> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, true)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::CompleteTask { input, answers, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    /// Reads a run as it is applied; none where it is not known.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn read(&self, address: Address, want: Want) -> Answer<Option<Reading>> {
        let partition = address.partition(self.partitions);
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Read { address, want, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    /// Waits until the run has events after `known_event_id`, or is closed, or is not known. Dropping the future
    /// withdraws the wait; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn watch(&self, address: Address, known_event_id: i64) -> Answer<()> {
        let partition = address.partition(self.partitions);
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Watch { address, known_event_id, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)
    }

    /// Asks a run's worker; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn query(&self, request: QueryRequest) -> Answer<QueryOutcome> {
        let partition = request.address.partition(self.partitions);
        let slot = self.admission.enter(partition, false)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Query { request, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    /// The answer of a worker to a direct query; false where nobody waits for it any more.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn answer_query(&self, address: Address, answer: QueryAnswer) -> Answer<bool> {
        let partition = address.partition(self.partitions);
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::QueryAnswered { answer, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)
    }

    /// Waits for a task. Dropping the future withdraws the poll and loses no task; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`]: the node is stopping.
    pub async fn poll(&self, poll: Poll) -> Answer<Delivery> {
        let (sender, receiver) = oneshot::channel();
        let ticket: PollTicket = self.dispatcher.poll(poll, sender, &self.send);
        let delivery = receiver.await.map_err(|_dropped| Failure::Unavailable);
        drop(ticket);
        delivery
    }

    /// Tasks of a worker's private queue go to the normal queue at once; open polls of the queue end empty.
    pub fn retire_sticky_queue(&self, namespace_id: &str, queue: &str) {
        self.dispatcher.retire_sticky_queue(namespace_id, queue);
    }

    /// Who polls a queue and what waits there; `activities` = its activity tasks.
    pub fn queue_status(&self, namespace_id: &str, queue: &str, activities: bool) -> QueueStatus {
        self.dispatcher.status(namespace_id, queue, activities)
    }

    async fn furnish(&self, address: &Address, grant: TaskGrant) -> Answer<WorkflowTask> {
        let address = Address { run_id: grant.run.start.run_id.clone(), ..address.clone() };
        let partition = address.partition(self.partitions);
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Furnish { grant, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    fn post(&self, partition: u32, event: Event) -> Answer<()> {
        if (self.send)(partition, event) { Ok(()) } else { Err(Failure::Unavailable) }
    }
}

/// What ends work, or stops it, goes first when a partition is overloaded.
fn is_urgent(input: &Input) -> bool {
    match &input.order {
        None | Some(Order::Start(_) | Order::Signal(_) | Order::HeartbeatActivity(_)) => false,
        Some(
            Order::Cancel(_)
            | Order::Terminate(_)
            | Order::ClaimTask(_)
            | Order::CompleteTask(_)
            | Order::FailTask(_)
            | Order::ReleaseTask(_)
            | Order::ClaimActivity(_)
            | Order::CompleteActivity(_)
            | Order::FailActivity(_)
            | Order::CancelActivity(_)
            | Order::ReleaseActivity(_)
            | Order::Wake(_)
            | Order::ResetSticky(_),
        ) => true,
    }
}
