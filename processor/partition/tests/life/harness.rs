//! A harness: one partition on the embedded log, driven by the test's own thread.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::{start, timer, workflow_task, workflow_task_completed};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Reply, Run, Settings, level};
use everlog_partition::{
    Address, Admission, CallResult, Config, Delivery, Dispatcher, InboxMessage, Partition, Poll, Reading,
    Router, RunKey, TaskKind, Unnamed, Want,
};
use everlog_patience as patience;
use everlog_rocks::log::{Embedded, Options};
use everlog_rocks::rows::SharedRows;
use everlog_store::Store;
use prost::Message;

pub const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";

/// One partition, driven by the test's own thread; its clock is the test's.
pub struct Harness {
    pub partition: Option<Partition<Embedded, SharedRows>>,
    pub log: Option<Arc<Embedded>>,
    pub inbox: mpsc::Receiver<(u32, InboxMessage)>,
    pub router: Router,
    pub now_ms: Arc<AtomicI64>,
    pub dir: tempfile::TempDir,
    pub config: Config,
}

pub fn config() -> Config {
    Config {
        node: "test".into(),
        public: Arc::new(Unnamed),
        ending_counts: Arc::new(everlog_partition::Uncounted),
        command_observer: None,
        instance: bytes::Bytes::from_static(b"instance"),
        levels: Arc::new(level::LATEST),
        settings: Settings::standard(),
        commit_interval_ms: 100,
        overlay_bytes_max: 64 << 20,
        room: everlog_partition::UncommittedBudget::new(0),
        cached_runs_max: 10,
        appends_max: 2,
        append_records_max: 1_000,
        wakes_max: 100,
        buffered_queries_max: 10,
        journal_keep_records: 10,
    }
}

impl Harness {
    pub fn build() -> Self {
        Self::build_with(config())
    }

    pub fn build_with(config: Config) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let (log, partition, inbox, router) = open(dir.path(), &now_ms, config.clone());
        let mut harness =
            Self { partition: Some(partition), log: Some(log), inbox, router, now_ms, dir, config };
        harness.until(|harness| harness.partition().is_serving());
        harness
    }

    pub fn partition(&mut self) -> &mut Partition<Embedded, SharedRows> {
        self.partition.as_mut().expect("the harness stands")
    }

    /// The harness falls, and a new one stands on its ground.
    pub fn crash(&mut self) {
        self.partition = None;
        self.rise(Vec::new());
    }

    /// A new harness on the ground of one that has fallen; before it serves it hears of something.
    pub fn rise(&mut self, told: Vec<InboxMessage>) {
        self.log = None;
        let (log, partition, inbox, router) = open(self.dir.path(), &self.now_ms, self.config.clone());
        (self.log, self.partition, self.inbox, self.router) = (Some(log), Some(partition), inbox, router);
        assert!(!self.partition().is_serving());
        for event in told {
            let now_ms = self.now_ms.load(Ordering::Relaxed);
            self.partition().handle(event, now_ms).expect("the partition goes on");
        }
        self.until(|harness| harness.partition().is_serving());
    }

    /// Brings events until something holds.
    pub fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = patience::deadline();
        while !holds(self) {
            assert!(!deadline.is_over(), "it did not come to pass");
            self.turn();
        }
    }

    pub fn turn(&mut self) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        self.partition().turn(now_ms).expect("the partition goes on");
        if let Ok((_, event)) = self.inbox.recv_timeout(Duration::from_millis(5)) {
            self.partition().handle(event, now_ms).expect("the partition goes on");
        }
    }

    pub fn advance(&mut self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Runs a call of the router while the harness is driven.
    pub fn call<T>(&mut self, call: impl Future<Output = T> + Unpin) -> T {
        let mut call = call;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let deadline = patience::deadline();
        loop {
            if let std::task::Poll::Ready(answer) = std::pin::Pin::new(&mut call).poll(&mut context) {
                return answer;
            }
            assert!(!deadline.is_over(), "there was no answer");
            self.turn();
        }
    }

    pub fn order(&mut self, order: Request) -> Reply {
        self.try_order(order).expect("it is answered")
    }

    pub fn try_order(&mut self, order: Request) -> CallResult<Reply> {
        let router = self.router.clone();
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: "order-1".into(),
            run_id: String::new(),
            sender: None,
            request: Some(order),
        };
        self.call(Box::pin(async move { router.order(input).await }))
    }

    pub fn poll(&mut self, kind: TaskKind) -> Delivery {
        let router = self.router.clone();
        let poll = polls(kind);
        self.call(Box::pin(async move { router.poll(poll).await })).expect("a task comes")
    }

    /// Polls have got nothing, as whoever has brought them says.
    pub fn lost(&mut self, poll_ids: &[&str], run: Option<RunKey>) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let poll_ids = poll_ids.iter().map(|poll_id| (*poll_id).to_owned()).collect();
        self.partition()
            .handle(InboxMessage::PollsLost { poll_ids, run }, now_ms)
            .expect("the partition goes on");
        self.turn();
    }

    pub fn read(&mut self) -> Reading {
        let router = self.router.clone();
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
        let want = Want::History { from_event_id: 1, batches_max: 0 };
        let reading = self.call(Box::pin(async move { router.read(address, want).await }));
        reading.expect("it is answered").expect("the run is known")
    }

    pub fn names(&mut self) -> Vec<&'static str> {
        let history = History::decode(self.read().page.history).expect("a history");
        history
            .events
            .iter()
            .filter_map(|event| event.attributes.as_ref())
            .map(|facts| facts.name())
            .collect()
    }

    pub fn start(&mut self) -> String {
        self.start_with(|_begin| {})
    }

    /// The id of the run that the start is answered with.
    pub fn start_with(&mut self, change: impl FnOnce(&mut start::Begin)) -> String {
        let mut begin = start::Begin {
            request_id: "request".into(),
            workflow_type: "Order".into(),
            task_queue: "orders".into(),
            input: Some(Bytes::from_static(b"input")),
            retention_ms: 60_000,
            ..start::Begin::default()
        };
        change(&mut begin);
        match self.order(Request::Start(Box::new(begin))) {
            Reply::Started(started) => started.run_id,
            other => panic!("{other:?} is no start"),
        }
    }

    /// The Started event of the current run.
    pub fn started(&mut self) -> start::Started {
        let history = History::decode(self.read().page.history).expect("a history");
        match history.events.into_iter().next().and_then(|event| event.attributes) {
            Some(Attributes::WorkflowStarted(started)) => *started,
            other => panic!("{other:?} starts nothing"),
        }
    }

    /// The worker keeps the run in its cache, and has a queue of its own for it; it waits for an hour.
    pub fn complete_sticky(&mut self, run: &Run, queue: &str, schedule_to_start_ms: i64) {
        let hour = everlog_engine::time::Duration::from_ms(3_600_000);
        let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
        let sticky = workflow_task::Sticky { queue: queue.into(), schedule_to_start_ms };
        self.complete_with(run, vec![command::CommandAttributes::StartTimer(order)], Some(sticky));
    }

    pub fn complete(&mut self, run: &Run, orders: Vec<command::CommandAttributes>) {
        self.complete_with(run, orders, None);
    }

    fn complete_with(
        &mut self,
        run: &Run,
        orders: Vec<command::CommandAttributes>,
        sticky: Option<workflow_task::Sticky>,
    ) {
        let token = run.head.task.as_ref().map(workflow_task::Task::token);
        let commands = orders.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let commands = commands.collect();
        let reply = self.order(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token,
            commands,
            sticky,
            ..workflow_task_completed::Complete::default()
        })));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }
}

/// A poll of the queue that all runs have here.
pub fn polls(kind: TaskKind) -> Poll {
    Poll {
        namespace_id: NAMESPACE.into(),
        queue: "orders".into(),
        kind,
        sticky: false,
        normal_queue: None,
        identity: "worker".into(),
        poll_id: "poll".into(),
        rate_per_second: None,
        version: None,
    }
}

type Opened = (Arc<Embedded>, Partition<Embedded, SharedRows>, mpsc::Receiver<(u32, InboxMessage)>, Router);

fn open(dir: &std::path::Path, now_ms: &Arc<AtomicI64>, config: Config) -> Opened {
    let clock = now_ms.clone();
    let mut options = Options::new(dir);
    options.partitions = 1;
    options.clock = Arc::new(move || clock.load(Ordering::Relaxed));
    let log = Arc::new(Embedded::open(options).expect("the log opens"));
    let (sender, inbox) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let send: everlog_partition::PartitionSender = Arc::new(move |id, event| {
        sender.lock().map(|sender| sender.send((id, event)).is_ok()).unwrap_or(false)
    });
    let clock = now_ms.clone();
    let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
    let router = Router::new(1, send.clone(), dispatcher.clone(), Arc::new(Admission::new(1, 1_000, 1_000)));
    let store = Store::new(SharedRows::new(log.database()).expect("the rows are there"));
    let partition = Partition::recover(0, log.clone(), store, dispatcher, send, config, Arc::default())
        .expect("the partition recovers");
    (log, partition, inbox, router)
}

pub fn workflow(delivery: Delivery) -> Box<everlog_partition::WorkflowTask> {
    match delivery {
        Delivery::Workflow(mut task) => {
            task.receipt.take().expect("it can be given back").accept();
            task
        }
        other => panic!("not a workflow task: {other:?}"),
    }
}
