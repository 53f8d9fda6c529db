//! Activities that operators pause, reset and change.

use bytes::Bytes;
use everlog_engine::api_types::RetryPolicy;
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::payload::PriorityPatch;
use everlog_engine::time::Duration;
use expect_test::expect;

use crate::world::{World, all, application, delay, minutes, seconds, text};

fn with_activity(change: impl FnOnce(&mut everlog_engine::machine::activity::Schedule)) -> World {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity_with("a", "", change)).hush();
    world
}

fn attempts(maximum_attempts: i32) -> Option<RetryPolicy> {
    Some(RetryPolicy { maximum_attempts, ..RetryPolicy::default() })
}

fn the_activity(world: &World) -> Activity {
    world.run().activities.values().next().expect("it is open").as_ref().clone()
}

fn flaky() -> Option<Bytes> {
    Some(application("Flaky", |_failure| {}))
}

#[test]
fn a_paused_activity_waits_until_it_is_unpaused() {
    let mut world = with_activity(|_schedule| {});
    world.pause_activity("a").claim_activity("a").advance(minutes(60)).crash();
    world.unpause_activity("a").claim_activity("a").complete_activity("a");
    world.expect(expect![[r#"
        > a is to be paused
        < (a: paused)
        > a worker takes a
        = gone
        @ 01:00:00
        ~ crash, 5 events replayed
        > a is to be unpaused
        < (a: unpaused, offered)
        > a worker takes a
        < (a is taken)
        > a returns
        < activity.started a, activity.completed a, task.scheduled
    "#]]);
}

#[test]
fn it_stays_as_it_was_paused_first_and_what_is_not_paused_is_not_unpaused() {
    let mut world = with_activity(|_schedule| {});
    world.pause_activity("a").pauses("it is to be paused again", all()).pause_activity("b");
    world.unpause_activity("a").unpause_activity("a").unpause_activity("b").pauses("nobody is named", None);
    world.expect(expect![[r#"
        > a is to be paused
        < (a: paused)
        > it is to be paused again
        = nothing to do
        > b is to be paused
        ! not found: Can't find pending activity with such ID. Invalid activityID or activity already completed
        > a is to be unpaused
        < (a: unpaused, offered)
        > a is to be unpaused
        = nothing to do
        > b is to be unpaused
        ! not found: Can't find pending activity with such ID. Invalid activityID or activity already completed
        > nobody is named
        ! not found: Can't find pending activity with such ID. Invalid activityID or activity already completed
    "#]]);
}

#[test]
fn an_attempt_in_hand_goes_on_and_hears_of_the_pause() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").pause_activity("a").heartbeat("a", "half").complete_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a is to be paused
        < (a: paused, in hand)
        > a reports half
        < (a lives)
        = paused
        > a returns
        < activity.started a, activity.completed a, task.scheduled
    "#]]);
}

#[test]
fn one_that_fails_while_it_is_paused_waits_whether_or_not_its_policy_allows_more() {
    let mut world = with_activity(|s| s.retry_policy = attempts(1));
    world.claim_activity("a").pause_activity("a").fail_activity("a", "while paused", flaky());
    world.advance(minutes(60)).unpause_activity("a").claim_activity("a").fail_activity("a", "again", flaky());
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a is to be paused
        < (a: paused, in hand)
        > a fails: while paused
        < (a: attempt 2 is paused)
        @ 01:00:00
        > a is to be unpaused
        < (a: unpaused, offered)
        > a worker takes a
        < (a is taken)
        > a fails: again
        < activity.started a attempt 2, activity.failed a MaximumAttemptsReached, task.scheduled
    "#]]);
    let mut world = with_activity(|_schedule| {});
    let fatal = Some(application("Fatal", |failure| failure.non_retryable = true));
    world.claim_activity("a").pause_activity("a").fail_activity("a", "for good", fatal);
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a is to be paused
        < (a: paused, in hand)
        > a fails: for good
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
    "#]]);
}

#[test]
fn a_time_out_of_an_attempt_counts_while_it_is_paused_and_that_of_a_wait_does_not() {
    let mut world = with_activity(|s| {
        s.start_to_close_timeout = delay(5_000);
        s.schedule_to_start_timeout = delay(10_000);
    });
    world.claim_activity("a").pause_activity("a").advance(seconds(60));
    world.unpause_activity("a").advance(seconds(60));
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a is to be paused
        < (a: paused, in hand)
        @ 00:00:05
        < (a: attempt 2 is paused)
        @ 00:01:00
        > a is to be unpaused
        < (a: unpaused, offered)
        @ 00:01:10
        < activity.timed_out a ScheduleToStart NonRetryableFailure, task.scheduled
        @ 00:02:00
    "#]]);
    let mut world = with_activity(|s| s.schedule_to_close_timeout = delay(30_000));
    world.pause_activity("a").advance(seconds(60));
    world.expect(expect![[r#"
        > a is to be paused
        < (a: paused)
        @ 00:00:30
        < activity.timed_out a ScheduleToClose NonRetryableFailure, task.scheduled
        @ 00:01:00
    "#]]);
}

#[test]
fn a_retry_does_not_come_while_it_is_paused() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "so", flaky()).pause_activity("a").advance(minutes(1));
    world.unpauses("a", |order| order.jitter_ms = 10_000).advance(seconds(10)).claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a fails: so
        < (a: attempt 2 at 00:00:01)
        > a is to be paused
        < (a: paused, at 00:00:01)
        @ 00:01:00
        > a is to be unpaused
        < (a: unpaused, at 00:01:06.521)
        @ 00:01:06.521
        < (a: attempt 2 is ready)
        @ 00:01:10
        > a worker takes a
        < (a is taken)
    "#]]);
}

#[test]
fn unpaused_it_may_begin_again() {
    let mut world = with_activity(|s| s.retry_policy = attempts(2));
    world.claim_activity("a").heartbeat("a", "half").fail_activity("a", "so", flaky()).pause_activity("a");
    world.unpauses("a", |order| (order.resets_attempts, order.resets_heartbeat) = (true, true));
    assert_eq!((the_activity(&world).attempt, the_activity(&world).heartbeat_details), (1, None));
    world.claim_activity("a").fail_activity("a", "first again", flaky());
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a reports half
        < (a lives)
        > a fails: so
        < (a: attempt 2 at 00:00:01)
        > a is to be paused
        < (a: paused, at 00:00:01)
        > a is to be unpaused
        < (a: unpaused, attempt 1, its report forgotten, offered)
        > a worker takes a
        < (a is taken)
        > a fails: first again
        < (a: attempt 2 at 00:00:01)
    "#]]);
}

#[test]
fn a_reset_counts_from_one_and_ends_the_wait() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "so", flaky()).resets("a", |_order| {}).claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a fails: so
        < (a: attempt 2 at 00:00:01)
        > a is to be reset
        < (a: attempt 1, offered)
        > a worker takes a
        < (a is taken)
    "#]]);
    let mut world = with_activity(|_schedule| {});
    world.pause_activity("a").resets("a", |order| order.keeps_paused = true).claim_activity("a");
    world.resets("a", |_order| {}).claim_activity("a");
    world.expect(expect![[r#"
        > a is to be paused
        < (a: paused)
        > a is to be reset
        = nothing to do
        > a worker takes a
        = gone
        > a is to be reset
        < (a: unpaused, offered)
        > a worker takes a
        < (a is taken)
    "#]]);
}

#[test]
fn a_worker_hears_of_a_reset_until_its_attempt_ends_and_its_report_is_the_next_ones() {
    let mut world = with_activity(|s| s.retry_policy = attempts(3));
    world.claim_activity("a").fail_activity("a", "so", flaky()).advance(seconds(1)).claim_activity("a");
    world.hush().resets("a", |_order| {}).heartbeat("a", "half").fail_activity("a", "was reset", flaky());
    assert_eq!(the_activity(&world).heartbeat_details, Some(text("half")));
    world.advance(seconds(1)).claim_activity("a").heartbeat("a", "more");
    world.expect(expect![[r#"
        > a is to be reset
        < (a: attempt 1, its worker will hear, in hand)
        > a reports half
        < (a lives)
        = reset
        > a fails: was reset
        < (a: attempt 2 at 00:00:02)
        @ 00:00:02
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
        > a reports more
        < (a lives)
    "#]]);
}

#[test]
fn a_report_that_is_forgotten_with_a_reset_stays_forgotten() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").heartbeat("a", "half").resets("a", |order| order.resets_heartbeat = true);
    world.heartbeat("a", "late").fail_activity("a", "was reset", flaky());
    assert_eq!(the_activity(&world).heartbeat_details, None);
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a reports half
        < (a lives)
        > a is to be reset
        < (a: its worker will hear, its report forgotten, in hand)
        > a reports late
        < (a lives)
        = reset
        > a fails: was reset
        < (a: attempt 2 at 00:00:01)
    "#]]);
}

#[test]
fn after_a_reset_the_only_attempt_is_the_last() {
    let mut world = with_activity(|s| s.retry_policy = attempts(1));
    world.claim_activity("a").resets("a", |_order| {}).fail_activity("a", "was reset", flaky());
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a is to be reset
        < (a: its worker will hear, in hand)
        > a fails: was reset
        < activity.started a, activity.failed a MaximumAttemptsReached, task.scheduled
    "#]]);
}

#[test]
fn other_options_are_made_valid_and_restored() {
    let mut world = with_activity(|s| s.start_to_close_timeout = delay(60_000));
    let first = the_activity(&world).options();
    let patch = ActivityOptionsPatch {
        task_queue: Some("other".into()),
        schedule_to_close_timeout: Some(Duration::from_ms(20_000)),
        heartbeat_timeout: Some(Duration::from_ms(90_000)),
        maximum_attempts: Some(7),
        priority_patch: Some(PriorityPatch { priority_key: Some(2), ..PriorityPatch::default() }),
        ..ActivityOptionsPatch::default()
    };
    world.gives_options("a", Some(patch));
    let options = the_activity(&world).options();
    let spans = (
        options.schedule_to_close_ms,
        options.schedule_to_start_ms,
        options.start_to_close_ms,
        options.heartbeat_timeout_ms,
    );
    assert_eq!(spans, (20_000, 20_000, 20_000, 20_000), "none is longer than the whole");
    assert_eq!(
        (options.task_queue.as_str(), options.priority),
        ("other", Some(Bytes::from_static(b"\x08\x02")))
    );
    assert_eq!(options.retry_policy.expect("there is one").maximum_attempts, 7);
    world.gives_options("a", None).gives_options("a", None);
    assert_eq!(the_activity(&world).options(), first);
    let bad = ActivityOptionsPatch { task_queue: Some(String::new()), ..ActivityOptionsPatch::default() };
    world.gives_options("a", Some(bad));
    let negative = Some(Duration::from_ms(-1));
    world.gives_options(
        "a",
        Some(ActivityOptionsPatch { start_to_close_timeout: negative, ..ActivityOptionsPatch::default() }),
    );
    let steep = Some(0.5);
    world.gives_options(
        "a",
        Some(ActivityOptionsPatch { backoff_coefficient: steep, ..ActivityOptionsPatch::default() }),
    );
    world.expect(expect![[r#"
        > a is to have other options
        < (a: other options, offered)
        > a is to have its first options
        < (a: other options, offered)
        > a is to have its first options
        = nothing to do
        > a is to have other options
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: missing task queue name. ActivityId=a ActivityType=Charge
        > a is to have other options
        ! invalid: Invalid StartToCloseTimeout for ScheduleActivityTaskCommand: negative duration. ActivityId=a ActivityType=Charge
        > a is to have other options
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: BackoffCoefficient cannot be less than 1 on retry policy.. ActivityId=a ActivityType=Charge
    "#]]);
}

#[test]
fn an_offer_from_before_is_void() {
    let mut world = with_activity(|_schedule| {});
    let (id, before) = (the_activity(&world).scheduled_event_id, the_activity(&world).stamp);
    world.pause_activity("a").unpause_activity("a").hush();
    let claim = everlog_engine::machine::activity_attempt::Claim {
        scheduled_event_id: id,
        attempt: 1,
        stamp: before,
        ..Default::default()
    };
    let outcome = world.order(everlog_engine::request::Request::ClaimActivity(claim));
    assert_eq!(outcome.reply, everlog_engine::Reply::Gone);
    world.claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
    "#]]);
}

#[test]
fn a_wait_is_counted_anew_by_another_policy() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "so", flaky());
    let longer = Some(Duration::from_ms(60_000));
    let patch = ActivityOptionsPatch {
        initial_interval: longer,
        maximum_interval: longer,
        ..ActivityOptionsPatch::default()
    };
    world.gives_options("a", Some(patch)).advance(minutes(1)).claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a fails: so
        < (a: attempt 2 at 00:00:01)
        > a is to have other options
        < (a: other options, at 00:01:00)
        @ 00:01:00
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
    "#]]);
}

#[test]
fn the_workflow_cancels_what_is_paused_and_a_closed_run_shows_it() {
    let mut world = with_activity(|_schedule| {});
    world.pause_activity("a").signal("go").task(|t| t.cancel_activity("a"));
    world.expect(expect![[r#"
        > a is to be paused
        < (a: paused)
        > signal go
        < workflow.signaled go, task.scheduled
        > task: cancel activity a
        < task.started, task.completed, activity.cancel_requested a, (waits: activity.canceled a), activity.canceled a, task.scheduled
    "#]]);
    let mut world = with_activity(|_schedule| {});
    world.pause_activity("a").terminate("enough").hush();
    assert!(the_activity(&world).pause.is_some());
    world.unpause_activity("a");
    world.expect(expect![[r#"
        > a is to be unpaused
        ! not found: workflow execution already completed
    "#]]);
}
