//! Two partitions on one log: what a run sends to another is taken once and in order, whatever becomes of the letters and
//! of the harness.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use everlog_engine::api_types::Execution;
use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::{external_workflow, start, workflow_task, workflow_task_completed};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Reply, Run, Settings, level};
use everlog_partition::{
    Address, Admission, Config, Delivery, Dispatcher, InboxMessage, Partition, Poll, Router, TaskKind,
    Unnamed, Want,
};
use everlog_patience as patience;
use everlog_rocks::log::{Embedded, Options};
use everlog_rocks::rows::SharedRows;
use everlog_store::Store;
use prost::Message;

const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
const PARTITIONS: u32 = 2;
/// Signals that one task sends.
const SIGNALS: usize = 40;

type Post = mpsc::Receiver<(u32, InboxMessage)>;

/// What becomes of letters and their receipts: `(dropped, doubled)` of a hundred.
#[derive(Clone, Copy)]
struct Weather(u64, u64);

struct Harness {
    partitions: Vec<Partition<Embedded, SharedRows>>,
    inbox: Post,
    router: Router,
    now_ms: Arc<AtomicI64>,
    dir: tempfile::TempDir,
    weather: Weather,
    dice: u64,
}

fn config() -> Config {
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

fn open(
    dir: &std::path::Path,
    now_ms: &Arc<AtomicI64>,
) -> (Vec<Partition<Embedded, SharedRows>>, Post, Router) {
    let clock = now_ms.clone();
    let mut options = Options::new(dir);
    options.partitions = PARTITIONS;
    options.clock = Arc::new(move || clock.load(Ordering::Relaxed));
    let log = Arc::new(Embedded::open(options).expect("the log opens"));
    let (sender, inbox) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let send: everlog_partition::PartitionSender = Arc::new(move |id, event| {
        sender.lock().map(|sender| sender.send((id, event)).is_ok()).unwrap_or(false)
    });
    let clock = now_ms.clone();
    let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
    let admission = Arc::new(Admission::new(PARTITIONS, 1_000, 1_000));
    let router = Router::new(PARTITIONS, send.clone(), dispatcher.clone(), admission);
    let partitions = (0..PARTITIONS).map(|id| {
        let store = Store::new(SharedRows::new(log.database()).expect("the rows are there"));
        let (dispatcher, send) = (dispatcher.clone(), send.clone());
        Partition::recover(id, log.clone(), store, dispatcher, send, config(), Arc::default())
            .expect("the partition recovers")
    });
    (partitions.collect(), inbox, router)
}

impl Harness {
    fn build(weather: Weather) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let (partitions, inbox, router) = open(dir.path(), &now_ms);
        let mut harness =
            Self { partitions, inbox, router, now_ms, dir, weather, dice: 88_172_645_463_325_252 };
        harness.until(Harness::serves);
        harness
    }

    fn serves(&mut self) -> bool {
        self.partitions.iter().all(Partition::is_serving)
    }

    fn crash(&mut self) {
        self.partitions.clear();
        let (partitions, inbox, router) = open(self.dir.path(), &self.now_ms);
        (self.partitions, self.inbox, self.router) = (partitions, inbox, router);
        self.until(Harness::serves);
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % 100 < chance
    }

    /// Brings events and time until something holds. Nowhere else does time pass: no task is late because the log is slow.
    fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = patience::deadline();
        while !holds(self) {
            assert!(!deadline.is_over(), "it did not come to pass");
            self.now_ms.fetch_add(20, Ordering::Relaxed);
            self.turn();
        }
    }

    fn turn(&mut self) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        for partition in &mut self.partitions {
            partition.turn(now_ms).expect("the partition goes on");
        }
        while let Ok((id, event)) = self.inbox.recv_timeout(Duration::from_millis(2)) {
            for event in self.suffered(event) {
                self.partitions[id as usize].handle(event, now_ms).expect("the partition goes on");
            }
        }
    }

    /// What is left of an event on its way through the weather.
    fn suffered(&mut self, event: InboxMessage) -> Vec<InboxMessage> {
        let Weather(dropped, doubled) = self.weather;
        let again = match &event {
            InboxMessage::Messages { from, messages: letters } => {
                InboxMessage::Messages { from: *from, messages: letters.clone() }
            }
            InboxMessage::MessagesTaken { by, number } => {
                InboxMessage::MessagesTaken { by: *by, number: *number }
            }
            _other => return vec![event],
        };
        match (self.percent(dropped), self.percent(doubled)) {
            (true, _) => Vec::new(),
            (false, true) => vec![event, again],
            (false, false) => vec![event],
        }
    }

    fn call<T>(&mut self, call: impl Future<Output = T> + Unpin) -> T {
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

    fn order(&mut self, workflow_id: &str, order: Request) -> Reply {
        let router = self.router.clone();
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: workflow_id.into(),
            request: Some(order),
            ..RequestRecord::default()
        };
        self.call(Box::pin(async move { router.order(input).await })).expect("it is answered")
    }

    fn start(&mut self, workflow_id: &str) {
        let reply = self.order(
            workflow_id,
            Request::Start(Box::new(start::Begin {
                request_id: workflow_id.into(),
                workflow_type: "Order".into(),
                task_queue: workflow_id.into(),
                retention_ms: 60_000_000,
                task_timeout_ms: 60_000,
                ..start::Begin::default()
            })),
        );
        assert!(matches!(reply, Reply::Started(_)), "{reply:?}");
    }

    /// A worker takes the workflow's task and answers it.
    fn work(&mut self, workflow_id: &str, commands: Vec<command::CommandAttributes>) {
        let router = self.router.clone();
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: workflow_id.into(),
            kind: TaskKind::Workflow,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
            version: None,
        };
        let delivery = self.call(Box::pin(async move { router.poll(poll).await })).expect("a task comes");
        let Delivery::Workflow(mut task) = delivery else { panic!("not a workflow task") };
        task.receipt.take().expect("it can be given back").accept();
        let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
        let commands = commands.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let commands = commands.collect();
        let complete = workflow_task_completed::Complete {
            token,
            commands,
            ..workflow_task_completed::Complete::default()
        };
        let reply = self.order(workflow_id, Request::CompleteTask(Box::new(complete)));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }

    fn read(&mut self, workflow_id: &str) -> (Arc<Run>, Vec<Attributes>) {
        let router = self.router.clone();
        let address = Address {
            namespace_id: NAMESPACE.into(),
            workflow_id: workflow_id.into(),
            run_id: String::new(),
        };
        let want = Want::History { from_event_id: 1, batches_max: 0 };
        let reading = self.call(Box::pin(async move { router.read(address, want).await }));
        let reading = reading.expect("it is answered").expect("the run is known");
        let history = History::decode(reading.page.history).expect("a history");
        (reading.run, history.events.into_iter().filter_map(|event| event.attributes).collect())
    }

    /// The signals that the receiver has taken, by name.
    fn heard(&mut self, workflow_id: &str) -> Vec<String> {
        let signals = self.read(workflow_id).1.into_iter().filter_map(|what| match what {
            Attributes::WorkflowSignaled(signaled) => Some(signaled.signal_name),
            _other => None,
        });
        signals.collect()
    }
}

/// A Workflow Id that the partition owns.
fn id_of(partition: u32) -> String {
    let place = |id: &String| {
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: id.clone(), run_id: String::new() };
        address.partition(PARTITIONS)
    };
    (0..).map(|number| format!("order-{number}")).find(|id| place(id) == partition).expect("there is one")
}

fn signals(to: &str) -> Vec<command::CommandAttributes> {
    let signal = |number: usize| {
        command::CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
            execution: Some(Execution { workflow_id: to.into(), run_id: String::new() }),
            signal_name: number.to_string(),
            ..external_workflow::SignalOther::default()
        }))
    };
    (0..SIGNALS).map(signal).collect()
}

fn expected() -> Vec<String> {
    (0..SIGNALS).map(|number| number.to_string()).collect()
}

fn everything_arrives_once(weather: Weather, falls: &[bool]) {
    let (sender, receiver) = (id_of(0), id_of(1));
    let mut harness = Harness::build(weather);
    harness.start(&receiver);
    harness.start(&sender);
    harness.work(&sender, signals(&receiver));
    for in_the_middle in falls {
        if *in_the_middle {
            // As soon as something has arrived, and before all of it has.
            harness.until(|harness| !harness.heard(&receiver).is_empty());
        }
        harness.crash();
    }
    harness.until(|harness| harness.read(&sender).0.externals.is_empty());
    assert_eq!(harness.heard(&receiver), expected(), "each once, in order");
    let answers =
        harness.read(&sender).1.iter().filter(|what| matches!(what, Attributes::ExternalSignaled(_))).count();
    assert_eq!(answers, SIGNALS, "the sender hears of each once");
}

#[test]
fn letters_arrive_once_and_in_order() {
    everything_arrives_once(Weather(0, 0), &[]);
}

#[test]
fn letters_that_are_lost_or_doubled_arrive_once_and_in_order() {
    everything_arrives_once(Weather(40, 40), &[]);
}

#[test]
fn letters_outlive_the_house() {
    everything_arrives_once(Weather(0, 0), &[false]);
    everything_arrives_once(Weather(30, 30), &[false, true, true]);
}

#[test]
fn a_letter_that_nobody_takes_goes_along_with_the_commit() {
    let (sender, receiver) = (id_of(0), id_of(1));
    let mut harness = Harness::build(Weather(100, 0));
    harness.start(&receiver);
    harness.start(&sender);
    harness.work(&sender, signals(&receiver));
    // All is committed, so that no journal is read again behind the position.
    harness.until(|harness| harness.partitions.iter().all(Partition::is_idle));
    harness.crash();
    assert_eq!(harness.heard(&receiver), Vec::<String>::new(), "none has come through");
    harness.weather = Weather(0, 0);
    harness.until(|harness| harness.read(&sender).0.externals.is_empty());
    assert_eq!(harness.heard(&receiver), expected());
}

#[test]
fn letters_to_a_workflow_of_the_same_partition_arrive_as_well() {
    let id = id_of(0);
    let mut harness = Harness::build(Weather(0, 0));
    harness.start(&id);
    // To itself: each is answered, and none is taken.
    harness.work(&id, signals(&id));
    harness.crash();
    harness.until(|harness| harness.read(&id).0.externals.is_empty());
    assert_eq!(harness.heard(&id), Vec::<String>::new());
    let failures = harness.read(&id).1;
    let failures = failures.iter().filter(|what| matches!(what, Attributes::SignalExternalFailed(_))).count();
    assert_eq!(failures, SIGNALS);
}
