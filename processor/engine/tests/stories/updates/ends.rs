//! Updates that were taken and are not answered: their runs end, and what their callers hear.

use everlog_engine::machine::start::Begin;
use expect_test::expect;

use crate::stories::retries::policy;
use crate::world::{World, application, minutes, seconds};

/// A run that has taken `u1` and owes it an answer, not told; and the run's id.
fn taken(change: impl FnOnce(&mut Begin)) -> (World, String) {
    let mut world = World::new();
    world.start_with("order-1", "", change).update("u1").task(|t| t.accept("u1")).hush();
    let run_id = world.run().start.run_id.clone();
    (world, run_id)
}

#[test]
fn an_update_that_was_taken_stays_with_a_run_that_goes_on_in_a_new_one() {
    let (mut world, first) = taken(|_as_it_is| {});
    world.signal("go").task(|t| t.continue_as_new(|_again| {})).crash();
    world.update_run(&first, "u1", "of the first run").claim();
    assert!(world.given().is_empty(), "the new run does not know it");
    world.answer(|t| t).update("u1").task(|t| t.accept("u1").respond("u1")).update("u1");
    world.update_run(&first, "u1", "of the first run");
    world.expect(expect![[r#"
        > signal go
        < workflow.signaled go, task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 2: workflow.started, task.scheduled
        ~ crash, 12 events replayed
        > update u1 of the first run
        = the update ended: AcceptedUpdateCompletedWorkflow
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: nothing to do
        < task.completed
        > update u1
        < (update u1 waits), (speculative task)
        > task: accept u1, answer u1
        < (speculative task is taken), task.scheduled, task.started, task.completed, update.accepted u1, update.completed u1
        > update u1
        = the update was completed with event 9
        > update u1 of the first run
        = the update ended: AcceptedUpdateCompletedWorkflow
    "#]]);
}

#[test]
fn an_update_may_be_taken_by_the_task_that_goes_on_in_a_new_run() {
    let mut world = World::new();
    let first = world.start("order-1").run().start.run_id.clone();
    world.update("u1").update("u2").hush();
    world.task(|t| t.accept("u1").continue_as_new(|_again| {})).claim();
    assert_eq!(world.given(), ["u2"], "only what nobody has taken goes over");
    world.update_run(&first, "u1", "of the first run").update_run(&first, "u2", "of the first run");
    world.expect(expect![[r#"
        > task: accept u1, continue as new
        < task.started, task.completed, update.accepted u1, workflow.continued_as_new, (update u2 goes over to the next run), run 2: workflow.started, (update u2 waits), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > update u1 of the first run
        = the update ended: AcceptedUpdateCompletedWorkflow
        > update u2 of the first run
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn an_update_that_was_taken_fails_with_a_run_that_is_tried_again() {
    let (mut world, first) = taken(|begin| begin.retry_policy = policy(2));
    world.signal("go").task(|t| t.fail(application("Flaky", |_as_it_is| {})));
    world.update_run(&first, "u1", "of the first run").advance(seconds(1)).claim();
    assert!(world.given().is_empty(), "the next attempt does not know it");
    world.update("u1").answer(|t| t.fail(application("Flaky", |_as_it_is| {}))).update("u1");
    world.expect(expect![[r#"
        > signal go
        < workflow.signaled go, task.scheduled
        > task: fail the workflow
        < task.started, task.completed, workflow.failed InProgress, run 2: workflow.started attempt 2, first task in 1s
        > update u1 of the first run
        = the update ended: AcceptedUpdateCompletedWorkflow
        @ 00:00:01
        < (the delay is over), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > update u1
        < (update u1 waits)
        > task: fail the workflow
        < task.completed, workflow.failed MaximumAttemptsReached, (update u1 ends with the run)
        > update u1
        ! not found: workflow execution already completed
    "#]]);
}

#[test]
fn an_update_that_was_taken_fails_with_a_run_whose_time_is_over() {
    let (mut world, first) = taken(|begin| begin.run_timeout_ms = minutes(1));
    world.advance(minutes(1)).update("u1").update_run(&first, "u1", "of that run");
    world.expect(expect![[r#"
        @ 00:01:00
        < workflow.timed_out RetryPolicyNotSet
        > update u1
        = the update ended: AcceptedUpdateCompletedWorkflow
        > update u1 of that run
        = the update ended: AcceptedUpdateCompletedWorkflow
    "#]]);
    let (mut world, first) = taken(|begin| {
        begin.retry_policy = policy(2);
        begin.run_timeout_ms = minutes(1);
    });
    world.advance(minutes(1)).update_run(&first, "u1", "of the first run").advance(seconds(1)).update("u1");
    world.expect(expect![[r#"
        @ 00:01:00
        < workflow.timed_out InProgress, run 2: workflow.started attempt 2, first task in 1s
        > update u1 of the first run
        = the update ended: AcceptedUpdateCompletedWorkflow
        @ 00:01:01
        < (the delay is over), task.scheduled
        > update u1
        < (update u1 waits)
    "#]]);
}

#[test]
fn an_update_that_was_taken_fails_with_a_run_that_is_terminated() {
    let (mut world, _first) = taken(|_as_it_is| {});
    world.terminate("enough").update("u1");
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough"
        > update u1
        = the update ended: AcceptedUpdateCompletedWorkflow
    "#]]);
    let (mut world, _first) = taken(|_as_it_is| {});
    world.update("u2").claim().terminate("enough").update("u1").update("u2");
    world.expect(expect![[r#"
        > update u2
        < (update u2 waits), (speculative task)
        > a worker takes the task
        < (speculative task is taken)
        = task attempt 1, history 1-5 and 2 shown
        > terminate: enough
        < task.scheduled, task.started, task.failed ForceCloseCommand, workflow.terminated "enough", (update u2 ends with the run)
        > update u1
        = the update ended: AcceptedUpdateCompletedWorkflow
        > update u2
        ! not found: workflow execution already completed
    "#]]);
}
