//! A harness: the partition of `order-1` on the embedded log, driven by the test's own thread.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll as Turn, Waker};
use std::time::Duration;

use bytes::Bytes;
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::rejection::Rejection;
use everlog_avro::{PublicTopic, Writer};
use everlog_engine::command::{self, Command};
use everlog_engine::machine::{signal, start, workflow_task, workflow_task_completed};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Reply, Settings, level};
use everlog_log::{Log, Topic};
use everlog_partition::{
    Address, Admission, Config, Delivery, Dispatcher, InboxMessage, NameResolver, Partition, Poll, Router,
    Stats, TaskKind, WorkflowTask,
};
use everlog_patience as patience;
use everlog_rocks::log::{Embedded, Options};
use everlog_rocks::rows::SharedRows;
use everlog_store::Store;
use everlog_wire::public_command::{Header, Original, PublicCommand, ReplyTo, SourcePosition};
use everlog_wire::{Body, Record};
use tokio::sync::oneshot;

pub const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
pub const BEGIN_MS: i64 = 1_700_000_000_000;
pub const PARTITIONS: u32 = 2;

/// What the world is told; a namespace that is put into it was deleted.
#[derive(Clone, Default)]
pub struct Names(pub Arc<Mutex<Vec<String>>>);

impl NameResolver for Names {
    fn namespace(&self, id: &str) -> Option<Arc<str>> {
        (id == NAMESPACE).then(|| "default".into())
    }

    fn schema_id(&self, noun: PublicTopic) -> u32 {
        noun as u32 + 1
    }

    fn deleted_namespaces(&self) -> Arc<[String]> {
        self.0.lock().expect("nobody panics").as_slice().into()
    }
}

/// The partition that owns a Workflow Id.
pub fn owner(workflow_id: &str) -> u32 {
    Address::of(&input(workflow_id, begin())).partition(PARTITIONS)
}

/// The partition of `order-1`, driven by the test's own thread; its clock is the test's.
pub struct Harness {
    pub stand: Option<Stand>,
    pub stats: Arc<Stats>,
    pub names: Names,
    pub now_ms: Arc<AtomicI64>,
    pub dir: tempfile::TempDir,
}

pub struct Stand {
    pub log: Arc<Embedded>,
    pub partition: Partition<Embedded, SharedRows>,
    pub inbox: mpsc::Receiver<(u32, InboxMessage)>,
    pub router: Router,
}

pub fn config(names: &Names) -> Config {
    Config {
        node: "test".into(),
        public: Arc::new(names.clone()),
        ending_counts: Arc::new(everlog_partition::Uncounted),
        command_observer: None,
        instance: Bytes::from_static(b"instance"),
        levels: Arc::new(level::LATEST),
        settings: Settings::standard(),
        commit_interval_ms: 100,
        overlay_bytes_max: 64 << 20,
        room: everlog_partition::UncommittedBudget::new(0),
        cached_runs_max: 10,
        appends_max: 2,
        append_records_max: 1_000,
        wakes_max: 2,
        buffered_queries_max: 10,
        journal_keep_records: 10,
    }
}

impl Harness {
    pub fn build() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let now_ms = Arc::new(AtomicI64::new(BEGIN_MS));
        let mut harness = Self { stand: None, stats: Arc::default(), names: Names::default(), now_ms, dir };
        harness.crash();
        harness
    }

    pub fn log(&self) -> Arc<Embedded> {
        let clock = self.now_ms.clone();
        let mut options = Options::new(self.dir.path());
        options.partitions = PARTITIONS;
        options.clock = Arc::new(move || clock.load(Ordering::Relaxed));
        Arc::new(Embedded::open(options).expect("the log opens"))
    }

    /// The harness falls, and a new one stands on its ground.
    pub fn crash(&mut self) {
        self.stand = None;
        let log = self.log();
        let (sender, inbox) = mpsc::channel();
        let sender = Mutex::new(sender);
        let send: everlog_partition::PartitionSender = Arc::new(move |id, event| {
            sender.lock().map(|sender| sender.send((id, event)).is_ok()).unwrap_or(false)
        });
        let clock = self.now_ms.clone();
        let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
        let admission = Arc::new(Admission::new(PARTITIONS, 1_000, 1_000));
        let router = Router::new(PARTITIONS, send.clone(), dispatcher.clone(), admission);
        let store = Store::new(SharedRows::new(log.database()).expect("the rows are there"));
        let (config, stats) = (config(&self.names), self.stats.clone());
        let partition =
            Partition::recover(owner("order-1"), log.clone(), store, dispatcher, send, config, stats);
        let partition = partition.expect("the partition recovers");
        self.stand = Some(Stand { log, partition, inbox, router });
        self.until(|harness| harness.stand().partition.is_serving());
    }

    pub fn stand(&mut self) -> &mut Stand {
        self.stand.as_mut().expect("the harness stands")
    }

    pub fn turn(&mut self) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let Stand { partition, inbox, .. } = self.stand();
        partition.turn(now_ms).expect("the partition goes on");
        if let Ok((_, event)) = inbox.recv_timeout(Duration::from_millis(2)) {
            partition.handle(event, now_ms).expect("the partition goes on");
        }
    }

    /// Brings events until something holds; what holds may bring time.
    pub fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = patience::deadline();
        while !holds(self) {
            assert!(!deadline.is_over(), "it did not come to pass");
            self.turn();
        }
    }

    pub fn call<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let mut answer = None;
        self.until(|_| {
            if let Turn::Ready(ready) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                answer = Some(ready);
            }
            answer.is_some()
        });
        answer.expect("it was answered")
    }

    pub fn advance(&mut self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Everything is applied and committed. Time passes once, so that no more comes due because the log is slow.
    pub fn settle(&mut self) {
        self.advance(1_000);
        let mut seen = self.commits();
        self.until(|harness| {
            let (is_idle, commits) = (harness.stand().partition.is_idle(), harness.commits());
            if !is_idle && commits > seen {
                // What was applied meanwhile waits for no interval.
                seen = commits;
                harness.stand().partition.commit_soon();
            }
            is_idle
        });
    }

    fn commits(&self) -> u64 {
        self.stats.commits.load(Ordering::Relaxed)
    }

    pub fn bring(&mut self, bodies: Vec<Body>) {
        let (done, heard) = oneshot::channel();
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let event = InboxMessage::Ingest { bodies, done };
        self.stand().partition.handle(event, now_ms).expect("the partition goes on");
        assert_eq!(self.call(heard), Ok(Ok(())));
    }

    /// Appends to the journal while nobody owns it, as the ingress does where the journal has many writers.
    pub fn bring_behind_its_back(&mut self, bodies: Vec<Body>) {
        self.stand = None;
        let log = self.log();
        let (sender, receiver) = mpsc::channel();
        let records = bodies.into_iter().map(|body| Record::new(0, body).encode()).collect();
        let done = Box::new(move |result| sender.send(result).expect("the test waits"));
        log.append(owner("order-1"), records, done);
        receiver.recv_timeout(patience::most()).expect("the log answers").expect("it is durable");
        drop(log);
        self.crash();
    }

    pub fn poll(&mut self, kind: TaskKind) -> Delivery {
        let router = self.stand().router.clone();
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: "orders".into(),
            kind,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
            version: None,
        };
        self.call(async move { router.poll(poll).await }).expect("a task comes")
    }

    pub fn workflow_task(&mut self) -> Box<WorkflowTask> {
        let Delivery::Workflow(mut task) = self.poll(TaskKind::Workflow) else {
            panic!("a workflow task comes")
        };
        task.receipt.take().expect("it can be given back").accept();
        task
    }

    pub fn complete(&mut self, task: &WorkflowTask, orders: Vec<command::CommandAttributes>) {
        self.complete_with(task, orders, |_complete| {});
    }

    pub fn complete_with(
        &mut self,
        task: &WorkflowTask,
        orders: Vec<command::CommandAttributes>,
        change: impl FnOnce(&mut workflow_task_completed::Complete),
    ) {
        let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
        let commands = orders.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let commands = commands.collect();
        let mut complete = workflow_task_completed::Complete {
            token,
            commands,
            ..workflow_task_completed::Complete::default()
        };
        change(&mut complete);
        let reply = self.order(Request::CompleteTask(Box::new(complete)));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }

    /// A worker could not do the task.
    pub fn fail(&mut self, task: &WorkflowTask) {
        let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
        assert_eq!(
            self.order(Request::FailTask(workflow_task::Fail { token, ..workflow_task::Fail::default() })),
            Reply::Done
        );
    }

    fn order(&mut self, order: Request) -> Reply {
        let router = self.stand().router.clone();
        self.call(async move { router.order(input("order-1", order)).await }).expect("it is taken")
    }

    pub fn entries(&mut self, topic: Topic) -> Vec<(Bytes, Bytes)> {
        let entries =
            self.stand().log.topic_read(topic, owner("order-1"), 0, 1 << 20).expect("it can be read");
        entries.into_iter().map(|(_, key, value)| (key, value)).collect()
    }

    pub fn events(&mut self) -> Vec<WorkflowEvent<'static>> {
        let writer = Writer::own(PublicTopic::Event);
        let read = |(key, value): (Bytes, Bytes)| {
            let event = WorkflowEvent::read(&writer, &value).expect("an event");
            assert_eq!(value[..5], [0, 0, 0, 0, 1], "the schema's id stands in front");
            assert_eq!(key, event.workflow_id.as_bytes());
            assert_eq!(event.namespace, "default");
            event
        };
        self.entries(Topic::Events).into_iter().map(read).collect()
    }

    pub fn count(&mut self, r#type: &str) -> usize {
        self.events().iter().filter(|event| event.r#type == r#type).count()
    }

    pub fn outcomes(&mut self) -> Vec<Outcome> {
        let writer = Writer::own(PublicTopic::Outcome);
        let entries = self.entries(Topic::Replies).into_iter();
        entries.map(|(_, value)| Outcome::read(&writer, &value).expect("an outcome")).collect()
    }

    pub fn rejections(&mut self) -> Vec<Rejection<'static>> {
        let writer = Writer::own(PublicTopic::Rejection);
        let entries = self.entries(Topic::Rejections).into_iter();
        entries.map(|(_, value)| Rejection::read(&writer, &value).expect("a rejection")).collect()
    }
}

pub fn input(workflow_id: &str, order: Request) -> RequestRecord {
    let (namespace_id, workflow_id) = (NAMESPACE.into(), workflow_id.into());
    RequestRecord { namespace_id, workflow_id, request: Some(order), ..RequestRecord::default() }
}

pub fn source(offset: u64) -> SourcePosition {
    let incarnation = Bytes::from_static(&[7; 16]);
    SourcePosition { incarnation, partition: 3, offset, topic: "everlog.commands".into(), follows: 0 }
}

pub fn original() -> Original {
    let headers = vec![Header { key: "command-id".into(), value: Some(Bytes::from_static(b"c-1")) }];
    let (key, value) = (Some(Bytes::from_static(b"order-1")), Some(Bytes::from_static(b"{}")));
    Original { key, value, value_bytes: 2, headers }
}

pub fn reply_to() -> Option<ReplyTo> {
    Some(ReplyTo { topic: "everlog.replies".into(), correlation_id: None })
}

pub fn forwarded(offset: u64, order: Request) -> PublicCommand {
    PublicCommand {
        source: Some(source(offset)),
        input: Some(input("order-1", order)),
        namespace: "default".into(),
        command_id: Some("c-1".into()),
        reply_to: reply_to(),
        original: Some(original()),
        ..PublicCommand::default()
    }
}

pub fn begin() -> Request {
    Request::Start(Box::new(start::Begin {
        request_id: "request".into(),
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        retention_ms: 86_400_000,
        ..start::Begin::default()
    }))
}

pub fn a_signal() -> Request {
    Request::Signal(signal::Signal { name: "changed".into(), ..signal::Signal::default() })
}
