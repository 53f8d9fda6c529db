//! The ends of activities that nobody wished for: deadlines, and reports that are too large.

use bytes::Bytes;
use everlog_engine::api_types::{RetryPolicy, TimeoutType};
use everlog_engine::event::Attributes;
use everlog_engine::failure::Info;
use everlog_engine::machine::activity::Schedule;
use everlog_engine::time::Duration;
use expect_test::expect;

use crate::world::{World, application, delay, failure_of, hours, seconds, text};

fn with_activity(change: impl FnOnce(&mut Schedule)) -> World {
    let mut world = World::with(|settings| settings.blob_bytes_max = 1_000);
    world.start("order-1").task(|t| t.activity_with("a", "", change)).hush();
    world
}

fn attempts(maximum_attempts: i32) -> Option<RetryPolicy> {
    Some(RetryPolicy { maximum_attempts, ..RetryPolicy::default() })
}

#[test]
fn an_attempt_that_takes_too_long_is_made_again() {
    let mut world = with_activity(|s| s.retry_policy = attempts(2));
    world
        .claim_activity("a")
        .advance(seconds(10))
        .advance(seconds(1))
        .claim_activity("a")
        .advance(seconds(10));
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        @ 00:00:10
        < (a: attempt 2 at 00:00:11)
        @ 00:00:11
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
        @ 00:00:21
        < activity.started a attempt 2, activity.timed_out a StartToClose MaximumAttemptsReached, task.scheduled
    "#]]);
    let failure = last_failure(&world);
    assert_eq!(failure.message, "activity StartToClose timeout");
    assert_eq!(failure_of(failure.cause.as_ref()).message, "activity StartToClose timeout");
}

#[test]
fn a_silent_worker_loses_its_attempt() {
    let mut world = with_activity(|s| {
        s.heartbeat_timeout = delay(2_000);
        s.retry_policy = attempts(2);
    });
    world.claim_activity("a").heartbeat("a", "half").advance(seconds(2)).advance(seconds(1));
    world.claim_activity("a").advance(seconds(2));
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a reports half
        < (a lives)
        @ 00:00:02
        < (a: attempt 2 at 00:00:03)
        @ 00:00:03
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
        @ 00:00:05
        < activity.started a attempt 2, activity.timed_out a Heartbeat MaximumAttemptsReached, task.scheduled
    "#]]);
    let failure = last_failure(&world);
    let Some(Info::Timeout(timeout)) = failure.info else { panic!("{failure:?} is no timeout") };
    assert_eq!(timeout.last_heartbeat_details, Some(text("half")));
    assert_eq!(failure.source, "Server");
}

#[test]
fn an_activity_that_no_worker_takes_is_given_up() {
    let mut world = with_activity(|s| s.schedule_to_start_timeout = delay(3_000));
    world.advance(seconds(3));
    world.expect(expect![[r#"
        @ 00:00:03
        < activity.timed_out a ScheduleToStart NonRetryableFailure, task.scheduled
    "#]]);
}

#[test]
fn each_attempt_may_wait_for_a_worker_as_long() {
    let mut world = with_activity(|s| s.schedule_to_start_timeout = delay(3_000));
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {}))).hush();
    world.advance(seconds(4) - 1).advance(1);
    world.expect(expect![[r#"
        @ 00:00:01
        < (a: attempt 2 is ready)
        @ 00:00:03.999
        @ 00:00:04
        < activity.timed_out a ScheduleToStart NonRetryableFailure, task.scheduled
    "#]]);
}

#[test]
fn all_attempts_together_have_a_limit() {
    let mut world = with_activity(|s| s.schedule_to_close_timeout = delay(5_000));
    world.advance(1).claim_activity("a").heartbeat("a", "half").hush().advance(seconds(5) - 1);
    world.expect(expect![[r#"
        @ 00:00:05
        < activity.started a, activity.timed_out a ScheduleToClose NonRetryableFailure, task.scheduled
    "#]]);
    assert_eq!(last_failure(&world).message, "activity ScheduleToClose timeout");
}

#[test]
fn the_limit_of_all_attempts_ends_a_wait_too() {
    let mut world = with_activity(|s| {
        s.schedule_to_close_timeout = delay(5_000);
        s.retry_policy = Some(RetryPolicy { initial_interval: delay(4_000), ..RetryPolicy::default() });
    });
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {}))).hush();
    world.advance(seconds(4)).advance(seconds(1));
    world.expect(expect![[r#"
        @ 00:00:04
        < (a: attempt 2 is ready)
        @ 00:00:05
        < activity.timed_out a ScheduleToClose NonRetryableFailure, task.scheduled
    "#]]);
    assert_eq!(failure_of(last_failure(&world).cause.as_ref()).message, "boom");
}

#[test]
fn an_attempt_that_could_not_be_repeated_in_time_is_the_last() {
    let mut world = with_activity(|s| {
        s.schedule_to_close_timeout = delay(12_000);
        s.retry_policy = Some(RetryPolicy { initial_interval: delay(5_000), ..RetryPolicy::default() });
    });
    world.claim_activity("a").advance(seconds(10));
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        @ 00:00:10
        < activity.started a, activity.timed_out a ScheduleToClose Timeout, task.scheduled
    "#]]);
    let message =
        "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying";
    assert_eq!(last_failure(&world).message, message);
}

#[test]
fn of_deadlines_that_fall_together_the_one_that_began_first_counts() {
    let kind = |change: fn(&mut Schedule), take: bool| {
        let mut world = with_activity(|s| {
            s.retry_policy = attempts(1);
            change(s);
        });
        if take {
            world.claim_activity("a");
        }
        world.advance(hours(1));
        match last_failure(&world).info {
            Some(Info::Timeout(timeout)) => {
                TimeoutType::try_from(timeout.timeout_type).expect("a known type")
            }
            other => panic!("{other:?} is no timeout"),
        }
    };
    let both = |s: &mut Schedule| s.schedule_to_close_timeout = delay(10_000);
    assert_eq!(kind(both, false), TimeoutType::ScheduleToStart);
    assert_eq!(kind(both, true), TimeoutType::ScheduleToClose);
    let silent = |s: &mut Schedule| s.heartbeat_timeout = delay(10_000);
    assert_eq!(kind(silent, true), TimeoutType::StartToClose);
}

#[test]
fn after_a_long_night_the_earliest_deadline_counts() {
    let mut world = with_activity(|s| {
        s.schedule_to_close_timeout = delay(60_000);
        s.schedule_to_start_timeout = delay(3_000);
    });
    world.pass(hours(8)).crash().advance(1);
    world.expect(expect![[r#"
        @ 08:00:00
        ~ crash, 5 events replayed
        < activity.timed_out a ScheduleToStart NonRetryableFailure, task.scheduled
        @ 08:00:00.001
    "#]]);
}

#[test]
fn after_a_long_night_a_retry_that_is_too_late_is_not_offered() {
    let mut world = with_activity(|s| s.schedule_to_close_timeout = delay(60_000));
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {}))).hush();
    world.pass(hours(8)).crash().advance(1);
    world.expect(expect![[r#"
        @ 08:00:00
        ~ crash, 5 events replayed
        < activity.timed_out a ScheduleToClose NonRetryableFailure, task.scheduled
        @ 08:00:00.001
    "#]]);
}

#[test]
fn a_new_owner_grants_ten_seconds_to_workers() {
    let mut world = with_activity(|s| s.heartbeat_timeout = delay(2_000));
    world.claim_activity("a").pass(hours(8)).crash().hush();
    world.advance(seconds(10) - 1).heartbeat("a", "still here").advance(seconds(2));
    world.expect(expect![[r#"
        @ 08:00:09.999
        > a reports still here
        < (a lives)
        @ 08:00:10
        < (a: attempt 2 at 08:00:11)
        @ 08:00:11
        < (a: attempt 2 is ready)
        @ 08:00:11.999
    "#]]);
}

#[test]
fn a_result_that_is_too_large_fails_the_activity() {
    let mut world = with_activity(|_schedule| {});
    let target = world.claim_activity("a").hush().target("a");
    world.completes("a returns too much", target, large());
    world.expect(expect![[r#"
        > a returns too much
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
    "#]]);
    assert_eq!(last_failure(&world).message, "Complete result exceeds size limit.");
}

#[test]
fn a_report_that_is_too_large_fails_the_activity() {
    let mut world = with_activity(|_schedule| {});
    let target = world.claim_activity("a").hush().target("a");
    world.heartbeats("a reports too much", target, Some(large()));
    world.expect(expect![[r#"
        > a reports too much
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
        = cancel yourself
    "#]]);
    assert_eq!(last_failure(&world).message, "Heartbeat details exceed size limit.");
}

#[test]
fn a_failure_that_is_too_large_fails_the_activity_for_good() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").hush();
    world.fail_activity("a", "at length", Some(application(&"x".repeat(1_000), |_failure| {})));
    world.expect(expect![[r#"
        > a fails: at length
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
    "#]]);
    let failure = last_failure(&world);
    assert_eq!(failure.message, "Failure exceeds size limit.");
    assert_eq!(failure_of(failure.cause.as_ref()).message, "boom");
}

#[test]
fn last_words_that_are_too_large_are_not_kept() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").heartbeat("a", "half");
    let order = everlog_engine::machine::activity_attempt::Fail {
        target: world.target("a"),
        failure: None,
        identity: "hand".into(),
        last_heartbeat_details: Some(large()),
        ..Default::default()
    };
    world.order(everlog_engine::request::Request::FailActivity(order));
    let activity = world.run().activities.values().next().expect("it is open");
    assert_eq!((activity.attempt, activity.heartbeat_details.clone()), (2, Some(text("half"))));
}

#[test]
fn a_kept_failure_is_cut_to_its_limit() {
    let mut world = World::with(|settings| settings.kept_failure_bytes_max = 256);
    world.start("order-1").task(|t| t.activity("a")).claim_activity("a");
    world.fail_activity("a", "at length", Some(application(&"x".repeat(1_000), |_failure| {})));
    let activity = world.run().activities.values().next().expect("it is open");
    let stored = activity.last_failure.clone().expect("it failed");
    assert!(stored.len() <= 256);
    assert_eq!(failure_of(Some(&stored)).message, "boom");
}

#[test]
fn details_of_a_cancellation_that_are_too_large_fail_the_activity() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").signal("stop").task(|t| t.cancel_activity("a")).hush();
    let order = everlog_engine::machine::activity_attempt::Cancel {
        target: world.target("a"),
        details: Some(large()),
        identity: "hand".into(),
        worker_version: None,
    };
    world.order(everlog_engine::request::Request::CancelActivity(order));
    assert_eq!(last_failure(&world).message, "Cancel details exceed size limit.");
}

#[test]
fn a_worker_may_be_told_how_long_to_wait_at_most() {
    let mut world =
        with_activity(|s| s.start_to_close_timeout = Some(Duration { seconds: i64::MAX, nanos: 0 }));
    world.claim_activity("a").advance(hours(24 * 365)).complete_activity("a");
    assert!(world.run().activities.is_empty(), "a hundred years are never over");
}

/// The failure of the last activity that failed or timed out.
fn last_failure(world: &World) -> everlog_engine::failure::Failure {
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let failure = stored.events.iter().rev().find_map(|event| match &event.attributes {
        Some(Attributes::ActivityFailed(failed)) => Some(failed.failure.clone()),
        Some(Attributes::ActivityTimedOut(out)) => Some(out.failure.clone()),
        _other => None,
    });
    failure_of(failure.expect("an activity failed").as_ref())
}

fn large() -> Bytes {
    vec![b' '; 1_001].into()
}
