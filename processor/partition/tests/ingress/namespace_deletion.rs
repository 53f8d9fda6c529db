//! Namespaces that are deleted: nothing begins in one any more, and nothing is left of it, whatever falls in between.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use bytes::Bytes;
use everlog_engine::command::{Command, CommandAttributes as CommandOrder};
use everlog_engine::machine::update::Admit;
use everlog_engine::machine::{close, signal, timer, workflow_task, workflow_task_completed};
use everlog_engine::request::{Delete, Request, RequestRecord};
use everlog_engine::time::Duration;
use everlog_engine::{Rejection, Reply};
use everlog_partition::{Address, Delivery, Poll, TaskKind, Want};
use everlog_rocks::rows::SharedRows;
use everlog_store::{CommittedRows, Space};
use everlog_wire::public_command::PublicCommand;
use everlog_wire::{Body, OutboxMessage};
use uuid::Uuid;

use super::harness::{BEGIN_MS, Harness, NAMESPACE, PARTITIONS, a_signal, begin, forwarded, owner};

/// Another namespace, which nobody deletes.
const OTHER: &str = "0d6c4cbe-32c5-4c0f-8a3c-6f3d2a110e8f";
/// More than two slices.
const RUNS: usize = 250;

/// The first Workflow Ids whose runs in both namespaces are of the harness's partition.
fn ids() -> impl Iterator<Item = String> {
    let is_here = |namespace_id: &str, workflow_id: &str| {
        let (namespace_id, workflow_id) = (namespace_id.to_owned(), workflow_id.to_owned());
        let address = Address { namespace_id, workflow_id, run_id: String::new() };
        address.partition(PARTITIONS) == owner("order-1")
    };
    let ids = (0..).map(|number| format!("run-{number}"));
    ids.filter(move |id| is_here(NAMESPACE, id) && is_here(OTHER, id))
}

fn input(namespace_id: &str, workflow_id: &str, order: Request) -> RequestRecord {
    let (namespace_id, workflow_id) = (namespace_id.into(), workflow_id.into());
    RequestRecord { namespace_id, workflow_id, request: Some(order), ..RequestRecord::default() }
}

fn signal(request_id: &str) -> Request {
    let (name, request_id) = ("changed".into(), request_id.into());
    Request::Signal(signal::Signal { name, request_id, ..signal::Signal::default() })
}

fn update() -> Request {
    let request = Bytes::from_static(b"\x0a\x00");
    Request::Update(Admit { update_id: "update-1".into(), request, ..Admit::default() })
}

fn poll(namespace_id: &str) -> Poll {
    Poll {
        namespace_id: namespace_id.into(),
        queue: "orders".into(),
        kind: TaskKind::Workflow,
        sticky: false,
        normal_queue: None,
        identity: "worker".into(),
        poll_id: "poll".into(),
        rate_per_second: None,
        version: None,
    }
}

impl Harness {
    fn ask(&mut self, namespace_id: &str, workflow_id: &str, order: Request) -> Reply {
        let (router, input) = (self.stand().router.clone(), input(namespace_id, workflow_id, order));
        self.call(async move { router.order(input).await }).expect("it is answered")
    }

    fn task_in(&mut self, namespace_id: &str) -> Delivery {
        let (router, poll) = (self.stand().router.clone(), poll(namespace_id));
        self.call(async move { router.poll(poll).await }).expect("the node does not stop")
    }

    /// Rows of a namespace in each space, by their places in the keys.
    fn rows_of(&mut self, namespace_id: &str) -> [usize; 3] {
        self.settle();
        self.committed_rows_of(namespace_id)
    }

    fn committed_rows_of(&mut self, namespace_id: &str) -> [usize; 3] {
        let rows = SharedRows::new(self.stand().log.database()).expect("the rows are there");
        let id = Uuid::parse_str(namespace_id).expect("a UUID");
        [(Space::State, 2), (Space::History, 2), (Space::Timers, 10)].map(|(space, at)| {
            let mut count = 0;
            let mut visit = |row: &[u8], _: &[u8]| {
                count += usize::from(row.get(at..at + 16) == Some(id.as_bytes()));
                true
            };
            rows.scan(space, &[], &[u8::MAX; 64], &mut visit).expect("the rows can be read");
            count
        })
    }

    /// What is said of a deletion: that something may be left, or not.
    fn deletion(&mut self, namespace_id: &str) -> Option<Vec<u8>> {
        let rows = SharedRows::new(self.stand().log.database()).expect("the rows are there");
        let id = Uuid::parse_str(namespace_id).expect("a UUID");
        let mut said = None;
        let mut visit = |row: &[u8], value: &[u8]| {
            if row.ends_with(id.as_bytes()) && row.len() == 36 {
                said = Some(value.to_vec());
            }
            true
        };
        rows.scan(Space::State, &[], &[u8::MAX; 64], &mut visit).expect("the rows can be read");
        said
    }

    fn delete_namespace(&mut self, namespace_id: &str) {
        self.names.0.lock().expect("nobody panics").push(namespace_id.into());
        self.until(|harness| {
            harness.settle();
            harness.deletion(namespace_id).is_some()
        });
    }

    /// Open and closed runs, with all that a run can leave behind.
    fn fill(&mut self, namespace_id: &str) {
        for (number, id) in ids().take(RUNS).enumerate() {
            let reply = self.ask(namespace_id, &id, begin());
            assert!(matches!(reply, Reply::Started(_)), "{reply:?}");
            self.ask(namespace_id, &id, signal("request-1"));
            match number % 5 {
                0 => drop(self.ask(namespace_id, &id, Request::Terminate(close::Terminate::default()))),
                4 => drop(self.ask(namespace_id, &id, update())),
                _other => {}
            }
        }
    }

    fn start_a_timer(&mut self, namespace_id: &str) {
        let Delivery::Workflow(mut task) = self.task_in(namespace_id) else { panic!("a task comes") };
        task.receipt.take().expect("it can be given back").accept();
        let start_to_fire_timeout = Some(Duration::from_ms(5_000));
        let order = CommandOrder::StartTimer(timer::Start { timer_id: "t".into(), start_to_fire_timeout });
        let command_type = order.command_type();
        let commands = vec![Command { command_type, order: Some(order), ..Command::default() }];
        let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
        let complete = workflow_task_completed::Complete {
            token,
            commands,
            ..workflow_task_completed::Complete::default()
        };
        let reply =
            self.ask(namespace_id, &task.run.start.workflow_id, Request::CompleteTask(Box::new(complete)));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }

    fn current(&mut self, namespace_id: &str, workflow_id: &str) -> String {
        let (namespace_id, workflow_id) = (namespace_id.into(), workflow_id.into());
        let address = Address { namespace_id, workflow_id, run_id: String::new() };
        let router = self.stand().router.clone();
        let reading = self.call(async move { router.read(address, Want::State).await });
        reading.expect("it is answered").expect("the run is known").run.start.run_id.clone()
    }
}

#[test]
fn nothing_is_left_of_a_deleted_namespace_although_the_house_falls_all_the_while() {
    let mut harness = Harness::build();
    harness.fill(OTHER);
    let others = harness.rows_of(OTHER);
    harness.fill(NAMESPACE);
    harness.start_a_timer(NAMESPACE);
    assert!(harness.rows_of(NAMESPACE).iter().sum::<usize>() > 4 * RUNS);
    harness.delete_namespace(NAMESPACE);
    let mut left = vec![harness.rows_of(NAMESPACE)[0]];
    while harness.deletion(NAMESPACE) != Some(vec![0]) {
        assert!(left.len() < 20, "it goes on for ever: {left:?}");
        harness.crash();
        // Each owner looks from the beginning, and lives a little longer than the one before.
        for _ in 0..15 * left.len() {
            harness.advance(110);
            harness.turn();
        }
        left.push(harness.rows_of(NAMESPACE)[0]);
    }
    assert!(left.is_sorted_by(|a, b| a >= b), "it only gets less: {left:?}");
    assert!(left.len() > 3, "in slices: {left:?}");
    assert_eq!(harness.rows_of(NAMESPACE), [0, 0, 0]);
    assert_eq!(harness.rows_of(OTHER), others, "another namespace has lost something");
    let wakes = harness.stats.wakes.load(Ordering::Relaxed);
    assert!(wakes < 10, "{wakes} alarms of a namespace that is gone");
    // A harness that stands on it later finds nothing to do.
    harness.crash();
    harness.settle();
    assert_eq!((harness.deletion(NAMESPACE), harness.rows_of(NAMESPACE)), (Some(vec![0]), [0, 0, 0]));
}

#[test]
fn a_long_history_is_forgotten_in_slices_although_the_house_falls_in_between() {
    let mut harness = Harness::build();
    let other = ids().next().expect("they have no end");
    harness.ask(OTHER, &other, begin());
    harness.ask(NAMESPACE, "order-1", begin());
    for slice in 0..10 {
        let signals = (0..500).map(|at| Body::PublicCommand(forwarded(slice * 500 + at, a_signal())));
        harness.bring(signals.collect());
    }
    assert!(harness.rows_of(NAMESPACE)[1] > 5_000);
    let others = harness.rows_of(OTHER);
    let reply = harness.ask(NAMESPACE, "order-1", Request::Delete(Delete {}));
    assert_eq!(reply, Reply::Done);
    let mut left = vec![5_000];
    while left.last() != Some(&0) {
        assert!(left.len() < 30, "it goes on for ever: {left:?}");
        // A slice or two, and a commit, which some do not live to see, and every third does.
        harness.turn();
        harness.advance(110);
        (0..left.len()).for_each(|_| harness.turn());
        if left.len().is_multiple_of(3) {
            harness.settle();
        }
        harness.crash();
        left.push(harness.committed_rows_of(NAMESPACE)[1]);
    }
    assert!(left.is_sorted_by(|a, b| a >= b), "it only gets less: {left:?}");
    assert!(left.iter().any(|rows| (1..5_000).contains(rows)), "in slices: {left:?}");
    assert_eq!(harness.rows_of(NAMESPACE), [0, 0, 0], "nor is it noted any more that something is left");
    assert_eq!(harness.rows_of(OTHER), others, "another namespace has lost something");
    assert!(harness.stats.forgotten.load(Ordering::Relaxed) > 0);
    assert_eq!(harness.stats.leftovers.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_on_its_way_to_a_deleted_namespace_is_refused_whoever_brings_it() {
    let mut harness = Harness::build();
    let gone = Reply::Rejected(Rejection::NamespaceDeleted(NAMESPACE.into()));
    let later = PublicCommand { deliver_at_ms: BEGIN_MS + 3_600_000, ..forwarded(0, begin()) };
    harness.bring(vec![Body::PublicCommand(later)]);
    harness.delete_namespace(NAMESPACE);
    for round in 0..2_u64 {
        assert_eq!(harness.ask(NAMESPACE, "order-1", begin()), gone);
        assert_eq!(harness.ask(NAMESPACE, "order-1", a_signal()), gone);
        harness.bring(vec![Body::PublicCommand(forwarded(1 + round, begin()))]);
        let order = Some(input(NAMESPACE, "order-1", begin()));
        let other = 1 - owner("order-1");
        harness.bring_behind_its_back(vec![Body::OutboxMessage(OutboxMessage {
            from: other,
            number: 1 + round,
            input: order,
            sender_applied: 0,
        })]);
        harness.settle();
        // Nobody tells the new owner, whose node has not heard of the deletion.
        harness.names.0.lock().expect("nobody panics").clear();
        harness.crash();
    }
    harness.advance(3_600_000);
    harness.until(|harness| {
        harness.settle();
        harness.rejections().len() == 3
    });
    let told: BTreeMap<_, _> = harness
        .rejections()
        .into_iter()
        .map(|rejection| (rejection.offset, (rejection.code.to_string(), rejection.reason.to_string())))
        .collect();
    let refusal = ("namespace_unknown".to_owned(), "the namespace was deleted".to_owned());
    assert_eq!(told, (0..3).map(|offset| (offset, refusal.clone())).collect());
    assert!(harness.outcomes().iter().all(|outcome| outcome.status == "refused"));
    assert_eq!((harness.outcomes().len(), harness.events().len()), (3, 0));
    assert_eq!(harness.rows_of(NAMESPACE), [0, 0, 0]);
}

#[test]
fn a_poll_of_a_deleted_namespace_ends_empty() {
    let mut harness = Harness::build();
    let router = harness.stand().router.clone();
    let (gone, there) = (router.poll(poll(NAMESPACE)), router.poll(poll(OTHER)));
    let (mut gone, mut there) = (pin!(gone), pin!(there));
    let mut context = Context::from_waker(Waker::noop());
    assert!(gone.as_mut().poll(&mut context).is_pending() && there.as_mut().poll(&mut context).is_pending());
    harness.delete_namespace(NAMESPACE);
    assert!(matches!(harness.call(gone), Ok(Delivery::Nothing)));
    assert!(there.as_mut().poll(&mut context).is_pending(), "another namespace's waits on");
}

#[test]
fn the_same_ids_and_queues_in_two_namespaces_have_nothing_to_do_with_each_other() {
    let mut harness = Harness::build();
    let id = ids().next().expect("there is one");
    for namespace_id in [NAMESPACE, OTHER] {
        let reply = harness.ask(namespace_id, &id, begin());
        let Reply::Started(started) = reply else { panic!("{reply:?}") };
        assert!(started.started, "the id is free in each");
    }
    for namespace_id in [OTHER, NAMESPACE] {
        let Delivery::Workflow(mut task) = harness.task_in(namespace_id) else { panic!("a task comes") };
        task.receipt.take().expect("it can be given back").accept();
        assert_eq!(task.run.start.namespace_id, namespace_id, "the queue has the same name in both");
        // A request id counts once in each.
        for _ in 0..2 {
            assert_eq!(harness.ask(namespace_id, &id, signal("request-1")), Reply::Done);
        }
        let run_id = task.run.start.run_id.clone();
        let other = if namespace_id == OTHER { NAMESPACE } else { OTHER };
        let router = harness.stand().router.clone();
        let unknown = Rejection::unknown_run(&id, &run_id);
        let astray =
            RequestRecord { run_id, ..input(other, &id, Request::Terminate(close::Terminate::default())) };
        let reply = harness.call(async move { router.order(astray).await }).expect("it is answered");
        assert_eq!(reply, Reply::Rejected(unknown), "its run is not there");
    }
    for namespace_id in [NAMESPACE, OTHER] {
        let Reply::Update(standing) = harness.ask(namespace_id, &id, update()) else {
            panic!("it is admitted")
        };
        let run_id = harness.current(namespace_id, &id);
        assert_eq!(standing.run_id, run_id, "an update id is of its run");
    }
    harness.ask(NAMESPACE, &id, Request::Terminate(close::Terminate::default()));
    assert_eq!(harness.ask(OTHER, &id, signal("request-2")), Reply::Done, "the other run goes on");
    harness.crash();
    assert_eq!(harness.ask(OTHER, &id, signal("request-3")), Reply::Done, "the other run goes on");
    let refused = harness.ask(NAMESPACE, &id, signal("request-3"));
    assert_eq!(refused, Reply::Rejected(Rejection::closed()));
}
