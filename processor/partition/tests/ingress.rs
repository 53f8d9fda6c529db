//! Public commands in the journal, and what the public topics say: everything once, whatever falls in between.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll as Turn, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::command::{self, Command};
use everlog_engine::input::{Input, Order};
use everlog_engine::machine::{attempt, close, completion, signal, start, task};
use everlog_log::embedded::{Embedded, Options};
use everlog_log::{Log, Topic};
use everlog_partition::{
    Address, Admission, Config, Delivery, Dispatcher, Event, Partition, Poll, Public, Router, Stats,
    WorkflowTask,
};
use everlog_store::{SharedRows, Store};
use everlog_wire::ingress::{Forwarded, Header, Original, ReplyTo, Source, Unreadable};
use everlog_wire::public::event::WorkflowEvent;
use everlog_wire::public::outcome::Outcome;
use everlog_wire::public::rejection::Rejection;
use everlog_wire::public::{Noun, Writer};
use everlog_wire::{Body, Record};
use tokio::sync::oneshot;

const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
const BEGIN_MS: i64 = 1_700_000_000_000;
const PARTITIONS: u32 = 2;

struct Names;

impl Public for Names {
    fn namespace(&self, id: &str) -> Option<Arc<str>> {
        (id == NAMESPACE).then(|| "default".into())
    }

    fn schema_id(&self, noun: Noun) -> u32 {
        noun as u32 + 1
    }
}

/// The partition that owns a Workflow Id.
fn owner(workflow_id: &str) -> u32 {
    Address::of(&input(workflow_id, begin())).partition(PARTITIONS)
}

/// The partition of `order-1`, driven by the test's own thread; its clock is the test's.
struct House {
    stand: Option<Stand>,
    stats: Arc<Stats>,
    now_ms: Arc<AtomicI64>,
    dir: tempfile::TempDir,
}

struct Stand {
    log: Arc<Embedded>,
    partition: Partition<Embedded, SharedRows>,
    inbox: mpsc::Receiver<(u32, Event)>,
    router: Router,
}

fn config() -> Config {
    Config {
        node: "test".into(),
        public: Arc::new(Names),
        instance: Bytes::from_static(b"instance"),
        settings: Settings::standard(),
        commit_interval_ms: 100,
        overlay_bytes_max: 64 << 20,
        cached_runs_max: 10,
        appends_max: 2,
        append_records_max: 1_000,
        wakes_max: 2,
        buffered_queries_max: 10,
        journal_keep_records: 10,
    }
}

impl House {
    fn build() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let now_ms = Arc::new(AtomicI64::new(BEGIN_MS));
        let mut house = Self { stand: None, stats: Arc::default(), now_ms, dir };
        house.crash();
        house
    }

    fn log(&self) -> Arc<Embedded> {
        let clock = self.now_ms.clone();
        let mut options = Options::new(self.dir.path());
        options.partitions = PARTITIONS;
        options.clock = Arc::new(move || clock.load(Ordering::Relaxed));
        Arc::new(Embedded::open(options).expect("the log opens"))
    }

    /// The house falls, and a new one stands on its ground.
    fn crash(&mut self) {
        self.stand = None;
        let log = self.log();
        let (sender, inbox) = mpsc::channel();
        let sender = Mutex::new(sender);
        let send: everlog_partition::Send = Arc::new(move |id, event| {
            sender.lock().map(|sender| sender.send((id, event)).is_ok()).unwrap_or(false)
        });
        let clock = self.now_ms.clone();
        let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
        let admission = Arc::new(Admission::new(PARTITIONS, 1_000, 1_000));
        let router = Router::new(PARTITIONS, send.clone(), dispatcher.clone(), admission);
        let store = Store::new(SharedRows::new(log.database()).expect("the rows are there"));
        let (config, stats) = (config(), self.stats.clone());
        let partition =
            Partition::recover(owner("order-1"), log.clone(), store, dispatcher, send, config, stats);
        let partition = partition.expect("the partition recovers");
        self.stand = Some(Stand { log, partition, inbox, router });
        self.until(|house| house.stand().partition.is_serving());
    }

    fn stand(&mut self) -> &mut Stand {
        self.stand.as_mut().expect("the house stands")
    }

    fn turn(&mut self) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let Stand { partition, inbox, .. } = self.stand();
        partition.turn(now_ms).expect("the partition goes on");
        if let Ok((_, event)) = inbox.recv_timeout(Duration::from_millis(2)) {
            partition.handle(event, now_ms).expect("the partition goes on");
        }
    }

    /// Brings events and time until something holds.
    fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < deadline, "it did not come to pass");
            self.turn();
        }
    }

    fn call<T>(&mut self, call: impl Future<Output = T>) -> T {
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

    fn advance(&mut self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Everything is applied and committed.
    fn settle(&mut self) {
        self.advance(1_000);
        self.until(|house| {
            house.advance(10);
            house.stand().partition.is_idle()
        });
    }

    fn bring(&mut self, bodies: Vec<Body>) {
        let (done, heard) = oneshot::channel();
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let event = Event::Ingest { bodies, done };
        self.stand().partition.handle(event, now_ms).expect("the partition goes on");
        assert_eq!(self.call(heard), Ok(Ok(())));
    }

    /// Appends to the journal while nobody owns it, as the ingress does where the journal has many writers.
    fn bring_behind_its_back(&mut self, bodies: Vec<Body>) {
        self.stand = None;
        let log = self.log();
        let (sender, receiver) = mpsc::channel();
        let records = bodies.into_iter().map(|body| Record::new(0, body).encode()).collect();
        let done = Box::new(move |result| sender.send(result).expect("the test waits"));
        log.append(owner("order-1"), records, done);
        receiver.recv_timeout(Duration::from_secs(20)).expect("the log answers").expect("it is durable");
        drop(log);
        self.crash();
    }

    fn poll(&mut self, activities: bool) -> Delivery {
        let router = self.stand().router.clone();
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: "orders".into(),
            activities,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
        };
        self.call(async move { router.poll(poll).await }).expect("a task comes")
    }

    fn workflow_task(&mut self) -> Box<WorkflowTask> {
        let Delivery::Workflow(mut task) = self.poll(false) else { panic!("a workflow task comes") };
        task.receipt.take().expect("it can be given back").accept();
        task
    }

    fn complete(&mut self, task: &WorkflowTask, orders: Vec<command::Order>) {
        let token = task.run.head.task.as_ref().map(task::Task::token);
        let commands = orders.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let commands = commands.collect();
        let order =
            Order::CompleteTask(completion::Complete { token, commands, ..completion::Complete::default() });
        let router = self.stand().router.clone();
        let answer = self.call(async move { router.order(input("order-1", order)).await });
        answer.expect("it is taken");
    }

    fn entries(&mut self, topic: Topic) -> Vec<(Bytes, Bytes)> {
        let entries =
            self.stand().log.topic_read(topic, owner("order-1"), 0, 1 << 20).expect("it can be read");
        entries.into_iter().map(|(_, key, value)| (key, value)).collect()
    }

    fn events(&mut self) -> Vec<WorkflowEvent<'static>> {
        let writer = Writer::own(Noun::Event);
        let read = |(key, value): (Bytes, Bytes)| {
            let event = WorkflowEvent::read(&writer, &value).expect("an event");
            assert_eq!(value[..5], [0, 0, 0, 0, 1], "the schema's id stands in front");
            assert_eq!(key, event.workflow_id.as_bytes());
            assert_eq!(event.namespace, "default");
            event
        };
        self.entries(Topic::Events).into_iter().map(read).collect()
    }

    fn count(&mut self, r#type: &str) -> usize {
        self.events().iter().filter(|event| event.r#type == r#type).count()
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        let writer = Writer::own(Noun::Outcome);
        let entries = self.entries(Topic::Replies).into_iter();
        entries.map(|(_, value)| Outcome::read(&writer, &value).expect("an outcome")).collect()
    }

    fn rejections(&mut self) -> Vec<Rejection<'static>> {
        let writer = Writer::own(Noun::Rejection);
        let entries = self.entries(Topic::Rejections).into_iter();
        entries.map(|(_, value)| Rejection::read(&writer, &value).expect("a rejection")).collect()
    }
}

fn input(workflow_id: &str, order: Order) -> Input {
    let (namespace_id, workflow_id) = (NAMESPACE.into(), workflow_id.into());
    Input { namespace_id, workflow_id, order: Some(order), ..Input::default() }
}

fn source(offset: u64) -> Source {
    let incarnation = Bytes::from_static(&[7; 16]);
    Source { incarnation, partition: 3, offset, topic: "everlog.commands".into(), follows: 0 }
}

fn original() -> Original {
    let headers = vec![Header { key: "command-id".into(), value: Some(Bytes::from_static(b"c-1")) }];
    let (key, value) = (Some(Bytes::from_static(b"order-1")), Some(Bytes::from_static(b"{}")));
    Original { key, value, value_bytes: 2, headers }
}

fn reply_to() -> Option<ReplyTo> {
    Some(ReplyTo { topic: "everlog.replies".into(), correlation_id: None })
}

fn forwarded(offset: u64, order: Order) -> Forwarded {
    Forwarded {
        source: Some(source(offset)),
        input: Some(input("order-1", order)),
        namespace: "default".into(),
        command_id: Some("c-1".into()),
        reply_to: reply_to(),
        original: Some(original()),
        ..Forwarded::default()
    }
}

fn begin() -> Order {
    Order::Start(start::Begin {
        request_id: "request".into(),
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        retention_ms: 86_400_000,
        ..start::Begin::default()
    })
}

fn a_signal() -> Order {
    Order::Signal(signal::Signal { name: "changed".into(), ..signal::Signal::default() })
}

#[test]
fn a_command_is_applied_once_however_often_it_is_brought() {
    let mut house = House::build();
    house.bring(vec![Body::Forwarded(forwarded(0, begin())), Body::Forwarded(forwarded(1, a_signal()))]);
    // Once before and once after its effect is committed, by its owner and by others.
    house.crash();
    house.bring(vec![Body::Forwarded(forwarded(1, a_signal()))]);
    house.settle();
    house.crash();
    house.bring(vec![Body::Forwarded(forwarded(0, begin())), Body::Forwarded(forwarded(1, a_signal()))]);
    house.bring_behind_its_back(vec![
        Body::Forwarded(forwarded(1, a_signal())),
        Body::Forwarded(forwarded(2, a_signal())),
    ]);
    house.settle();
    assert_eq!((house.count("WorkflowExecutionStarted"), house.count("WorkflowExecutionSignaled")), (1, 2));
    let outcomes = house.outcomes();
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.offset, outcome.partition, outcome.status.as_str())).collect();
    assert_eq!(told, [(0, 3, "started"), (1, 3, "done"), (2, 3, "done")]);
    assert_eq!(outcomes[0].workflow_id.as_deref(), Some("order-1"));
    assert!(outcomes[0].run_id.is_some());
    assert!(house.rejections().is_empty());
    assert!(house.stats.duplicates.load(Ordering::Relaxed) >= 4);
}

#[test]
fn a_refused_command_leaves_one_rejection_and_one_outcome() {
    let mut house = House::build();
    let unreadable = Unreadable {
        source: Some(source(1)),
        code: "not_json".into(),
        reason: "it is not JSON".into(),
        reply_to: reply_to(),
        original: Some(Original { value_bytes: 5_000, ..original() }),
        ..Unreadable::default()
    };
    for _ in 0..3 {
        house.bring(vec![
            Body::Forwarded(forwarded(0, a_signal())),
            Body::Unreadable(unreadable.clone()),
            Body::Forwarded(Forwarded {
                deliver_at_ms: BEGIN_MS + 400 * 86_400_000,
                ..forwarded(2, begin())
            }),
        ]);
        house.crash();
    }
    house.settle();
    let rejections = house.rejections();
    let codes: Vec<_> =
        rejections.iter().map(|rejection| (rejection.offset, rejection.code.as_ref())).collect();
    assert_eq!(codes, [(0, "not_found"), (1, "not_json"), (2, "header")]);
    assert_eq!(rejections[0].value.as_ref().map(|value| &value.0[..]), Some(&b"{}"[..]));
    assert_eq!((rejections[0].topic.as_ref(), rejections[0].partition), ("everlog.commands", 3));
    assert_eq!(rejections[0].headers.len(), 1);
    assert_eq!((rejections[1].value_bytes, rejections[1].reason.as_ref()), (5_000, "it is not JSON"));
    let outcomes = house.outcomes();
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.status.as_str(), outcome.code.as_deref())).collect();
    assert_eq!(
        told,
        [("refused", Some("not_found")), ("refused", Some("not_json")), ("refused", Some("header"))]
    );
    assert!(house.events().is_empty());
}

#[test]
fn a_command_waits_for_its_moment_through_crashes() {
    let mut house = House::build();
    let hour_ms = 3_600_000;
    // More than are delivered in one turn, and one that is due before the index looks again.
    let later = |offset| Forwarded { deliver_at_ms: BEGIN_MS + hour_ms, ..forwarded(offset, a_signal()) };
    let soon = Forwarded { deliver_at_ms: BEGIN_MS + 5_000, ..forwarded(6, begin()) };
    let mut bodies: Vec<_> = (1..=5).map(|offset| Body::Forwarded(later(offset))).collect();
    bodies.push(Body::Forwarded(soon));
    house.bring(bodies.clone());
    house.settle();
    assert!(house.events().is_empty());
    house.crash();
    house.bring(bodies);
    house.advance(4_000);
    house.until(|house| {
        house.settle();
        house.count("WorkflowExecutionStarted") == 1
    });
    house.advance(hour_ms - 60_000);
    house.crash();
    house.settle();
    assert_eq!(house.count("WorkflowExecutionSignaled"), 0);
    house.advance(50_000);
    house.until(|house| {
        house.settle();
        house.count("WorkflowExecutionSignaled") == 5
    });
    let times: Vec<_> = house.events().into_iter().map(|event| (event.r#type, event.time)).collect();
    for (r#type, time) in &times {
        let due_ms =
            if r#type == "WorkflowExecutionSignaled" { BEGIN_MS + hour_ms } else { BEGIN_MS + 5_000 };
        assert!(*time >= due_ms && *time < due_ms + 60_000, "{type} came at {time}, {due_ms} was asked for");
    }
    house.crash();
    house.advance(hour_ms);
    house.settle();
    assert_eq!(house.count("WorkflowExecutionSignaled"), 5);
    assert_eq!(house.outcomes().len(), 6);
}

#[test]
fn what_no_ingress_would_bring_stops_nobody() {
    let mut house = House::build();
    let nothing = Forwarded { input: None, ..forwarded(0, begin()) };
    let others = (2..).map(|n| format!("order-{n}")).find(|id| owner(id) != owner("order-1"));
    let astray = Forwarded { input: others.map(|id| input(&id, begin())), ..forwarded(1, begin()) };
    let nowhere = Forwarded { source: None, ..forwarded(1, begin()) };
    house.bring_behind_its_back(vec![
        Body::Forwarded(nothing),
        Body::Forwarded(astray),
        Body::Forwarded(nowhere),
        Body::Unreadable(Unreadable::default()),
        Body::Forwarded(forwarded(2, begin())),
    ]);
    house.settle();
    assert_eq!(house.count("WorkflowExecutionStarted"), 1);
    let codes: Vec<_> = house.rejections().into_iter().map(|rejection| rejection.code).collect();
    assert_eq!(codes, ["command_incomplete", "invalid_argument"]);
    assert!(house.stats.skipped.load(Ordering::Relaxed) >= 2);
}

type Fall = Box<dyn FnMut(&mut House)>;

#[test]
fn what_followed_a_lost_part_of_an_append_waits_until_it_comes_again() {
    let mut house = House::build();
    house.bring(vec![Body::Forwarded(forwarded(0, begin()))]);
    let second = Forwarded { source: Some(Source { follows: 5, ..source(5) }), ..forwarded(5, a_signal()) };
    // The first record of the append, with the offset 4, is missing.
    house.bring_behind_its_back(vec![Body::Forwarded(second.clone())]);
    house.settle();
    assert_eq!(house.count("WorkflowExecutionSignaled"), 0);
    let both = [Body::Forwarded(forwarded(4, a_signal())), Body::Forwarded(second)];
    house.bring_behind_its_back(both.to_vec());
    house.bring_behind_its_back(both.to_vec());
    house.settle();
    assert_eq!(house.count("WorkflowExecutionSignaled"), 2);
}

/// Starts a workflow by a record, runs an activity, and closes; something falls between all steps.
fn live(house: &mut House, mut falls: impl FnMut(&mut House)) {
    house.bring(vec![Body::Forwarded(forwarded(0, begin()))]);
    falls(house);
    let task = house.workflow_task();
    falls(house);
    let queue = everlog_engine::vocabulary::TaskQueue::normal("orders");
    let activity = everlog_engine::machine::activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(everlog_engine::vocabulary::ActivityType { name: "Charge".into() }),
        task_queue: Some(queue),
        start_to_close_timeout: Some(everlog_engine::time::Duration::from_ms(1_000_000)),
        ..Default::default()
    };
    house.complete(&task, vec![command::Order::ScheduleActivity(Box::new(activity))]);
    falls(house);
    let Delivery::Activity(mut task) = house.poll(true) else { panic!("an activity task comes") };
    task.receipt.take().expect("it can be given back").accept();
    falls(house);
    let target = attempt::Target { activity_id: "charge".into(), ..attempt::Target::default() };
    let complete = attempt::Complete { target: Some(target), ..attempt::Complete::default() };
    house.bring(vec![Body::Forwarded(forwarded(7, Order::CompleteActivity(complete)))]);
    falls(house);
    house.bring(vec![Body::Forwarded(forwarded(8, a_signal()))]);
    falls(house);
    let task = house.workflow_task();
    falls(house);
    house.complete(&task, vec![command::Order::CompleteWorkflow(close::Complete { result: None })]);
    falls(house);
    house.settle();
}

#[test]
fn every_event_is_published_once_and_in_order_whatever_falls() {
    let mut at_rest = 0;
    let falls: [(&str, Fall); 4] = [
        ("nothing", Box::new(|_| {})),
        ("before a commit", Box::new(House::crash)),
        (
            "after a commit",
            Box::new(|house| {
                house.settle();
                house.crash();
            }),
        ),
        (
            "in the middle of a commit",
            Box::new(move |house| {
                house.advance(100);
                for _ in 0..at_rest % 4 {
                    house.turn();
                }
                at_rest += 1;
                house.crash();
            }),
        ),
    ];
    for (what, mut falls) in falls {
        let mut house = House::build();
        live(&mut house, &mut falls);
        let events = house.events();
        let ids: Vec<_> = events.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=ids.len() as i64).collect::<Vec<_>>(), "{what}");
        let types: Vec<_> = events.iter().map(|event| event.r#type.as_ref()).collect();
        let expected = [
            "WorkflowExecutionStarted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "ActivityTaskScheduled",
            "ActivityTaskStarted",
            "ActivityTaskCompleted",
            "WorkflowTaskScheduled",
            "WorkflowExecutionSignaled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionCompleted",
        ];
        assert_eq!(types, expected, "{what}");
        assert_eq!(house.outcomes().len(), 3, "{what}");
        assert_eq!(house.stats.unpublished.load(Ordering::Relaxed), 0);
    }
}
