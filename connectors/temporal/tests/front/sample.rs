//! Requests that are in order, to be spoilt by tests, and what they are refused with.

use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::*;
use tonic::{Code, Status};

pub(crate) const NS: &str = "default";
pub(crate) const UUID: &str = "5bbe3c42-7bc0-4a94-a8a9-1b8e3a6ef5b1";

pub(crate) fn start() -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: NS.into(),
        workflow_id: "order-1".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: queue("orders"),
        ..Default::default()
    }
}

pub(crate) fn queue(name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), ..Default::default() })
}

pub(crate) fn run(workflow_id: &str, run_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: workflow_id.into(), run_id: run_id.into() })
}

pub(crate) fn signal() -> SignalWorkflowExecutionRequest {
    SignalWorkflowExecutionRequest {
        namespace: NS.into(),
        workflow_execution: run("order-1", ""),
        signal_name: "pay".into(),
        ..Default::default()
    }
}

pub(crate) fn long() -> String {
    "x".repeat(1_001)
}

pub(crate) fn large() -> Option<Bytes> {
    contents((2 << 20) + 1)
}

/// Contents with so many bytes, whatever they are read as: a field that no message has.
pub(crate) fn contents(bytes: usize) -> Option<Bytes> {
    let mut encoded = vec![15 << 3 | 2];
    prost::encoding::encode_varint(bytes as u64, &mut encoded);
    encoded.resize(encoded.len() + bytes, b'x');
    Some(encoded.into())
}

pub(crate) fn span(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// A request on its way: what it came to, if it was refused.
macro_rules! refused {
    ($front:expr, $method:ident, $request:expr) => {
        $front.client.$method($request).await.map(drop).expect_err(stringify!($method))
    };
}

pub(crate) fn expect(row: &str, status: &Status, code: Code, message: &str) {
    assert_eq!(status.code(), code, "{row}: {}", status.message());
    assert!(status.message().starts_with(message), "{row}: {}", status.message());
}

pub(crate) use refused;
