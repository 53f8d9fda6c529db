//! A partition on the embedded log: orders in, tasks out, and everything still there after a crash.

mod house;
mod levels;
mod rests;
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

use house::{House, NAMESPACE, config, polls, workflow};

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
    let mut house = House::build();
    house.start();
    house.crash();
    let task = workflow(house.poll(TaskKind::Workflow));
    house.crash();
    house.complete(&task.run, vec![schedule()]);
    house.crash();
    let Delivery::Activity(mut task) = house.poll(TaskKind::Activity) else {
        panic!("an activity task comes")
    };
    task.receipt.take().expect("it can be given back").accept();
    assert_eq!(task.scheduled.input, Some(Bytes::from_static(b"amount")));
    house.crash();
    let target = activity_attempt::Target {
        scheduled_event_id: task.activity.scheduled_event_id,
        attempt: 1,
        claim: task.activity.claim,
        activity_id: String::new(),
    };
    let result = Some(Bytes::from_static(b"done"));
    let reply = house.order(Request::CompleteActivity(activity_attempt::Complete {
        target: Some(target),
        result,
        identity: "worker".into(),
        worker_version: None,
    }));
    assert_eq!(reply, Reply::Done);
    house.crash();
    let task = workflow(house.poll(TaskKind::Workflow));
    house.complete(
        &task.run,
        vec![command::CommandAttributes::CompleteWorkflow(close::Complete { result: None })],
    );
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
    drop(house.poll(TaskKind::Workflow));
    let task = workflow(house.poll(TaskKind::Workflow));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.attempt), Some(1));
    let expected =
        ["WorkflowStarted", "TaskScheduled", "TaskStarted", "TaskTimedOut", "TaskScheduled", "TaskStarted"];
    assert_eq!(house.names(), expected);
}

#[test]
fn a_timer_outlives_a_crash() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
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
        let task = workflow(house.poll(TaskKind::Workflow));
        assert_eq!((house.started().attempt, house.started().input), (attempt, Some("input".into())));
        house.crash();
        house.complete(
            &task.run,
            vec![command::CommandAttributes::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })],
        );
        house.crash();
        assert_eq!(house.names(), ["WorkflowStarted"], "the next one waits");
        house.advance(wait_ms);
        house.until(|house| house.names().contains(&"TaskScheduled"));
    }
    let task = workflow(house.poll(TaskKind::Workflow));
    house.complete(
        &task.run,
        vec![command::CommandAttributes::FailWorkflow(close::Fail { failure: Some(Bytes::new()) })],
    );
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
    let task = workflow(house.poll(TaskKind::Workflow));
    let result = Some(Bytes::from_static(b"result"));
    house.complete(
        &task.run,
        vec![command::CommandAttributes::CompleteWorkflow(close::Complete { result: result.clone() })],
    );
    house.crash();
    let last = house.started();
    assert_eq!((last.last_completion_result, last.continued_failure), (result, None));
    assert_eq!(house.order(Request::Terminate(close::Terminate::default())), Reply::Done);
    house.crash();
    assert_eq!(house.names().last(), Some(&"WorkflowTerminated"));
}

#[test]
fn a_signal_is_taken_once_whatever_happens_in_between() {
    let mut house = House::build();
    house.start();
    for _ in 0..3 {
        let reply = house.order(Request::Signal(signal::Signal {
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
fn a_request_greater_than_a_share_closes_the_partition_only_where_the_others_leave_no_room() {
    for (room_bytes, answer) in [(1 << 20, Ok(Reply::Done)), (0, Err(CallFailure::Busy))] {
        let room = UncommittedBudget::new(room_bytes);
        let mut house = House::build_with(Config { overlay_bytes_max: 1_000, room, ..config() });
        house.start_with(|begin| begin.input = Some(Bytes::from(vec![b'x'; 10_000])));
        let signal = signal::Signal { name: "changed".into(), ..signal::Signal::default() };
        // The turn that begins the commit counts what waits for it; the signal is met before it has ended.
        house.advance(1_000);
        assert_eq!(house.try_order(Request::Signal(signal)), answer);
        house.advance(1_000);
        house.until(|house| house.partition().is_idle());
        let signal = signal::Signal { name: "changed".into(), ..signal::Signal::default() };
        assert_eq!(house.try_order(Request::Signal(signal)), Ok(Reply::Done), "all is committed");
    }
}

#[test]
fn a_start_that_is_sent_again_begins_nothing_when_its_run_has_gone_on_and_ended() {
    let mut house = House::build();
    let first = house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    house.complete(&task.run, vec![command::CommandAttributes::ContinueAsNew(Box::default())]);
    let task = workflow(house.poll(TaskKind::Workflow));
    house.complete(&task.run, vec![command::CommandAttributes::CompleteWorkflow(Default::default())]);
    let last = house.started();
    house.crash();
    assert_eq!(house.start(), first, "it is told of the run that it had made");
    assert_eq!(house.started(), last, "the run is the one that was there");
    house.advance(59_000);
    assert_eq!(house.start(), first);
    assert_eq!(house.started(), last, "its run was followed a minute ago, less a second");
    house.start_with(|begin| begin.request_id = "another request".into());
    assert_ne!(house.started(), last);
}

#[test]
fn a_signal_that_is_sent_again_is_not_taken_by_the_run_that_continues_its_own() {
    let mut house = House::build();
    house.start();
    let signal = || {
        Request::Signal(signal::Signal {
            name: "changed".into(),
            request_id: "signal-1".into(),
            ..signal::Signal::default()
        })
    };
    let signals =
        |house: &mut House| house.names().iter().filter(|name| **name == "WorkflowSignaled").count();
    assert_eq!(house.order(signal()), Reply::Done);
    for _ in 0..2 {
        let task = workflow(house.poll(TaskKind::Workflow));
        house.complete(&task.run, vec![command::CommandAttributes::ContinueAsNew(Box::default())]);
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
        house.order(Request::Terminate(close::Terminate { reason: "enough".into(), ..Default::default() }));
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
    }
}

#[test]
fn a_question_never_shows_a_worker_news_outside_a_workflow_task() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let router = house.router.clone();
    let request = question();
    let mut question = Box::pin(async move { router.query(request).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    // The question is on its way to a worker, and none has come, when a signal arrives.
    let reply = house.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    let task = workflow(house.poll(TaskKind::Workflow));
    assert_eq!(task.queries.len(), 1, "it goes along with the workflow task");
    drop(question);
}

#[test]
fn a_question_whose_worker_dies_is_put_to_another() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let address =
        Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
    let request = question();
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
    let first = taken(house.poll(TaskKind::Workflow));
    // The worker has it, and is never heard of again.
    house.advance(11_000);
    let query_id = taken(house.poll(TaskKind::Workflow));
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
fn what_an_owner_fell_with_before_it_was_handed_out_is_handed_out_by_the_next_one() {
    let mut house = House::build();
    house.start();
    let first = workflow(house.poll(TaskKind::Workflow));
    house.crash();
    house.lost(&["another poll"], None);
    assert!(house.read().run.started_task().is_some(), "that poll has got it, as far as anybody knows");
    house.lost(&["another poll", "poll"], None);
    let again = workflow(house.poll(TaskKind::Workflow));
    let token = |run: &Run| run.started_task().map(Task::token);
    assert_ne!(token(&first.run), token(&again.run));
    house.complete(&again.run, vec![schedule()]);
    assert!(matches!(house.poll(TaskKind::Activity), Delivery::Activity(_)));
    house.crash();
    let claimed = |house: &mut House| {
        let run = house.read().run;
        run.activities.values().any(|activity| activity.is_started())
    };
    assert!(claimed(&mut house));
    house.lost(&["poll"], None);
    // Its timeout is not waited for: the clock stands.
    house.until(|house| !claimed(house));
    assert!(matches!(house.poll(TaskKind::Activity), Delivery::Activity(_)));
}

/// A house whose owner has ended after it had committed a claim.
fn of_a_committed_claim() -> (House, RunKey) {
    let mut house = House::build();
    house.start_with(|begin| begin.task_timeout_ms = 120_000);
    let task = workflow(house.poll(TaskKind::Workflow));
    let start = &task.run.start;
    let key = WorkflowKey::new(&start.namespace_id, &start.workflow_id).run(&start.run_id);
    house.partition().commit_soon();
    house.until(|house| house.partition().is_idle());
    house.crash();
    assert!(house.read().run.started_task().is_some());
    (house, key)
}

#[test]
fn a_claim_that_was_committed_just_before_its_owner_ended_is_found() {
    let (mut house, _key) = of_a_committed_claim();
    house.lost(&["another poll"], None);
    assert!(house.read().run.started_task().is_some());
    house.lost(&["poll"], None);
    // Its timeout is not waited for: the clock stands.
    house.until(|house| house.read().run.started_task().is_none());
    workflow(house.poll(TaskKind::Workflow));
}

#[test]
fn whoever_knows_the_run_is_heard_also_when_its_claim_is_not_looked_for_any_more() {
    let (mut house, key) = of_a_committed_claim();
    house.advance(61_000);
    // A record makes time pass.
    let reply = house.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    house.lost(&["poll"], None);
    assert!(house.read().run.started_task().is_some(), "nobody speaks so late of a poll");
    house.lost(&["another poll"], Some(key.clone()));
    assert!(house.read().run.started_task().is_some());
    house.lost(&["poll"], Some(key));
    house.until(|house| house.read().run.started_task().is_none());
    workflow(house.poll(TaskKind::Workflow));
}

#[test]
fn what_a_partition_had_sent_when_it_could_not_go_on_is_handed_out_by_its_next_life() {
    let mut house = House::build();
    house.start();
    let router = house.router.clone();
    let mut poll = Box::pin(async move { router.poll(polls(TaskKind::Workflow)).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut is_claimed = false;
    // The claim reaches the journal, and the partition does not hear of it.
    loop {
        assert!(poll.as_mut().poll(&mut context).is_pending());
        let now_ms = house.now_ms.load(Ordering::Relaxed);
        house.partition().turn(now_ms).expect("the partition goes on");
        match house.inbox.recv_timeout(patience::most()).expect("it goes on").1 {
            InboxMessage::Appended(_) if is_claimed => break,
            event => {
                is_claimed |= matches!(event, InboxMessage::Claim { .. });
                house.partition().handle(event, now_ms).expect("the partition goes on");
            }
        }
    }
    let lost = house.partition.take().expect("the house stands").abandon();
    assert!(matches!(&lost[..], [InboxMessage::PollsLost { run: Some(_), .. }]));
    assert!(poll.as_mut().poll(&mut context).is_pending(), "it waits for something else");
    house.rise(lost);
    workflow(house.poll(TaskKind::Workflow));
    assert_eq!(house.names().iter().filter(|name| **name == "TaskStarted").count(), 2);
}

#[test]
fn a_task_that_is_given_back_when_its_partition_cannot_go_on_is_handed_out_by_the_next_life() {
    let mut house = House::build();
    house.start();
    let Delivery::Workflow(task) = house.poll(TaskKind::Workflow) else { panic!("a workflow task comes") };
    // Nobody has taken it.
    drop(task);
    let now_ms = house.now_ms.load(Ordering::Relaxed);
    loop {
        let event = house.inbox.recv_timeout(patience::most()).expect("it is told").1;
        let is_given_back = matches!(event, InboxMessage::Release { .. });
        house.partition().handle(event, now_ms).expect("the partition goes on");
        if is_given_back {
            break;
        }
    }
    let lost = house.partition.take().expect("the house stands").abandon();
    assert!(matches!(&lost[..], [InboxMessage::Release { .. }]));
    house.rise(lost);
    workflow(house.poll(TaskKind::Workflow));
}

#[test]
fn a_worker_that_does_not_come_for_a_question_is_no_more_waited_for() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let router = house.router.clone();
    let own_queue = Poll {
        queue: "own".into(),
        sticky: true,
        normal_queue: Some("orders".into()),
        ..house::polls(TaskKind::Workflow)
    };
    // It asks for tasks of its own queue once, and goes.
    let mut asked = Box::pin(async move { router.poll(own_queue).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(asked.as_mut().poll(&mut context).is_pending());
    house.turn();
    drop(asked);
    house.complete_sticky(&task.run, "own", 5_000);
    assert!(house.read().run.head.sticky.is_some());
    let request = question();
    let router = house.router.clone();
    let mut question = Box::pin(async move { router.query(request).await });
    assert!(question.as_mut().poll(&mut context).is_pending());
    house.turn();
    assert!(house.read().run.head.sticky.is_some(), "it may still come");
    house.advance(6_000);
    assert!(matches!(house.poll(TaskKind::Workflow), Delivery::Query(_)), "any worker may answer");
    house.until(|house| house.read().run.head.sticky.is_none());
}

#[test]
fn a_question_about_a_run_that_is_deleted_ends_and_takes_no_poll_along() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let (asks, polls_on) = (house.router.clone(), house.router.clone());
    let mut question = Box::pin(async move { asks.query(question()).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(question.as_mut().poll(&mut context).is_pending());
    house.turn();
    // It waits for a poll when its run is deleted.
    assert_eq!(house.order(Request::Delete(Delete {})), Reply::Done);
    let mut poll = Box::pin(async move { polls_on.poll(polls(TaskKind::Workflow)).await });
    assert!(poll.as_mut().poll(&mut context).is_pending());
    let outcome = house.call(question);
    assert!(matches!(outcome, Ok(everlog_partition::QueryOutcome::Refused(_))), "{outcome:?}");
    // What comes next goes to the poll.
    house.start_with(|begin| begin.request_id = "another".into());
    workflow(house.call(poll).expect("it has waited on"));
}

#[test]
fn a_timer_fires_after_a_crash_although_a_task_waits_for_a_worker() {
    let mut house = House::build();
    house.start();
    let task = workflow(house.poll(TaskKind::Workflow));
    let hour = everlog_engine::time::Duration::from_ms(3_600_000);
    let order = timer::Start { timer_id: "t".into(), start_to_fire_timeout: Some(hour) };
    house.complete(&task.run, vec![command::CommandAttributes::StartTimer(order)]);
    let reply = house.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
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
    let reply = house.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    house.advance(1_000);
    house.until(|house| house.partition().is_idle());
}
