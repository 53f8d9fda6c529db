//! An update with the start of its run: both, or neither.

use everlog_engine::api_types::{ConflictPolicy, ReusePolicy};
use everlog_engine::machine::start::Begin;
use expect_test::expect;

use crate::world::{World, an_update};

fn with(begin: &mut Begin, id: &str, policy: ConflictPolicy) {
    (begin.update, begin.conflict_policy) = (Some(an_update(id)), policy.into());
}

#[test]
fn an_update_comes_with_the_start_of_its_run() {
    let mut world = World::new();
    world.start_with("order-1", "with u1", |begin| with(begin, "u1", ConflictPolicy::Fail)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.start_with("order-1", "with u1 again", |begin| with(begin, "u1", ConflictPolicy::Fail));
    world.start_with("order-1", "with u2", |begin| with(begin, "u2", ConflictPolicy::Fail));
    world
        .start_with("order-1", "with u2, if need be", |begin| with(begin, "u2", ConflictPolicy::UseExisting));
    world.task(|t| t.accept("u2").respond("u2").complete("paid"));
    world.start_with("order-1", "with u2 again", |begin| with(begin, "u2", ConflictPolicy::UseExisting));
    world.start_with("order-1", "with u3", |begin| with(begin, "u3", ConflictPolicy::UseExisting));
    world.start_with("order-1", "anew with u4", |begin| with(begin, "u4", ConflictPolicy::TerminateExisting));
    world.expect(expect![[r#"
        > start order-1 with u1
        < workflow.started, task.scheduled, (update u1 waits)
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
        > task: accept u1, answer u1
        < task.completed, update.accepted u1, update.completed u1
        > start order-1 with u1 again
        = there is run 1, running, the update was completed with event 6
        > start order-1 with u2
        ! taken: Workflow execution is already running. WorkflowId: order-1, run 1.
        > start order-1 with u2, if need be
        < (update u2 waits), (speculative task)
        = there is run 1, running
        > task: accept u2, answer u2, complete the workflow
        < (speculative task is taken), task.scheduled, task.started, task.completed, update.accepted u2, update.completed u2, workflow.completed
        > start order-1 with u2 again
        = there is run 1, completed, the update was completed with event 11
        > start order-1 with u3
        < run 2: workflow.started, task.scheduled, (update u3 waits)
        > start order-1 anew with u4
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", (update u3 ends with the run), run 3: workflow.started, task.scheduled, (update u4 waits)
    "#]]);
}

/// A run that took `u1` and ended without an answer, not told.
fn over() -> World {
    let mut world = World::new();
    world.start_with("order-1", "with u1", |begin| {
        begin.request_id = "r1".into();
        with(begin, "u1", ConflictPolicy::Fail);
    });
    world.task(|t| t.accept("u1").complete("paid")).hush();
    world
}

#[test]
fn an_update_that_its_run_never_answered_begins_anew_with_a_start() {
    for policy in [ConflictPolicy::Fail, ConflictPolicy::UseExisting, ConflictPolicy::TerminateExisting] {
        let mut world = over();
        world.start_with("order-1", "with u1 again", |begin| with(begin, "u1", policy));
        world.task(|t| t.accept("u1").respond("u1").complete("paid"));
        world.start_with("order-1", "with u1 once more", |begin| with(begin, "u1", policy));
        world.expect(expect![[r#"
            > start order-1 with u1 again
            < run 2: workflow.started, task.scheduled, (update u1 waits)
            > task: accept u1, answer u1, complete the workflow
            < task.started, task.completed, update.accepted u1, update.completed u1, workflow.completed
            > start order-1 with u1 once more
            = there is run 2, completed, the update was completed with event 6
        "#]]);
    }
}

#[test]
fn an_update_that_its_run_never_answered_is_held_to_the_policy_of_the_start() {
    let mut world = over();
    let again = |begin: &mut Begin, policy: ReusePolicy| {
        with(begin, "u1", ConflictPolicy::UseExisting);
        begin.reuse_policy = policy.into();
    };
    world.start_with("order-1", "with u1, never again", |begin| again(begin, ReusePolicy::RejectDuplicate));
    world.start_with("order-1", "with u1, if it failed", |begin| {
        again(begin, ReusePolicy::AllowDuplicateFailedOnly);
    });
    world.expect(expect![[r#"
        > start order-1 with u1, never again
        ! taken: Workflow execution already finished. WorkflowId: order-1, run 1. Workflow Id reuse policy: reject duplicate workflow Id.
        > start order-1 with u1, if it failed
        ! taken: Workflow execution already finished successfully. WorkflowId: order-1, run 1. Workflow Id reuse policy: allow duplicate workflow Id if last run failed.
    "#]]);
}

#[test]
fn the_same_start_hears_what_became_of_its_update() {
    let mut world = over();
    world.start_with("order-1", "with u1 by the same request", |begin| {
        begin.request_id = "r1".into();
        with(begin, "u1", ConflictPolicy::Fail);
    });
    world.update("u1").expect(expect![[r#"
        > start order-1 with u1 by the same request
        = there is run 1, completed, the update ended: AcceptedUpdateCompletedWorkflow
        > update u1
        = the update ended: AcceptedUpdateCompletedWorkflow
    "#]]);
}

#[test]
fn the_same_start_hears_of_its_update_when_its_run_has_gone_on_in_a_new_one() {
    let again = |world: &mut World| {
        world.start_with("order-1", "with u1 by the same request", |begin| {
            begin.request_id = "r1".into();
            with(begin, "u1", ConflictPolicy::UseExisting);
        });
    };
    let mut world = World::new();
    again(&mut world);
    world.task(|t| t.accept("u1").respond("u1").continue_as_new(|_again| {})).hush();
    again(&mut world);
    world.task(|t| t.complete("paid"));
    again(&mut world);
    world.expect(expect![[r#"
        > start order-1 with u1 by the same request
        = there is run 1, continuedasnew, the update was completed with event 6
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > start order-1 with u1 by the same request
        = there is run 1, continuedasnew, the update was completed with event 6
    "#]]);
    let mut world = World::new();
    again(&mut world);
    world.task(|t| t.accept("u1").continue_as_new(|_again| {})).hush();
    again(&mut world);
    world.expect(expect![[r#"
        > start order-1 with u1 by the same request
        = there is run 1, continuedasnew, the update ended: AcceptedUpdateCompletedWorkflow
    "#]]);
}
