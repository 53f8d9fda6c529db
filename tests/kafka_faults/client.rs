//! A caller over bare gRPC that notes what it sends and what it is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse, SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use everlog_tests::fate::{Fate, is_definite, is_passing};
use everlog_tests::raw;
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::ledger::{Deed, Ledger, Via};

pub const NAMESPACE: &str = "default";
pub const QUEUE: &str = "faults";
/// How long a workflow task may be lost with a worker or a node.
pub const TASK_TIMEOUT_S: i64 = 2;
/// How long an answer may take.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long an order is insisted on.
const TAKEN_WITHIN: Duration = Duration::from_secs(180);
/// Between two tries of what was not answered.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Cheap to clone: all share where they call. With several nodes each call goes to the next one.
#[derive(Clone)]
pub struct Client {
    at: Arc<RwLock<Vec<Channel>>>,
    next: Arc<AtomicUsize>,
    pub ledger: Ledger,
}

impl Client {
    pub fn new(channels: Vec<Channel>) -> Self {
        Self { at: Arc::new(RwLock::new(channels)), next: Arc::default(), ledger: Ledger::default() }
    }

    /// From here on calls go to other nodes.
    pub fn turn_to(&self, channels: Vec<Channel>) {
        *self.at.write().expect("nobody panics while it is held") = channels;
    }

    fn channel(&self) -> Channel {
        let at = self.at.read().expect("nobody panics while it is held");
        at[self.next.fetch_add(1, Ordering::Relaxed) % at.len()].clone()
    }

    /// One try.
    pub async fn ask<M: Message + Name>(&self, request: &M) -> Result<Bytes, Status> {
        let request = Request::new(Bytes::from(request.encode_to_vec()));
        let (channel, path) = (self.channel(), raw::path_of::<M>());
        let answer = tokio::time::timeout(ANSWER_WITHIN, raw::call(&channel, &path, request)).await;
        Ok(answer.map_err(|_late| Status::deadline_exceeded("no answer"))??.into_inner())
    }

    /// One try, noted.
    pub async fn once<M: Message + Name>(
        &self,
        workflow_id: &str,
        deed: Deed,
        make: impl FnOnce(String) -> M,
    ) -> Result<Bytes, Status> {
        let (call, identity) = self.ledger.sent(workflow_id, deed, Via::Grpc);
        let answer = self.ask(&make(identity)).await;
        self.ledger.settle(call, fate_of(&answer));
        answer
    }

    /// The same request again and again until the server says something about it. A refusal after a try without an answer
    /// says nothing about that try.
    pub async fn insist<M: Message + Name>(
        &self,
        workflow_id: &str,
        deed: Deed,
        make: impl FnOnce(String) -> M,
    ) -> anyhow::Result<Fate> {
        let (call, identity) = self.ledger.sent(workflow_id, deed.clone(), Via::Grpc);
        let request = make(identity);
        let deadline = Instant::now() + TAKEN_WITHIN;
        let mut pause = tokio::time::interval(AGAIN_AFTER);
        let mut is_first = true;
        loop {
            pause.tick().await;
            let answer = self.ask(&request).await;
            match &answer {
                Ok(_) => {
                    self.ledger.settle(call, Fate::Acked);
                    return Ok(Fate::Acked);
                }
                Err(status) if !is_passing(status) => {
                    let fate = if is_first { Fate::Refused } else { Fate::Unknown };
                    self.ledger.settle(call, fate);
                    return Ok(fate);
                }
                Err(status) => {
                    is_first &= is_definite(status);
                    if Instant::now() > deadline {
                        bail!("{deed:?} for {workflow_id} was not taken within {TAKEN_WITHIN:?}: {status}");
                    }
                }
            }
        }
    }

    pub async fn start(&self, id: &str) -> anyhow::Result<Fate> {
        self.insist(id, Deed::Start, |identity| start(id, identity)).await
    }

    pub async fn signal(&self, id: &str, name: &str) -> anyhow::Result<Fate> {
        let deed = Deed::Signal { name: name.into(), in_order: true };
        self.insist(id, deed, |identity| signal(id, name, identity)).await
    }

    /// Tried once: it may be lost, and must not be doubled.
    pub async fn hint(&self, id: &str, name: &str) -> Result<(), Status> {
        let deed = Deed::Signal { name: name.into(), in_order: false };
        self.once(id, deed, |identity| signal(id, name, identity)).await.map(drop)
    }

    pub async fn terminate(&self, id: &str) -> anyhow::Result<Fate> {
        let make = |identity| TerminateWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: execution(id, ""),
            identity,
            ..Default::default()
        };
        self.insist(id, Deed::Terminate, make).await
    }

    /// The events of a run, of the latest one where `run_id` is empty.
    pub async fn history(&self, id: &str, run_id: &str) -> anyhow::Result<Vec<HistoryEvent>> {
        let (mut events, mut page_token) = (Vec::new(), Bytes::new());
        loop {
            let request = GetWorkflowExecutionHistoryRequest {
                namespace: NAMESPACE.into(),
                execution: execution(id, run_id),
                next_page_token: page_token,
                ..Default::default()
            };
            let page = GetWorkflowExecutionHistoryResponse::decode(self.read(&request).await?)?;
            events.extend(History::decode(page.history.unwrap_or_default())?.events);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(events);
            }
        }
    }

    /// What a run is described by, as bytes.
    pub async fn describe(&self, id: &str, run_id: &str) -> anyhow::Result<Bytes> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            execution: execution(id, run_id),
        };
        self.read(&request).await
    }

    /// A read is repeated for as long as the server cannot answer.
    async fn read<M: Message + Name>(&self, request: &M) -> anyhow::Result<Bytes> {
        let deadline = Instant::now() + TAKEN_WITHIN;
        let mut pause = tokio::time::interval(AGAIN_AFTER);
        loop {
            pause.tick().await;
            match self.ask(request).await {
                Ok(answer) => return Ok(answer),
                Err(status) if is_passing(&status) && Instant::now() < deadline => {}
                Err(status) => return Err(status).context("a read"),
            }
        }
    }
}

/// What follows from the answer to a single try.
pub fn fate_of(answer: &Result<Bytes, Status>) -> Fate {
    match answer {
        Ok(_) => Fate::Acked,
        Err(status) if is_definite(status) && status.code() != Code::Ok => Fate::Refused,
        Err(_) => Fate::Unknown,
    }
}

pub fn start(id: &str, identity: String) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "order".into() }),
        task_queue: queue(),
        workflow_task_timeout: Some(prost_types::Duration { seconds: TASK_TIMEOUT_S, nanos: 0 }),
        request_id: identity.clone(),
        identity,
        ..Default::default()
    }
}

pub fn signal(id: &str, name: &str, identity: String) -> SignalWorkflowExecutionRequest {
    SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(id, ""),
        signal_name: name.into(),
        request_id: identity.clone(),
        identity,
        ..Default::default()
    }
}

pub fn execution(id: &str, run_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: id.into(), run_id: run_id.into() })
}

pub fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: QUEUE.into(), kind: 1, ..Default::default() })
}
