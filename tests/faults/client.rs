//! A client and worker in a few lines, for tests that care about the server's fate more than about single calls.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse, SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
};
use everlog_tests::{patience, raw};
use prost::{Message, Name};
use tonic::Status;
use tonic::transport::Channel;

pub const NAMESPACE: &str = "default";

/// Sends a request. No answer counts as an answer: a bad one.
pub async fn send<M: Message + Name>(channel: &Channel, request: M) -> Result<Bytes, Status> {
    let answer = patience::answer(M::NAME, raw::send(channel, request)).await;
    answer.unwrap_or_else(|late| Err(Status::deadline_exceeded(late.to_string())))
}

/// A start that is fine.
pub fn start(id: &str, queue: &str) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue { name: queue.into(), kind: 1, ..TaskQueue::default() }),
        identity: "tests".into(),
        request_id: id.into(),
        ..StartWorkflowExecutionRequest::default()
    }
}

pub fn execution(id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() })
}

/// Sends a signal with so many bytes; its name is its request id.
pub async fn signal(channel: &Channel, id: &str, name: &str, bytes: usize) -> Result<Bytes, Status> {
    let data = Bytes::from(noise(bytes));
    let input = Payloads { payloads: vec![Payload { data, ..Payload::default() }] };
    let request = SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(id),
        signal_name: name.into(),
        input: Some(input.encode_to_vec().into()),
        request_id: name.into(),
        ..SignalWorkflowExecutionRequest::default()
    };
    send(channel, request).await
}

/// Bytes that no compression makes smaller.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(bytes).collect()
}

/// All events of the current run.
pub async fn events(channel: &Channel, id: &str) -> anyhow::Result<Vec<HistoryEvent>> {
    let mut events = Vec::new();
    let mut next_page_token = Bytes::new();
    loop {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: execution(id),
            next_page_token,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let page = GetWorkflowExecutionHistoryResponse::decode(send(channel, request).await?)?;
        events.extend(History::decode(page.history.unwrap_or_default())?.events);
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return Ok(events);
        }
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
