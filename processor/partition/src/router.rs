//! The router: how a gateway reaches the partitions of a node, whatever thread they live on.

use std::sync::Arc;

use everlog_engine::machine::update::Standing;
use everlog_engine::request::{Input, Order};
use everlog_engine::{Reply, TaskGrant};
use tokio::sync::{mpsc, oneshot};

use crate::matching::dispatcher::{Dispatcher, PollTicket, QueueStatus};
use crate::model::admission::{Admission, Answer, Failure, Lane};
use crate::model::inbox_message::{Event, Send};
use crate::model::keys::Address;
use crate::model::task_types::QueueKey;
use crate::model::types::{
    Completion, Delivery, Poll, QueryAnswer, QueryOutcome, QueryRequest, Reading, UpdateNews, Want,
    WorkflowTask,
};
use crate::reads::update_waiters::NEWS_MAX;

/// Reaches every partition. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    partitions: u32,
    send: Send,
    dispatcher: Arc<Dispatcher>,
    admission: Arc<Admission>,
}

/// The first answer of a call about an update, and what comes of the update later. Nothing more comes where the update is
/// not there or has its outcome; or the partition is gone, and the call may be made again.
#[derive(Debug)]
pub struct UpdateCall<T> {
    /// The answer.
    pub first: T,
    /// What comes later.
    pub news: mpsc::Receiver<UpdateNews>,
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
        let slot = self.admission.enter(partition, lane(&input))?;
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

    /// Brings an update to a run, alone or with a start.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn update(&self, input: Input) -> Answer<UpdateCall<Reply>> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, lane(&input))?;
        let (sender, receiver) = oneshot::channel();
        let (told, news) = mpsc::channel(NEWS_MAX);
        self.post(partition, Event::Update { input, slot, reply: sender, news: told })?;
        let first = receiver.await.map_err(|_dropped| Failure::Unavailable)??;
        Ok(UpdateCall { first, news })
    }

    /// How an update stands; none where the run does not know it, or is not known itself.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn await_update(
        &self,
        address: Address,
        update_id: String,
    ) -> Answer<UpdateCall<Option<Standing>>> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, Lane::Read)?;
        let (sender, receiver) = oneshot::channel();
        let (told, news) = mpsc::channel(NEWS_MAX);
        self.post(partition, Event::AwaitUpdate { address, update_id, slot, reply: sender, news: told })?;
        let first = receiver.await.map_err(|_dropped| Failure::Unavailable)??;
        Ok(UpdateCall { first, news })
    }

    /// Completes a workflow task; answers to the queries that were attached to it go along.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn complete_task(&self, input: Input, answers: Vec<QueryAnswer>) -> Answer<Completion> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, Lane::Urgent)?;
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
        let slot = self.admission.enter(partition, Lane::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Read { address, want, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)?
    }

    /// Waits until the run has events after `known_event_id`, or is closed, or is not known. Dropping the future
    /// withdraws the wait; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn watch(&self, address: Address, known_event_id: i64) -> Answer<()> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, Lane::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::Watch { address, known_event_id, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)
    }

    /// Asks a run's worker; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn query(&self, request: QueryRequest) -> Answer<QueryOutcome> {
        let partition = request.address.partition(self.partitions);
        let slot = self.admission.enter(partition, Lane::Read)?;
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
        let slot = self.admission.enter(partition, Lane::Urgent)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, Event::QueryAnswered { answer, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| Failure::Unavailable)
    }

    /// Waits for a task. Dropping the future withdraws the poll and loses no task; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`Failure`]: the node is stopping, or polls wait at too many queues.
    pub async fn poll(&self, poll: Poll) -> Answer<Delivery> {
        let (sender, receiver) = oneshot::channel();
        let ticket: PollTicket = self.dispatcher.poll(poll, sender, &self.send)?;
        let delivery = receiver.await.map_err(|_dropped| Failure::Unavailable);
        drop(ticket);
        delivery
    }

    /// Tasks of a worker's private queue go to the normal queue at once; open polls of the queue end empty.
    pub fn retire_sticky_queue(&self, namespace_id: &str, queue: &str) {
        self.dispatcher.retire_sticky_queue(namespace_id, queue, &self.send);
    }

    /// The worker of a private queue has gone while a poll of it waited: its tasks go to the normal queue at once, unless another
    /// poll of it waits.
    pub fn abandon_sticky_queue(&self, namespace_id: &str, queue: &str) {
        self.dispatcher.abandon_sticky_queue(namespace_id, queue, &self.send);
    }

    /// Gives the thread that owns a partition an occasion to take a turn.
    pub fn nudge(&self, partition: u32) {
        // One that is gone cannot be nudged, and says so elsewhere.
        (self.send)(partition, Event::Nudge);
    }

    /// Who polls a queue, and what waits there or on its way there; `activities` = its activity tasks.
    pub async fn queue_status(&self, namespace_id: &str, queue: &str, activities: bool) -> QueueStatus {
        let key = QueueKey { namespace_id: namespace_id.into(), name: queue.into(), activities };
        self.dispatcher.status_of_all(key).await
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
fn lane(input: &Input) -> Lane {
    match &input.order {
        None | Some(Order::Start(_) | Order::Signal(_) | Order::Update(_) | Order::HeartbeatActivity(_)) => {
            Lane::Ordinary
        }
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
            | Order::ResetSticky(_)
            | Order::Reset(_)
            | Order::ChildOpened(_)
            | Order::BeginChild(_)
            | Order::ChildClosed(_)
            | Order::ExternalAnswered(_)
            | Order::Delete(_),
        ) => Lane::Urgent,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll as Turn, Waker};

    use everlog_engine::machine::{cancel, signal};

    use super::*;

    /// A router whose partition never gets to anything: one place for orders, two for reads.
    fn stuck() -> (Router, Arc<Admission>) {
        let inbox = Mutex::new(Vec::new());
        let send: Send = Arc::new(move |_, event| {
            inbox.lock().expect("nobody panics").push(event);
            true
        });
        let admission = Arc::new(Admission::new(1, 1, 2));
        (Router::new(1, send, Dispatcher::new(|| 0), admission.clone()), admission)
    }

    fn look<T>(call: impl Future<Output = T>) -> Option<T> {
        match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
            Turn::Ready(answer) => Some(answer),
            Turn::Pending => None,
        }
    }

    fn order(order: Order) -> Input {
        Input { order: Some(order), ..Input::default() }
    }

    fn address() -> Address {
        Address { namespace_id: "n".into(), workflow_id: "w".into(), run_id: String::new() }
    }

    fn answer() -> QueryAnswer {
        let query_id = "1".to_owned();
        QueryAnswer { query_id, succeeded: true, result: None, error_message: String::new(), failure: None }
    }

    #[test]
    fn a_flood_of_reads_is_turned_away_and_keeps_no_order_out() {
        let (router, admission) = stuck();
        assert!(look(router.read(address(), Want::State)).is_none(), "it waits");
        assert!(look(router.watch(address(), 0)).is_none(), "it waits");
        let query = QueryRequest {
            address: address(),
            query: bytes::Bytes::new(),
            only_open: false,
            only_completed_cleanly: false,
            patience_ms: 60_000,
        };
        assert!(matches!(look(router.query(query)), Some(Err(Failure::Busy))));
        assert!(matches!(look(router.read(address(), Want::State)), Some(Err(Failure::Busy))));
        assert!(matches!(look(router.watch(address(), 0)), Some(Err(Failure::Busy))));
        assert_eq!((admission.waiting_orders(0), admission.waiting_reads(0)), (0, 2));
        assert!(look(router.order(order(Order::Signal(signal::Signal::default())))).is_none(), "it waits");
    }

    #[test]
    fn what_ends_work_is_let_in_when_what_adds_to_it_is_not() {
        let (router, admission) = stuck();
        let signal = || order(Order::Signal(signal::Signal::default()));
        assert!(look(router.order(signal())).is_none(), "it waits");
        assert_eq!(look(router.order(signal())), Some(Err(Failure::Busy)));
        assert!(look(router.order(order(Order::Cancel(cancel::Request::default())))).is_none(), "it waits");
        assert_eq!(look(router.answer_query(address(), answer())), Some(Err(Failure::Busy)));
        assert_eq!(admission.waiting_orders(0), 2);
    }
}
