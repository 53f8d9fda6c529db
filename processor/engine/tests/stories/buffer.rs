//! What happens while a worker has a task in hand: it waits, in order, and nothing of it is lost.

use everlog_engine::api_types::TaskFailedCause;
use expect_test::expect;

use crate::world::{World, application, minutes, seconds};

#[test]
fn what_waited_is_written_in_order_and_results_come_last() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").activity("b").start_timer("t", seconds(1)).force());
    world.claim_activity("a").claim_activity("b").claim().hush();
    world.complete_activity("b").signal("one").advance(seconds(1)).complete_activity("a").cancel();
    world.answer(|t| t.marker("mine"));
    world.expect(expect![[r#"
        > b returns
        < (waits: activity.started b), (waits: activity.completed b)
        > signal one
        < (waits: workflow.signaled one)
        @ 00:00:01
        < (waits: timer.fired t)
        > a returns
        < (waits: activity.started a), (waits: activity.completed a)
        > cancel
        < (waits: workflow.cancel_requested)
        > task: marker mine
        < task.completed, marker.recorded mine, activity.started b, workflow.signaled one, timer.fired t, activity.started a, workflow.cancel_requested, activity.completed b, activity.completed a, task.scheduled
    "#]]);
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let times: Vec<_> = stored.events.iter().filter_map(|event| event.event_time).collect();
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
    world
        .cancel()
        .answer(|t| t.complete("done"))
        .claim()
        .signal("too late again")
        .answer(|t| t.complete("done"));
    world.expect(expect![[r#"
        > signal one
        < (waits: workflow.signaled one)
        > task: start timer t 1s, complete the workflow
        < task.failed UnhandledCommand, workflow.signaled one, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > signal between
        < workflow.signaled between
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-8
        > signal too late
        ! busy: workflow operation can not be applied because workflow is closing
        > signal with start order-1 while it closes
        ! busy: workflow operation can not be applied because workflow is closing
        > cancel
        < (waits: workflow.cancel_requested)
        > task: complete the workflow
        < task.failed UnhandledCommand, (not about to close), workflow.cancel_requested, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-12
        > signal too late again
        ! busy: workflow operation can not be applied because workflow is closing
        > task: complete the workflow
        < task.completed, (not about to close), workflow.completed
    "#]]);
}

#[test]
fn signals_are_held_off_only_as_long_as_the_next_task_runs() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").answer(|t| t.complete("done")).claim().hush();
    world.advance(seconds(10)).signal("two").claim().signal("three").answer(|t| t.complete("done"));
    world.claim().answer(|t| t.marker("not yet").force()).claim().signal("four");
    world.expect(expect![[r#"
        @ 00:00:10
        < task.timed_out StartToClose, (not about to close), (task attempt 2)
        > signal two
        < workflow.signaled two
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-11
        > signal three
        < (waits: workflow.signaled three)
        > task: complete the workflow
        < task.failed UnhandledCommand, workflow.signaled three, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-15
        > task: marker not yet, one more task
        < task.completed, (not about to close), marker.recorded not yet, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-19
        > signal four
        < (waits: workflow.signaled four)
    "#]]);
}

#[test]
fn a_retry_may_not_close_over_what_it_has_not_seen() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.signal("one").answer(|t| t.complete("done")).claim();
    world.expect(expect![[r#"
        > signal one
        < (waits: workflow.signaled one)
        > task: complete the workflow
        < workflow.signaled one, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-7
    "#]]);
}

#[test]
fn continue_as_new_may_not_leave_signals_behind() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.continue_as_new(|_again| {})).task(|t| t.continue_as_new(|_again| {}));
    world.expect(expect![[r#"
        > task: continue as new
        < task.failed UnhandledCommand, workflow.signaled one, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > task: continue as new
        < task.started, task.completed, (not about to close), workflow.continued_as_new, run 2: workflow.started, task.scheduled
    "#]]);
}

#[test]
fn a_timer_can_be_canceled_until_its_firing_is_seen() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", seconds(1)).force()).claim().hush();
    world.advance(seconds(1)).answer(|t| t.cancel_timer("t").complete("done"));
    world.expect(expect![[r#"
        @ 00:00:01
        < (waits: timer.fired t)
        > task: cancel timer t, complete the workflow
        < task.completed, (taken back), timer.canceled t, workflow.completed
    "#]]);
}

#[test]
fn a_timer_of_the_same_name_may_begin_before_the_firing_is_seen() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("t", seconds(1)).force()).claim().hush();
    world.advance(seconds(1)).answer(|t| t.start_timer("t", minutes(1)));
    world.task(|t| t.cancel_timer("t"));
    world.expect(expect![[r#"
        @ 00:00:01
        < (waits: timer.fired t)
        > task: start timer t 1m
        < task.completed, timer.started t due 00:01:01, timer.fired t, task.scheduled
        > task: cancel timer t
        < task.started, task.completed, timer.canceled t
    "#]]);
}

#[test]
fn too_many_events_take_the_task_from_its_worker() {
    let mut world = World::with(|settings| settings.buffered_events_max = 2);
    world.start("order-1").claim().hush();
    world.signals(&["1", "2", "3"]).answer(|t| t.complete("done")).claim();
    world.expect(expect![[r#"
        > signal 1
        < (waits: workflow.signaled 1)
        > signal 2
        < (waits: workflow.signaled 2)
        > signal 3
        < (waits: workflow.signaled 3), task.failed ForceCloseCommand, workflow.signaled 1, workflow.signaled 2, workflow.signaled 3, (task attempt 2)
        > task: complete the workflow
        ! not found: Workflow task not found.
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-7 and 2 shown
    "#]]);
}

#[test]
fn too_many_bytes_take_the_task_from_its_worker() {
    let mut world = World::with(|settings| settings.buffered_bytes_max = 1_000);
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").claim_sticky().hush();
    world.signal("two").signal_with("large", "", |signal| signal.input = Some(vec![0; 1_000].into()));
    world.expect(expect![[r#"
        > signal two
        < (waits: workflow.signaled two)
        > signal large
        < (waits: workflow.signaled large), task.failed ForceCloseCommand, workflow.signaled two, workflow.signaled large, (not sticky), task.scheduled
    "#]]);
}

#[test]
fn too_many_events_interrupt_a_retry_as_well() {
    let mut world = World::with(|settings| settings.buffered_events_max = 1);
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.signals(&["1", "2", "3"]).claim();
    world.expect(expect![[r#"
        > signal 1
        < (waits: workflow.signaled 1)
        > signal 2
        < (waits: workflow.signaled 2), workflow.signaled 1, workflow.signaled 2, (task attempt 3)
        > signal 3
        < workflow.signaled 3
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-9
    "#]]);
}

#[test]
fn a_run_that_is_terminated_keeps_what_waited() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("a").force()).claim_activity("a").claim().signal("one").hush();
    world.complete_activity("a").terminate("enough").complete_activity("a").answer(|t| t.complete("done"));
    world.expect(expect![[r#"
        > a returns
        < (waits: activity.started a), (waits: activity.completed a)
        > terminate: enough
        < task.failed ForceCloseCommand, workflow.signaled one, activity.started a, activity.completed a, workflow.terminated "enough"
        > a returns
        ! not found: workflow execution already completed
        > task: complete the workflow
        ! not found: Workflow task not found.
    "#]]);
}

#[test]
fn a_run_that_times_out_keeps_what_waited() {
    let mut world = World::new();
    world.start_with("order-1", "for 5 s", |begin| begin.run_timeout_ms = seconds(5)).claim().signal("one");
    world.hush().advance(seconds(5));
    world.expect(expect![[r#"
        @ 00:00:05
        < task.failed ForceCloseCommand, workflow.signaled one, workflow.timed_out RetryPolicyNotSet
    "#]]);
}

#[test]
fn a_retry_that_is_cut_off_leaves_no_trace() {
    let mut world = World::new();
    world
        .start("order-1")
        .claim()
        .fail_task(TaskFailedCause::NonDeterministicError)
        .claim()
        .signal("one")
        .hush();
    world.terminate("enough");
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.signaled one, workflow.terminated "enough"
    "#]]);
}

#[test]
fn what_is_scheduled_but_not_taken_simply_ends() {
    let mut world = World::new();
    world.start("order-1").signal("one").terminate("enough").signal("two").cancel().terminate("again");
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > signal one
        < workflow.signaled one
        > terminate: enough
        < workflow.terminated "enough"
        > signal two
        ! not found: workflow execution already completed
        > cancel
        = nothing to do
        > terminate: again
        ! not found: workflow execution already completed
    "#]]);
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
    world.expect(expect![[r#"
        > a fails: for good
        < (waits: activity.started a), (waits: activity.failed a MaximumAttemptsReached)
        ~ crash, 7 events replayed
        > task: cancel a
        < task.completed, activity.cancel_requested a, activity.started a, activity.failed a MaximumAttemptsReached, task.scheduled
    "#]]);
}
