//! Histories that are restored after ownership. No reader gets a history with a gap, and no task goes out before its
//! history is there.

use bytes::Bytes;
use everlog_engine::Reply;
use everlog_engine::api_types::{ActivityType, TaskQueue};
use everlog_engine::command::{self, Command};
use everlog_engine::event::History;
use everlog_engine::machine::reset::Reset;
use everlog_engine::machine::{activity, signal, workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_partition::{CallFailure, CallResult, Delivery, Poll, QueryRequest, Reading, TaskKind, Want};
use prost::Message;

use crate::clients::{NAMESPACE, address, input};
use crate::disk::Disk;
use crate::harness::{Harness, ids};
use crate::log::index;
use crate::node::PARTITION;

pub const DAY_MS: i64 = 24 * 3_600_000;

impl Harness {
    fn order(&mut self, id: &str, order: Request) -> Reply {
        let (router, input) = (self.node.router.clone(), input(id, "", order));
        self.call(async move { router.order(input).await }).unwrap()
    }

    fn signal(&mut self, id: &str, name: String) {
        self.order(id, Request::Signal(signal::Signal { name, ..signal::Signal::default() }));
    }

    pub fn read(&mut self, id: &str, want: Want) -> CallResult<Option<Reading>> {
        let (router, address) = (self.node.router.clone(), address(id, ""));
        self.call(async move { router.read(address, want).await })
    }

    fn events(&mut self, id: &str) -> CallResult<usize> {
        let want = Want::History { from_event_id: 1, batches_max: 0 };
        let reading = self.read(id, want)?.unwrap();
        let events = History::decode(reading.page.history).unwrap().events;
        assert!((1..).zip(&events).all(|(id, event)| event.event_id == id), "there is a hole");
        assert_eq!(events.len() as i64 + 1, reading.run.head.next_event_id, "its end is missing");
        Ok(events.len())
    }

    /// A poll that waits for as long as the world has something to do.
    pub fn poll(&mut self, kind: TaskKind) -> Delivery {
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
        let router = self.node.router.clone();
        self.call(async move { router.poll(poll).await }).unwrap()
    }

    /// The node loses its rows and takes the partition over again; histories come only later.
    fn lose_rows(&mut self, histories_after_ms: i64) {
        self.until(|harness| harness.node.partition.as_ref().unwrap().is_idle());
        let now_ms = self.clock.now_ms();
        self.broker.lock().slices_from_ms = now_ms + histories_after_ms;
        self.node.partition = None;
        self.node.disk = Disk::default();
        self.node.recover(2, now_ms).unwrap();
        self.until(|harness| harness.node.partition.as_ref().unwrap().is_serving());
    }

    fn is_whole(&self) -> bool {
        self.node.partition.as_ref().unwrap().is_whole()
    }

    fn history_rows(&self) -> usize {
        let mut broker = self.broker.lock();
        broker.stored(PARTITION).topics[index(everlog_log::Topic::History)].live().len()
    }
}

fn schedule() -> command::CommandAttributes {
    command::CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "1".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(Bytes::from_static(b"amount")),
        start_to_close_timeout: Some(everlog_engine::time::Duration::from_ms(DAY_MS)),
        ..activity::Schedule::default()
    }))
}

pub fn complete(
    harness: &mut Harness,
    id: &str,
    delivery: Delivery,
    orders: Vec<command::CommandAttributes>,
) {
    let Delivery::Workflow(mut task) = delivery else { panic!("a workflow task comes") };
    task.receipt.take().unwrap().accept();
    let commands = orders.into_iter().map(|order| Command {
        command_type: order.command_type(),
        order: Some(order),
        ..Command::default()
    });
    let complete = workflow_task_completed::Complete {
        token: task.run.head.task.as_ref().map(workflow_task::Task::token),
        commands: commands.collect(),
        ..workflow_task_completed::Complete::default()
    };
    harness.order(id, Request::CompleteTask(Box::new(complete)));
}

#[test]
fn a_history_that_does_not_come_for_long_is_unavailable_and_then_whole() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, DAY_MS);
    for number in 0..200 {
        harness.signal(&id, format!("signal {number}"));
    }
    let before = harness.events(&id).unwrap();
    harness.lose_rows(20_000);
    let began_ms = harness.clock.now_ms();
    assert_eq!(harness.events(&id), Err(CallFailure::Unavailable));
    assert_eq!(harness.read(&id, Want::LastBatch).map(drop), Err(CallFailure::Unavailable));
    assert!(
        (8_000..11_000).contains(&(harness.clock.now_ms() - began_ms)),
        "both waited for a while, and no longer"
    );
    let reverse = Want::Reverse { below_event_id: 0, batches_max: 1 };
    assert_eq!(harness.read(&id, reverse).map(drop), Err(CallFailure::Unavailable));
    assert!(harness.read(&id, Want::State).unwrap().is_some(), "its state is there");
    // What happens meanwhile is decided, and a new run is whole.
    harness.signal(&id, "while it comes".into());
    let other = ids().nth(1).unwrap();
    harness.start(&other, DAY_MS);
    assert!(harness.events(&other).is_ok());
    assert!(!harness.is_whole());
    // Until the last slice has come there is either no answer or the whole one.
    let mut refused = 0;
    while !harness.is_whole() {
        refused += usize::from(harness.events(&id).is_err());
    }
    assert!(refused > 0);
    assert_eq!(harness.events(&id), Ok(before + 1));
}

#[test]
fn who_asks_for_a_history_that_comes_a_moment_later_waits_for_it() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, DAY_MS);
    let task = harness.poll(TaskKind::Workflow);
    complete(&mut harness, &id, task, vec![]);
    for number in 0..200 {
        harness.signal(&id, format!("signal {number}"));
    }
    let before = harness.events(&id).unwrap();
    harness.lose_rows(3_000);
    let began_ms = harness.clock.now_ms();
    let (read, reset) = (harness.node.router.clone(), harness.node.router.clone());
    let want = Want::History { from_event_id: 1, batches_max: 0 };
    let back = Request::Reset(Reset { finish_event_id: 4, request_id: "back".into(), ..Reset::default() });
    let (address, input) = (address(&id, ""), input(&id, "", back));
    let (reading, reset) =
        harness.call(async move { tokio::join!(read.read(address, want), reset.order(input)) });
    let events = History::decode(reading.unwrap().unwrap().page.history).unwrap().events;
    assert_eq!(events.len(), before, "whole");
    assert!(harness.clock.now_ms() >= began_ms + 2_500);
    assert!(matches!(reset, Ok(Reply::Started(_))), "{reset:?}");
}

#[test]
fn a_task_waits_for_the_history_that_its_worker_needs() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, DAY_MS);
    let task = harness.poll(TaskKind::Workflow);
    complete(&mut harness, &id, task, vec![schedule()]);
    harness.signal(&id, "news".into());
    harness.lose_rows(3_000);
    let began_ms = harness.clock.now_ms();
    let Delivery::Activity(task) = harness.poll(TaskKind::Activity) else { panic!("an activity task comes") };
    assert_eq!(task.scheduled.input, Some(Bytes::from_static(b"amount")), "with what it is to do");
    assert!(harness.clock.now_ms() >= began_ms + 2_500);
    drop(task);
    let Delivery::Workflow(task) = harness.poll(TaskKind::Workflow) else { panic!("a workflow task comes") };
    let events = History::decode(task.history.history.clone()).unwrap().events;
    assert!((1..).zip(&events).all(|(id, event)| event.event_id == id));
    assert_eq!(events.len() as i64 + 1, task.run.head.next_event_id);
    assert_eq!(task.run.head.task.as_ref().unwrap().attempt, 1, "nobody had it before");
}

#[test]
fn a_question_is_not_put_to_a_worker_without_a_history() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, DAY_MS);
    let task = harness.poll(TaskKind::Workflow);
    complete(&mut harness, &id, task, vec![]);
    harness.lose_rows(3_000);
    let query = Bytes::from_static(b"query");
    let request = QueryRequest {
        address: address(&id, ""),
        query,
        only_open: false,
        only_completed_cleanly: false,
        patience_ms: 60_000,
        is_taken: std::sync::Arc::default(),
    };
    let began_ms = harness.clock.now_ms();
    let (router, polls) = (harness.node.router.clone(), harness.node.router.clone());
    let delivery = harness.call(async move {
        let poll = Poll {
            namespace_id: NAMESPACE.into(),
            queue: "orders".into(),
            kind: TaskKind::Workflow,
            sticky: false,
            normal_queue: None,
            identity: "worker".into(),
            poll_id: "poll".into(),
            rate_per_second: None,
            version: None,
        };
        let mut waits = Box::pin(polls.poll(poll));
        let mut question = Box::pin(router.query(request));
        std::future::poll_fn(move |context| {
            assert!(question.as_mut().poll(context).is_pending(), "nobody answers");
            waits.as_mut().poll(context)
        })
        .await
    });
    let Ok(Delivery::Query(task)) = delivery else { panic!("{delivery:?}") };
    let events = History::decode(task.history.history.clone()).unwrap().events;
    assert_eq!(events.len() as i64 + 1, task.run.head.next_event_id, "whole");
    assert!(harness.clock.now_ms() >= began_ms + 2_500);
}

#[test]
fn a_run_that_is_forgotten_before_its_history_has_come_leaves_nothing() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start_with(&id, 1_000, 2_000);
    for number in 0..50 {
        harness.signal(&id, format!("signal {number}"));
    }
    harness.lose_rows(10_000);
    harness.until(|harness| harness.clock_has_passed(4_000));
    assert!(harness.read(&id, Want::State).unwrap().is_none(), "it is forgotten");
    assert!(harness.history_rows() > 50, "its history is not");
    // The id is free again, whoever applies the journal from here on.
    harness.start(&id, DAY_MS);
    harness.until(|harness| harness.is_whole());
    harness.pass(2_000);
    assert_eq!(harness.events(&id), Ok(2));
    assert_eq!(harness.history_rows(), 1, "only that of the new run");
    assert_eq!(
        harness.node.disk.rows().keys().filter(|(space, _)| *space == everlog_store::Space::History).count(),
        1
    );
}
