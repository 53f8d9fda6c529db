//! Updates whose workflow task ends without a word about them: only a completion that is refused ends them.
//!
//! | the task | an update that it brought | one that came meanwhile | one that was accepted before |
//! |---|---|---|---|
//! | failed by its worker, timed out, released | comes again | comes with the next | stays |
//! | completed with the wish for another one | comes again, unless that comes with the answer | comes with the next | stays |
//! | its completion is refused for what came meanwhile | comes again | comes with the next | stays |
//! | its completion is refused otherwise | ends; a patient one comes again | comes with the next | stays |

use everlog_engine::api_types::TaskFailedCause as Cause;
use expect_test::expect;

use super::at_rest;
use crate::world::{World, an_update, seconds};

/// What a worker of the SDKs says where it cannot do a task.
const CAUSES: &[Cause] = &[
    Cause::WorkflowWorkerUnhandledFailure,
    Cause::NonDeterministicError,
    Cause::BadUpdateWorkflowExecutionMessage,
    Cause::UnhandledCommand,
    Cause::ForceCloseCommand,
    Cause::Unspecified,
];

#[test]
fn an_update_outlives_any_number_of_failed_tasks() {
    for cause in CAUSES {
        let mut world = at_rest();
        world.update("u1").claim_sticky().update("u2");
        for _ in 0..4 {
            world.fail_task(*cause).claim();
            assert_eq!(world.given(), ["u1", "u2"], "{cause:?}");
        }
        world.crash().advance(seconds(60)).claim();
        assert_eq!(world.given(), ["u1", "u2"], "{cause:?}");
        world.hush().answer(|t| t.accept("u1").respond("u1").reject("u2"));
        world.expect(expect![[r#"
            > task: accept u1, answer u1, reject u2
            < task.scheduled attempt 5, task.started, task.completed, update.accepted u1, update.completed u1, (update u2 is rejected: Refused)
        "#]]);
    }
}

#[test]
fn a_worker_that_fails_a_task_gets_its_update_again() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().fail_task(Cause::WorkflowWorkerUnhandledFailure).claim();
    world.fail_task(Cause::WorkflowWorkerUnhandledFailure).claim();
    world.answer(|t| t.sticky("cache").accept("u1").respond("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task fails: WorkflowWorkerUnhandledFailure
        < task.scheduled on cache, task.started, task.failed WorkflowWorkerUnhandledFailure, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-9
        > task fails: WorkflowWorkerUnhandledFailure
        < task.failed WorkflowWorkerUnhandledFailure, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-10 and 2 shown
        > task: sticky on cache, accept u1, answer u1
        < task.scheduled attempt 2, task.started, task.completed, (sticky on cache), update.accepted u1, update.completed u1
    "#]]);
}

#[test]
fn an_update_that_came_with_the_start_outlives_failed_tasks() {
    let mut world = World::new();
    world.start_with("order-1", "with u1", |begin| begin.update = Some(an_update("u1"))).claim();
    world.fail_task(Cause::WorkflowWorkerUnhandledFailure).claim();
    assert_eq!(world.given(), ["u1"]);
    world.advance(seconds(10)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.expect(expect![[r#"
        > start order-1 with u1
        < workflow.started, task.scheduled, (update u1 waits)
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task fails: WorkflowWorkerUnhandledFailure
        < task.failed WorkflowWorkerUnhandledFailure, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
        @ 00:00:10
        < (task attempt 3)
        > a worker takes the task
        < (task attempt 3 is taken)
        = task attempt 3, history 1-4 and 2 shown
        > task: accept u1, answer u1
        < task.scheduled attempt 3, task.started, task.completed, update.accepted u1, update.completed u1
    "#]]);
}

#[test]
fn an_update_that_was_accepted_is_answered_behind_failed_tasks() {
    let mut world = at_rest();
    world.update("u1").task(|t| t.sticky("cache").accept("u1")).signal("go").claim_sticky().update("u2");
    world.fail_task(Cause::NonDeterministicError).claim();
    assert_eq!(world.given(), ["u2"], "the worker finds the other one in the history");
    world.answer(|t| t.respond("u1").accept("u2")).update("u1").update("u2");
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: sticky on cache, accept u1
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, (sticky on cache), update.accepted u1
        > signal go
        < workflow.signaled go, task.scheduled on cache
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 7-11
        > update u2
        < (update u2 waits)
        > task fails: NonDeterministicError
        < task.failed NonDeterministicError, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-14
        > task: answer u1, accept u2
        < task.completed, update.completed u1, update.accepted u2
        > update u1
        = the update was completed with event 16
        > update u2
        = the update is accepted
    "#]]);
}

#[test]
fn failures_and_timeouts_in_turn_end_no_update() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().release_task().claim();
    world.fail_task(Cause::WorkflowWorkerUnhandledFailure).claim().advance(seconds(10)).claim();
    world.release_task().claim();
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
        > task fails: WorkflowWorkerUnhandledFailure
        < task.scheduled, task.started, task.failed WorkflowWorkerUnhandledFailure, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-7 and 2 shown
        @ 00:00:10
        < (task attempt 3)
        > a worker takes the task
        < (task attempt 3 is taken)
        = task attempt 3, history 1-7 and 2 shown
        > the task reached nobody
        < (task attempt 3)
        > a worker takes the task
        < (task attempt 3 is taken)
        = task attempt 3, history 1-7 and 2 shown
        > task: reject u1
        < task.scheduled attempt 3, task.started, task.completed, (update u1 is rejected: Refused)
    "#]]);
}

#[test]
fn a_completion_that_is_refused_ends_what_its_task_brought() {
    let mut world = at_rest();
    world.update("u1").update_with("u2", "patient", |admit| admit.patient = true).claim_sticky();
    world.update("u3").answer(|t| t.sticky("cache").respond("u1")).claim();
    assert_eq!(world.given(), ["u2", "u3"]);
    world.fail_task(Cause::WorkflowWorkerUnhandledFailure).claim();
    assert_eq!(world.given(), ["u2", "u3"]);
    world.answer(|t| t.accept("u2").accept("u3"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > update u2 patient
        < (update u2 waits)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > update u3
        < (update u3 waits)
        > task: sticky on cache, answer u1
        < (update u1 ends with the task), task.scheduled on cache, task.started, task.failed BadUpdateWorkflowExecutionMessage, (not sticky), task.scheduled
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid state transition attempted for Update u1: received *update.Response message while in state Sent
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-9
        > task fails: WorkflowWorkerUnhandledFailure
        < task.failed WorkflowWorkerUnhandledFailure, (task attempt 2)
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-10 and 2 shown
        > task: accept u2, accept u3
        < task.scheduled attempt 2, task.started, task.completed, update.accepted u2, update.accepted u3
    "#]]);
}

#[test]
fn a_completion_that_is_refused_for_news_ends_no_update() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().signal("go");
    world.answer(|t| t.accept("u1").respond("u1").complete("paid")).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1").complete("paid"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > signal go
        < task.scheduled on cache, task.started, (waits: workflow.signaled go)
        > task: accept u1, answer u1, complete the workflow
        < task.failed UnhandledCommand, (not sticky), workflow.signaled go, task.scheduled, (about to close)
        ! invalid: UnhandledCommand
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-10
        > task: accept u1, answer u1, complete the workflow
        < task.completed, (not about to close), update.accepted u1, update.completed u1, workflow.completed
    "#]]);
}

#[test]
fn a_task_that_fails_for_news_keeps_others_from_coming_until_the_next_is_over() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().fail_task(Cause::UnhandledCommand).claim().hush();
    world.update("u2").signal("go").update("u1");
    world.answer(|t| t.accept("u1")).update("u2");
    world.expect(expect![[r#"
        > update u2
        ! busy: workflow operation can not be applied because workflow is closing
        > signal go
        ! busy: workflow operation can not be applied because workflow is closing
        > update u1
        = the update waits
        > task: accept u1
        < task.completed, (not about to close), update.accepted u1
        > update u2
        < (update u2 waits), (speculative task)
    "#]]);
}

#[test]
fn a_worker_that_polls_for_more_time_is_given_its_updates_again() {
    let mut world = at_rest();
    world.update("u1").claim_sticky().answer(|t| t.sticky("cache").force()).claim_sticky();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.sticky("cache").force().return_new());
    assert_eq!(world.given(), Vec::<String>::new());
    world.fail_task(Cause::WorkflowWorkerUnhandledFailure).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-4 and 2 shown
        > task: sticky on cache, one more task
        < task.scheduled on cache, task.started, task.completed, task.scheduled on cache
        > the sticky worker takes the task
        < task.started
        = sticky task attempt 1, history 7-9
        > task: sticky on cache, one more task, at once
        < task.completed, task.scheduled on cache, task.started
        = sticky task attempt 1, history 10-12
        > task fails: WorkflowWorkerUnhandledFailure
        < task.failed WorkflowWorkerUnhandledFailure, (not sticky), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-15
        > task: accept u1, answer u1
        < task.completed, update.accepted u1, update.completed u1
    "#]]);
}

#[test]
fn an_update_that_failed_tasks_brought_goes_over_to_the_next_run() {
    let mut world = at_rest();
    world.signal("go").claim_sticky().update("u1").fail_task(Cause::WorkflowWorkerUnhandledFailure).hush();
    world.task(|t| t.continue_as_new(|_again| {})).claim();
    world.expect(expect![[r#"
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, (update u1 goes over to the next run), run 2: workflow.started, (update u1 waits), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
    "#]]);
    let mut world = at_rest();
    world.update("u1").claim_sticky().fail_task(Cause::WorkflowWorkerUnhandledFailure).hush();
    world.terminate("enough").update("u1");
    world.expect(expect![[r#"
        > terminate: enough
        < workflow.terminated "enough", (update u1 ends with the run)
        > update u1
        ! not found: workflow execution already completed
    "#]]);
}
