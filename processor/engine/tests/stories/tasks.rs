//! Workflow tasks: handed out, completed, failed, timed out, and who gets the next one.

use everlog_engine::api_types::TaskFailedCause;
use everlog_engine::machine::workflow_task::Token;
use expect_test::expect;

use crate::world::{World, hours, minutes, seconds};

#[test]
fn a_timer_outlives_a_crash() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("pay", minutes(5)));
    world.crash().advance(minutes(5));
    world.task(|t| t.complete("paid"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: start timer pay 5m
        < task.started, task.completed, timer.started pay due 00:05:00
        ~ crash, 5 events replayed
        @ 00:05:00
        < timer.fired pay, task.scheduled
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_workflow_with_one_activity_has_the_canonical_history() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("charge").sticky("cache-1"));
    world.claim_activity("charge").complete_activity("charge");
    world.claim_sticky().answer(|t| t.complete("charged"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: activity charge, sticky on cache-1
        < task.started, task.completed, (sticky on cache-1), activity.scheduled charge
        > a worker takes charge
        < (charge is taken)
        > charge returns
        < activity.started charge, activity.completed charge, task.scheduled on cache-1
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-9
        > task: complete the workflow
        < task.completed, (not sticky), workflow.completed
    "#]]);
}

#[test]
fn a_result_that_comes_during_a_task_is_written_behind_it() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.activity("charge")).claim_activity("charge").signal("hurry");
    world.claim().complete_activity("charge").answer(|t| t.start_timer("pay", minutes(1)));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: activity charge
        < task.started, task.completed, activity.scheduled charge
        > a worker takes charge
        < (charge is taken)
        > signal hurry
        < workflow.signaled hurry, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-8
        > charge returns
        < (waits: activity.started charge), (waits: activity.completed charge)
        > task: start timer pay 1m
        < task.completed, timer.started pay due 00:01:00, activity.started charge, activity.completed charge, task.scheduled
    "#]]);
}

#[test]
fn a_sticky_worker_reads_on_where_it_stopped() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.claim_sticky().answer(|t| t.sticky("cache-1")).signal("two").claim_sticky();
    world.expect(expect![[r#"
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        > task: sticky on cache-1
        < task.completed
        > signal two
        < workflow.signaled two, task.scheduled on cache-1
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 8-11
    "#]]);
}

#[test]
fn a_sticky_worker_that_does_not_come_loses_the_task() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).hush();
    world.signal("one").advance(seconds(10)).claim();
    world.expect(expect![[r#"
        > signal one
        < workflow.signaled one, task.scheduled on cache-1
        @ 00:00:10
        < task.timed_out ScheduleToStart, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-9
    "#]]);
}

#[test]
fn any_worker_may_take_a_sticky_task_and_then_it_has_the_run() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.claim().fail_task(TaskFailedCause::WorkflowWorkerUnhandledFailure);
    world.expect(expect![[r#"
        > a worker takes the task
        < (not sticky), task.started
        = task attempt 1, history 1-7
        > task fails: WorkflowWorkerUnhandledFailure
        < task.failed WorkflowWorkerUnhandledFailure, (task attempt 2)
    "#]]);
}

#[test]
fn a_failure_on_a_sticky_queue_does_not_count_as_an_attempt() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.claim_sticky().fail_task(TaskFailedCause::NonDeterministicError).claim();
    world.expect(expect![[r#"
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        > task fails: NonDeterministicError
        < task.failed NonDeterministicError, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-10
    "#]]);
}

#[test]
fn a_timeout_on_a_sticky_queue_does_not_count_as_an_attempt() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.claim_sticky().advance(seconds(10)).claim();
    world.expect(expect![[r#"
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        @ 00:00:10
        < task.timed_out StartToClose, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-10
    "#]]);
}

#[test]
fn repeated_failures_leave_one_trace() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.fail_task(TaskFailedCause::NonDeterministicError);
    world.claim().fail_task(TaskFailedCause::NonDeterministicError).advance(seconds(10));
    world.claim().advance(seconds(10)).crash();
    world.claim().answer(|t| t.complete("mended"));
    world.expect(expect![[r#"
        > task fails: NonDeterministicError
        < task.failed NonDeterministicError, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
        > task fails: NonDeterministicError
        < (task attempt 3)
        @ 00:00:10
        > a worker takes the task
        < (task attempt 3 is taken)
        = task attempt 3, history 1-4 and 2 shown
        @ 00:00:20
        < (task attempt 4)
        ~ crash, 4 events replayed
        > a worker takes the task
        < (task attempt 4 is taken)
        = task attempt 4, history 1-4 and 2 shown
        > task: complete the workflow
        < task.scheduled attempt 4, task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_task_that_keeps_failing_waits_longer_and_longer() {
    let mut world = World::with(|settings| settings.task_rest_attempts = 0);
    world.start("order-1");
    let mut waits = Vec::new();
    for _attempt in 1..=14 {
        world.claim();
        let task = world.run().started_task().expect("it was taken");
        waits.push((task.attempt, task.timeout_ms / 1_000));
        let timeout_ms = task.timeout_ms;
        world.advance(timeout_ms);
    }
    let first = [(1, 10), (2, 10), (3, 10), (4, 15), (5, 20), (6, 30), (7, 50), (8, 90), (9, 170), (10, 330)];
    assert_eq!(waits[..10], first);
    assert_eq!(waits[10..], [(11, 610), (12, 610), (13, 610), (14, 610)]);
}

#[test]
fn something_new_turns_a_waiting_retry_into_a_first_attempt() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).hush();
    world.signal("one").claim().fail_task(TaskFailedCause::NonDeterministicError);
    world.expect(expect![[r#"
        > signal one
        < workflow.signaled one
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-7
        > task fails: NonDeterministicError
        < task.failed NonDeterministicError, (task attempt 2)
    "#]]);
}

#[test]
fn something_new_during_a_retry_makes_the_next_a_first_attempt() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.signal("one").advance(seconds(10)).claim();
    world.expect(expect![[r#"
        > signal one
        < (waits: workflow.signaled one)
        @ 00:00:10
        < workflow.signaled one, task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-7
    "#]]);
}

#[test]
fn a_sticky_worker_reads_on_behind_a_mended_retry() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError);
    world.task(|t| t.start_timer("pay", minutes(1)).sticky("cache-1")).hush();
    world.advance(minutes(1)).claim_sticky();
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    assert_eq!(stored.batches, [1, 3, 4, 5, 7, 9, 11], "a row begins with the Completed event 7");
    world.expect(expect![[r#"
        @ 00:01:00
        < timer.fired pay, task.scheduled on cache-1
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 7-11
    "#]]);
}

#[test]
fn a_worker_that_was_given_up_completes_nothing() {
    let mut world = World::new();
    world.start("order-1").claim();
    let stale = world.token();
    world.advance(seconds(10)).claim().hush();
    world.answer_to(stale.clone(), |t| t.complete("late")).answer(|t| t.complete("in time"));
    world.answer_to(stale, |t| t.complete("much too late"));
    world.expect(expect![[r#"
        > task: complete the workflow
        ! not found: Workflow task not found.
        > task: complete the workflow
        < task.scheduled attempt 2, task.started, task.completed, workflow.completed
        > task: complete the workflow
        ! not found: Workflow task not found.
    "#]]);
}

#[test]
fn a_completion_that_is_sent_twice_forgets_the_worker() {
    let mut world = World::new();
    world.start("order-1").claim();
    let token = world.token();
    world.answer(|t| t.sticky("cache-1")).hush();
    world.answer_to(token.clone(), |t| t.sticky("cache-2")).answer_to(token, |t| t.sticky("cache-1"));
    world.expect(expect![[r#"
        > task: sticky on cache-2
        ! not found: Workflow task not found.
        > task: sticky on cache-1
        < (not sticky)
        ! not found: Workflow task not found.
    "#]]);
}

#[test]
fn a_token_of_an_earlier_retry_is_stale_although_its_events_have_the_same_ids() {
    let mut world = World::new();
    world.start("order-1").claim().advance(seconds(10)).claim();
    let stale = world.token();
    world.advance(seconds(10)).claim().hush();
    assert_eq!(stale.scheduled_event_id, world.token().scheduled_event_id);
    world.answer_to(stale.clone(), |t| t.complete("late"));
    let forged = Token { attempt: 3, ..stale.clone() };
    world.answer_to(forged, |t| t.complete("forged")).answer(|t| t.complete("in time"));
    world.expect(expect![[r#"
        > task: complete the workflow
        ! not found: Workflow task not found.
        > task: complete the workflow
        ! not found: Workflow task not found.
        > task: complete the workflow
        < task.scheduled attempt 3, task.started, task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_worker_that_needs_more_time_gets_another_task() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1").force().return_new()).signal("one");
    world.answer(|t| t.sticky("cache-1").force().return_new()).answer(|t| t.complete("done"));
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: sticky on cache-1, one more task, at once
        < task.started, task.completed, (sticky on cache-1), task.scheduled on cache-1, task.started
        = sticky task attempt 1, history 4-6
        > signal one
        < (waits: workflow.signaled one)
        > task: sticky on cache-1, one more task, at once
        < task.completed, workflow.signaled one, task.scheduled on cache-1, task.started
        = sticky task attempt 1, history 7-10
        > task: complete the workflow
        < task.completed, (not sticky), workflow.completed
    "#]]);
}

#[test]
fn signs_of_life_keep_a_task_for_half_an_hour() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.task_timeout_ms = minutes(2));
    world.task(|t| t.sticky("cache-1").force().return_new());
    for _sign in 0..20 {
        world.advance(seconds(90)).answer(|t| t.sticky("cache-1").force().return_new());
    }
    world.hush().advance(1).answer(|t| t.sticky("cache-1").force().return_new());
    world.expect(expect![[r#"
        @ 00:30:00.001
        > task: sticky on cache-1, one more task, at once
        < task.timed_out StartToClose, (not sticky), task.scheduled
        ! not found: workflow task heartbeat timeout
    "#]]);
}

#[test]
fn progress_begins_the_half_hour_again() {
    let mut world = World::new();
    world.start_with("order-1", "", |begin| begin.task_timeout_ms = minutes(2));
    world.task(|t| t.force().return_new());
    for sign in 0..30 {
        world.advance(seconds(90));
        world.answer(|t| if sign == 10 { t.marker("step").force() } else { t.force() }.return_new());
    }
    let task = world.run().started_task().expect("it goes on").clone();
    assert_eq!(task.first_scheduled_ms, world.now_ms - 19 * seconds(90));
}

#[test]
fn a_task_that_comes_with_the_answer_continues_the_history_for_any_worker() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.return_new());
    world.expect(expect![[r#"
        > task: at once
        < task.completed, workflow.signaled one, task.scheduled, task.started
        = sticky task attempt 1, history 4-7
    "#]]);
}

#[test]
fn an_eager_start_hands_out_the_first_task() {
    let mut world = World::new();
    world.start_with("order-1", "eagerly", |begin| {
        begin.eager = true;
        begin.request_id = "r".into();
    });
    world.start_with("order-1", "again, the answer was lost", |begin| {
        begin.eager = true;
        begin.request_id = "r".into();
    });
    world.answer(|t| t.complete("done"));
    world.start_with("order-1", "again, much later", |begin| {
        begin.eager = true;
        begin.request_id = "r".into();
    });
    world.expect(expect![[r#"
        > start order-1 eagerly
        < workflow.started, task.scheduled, task.started
        = task attempt 1, history 1-3
        > start order-1 again, the answer was lost
        = it is run 1, running, task attempt 1, history 1-3
        > task: complete the workflow
        < task.completed, workflow.completed
        > start order-1 again, much later
        = it is run 1, completed
    "#]]);
}

#[test]
fn an_eager_start_that_has_to_wait_hands_out_nothing() {
    let mut world = World::new();
    world.start_with("order-1", "eagerly, in an hour", |begin| {
        begin.eager = true;
        begin.start_delay_ms = hours(1);
    });
    world.expect(expect![[r#"
        > start order-1 eagerly, in an hour
        < workflow.started, first task in 1h
    "#]]);
}

#[test]
fn eager_activities_come_with_the_answer() {
    let mut world = World::new();
    world.start("order-1");
    world.task(|t| {
        t.activity_with("a", "eagerly", |schedule| schedule.request_eager_execution = true);
        t.activity("b");
        t.activity_with("c", "eagerly", |schedule| schedule.request_eager_execution = true);
        t.activity_with("d", "eagerly, elsewhere", |schedule| {
            schedule.request_eager_execution = true;
            schedule.task_queue.as_mut().expect("it has a queue").name = "payments".into();
        });
        t.activity_with("e", "eagerly, then canceled", |schedule| schedule.request_eager_execution = true);
        t.cancel_scheduled("cancel e", 9)
    });
    world.complete_activity("a").complete_activity("c");
    let polls: Vec<_> = ["a", "c"].map(|id| world.attempts[id].claim).into();
    assert_eq!(polls[0], polls[1], "one record, one claim");
    world.expect(expect![[r#"
        > start order-1
        < workflow.started, task.scheduled
        > task: activity a eagerly, activity b, activity c eagerly, activity d eagerly, elsewhere, activity e eagerly, then canceled, cancel e
        < task.started, task.completed, activity.scheduled a, activity.scheduled b, activity.scheduled c, activity.scheduled d, activity.scheduled e, activity.cancel_requested e, (waits: activity.canceled e), (a is taken), (c is taken), activity.canceled e, task.scheduled
        = a, c
        > a returns
        < activity.started a, activity.completed a
        > c returns
        < activity.started c, activity.completed c
    "#]]);
}

#[test]
fn forgetting_the_sticky_worker_moves_its_task() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.reset_sticky().claim_sticky().claim().reset_sticky();
    world.terminate("enough").reset_sticky();
    world.expect(expect![[r#"
        > forget the sticky worker
        < (not sticky), (the task moves to the normal queue)
        > the sticky worker takes the task
        = gone
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-7
        > forget the sticky worker
        = nothing to do
        > terminate: enough
        < task.failed ForceCloseCommand, workflow.terminated "enough"
        > forget the sticky worker
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn a_task_that_reached_nobody_goes_to_the_normal_queue() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").claim_sticky().signal("two").hush();
    world.release_task().release_task().claim();
    world.expect(expect![[r#"
        > the task reached nobody
        < task.timed_out StartToClose, (not sticky), workflow.signaled two, task.scheduled
        > the task reached nobody
        ! not found: Workflow task not found.
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-11
    "#]]);
}

#[test]
fn a_retry_that_reached_nobody_leaves_no_trace() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).claim().hush();
    world.release_task().claim();
    world.expect(expect![[r#"
        > the task reached nobody
        < (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
    "#]]);
}

#[test]
fn a_new_owner_grants_ten_seconds() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").claim_sticky().hush();
    world.pass(hours(1)).crash().advance(millis_before(10)).advance(1);
    world.expect(expect![[r#"
        @ 01:00:00
        ~ crash, 7 events replayed
        @ 01:00:09.999
        @ 01:00:10
        < task.timed_out StartToClose, (not sticky), task.scheduled
    "#]]);
}

#[test]
fn a_sticky_task_waits_ten_seconds_for_its_worker_after_a_crash() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").hush();
    world.pass(hours(1)).crash().advance(millis_before(10)).advance(1);
    world.expect(expect![[r#"
        @ 01:00:00
        ~ crash, 6 events replayed
        @ 01:00:09.999
        @ 01:00:10
        < task.timed_out ScheduleToStart, (not sticky), task.scheduled
    "#]]);
}

#[test]
fn what_was_started_after_the_take_over_gets_no_grace() {
    let mut world = World::new();
    world.start("order-1").crash().pass(1).claim().hush();
    world.advance(millis_before(10)).advance(1);
    world.expect(expect![[r#"
        @ 00:00:10
        @ 00:00:10.001
        < task.timed_out StartToClose, (task attempt 2)
    "#]]);
}

#[test]
fn an_answer_that_is_too_large_for_the_wire_ends_the_run() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.fail_task(TaskFailedCause::GrpcMessageTooLarge);
    world.expect(expect![[r#"
        > task fails: GrpcMessageTooLarge
        < task.failed ForceCloseCommand, workflow.signaled one, workflow.terminated "GrpcMessageTooLarge"
    "#]]);
}

/// So many seconds, less one millisecond.
fn millis_before(count: i64) -> i64 {
    seconds(count) - 1
}
