//! Scenarios of one node over a calm log, which random plans would reach too seldom.

use std::pin::pin;
use std::task::{Context, Poll as Turn, Waker};

use bytes::Bytes;
use everlog_engine::Reply;
use everlog_engine::command::{self, Command};
use everlog_engine::machine::{activity_attempt, start, timer, workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_engine::time::Duration;
use everlog_partition::{ActivityTask, Delivery, Error, Poll, TaskKind};
use everlog_wire::public_command::{InvalidCommand, SourcePosition};
use everlog_wire::{Barrier, Body, Record};

use crate::clients::{NAMESPACE, input};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::log::{Broker, Nasty, Shared, incarnation};
use crate::node::{Node, PARTITION, PARTITIONS};
use crate::public::id_of_the_partition;
use crate::workflow::{self, Program, QUEUE, Step};

/// How long everything may take in a story, in turns.
const TURNS: usize = 200;
const TURN_MS: i64 = 50;

/// A node and its log, and nobody else.
pub struct Stage {
    pub broker: Shared,
    pub clock: Clock,
    pub node: Node,
    workflow_id: String,
    lives: u64,
}

impl Stage {
    /// A node that owns the partition.
    pub fn open() -> Self {
        let nasty = Nasty { immediate: true, ..Nasty::calm() };
        let broker = Shared::new(Broker::new(PARTITIONS, nasty, Dice::new(3)));
        let clock = Clock::new(broker.lock().now_ms);
        let node = Node::start(0, &broker, &clock.shared(), Disk::default());
        let workflow_id = id_of_the_partition("story");
        let mut stage = Self { broker, clock, node, workflow_id, lives: 0 };
        stage.takes_over().expect("an empty log");
        stage
    }

    /// The node dies, and another one comes with these rows.
    pub fn another_node(&mut self, disk: Disk) {
        let node = Node::start(1, &self.broker, &self.clock.shared(), disk);
        let before = std::mem::replace(&mut self.node, node);
        self.broker.lock().died(before.log.by);
        drop(before.die());
    }

    pub fn takes_over(&mut self) -> Result<(), Error> {
        self.lives += 1;
        self.node.recover(self.lives, self.clock.now_ms())?;
        self.turns(20)
    }

    pub fn pass(&self, ms: i64) {
        self.clock.advance(self.clock.now_ms() + ms);
        self.broker.lock().now_ms = self.clock.now_ms();
    }

    pub fn turns(&mut self, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            self.pass(TURN_MS);
            self.node.turn(usize::MAX, self.clock.now_ms())?;
        }
        Ok(())
    }

    /// What comes of a call.
    fn wait<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        for _ in 0..TURNS {
            if let Turn::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return answer;
            }
            self.turns(1).expect("the partition goes on");
        }
        panic!("nobody answers");
    }

    fn order(&mut self, order: Request) -> Reply {
        let router = self.node.router.clone();
        self.wait(router.order(input(&self.workflow_id.clone(), "", order))).expect("an answer")
    }

    fn poll(&mut self, kind: TaskKind) -> Delivery {
        let router = self.node.router.clone();
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: QUEUE.into(),
            kind,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
            version: None,
        };
        self.wait(router.poll(poll)).expect("a task")
    }

    /// A workflow's activity, in the hands of a worker; beside it runs a timer.
    fn activity(&mut self) -> ActivityTask {
        let program = Program { generations: 0, steps: vec![Step::Activity] };
        self.order(Request::Start(Box::new(start::Begin {
            workflow_type: "Program".into(),
            task_queue: QUEUE.into(),
            input: Some(program.encode()),
            retention_ms: 86_400_000,
            ..start::Begin::default()
        })));
        let Delivery::Workflow(mut handed) = self.poll(TaskKind::Workflow) else { panic!("a workflow task") };
        handed.receipt.take().expect("a receipt").accept();
        let events = crate::workers::events(handed.history.history.clone()).expect("a history");
        let router = self.node.router.clone();
        let order = Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token: handed.run.head.task.as_ref().map(workflow_task::Task::token),
            commands: workflow::think(&events).into_iter().chain([start_timer()]).collect(),
            ..workflow_task_completed::Complete::default()
        }));
        self.wait(router.complete_task(input(&self.workflow_id.clone(), "", order), Vec::new()))
            .expect("an answer");
        let Delivery::Activity(mut handed) = self.poll(TaskKind::Activity) else {
            panic!("an activity task")
        };
        handed.receipt.take().expect("a receipt").accept();
        *handed
    }

    /// What a worker is told that is done with its activity.
    fn is_taken(&mut self, activity: &ActivityTask) -> Result<(), String> {
        let target = activity_attempt::Target {
            scheduled_event_id: activity.activity.scheduled_event_id,
            attempt: activity.activity.attempt,
            claim: activity.activity.claim,
            activity_id: String::new(),
        };
        let done = activity_attempt::Complete {
            target: Some(target),
            result: Some(Bytes::from_static(b"done")),
            identity: "worker".into(),
            worker_version: None,
        };
        match self.order(Request::CompleteActivity(done)) {
            Reply::Done => Ok(()),
            other => Err(format!("the worker is told {other:?}")),
        }
    }
}

/// The rows that a node keeps belong to topics that are gone; those of today have come as far.
pub fn rows_of_other_topics() -> Result<(), String> {
    let mut stage = Stage::open();
    let old = stage.node.disk.clone();
    {
        let mut broker = stage.broker.lock();
        broker.stored.clear();
        broker.incarnation = incarnation(&mut Dice::new(99));
    }
    stage.another_node(Disk::default());
    for _ in 0..5 {
        stage.takes_over().expect("new topics, and no rows");
    }
    stage.another_node(old);
    match stage.takes_over() {
        Err(Error::Stale { .. }) => Ok(()),
        other => Err(format!("with rows of other topics: {other:?}")),
    }
}

/// The position that was committed last is that of another journal.
pub fn a_position_of_another_journal() -> Result<(), String> {
    let mut stage = Stage::open();
    assert!(stage.broker.lock().stored(PARTITION).position.is_some(), "something is committed");
    stage.broker.lock().incarnation = incarnation(&mut Dice::new(99));
    stage.another_node(Disk::default());
    match stage.takes_over() {
        Err(Error::Journal { .. }) => Ok(()),
        other => Err(format!("over another journal: {other:?}")),
    }
}

/// A node of a later release has appended what this one cannot read.
pub fn a_later_release() -> Result<(), String> {
    let mut stage = Stage::open();
    let record = Record::new(0, Body::Barrier(Barrier {}));
    let later = Record { version: everlog_wire::LEVEL_VERSION + 1, ..record }.encode();
    let (told, _) = stage.broker.lock().arrive(PARTITION, vec![later]);
    told.into_iter().for_each(|tell| tell());
    match stage.turns(5) {
        Err(Error::Wire(everlog_wire::Error::Version { .. })) => Ok(()),
        other => Err(format!("a record of a later release: {other:?}")),
    }
}

/// A worker is done while nobody owns the partition, later than its task allows, and tells the next owner.
pub fn a_worker_that_answers_the_new_owner() -> Result<(), String> {
    let mut stage = Stage::open();
    let activity = stage.activity();
    stage.turns(10).expect("the partition goes on");
    let disk = stage.node.disk.clone();
    stage.another_node(disk);
    stage.pass(8_000);
    stage.takes_over().expect("its own rows");
    stage.is_taken(&activity)
}

/// The same, and that owner dies as well; what it has appended and not committed is decided again.
pub fn a_worker_that_answers_the_owner_after_the_next() -> Result<(), String> {
    let mut stage = Stage::open();
    let activity = stage.activity();
    stage.turns(10).expect("the partition goes on");
    let disk = stage.node.disk.clone();
    stage.another_node(disk);
    stage.pass(6_000);
    stage.takes_over().expect("its own rows");
    let length = stage.broker.lock().stored(PARTITION).journal.len();
    // The timer is due.
    while stage.broker.lock().stored(PARTITION).journal.len() == length {
        stage.turns(1).expect("the partition goes on");
    }
    let disk = stage.node.disk.clone();
    stage.another_node(disk);
    stage.takes_over().expect("its own rows");
    stage.is_taken(&activity)
}

/// A public record of a thousand bytes that is no command, as an ingress brings it.
pub fn unreadable(offset: u64) -> Bytes {
    let source =
        SourcePosition { incarnation: Bytes::from_static(&[7; 16]), offset, ..SourcePosition::default() };
    let reason = "x".repeat(1_000);
    let unreadable =
        InvalidCommand { source: Some(source), code: "json".into(), reason, ..InvalidCommand::default() };
    Record::new(0, Body::InvalidCommand(unreadable)).encode()
}

/// While nobody owned the partition, others have brought far more than may wait for a commit.
pub fn a_journal_that_is_longer_than_may_wait() -> Result<(), String> {
    let mut stage = Stage::open();
    let disk = stage.node.disk.clone();
    stage.another_node(disk);
    stage.node.overlay_bytes_max = 10_000;
    let (told, _) = stage.broker.lock().arrive(PARTITION, (0..200).map(unreadable).collect());
    told.into_iter().for_each(|tell| tell());
    stage.lives += 1;
    stage.node.recover(stage.lives, stage.clock.now_ms()).expect("its own rows");
    let committed =
        |stage: &Stage| stage.broker.lock().stored(PARTITION).position.as_ref().map_or(0, |(to, _)| *to);
    let mut most = 0;
    while !stage.node.partition.as_ref().is_some_and(|partition| partition.is_serving()) {
        let before = committed(&stage);
        stage.turns(1).expect("the partition goes on");
        most = most.max(committed(&stage) - before);
    }
    if most > 40 { Err(format!("{most} records are committed at once")) } else { Ok(()) }
}

fn start_timer() -> Command {
    let order = command::CommandAttributes::StartTimer(timer::Start {
        timer_id: "beside".into(),
        start_to_fire_timeout: Some(Duration::from_ms(9_000)),
    });
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

#[test]
fn topics_that_were_made_again_are_refused_with_the_rows_of_the_old_ones() {
    let mut stage = Stage::open();
    let old = stage.node.disk.clone();
    {
        let mut broker = stage.broker.lock();
        broker.stored.clear();
        broker.incarnation = incarnation(&mut Dice::new(99));
    }
    stage.another_node(old);
    let refused = stage.takes_over();
    assert!(matches!(refused, Err(Error::Stale { .. })), "{refused:?}");
    stage.node.disk = Disk::default();
    stage.takes_over().expect("without rows");
}

#[test]
fn a_journal_that_does_not_reach_its_position_is_refused() {
    let mut stage = Stage::open();
    stage.broker.lock().stored(PARTITION).journal.truncate(1);
    stage.another_node(Disk::default());
    let refused = stage.takes_over();
    assert!(matches!(refused, Err(Error::Journal { .. })), "{refused:?}");
}
