//! Schedules: a run of a cron schedule is followed by the next one, however it ended by itself.

use everlog_engine::api_types::Initiator;
use everlog_engine::event::Attributes;
use expect_test::expect;

use super::retries::{closing, policy, started};
use crate::world::{World, application, delay, fields, hours, minutes, seconds, text};

/// A workflow of a schedule, not told. The world begins at 01:46:40.
fn scheduled(schedule: &str) -> World {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.cron_schedule = schedule.into()).hush();
    world
}

fn flaky() -> bytes::Bytes {
    application("Flaky", |_failure| {})
}

#[test]
fn runs_of_a_schedule_come_at_its_moments() {
    let mut world = World::new();
    world.start_with("order-1", "each hour", |begin| begin.cron_schedule = "0 * * * *".into());
    world.advance(minutes(13)).advance(seconds(20)).task(|t| t.complete("one"));
    world.crash().advance(minutes(60));
    // It takes from 03:00 to 05:30: the runs of 04:00 and 05:00 are left out.
    world.advance(minutes(150)).task(|t| t.complete("two"));
    world.expect(expect![[r#"
        > start order-1 each hour
        < workflow.started, first task in 800s
        @ 00:13:00
        @ 00:13:20
        < (the delay is over), task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed, run 2: workflow.started, first task in 1h
        ~ crash, 6 events replayed
        @ 01:13:20
        < (the delay is over), task.scheduled
        @ 03:43:20
        > task: complete the workflow
        < task.started, task.completed, workflow.completed, run 3: workflow.started, first task in 30m
    "#]]);
}

#[test]
fn a_run_gets_the_last_result_and_the_last_failure() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| {
        begin.cron_schedule = "@every 1m".into();
        begin.input = Some(text("input"));
        begin.header = Some(text("header"));
        begin.memo = Some(fields(&[("a", Some("memo"))]));
        begin.links = vec![text("link")];
    });
    let (first, event) = (world.run().start.run_id.clone(), started(&world));
    assert_eq!((event.initiator, event.attempt), (Initiator::Cron.into(), 1), "the first one, too");
    assert_eq!(
        (event.cron_schedule.as_str(), event.first_workflow_task_backoff),
        ("@every 1m", delay(60_000))
    );
    world.advance(minutes(1)).task(|t| t.complete("one"));
    let second = started(&world);
    assert!(matches!(closing(&world, &first), Attributes::WorkflowCompleted(completed)
        if completed.new_execution_run_id == world.run().start.run_id));
    assert_eq!((second.last_completion_result, second.continued_failure), (Some(text("one")), None));
    assert_eq!((second.initiator, second.attempt), (Initiator::Cron.into(), 1));
    assert_eq!((second.input, second.header, second.memo), (event.input, event.header, event.memo));
    assert_eq!(
        (second.continued_execution_run_id, second.first_execution_run_id),
        (first.clone(), first.clone())
    );
    world.advance(minutes(1)).task(|t| t.fail(flaky()));
    let third = started(&world);
    assert_eq!((third.last_completion_result, third.continued_failure), (Some(text("one")), Some(flaky())));
    world.advance(minutes(1)).task(|t| t.complete("three"));
    let fourth = started(&world);
    assert_eq!((fourth.last_completion_result, fourth.continued_failure), (Some(text("three")), None));
}

#[test]
fn a_run_that_fails_is_tried_again_before_its_schedule_goes_on() {
    let mut world = World::new();
    world.start_with("order-1", "each hour, twice", |begin| {
        begin.cron_schedule = "@hourly".into();
        begin.retry_policy = policy(2);
    });
    for wait_s in [800, 1, 3_599] {
        world.advance(seconds(wait_s)).task(|t| t.fail(flaky()));
    }
    world.expect(expect![[r#"
        > start order-1 each hour, twice
        < workflow.started, first task in 800s
        @ 00:13:20
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        @ 00:13:21
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed MaximumAttemptsReached, run 3: workflow.started, first task in 3599s
        @ 01:13:20
        < (the delay is over), task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 4: workflow.started attempt 2, first task in 1s
    "#]]);
}

#[test]
fn a_run_that_takes_too_long_is_followed_as_well() {
    let mut world = World::new();
    world.start_with("order-1", "each hour for 10 s", |begin| {
        begin.cron_schedule = "@hourly".into();
        begin.run_timeout_ms = seconds(10);
        begin.execution_timeout_ms = hours(2);
    });
    world.advance(hours(3));
    world.expect(expect![[r#"
        > start order-1 each hour for 10 s
        < workflow.started, first task in 800s
        @ 00:13:20
        < (the delay is over), task.scheduled
        @ 00:13:30
        < workflow.timed_out RetryPolicyNotSet, run 2: workflow.started, first task in 3590s
        @ 01:13:20
        < (the delay is over), task.scheduled
        @ 01:13:30
        < workflow.timed_out RetryPolicyNotSet, run 3: workflow.started, first task in 3590s
        @ 02:00:00
        < workflow.timed_out Timeout
        @ 03:00:00
    "#]]);
}

#[test]
fn whoever_ends_a_run_ends_its_schedule() {
    let mut world = scheduled("@hourly");
    world.terminate("enough");
    world.start_with("order-1", "each hour", |begin| begin.cron_schedule = "@hourly".into());
    world.cancel().task(|t| t.cancel()).advance(hours(2));
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough"
        > start order-1 each hour
        < run 2: workflow.started, first task in 800s
        > cancel
        < workflow.cancel_requested, (the delay is over), task.scheduled
        > task: cancel the workflow
        < task.started, task.completed, workflow.canceled
        @ 02:00:00
    "#]]);
}

#[test]
fn a_run_whose_wait_was_cut_short_is_followed_at_its_own_moment() {
    let mut world = scheduled("@hourly");
    world.advance(seconds(300)).cancel().task(|t| t.complete("all the same")).advance(seconds(500));
    world.expect(expect![[r#"
        @ 00:05:00
        > cancel
        < workflow.cancel_requested, (the delay is over), task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed, run 2: workflow.started, first task in 500s
        @ 00:13:20
        < (the delay is over), task.scheduled
    "#]]);
}

#[test]
fn a_signal_waits_for_the_schedule_and_one_with_a_start_does_not() {
    let mut world = scheduled("@hourly");
    world.signal("one");
    world.start_with("order-1", "", |begin| begin.signal = Some(crate::world::a_signal("two", "two")));
    world.expect(expect![[r#"
        > signal one
        < workflow.signaled one
        > signal with start order-1
        < (the delay is over), workflow.signaled two, task.scheduled
        = there is run 1, running
    "#]]);
}

#[test]
fn a_run_of_a_schedule_is_not_handed_out_with_its_start() {
    let mut world = World::new();
    world.start_with("order-1", "at once", |begin| {
        begin.cron_schedule = "@hourly".into();
        begin.eager = true;
    });
    assert!(!started(&world).eager_execution_accepted);
    world.expect(expect![[r#"
        > start order-1 at once
        < workflow.started, first task in 800s
    "#]]);
}

#[test]
fn runs_in_a_hurry_are_held_back() {
    let mut world = World::with(|settings| settings.continue_interval_min_ms = 5_000);
    world.start_with("order-1", "", |begin| begin.cron_schedule = "@every 1s".into());
    world.advance(seconds(1)).task(|t| t.complete("one"));
    assert_eq!(world.run().start.first_task_backoff_ms, 5_000);
    world.advance(seconds(5)).advance(seconds(7)).task(|t| t.complete("two"));
    assert_eq!(world.run().start.first_task_backoff_ms, 0, "a second of the schedule is now");
}

#[test]
fn a_schedule_that_cannot_be_read_is_refused_at_a_start_and_ends_a_chain_that_a_workflow_made() {
    let mut world = World::new();
    for schedule in ["now and then", "0 0 31 2 *"] {
        world.start_with("order-1", schedule, |begin| begin.cron_schedule = schedule.into());
    }
    world.start("order-1").task(|t| t.continue_as_new(|again| again.cron_schedule = "never".into()));
    world.task(|t| t.complete("done"));
    world.expect(expect![[r#"
        > start order-1 now and then
        ! invalid: invalid CronSchedule.
        > start order-1 0 0 31 2 *
        ! invalid: invalid CronSchedule, no time can be found to satisfy the schedule
        > start order-1
        < workflow.started, task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 2: workflow.started, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}
