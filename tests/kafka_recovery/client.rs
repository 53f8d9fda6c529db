//! A caller and a worker over bare gRPC: workflows here are registers, their signals what was written.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RespondWorkflowTaskCompletedRequest, SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
};
use everlog_tests::raw;
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

const WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct Client(pub Channel);

impl Client {
    async fn send<M: Message + Name>(&self, request: M) -> Result<Bytes, Status> {
        let request = Request::new(Bytes::from(request.encode_to_vec()));
        let path = raw::path_of::<M>();
        let answer = tokio::time::timeout(ANSWER_WITHIN, raw::call(&self.0, &path, request)).await;
        Ok(answer.map_err(|_late| Status::deadline_exceeded("no answer"))??.into_inner())
    }

    pub async fn start(&self, id: &str) -> Result<(), Status> {
        let request = StartWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_id: id.into(),
            workflow_type: Some(WorkflowType { name: "register".into() }),
            task_queue: queue(),
            request_id: format!("start {id}"),
            ..Default::default()
        };
        self.send(request).await.map(drop)
    }

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

    /// The whole history, or why it is not told.
    pub async fn history(&self, id: &str) -> Result<Vec<HistoryEvent>, Status> {
        let (mut events, mut page_token) = (Vec::new(), Bytes::new());
        let broken = |error: prost::DecodeError| Status::internal(error.to_string());
        loop {
            let request = GetWorkflowExecutionHistoryRequest {
                namespace: "default".into(),
                execution: execution(id),
                next_page_token: page_token,
                ..Default::default()
            };
            let page =
                GetWorkflowExecutionHistoryResponse::decode(self.send(request).await?).map_err(broken)?;
            events.extend(History::decode(page.history.unwrap_or_default()).map_err(broken)?.events);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(events);
            }
        }
    }

    /// The histories of all, once they are there: until then each is unavailable, and never has a hole.
    pub async fn histories(&self, ids: &[String]) -> anyhow::Result<Vec<Vec<HistoryEvent>>> {
        let deadline = Instant::now() + WITHIN;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let mut all = Vec::new();
        for id in ids {
            loop {
                match self.history(id).await {
                    Ok(events) => {
                        let in_order = (1..).zip(&events).all(|(number, event)| event.event_id == number);
                        ensure!(
                            in_order && !events.is_empty(),
                            "{id}: its events are numbered without a gap"
                        );
                        all.push(events);
                        break;
                    }
                    Err(status) if status.code() == Code::Unavailable => {
                        ensure!(Instant::now() < deadline, "{id}: {status}");
                        looks.tick().await;
                    }
                    Err(status) => return Err(status).with_context(|| format!("the history of {id}")),
                }
            }
        }
        Ok(all)
    }

    /// Takes a workflow task if there is one, and completes it without a command.
    pub async fn work(&self) -> anyhow::Result<()> {
        let poll = PollWorkflowTaskQueueRequest {
            namespace: "default".into(),
            task_queue: queue(),
            identity: "worker".into(),
            ..Default::default()
        };
        let task = PollWorkflowTaskQueueResponse::decode(self.send(poll).await?)?;
        if task.task_token.is_empty() {
            return Ok(());
        }
        let events = History::decode(task.history.unwrap_or_default())?.events;
        ensure!((1..).zip(&events).all(|(number, event)| event.event_id == number), "a task with a hole");
        let answer = RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token,
            namespace: "default".into(),
            ..Default::default()
        };
        self.send(answer).await?;
        Ok(())
    }
}

pub fn signals(history: &[HistoryEvent]) -> Vec<String> {
    let name = |event: &HistoryEvent| match &event.attributes {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => {
            Some(signal.signal_name.clone())
        }
        _ => None,
    };
    history.iter().filter_map(name).collect()
}

fn execution(id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() })
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "registers".into(), kind: 1, ..Default::default() })
}
