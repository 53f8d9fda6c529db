//! What happens while a worker has a task in hand: it waits, in order, and nothing of it is lost.

use everlog_engine::vocabulary::TaskFailedCause;
use expect_test::expect;

use crate::world::{World, application, minutes, seconds};

#[test]
fn what_waited_is_written_in_order_and_results_come_last() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").activity("b").start_timer("t", seconds(1)).force());
    world.claim_activity("a").claim_activity("b").claim().hush();
    world.complete_activity("b").signal("one").advance(seconds(1)).complete_activity("a").cancel();
    world.answer(|t| t.marker("mine"));
    world.expect(expect![[r#""#]]);
    let kept = world.home.kept(&world.run().start.run_id).expect("the run is there");
    let times: Vec<_> = kept.events.iter().filter_map(|event| event.event_time).collect();
    assert!(!times.is_sorted_by_key(|time| time.to_ms()), "they keep the time at which they happened");
}

#[test]
fn a_workflow_may_not_close_over_what_it_has_not_seen() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.signal("one").answer(|t| t.start_timer("t", seconds(1)).complete("done"));
    world.signal("between").claim().signal("too late");
    world.start_with("order-1", "while it closes", |begin| {
        begin.signal = Some(super::starts::with_start("hello"));
    });
    world.cancel().answer(|t| t.complete("done")).claim().signal("too late again").answer(|t| t.complete("done"));
    world.expect(expect![[r#""#]]);
}

#[test]
fn signals_are_held_off_only_as_long_as_the_next_task_runs() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").answer(|t| t.complete("done")).claim().hush();
    world.advance(seconds(10)).signal("two").claim().signal("three").answer(|t| t.complete("done"));
    world.claim().answer(|t| t.marker("not yet").force()).claim().signal("four");
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_retry_may_not_close_over_what_it_has_not_seen() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.signal("one").answer(|t| t.complete("done")).claim();
    world.expect(expect![[r#""#]]);
}

#[test]
fn continue_as_new_may_not_leave_signals_behind() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.continue_as_new(|_again| {})).task(|t| t.continue_as_new(|_again| {}));
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_timer_can_be_canceled_until_its_firing_is_seen() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", seconds(1)).force()).claim().hush();
    world.advance(seconds(1)).answer(|t| t.cancel_timer("t").complete("done"));
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_timer_of_the_same_name_may_begin_before_the_firing_is_seen() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", seconds(1)).force()).claim().hush();
    world.advance(seconds(1)).answer(|t| t.start_timer("t", minutes(1)));
    world.task(|t| t.cancel_timer("t"));
    world.expect(expect![[r#""#]]);
}

#[test]
fn too_many_events_take_the_task_from_its_worker() {
    let mut world = World::with(|settings| settings.buffered_events_max = 3);
    world.start("order-1").claim().hush();
    world.signals(&["1", "2", "3"]).answer(|t| t.complete("done")).claim();
    world.expect(expect![[r#""#]]);
}

#[test]
fn too_many_bytes_take_the_task_from_its_worker() {
    let mut world = World::with(|settings| settings.buffered_bytes_max = 1_000);
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").claim_sticky().hush();
    world.signal("two").signal_with("large", "", |signal| signal.input = Some(vec![0; 1_000].into()));
    world.expect(expect![[r#""#]]);
}

#[test]
fn too_many_events_interrupt_a_retry_as_well() {
    let mut world = World::with(|settings| settings.buffered_events_max = 2);
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.signals(&["1", "2", "3"]).claim();
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_run_that_is_terminated_keeps_what_waited() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").force()).claim_activity("a").claim().signal("one").hush();
    world.complete_activity("a").terminate("enough").complete_activity("a").answer(|t| t.complete("done"));
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_run_that_times_out_keeps_what_waited() {
    let mut world = World::new();
    world.start_with("order-1", "for 5 s", |begin| begin.run_timeout_ms = seconds(5)).claim().signal("one");
    world.hush().advance(seconds(5));
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_retry_that_is_cut_off_leaves_no_trace() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().signal("one").hush();
    world.terminate("enough");
    world.expect(expect![[r#""#]]);
}

#[test]
fn what_is_scheduled_but_not_taken_simply_ends() {
    let mut world = World::new();
    world.start("order-1").signal("one").terminate("enough").signal("two").cancel().terminate("again");
    world.expect(expect![[r#""#]]);
}

#[test]
fn a_failure_that_waits_keeps_its_attempt() {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        t.activity_with("a", "once", |s| s.retry_policy.get_or_insert_default().maximum_attempts = 1).force()
    });
    world.claim_activity("a").claim().hush();
    world.fail_activity("a", "for good", Some(application("Broken", |_failure| {}))).crash();
    world.answer(|t| t.cancel_scheduled("cancel a", 5));
    world.expect(expect![[r#""#]]);
}
