//! Tasks and polls that meet, wait, and go elsewhere.

use std::sync::atomic::AtomicI64;

use crate::matching::dispatcher::*;
use crate::matching::remote::KeptBack;
use crate::{TaskKind, TaskPriority, TaskRef};

pub(super) type Sent = Arc<Mutex<Vec<(u32, InboxMessage)>>>;

/// A dispatcher with a clock of the test's, and what it sends to partitions.
fn dispatcher() -> (Arc<Dispatcher>, Arc<AtomicI64>, PartitionSender, Sent) {
    bounded(QueueLimits::default())
}

pub(crate) fn bounded(limits: QueueLimits) -> (Arc<Dispatcher>, Arc<AtomicI64>, PartitionSender, Sent) {
    let (now_ms, sent): (Arc<AtomicI64>, Sent) = (Arc::new(AtomicI64::new(1_000_000)), Arc::default());
    let (clock, list) = (now_ms.clone(), sent.clone());
    let send: PartitionSender = Arc::new(move |partition, event| {
        list.lock().expect("nobody panics").push((partition, event));
        true
    });
    (Dispatcher::bounded(limits, move || clock.load(Ordering::Relaxed)), now_ms, send, sent)
}

pub(crate) fn key(name: &str) -> QueueKey {
    QueueKey { namespace_id: "n".into(), name: name.into(), kind: TaskKind::Workflow }
}

pub(crate) fn task(partition: u32, id: i64) -> Ready {
    Ready::Task(TaskRef {
        partition,
        run: crate::model::keys::WorkflowKey::new("n", "w").run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1"),
        scheduled_event_id: id,
        attempt: 1,
        stamp: 0,
        normal_queue: Some("normal".into()),
        precedence: TaskPriority::default(),
        offered_by: None,
        term: None,
    })
}

fn query(id: &str) -> Ready {
    let run = crate::model::keys::WorkflowKey::new("n", "asked").run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
    Ready::Query { partition: 7, run, query_id: id.into(), normal_queue: None, offered_by: None }
}

/// A poll that waits until the receiver is dropped.
fn poll(dispatcher: &Dispatcher, name: &str, rate: Option<f64>, send: &PartitionSender) -> Polling {
    try_poll(dispatcher, ("n", name), rate, send).expect("there are few queues")
}

pub(crate) fn try_poll(
    dispatcher: &Dispatcher,
    (namespace_id, name): (&str, &str),
    rate: Option<f64>,
    send: &PartitionSender,
) -> Result<Polling, CallFailure> {
    let (reply, receiver) = oneshot::channel();
    let poll = Poll {
        namespace_id: namespace_id.into(),
        queue: name.into(),
        kind: TaskKind::Workflow,
        sticky: false,
        normal_queue: None,
        identity: "worker".into(),
        poll_id: "poll".into(),
        rate_per_second: rate,
        version: None,
    };
    Ok((dispatcher.poll(poll, reply, send)?, receiver))
}

pub(crate) type Polling = (PollTicket, oneshot::Receiver<Delivery>);

/// The tasks that were brought to their owners, by owner and Scheduled event.
pub(crate) fn brought(sent: &Sent) -> Vec<(u32, i64)> {
    let events = std::mem::take(&mut *sent.lock().expect("nobody panics"));
    let claims = events.iter().filter_map(|(partition, event)| match event {
        InboxMessage::Claim { task, .. } => Some((*partition, task.scheduled_event_id)),
        _other => None,
    });
    claims.collect()
}

#[test]
fn a_task_waits_behind_older_ones_that_a_rate_holds_back() {
    let (dispatcher, now_ms, send, sent) = dispatcher();
    let polls: Vec<_> = (0..4).map(|_| poll(&dispatcher, "q", Some(1.0), &send)).collect();
    for unused in [-1, 0] {
        assert!(dispatcher.offer(&key("q"), task(1, unused), &send).is_some(), "a second's worth may go");
    }
    assert!(dispatcher.offer(&key("q"), task(2, 2), &send).is_none());
    assert!(dispatcher.offer(&key("q"), task(1, 3), &send).is_none());
    now_ms.fetch_add(2_000, Ordering::Relaxed);
    assert!(dispatcher.offer(&key("q"), task(1, 4), &send).is_none(), "an older one goes first");
    assert_eq!(brought(&sent), [(2, 2)]);
    dispatcher.sweep(&send);
    assert_eq!(brought(&sent), [(1, 3)]);
    drop(polls);
}

#[test]
fn polls_that_find_nothing_use_nothing_of_the_rate() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    let polls: Vec<_> = (0..10).map(|_| poll(&dispatcher, "q", Some(1.0), &send)).collect();
    assert!(dispatcher.offer(&key("q"), task(1, 1), &send).is_some(), "the rate is unused");
    drop(polls);
    assert!(brought(&sent).is_empty());
}

/// A town of two nodes, where one queue has its home elsewhere.
#[derive(Default)]
struct Town {
    far: Mutex<Option<String>>,
    brought: Mutex<Vec<Offer>>,
    /// Of which node, and what.
    claimed: Mutex<Vec<(Arc<str>, Ready, Waiting)>>,
    lost: Mutex<Vec<(Arc<str>, u32, String)>>,
}

impl RemoteQueues for Town {
    fn is_far(&self, normal: &QueueKey) -> bool {
        self.far.lock().expect("nobody panics").as_deref() == Some(&normal.name)
    }

    fn bring(&self, offer: Offer) {
        self.brought.lock().expect("nobody panics").push(offer);
    }

    fn claim(&self, node: Arc<str>, ready: Ready, waiting: Waiting) {
        self.claimed.lock().expect("nobody panics").push((node, ready, waiting));
    }

    fn lost(&self, node: Arc<str>, partition: u32, query_id: String) {
        self.lost.lock().expect("nobody panics").push((node, partition, query_id));
    }

    fn kept_back(&self, queue: QueueKey, reply: oneshot::Sender<KeptBack>) {
        let brought = self.brought.lock().expect("nobody panics");
        let mut kept_back = KeptBack::new();
        for offer in brought.iter().filter(|offer| offer.queue == queue) {
            kept_back.entry(offer.ready.level()).or_insert((0, 700)).0 += 1;
        }
        reply.send(kept_back).expect("somebody waits for it");
    }

    fn own_kept_back(&self) -> Vec<(QueueKey, usize, i64)> {
        let brought = self.brought.lock().expect("nobody panics");
        brought.iter().map(|offer| (offer.queue.clone(), 1, 999_300)).collect()
    }

    fn forget_namespace(&self, namespace_id: &str) {
        let mut brought = self.brought.lock().expect("nobody panics");
        brought.retain(|offer| offer.queue.namespace_id != namespace_id);
    }
}

#[test]
fn what_is_for_a_queue_elsewhere_goes_to_its_home() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    let town = Arc::new(Town { far: Mutex::new(Some("normal".into())), ..Town::default() });
    dispatcher.shares_with(town.clone());
    assert!(dispatcher.may_be_live(&key("sticky"), "normal"), "its home knows");
    assert!(dispatcher.offer(&key("sticky"), task(3, 1), &send).is_none());
    assert!(dispatcher.offer(&key("near"), query("asked"), &send).is_none());
    let brought = town.brought.lock().expect("nobody panics").clone();
    assert_eq!(brought, [Offer { queue: key("sticky"), ready: task(3, 1) }]);
    assert_eq!((dispatcher.backlog(&key("sticky")), dispatcher.backlog(&key("near"))), (0, 1));
    assert!(brought_none(&sent));
}

#[tokio::test]
async fn what_other_nodes_keep_back_waits_as_well() {
    let (dispatcher, now_ms, send, _sent) = dispatcher();
    let town = Arc::new(Town { far: Mutex::new(Some("normal".into())), ..Town::default() });
    dispatcher.shares_with(town.clone());
    assert!(dispatcher.offer(&key("q"), task(3, 1), &send).is_none());
    assert!(dispatcher.offer(&key("q"), task(3, 2), &send).is_none());
    assert!(dispatcher.offer(&key("other"), task(3, 3), &send).is_none());
    *town.far.lock().expect("nobody panics") = None;
    assert!(dispatcher.offer(&key("q"), task(4, 4), &send).is_none());
    now_ms.fetch_add(500, Ordering::Relaxed);
    let total = dispatcher.status_of_all(key("q")).await.total();
    assert_eq!((total.backlog, total.backlog_age_ms), (3, 700), "one here, and two that are older");
    assert_eq!(dispatcher.status_of_all(key("other")).await.total().backlog, 1);
}

#[test]
fn nothing_waits_for_a_namespace_that_was_deleted() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    let town = Arc::new(Town { far: Mutex::new(Some("far".into())), ..Town::default() });
    dispatcher.shares_with(town.clone());
    let (_ended, mut answer) = poll(&dispatcher, "polled", None, &send);
    assert!(dispatcher.offer(&key("q"), task(3, 1), &send).is_none());
    assert!(dispatcher.offer(&key("far"), task(3, 2), &send).is_none());
    let other = QueueKey { namespace_id: "another".into(), ..key("q") };
    assert!(dispatcher.offer(&other, task(3, 3), &send).is_none());
    dispatcher.forget_namespace("n");
    assert!(matches!(answer.try_recv(), Ok(Delivery::Nothing)), "its polls end");
    assert_eq!((dispatcher.backlog(&key("q")), dispatcher.backlog(&other)), (0, 1));
    assert!(town.brought.lock().expect("nobody panics").is_empty(), "nor at another node");
    let (_waits, mut answer) = poll(&dispatcher, "q", None, &send);
    assert!(answer.try_recv().is_err() && brought(&sent).is_empty(), "there is nothing to get");
}

#[test]
fn what_comes_from_another_node_meets_polls_and_leaves_dead_workers() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    let polls = [poll(&dispatcher, "normal", None, &send), poll(&dispatcher, "sticky", None, &send)];
    dispatcher.offered(Offer { queue: key("sticky"), ready: task(3, 1) }, &send);
    assert_eq!(brought(&sent), [(3, 1)], "its worker waits");
    drop(polls);
    dispatcher.retire_sticky_queue("n", "sticky", &send);
    dispatcher.offered(Offer { queue: key("sticky"), ready: task(4, 2) }, &send);
    assert_eq!((dispatcher.backlog(&key("sticky")), dispatcher.backlog(&key("normal"))), (0, 1));
}

#[test]
fn a_queue_that_moves_lets_its_polls_go() {
    let (dispatcher, _now_ms, send, _sent) = dispatcher();
    let town = Arc::new(Town::default());
    dispatcher.shares_with(town.clone());
    let (_ticket, mut moves) = poll(&dispatcher, "moves", None, &send);
    let (_other, mut stays) = poll(&dispatcher, "stays", None, &send);
    assert!(dispatcher.offer(&key("moved"), task(1, 1), &send).is_none());
    *town.far.lock().expect("nobody panics") = Some("moves".into());
    dispatcher.rehome();
    assert!(matches!(moves.try_recv(), Ok(Delivery::Nothing)));
    assert!(stays.try_recv().is_err(), "it waits on");
    assert_eq!(dispatcher.backlog(&key("moved")), 0, "its owner offers it again");
}

#[test]
fn a_flood_of_one_partition_keeps_no_other_waiting() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    for id in 0..200_000 {
        assert!(dispatcher.offer(&key("normal"), task(1, id), &send).is_none());
    }
    dispatcher.offered(Offer { queue: key("normal"), ready: task(2, -1) }, &send);
    dispatcher.offered(Offer { queue: key("normal"), ready: task(3, -2) }, &send);
    assert_eq!(dispatcher.backlog(&key("normal")), 200_002);
    let polls: Vec<_> = (0..4).map(|_| poll(&dispatcher, "normal", None, &send)).collect();
    assert_eq!(brought(&sent), [(1, 0), (2, -1), (3, -2), (1, 1)], "in turn, each in its order");
    drop(polls);
}

#[test]
fn a_flood_in_one_namespace_keeps_no_queue_of_the_same_name_waiting() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    for id in 0..200_000 {
        assert!(dispatcher.offer(&key("q"), task(1, id), &send).is_none());
    }
    let elsewhere = QueueKey { namespace_id: "another".into(), ..key("q") };
    assert!(dispatcher.offer(&elsewhere, task(1, -1), &send).is_none());
    let (reply, _answer) = oneshot::channel();
    let poll_there = Poll { namespace_id: "another".into(), queue: "q".into(), ..visitor() };
    let _there = dispatcher.poll(poll_there, reply, &send);
    assert_eq!(brought(&sent), [(1, -1)], "at once, and its own");
    let _here = poll(&dispatcher, "q", None, &send);
    assert_eq!(brought(&sent), [(1, 0)]);
    let (reply, _answer) = oneshot::channel();
    let poll_there = Poll { namespace_id: "another".into(), queue: "q".into(), ..visitor() };
    let _waits = dispatcher.poll(poll_there, reply, &send);
    assert!(brought_none(&sent), "what waits in another namespace is not for it");
    assert!(dispatcher.offer(&elsewhere, task(2, -2), &send).is_some(), "what comes is");
}

#[test]
fn what_waits_is_forgotten_when_the_nodes_change_for_it_is_offered_again() {
    let (dispatcher, now_ms, send, sent) = dispatcher();
    dispatcher.shares_with(Arc::new(Town::default()));
    assert!(dispatcher.offer(&key("normal"), task(1, 1), &send).is_none());
    dispatcher.offered(Offer { queue: key("sticky"), ready: task(2, 2) }, &send);
    dispatcher.offered(Offer { queue: key("normal"), ready: task(1, 3) }, &send);
    dispatcher.rehome();
    assert_eq!(dispatcher.status(&key("normal")), QueueStatus::default());
    assert!(dispatcher.offer(&key("normal"), task(1, 1), &send).is_none());
    now_ms.fetch_add(50, Ordering::Relaxed);
    let status = dispatcher.status(&key("normal"));
    assert_eq!((status.total().backlog, status.total().backlog_age_ms), (1, 50), "once");
    let polls: Vec<_> = (0..2).map(|_| poll(&dispatcher, "normal", None, &send)).collect();
    assert_eq!(brought(&sent), [(1, 1)]);
    drop(polls);
}

#[test]
fn each_task_counts_once_in_the_backlog_of_its_normal_queue() {
    let (dispatcher, now_ms, send, _sent) = dispatcher();
    let town = Arc::new(Town::default());
    dispatcher.shares_with(town.clone());
    dispatcher.offered(Offer { queue: key("normal"), ready: task(1, 1) }, &send);
    now_ms.fetch_add(50, Ordering::Relaxed);
    let _sticky = poll(&dispatcher, "sticky", None, &send);
    drop(dispatcher.offer(&key("sticky"), task(1, 2), &send));
    drop(dispatcher.offer(&key("sticky"), task(1, 3), &send));
    *town.far.lock().expect("nobody panics") = Some("far".into());
    let mut far = task(1, 4);
    drop(far.leave_sticky_queue());
    assert!(dispatcher.offer(&key("far"), far, &send).is_none());
    let mut all: Vec<_> = dispatcher.backlogs().into_iter().collect();
    all.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    let backlog = |count, age_ms| QueueBacklog { count, age_ms };
    assert_eq!(all, [(key("far"), backlog(1, 750)), (key("normal"), backlog(2, 50))]);
}

#[test]
fn a_poll_from_another_node_waits_there() {
    let (dispatcher, _now_ms, send, _sent) = dispatcher();
    let (reply, mut heard) = oneshot::channel();
    let (ticket, _) = poll(&dispatcher, "q", None, &send);
    drop(ticket);
    let poll = Poll { queue: "q".into(), ..visitor() };
    dispatcher.poll_again(Waiting::visitor(poll, reply), &send);
    assert!(matches!(heard.try_recv(), Ok(Delivery::Nothing)));
    assert!(dispatcher.offer(&key("q"), task(1, 1), &send).is_none(), "nobody waits here");
}

#[test]
fn what_a_node_has_offered_is_claimed_of_that_node_whoever_owns_the_partition() {
    let (dispatcher, now_ms, send, sent) = dispatcher();
    let town = Arc::new(Town::default());
    dispatcher.shares_with(town.clone());
    let from = |ready| {
        let mut ready = ready;
        let (Ready::Task(TaskRef { offered_by, .. }) | Ready::Query { offered_by, .. }) = &mut ready;
        *offered_by = Some("other".into());
        ready
    };
    let polls: Vec<_> = (0..2).map(|_| poll(&dispatcher, "normal", None, &send)).collect();
    // Nobody polls the sticky queue.
    dispatcher.offered(Offer { queue: key("sticky"), ready: from(task(1, 1)) }, &send);
    // A partition that is here, or is taken to be, offers the same task: that one it is given itself.
    let own = dispatcher.offer(&key("normal"), task(1, 1), &send).map(|(ready, _)| ready);
    assert_eq!(own, Some(task(1, 1)));
    drop(polls);
    // Nor is what another node has offered given to the partition that offers something now.
    dispatcher.offered(Offer { queue: key("normal"), ready: from(task(1, 2)) }, &send);
    now_ms.fetch_add(1, Ordering::Relaxed);
    assert!(dispatcher.offer(&key("normal"), task(1, 3), &send).is_none(), "nobody waits");
    let polls: Vec<_> = (0..2).map(|_| poll(&dispatcher, "normal", None, &send)).collect();
    assert_eq!(brought(&sent), [(1, 3)]);
    let claimed: Vec<_> = std::mem::take(&mut *town.claimed.lock().expect("nobody panics"));
    let claimed: Vec<_> = claimed.into_iter().map(|(node, ready, _)| (node.to_string(), ready)).collect();
    let mut moved = from(task(1, 1));
    moved.leave_sticky_queue();
    assert_eq!(claimed, [("other".to_owned(), moved), ("other".to_owned(), from(task(1, 2)))]);
    // A question that its worker does not come for is told lost to whoever offered it.
    dispatcher.retire_sticky_queue("n", "sticky", &send);
    dispatcher.offered(Offer { queue: key("asked"), ready: from(query("7-1")) }, &send);
    dispatcher.retire_sticky_queue("n", "asked", &send);
    let lost = town.lost.lock().expect("nobody panics").clone();
    assert_eq!(lost, [("other".into(), 7, "7-1".to_owned())]);
    assert!(brought_none(&sent));
    drop(polls);
}

/// A task of a run of its own, at a level.
fn ranked(workflow: &str, id: i64, level: u8) -> Ready {
    let Ready::Task(task) = task(1, id) else { unreachable!("it is one") };
    let run = crate::model::keys::WorkflowKey::new("n", workflow).run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
    let precedence = TaskPriority { level, ..TaskPriority::default() };
    Ready::Task(TaskRef { run, normal_queue: None, precedence, ..task })
}

#[test]
fn a_run_with_many_tasks_keeps_no_other_run_waiting_and_the_urgent_go_first() {
    let (dispatcher, now_ms, send, sent) = dispatcher();
    for id in 0..10_000 {
        assert!(dispatcher.offer(&key("q"), ranked("flood", id, 3), &send).is_none());
    }
    now_ms.fetch_add(1_000, Ordering::Relaxed);
    assert!(dispatcher.offer(&key("q"), ranked("small", -1, 3), &send).is_none());
    assert!(dispatcher.offer(&key("q"), ranked("late", -2, 5), &send).is_none());
    assert!(dispatcher.offer(&key("q"), ranked("urgent", -3, 1), &send).is_none());
    let status = dispatcher.status(&key("q"));
    let backlogs: Vec<_> = status.levels.iter().map(|(level, row)| (*level, row.backlog)).collect();
    assert_eq!(backlogs, [(1, 1), (3, 10_001), (5, 1)]);
    assert_eq!((status.total().backlog, status.total().backlog_age_ms), (10_003, 1_000));
    let polls: Vec<_> = (0..3).map(|_| poll(&dispatcher, "q", None, &send)).collect();
    let ids: Vec<_> = brought(&sent).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, [-3, 0, -1]);
    drop(polls);
}

#[test]
fn what_comes_and_goes_is_counted_and_so_is_a_rate_that_holds_something_back() {
    let (dispatcher, now_ms, send, _sent) = dispatcher();
    let polls: Vec<_> = (0..5).map(|_| poll(&dispatcher, "q", Some(1.0), &send)).collect();
    for id in 0..10 {
        dispatcher.offer(&key("q"), task(1, id), &send);
    }
    now_ms.fetch_add(10_000, Ordering::Relaxed);
    let status = dispatcher.status(&key("q"));
    let total = status.total();
    assert_eq!((total.added_per_second, total.handed_per_second, total.backlog), (1.0, 0.2, 8));
    assert_eq!((status.rate_per_second, status.is_held), (Some(1.0), true));
    assert_eq!(status.pollers.len(), 1);
    assert_eq!(
        (status.pollers[0].identity.as_str(), status.pollers[0].rate_per_second),
        ("worker", Some(1.0))
    );
    drop(polls);
}

#[test]
fn a_rate_of_nothing_hands_out_nothing_until_another_poll_says_otherwise() {
    let (dispatcher, now_ms, send, sent) = dispatcher();
    let _held = poll(&dispatcher, "q", Some(0.0), &send);
    assert!(dispatcher.offer(&key("q"), task(1, 1), &send).is_none());
    now_ms.fetch_add(3_600_000, Ordering::Relaxed);
    dispatcher.sweep(&send);
    assert!(brought_none(&sent));
    let polls: Vec<_> = [Some(f64::MIN_POSITIVE), Some(100.0), None]
        .into_iter()
        .map(|rate| {
            let polling = poll(&dispatcher, "q", rate, &send);
            dispatcher.offer(&key("q"), task(1, 2), &send);
            now_ms.fetch_add(20, Ordering::Relaxed);
            dispatcher.sweep(&send);
            (brought(&sent).len(), polling)
        })
        .collect();
    let counts: Vec<_> = polls.iter().map(|(count, _)| *count).collect();
    assert!(counts[1] >= 1, "what a former rate held back waits no longer than the new one says: {counts:?}");
    assert_eq!(dispatcher.status(&key("q")).rate_per_second, None, "the last one has none");
}

#[test]
fn what_waits_for_a_worker_that_goes_is_anybodys_at_once() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    let (reply, taken) = oneshot::channel();
    let poll_of = |queue: &str| Poll { queue: queue.into(), sticky: true, ..visitor() };
    let first = dispatcher.poll(poll_of("sticky"), reply, &send);
    assert!(dispatcher.offer(&key("sticky"), task(1, 1), &send).is_some(), "it is busy with one");
    assert!(dispatcher.offer(&key("sticky"), task(1, 2), &send).is_none());
    assert!(dispatcher.may_be_live(&key("sticky"), "normal"));
    drop((first, taken));
    dispatcher.abandon_sticky_queue("n", "sticky", &send);
    assert!(!dispatcher.may_be_live(&key("sticky"), "normal"), "tasks to come do not go there");
    assert_eq!((dispatcher.backlog(&key("sticky")), dispatcher.backlog(&key("normal"))), (0, 1));
    let (_ticket, _) = poll(&dispatcher, "normal", None, &send);
    assert_eq!(brought(&sent), [(1, 2)]);
    let (reply, _waits) = oneshot::channel();
    let _again = dispatcher.poll(poll_of("sticky"), reply, &send);
    assert!(dispatcher.is_live(&key("sticky")), "it was only the connection");
}

#[test]
fn a_worker_with_another_poll_is_there() {
    let (dispatcher, _now_ms, send, _sent) = dispatcher();
    let (gone, _) = poll(&dispatcher, "sticky", None, &send);
    let (_ticket, _waits) = poll(&dispatcher, "sticky", None, &send);
    drop(gone);
    dispatcher.abandon_sticky_queue("n", "sticky", &send);
    dispatcher.abandon_sticky_queue("n", "nobody knows it", &send);
    assert!(dispatcher.is_live(&key("sticky")));
}

#[test]
fn what_waits_for_a_worker_that_polls_no_more_goes_to_others_after_a_while() {
    let (dispatcher, now_ms, send, _sent) = dispatcher();
    let (gone, _) = poll(&dispatcher, "sticky", None, &send);
    drop(gone);
    assert!(dispatcher.offer(&key("sticky"), task(1, 1), &send).is_none());
    now_ms.fetch_add(STICKY_LIVE_MS - 1, Ordering::Relaxed);
    dispatcher.sweep(&send);
    assert_eq!(dispatcher.backlog(&key("sticky")), 1, "it may be busy");
    now_ms.fetch_add(1, Ordering::Relaxed);
    dispatcher.sweep(&send);
    assert_eq!((dispatcher.backlog(&key("sticky")), dispatcher.backlog(&key("normal"))), (0, 1));
}

#[test]
fn a_normal_queue_that_is_taken_for_a_private_one_loses_nothing() {
    let (dispatcher, now_ms, send, _sent) = dispatcher();
    assert!(dispatcher.offer(&key("q"), ranked("w", 1, 3), &send).is_none());
    dispatcher.retire_sticky_queue("n", "q", &send);
    dispatcher.abandon_sticky_queue("n", "q", &send);
    now_ms.fetch_add(2 * FORGET_MS, Ordering::Relaxed);
    dispatcher.sweep(&send);
    assert_eq!(dispatcher.backlog(&key("q")), 1);
}

fn brought_none(sent: &Sent) -> bool {
    sent.lock().expect("nobody panics").is_empty()
}

fn visitor() -> Poll {
    Poll {
        namespace_id: "n".into(),
        queue: String::new(),
        kind: TaskKind::Workflow,
        sticky: false,
        normal_queue: None,
        identity: "worker".into(),
        poll_id: "poll".into(),
        rate_per_second: None,
        version: None,
    }
}

#[test]
fn what_waits_for_a_worker_that_shuts_down_goes_elsewhere_at_once() {
    let (dispatcher, _now_ms, send, sent) = dispatcher();
    assert!(dispatcher.offer(&key("sticky"), task(3, 1), &send).is_none());
    assert!(dispatcher.offer(&key("sticky"), query("asked"), &send).is_none());
    let waiting = poll(&dispatcher, "normal", None, &send);
    dispatcher.retire_sticky_queue("n", "sticky", &send);
    let events = std::mem::take(&mut *sent.lock().expect("nobody panics"));
    let claimed = |(partition, event): &(u32, InboxMessage)| {
        *partition == 3 && matches!(event, InboxMessage::Claim { task, .. } if task.scheduled_event_id == 1)
    };
    let asked_again = |(partition, event): &(u32, InboxMessage)| {
        *partition == 7 && matches!(event, InboxMessage::QueryLost { query_id } if query_id == "asked")
    };
    assert_eq!(events.len(), 2);
    assert!(events.iter().any(claimed), "the poll of the normal queue gets the task");
    assert!(events.iter().any(asked_again), "the question's owner asks somebody else");
    drop(waiting);
}
