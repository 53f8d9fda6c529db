//! A partition on the embedded log: orders in, tasks out, and everything still there after a crash.

mod deletions;
mod endings;
mod harness;
mod levels;
mod rests;
mod schedules;
mod updates;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_engine::Reply;
use everlog_engine::Run;
use everlog_engine::api_types::{ActivityType, RetryPolicy, TaskQueue};
use everlog_engine::command;
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::machine::{activity, activity_attempt, close, signal, timer};
use everlog_engine::request::{Delete, Request};
use everlog_partition::{
    Address, CallFailure, Config, Delivery, InboxMessage, Poll, QueryRequest, RunKey, TaskKind,
    UncommittedBudget, Want, WorkflowKey,
};
use everlog_patience as patience;

use harness::{Harness, NAMESPACE, config, polls, workflow};

fn schedule() -> command::CommandAttributes {
    command::CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
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
    let mut harness = Harness::build();
    harness.start();
    harness.crash();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.crash();
    harness.complete(&task.run, vec![schedule()]);
    harness.crash();
    let Delivery::Activity(mut task) = harness.poll(TaskKind::Activity) else {
        panic!("an activity task comes")
    };
    task.receipt.take().expect("it can be given back").accept();
    assert_eq!(task.scheduled.input, Some(Bytes::from_static(b"amount")));
    harness.crash();
    let target = activity_attempt::Target {
        scheduled_event_id: task.activity.scheduled_event_id,
        attempt: 1,
        claim: task.activity.claim,
        activity_id: String::new(),
    };
    let result = Some(Bytes::from_static(b"done"));
    let reply = harness.order(Request::CompleteActivity(activity_attempt::Complete {
        target: Some(target),
        result,
        identity: "worker".into(),
        worker_version: None,
    }));
    assert_eq!(reply, Reply::Done);
    harness.crash();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(
        &task.run,
        vec![command::CommandAttributes::CompleteWorkflow(close::Complete { result: None })],
    );
    harness.crash();
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
    assert_eq!(harness.names(), expected);
}

#[test]
fn a_task_that_reaches_nobody_is_handed_out_again() {
    let mut harness = Harness::build();
    harness.start();
    drop(harness.poll(TaskKind::Workflow));
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.attempt), Some(1));
    let expected =
        ["WorkflowStarted", "TaskScheduled", "TaskStarted", "TaskTimedOut", "TaskScheduled", "TaskStarted"];
    assert_eq!(harness.names(), expected);
}

#[test]
fn a_timer_outlives_a_crash() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    harness.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    harness.crash();
    harness.advance(3_599_000);
    harness.turn();
    assert_eq!(harness.names().last(), Some(&"TimerStarted"));
    harness.crash();
    harness.advance(1_000);
    harness.until(|harness| harness.names().contains(&"TimerFired"));
}

#[test]
fn a_failed_run_is_tried_again_although_the_house_falls_at_every_step() {
    let mut harness = Harness::build();
    harness.start_with(|begin| {
        begin.retry_policy = Some(RetryPolicy { maximum_attempts: 3, ..RetryPolicy::default() });
    });
    for (attempt, wait_ms) in [(1, 1_000), (2, 2_000)] {
        harness.crash();
        let task = workflow(harness.poll(TaskKind::Workflow));
        assert_eq!((harness.started().attempt, harness.started().input), (attempt, Some("input".into())));
        harness.crash();
        harness.complete(
            &task.run,
            vec![command::CommandAttributes::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })],
        );
        harness.crash();
        assert_eq!(harness.names(), ["WorkflowStarted"], "the next one waits");
        harness.advance(wait_ms);
        harness.until(|harness| harness.names().contains(&"TaskScheduled"));
    }
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(
        &task.run,
        vec![command::CommandAttributes::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })],
    );
    harness.crash();
    assert_eq!(harness.started().attempt, 3);
    assert_eq!(harness.names().last(), Some(&"WorkflowFailed"));
}

#[test]
fn a_run_that_takes_too_long_is_followed_by_its_schedule_after_a_crash() {
    let mut harness = Harness::build();
    harness.start_with(|begin| {
        begin.cron_schedule = "@every 60s".into();
        begin.run_timeout_ms = 10_000;
    });
    let first = harness.started().original_execution_run_id;
    harness.crash();
    harness.advance(70_000);
    harness.until(|harness| harness.started().original_execution_run_id != first);
    harness.crash();
    let next = harness.started();
    assert_eq!((&next.continued_execution_run_id, &next.first_execution_run_id), (&first, &first));
    assert!(next.continued_failure.is_some());
    // Its task comes after 50 s, and its own time is over 10 s later.
    harness.advance(55_000);
    let task = workflow(harness.poll(TaskKind::Workflow));
    let result = Some(Bytes::from_static(b"result"));
    harness.complete(
        &task.run,
        vec![command::CommandAttributes::CompleteWorkflow(close::Complete { result: result.clone() })],
    );
    harness.crash();
    let last = harness.started();
    assert_eq!((last.last_completion_result, last.continued_failure), (result, None));
    assert_eq!(harness.order(Request::Terminate(close::Terminate::default())), Reply::Done);
    harness.crash();
    assert_eq!(harness.names().last(), Some(&"WorkflowTerminated"));
}

#[test]
fn a_signal_is_taken_once_whatever_happens_in_between() {
    let mut harness = Harness::build();
    harness.start();
    for _ in 0..3 {
        let reply = harness.order(Request::Signal(signal::Signal {
            name: "changed".into(),
            request_id: "signal-1".into(),
            ..signal::Signal::default()
        }));
        assert_eq!(reply, Reply::Done);
        harness.crash();
    }
    let signals = harness.names().iter().filter(|name| **name == "WorkflowSignaled").count();
    assert_eq!(signals, 1);
}

#[test]
fn a_request_greater_than_a_share_closes_the_partition_only_where_the_others_leave_no_room() {
    for (room_bytes, answer) in [(1 << 20, Ok(Reply::Done)), (0, Err(CallFailure::Busy))] {
        let room = UncommittedBudget::new(room_bytes);
        let mut harness = Harness::build_with(Config { overlay_bytes_max: 1_000, room, ..config() });
        harness.start_with(|begin| begin.input = Some(Bytes::from(vec![b'x'; 10_000])));
        let signal = signal::Signal { name: "changed".into(), ..signal::Signal::default() };
        // The turn that begins the commit counts what waits for it; the signal is met before it has ended.
        harness.advance(1_000);
        assert_eq!(harness.try_order(Request::Signal(signal)), answer);
        harness.advance(1_000);
        harness.until(|harness| harness.partition().is_idle());
        let signal = signal::Signal { name: "changed".into(), ..signal::Signal::default() };
        assert_eq!(harness.try_order(Request::Signal(signal)), Ok(Reply::Done), "all is committed");
    }
}

#[test]
fn a_start_that_is_sent_again_begins_nothing_when_its_run_has_gone_on_and_ended() {
    let mut harness = Harness::build();
    let first = harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![command::CommandAttributes::ContinueAsNew(Box::default())]);
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![command::CommandAttributes::CompleteWorkflow(Default::default())]);
    let last = harness.started();
    harness.crash();
    assert_eq!(harness.start(), first, "it is told of the run that it had made");
    assert_eq!(harness.started(), last, "the run is the one that was there");
    harness.advance(59_000);
    assert_eq!(harness.start(), first);
    assert_eq!(harness.started(), last, "its run was followed a minute ago, less a second");
    harness.start_with(|begin| begin.request_id = "another request".into());
    assert_ne!(harness.started(), last);
}

#[test]
fn a_signal_that_is_sent_again_is_not_taken_by_the_run_that_continues_its_own() {
    let mut harness = Harness::build();
    harness.start();
    let signal = || {
        Request::Signal(signal::Signal {
            name: "changed".into(),
            request_id: "signal-1".into(),
            ..signal::Signal::default()
        })
    };
    let signals =
        |harness: &mut Harness| harness.names().iter().filter(|name| **name == "WorkflowSignaled").count();
    assert_eq!(harness.order(signal()), Reply::Done);
    for _ in 0..2 {
        let task = workflow(harness.poll(TaskKind::Workflow));
        harness.complete(&task.run, vec![command::CommandAttributes::ContinueAsNew(Box::default())]);
        harness.crash();
        assert_eq!(harness.order(signal()), Reply::Done);
        assert_eq!(signals(&mut harness), 0, "{:?}", harness.names());
        harness.advance(1_000);
    }
    harness.advance(60_000);
    assert_eq!(harness.order(signal()), Reply::Done);
    assert_eq!(signals(&mut harness), 1, "nobody asks again so late");
}

#[test]
fn a_run_is_forgotten_when_its_retention_is_over() {
    let mut harness = Harness::build();
    harness.start();
    let reply =
        harness.order(Request::Terminate(close::Terminate { reason: "enough".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    harness.crash();
    assert_eq!(harness.names(), ["WorkflowStarted", "TaskScheduled", "WorkflowTerminated"]);
    harness.advance(120_000);
    let router = harness.router.clone();
    harness.until(|harness| {
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
        let router = router.clone();
        let reading = harness.call(Box::pin(async move { router.read(address, Want::State).await }));
        reading.expect("it is answered").is_none()
    });
}

/// A question to the run, of somebody who waits for a minute.
fn question() -> QueryRequest {
    QueryRequest {
        address: Address {
            namespace_id: NAMESPACE.into(),
            workflow_id: "order-1".into(),
            run_id: String::new(),
        },
        query: Bytes::from_static(b"query"),
        only_open: false,
        only_completed_cleanly: false,
        patience_ms: 60_000,
        is_taken: std::sync::Arc::default(),
    }
}

#[test]
fn a_question_never_shows_a_worker_news_outside_a_workflow_task() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    harness.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let router = harness.router.clone();
    let request = question();
    let mut question = Box::pin(async move { router.query(request).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    // The question is on its way to a worker, and none has come, when a signal arrives.
    let reply =
        harness.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(task.queries.len(), 1, "it goes along with the workflow task");
    drop(question);
}

#[test]
fn a_question_whose_worker_dies_is_put_to_another() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    harness.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let address =
        Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
    let request = question();
    let router = harness.router.clone();
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
    let first = taken(harness.poll(TaskKind::Workflow));
    // The worker has it, and is never heard of again.
    harness.advance(11_000);
    let query_id = taken(harness.poll(TaskKind::Workflow));
    assert_eq!(query_id, first);
    let answer = everlog_partition::QueryAnswer {
        query_id,
        succeeded: true,
        result: None,
        error_message: String::new(),
        failure: None,
    };
    let router = harness.router.clone();
    let was_asked = harness.call(Box::pin(async move { router.answer_query(address, answer).await }));
    assert_eq!(was_asked, Ok(true));
    assert!(matches!(harness.call(question), Ok(everlog_partition::QueryOutcome::Answered(_))));
}

#[test]
fn what_an_owner_fell_with_before_it_was_handed_out_is_handed_out_by_the_next_one() {
    let mut harness = Harness::build();
    harness.start();
    let first = workflow(harness.poll(TaskKind::Workflow));
    harness.crash();
    harness.lost(&["another poll"], None);
    assert!(harness.read().run.started_task().is_some(), "that poll has got it, as far as anybody knows");
    harness.lost(&["another poll", "poll"], None);
    let again = workflow(harness.poll(TaskKind::Workflow));
    let token = |run: &Run| run.started_task().map(Task::token);
    assert_ne!(token(&first.run), token(&again.run));
    harness.complete(&again.run, vec![schedule()]);
    assert!(matches!(harness.poll(TaskKind::Activity), Delivery::Activity(_)));
    harness.crash();
    let claimed = |harness: &mut Harness| {
        let run = harness.read().run;
        run.activities.values().any(|activity| activity.is_started())
    };
    assert!(claimed(&mut harness));
    harness.lost(&["poll"], None);
    // Its timeout is not waited for: the clock stands.
    harness.until(|harness| !claimed(harness));
    assert!(matches!(harness.poll(TaskKind::Activity), Delivery::Activity(_)));
}

/// A harness whose owner has ended after it had committed a claim.
fn of_a_committed_claim() -> (Harness, RunKey) {
    let mut harness = Harness::build();
    harness.start_with(|begin| begin.task_timeout_ms = 120_000);
    let task = workflow(harness.poll(TaskKind::Workflow));
    let start = &task.run.start;
    let key = WorkflowKey::new(&start.namespace_id, &start.workflow_id).run(&start.run_id);
    harness.partition().commit_soon();
    harness.until(|harness| harness.partition().is_idle());
    harness.crash();
    assert!(harness.read().run.started_task().is_some());
    (harness, key)
}

#[test]
fn a_claim_that_was_committed_just_before_its_owner_ended_is_found() {
    let (mut harness, _key) = of_a_committed_claim();
    harness.lost(&["another poll"], None);
    assert!(harness.read().run.started_task().is_some());
    harness.lost(&["poll"], None);
    // Its timeout is not waited for: the clock stands.
    harness.until(|harness| harness.read().run.started_task().is_none());
    workflow(harness.poll(TaskKind::Workflow));
}

#[test]
fn whoever_knows_the_run_is_heard_also_when_its_claim_is_not_looked_for_any_more() {
    let (mut harness, key) = of_a_committed_claim();
    harness.advance(61_000);
    // A record makes time pass.
    let reply =
        harness.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    harness.lost(&["poll"], None);
    assert!(harness.read().run.started_task().is_some(), "nobody speaks so late of a poll");
    harness.lost(&["another poll"], Some(key.clone()));
    assert!(harness.read().run.started_task().is_some());
    harness.lost(&["poll"], Some(key));
    harness.until(|harness| harness.read().run.started_task().is_none());
    workflow(harness.poll(TaskKind::Workflow));
}

#[test]
fn what_a_partition_had_sent_when_it_could_not_go_on_is_handed_out_by_its_next_life() {
    let mut harness = Harness::build();
    harness.start();
    let router = harness.router.clone();
    let mut poll = Box::pin(async move { router.poll(polls(TaskKind::Workflow)).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut is_claimed = false;
    // The claim reaches the journal, and the partition does not hear of it.
    loop {
        assert!(poll.as_mut().poll(&mut context).is_pending());
        let now_ms = harness.now_ms.load(Ordering::Relaxed);
        harness.partition().turn(now_ms).expect("the partition goes on");
        match harness.inbox.recv_timeout(patience::most()).expect("it goes on").1 {
            InboxMessage::Appended(_) if is_claimed => break,
            event => {
                is_claimed |= matches!(event, InboxMessage::Claim { .. });
                harness.partition().handle(event, now_ms).expect("the partition goes on");
            }
        }
    }
    let lost = harness.partition.take().expect("the harness stands").abandon();
    assert!(matches!(&lost[..], [InboxMessage::PollsLost { run: Some(_), .. }]));
    assert!(poll.as_mut().poll(&mut context).is_pending(), "it waits for something else");
    harness.rise(lost);
    workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(harness.names().iter().filter(|name| **name == "TaskStarted").count(), 2);
}

#[test]
fn a_task_that_is_given_back_when_its_partition_cannot_go_on_is_handed_out_by_the_next_life() {
    let mut harness = Harness::build();
    harness.start();
    let Delivery::Workflow(task) = harness.poll(TaskKind::Workflow) else { panic!("a workflow task comes") };
    // Nobody has taken it.
    drop(task);
    let now_ms = harness.now_ms.load(Ordering::Relaxed);
    loop {
        let event = harness.inbox.recv_timeout(patience::most()).expect("it is told").1;
        let is_given_back = matches!(event, InboxMessage::Release { .. });
        harness.partition().handle(event, now_ms).expect("the partition goes on");
        if is_given_back {
            break;
        }
    }
    let lost = harness.partition.take().expect("the harness stands").abandon();
    assert!(matches!(&lost[..], [InboxMessage::Release { .. }]));
    harness.rise(lost);
    workflow(harness.poll(TaskKind::Workflow));
}

#[test]
fn a_worker_that_does_not_come_for_a_question_is_no_more_waited_for() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let router = harness.router.clone();
    let own_queue = Poll {
        queue: "own".into(),
        sticky: true,
        normal_queue: Some("orders".into()),
        ..harness::polls(TaskKind::Workflow)
    };
    // It asks for tasks of its own queue once, and goes.
    let mut asked = Box::pin(async move { router.poll(own_queue).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(asked.as_mut().poll(&mut context).is_pending());
    harness.turn();
    drop(asked);
    harness.complete_sticky(&task.run, "own", 5_000);
    assert!(harness.read().run.head.sticky.is_some());
    let request = question();
    let router = harness.router.clone();
    let mut question = Box::pin(async move { router.query(request).await });
    assert!(question.as_mut().poll(&mut context).is_pending());
    harness.turn();
    assert!(harness.read().run.head.sticky.is_some(), "it may still come");
    harness.advance(6_000);
    assert!(matches!(harness.poll(TaskKind::Workflow), Delivery::Query(_)), "any worker may answer");
    harness.until(|harness| harness.read().run.head.sticky.is_none());
}

#[test]
fn a_question_about_a_run_that_is_deleted_ends_and_takes_no_poll_along() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    harness.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let (asks, polls_on) = (harness.router.clone(), harness.router.clone());
    let mut question = Box::pin(async move { asks.query(question()).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    harness.turn();
    // It waits for a poll when its run is deleted.
    assert_eq!(harness.order(Request::Delete(Delete {})), Reply::Done);
    let mut poll = Box::pin(async move { polls_on.poll(polls(TaskKind::Workflow)).await });
    assert!(poll.as_mut().poll(&mut context).is_pending());
    let outcome = harness.call(question);
    assert!(matches!(outcome, Ok(everlog_partition::QueryOutcome::Refused(_))), "{outcome:?}");
    // What comes next goes to the poll.
    harness.start_with(|begin| begin.request_id = "another".into());
    workflow(harness.call(poll).expect("it has waited on"));
}

#[test]
fn a_timer_fires_after_a_crash_although_a_task_waits_for_a_worker() {
    let mut harness = Harness::build();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    harness.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let reply =
        harness.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    harness.crash();
    harness.advance(3_600_000);
    harness.until(|harness| harness.names().contains(&"TimerFired"));
}

#[test]
fn a_clock_that_is_set_back_does_not_put_off_commits() {
    let mut harness = Harness::build();
    harness.start();
    harness.advance(1_000);
    harness.until(|harness| harness.partition().is_idle());
    harness.advance(-3_600_000);
    let reply =
        harness.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    harness.advance(1_000);
    harness.until(|harness| harness.partition().is_idle());
}
