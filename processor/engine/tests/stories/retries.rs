//! Retries: a run that fails or takes too long is followed by the next attempt, as long as its policy allows.

use bytes::Bytes;
use everlog_engine::api_types::{Initiator, RetryPolicy, RetryState, TimeoutType};
use everlog_engine::event::Attributes;
use everlog_engine::failure::Info;
use everlog_engine::machine::close::Failed;
use everlog_engine::machine::start::{Begin, Started};
use expect_test::expect;

use crate::world::{World, application, delay, failure_of, fields, hours, minutes, seconds, text};

/// The Started event of the current run.
pub fn started(world: &World) -> Started {
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    match &stored.events[0].attributes {
        Some(Attributes::WorkflowStarted(started)) => started.as_ref().clone(),
        other => panic!("{other:?} starts nothing"),
    }
}

/// The last event of a run.
pub fn closing(world: &World, run_id: &str) -> Attributes {
    let stored = world.replica.stored(run_id).expect("the run is there");
    stored.events.last().and_then(|event| event.attributes.clone()).expect("it has events")
}

fn failed(world: &World, run_id: &str) -> Failed {
    match closing(world, run_id) {
        Attributes::WorkflowFailed(failed) => failed,
        other => panic!("{other:?} is no failure"),
    }
}

pub fn policy(attempts: i32) -> Option<RetryPolicy> {
    Some(RetryPolicy { maximum_attempts: attempts, ..RetryPolicy::default() })
}

fn flaky() -> Bytes {
    application("Flaky", |_failure| {})
}

/// A workflow with a policy, not told.
fn retried(attempts: i32) -> World {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.retry_policy = policy(attempts)).hush();
    world
}

#[test]
fn a_run_that_fails_is_tried_again_until_its_attempts_are_used_up() {
    let mut world = World::new();
    world.start_with("order-1", "with 3 attempts", |begin| begin.retry_policy = policy(3));
    world.task(|t| t.fail(flaky())).advance(seconds(1)).task(|t| t.fail(flaky())).crash();
    world.advance(seconds(2)).task(|t| t.fail(flaky()));
    world.expect(expect![[r#"
        > start order-1 with 3 attempts
        < workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 3: workflow.started attempt 3, first task in 2s
        ~ crash, 11 events replayed
        @ 00:00:03
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed MaximumAttemptsReached
    "#]]);
}

#[test]
fn a_start_that_is_sent_again_is_told_of_the_run_that_it_had_made() {
    let mut world = World::new();
    let start = |begin: &mut Begin| {
        begin.request_id = "a".into();
        begin.retry_policy = policy(2);
    };
    world.start_with("order-1", "with 2 attempts", start).task(|t| t.fail(flaky()));
    world.start_with("order-1", "again", start).crash();
    world.advance(seconds(1)).task(|t| t.complete("done")).start_with("order-1", "again", start);
    world.start_with("order-1", "by another", |begin| begin.retry_policy = policy(2));
    world.expect(expect![[r#"
        > start order-1 with 2 attempts
        < workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        > start order-1 again
        = it is run 1, failed
        ~ crash, 6 events replayed
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > start order-1 again
        = it is run 1, failed
        > start order-1 by another
        < run 3: workflow.started, task.scheduled
    "#]]);
}

#[test]
fn an_attempt_begins_as_the_first_one_did() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| {
        begin.input = Some(text("input"));
        begin.header = Some(text("header"));
        begin.memo = Some(fields(&[("a", Some("memo"))]));
        begin.search_attributes = Some(fields(&[("a", Some("attribute"))]));
        begin.links = vec![text("link")];
        begin.user_metadata = Some(text("summary"));
        begin.priority = Some(text("priority"));
        begin.retry_policy = policy(0);
        begin.execution_timeout_ms = hours(1);
        begin.run_timeout_ms = minutes(10);
        begin.last_completion_result = Some(text("result"));
    });
    let (first, event) = (world.run().start.clone(), started(&world));
    assert_eq!(event.retry_policy.as_ref().and_then(|policy| policy.initial_interval), delay(1_000));
    assert_eq!((event.attempt, event.initiator), (1, Initiator::Unspecified.into()));
    world.advance(minutes(5)).task(|t| t.memo(&[("a", Some("changed"))]).fail(flaky()));
    let (second, again) = (world.run().start.clone(), started(&world));
    let closing = failed(&world, &first.run_id);
    assert_eq!(
        (closing.retry_state, &closing.new_execution_run_id),
        (RetryState::InProgress.into(), &second.run_id)
    );
    let expected = Started {
        prev_auto_reset_points: again.prev_auto_reset_points.clone(),
        continued_execution_run_id: first.run_id.clone(),
        initiator: Initiator::Retry.into(),
        continued_failure: Some(flaky()),
        last_completion_result: None,
        original_execution_run_id: second.run_id.clone(),
        identity: String::new(),
        attempt: 2,
        first_workflow_task_backoff: delay(1_000),
        ..event
    };
    assert_eq!(again, expected, "what the workflow changed of itself is not handed on");
    let points = again.prev_auto_reset_points.expect("a task of the first run was completed").points;
    assert_eq!(points.iter().map(|point| &point.run_id).collect::<Vec<_>>(), [&first.run_id]);
    assert_eq!((&second.first_run_id, second.chain_start_ms), (&first.run_id, first.start_ms));
    assert_eq!(second.run_expires_ms, second.start_ms + 1_000 + minutes(10), "each run has its time");
    assert_eq!(second.execution_expires_ms, first.execution_expires_ms, "and the chain has its own");
    let stored = world.replica.stored(&second.run_id).expect("the run is there");
    assert_eq!(
        (&stored.events[0].links, &stored.events[0].user_metadata),
        (&vec![text("link")], &None),
        "links go along, a summary does not"
    );
    assert_ne!(second.request_id, first.request_id);
}

#[test]
fn what_cannot_be_mended_is_not_tried_again() {
    let fatal = application("Fatal", |failure| failure.non_retryable = true);
    let mut world = retried(0);
    world.task(|t| t.fail(fatal));
    world.start_with("order-1", "with a list", |begin| {
        let listed = vec!["Listed".into()];
        begin.retry_policy =
            Some(RetryPolicy { non_retryable_error_types: listed, ..RetryPolicy::default() });
    });
    world.task(|t| t.fail(application("Listed", |_failure| {})));
    world.start("order-1").task(|t| t.fail(flaky()));
    world.expect(expect![[r#"
        > task: fail the workflow
        < task.started, task.completed, workflow.failed NonRetryableFailure
        > start order-1 with a list
        < run 2: workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed NonRetryableFailure
        > start order-1
        < run 3: workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed RetryPolicyNotSet
    "#]]);
}

#[test]
fn a_failure_may_ask_for_a_wait_within_the_policy() {
    let asks = |ms: i64| application("Slow", |failure| failure.next_retry_delay = delay(ms));
    let mut world = retried(0);
    world.task(|t| t.fail(asks(seconds(30))));
    assert_eq!(world.run().start.first_task_backoff_ms, seconds(30));
    world.advance(seconds(30)).task(|t| t.fail(asks(hours(1))));
    assert_eq!(world.run().start.first_task_backoff_ms, seconds(100), "the policy's longest wait");
    world.advance(seconds(100)).task(|t| t.fail(asks(0)));
    assert_eq!(world.run().start.first_task_backoff_ms, seconds(100), "no wait at all is not asked for");
}

#[test]
fn a_run_that_takes_too_long_is_tried_again() {
    let mut world = World::new();
    world.start_with("order-1", "for 10 s a run", |begin| {
        begin.retry_policy = policy(2);
        begin.run_timeout_ms = seconds(10);
        begin.last_completion_result = Some(text("result"));
    });
    let first = world.run().start.run_id.clone();
    world.claim().advance(seconds(10));
    let event = started(&world);
    assert_eq!(event.last_completion_result, Some(text("result")));
    let failure = failure_of(event.continued_failure.as_ref());
    let timeout_type = i32::from(TimeoutType::StartToClose);
    assert!(matches!(failure.info, Some(Info::Timeout(timeout)) if timeout.timeout_type == timeout_type));
    assert_eq!((failure.message.as_str(), failure.source.as_str()), ("workflow timeout", "Server"));
    assert!(matches!(closing(&world, &first), Attributes::WorkflowTimedOut(out)
        if out.new_execution_run_id == world.run().start.run_id));
    world.advance(seconds(11));
    world.expect(expect![[r#"
        > start order-1 for 10 s a run
        < workflow.started, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        @ 00:00:10
        < task.failed ForceCloseCommand, workflow.timed_out InProgress, run 2: workflow.started attempt 2, first task in 1s
        @ 00:00:11
        < (the delay is over), task.scheduled
        @ 00:00:21
        < workflow.timed_out MaximumAttemptsReached
    "#]]);
}

#[test]
fn a_chain_has_its_time_however_often_it_is_tried() {
    let mut world = World::new();
    world.start_with("order-1", "for 10 s in all", |begin| {
        begin.retry_policy = policy(0);
        begin.execution_timeout_ms = seconds(10);
    });
    for wait_s in [1, 2, 4] {
        world.task(|t| t.fail(flaky())).advance(seconds(wait_s));
    }
    world.task(|t| t.fail(flaky()));
    world.start_with("order-2", "for 10 s in all", |begin| {
        begin.retry_policy = policy(0);
        begin.execution_timeout_ms = seconds(10);
    });
    world.advance(seconds(10));
    world.expect(expect![[r#"
        > start order-1 for 10 s in all
        < workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 3: workflow.started attempt 3, first task in 2s
        @ 00:00:03
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 4: workflow.started attempt 4, first task in 4s
        @ 00:00:07
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed Timeout
        > start order-2 for 10 s in all
        < run 5: workflow.started, task.scheduled
        @ 00:00:17
        < workflow.timed_out Timeout
    "#]]);
}

#[test]
fn whoever_ends_a_run_ends_its_chain() {
    let mut world = retried(0);
    world.task(|t| t.cancel());
    world.start_with("order-1", "", |begin| begin.retry_policy = policy(0)).terminate("enough");
    world.start_with("order-1", "", |begin| begin.retry_policy = policy(0)).task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        > start order-1
        < run 2: workflow.started, task.scheduled
        > terminate: enough
        < workflow.terminated "enough"
        > start order-1
        < run 3: workflow.started, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
    let mut world = retried(0);
    world.cancel().task(|t| t.fail(flaky())).terminate("enough");
    world.expect(expect![[r#"
        > cancel
        < workflow.cancel_requested
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        > terminate: enough
        < workflow.terminated "enough"
    "#]]);
}

#[test]
fn a_signal_waits_with_the_attempt() {
    let mut world = retried(0);
    world.task(|t| t.fail(flaky())).signal("one").advance(seconds(1)).task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        > signal one
        < workflow.signaled one
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_run_made_by_the_workflow_is_retried_only_if_the_command_says_so() {
    let mut world = retried(2);
    world.task(|t| t.fail(flaky())).advance(seconds(1)).task(|t| {
        t.continue_as_new(|again| {
            again.retry_policy = policy(2);
            again.cron_schedule = "@hourly".into();
        })
    });
    let event = started(&world);
    assert_eq!((event.attempt, event.initiator), (1, Initiator::Workflow.into()), "attempts begin anew");
    assert_eq!((event.cron_schedule.as_str(), event.retry_policy.is_some()), ("@hourly", true));
    world.task(|t| t.fail(flaky())).advance(seconds(1)).task(|t| t.continue_as_new(|_again| {}));
    assert_eq!((started(&world).retry_policy, started(&world).cron_schedule), (None, String::new()));
    world.task(|t| t.fail(flaky()));
    world.expect(expect![[r#"
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        @ 00:00:01
        < (the delay is over), task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 3: workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 4: workflow.started attempt 2, first task in 1s
        @ 00:00:02
        < (the delay is over), task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 5: workflow.started, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed RetryPolicyNotSet
    "#]]);
}

#[test]
fn a_command_may_call_itself_a_retry() {
    let mut world = World::new();
    world.start("order-1");
    for attempt in [2, 3] {
        world.task(|t| t.continue_as_new(|again| again.initiator = Initiator::Retry.into()));
        assert_eq!(started(&world).attempt, attempt);
    }
    world.task(|t| t.continue_as_new(|_again| {}));
    assert_eq!(started(&world).attempt, 1);
}

#[test]
fn links_go_with_a_run_that_continues_as_new() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.links = vec![text("link")]);
    for _run in 0..2 {
        world.task(|t| t.continue_as_new(|_again| {}));
        let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
        assert_eq!(stored.events[0].links, vec![text("link")]);
    }
}

#[test]
fn a_policy_that_contradicts_itself_starts_nothing() {
    let mut world = World::new();
    world.start_with("order-1", "with half a wait", |begin| {
        begin.retry_policy = Some(RetryPolicy { backoff_coefficient: 0.5, ..RetryPolicy::default() });
    });
    world.expect(expect![[r#"
        > start order-1 with half a wait
        ! invalid: BackoffCoefficient cannot be less than 1 on retry policy.
    "#]]);
}
