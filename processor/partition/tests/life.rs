//! A partition on the embedded log: orders in, tasks out, and everything still there after a crash.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, History};
use everlog_engine::input::{Input, Order};
use everlog_engine::machine::{activity, attempt, close, completion, signal, start, task, timer};
use everlog_engine::vocabulary::{ActivityType, RetryPolicy, TaskQueue};
use everlog_engine::{Reply, Run, Settings};
use everlog_log::embedded::{Embedded, Options};
use everlog_partition::{
    Address, Admission, Config, Delivery, Dispatcher, Event, Partition, Poll, QueryRequest, Reading, Router,
    Unnamed, Want,
};
use everlog_store::{SharedRows, Store};
use prost::Message;

const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";

/// One partition, driven by the test's own thread; its clock is the test's.
struct House {
    partition: Option<Partition<Embedded, SharedRows>>,
    log: Option<Arc<Embedded>>,
    inbox: mpsc::Receiver<(u32, Event)>,
    router: Router,
    now_ms: Arc<AtomicI64>,
    dir: tempfile::TempDir,
}

fn config() -> Config {
    Config {
        node: "test".into(),
        public: Arc::new(Unnamed),
        instance: bytes::Bytes::from_static(b"instance"),
        settings: Settings::standard(),
        commit_interval_ms: 100,
        overlay_bytes_max: 64 << 20,
        cached_runs_max: 10,
        appends_max: 2,
        append_records_max: 1_000,
        wakes_max: 100,
        buffered_queries_max: 10,
        journal_keep_records: 10,
    }
}

impl House {
    fn build() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let (log, partition, inbox, router) = open(dir.path(), &now_ms);
        let mut house = Self { partition: Some(partition), log: Some(log), inbox, router, now_ms, dir };
        house.until(|house| house.partition().is_serving());
        house
    }

    fn partition(&mut self) -> &mut Partition<Embedded, SharedRows> {
        self.partition.as_mut().expect("the house stands")
    }

    /// The house falls, and a new one stands on its ground.
    fn crash(&mut self) {
        self.partition = None;
        self.log = None;
        let (log, partition, inbox, router) = open(self.dir.path(), &self.now_ms);
        (self.log, self.partition, self.inbox, self.router) = (Some(log), Some(partition), inbox, router);
        self.until(|house| house.partition().is_serving());
    }

    /// Brings events and time until something holds.
    fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < deadline, "it did not come to pass");
            self.turn();
        }
    }

    fn turn(&mut self) {
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        self.partition().turn(now_ms).expect("the partition goes on");
        if let Ok((_, event)) = self.inbox.recv_timeout(Duration::from_millis(5)) {
            self.partition().handle(event, now_ms).expect("the partition goes on");
        }
    }

    fn advance(&mut self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Runs a call of the router while the house is driven.
    fn call<T>(&mut self, call: impl Future<Output = T> + Unpin) -> T {
        let mut call = call;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let std::task::Poll::Ready(answer) = std::pin::Pin::new(&mut call).poll(&mut context) {
                return answer;
            }
            assert!(Instant::now() < deadline, "there was no answer");
            self.turn();
        }
    }

    fn order(&mut self, order: Order) -> Reply {
        let router = self.router.clone();
        let input = Input {
            namespace_id: NAMESPACE.into(),
            workflow_id: "order-1".into(),
            run_id: String::new(),
            sender: None,
            order: Some(order),
        };
        self.call(Box::pin(async move { router.order(input).await })).expect("it is answered")
    }

    fn poll(&mut self, activities: bool) -> Delivery {
        let router = self.router.clone();
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
        self.call(Box::pin(async move { router.poll(poll).await })).expect("a task comes")
    }

    fn read(&mut self) -> Reading {
        let router = self.router.clone();
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
        let want = Want::History { from_event_id: 1, batches_max: 0 };
        let reading = self.call(Box::pin(async move { router.read(address, want).await }));
        reading.expect("it is answered").expect("the run is known")
    }

    fn names(&mut self) -> Vec<&'static str> {
        let history = History::decode(self.read().page.history).expect("a history");
        history
            .events
            .iter()
            .filter_map(|event| event.attributes.as_ref())
            .map(|facts| facts.name())
            .collect()
    }

    fn start(&mut self) {
        self.start_with(|_begin| {});
    }

    fn start_with(&mut self, change: impl FnOnce(&mut start::Begin)) {
        let mut begin = start::Begin {
            request_id: "request".into(),
            workflow_type: "Order".into(),
            task_queue: "orders".into(),
            input: Some(Bytes::from_static(b"input")),
            retention_ms: 60_000,
            ..start::Begin::default()
        };
        change(&mut begin);
        let reply = self.order(Order::Start(begin));
        assert!(matches!(reply, Reply::Started(_)), "{reply:?}");
    }

    /// The Started event of the current run.
    fn started(&mut self) -> start::Started {
        let history = History::decode(self.read().page.history).expect("a history");
        match history.events.into_iter().next().and_then(|event| event.attributes) {
            Some(Attributes::WorkflowStarted(started)) => started,
            other => panic!("{other:?} starts nothing"),
        }
    }

    fn complete(&mut self, run: &Run, orders: Vec<command::Order>) {
        let token = run.head.task.as_ref().map(task::Task::token);
        let commands = orders.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let commands = commands.collect();
        let reply = self.order(Order::CompleteTask(completion::Complete {
            token,
            commands,
            ..completion::Complete::default()
        }));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }
}

type Opened = (Arc<Embedded>, Partition<Embedded, SharedRows>, mpsc::Receiver<(u32, Event)>, Router);

fn open(dir: &std::path::Path, now_ms: &Arc<AtomicI64>) -> Opened {
    let clock = now_ms.clone();
    let mut options = Options::new(dir);
    options.partitions = 1;
    options.clock = Arc::new(move || clock.load(Ordering::Relaxed));
    let log = Arc::new(Embedded::open(options).expect("the log opens"));
    let (sender, inbox) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let send: everlog_partition::Send = Arc::new(move |id, event| {
        sender.lock().map(|sender| sender.send((id, event)).is_ok()).unwrap_or(false)
    });
    let clock = now_ms.clone();
    let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
    let router = Router::new(1, send.clone(), dispatcher.clone(), Arc::new(Admission::new(1, 1_000, 1_000)));
    let store = Store::new(SharedRows::new(log.database()).expect("the rows are there"));
    let partition = Partition::recover(0, log.clone(), store, dispatcher, send, config(), Arc::default())
        .expect("the partition recovers");
    (log, partition, inbox, router)
}

fn workflow(delivery: Delivery) -> Box<everlog_partition::WorkflowTask> {
    match delivery {
        Delivery::Workflow(mut task) => {
            task.receipt.take().expect("it can be given back").accept();
            task
        }
        other => panic!("not a workflow task: {other:?}"),
    }
}

fn schedule() -> command::Order {
    command::Order::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "1".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(Bytes::from_static(b"amount")),
        start_to_close_timeout: Some(everlog_engine::time::Duration::from_ms(10_000)),
        ..activity::Schedule::default()
    }))
}

#[test]
fn a_workflow_with_an_activity_survives_a_crash_before_every_step() {
    let mut house = House::build();
    house.start();
    house.crash();
    let task = workflow(house.poll(false));
    house.crash();
    house.complete(&task.run, vec![schedule()]);
    house.crash();
    let Delivery::Activity(mut task) = house.poll(true) else { panic!("an activity task comes") };
    task.receipt.take().expect("it can be given back").accept();
    assert_eq!(task.scheduled.input, Some(Bytes::from_static(b"amount")));
    house.crash();
    let target = attempt::Target {
        scheduled_event_id: task.activity.scheduled_event_id,
        attempt: 1,
        claim: task.activity.claim,
        activity_id: String::new(),
    };
    let result = Some(Bytes::from_static(b"done"));
    let reply = house.order(Order::CompleteActivity(attempt::Complete {
        target: Some(target),
        result,
        identity: "worker".into(),
        worker_version: None,
    }));
    assert_eq!(reply, Reply::Done);
    house.crash();
    let task = workflow(house.poll(false));
    house.complete(&task.run, vec![command::Order::CompleteWorkflow(close::Complete { result: None })]);
    house.crash();
    let expected = [
        "WorkflowStarted",
        "TaskScheduled",
        "TaskStarted",
        "TaskCompleted",
        "ActivityScheduled",
        "ActivityStarted",
        "ActivityCompleted",
        "TaskScheduled",
        "TaskStarted",
        "TaskCompleted",
        "WorkflowCompleted",
    ];
    assert_eq!(house.names(), expected);
}

#[test]
fn a_task_that_reaches_nobody_is_handed_out_again() {
    let mut house = House::build();
    house.start();
    drop(house.poll(false));
    let task = workflow(house.poll(false));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.attempt), Some(1));
    let expected =
        ["WorkflowStarted", "TaskScheduled", "TaskStarted", "TaskTimedOut", "TaskScheduled", "TaskStarted"];
    assert_eq!(house.names(), expected);
}

#[test]
fn a_timer_outlives_a_crash() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(false));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::Order::StartTimer(order)]);
    house.crash();
    house.advance(3_599_000);
    house.turn();
    assert_eq!(house.names().last(), Some(&"TimerStarted"));
    house.crash();
    house.advance(1_000);
    house.until(|house| house.names().contains(&"TimerFired"));
}

#[test]
fn a_failed_run_is_tried_again_although_the_house_falls_at_every_step() {
    let mut house = House::build();
    house.start_with(|begin| {
        begin.retry_policy = Some(RetryPolicy { maximum_attempts: 3, ..RetryPolicy::default() });
    });
    for (attempt, wait_ms) in [(1, 1_000), (2, 2_000)] {
        house.crash();
        let task = workflow(house.poll(false));
        assert_eq!((house.started().attempt, house.started().input), (attempt, Some("input".into())));
        house.crash();
        house.complete(
            &task.run,
            vec![command::Order::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })],
        );
        house.crash();
        assert_eq!(house.names(), ["WorkflowStarted"], "the next one waits");
        house.advance(wait_ms);
        house.until(|house| house.names().contains(&"TaskScheduled"));
    }
    let task = workflow(house.poll(false));
    house
        .complete(&task.run, vec![command::Order::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })]);
    house.crash();
    assert_eq!(house.started().attempt, 3);
    assert_eq!(house.names().last(), Some(&"WorkflowFailed"));
}

#[test]
fn a_run_that_takes_too_long_is_followed_by_its_schedule_after_a_crash() {
    let mut house = House::build();
    house.start_with(|begin| {
        begin.cron_schedule = "@every 60s".into();
        begin.run_timeout_ms = 10_000;
    });
    let first = house.started().original_execution_run_id;
    house.crash();
    house.advance(70_000);
    house.until(|house| house.started().original_execution_run_id != first);
    house.crash();
    let next = house.started();
    assert_eq!((&next.continued_execution_run_id, &next.first_execution_run_id), (&first, &first));
    assert!(next.continued_failure.is_some());
    // Its task comes after 50 s, and its own time is over 10 s later.
    house.advance(55_000);
    let task = workflow(house.poll(false));
    let result = Some(Bytes::from_static(b"result"));
    house.complete(
        &task.run,
        vec![command::Order::CompleteWorkflow(close::Complete { result: result.clone() })],
    );
    house.crash();
    let last = house.started();
    assert_eq!((last.last_completion_result, last.continued_failure), (result, None));
    assert_eq!(house.order(Order::Terminate(close::Terminate::default())), Reply::Done);
    house.crash();
    assert_eq!(house.names().last(), Some(&"WorkflowTerminated"));
}

#[test]
fn a_signal_is_taken_once_whatever_happens_in_between() {
    let mut house = House::build();
    house.start();
    for _ in 0..3 {
        let reply = house.order(Order::Signal(signal::Signal {
            name: "changed".into(),
            request_id: "signal-1".into(),
            ..signal::Signal::default()
        }));
        assert_eq!(reply, Reply::Done);
        house.crash();
    }
    let signals = house.names().iter().filter(|name| **name == "WorkflowSignaled").count();
    assert_eq!(signals, 1);
}

#[test]
fn a_signal_that_is_sent_again_is_not_taken_by_the_run_that_continues_its_own() {
    let mut house = House::build();
    house.start();
    let signal = || {
        Order::Signal(signal::Signal {
            name: "changed".into(),
            request_id: "signal-1".into(),
            ..signal::Signal::default()
        })
    };
    let signals =
        |house: &mut House| house.names().iter().filter(|name| **name == "WorkflowSignaled").count();
    assert_eq!(house.order(signal()), Reply::Done);
    for _ in 0..2 {
        let task = workflow(house.poll(false));
        house.complete(&task.run, vec![command::Order::ContinueAsNew(Box::default())]);
        house.crash();
        assert_eq!(house.order(signal()), Reply::Done);
        assert_eq!(signals(&mut house), 0, "{:?}", house.names());
        house.advance(1_000);
    }
    house.advance(60_000);
    assert_eq!(house.order(signal()), Reply::Done);
    assert_eq!(signals(&mut house), 1, "nobody asks again so late");
}

#[test]
fn a_run_is_forgotten_when_its_retention_is_over() {
    let mut house = House::build();
    house.start();
    let reply =
        house.order(Order::Terminate(close::Terminate { reason: "enough".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    house.crash();
    assert_eq!(house.names(), ["WorkflowStarted", "TaskScheduled", "WorkflowTerminated"]);
    house.advance(120_000);
    let router = house.router.clone();
    house.until(|house| {
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
        let router = router.clone();
        let reading = house.call(Box::pin(async move { router.read(address, Want::State).await }));
        reading.expect("it is answered").is_none()
    });
}

#[test]
fn a_question_never_shows_a_worker_news_outside_a_workflow_task() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(false));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::Order::StartTimer(order)]);
    let router = house.router.clone();
    let address =
        Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
    let request = QueryRequest {
        address,
        query: Bytes::from_static(b"query"),
        only_open: false,
        only_completed_cleanly: false,
    };
    let mut question = Box::pin(async move { router.query(request).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    // The question is on its way to a worker, and none has come, when a signal arrives.
    let reply = house.order(Order::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    let task = workflow(house.poll(false));
    assert_eq!(task.queries.len(), 1, "it goes along with the workflow task");
    drop(question);
}

#[test]
fn a_question_whose_worker_dies_is_put_to_another() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(false));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::Order::StartTimer(order)]);
    let address =
        Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
    let request = QueryRequest {
        address: address.clone(),
        query: Bytes::from_static(b"query"),
        only_open: false,
        only_completed_cleanly: false,
    };
    let router = house.router.clone();
    let mut question = Box::pin(async move { router.query(request).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    let taken = |delivery: Delivery| match delivery {
        Delivery::Query(mut task) => {
            task.receipt.take().expect("it can be given back").accept();
            task.query_id
        }
        other => panic!("not a question: {other:?}"),
    };
    let first = taken(house.poll(false));
    // The worker has it, and is never heard of again.
    house.advance(11_000);
    let query_id = taken(house.poll(false));
    assert_eq!(query_id, first);
    let answer = everlog_partition::QueryAnswer {
        query_id,
        succeeded: true,
        result: None,
        error_message: String::new(),
        failure: None,
    };
    let router = house.router.clone();
    let was_asked = house.call(Box::pin(async move { router.answer_query(address, answer).await }));
    assert_eq!(was_asked, Ok(true));
    assert!(matches!(house.call(question), Ok(everlog_partition::QueryOutcome::Answered(_))));
}

#[test]
fn a_timer_fires_after_a_crash_although_a_task_waits_for_a_worker() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(false));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::Order::StartTimer(order)]);
    let reply = house.order(Order::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    house.crash();
    house.advance(3_600_000);
    house.until(|house| house.names().contains(&"TimerFired"));
}

#[test]
fn a_clock_that_is_set_back_does_not_put_off_commits() {
    let mut house = House::build();
    house.start();
    house.advance(1_000);
    house.until(|house| house.partition().is_idle());
    house.advance(-3_600_000);
    let reply = house.order(Order::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    house.advance(1_000);
    house.until(|house| house.partition().is_idle());
}
