//! Activities: attempts, retries, reports, cancellation.

use everlog_engine::api_types::RetryPolicy;
use everlog_engine::machine::activity_attempt::Target;
use everlog_engine::time::Duration;
use expect_test::expect;

use crate::world::{World, application, delay, failure_of, hours, seconds, text};

/// A run with one activity, `a`, that waits for a worker.
fn with_activity(change: impl FnOnce(&mut everlog_engine::machine::activity::Schedule)) -> World {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity_with("a", "", change)).hush();
    world
}

fn policy(change: impl FnOnce(&mut RetryPolicy)) -> Option<RetryPolicy> {
    let mut policy = RetryPolicy::default();
    change(&mut policy);
    Some(policy)
}

#[test]
fn a_failed_attempt_is_followed_by_another() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {})));
    world.crash().advance(seconds(1)).claim_activity("a").fail_activity("a", "nothing said", None);
    world.advance(seconds(2)).claim_activity("a").complete_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a fails: boom
        < (a: attempt 2 at 00:00:01)
        ~ crash, 5 events replayed
        @ 00:00:01
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
        > a fails: nothing said
        < (a: attempt 3 at 00:00:03)
        @ 00:00:03
        < (a: attempt 3 is ready)
        > a worker takes a
        < (a is taken)
        > a returns
        < activity.started a attempt 3, activity.completed a, task.scheduled
    "#]]);
}

#[test]
fn the_last_failure_stands_in_the_started_event() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {})));
    world.advance(seconds(1)).claim_activity("a").complete_activity("a");
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let Some(everlog_engine::event::Attributes::ActivityStarted(started)) = &stored.events[5].attributes
    else {
        panic!("{:?} is no start", stored.events[5]);
    };
    assert_eq!((started.attempt, started.identity.as_str()), (2, "hand"));
    assert_eq!(failure_of(started.last_failure.as_ref()).message, "boom");
    assert_eq!(stored.events[5].event_time.map(|time| time.to_ms()), Some(world.now_ms));
}

#[test]
fn a_failure_may_name_the_delay() {
    let mut world = with_activity(|s| s.retry_policy = policy(|p| p.maximum_interval = delay(2_000)));
    world.claim_activity("a");
    let later = application("Busy", |failure| failure.next_retry_delay = delay(30_000));
    let now = application("Busy", |failure| failure.next_retry_delay = delay(0));
    world.fail_activity("a", "come back in 30 s", Some(later)).advance(seconds(30)).claim_activity("a");
    world.fail_activity("a", "come back at once", Some(now)).claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a fails: come back in 30 s
        < (a: attempt 2 at 00:00:30)
        @ 00:00:30
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
        > a fails: come back at once
        < (a: attempt 3 is ready)
        > a worker takes a
        < (a is taken)
    "#]]);
}

#[test]
fn some_failures_are_final() {
    let ends = |change: fn(&mut RetryPolicy), failure| {
        let mut world = with_activity(|s| s.retry_policy = policy(change));
        world.claim_activity("a").hush().fail_activity("a", "so", Some(failure));
        world
    };
    let fatal = application("Fatal", |_failure| {});
    let mut world = ends(|p| p.non_retryable_error_types = vec!["Fatal".into()], fatal.clone());
    world.expect(expect![[r#"
        > a fails: so
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
    "#]]);
    let mut world = ends(|_policy| {}, application("Flaky", |failure| failure.non_retryable = true));
    world.expect(expect![[r#"
        > a fails: so
        < activity.started a, activity.failed a NonRetryableFailure, task.scheduled
    "#]]);
    let mut world = ends(|p| p.maximum_attempts = 1, fatal.clone());
    world.expect(expect![[r#"
        > a fails: so
        < activity.started a, activity.failed a MaximumAttemptsReached, task.scheduled
    "#]]);
    let mut world = with_activity(|s| s.schedule_to_close_timeout = delay(999));
    world.claim_activity("a").hush().fail_activity("a", "no time is left", Some(fatal));
    world.expect(expect![[r#"
        > a fails: no time is left
        < activity.started a, activity.failed a Timeout, task.scheduled
    "#]]);
}

#[test]
fn reports_outlive_their_attempt() {
    let mut world = with_activity(|s| s.heartbeat_timeout = delay(3_000));
    world.claim_activity("a").advance(seconds(2)).heartbeat("a", "half").advance(seconds(2));
    world.heartbeat("a", "most").advance(seconds(3)).advance(seconds(1)).claim_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        @ 00:00:02
        > a reports half
        < (a lives)
        @ 00:00:04
        > a reports most
        < (a lives)
        @ 00:00:07
        < (a: attempt 2 at 00:00:08)
        @ 00:00:08
        < (a: attempt 2 is ready)
        > a worker takes a
        < (a is taken)
    "#]]);
    let activity = world.run().activities.values().next().expect("it is open");
    assert_eq!(activity.heartbeat_details, Some(text("most")));
    assert_eq!(activity.heartbeat_ms, world.now_ms - seconds(4));
}

#[test]
fn a_last_report_may_come_with_the_failure() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a");
    let order = everlog_engine::machine::activity_attempt::Fail {
        target: world.target("a"),
        failure: Some(application("Flaky", |_failure| {})),
        identity: "hand".into(),
        last_heartbeat_details: Some(text("most")),
        ..Default::default()
    };
    world.order(everlog_engine::request::Request::FailActivity(order));
    let activity = world.run().activities.values().next().expect("it is open");
    assert_eq!(
        (activity.heartbeat_details.clone(), activity.heartbeat_ms),
        (Some(text("most")), world.now_ms)
    );
}

#[test]
fn a_worker_that_lost_its_attempt_reports_to_nobody() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").advance(seconds(10)).hush();
    world.complete_activity("a").heartbeat("a", "half").fail_activity("a", "late", None).cancel_activity("a");
    world.advance(seconds(1)).complete_activity("a");
    world.expect(expect![[r#"
        > a returns
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a reports half
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a fails: late
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a cancels itself
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        @ 00:00:11
        < (a: attempt 2 is ready)
        > a returns
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
    "#]]);
}

#[test]
fn a_result_by_id_may_come_between_two_attempts() {
    let mut world = with_activity(|_schedule| {});
    world.fails("a fails, by id", World::by_id("a"), None);
    world.heartbeats("a reports, by id", World::by_id("a"), None);
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {})));
    world.fails("a fails, by id", World::by_id("a"), None);
    world.complete_activity_by_id("a").complete_activity_by_id("a").complete_activity_by_id("unknown");
    world.expect(expect![[r#"
        > a fails, by id
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a reports, by id
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a worker takes a
        < (a is taken)
        > a fails: boom
        < (a: attempt 2 at 00:00:01)
        > a fails, by id
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a returns, by id
        < activity.started a attempt 2, activity.completed a, task.scheduled
        > a returns, by id
        ! not found: cannot find pending activity with ActivityID a, check workflow execution history for more details
        > unknown returns, by id
        ! not found: cannot find pending activity with ActivityID unknown, check workflow execution history for more details
    "#]]);
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let Some(everlog_engine::event::Attributes::ActivityStarted(started)) = &stored.events[5].attributes
    else {
        panic!("{:?} is no start", stored.events[5]);
    };
    assert_eq!((started.attempt, started.request_id.as_str()), (2, ""), "nobody polled for this attempt");
}

#[test]
fn a_started_attempt_answers_to_its_id_as_well() {
    let mut world = with_activity(|s| s.heartbeat_timeout = delay(3_000));
    world.claim_activity("a").heartbeats("a reports, by id", World::by_id("a"), Some(text("half")));
    world.fails("a fails, by id", World::by_id("a"), Some(application("Flaky", |_failure| {})));
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a reports, by id
        < (a lives)
        > a fails, by id
        < (a: attempt 2 at 00:00:01)
    "#]]);
}

#[test]
fn an_activity_nobody_has_is_canceled_at_once() {
    let mut world = with_activity(|_schedule| {});
    world.signal("stop").task(|t| t.cancel_activity("a").start_timer("t", seconds(1)));
    world.expect(expect![[r#"
        > signal stop
        < workflow.signaled stop, task.scheduled
        > task: cancel activity a, start timer t 1s
        < task.started, task.completed, activity.cancel_requested a, (waits: activity.canceled a), timer.started t due 00:00:01, activity.canceled a, task.scheduled
    "#]]);
}

#[test]
fn the_task_that_cancels_an_activity_may_schedule_another_of_its_id() {
    let mut world = with_activity(|_schedule| {});
    world.signal("stop").hush();
    world.task(|t| t.cancel_activity("a").activity("a").start_timer("t", seconds(1)));
    world.expect(expect![[r#"
        > task: cancel activity a, activity a, start timer t 1s
        < task.started, task.completed, activity.cancel_requested a, (waits: activity.canceled a), activity.scheduled a, timer.started t due 00:00:01, activity.canceled a, task.scheduled
    "#]]);
}

#[test]
fn what_a_task_cancels_is_not_told_where_it_ends_the_run() {
    let mut world = with_activity(|_schedule| {});
    world.signal("stop").hush();
    world.task(|t| t.cancel_activity("a").complete("done"));
    world.expect(expect![[r#"
        > task: cancel activity a, complete the workflow
        < task.started, task.completed, activity.cancel_requested a, (waits: activity.canceled a), (taken back), workflow.completed
    "#]]);
}

#[test]
fn an_activity_between_two_attempts_is_canceled_at_once() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {}))).hush();
    world.signal("stop").task(|t| t.cancel_activity("a").sticky("cache-1").return_new());
    world.expect(expect![[r#"
        > signal stop
        < workflow.signaled stop, task.scheduled
        > task: cancel activity a, sticky on cache-1, at once
        < task.started, task.completed, (sticky on cache-1), activity.cancel_requested a, (waits: activity.canceled a), activity.canceled a, task.scheduled on cache-1, task.started
        = sticky task attempt 1, history 9-13
    "#]]);
}

#[test]
fn an_activity_in_a_workers_hand_is_asked_to_cancel_itself() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").cancel_activity("a").hush();
    world.signal("stop").task(|t| t.cancel_activity("a")).heartbeat("a", "half").cancel_activity("a");
    world.expect(expect![[r#"
        > signal stop
        < workflow.signaled stop, task.scheduled
        > task: cancel activity a
        < task.started, task.completed, activity.cancel_requested a
        > a reports half
        < (a lives)
        = cancel yourself
        > a cancels itself
        < activity.started a, activity.canceled a, task.scheduled
    "#]]);
}

#[test]
fn an_activity_that_shall_cancel_itself_is_not_tried_again() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").signal("stop").task(|t| t.cancel_activity("a")).hush();
    world.fail_activity("a", "boom", Some(application("Flaky", |_failure| {})));
    world.expect(expect![[r#"
        > a fails: boom
        < activity.started a, activity.failed a CancelRequested, task.scheduled
    "#]]);
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").signal("stop").task(|t| t.cancel_activity("a")).hush();
    world.advance(seconds(10));
    world.expect(expect![[r#"
        @ 00:00:10
        < activity.started a, activity.timed_out a StartToClose CancelRequested, task.scheduled
    "#]]);
}

#[test]
fn an_activity_whose_end_is_not_seen_yet_is_asked_in_vain() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").signal("stop").claim().complete_activity("a").hush();
    world.answer(|t| t.cancel_scheduled("cancel activity a", 5)).task(|t| t.cancel_scheduled("again", 5));
    world.expect(expect![[r#"
        > task: cancel activity a
        < task.completed, activity.cancel_requested a, activity.started a, activity.completed a, task.scheduled
        > task: again
        < task.started, task.failed BadRequestCancelActivityAttributes, (task attempt 2)
        ! invalid: BadRequestCancelActivityAttributes: invalid history builder state for action: add-activitytask-cancel-requested-event, ScheduledEventID: 5
    "#]]);
}

#[test]
fn a_cancellation_is_asked_for_once() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").signal("stop").task(|t| t.cancel_activity("a")).signal("stop").hush();
    world.task(|t| t.cancel_activity("a"));
    world.expect(expect![[r#"
        > task: cancel activity a
        < task.started, task.failed BadRequestCancelActivityAttributes, (task attempt 2)
        ! invalid: BadRequestCancelActivityAttributes: invalid history builder state for action: add-activitytask-cancel-requested-event, ScheduledEventID: 5
    "#]]);
}

#[test]
fn an_attempt_that_reached_nobody_waits_again() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").release_activity("a").release_activity("a").complete_activity("a");
    world.claim_activity("a").claim_activity("a").complete_activity("a");
    world.expect(expect![[r#"
        > a worker takes a
        < (a is taken)
        > a reached nobody
        < (a waits again)
        > a reached nobody
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a returns
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a worker takes a
        < (a is taken)
        > a worker takes a
        = gone
        > a returns
        < activity.started a, activity.completed a, task.scheduled
    "#]]);
}

#[test]
fn an_activity_of_the_same_id_may_follow() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").complete_activity("a").hush();
    world.task(|t| t.activity("a")).claim_activity("a").complete_activity("a");
    world.expect(expect![[r#"
        > task: activity a
        < task.started, task.completed, activity.scheduled a
        > a worker takes a
        < (a is taken)
        > a returns
        < activity.started a, activity.completed a, task.scheduled
    "#]]);
}

#[test]
fn an_open_activity_keeps_its_id() {
    let mut world = with_activity(|_schedule| {});
    world.signal("one").task(|t| t.activity("b").activity("a"));
    world.expect(expect![[r#"
        > signal one
        < workflow.signaled one, task.scheduled
        > task: activity b, activity a
        < task.started, task.failed ScheduleActivityDuplicateId, (task attempt 2)
        ! invalid: ScheduleActivityDuplicateId: invalid history builder state for action: add-activitytask-scheduled-event, ActivityID: a
    "#]]);
}

#[test]
fn a_workflow_has_a_limit_of_open_activities() {
    let mut world = World::with(|settings| settings.pending_activities_max = 2);
    world.start("order-1").task(|t| t.activity("a").activity("b").activity("c"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: activity a, activity b, activity c
        < task.started, task.failed PendingActivitiesLimitExceeded, (task attempt 2)
        ! invalid: PendingActivitiesLimitExceeded: the number of pending activities, 2, has reached the per-workflow limit of 2
    "#]]);
}

#[test]
fn timeouts_are_filled_in_and_fitted_into_one_another() {
    let spans = |run_s: i64, change: fn(&mut everlog_engine::machine::activity::Schedule)| {
        let mut world = World::new();
        world.start_with("order-1", "", |begin| begin.run_timeout_ms = seconds(run_s));
        world.task(|t| t.activity_with("a", "", change));
        let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
        let Some(everlog_engine::event::Attributes::ActivityScheduled(scheduled)) =
            &stored.events[4].attributes
        else {
            panic!("{:?} schedules nothing", stored.events[4]);
        };
        let of = |span: Option<Duration>| span.expect("every span is present").seconds;
        [
            of(scheduled.schedule_to_close_timeout),
            of(scheduled.schedule_to_start_timeout),
            of(scheduled.start_to_close_timeout),
            of(scheduled.heartbeat_timeout),
        ]
    };
    assert_eq!(spans(0, |_schedule| {}), [0, 0, 10, 0], "only start-to-close: no other limit");
    assert_eq!(spans(100, |_schedule| {}), [100, 100, 10, 0], "the run's limit holds for all");
    let all = |s: &mut everlog_engine::machine::activity::Schedule| {
        (s.start_to_close_timeout, s.schedule_to_close_timeout) = (None, delay(200_000));
        s.heartbeat_timeout = delay(300_000);
    };
    assert_eq!(spans(0, all), [200, 200, 200, 200], "schedule-to-close: the others within it");
    assert_eq!(spans(100, all), [100, 100, 100, 100], "and all within the run");
    let some = |s: &mut everlog_engine::machine::activity::Schedule| {
        (s.schedule_to_start_timeout, s.start_to_close_timeout) = (delay(7_000), delay(500_000));
        s.heartbeat_timeout = delay(3_000);
    };
    assert_eq!(spans(100, some), [100, 7, 100, 3]);
}

#[test]
fn a_retry_policy_is_filled_in() {
    let world = with_activity(|_schedule| {});
    let activity = world.run().activities.values().next().expect("it is open");
    let full = RetryPolicy {
        initial_interval: delay(1_000),
        backoff_coefficient: 2.0,
        maximum_interval: delay(100_000),
        maximum_attempts: 0,
        non_retryable_error_types: Vec::new(),
    };
    assert_eq!(activity.retry_policy, Some(full));
}

#[test]
fn a_forged_target_reaches_nothing() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").hush();
    let right = world.target("a").expect("it was taken");
    let wrong = [
        None,
        Some(Target::default()),
        Some(Target { attempt: 2, ..right.clone() }),
        Some(Target { claim: right.claim + 1, ..right.clone() }),
        Some(Target { scheduled_event_id: 4, ..right.clone() }),
        Some(Target { scheduled_event_id: -1, ..right.clone() }),
    ];
    for target in wrong {
        world.completes("a forged result", target, text("gold"));
    }
    world.expect(expect![[r#"
        > a forged result
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a forged result
        ! not found: cannot find pending activity with ActivityID , check workflow execution history for more details
        > a forged result
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a forged result
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a forged result
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
        > a forged result
        ! not found: invalid activityID or activity already timed out or invoking workflow is completed
    "#]]);
}

#[test]
fn a_closed_run_takes_no_result() {
    let mut world = with_activity(|_schedule| {});
    world.claim_activity("a").terminate("enough").hush().advance(hours(1));
    world.complete_activity("a").fail_activity("a", "late", None).heartbeat("a", "half").cancel_activity("a");
    world.complete_activity_by_id("a").release_activity("a").claim_activity("a");
    world.expect(expect![[r#"
        @ 01:00:00
        > a returns
        ! not found: workflow execution already completed
        > a fails: late
        ! not found: workflow execution already completed
        > a reports half
        ! not found: workflow execution already completed
        > a cancels itself
        ! not found: workflow execution already completed
        > a returns, by id
        ! not found: workflow execution already completed
        > a reached nobody
        ! not found: workflow execution already completed
        > a worker takes a
        = gone
    "#]]);
}
