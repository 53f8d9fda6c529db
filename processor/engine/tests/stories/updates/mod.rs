//! Updates: admitted, taken, refused, answered; and tasks that leave no trace.

mod early;
mod ends;
mod messages;
mod tasks;
mod traces;
mod with_start;

use everlog_engine::api_types::TaskFailedCause;
use expect_test::expect;

use crate::world::{World, acceptance, an_update, application, minutes, response, seconds, text};

/// A run at rest, whose worker has it in its cache.
pub(super) fn at_rest() -> World {
    let mut world = World::new();
    world.start("order-1").task(|t| t.sticky("cache"));
    world.hush();
    world
}

#[test]
fn an_update_is_taken_and_answered_in_one_task() {
    let mut world = at_rest();
    world.update("u1").claim_sticky();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.sticky("cache").accept("u1").respond("u1"));
    world.update("u1");
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: sticky on cache, accept u1, answer u1
        < task.scheduled on cache, task.started, task.completed, update.accepted u1, update.completed u1
        > update u1
        = the update was completed with event 9
    "#]]);
}

#[test]
fn an_update_is_answered_later_than_it_is_taken() {
    let mut world = at_rest();
    world.update("u1").task(|t| t.accept("u1").start_timer("pay", minutes(1)));
    world.crash().advance(minutes(1)).update("u1");
    world.task(|t| t.respond("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: accept u1, start timer pay 1m
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, update.accepted u1, timer.started pay due 00:01:00
        ~ crash, 9 events replayed
        @ 00:01:00
        < timer.fired pay, task.scheduled
        > update u1
        = the update is accepted
        > task: answer u1
        < task.started, task.completed, update.completed u1
    "#]]);
}

#[test]
fn a_refused_update_leaves_no_trace() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().answer(|t| t.sticky("cache").reject("u1"));
    let next_event_id = world.run().head.next_event_id;
    world.update("u1").update("u2").claim_sticky();
    assert_eq!(
        (world.given(), world.run().head.next_event_id),
        (vec!["u1".into(), "u2".into()], next_event_id)
    );
    world.answer(|t| t.reject("u1").accept("u2").respond("u2"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: sticky on cache, reject u1
        < (update u1 is rejected: Refused)
        = back behind event 3
        > update u1
        < (update u1 waits), (speculative task)
        > update u2
        < (update u2 waits)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: reject u1, accept u2, answer u2
        < task.scheduled on cache, task.started, task.completed, (not sticky), update.accepted u2, update.completed u2, (update u1 is rejected: Refused)
    "#]]);
}

#[test]
fn an_update_that_no_worker_speaks_of_is_rejected() {
    let mut world = at_rest();
    world.update("u1").task(|t| t.sticky("cache"));
    world.update("u2").task(|t| t.start_timer("pay", minutes(1)));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: sticky on cache
        < (not sticky), (speculative task is taken), (sticky on cache), (update u1 is rejected: UnprocessedUpdate)
        = back behind event 3
        > update u2
        < (update u2 waits), (speculative task)
        > task: start timer pay 1m
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, timer.started pay due 00:01:00, (update u2 is rejected: UnprocessedUpdate)
    "#]]);
}

#[test]
fn a_task_that_showed_events_leaves_a_trace_unless_its_worker_takes_them_again() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("pay", minutes(1))).hush();
    world.update("u1").task(|t| t.reject("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: reject u1
        < (speculative task is taken), task.scheduled, task.started, task.completed, (update u1 is rejected: Refused)
    "#]]);
    let mut world = World::new();
    world.start("order-1").task(|t| t.start_timer("pay", minutes(1))).hush();
    world.update("u1").task(|t| t.reject("u1").again());
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: reject u1
        < (speculative task is taken), (update u1 is rejected: Refused)
        = back behind event 3
    "#]]);
}

#[test]
fn whatever_else_is_written_makes_a_speculative_task_an_ordinary_one() {
    let mut world = at_rest();
    world.update("u1").signal("go").claim_sticky().answer(|t| t.sticky("cache").reject("u1"));
    world.update("u2").claim_sticky().signal("stop").answer(|t| t.reject("u2"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > signal go
        < task.scheduled on cache, workflow.signaled go
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        > task: sticky on cache, reject u1
        < task.completed, (update u1 is rejected: Refused)
        > update u2
        < (update u2 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 8-8 and 2 shown
        > signal stop
        < task.scheduled on cache, task.started, (waits: workflow.signaled stop)
        > task: reject u2
        < task.completed, (not sticky), (update u2 is rejected: Refused), workflow.signaled stop, task.scheduled
    "#]]);
}

#[test]
fn an_update_waits_for_the_end_of_a_task_and_gets_one_of_its_own() {
    let mut world = at_rest();
    world.signal("go").claim_sticky().update("u1");
    world.answer(|t| t.sticky("cache").return_new());
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.reject("u1"));
    world.expect(expect![[r#"
        > signal go
        < workflow.signaled go, task.scheduled on cache
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        > update u1
        < (update u1 waits)
        > task: sticky on cache, at once
        < task.completed, (speculative task), (speculative task is taken)
        = sticky task attempt 1, history 8-8 and 2 shown
        > task: reject u1
        < (not sticky), (update u1 is rejected: Refused)
        = back behind event 7
    "#]]);
}

#[test]
fn a_worker_that_needs_time_is_given_an_update_once() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().answer(|t| t.sticky("cache").force().return_new());
    assert_eq!(world.given(), Vec::<String>::new());
    world.update("u2").answer(|t| t.sticky("cache").force().return_new());
    assert_eq!(world.given(), ["u2"]);
    world.answer(|t| t.accept("u1").accept("u2"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: sticky on cache, one more task, at once
        < task.scheduled on cache, task.started, task.completed, task.scheduled on cache, task.started
        = sticky task attempt 1, history 7-9
        > update u2
        < (update u2 waits)
        > task: sticky on cache, one more task, at once
        < task.completed, task.scheduled on cache, task.started
        = sticky task attempt 1, history 10-12
        > task: accept u1, accept u2
        < task.completed, (not sticky), update.accepted u1, update.accepted u2
    "#]]);
}

#[test]
fn a_task_that_is_lost_brings_its_updates_again() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().advance(seconds(10)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.advance(seconds(10)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.reject("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        @ 00:00:10
        < task.scheduled on cache, task.started, task.timed_out StartToClose, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-9
        @ 00:00:20
        < task.timed_out StartToClose, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-10 and 2 shown
        > task: reject u1
        < task.scheduled attempt 2, task.started, task.completed, (update u1 is rejected: Refused)
    "#]]);
}

#[test]
fn a_task_that_reached_nobody_leaves_no_trace() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().release_task().claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.reject("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > the task reached nobody
        < (not sticky), (speculative task)
        > a worker takes the task
        < (speculative task is taken)
        = task attempt 1, history 1-4 and 2 shown
        > task: reject u1
        < (update u1 is rejected: Refused)
        = back behind event 3
    "#]]);
}

#[test]
fn a_speculative_task_that_nobody_comes_for_is_written_at_last() {
    let mut world = at_rest();
    world.update("u1").advance(seconds(10));
    world.task(|t| t.reject("u1")).update("u2").advance(seconds(5)).task(|t| t.reject("u2"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        @ 00:00:10
        < task.scheduled on cache, task.timed_out ScheduleToStart, (not sticky), task.scheduled
        > task: reject u1
        < task.started, task.completed, (update u1 is rejected: Refused)
        > update u2
        < (update u2 waits), (speculative task)
        @ 00:00:15
        < task.scheduled, task.timed_out ScheduleToStart, task.scheduled
        > task: reject u2
        < task.started, task.completed, (update u2 is rejected: Refused)
    "#]]);
}

#[test]
fn an_update_of_a_patient_caller_is_taken_while_tasks_fail() {
    let mut world = at_rest();
    world.update("u1").claim_sticky();
    for _ in 0..3 {
        world.fail_task(TaskFailedCause::WorkflowWorkerUnhandledFailure).advance(seconds(10)).claim();
    }
    world.hush().update("u2").update_with("u3", "patient", |admit| admit.patient = true);
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.expect(expect![[r#"
        > update u2
        ! not ready: Unable to perform workflow execution update due to Workflow Task in failed state.
        > update u3 patient
        < (update u3 waits)
        > task: accept u1, answer u1
        < task.scheduled attempt 3, task.started, task.completed, update.accepted u1, update.completed u1, task.scheduled
    "#]]);
}

#[test]
fn a_run_whose_task_keeps_failing_takes_no_update() {
    let mut world = World::new();
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError);
    world.claim().advance(seconds(10)).hush();
    world.update("u1");
    world.expect(expect![[r#"
        > update u1
        ! not ready: Unable to perform workflow execution update due to Workflow Task in failed state.
    "#]]);
}

#[test]
fn nonsense_about_updates_fails_the_task() {
    let mut world = at_rest();
    world.update("u1").task(|t| t.sticky("cache").respond("u1"));
    world.task(|t| t.accept("u1").accept("u1"));
    world.advance(seconds(10)).task(|t| t.accept("unknown"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: sticky on cache, answer u1
        < (not sticky), (speculative task is taken), (update u1 ends with the task), task.scheduled on cache, task.started, task.failed BadUpdateWorkflowExecutionMessage, (task attempt 2)
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid state transition attempted for Update u1: received *update.Response message while in state Sent
        > task: accept u1, accept u1
        < (task attempt 2 is taken)
        ! invalid: BadUpdateWorkflowExecutionMessage: update u1 wasn't found on the server.
        @ 00:00:10
        < (task attempt 3)
        > task: accept unknown
        < (task attempt 3 is taken)
        ! invalid: BadUpdateWorkflowExecutionMessage: update unknown wasn't found on the server.
    "#]]);
}

#[test]
fn an_update_that_the_server_forgot_comes_back_with_its_acceptance() {
    let mut world = at_rest();
    let request = an_update("u9").request;
    world.signal("go").task(|t| {
        let t = t.message("accept u9", acceptance("u9", Some(request)));
        t.message("answer u9", response("u9", text("done")))
    });
    world.expect(expect![[r#"
        > signal go
        < workflow.signaled go, task.scheduled on cache
        > task: accept u9, answer u9
        < (not sticky), task.started, task.completed, update.accepted u9, update.completed u9
    "#]]);
}

#[test]
fn an_update_is_answered_once() {
    let mut world = at_rest();
    let again = || acceptance("u1", Some(an_update("u1").request));
    world.update("u1").task(|t| t.accept("u1").respond("u1"));
    world.signal("go").task(|t| t.message("accept u1 again", again()));
    let mut other = at_rest();
    other.update("u2").task(|t| t.reject("u2").message("accept u2", acceptance("u2", None)));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: accept u1, answer u1
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, update.accepted u1, update.completed u1
        > signal go
        < workflow.signaled go, task.scheduled
        > task: accept u1 again
        < task.started, task.failed BadUpdateWorkflowExecutionMessage, (task attempt 2)
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid state transition attempted for Update u1: received *update.Acceptance message while in state Completed
    "#]]);
    other.expect(expect![[r#"
        > update u2
        < (update u2 waits), (speculative task)
        > task: reject u2, accept u2
        < (not sticky), (speculative task is taken), (update u2 ends with the task), task.scheduled on cache, task.started, task.failed BadUpdateWorkflowExecutionMessage, (task attempt 2)
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid state transition attempted for Update u2: received *update.Acceptance message while in state Completed
    "#]]);
}

#[test]
fn an_update_waits_for_the_first_task_of_a_child() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.child("parcel-1"));
    world.deliver().expect("the child is started");
    world.hush();
    world.on("parcel-1").update("u1").claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.reject("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: reject u1
        < task.completed, (update u1 is rejected: Refused)
    "#]]);
}

#[test]
fn updates_go_over_to_the_run_that_follows_by_itself() {
    use everlog_engine::api_types::RetryPolicy;
    let mut world = World::new();
    world
        .start_with("order-1", "", |begin| {
            begin.retry_policy = Some(RetryPolicy::default());
            begin.run_timeout_ms = 60_000;
        })
        .task(|t| t)
        .hush();
    world.update("u1").advance(minutes(1)).advance(seconds(1)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.fail(application("Flaky", |_failure| {})));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        @ 00:00:05
        < task.scheduled, task.timed_out ScheduleToStart, task.scheduled
        @ 00:01:00
        < workflow.timed_out InProgress, (update u1 goes over to the next run), run 2: workflow.started attempt 2, first task in 1s, (update u1 waits), (speculative task)
        @ 00:01:01
        < (the delay is over), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: fail the workflow
        < task.completed, workflow.failed InProgress, (update u1 goes over to the next run), run 3: workflow.started attempt 3, first task in 2s, (update u1 waits), (speculative task)
    "#]]);
}

#[test]
fn a_run_may_close_over_an_update_that_its_worker_has_not_seen() {
    let mut world = at_rest();
    world.signal("go").claim_sticky().update("u1").answer(|t| t.complete("paid"));
    world.update("u1");
    world.expect(expect![[r#"
        > signal go
        < workflow.signaled go, task.scheduled on cache
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 4-7
        > update u1
        < (update u1 waits)
        > task: complete the workflow
        < task.completed, (not sticky), workflow.completed, (update u1 ends with the run)
        > update u1
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn updates_end_with_their_run_as_far_as_they_are() {
    let mut world = at_rest();
    world.update("u1").update("u2").update("u3");
    world.task(|t| t.accept("u1").respond("u1").accept("u2").complete("paid"));
    world.update("u1").update("u2").update("u3").update("u4");
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > update u2
        < (update u2 waits)
        > update u3
        < (update u3 waits)
        > task: accept u1, answer u1, accept u2, complete the workflow
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, update.accepted u1, update.completed u1, update.accepted u2, workflow.completed, (update u3 ends with the run)
        > update u1
        = the update was completed with event 9
        > update u2
        = the update ended: AcceptedUpdateCompletedWorkflow
        > update u3
        ! not found: workflow execution already completed
        > update u4
        ! not found: workflow execution already completed
    "#]]);
    let mut world = at_rest();
    world.update("u1").terminate("enough");
    let mut world_in_hand = at_rest();
    world_in_hand.update("u1").claim_sticky().terminate("enough");
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > terminate: enough
        < workflow.terminated "enough", (update u1 ends with the run)
    "#]]);
    world_in_hand.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > terminate: enough
        < task.scheduled on cache, task.started, task.failed ForceCloseCommand, workflow.terminated "enough", (update u1 ends with the run)
    "#]]);
}

#[test]
fn updates_go_over_to_the_run_that_continues_theirs() {
    let mut world = at_rest();
    world.update("u1").update_with("u2", "of this run only", |admit| admit.this_run_only = true);
    world.claim_sticky().answer(|t| t.continue_as_new(|_order| {})).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > update u2 of this run only
        < (update u2 waits)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: continue as new
        < task.scheduled on cache, task.started, task.completed, (not sticky), workflow.continued_as_new, (update u1 goes over to the next run), (update u2 ends with the run), run 2: workflow.started, (update u1 waits), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: accept u1, answer u1
        < task.completed, update.accepted u1, update.completed u1
    "#]]);
}

#[test]
fn updates_are_bounded_at_once_and_in_all() {
    let mut world = World::with(|settings| {
        (settings.updates_in_flight_max, settings.updates_max, settings.updates_bytes_max) = (2, 3, 150);
    });
    world.start("order-1").task(|t| t).hush();
    world.update("u1").update("u2").update("u3");
    world.task(|t| t.accept("u1").respond("u1").accept("u2").respond("u2"));
    world.update("u3").task(|t| t.accept("u3").respond("u3")).update("u4").update("u3");
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > update u2
        < (update u2 waits)
        > update u3
        ! too many at once: limit on number of concurrent in-flight updates has been reached (2)
        > task: accept u1, answer u1, accept u2, answer u2
        < (speculative task is taken), task.scheduled, task.started, continue as new is advised, task.completed, update.accepted u1, update.completed u1, update.accepted u2, update.completed u2
        > update u3
        < (update u3 waits), (speculative task)
        > task: accept u3, answer u3
        < (speculative task is taken), task.scheduled, task.started, continue as new is advised, task.completed, update.accepted u3, update.completed u3
        > update u4
        ! too many: The limit on the total number of distinct updates in this workflow has been reached (3). An update that is sent again has to keep its id; a workflow that takes many has to continue as new.
        > update u3
        = the update was completed with event 16
    "#]]);
    let mut world = World::with(|settings| settings.updates_bytes_max = 50);
    world.start("order-1").task(|t| t).hush();
    world.update("u1").update("u2");
    world.expect(expect![[r#"
        > update u1
        ! too many at once: limit on total payload size of in-flight updates has been reached (50 bytes)
        > update u2
        ! too many at once: limit on total payload size of in-flight updates has been reached (50 bytes)
    "#]]);
}
