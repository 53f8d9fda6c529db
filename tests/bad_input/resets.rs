//! Rows about resets: of what, to where, and with what.

use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::workflow::PostResetOperation;
use everlog_temporal_api::workflowservice::ResetWorkflowExecutionRequest;
use tonic::Code;

use crate::row::{Action, Row, invalid, refused, row};
use crate::world::{BYSTANDER, execution, request};

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(12, "reset without a request id", reset(|r| r.request_id.clear()), invalid("RequestId is not set on request.")),
        row(67, "reset to event 1", reset(|r| r.workflow_task_finish_event_id = 1),
            invalid("Workflow task finish ID must be > 1 && <= workflow last event ID.")),
        row(12, "reset to nothing", reset(|r| r.workflow_task_finish_event_id = 0),
            invalid("Workflow task finish ID must be > 1 && <= workflow last event ID.")),
        row(12, "reset beyond the history", reset(|r| r.workflow_task_finish_event_id = 1_000),
            invalid("Workflow task finish ID must be > 1 && <= workflow last event ID.")),
        row(12, "reset with a run id that is no UUID", reset(|r| run_of(r).run_id = "mine".into()), invalid("Invalid RunId.")),
        row(12, "reset of an unknown run", reset(|r| run_of(r).workflow_id = "unknown".into()), refused(Code::NotFound, "")),
        row(12, "reset without an execution", reset(|r| r.workflow_execution = None), invalid("Execution is not set on request.")),
        row(12, "reset with an operation that is none", reset(|r| r.post_reset_operations = vec![PostResetOperation::default()]),
            invalid("unsupported post reset operation: <nil>")),
        row(12, "reset with an unknown reapply type", reset(reapply_nothing_known), invalid("unknown reset type")),
    ]
}

fn reset(edit: fn(&mut ResetWorkflowExecutionRequest)) -> Action {
    request(move |world| {
        let mut reset = ResetWorkflowExecutionRequest {
            namespace: world.namespace.clone(),
            workflow_execution: Some(execution(BYSTANDER)),
            reason: "again".into(),
            request_id: world.fresh("reset"),
            workflow_task_finish_event_id: 3,
            ..ResetWorkflowExecutionRequest::default()
        };
        edit(&mut reset);
        reset
    })
}

fn run_of(reset: &mut ResetWorkflowExecutionRequest) -> &mut WorkflowExecution {
    reset.workflow_execution.get_or_insert_default()
}

fn reapply_nothing_known(reset: &mut ResetWorkflowExecutionRequest) {
    reset.reset_reapply_type = 9;
}
