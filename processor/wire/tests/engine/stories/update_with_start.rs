//! An update with the start of its run: both, or neither.

use expect_test::expect;

use crate::world::{World, an_update};

#[test]
fn an_update_comes_with_the_start_of_its_run() {
    use everlog_engine::vocabulary::ConflictPolicy;
    let with = |begin: &mut everlog_engine::machine::start::Begin, id: &str, policy: ConflictPolicy| {
        (begin.update, begin.conflict_policy) = (Some(an_update(id)), policy.into());
    };
    let mut world = World::new();
    world.start_with("order-1", "with u1", |begin| with(begin, "u1", ConflictPolicy::Fail)).claim();
    assert_eq!(world.given(), ["u1"]);
    world.answer(|t| t.accept("u1").respond("u1"));
    world.start_with("order-1", "with u1 again", |begin| with(begin, "u1", ConflictPolicy::Fail));
    world.start_with("order-1", "with u2", |begin| with(begin, "u2", ConflictPolicy::Fail));
    world
        .start_with("order-1", "with u2, if need be", |begin| with(begin, "u2", ConflictPolicy::UseExisting));
    world.task(|t| t.accept("u2").complete("paid"));
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
        > task: accept u2, complete the workflow
        < (speculative task is taken), task.scheduled, task.started, task.completed, update.accepted u2, workflow.completed
        > start order-1 with u2 again
        = there is run 1, completed, the update ended: AcceptedUpdateCompletedWorkflow
        > start order-1 with u3
        < run 2: workflow.started, task.scheduled, (update u3 waits)
        > start order-1 anew with u4
        < workflow.terminated "TerminateIfRunning WorkflowIdReusePolicy", (update u3 ends with the run), run 3: workflow.started, task.scheduled, (update u4 waits)
    "#]]);
}
