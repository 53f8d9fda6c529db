//! A clock that jumps: timers are never early by the journal's clock, fire once, and times of a run never go back.
//!
//! The partition and its log stand here without a node, since both take their time as a parameter.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, History, HistoryEvent};
use everlog_engine::machine::{signal, start, timer, workflow_task, workflow_task_completed};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::{Duration as Span, Timestamp};
use everlog_engine::{Reply, Settings, level};
use everlog_partition::{
    Address, Admission, Config, Delivery, Dispatcher, InboxMessage, Partition, Poll, Router, Stats, TaskKind,
    Unnamed, Want,
};
use everlog_rocks::log::{Embedded, Options};
use everlog_rocks::rows::SharedRows;
use everlog_store::Store;
use everlog_tests::patience;
use prost::Message;

const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// A run that is there to be signalled: whatever is due comes before the signal that follows it.
const SENTINEL: &str = "sentinel";
/// The first signal shows what time it is; alarms that are due by that come with the next one, and what they cause with the last.
const SENTINELS: usize = 3;

/// A partition that the test drives, with the test's clock.
struct DrivenPartition {
    // Fields are dropped in this order: the partition before its log, the log before its folder.
    partition: Option<Partition<Embedded, SharedRows>>,
    log: Option<Arc<Embedded>>,
    inbox: mpsc::Receiver<InboxMessage>,
    router: Router,
    stats: Arc<Stats>,
    now_ms: Arc<AtomicI64>,
    /// How far the partition's clock is off the log's.
    off_ms: i64,
    dir: tempfile::TempDir,
}

struct Opened {
    log: Arc<Embedded>,
    partition: Partition<Embedded, SharedRows>,
    inbox: mpsc::Receiver<InboxMessage>,
    router: Router,
}

fn open(dir: &Path, now_ms: &Arc<AtomicI64>) -> anyhow::Result<Opened> {
    let clock = || {
        let now_ms = now_ms.clone();
        move || now_ms.load(Ordering::Relaxed)
    };
    let options = Options { partitions: 1, clock: Arc::new(clock()), ..Options::new(dir) };
    let log = Arc::new(Embedded::open(options)?);
    let (sender, inbox) = mpsc::channel();
    let sender = Mutex::new(sender);
    let send: everlog_partition::PartitionSender =
        Arc::new(move |_partition, event| sender.lock().is_ok_and(|sender| sender.send(event).is_ok()));
    let dispatcher = Dispatcher::new(clock());
    let router = Router::new(1, send.clone(), dispatcher.clone(), Arc::new(Admission::new(1, 1_000, 1_000)));
    let store = Store::new(SharedRows::new(log.database())?);
    let config = Config {
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
    };
    let partition = Partition::recover(0, log.clone(), store, dispatcher, send, config, Arc::default())?;
    Ok(Opened { log, partition, inbox, router })
}

impl DrivenPartition {
    fn build() -> anyhow::Result<Self> {
        Self::with_clock_off(0)
    }

    fn with_clock_off(off_ms: i64) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let Opened { log, partition, inbox, router } = open(dir.path(), &now_ms)?;
        let stats = partition.stats();
        let mut driven =
            Self { partition: Some(partition), log: Some(log), inbox, router, stats, now_ms, off_ms, dir };
        driven.until("it serves", DrivenPartition::is_serving)?;
        driven.start(SENTINEL)?;
        driven.quiet()?;
        Ok(driven)
    }

    /// The process is killed and started again.
    fn crash(&mut self) -> anyhow::Result<()> {
        (self.partition, self.log) = (None, None);
        let Opened { log, partition, inbox, router } = open(self.dir.path(), &self.now_ms)?;
        self.stats = partition.stats();
        (self.partition, self.log, self.inbox, self.router) = (Some(partition), Some(log), inbox, router);
        self.until("it serves again", DrivenPartition::is_serving)
    }

    fn partition(&mut self) -> &mut Partition<Embedded, SharedRows> {
        self.partition.as_mut().expect("it is taken away only for a moment")
    }

    fn is_serving(&mut self) -> bool {
        self.partition().is_serving()
    }

    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// The clock jumps, back where `ms` is negative.
    fn jump(&mut self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        let now_ms = self.now_ms() + self.off_ms;
        self.partition().turn(now_ms)?;
        // As a node's thread waits, which turns again when nothing comes.
        if let Ok(event) = self.inbox.recv_timeout(Duration::from_millis(2)) {
            self.partition().handle(event, now_ms)?;
        }
        Ok(())
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) -> anyhow::Result<()> {
        let deadline = patience::deadline();
        while !holds(self) {
            anyhow::ensure!(!deadline.is_over(), "{what}: it did not come to pass");
            self.turn()?;
        }
        Ok(())
    }

    /// Whatever is due has come to pass.
    fn quiet(&mut self) -> anyhow::Result<()> {
        (0..SENTINELS).try_for_each(|number| self.signal(SENTINEL, &number.to_string()))
    }

    /// Waits for an answer while the partition is driven.
    fn call<T>(&mut self, call: impl Future<Output = T>) -> anyhow::Result<T> {
        let mut call = Box::pin(call);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let deadline = patience::deadline();
        loop {
            if let std::task::Poll::Ready(answer) = call.as_mut().poll(&mut context) {
                return Ok(answer);
            }
            anyhow::ensure!(!deadline.is_over(), "there was no answer");
            self.turn()?;
        }
    }

    fn order(&mut self, id: &str, order: Request) -> anyhow::Result<Reply> {
        let router = self.router.clone();
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: id.into(),
            run_id: String::new(),
            sender: None,
            request: Some(order),
        };
        Ok(self.call(async move { router.order(input).await })??)
    }

    fn start(&mut self, id: &str) -> anyhow::Result<()> {
        let begin = start::Begin {
            request_id: "request".into(),
            workflow_type: "Order".into(),
            task_queue: id.into(),
            retention_ms: DAY_MS,
            ..start::Begin::default()
        };
        self.order(id, Request::Start(Box::new(begin))).map(drop)
    }

    /// Starts a run and a timer in it.
    fn start_timer(&mut self, id: &str, after_ms: i64) -> anyhow::Result<()> {
        self.start(id)?;
        let order = command::CommandAttributes::StartTimer(timer::Start {
            timer_id: "wait".into(),
            start_to_fire_timeout: Some(Span::from_ms(after_ms)),
        });
        self.work(id, order)
    }

    /// Takes the run's workflow task and completes it with a command.
    fn work(&mut self, id: &str, order: command::CommandAttributes) -> anyhow::Result<()> {
        let router = self.router.clone();
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: id.into(),
            kind: TaskKind::Workflow,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
            version: None,
        };
        let Delivery::Workflow(task) = self.call(async move { router.poll(poll).await })?? else {
            anyhow::bail!("no workflow task came")
        };
        if let Some(receipt) = task.receipt {
            receipt.accept();
        }
        let complete = workflow_task_completed::Complete {
            token: task.run.head.task.as_ref().map(workflow_task::Task::token),
            commands: vec![Command {
                command_type: order.command_type(),
                order: Some(order),
                ..Command::default()
            }],
            ..workflow_task_completed::Complete::default()
        };
        let reply = self.order(id, Request::CompleteTask(Box::new(complete)))?;
        anyhow::ensure!(matches!(reply, Reply::Completed(_)), "{reply:?}");
        Ok(())
    }

    fn signal(&mut self, id: &str, name: &str) -> anyhow::Result<()> {
        let signal = signal::Signal { name: name.into(), ..signal::Signal::default() };
        let reply = self.order(id, Request::Signal(signal))?;
        anyhow::ensure!(reply == Reply::Done, "{reply:?}");
        Ok(())
    }

    fn events(&mut self, id: &str) -> anyhow::Result<Vec<HistoryEvent>> {
        let router = self.router.clone();
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: id.into(), run_id: String::new() };
        let want = Want::History { from_event_id: 1, batches_max: 0 };
        let reading = self.call(async move { router.read(address, want).await })??;
        let page = reading.map(|reading| reading.page).unwrap_or_default();
        Ok(History::decode(page.history)?.events)
    }

    fn firings(&mut self, id: &str) -> usize {
        let events = self.events(id).unwrap_or_default();
        events.iter().filter(|event| matches!(event.attributes, Some(Attributes::TimerFired(_)))).count()
    }

    fn signals(&mut self, id: &str) -> usize {
        let events = self.events(id).unwrap_or_default();
        events
            .iter()
            .filter(|event| matches!(event.attributes, Some(Attributes::WorkflowSignaled(_))))
            .count()
    }

    fn until_fired(&mut self, id: &str) -> anyhow::Result<()> {
        let what = format!("the timer of {id} fires");
        self.until(&what, |driven| driven.firings(id) > 0)
    }

    /// The run is as it should be: its times never go back, its timer fired as often as said, and not early.
    fn check(&mut self, id: &str, firings: usize) -> anyhow::Result<()> {
        let events = self.events(id)?;
        let time_ms = |event: &HistoryEvent| event.event_time.map_or(0, Timestamp::to_ms);
        let times_ms: Vec<i64> = events.iter().map(time_ms).collect();
        anyhow::ensure!(times_ms.is_sorted(), "times of {id} go back: {times_ms:?}");
        anyhow::ensure!(self.firings(id) == firings, "{id} fired {} times, not {firings}", self.firings(id));
        let mut due_ms = None;
        for event in &events {
            match &event.attributes {
                Some(Attributes::TimerStarted(started)) => {
                    due_ms = Some(time_ms(event) + started.start_to_fire_timeout.map_or(0, Span::to_ms));
                }
                Some(Attributes::TimerFired(_)) => {
                    let due_ms = due_ms.take();
                    anyhow::ensure!(
                        due_ms.is_some_and(|due_ms| time_ms(event) >= due_ms),
                        "{id} fired early"
                    );
                }
                _other => {}
            }
        }
        Ok(())
    }

    fn commits(&self) -> u64 {
        self.stats.commits.load(Ordering::Relaxed)
    }
}

#[test]
fn a_jump_forward_fires_what_is_due_by_the_clock_and_nothing_else() -> anyhow::Result<()> {
    for (jump_ms, due_ms, not_due_ms) in
        [(HOUR_MS, HOUR_MS - MINUTE_MS, HOUR_MS + MINUTE_MS), (DAY_MS, 2 * HOUR_MS, 2 * DAY_MS)]
    {
        let mut driven = DrivenPartition::build()?;
        driven.start_timer("due", due_ms)?;
        driven.start_timer("exactly", jump_ms)?;
        driven.start_timer("not", not_due_ms)?;
        driven.quiet()?;
        driven.check("due", 0)?;
        driven.jump(jump_ms);
        driven.until_fired("due")?;
        driven.until_fired("exactly")?;
        driven.quiet()?;
        for (id, firings) in [("due", 1), ("exactly", 1), ("not", 0)] {
            driven.check(id, firings)?;
        }
        driven.jump(not_due_ms - jump_ms - 1);
        driven.quiet()?;
        driven.check("not", 0)?;
        driven.jump(1);
        driven.until_fired("not")?;
        driven.check("not", 1)?;
    }
    Ok(())
}

#[test]
fn a_partition_whose_clock_is_an_hour_off_fires_when_the_log_says_so() -> anyhow::Result<()> {
    for off_ms in [-HOUR_MS, HOUR_MS] {
        let mut driven = DrivenPartition::with_clock_off(off_ms)?;
        driven.start_timer("due", MINUTE_MS)?;
        driven.jump(MINUTE_MS - 1);
        driven.quiet()?;
        driven.check("due", 0)?;
        driven.jump(1);
        driven.until_fired("due")?;
        driven.quiet()?;
        driven.check("due", 1)?;
        let wakes = driven.stats.wakes.load(Ordering::Relaxed);
        anyhow::ensure!(wakes <= 2, "{off_ms} ms off, it was woken {wakes} times");
    }
    Ok(())
}

#[test]
fn after_a_jump_back_nothing_fires_again_and_nothing_stops() -> anyhow::Result<()> {
    let mut driven = DrivenPartition::build()?;
    driven.start_timer("fired", MINUTE_MS)?;
    driven.jump(MINUTE_MS);
    driven.until_fired("fired")?;
    driven.start_timer("open", MINUTE_MS)?;
    driven.jump(-HOUR_MS);
    driven.quiet()?;
    driven.check("fired", 1)?;
    driven.check("open", 0)?;
    // Whatever is asked for is done, under a time that does not go back.
    let commits = driven.commits();
    driven.signal("fired", "changed")?;
    driven.start_timer("new", SECOND_MS)?;
    driven.quiet()?;
    for (id, firings) in [("fired", 1), ("open", 0), ("new", 0)] {
        driven.check(id, firings)?;
    }
    driven.until("outputs are committed", |driven| {
        driven.jump(1);
        driven.commits() > commits
    })?;
    // Once the clock is where it was, timers fire, each once.
    driven.jump(HOUR_MS + MINUTE_MS);
    driven.until_fired("open")?;
    driven.until_fired("new")?;
    driven.quiet()?;
    for id in ["fired", "open", "new"] {
        driven.check(id, 1)?;
    }
    Ok(())
}

#[test]
fn a_jump_back_over_a_crash_is_none_to_the_runs() -> anyhow::Result<()> {
    let mut driven = DrivenPartition::build()?;
    driven.start_timer("fired", MINUTE_MS)?;
    driven.start_timer("open", 10 * MINUTE_MS)?;
    driven.jump(MINUTE_MS);
    driven.until_fired("fired")?;
    driven.jump(-HOUR_MS);
    driven.signal("fired", "before")?;
    driven.signal("open", "before")?;
    driven.crash()?;
    driven.signal("fired", "changed")?;
    for (id, signals) in [("fired", 2), ("open", 1)] {
        anyhow::ensure!(driven.signals(id) == signals, "{id} has {} signals", driven.signals(id));
    }
    driven.start_timer("new", SECOND_MS)?;
    driven.quiet()?;
    for (id, firings) in [("fired", 1), ("open", 0), ("new", 0)] {
        driven.check(id, firings)?;
    }
    driven.jump(HOUR_MS + 9 * MINUTE_MS);
    driven.crash()?;
    driven.until_fired("open")?;
    driven.until_fired("new")?;
    for id in ["fired", "open", "new"] {
        driven.check(id, 1)?;
    }
    Ok(())
}

#[test]
fn a_frozen_clock_fires_nothing_and_stops_nothing() -> anyhow::Result<()> {
    let mut driven = DrivenPartition::build()?;
    driven.start_timer("due", SECOND_MS)?;
    let commits = driven.commits();
    for number in 0..20 {
        driven.signal("due", &number.to_string())?;
    }
    driven.quiet()?;
    driven.check("due", 0)?;
    driven.jump(SECOND_MS);
    driven.until_fired("due")?;
    driven.until("outputs are committed", |driven| driven.commits() > commits)?;
    driven.check("due", 1)
}

#[test]
fn a_clock_that_trembles_fires_each_timer_once() -> anyhow::Result<()> {
    let mut driven = DrivenPartition::build()?;
    let ids: Vec<String> = (0..20).map(|number| format!("run-{number}")).collect();
    for (number, id) in (1..).zip(&ids) {
        driven.start_timer(id, number * SECOND_MS)?;
    }
    // Forward and back around every due time, an hour off now and then.
    for step in 0..60 {
        driven.jump(if step % 2 == 0 { 900 } else { -200 });
        driven.turn()?;
        if step % 20 == 10 {
            driven.jump(-HOUR_MS);
            driven.turn()?;
            driven.jump(HOUR_MS);
        }
    }
    for id in &ids {
        driven.until_fired(id)?;
    }
    driven.quiet()?;
    ids.iter().try_for_each(|id| driven.check(id, 1))
}
