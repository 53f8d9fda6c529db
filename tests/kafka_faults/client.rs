//! A client over bare gRPC that logs each request and each reply.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse, SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use everlog_tests::dice::Dice;
use everlog_tests::fate::{Fate, is_definite, is_passing};
use everlog_tests::{patience, raw};
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::checker::deliveries::now_ms;
use crate::client_log::{ClientLog, Deed, Via};
use crate::polls::Polls;
use crate::waits::{Sleep, Wait, Waits};

pub const NAMESPACE: &str = "default";
pub const QUEUE: &str = "faults";
/// The type of every workflow.
pub const TYPE: &str = "order";
/// How long a workflow task may be lost with a worker or a node: longer than a hand-over, so that one which reached nobody
/// does not look like one.
pub const TASK_TIMEOUT_S: i64 = 20;
/// How long a caller waits for a node that sleeps before it goes elsewhere.
const ELSEWHERE_AFTER: Duration = Duration::from_secs(10);
/// Between two tries of what was not answered.
pub const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where a node is called.
#[derive(Clone)]
pub struct Connection {
    pub channel: Channel,
    /// Nothing can be expected of a node that sleeps.
    pub sleep: Sleep,
}

/// What has come of an order that was insisted on.
pub struct Taken {
    pub fate: Fate,
    /// The turn of the node that said so.
    pub turn: usize,
    /// Empty where it was not taken.
    pub answer: Bytes,
    /// Why it was not taken.
    pub refusal: Option<Status>,
}

/// Cheap to clone: all share where they call. With several nodes each call goes to any one of them.
#[derive(Clone)]
pub struct Client {
    at: Arc<RwLock<Vec<Connection>>>,
    next: Arc<AtomicUsize>,
    pub client_log: ClientLog,
    pub polls: Polls,
    pub waits: Waits,
}

impl Client {
    pub fn new(connections: Vec<Connection>) -> Self {
        let at = Arc::new(RwLock::new(connections));
        let (client_log, polls, waits) = (ClientLog::default(), Polls::default(), Waits::default());
        Self { at, next: Arc::default(), client_log, polls, waits }
    }

    /// From here on calls go to other nodes.
    pub fn turn_to(&self, connections: Vec<Connection>) {
        *self.at.write().expect("nobody panics while it is held") = connections;
    }

    /// Whose turn it is; the next number is another node, where there are several. In no order: a worker that polls and
    /// answers in turns would bring each answer to the same node, and that may be the dead one.
    fn turn(&self) -> usize {
        let number = self.next.fetch_add(1, Ordering::Relaxed) as u64;
        usize::try_from(Dice::new(number).below(u64::from(u32::MAX))).expect("it is no larger")
    }

    /// One try, at whichever node.
    pub async fn ask<M: Message + Name>(&self, request: &M) -> Result<Bytes, Status> {
        self.ask_at(self.turn(), request).await
    }

    /// One try at the node whose turn this is.
    async fn ask_at<M: Message + Name>(&self, turn: usize, request: &M) -> Result<Bytes, Status> {
        let connection = {
            let at = self.at.read().expect("nobody panics while it is held");
            at[turn % at.len()].clone()
        };
        self.ask_of(&connection, request).await
    }

    /// One try at one node.
    pub async fn ask_of<M: Message + Name>(
        &self,
        connection: &Connection,
        request: &M,
    ) -> Result<Bytes, Status> {
        let mut sent = Request::new(Bytes::from(request.encode_to_vec()));
        // What the server bounds by itself names no deadline: our own side would hold to it, too, and nobody would know
        // whether the server did. The deadline of other calls is one that it never comes to.
        let is_bounded = M::NAME.starts_with("Poll") || M::NAME.starts_with("Query");
        if !is_bounded {
            sent.set_timeout(patience::most() * 2);
        }
        let (path, began) = (raw::path_of::<M>(), Instant::now());
        // Of a node that sleeps nothing comes: its caller goes elsewhere.
        let goes_elsewhere = async {
            patience::pass(ELSEWHERE_AFTER).await;
            connection.sleep.is_on()
        };
        let answer = tokio::select! {
            answer = patience::answer(M::NAME, raw::call(&connection.channel, &path, sent)) => answer.ok(),
            true = goes_elsewhere => None,
        };
        let (took, asleep) = (began.elapsed(), connection.sleep.since(began));
        let (call, ended_ms) = (M::NAME.to_owned(), now_ms());
        self.waits.note(Wait { call, took, asleep, ended_ms, is_bounded });
        Ok(answer.ok_or_else(|| Status::deadline_exceeded("no answer"))??.into_inner())
    }

    /// One try, noted.
    pub async fn once<M: Message + Name>(
        &self,
        workflow_id: &str,
        deed: Deed,
        make: impl FnOnce(String) -> M,
    ) -> Result<Bytes, Status> {
        let (call, identity) = self.client_log.sent(workflow_id, deed, Via::Grpc);
        let answer = self.ask(&make(identity)).await;
        self.client_log.settle(call, fate_of(&answer));
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
        Ok(self.insist_on_answer(workflow_id, deed, make).await?.fate)
    }

    /// The same with what was answered.
    pub async fn insist_on_answer<M: Message + Name>(
        &self,
        workflow_id: &str,
        deed: Deed,
        make: impl FnOnce(String) -> M,
    ) -> anyhow::Result<Taken> {
        let (call, identity) = self.client_log.sent(workflow_id, deed, Via::Grpc);
        self.insist_as(call, workflow_id, &make(identity)).await
    }

    /// The same for an order that is noted already.
    pub async fn insist_as<M: Message + Name>(
        &self,
        call: usize,
        workflow_id: &str,
        request: &M,
    ) -> anyhow::Result<Taken> {
        let deadline = patience::deadline();
        let mut pause = tokio::time::interval(AGAIN_AFTER);
        let mut is_first = true;
        loop {
            pause.tick().await;
            let turn = self.turn();
            match self.ask_at(turn, request).await {
                Ok(answer) => {
                    self.client_log.settle(call, Fate::Acked);
                    return Ok(Taken { fate: Fate::Acked, turn, answer, refusal: None });
                }
                Err(status) if !is_passing(&status) => {
                    let fate = if is_first { Fate::Refused } else { Fate::Unknown };
                    self.client_log.settle(call, fate);
                    return Ok(Taken { fate, turn, answer: Bytes::new(), refusal: Some(status) });
                }
                Err(status) => {
                    is_first &= is_definite(&status);
                    ensure!(!deadline.is_over(), "{} for {workflow_id} is not taken: {status}", M::NAME);
                }
            }
        }
    }

    /// The same request again and again until it is taken; whoever calls notes it.
    pub async fn insist_on<M: Message + Name>(&self, request: &M) -> anyhow::Result<Bytes> {
        self.read(request).await
    }

    pub async fn start(&self, id: &str) -> anyhow::Result<Fate> {
        self.insist(id, Deed::Start, |identity| start(id, identity)).await
    }

    pub async fn signal(&self, id: &str, name: &str) -> anyhow::Result<Fate> {
        let deed = Deed::Signal { name: name.into(), in_order: true };
        self.insist(id, deed, |identity| signal(id, name, identity)).await
    }

    /// The same with the turn of the node that took it.
    pub async fn signal_at(&self, id: &str, name: &str) -> anyhow::Result<(Fate, usize)> {
        let deed = Deed::Signal { name: name.into(), in_order: true };
        let taken = self.insist_on_answer(id, deed, |identity| signal(id, name, identity)).await?;
        Ok((taken.fate, taken.turn))
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
        self.history_from(self.turn(), id, run_id).await
    }

    /// The same from the node whose turn this is.
    pub async fn history_from(
        &self,
        first: usize,
        id: &str,
        run_id: &str,
    ) -> anyhow::Result<Vec<HistoryEvent>> {
        let (mut events, mut page_token) = (Vec::new(), Bytes::new());
        loop {
            let request = GetWorkflowExecutionHistoryRequest {
                namespace: NAMESPACE.into(),
                execution: execution(id, run_id),
                next_page_token: page_token,
                ..Default::default()
            };
            let page = GetWorkflowExecutionHistoryResponse::decode(self.read_from(first, &request).await?)?;
            events.extend(History::decode(page.history.unwrap_or_default())?.events);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(events);
            }
        }
    }

    /// What a run is described by, as bytes.
    pub async fn describe(&self, id: &str, run_id: &str) -> anyhow::Result<Bytes> {
        self.describe_from(self.turn(), id, run_id).await
    }

    /// The same from the node whose turn this is.
    pub async fn describe_from(&self, first: usize, id: &str, run_id: &str) -> anyhow::Result<Bytes> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            execution: execution(id, run_id),
        };
        self.read_from(first, &request).await
    }

    /// A read is repeated for as long as the server cannot answer.
    async fn read<M: Message + Name>(&self, request: &M) -> anyhow::Result<Bytes> {
        self.read_from(self.turn(), request).await
    }

    /// The same, first at the node whose turn this is and then at those after it.
    pub async fn read_from<M: Message + Name>(&self, first: usize, request: &M) -> anyhow::Result<Bytes> {
        let deadline = patience::deadline();
        let mut pause = tokio::time::interval(AGAIN_AFTER);
        for turn in first.. {
            pause.tick().await;
            match self.ask_at(turn, request).await {
                Ok(answer) => return Ok(answer),
                // A query that nobody can answer now, or that no worker has answered while a broker was away.
                Err(status) if is_unanswered(&status) && !deadline.is_over() => {}
                Err(status) if is_passing(&status) && !deadline.is_over() => {}
                Err(status) => return Err(status).context("a read"),
            }
        }
        bail!("there are turns enough")
    }
}

/// No worker was there for a query, or none within its time.
fn is_unanswered(status: &Status) -> bool {
    matches!(status.code(), Code::FailedPrecondition | Code::DeadlineExceeded)
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
        workflow_type: Some(WorkflowType { name: TYPE.into() }),
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
