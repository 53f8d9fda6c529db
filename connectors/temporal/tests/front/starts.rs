//! Starts that are refused before anything is written, each with its code and the beginning of its message.

use bytes::Bytes;
use everlog_temporal_api::common::{Priority, RetryPolicy};
use everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest as Start;
use prost::Message;
use tonic::Code;

use crate::Front;
use crate::sample::{expect, large, long, queue, refused, span, start};

/// Row of the list of bad inputs, what spoils the start, and what has to be answered.
type Row = (&'static str, fn(&mut Start), Code, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("1", |s| s.namespace.clear(), Code::InvalidArgument, "Namespace not set on request."),
    ("2", |s| s.namespace = "no".into(), Code::NotFound, "Namespace no is not found."),
    ("3", |s| s.namespace = long(), Code::InvalidArgument, "Namespace length exceeds limit."),
    ("5", |s| s.workflow_id.clear(), Code::InvalidArgument, "WorkflowId is not set on request."),
    ("6", |s| s.workflow_id = long(), Code::InvalidArgument, "WorkflowId length exceeds limit."),
    ("7", |s| s.workflow_type = None, Code::InvalidArgument, "WorkflowType is not set on request."),
    ("8", |s| s.task_queue = None, Code::InvalidArgument, "taskQueue is not set"),
    ("8", |s| s.task_queue = queue(""), Code::InvalidArgument, "missing task queue name"),
    ("8", |s| s.task_queue = queue(&long()), Code::InvalidArgument, "taskQueue length exceeds limit"),
    ("9", |s| s.task_queue = queue("/_sys/a"), Code::InvalidArgument, "task queue name cannot start with"),
    ("10", |s| s.request_id = long(), Code::InvalidArgument, "RequestId length exceeds limit."),
    ("19", |s| s.input = large(), Code::InvalidArgument, "Blob data size exceeds limit."),
    ("20", |s| s.memo = large(), Code::InvalidArgument, "Memo size exceeds limit."),
    ("39", |s| s.workflow_run_timeout = span(-1), Code::InvalidArgument, "An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration"),
    ("41", |s| s.retry_policy = Some(RetryPolicy { maximum_attempts: -1, ..Default::default() }), Code::InvalidArgument, "MaximumAttempts cannot be negative on retry policy."),
    ("42", |s| s.cron_schedule = "x".into(), Code::InvalidArgument, "invalid CronSchedule."),
    ("51", |s| s.workflow_id_conflict_policy = 99, Code::Internal, "unknown WorkflowIdConflictPolicy: 99"),
    ("52", |s| (s.workflow_id_reuse_policy, s.workflow_id_conflict_policy) = (4, 2), Code::InvalidArgument,
        "Invalid WorkflowIDReusePolicy"),
    ("72", |s| s.priority = negative_priority(), Code::InvalidArgument, "PriorityKey can't be negative"),
    ("73", |s| s.links = vec![Bytes::new(); 11], Code::InvalidArgument, "cannot attach more than 10 links"),
];

fn negative_priority() -> Option<Bytes> {
    let priority = Priority { priority_key: -1, ..Default::default() };
    Some(priority.encode_to_vec().into())
}

#[tokio::test]
async fn starts_are_refused_with_their_code_and_message() {
    let mut front = Front::open().await;
    for (row, spoil, code, message) in ROWS {
        let mut request = start();
        spoil(&mut request);
        expect(row, &refused!(front, start_workflow_execution, request), *code, message);
    }
}
