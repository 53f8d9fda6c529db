//! Extremes: whatever numbers come in, nothing panics and no deadline lies before its beginning.

use everlog_engine::api_types::RetryPolicy;
use everlog_engine::machine::workflow_task::{Claim, Sticky};
use everlog_engine::machine::{activity_attempt, start};
use everlog_engine::request::Request;
use everlog_engine::time::{DURATION_MS_MAX, Duration, Timestamp};
use everlog_engine::{Grace, Reply};

use crate::world::{World, application, start};

const EXTREMES: [i64; 9] = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1_000, DURATION_MS_MAX, i64::MAX - 1, i64::MAX];

#[test]
fn a_start_may_name_any_span() {
    for span_ms in EXTREMES {
        for now_ms in [1_000_000_000_000, i64::MAX - 1_000, 0, -1] {
            let mut world = World::new();
            world.now_ms = now_ms;
            let begin = start::Begin {
                execution_timeout_ms: span_ms,
                run_timeout_ms: span_ms,
                task_timeout_ms: span_ms,
                start_delay_ms: span_ms,
                retention_ms: span_ms,
                ..start("r")
            };
            world.order(Request::Start(Box::new(begin)));
            let start = world.run().start.clone();
            assert!(
                start.run_expires_ms == 0 || start.run_expires_ms >= now_ms,
                "{span_ms}: it is over before it began"
            );
            assert!(start.task_timeout_ms > 0);
            world.replay();
        }
    }
}

#[test]
fn a_command_may_name_any_span() {
    for seconds in EXTREMES {
        for nanos in [i32::MIN, -1, 0, 1, 999_999_999, i32::MAX] {
            let span = Some(Duration { seconds, nanos });
            let mut world = World::new();
            world.start("order-1").claim();
            world.answer(|t| {
                t.activity_with("a", "", |s| {
                    (s.schedule_to_close_timeout, s.schedule_to_start_timeout) = (span, span);
                    (s.start_to_close_timeout, s.heartbeat_timeout) = (span, span);
                    let (initial_interval, maximum_interval) = (span, span);
                    s.retry_policy =
                        Some(RetryPolicy { initial_interval, maximum_interval, ..RetryPolicy::default() });
                });
                t.command(
                    "timer",
                    everlog_engine::command::CommandAttributes::StartTimer(
                        everlog_engine::machine::timer::Start {
                            timer_id: "t".into(),
                            start_to_fire_timeout: span,
                        },
                    ),
                )
            });
            if world.run().activities.is_empty() {
                continue;
            }
            world.claim_activity("a").fail_activity("a", "boom", Some(application("Flaky", |_failure| {})));
            let now_ms = world.now_ms;
            assert!(world.run().next_deadline_ms(Grace::default()).is_none_or(|due_ms| due_ms >= now_ms));
        }
    }
}

#[test]
fn a_failure_may_name_any_delay() {
    for seconds in EXTREMES {
        let mut world = World::new();
        world.start("order-1").task(|t| t.activity("a")).claim_activity("a");
        let failure = application("Flaky", |failure| {
            failure.next_retry_delay = Some(Duration { seconds, nanos: i32::MAX });
        });
        world.fail_activity("a", "boom", Some(failure));
        let activity = world.run().activities.values().next().expect("it is tried again");
        assert!(activity.scheduled_ms >= world.now_ms);
    }
}

#[test]
fn a_completion_may_name_any_sticky_wait_and_any_backoff() {
    for span in EXTREMES {
        let mut world = World::new();
        world.start("order-1").task(|t| {
            t.order.sticky = Some(Sticky { queue: "cache".into(), schedule_to_start_ms: span });
            t
        });
        world.signal("one").wake().wake().claim();
        world.answer(|t| {
            t.continue_as_new(|again| {
                again.backoff_start_interval = Some(Duration { seconds: span, nanos: 0 });
                again.workflow_run_timeout = Some(Duration { seconds: span, nanos: 0 });
            })
        });
        world.wake();
    }
}

#[test]
fn a_sticky_queue_without_a_name_is_none() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.order.sticky = Some(Sticky::default());
        t
    });
    assert_eq!(world.run().head.sticky, None);
}

#[test]
fn time_may_stand_at_its_end() {
    let mut world = World::new();
    world.now_ms = i64::MAX;
    world.start("order-1").task(|t| {
        t.activity_with("a", "", |s| s.heartbeat_timeout = Some(Duration::from_ms(1)))
            .start_timer("t", 1)
            .force()
    });
    world.claim_activity("a").heartbeat("a", "half").claim().wake().wake();
    world.answer_if_open(|t| t.complete("done"));
    world.wake();
}

#[test]
fn settings_may_say_anything() {
    for number in EXTREMES {
        let small = i32::try_from(number.clamp(i64::from(i32::MIN), i64::from(i32::MAX))).expect("clamped");
        let mut world = World::with(|settings| {
            settings.task_timeout_default_ms = number;
            settings.task_timeout_max_ms = number;
            settings.task_heartbeat_max_ms = number;
            settings.task_backoff_attempt = small;
            settings.task_backoff_initial_ms = number;
            settings.task_backoff_max_ms = number;
            settings.buffered_events_max = number;
            settings.buffered_bytes_max = number;
            settings.continue_interval_min_ms = number;
            settings.kept_failure_bytes_max = number;
            settings.wake_slice_max = number;
        });
        world.start("order-1").claim().signal("one").wake().claim();
        world.answer_if_open(|t| t.activity("a").force()).claim();
        world.answer_if_open(|t| t.continue_as_new(|_again| {}));
    }
}

#[test]
fn a_garbled_order_reaches_nothing() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").force());
    let claims = [(i64::MIN, i32::MIN), (i64::MAX, i32::MAX), (0, 0), (-1, 1), (5, 2)];
    for (scheduled_event_id, attempt) in claims {
        let claim = Claim { scheduled_event_id, attempt, ..Claim::default() };
        assert_eq!(world.order(Request::ClaimTask(claim)).reply, Reply::Gone);
        let claim =
            activity_attempt::Claim { scheduled_event_id, attempt, ..activity_attempt::Claim::default() };
        assert_eq!(world.order(Request::ClaimActivity(claim)).reply, Reply::Gone);
    }
    world.claim_activity("a");
    world.fail_activity("a", "garbage", Some(bytes::Bytes::from_static(b"\xff\xff\xff")));
    assert!(world.run().activities.is_empty(), "a failure that nobody can read is final");
}

#[test]
fn moments_and_spans_survive_their_extremes() {
    for ms in EXTREMES {
        assert!(Timestamp::from_ms(ms).to_ms().abs_diff(ms) < 1_000);
        let span = Duration::from_ms(ms).to_ms();
        assert_eq!(span, ms.clamp(-DURATION_MS_MAX, DURATION_MS_MAX));
        for nanos in [i32::MIN, i32::MAX] {
            Duration { seconds: ms, nanos }.to_ms();
            Timestamp { seconds: ms, nanos }.to_ms();
        }
    }
}
