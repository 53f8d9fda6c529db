//! Runs that are deleted, open or closed: afterwards nobody knows them.

use serde_json::json;

use crate::generator::{Generator, WORKFLOW};

fn describe(generator: &mut Generator) {
    generator.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

/// The latest run.
pub fn delete(generator: &mut Generator) {
    generator.call(
        "DeleteWorkflowExecution",
        json!({"namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}}),
    );
    generator.step(crate::program::Step::Vanish { workflow: WORKFLOW.to_owned() });
    generator.ended(true);
    generator.has_deleted = true;
    generator.started_by.clear();
    generator.completed = 0;
    describe(generator);
    if generator.percent(50) {
        super::clients::signal(generator);
    }
    super::starts::plain(generator);
}

/// Nobody.
pub fn in_vain(generator: &mut Generator) {
    let execution = generator.one_of(&[
        json!({"workflow_id": "~unknown"}),
        json!({"workflow_id": WORKFLOW, "run_id": "@run ~unknown 0"}),
        json!({"workflow_id": WORKFLOW, "run_id": "not-a-run"}),
        json!({}),
    ]);
    generator
        .call("DeleteWorkflowExecution", json!({"namespace": "default", "workflow_execution": execution}));
}
