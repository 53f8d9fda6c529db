//! A caller and a worker over bare gRPC, on the namespace `default` and one task queue.

use bytes::Bytes;
use everlog_engine::command::Command;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RespondWorkflowTaskCompletedRequest, SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
};
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::{patience, raw};

/// The task queue of every [`Caller`].
pub const QUEUE: &str = "orders";
/// How long a workflow task may take until it is handed out again.
const TASK_TIMEOUT_S: i64 = 2;
/// The longest that a server lets it take.
const TASK_TIMEOUT_S_MAX: i64 = 120;

/// Whoever calls, and works.
#[derive(Clone, Debug)]
pub struct Caller(pub Channel);

/// A workflow task as a worker gets it.
#[derive(Debug)]
pub struct Task {
    /// What its completion names.
    pub token: Bytes,
    /// The whole history.
    pub history: Vec<HistoryEvent>,
}

impl Caller {
    /// Calls a method by its request, and gives the encoded answer.
    ///
    /// # Errors
    /// What the server answers; DEADLINE_EXCEEDED where it does not in time.
    pub async fn send<M: Message + Name>(&self, request: M) -> Result<Bytes, Status> {
        let request = Request::new(Bytes::from(request.encode_to_vec()));
        let path = raw::path_of::<M>();
        let answer = patience::answer(&path, raw::call(&self.0, &path, request)).await;
        Ok(answer.map_err(|late| Status::deadline_exceeded(late.to_string()))??.into_inner())
    }

    /// Starts a workflow of this id, once however often it is asked.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn start(&self, id: &str) -> Result<(), Status> {
        self.start_with(id, TASK_TIMEOUT_S).await
    }

    /// The same, of which a worker may keep each task for two minutes.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn start_patient(&self, id: &str) -> Result<(), Status> {
        self.start_with(id, TASK_TIMEOUT_S_MAX).await
    }

    async fn start_with(&self, id: &str, task_timeout_s: i64) -> Result<(), Status> {
        let request = StartWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_id: id.into(),
            workflow_type: Some(WorkflowType { name: "order".into() }),
            task_queue: queue(),
            workflow_task_timeout: Some(prost_types::Duration { seconds: task_timeout_s, nanos: 0 }),
            request_id: format!("start {id}"),
            ..Default::default()
        };
        self.send(request).await.map(drop)
    }

    /// Signals it, once however often it is asked.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn signal(&self, id: &str, name: &str) -> Result<(), Status> {
        let request = SignalWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_execution: execution(id),
            signal_name: name.into(),
            request_id: format!("{id} {name}"),
            ..Default::default()
        };
        self.send(request).await.map(drop)
    }

    /// The whole history.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn history(&self, id: &str) -> Result<Vec<HistoryEvent>, Status> {
        let (mut events, mut page_token) = (Vec::new(), Bytes::new());
        loop {
            let request = GetWorkflowExecutionHistoryRequest {
                namespace: "default".into(),
                execution: execution(id),
                next_page_token: page_token,
                ..Default::default()
            };
            let page: GetWorkflowExecutionHistoryResponse = decoded(self.send(request).await?)?;
            events.extend(decoded::<History>(page.history.unwrap_or_default())?.events);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(events);
            }
        }
    }

    /// Waits for a workflow task; none came where the poll ends empty.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn take(&self) -> Result<Option<Task>, Status> {
        let poll = PollWorkflowTaskQueueRequest {
            namespace: "default".into(),
            task_queue: queue(),
            identity: "worker".into(),
            ..Default::default()
        };
        let task: PollWorkflowTaskQueueResponse = decoded(self.send(poll).await?)?;
        if task.task_token.is_empty() {
            return Ok(None);
        }
        let history = decoded::<History>(task.history.unwrap_or_default())?.events;
        Ok(Some(Task { token: task.task_token, history }))
    }

    /// Completes a workflow task.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub async fn complete(&self, task: Task, commands: Vec<Command>) -> Result<(), Status> {
        let answer = RespondWorkflowTaskCompletedRequest {
            task_token: task.token,
            commands,
            namespace: "default".into(),
            ..Default::default()
        };
        self.send(answer).await.map(drop)
    }
}

fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// The current run of a workflow.
pub fn execution(id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() })
}

/// The task queue of every [`Caller`].
pub fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: QUEUE.into(), kind: 1, ..Default::default() })
}

/// The names of the signals in a history, in order.
pub fn signals(history: &[HistoryEvent]) -> Vec<String> {
    let name = |event: &HistoryEvent| match &event.attributes {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => {
            Some(signal.signal_name.clone())
        }
        _ => None,
    };
    history.iter().filter_map(name).collect()
}
