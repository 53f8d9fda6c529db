//! What a worker says of updates, and what it must have.

use expect_test::expect;

use super::at_rest;
use crate::world::bare;

#[test]
fn what_a_worker_says_of_an_update_must_be_whole() {
    let mut world = at_rest();
    world.update("u1").task(|t| t.message("accept u1 by an empty message", bare("u1", "Acceptance")));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: accept u1 by an empty message
        < (not sticky), (speculative task is taken), (update u1 ends with the task), task.scheduled on cache, task.started, task.failed BadUpdateWorkflowExecutionMessage, (task attempt 2)
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid *update.Acceptance: accepted_request_sequencing_event_id is not set
    "#]]);
    let mut world = at_rest();
    world.update("u1").task(|t| t.accept("u1"));
    world.signal("go").task(|t| t.message("answer u1 by an empty message", bare("u1", "Response")));
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > task: accept u1
        < (not sticky), (speculative task is taken), task.scheduled on cache, task.started, task.completed, update.accepted u1
        > signal go
        < workflow.signaled go, task.scheduled
        > task: answer u1 by an empty message
        < task.started, task.failed BadUpdateWorkflowExecutionMessage, (task attempt 2)
        ! invalid: BadUpdateWorkflowExecutionMessage: invalid *update.Response: meta is not set
    "#]]);
}
