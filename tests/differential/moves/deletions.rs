//! Runs that are deleted, open or closed: afterwards nobody knows them.

use serde_json::json;

use crate::author::{Author, WORKFLOW};

fn describe(author: &mut Author) {
    author.call(
        "DescribeWorkflowExecution",
        json!({"namespace": "default", "execution": {"workflow_id": WORKFLOW}}),
    );
}

/// The latest run.
pub fn delete(author: &mut Author) {
    author.call(
        "DeleteWorkflowExecution",
        json!({"namespace": "default", "workflow_execution": {"workflow_id": WORKFLOW}}),
    );
    author.step(crate::program::Step::Vanish { workflow: WORKFLOW.to_owned() });
    author.ended(true);
    author.has_deleted = true;
    author.started_by.clear();
    author.completed = 0;
    describe(author);
    if author.percent(50) {
        super::clients::signal(author);
    }
    super::starts::plain(author);
}

/// Nobody.
pub fn in_vain(author: &mut Author) {
    let execution = author.one_of(&[
        json!({"workflow_id": "~unknown"}),
        json!({"workflow_id": WORKFLOW, "run_id": "@run ~unknown 0"}),
        json!({"workflow_id": WORKFLOW, "run_id": "not-a-run"}),
        json!({}),
    ]);
    author.call("DeleteWorkflowExecution", json!({"namespace": "default", "workflow_execution": execution}));
}
