//! The router: how a gateway reaches the partitions of a node, whatever thread they live on.

use std::sync::Arc;

use everlog_engine::machine::update::UpdateStanding;
use everlog_engine::request::RequestRecord;
use everlog_engine::{Reply, RequestClass, TaskGrant};
use tokio::sync::{mpsc, oneshot};

use crate::TaskKind;
use crate::matching::dispatcher::{Dispatcher, PollTicket, QueueStatus};
use crate::model::admission::{Admission, AdmissionClass, CallFailure, CallResult};
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::keys::Address;
use crate::model::task_types::QueueKey;
use crate::model::types::{
    Completion, Delivery, Poll, QueryAnswer, QueryOutcome, QueryRequest, Reading, UpdateNews, Want,
    WorkflowTask,
};
use crate::model::visibility_messages::{VisibilityAnswer, VisibilityRead};
use crate::reads::update_waiters::NEWS_MAX;

/// Reaches every partition. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    partitions: u32,
    send: PartitionSender,
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
    pub fn new(
        partitions: u32,
        send: PartitionSender,
        dispatcher: Arc<Dispatcher>,
        admission: Arc<Admission>,
    ) -> Self {
        Self { partitions, send, dispatcher, admission }
    }

    /// A page or a count of a partition's runs.
    ///
    /// # Errors
    /// [`CallFailure`]; it may be asked again.
    pub async fn visibility(&self, partition: u32, read: VisibilityRead) -> CallResult<VisibilityAnswer> {
        let slot = self.admission.enter(partition, AdmissionClass::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::Visibility { read, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    /// Journals an order and answers when it is durable and applied.
    ///
    /// # Errors
    /// [`CallFailure`]; after `Unavailable` the order may or may not have been taken.
    pub async fn order(&self, input: RequestRecord) -> CallResult<Reply> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, class(&input))?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::Request { input, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    /// Starts a run; the second part is the first workflow task where it was asked for with the start.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn start(&self, input: RequestRecord) -> CallResult<(Reply, Option<WorkflowTask>)> {
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
    pub async fn update(&self, input: RequestRecord) -> CallResult<UpdateCall<Reply>> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, class(&input))?;
        let (sender, receiver) = oneshot::channel();
        let (told, news) = mpsc::channel(NEWS_MAX);
        self.post(partition, InboxMessage::Update { input, slot, reply: sender, news: told })?;
        let first = receiver.await.map_err(|_dropped| CallFailure::Unavailable)??;
        Ok(UpdateCall { first, news })
    }

    /// How an update stands; none where the run does not know it, or is not known itself.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn await_update(
        &self,
        address: Address,
        update_id: String,
    ) -> CallResult<UpdateCall<Option<UpdateStanding>>> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Read)?;
        let (sender, receiver) = oneshot::channel();
        let (told, news) = mpsc::channel(NEWS_MAX);
        self.post(
            partition,
            InboxMessage::AwaitUpdate { address, update_id, slot, reply: sender, news: told },
        )?;
        let first = receiver.await.map_err(|_dropped| CallFailure::Unavailable)??;
        Ok(UpdateCall { first, news })
    }

    /// Completes a workflow task; answers to the queries that were attached to it go along.
    ///
    /// # Errors
    /// As [`Router::order`].
    pub async fn complete_task(
        &self,
        input: RequestRecord,
        answers: Vec<QueryAnswer>,
    ) -> CallResult<Completion> {
        let partition = Address::of(&input).partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Urgent)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::CompleteTask { input, answers, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    /// Reads a run as it is applied; none where it is not known.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn read(&self, address: Address, want: Want) -> CallResult<Option<Reading>> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::Read { address, want, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    /// Waits until the run has events after `known_event_id`, or is closed, or is not known; at a schedule, until no start of
    /// its actions is under way. Dropping the future
    /// withdraws the wait; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn watch(&self, address: Address, known_event_id: i64) -> CallResult<()> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::Watch { address, known_event_id, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)
    }

    /// Asks a run's worker; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn query(&self, request: QueryRequest) -> CallResult<QueryOutcome> {
        let partition = request.address.partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Read)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::Query { request, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    /// The answer of a worker to a direct query; false where nobody waits for it any more.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn answer_query(&self, address: Address, answer: QueryAnswer) -> CallResult<bool> {
        let partition = address.partition(self.partitions);
        let slot = self.admission.enter(partition, AdmissionClass::Urgent)?;
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::QueryAnswered { answer, slot, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)
    }

    /// Waits for a task. Dropping the future withdraws the poll and loses no task; the caller brings its own timeout.
    ///
    /// # Errors
    /// [`CallFailure`]: the node is stopping, or polls wait at too many queues.
    pub async fn poll(&self, poll: Poll) -> CallResult<Delivery> {
        let (sender, receiver) = oneshot::channel();
        let ticket: PollTicket = self.dispatcher.poll(poll, sender, &self.send)?;
        let delivery = receiver.await.map_err(|_dropped| CallFailure::Unavailable);
        drop(ticket);
        delivery
    }

    /// The next queue of the server itself where something waits and no poll does. The node is its worker. For one caller at a
    /// time.
    pub async fn unpolled_server_queue(&self) -> QueueKey {
        self.dispatcher.unpolled_server_queue().await
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
        (self.send)(partition, InboxMessage::Nudge);
    }

    /// Who polls a queue, and what waits there or on its way there.
    pub async fn queue_status(&self, namespace_id: &str, queue: &str, kind: TaskKind) -> QueueStatus {
        let key = QueueKey { namespace_id: namespace_id.into(), name: queue.into(), kind };
        self.dispatcher.status_of_all(key).await
    }

    async fn furnish(&self, address: &Address, grant: TaskGrant) -> CallResult<WorkflowTask> {
        let address = Address { run_id: grant.run.start.run_id.clone(), ..address.clone() };
        let partition = address.partition(self.partitions);
        let (sender, receiver) = oneshot::channel();
        self.post(partition, InboxMessage::LoadTask { grant, reply: sender })?;
        receiver.await.map_err(|_dropped| CallFailure::Unavailable)?
    }

    fn post(&self, partition: u32, event: InboxMessage) -> CallResult<()> {
        if (self.send)(partition, event) { Ok(()) } else { Err(CallFailure::Unavailable) }
    }
}

/// A record without a request is refused by the engine, and lets nothing through.
fn class(record: &RequestRecord) -> AdmissionClass {
    match record.request.as_ref().map(|request| request.row().class) {
        Some(RequestClass::Urgent) => AdmissionClass::Urgent,
        Some(RequestClass::Ordinary) | None => AdmissionClass::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll as Turn, Waker};

    use everlog_engine::machine::{cancel, signal};
    use everlog_engine::request::Request;

    use super::*;

    /// A router whose partition never gets to anything: one place for orders, two for reads.
    fn stuck() -> (Router, Arc<Admission>) {
        let inbox = Mutex::new(Vec::new());
        let send: PartitionSender = Arc::new(move |_, event| {
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

    fn order(order: Request) -> RequestRecord {
        RequestRecord { request: Some(order), ..RequestRecord::default() }
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
            is_taken: Arc::default(),
        };
        assert!(matches!(look(router.query(query)), Some(Err(CallFailure::Busy))));
        assert!(matches!(look(router.read(address(), Want::State)), Some(Err(CallFailure::Busy))));
        assert!(matches!(look(router.watch(address(), 0)), Some(Err(CallFailure::Busy))));
        assert_eq!((admission.waiting_orders(0), admission.waiting_reads(0)), (0, 2));
        assert!(look(router.order(order(Request::Signal(signal::Signal::default())))).is_none(), "it waits");
    }

    #[test]
    fn what_ends_work_is_let_in_when_what_adds_to_it_is_not() {
        let (router, admission) = stuck();
        let signal = || order(Request::Signal(signal::Signal::default()));
        assert!(look(router.order(signal())).is_none(), "it waits");
        assert_eq!(look(router.order(signal())), Some(Err(CallFailure::Busy)));
        assert!(look(router.order(order(Request::Cancel(cancel::Request::default())))).is_none(), "it waits");
        assert_eq!(look(router.answer_query(address(), answer())), Some(Err(CallFailure::Busy)));
        assert_eq!(admission.waiting_orders(0), 2);
    }
}
