//! Starts that are refused before anything is written, each with its code and the beginning of its message.

use bytes::Bytes;
use everlog_temporal_api::common::{Priority, RetryPolicy};
use everlog_temporal_api::workflowservice::*;
use prost::Message;
use tonic::Code;

use crate::Front;
use crate::sample::{expect, large, long, queue, refused, span, start};

#[tokio::test]
async fn starts_are_refused_with_their_code_and_message() {
    let mut front = Front::open().await;
    let bad = Code::InvalidArgument;
    let priority = Priority {
        priority_key: -1,
        ..Default::default()
    };
    let rows: Vec<(&str, StartWorkflowExecutionRequest, Code, &str)> = vec![
        (
            "1",
            StartWorkflowExecutionRequest {
                namespace: String::new(),
                ..start()
            },
            bad,
            "Namespace not set on",
        ),
        (
            "2",
            StartWorkflowExecutionRequest {
                namespace: "no".into(),
                ..start()
            },
            Code::NotFound,
            "Namespace no is",
        ),
        (
            "3",
            StartWorkflowExecutionRequest {
                namespace: long(),
                ..start()
            },
            bad,
            "Namespace length exceeds limit.",
        ),
        (
            "5",
            StartWorkflowExecutionRequest {
                workflow_id: String::new(),
                ..start()
            },
            bad,
            "WorkflowId is not set",
        ),
        (
            "6",
            StartWorkflowExecutionRequest {
                workflow_id: long(),
                ..start()
            },
            bad,
            "WorkflowId length exceeds",
        ),
        (
            "7",
            StartWorkflowExecutionRequest {
                workflow_type: None,
                ..start()
            },
            bad,
            "WorkflowType is not set",
        ),
        (
            "8",
            StartWorkflowExecutionRequest {
                task_queue: None,
                ..start()
            },
            bad,
            "taskQueue is not set",
        ),
        (
            "8",
            StartWorkflowExecutionRequest {
                task_queue: queue(""),
                ..start()
            },
            bad,
            "missing task queue name",
        ),
        (
            "8",
            StartWorkflowExecutionRequest {
                task_queue: queue(&long()),
                ..start()
            },
            bad,
            "taskQueue length",
        ),
        (
            "9",
            StartWorkflowExecutionRequest {
                task_queue: queue("/_sys/a"),
                ..start()
            },
            bad,
            "task queue name cannot",
        ),
        (
            "10",
            StartWorkflowExecutionRequest {
                request_id: long(),
                ..start()
            },
            bad,
            "RequestId length exceeds",
        ),
        (
            "13",
            StartWorkflowExecutionRequest {
                identity: long(),
                ..start()
            },
            bad,
            "Identity length exceeds",
        ),
        (
            "19",
            StartWorkflowExecutionRequest {
                input: large(),
                ..start()
            },
            bad,
            "Blob data size exceeds limit.",
        ),
        (
            "20",
            StartWorkflowExecutionRequest {
                memo: large(),
                ..start()
            },
            bad,
            "Memo size exceeds limit.",
        ),
        (
            "39",
            StartWorkflowExecutionRequest {
                workflow_run_timeout: span(-1),
                ..start()
            },
            bad,
            "negative duration",
        ),
        (
            "41",
            StartWorkflowExecutionRequest {
                retry_policy: Some(RetryPolicy::default()),
                ..start()
            },
            bad,
            "retry_policy is not supported yet.",
        ),
        (
            "42",
            StartWorkflowExecutionRequest {
                cron_schedule: "x".into(),
                ..start()
            },
            bad,
            "cron_schedule is not",
        ),
        (
            "51",
            StartWorkflowExecutionRequest {
                workflow_id_conflict_policy: 99,
                ..start()
            },
            Code::Internal,
            "unknown WorkflowIdConflictPolicy: 99",
        ),
        (
            "52",
            StartWorkflowExecutionRequest {
                workflow_id_reuse_policy: 4,
                workflow_id_conflict_policy: 2,
                ..start()
            },
            bad,
            "invalid WorkflowIdReusePolicy",
        ),
        (
            "72",
            StartWorkflowExecutionRequest {
                priority: Some(priority.encode_to_vec().into()),
                ..start()
            },
            bad,
            "priority key can't be negative",
        ),
        (
            "73",
            StartWorkflowExecutionRequest {
                links: vec![Bytes::new(); 11],
                ..start()
            },
            bad,
            "cannot attach more",
        ),
    ];
    for (row, request, code, message) in rows {
        expect(
            row,
            &refused!(front, start_workflow_execution, request),
            code,
            message,
        );
    }
}
