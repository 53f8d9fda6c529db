//! A caller and a worker over bare gRPC. Each workflow has a task queue of its own name.

use std::net::SocketAddr;

use anyhow::ensure;
use bytes::Bytes;
use everlog_engine::api_types::{
    ActivityType, Execution, TaskQueue as CommandQueue, WorkflowType as CommandType,
};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::update::Refer;
use everlog_engine::machine::{activity, child, close, external_workflow, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::protocol::Message as Protocol;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RecordActivityTaskHeartbeatRequest, RespondActivityTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
};
use everlog_tests::caller::Caller;
use everlog_tests::patience;
use prost::Message;

pub const NAMESPACE: &str = "default";
/// How long a task may be in a worker's hands: longer than any test.
const PATIENT_S: i64 = 120;
/// The same, of an attempt at an activity.
const HOUR_MS: i64 = 3_600_000;

/// A workflow task.
#[derive(Debug)]
pub struct Task {
    pub token: Bytes,
    pub workflow_id: String,
    pub run_id: String,
    pub history: Vec<HistoryEvent>,
    pub messages: Vec<Protocol>,
}

/// Whoever calls, and works.
#[derive(Clone, Debug)]
pub struct Worker {
    pub caller: Caller,
    /// Where the node takes commands.
    pub http: SocketAddr,
}

impl Worker {
    pub fn new(caller: Caller, http: SocketAddr) -> Self {
        Self { caller, http }
    }

    /// Starts a workflow, by a cron schedule where there is one; its run id.
    pub async fn start(&self, id: &str, kind: &str, cron: &str) -> anyhow::Result<String> {
        self.start_of(StartWorkflowExecutionRequest {
            cron_schedule: cron.into(),
            ..start_request(id, kind, id, PATIENT_S)
        })
        .await
    }

    /// Starts a workflow on a task queue, of which a worker may keep a task for so long.
    pub async fn start_on(
        &self,
        id: &str,
        kind: &str,
        queue: &str,
        task_timeout_s: i64,
    ) -> anyhow::Result<String> {
        self.start_of(start_request(id, kind, queue, task_timeout_s)).await
    }

    async fn start_of(&self, request: StartWorkflowExecutionRequest) -> anyhow::Result<String> {
        Ok(StartWorkflowExecutionResponse::decode(self.caller.send(request).await?)?.run_id)
    }

    pub async fn signal(&self, id: &str, name: &str) -> anyhow::Result<()> {
        Ok(self.caller.signal(id, name).await?)
    }

    pub async fn history(&self, id: &str) -> anyhow::Result<Vec<HistoryEvent>> {
        Ok(self.caller.history(id).await?)
    }

    /// Waits until the history says so.
    pub async fn until_history(
        &self,
        id: &str,
        says: impl Fn(&[HistoryEvent]) -> bool,
    ) -> anyhow::Result<Vec<HistoryEvent>> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            let history = self.history(id).await?;
            if says(&history) {
                return Ok(history);
            }
            ensure!(!deadline.is_over(), "{id}: {:?}", kinds(&history));
        }
    }

    /// Waits for the workflow's next task.
    pub async fn task(&self, id: &str) -> anyhow::Result<Task> {
        let deadline = patience::deadline();
        loop {
            if let Some(task) = self.poll(id).await? {
                return Ok(task);
            }
            ensure!(!deadline.is_over(), "{id} has no task: {:?}", kinds(&self.history(id).await?));
        }
    }

    /// Asks a queue for a task, once.
    pub async fn poll(&self, name: &str) -> anyhow::Result<Option<Task>> {
        let poll = PollWorkflowTaskQueueRequest {
            namespace: NAMESPACE.into(),
            task_queue: queue(name),
            identity: "worker".into(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let task = PollWorkflowTaskQueueResponse::decode(self.caller.send(poll).await?)?;
        if task.task_token.is_empty() {
            return Ok(None);
        }
        let history = History::decode(task.history.unwrap_or_default())?.events;
        let WorkflowExecution { workflow_id, run_id } = task.workflow_execution.unwrap_or_default();
        let messages = task.messages;
        Ok(Some(Task { token: task.task_token, workflow_id, run_id, history, messages }))
    }

    /// Completes tasks without commands until the history of one says so; that one is the caller's.
    pub async fn task_that(&self, id: &str, says: impl Fn(&[HistoryEvent]) -> bool) -> anyhow::Result<Task> {
        loop {
            let task = self.task(id).await?;
            if says(&task.history) {
                return Ok(task);
            }
            self.complete(task.token, Vec::new()).await?;
        }
    }

    pub async fn complete(&self, token: Bytes, commands: Vec<Command>) -> anyhow::Result<()> {
        self.answer(token, Vec::new(), commands).await
    }

    /// Completes a task with messages about updates, each of which stands before the commands.
    pub async fn answer(
        &self,
        token: Bytes,
        messages: Vec<Protocol>,
        commands: Vec<Command>,
    ) -> anyhow::Result<()> {
        let refer = |message: &Protocol| {
            command(CommandAttributes::ProtocolMessage(Refer { message_id: message.id.clone() }))
        };
        let answer = RespondWorkflowTaskCompletedRequest {
            task_token: token,
            commands: messages.iter().map(refer).chain(commands).collect(),
            messages,
            namespace: NAMESPACE.into(),
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        self.caller.send(answer).await?;
        Ok(())
    }

    /// Waits for an activity task of the workflow; its token.
    pub async fn activity(&self, id: &str) -> anyhow::Result<Bytes> {
        let deadline = patience::deadline();
        loop {
            let poll = PollActivityTaskQueueRequest {
                namespace: NAMESPACE.into(),
                task_queue: queue(id),
                identity: "worker".into(),
                ..PollActivityTaskQueueRequest::default()
            };
            let task = PollActivityTaskQueueResponse::decode(self.caller.send(poll).await?)?;
            if !task.task_token.is_empty() {
                return Ok(task.task_token);
            }
            ensure!(!deadline.is_over(), "{id} has no activity task");
        }
    }

    pub async fn heartbeat(&self, task_token: &Bytes) -> anyhow::Result<()> {
        let beat = RecordActivityTaskHeartbeatRequest {
            task_token: task_token.clone(),
            namespace: NAMESPACE.into(),
            ..RecordActivityTaskHeartbeatRequest::default()
        };
        self.caller.send(beat).await?;
        Ok(())
    }

    pub async fn complete_activity(&self, task_token: Bytes) -> anyhow::Result<()> {
        let answer = RespondActivityTaskCompletedRequest {
            task_token,
            namespace: NAMESPACE.into(),
            ..RespondActivityTaskCompletedRequest::default()
        };
        self.caller.send(answer).await?;
        Ok(())
    }
}

fn start_request(id: &str, kind: &str, on: &str, task_timeout_s: i64) -> StartWorkflowExecutionRequest {
    StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: kind.into() }),
        task_queue: queue(on),
        workflow_task_timeout: Some(prost_types::Duration { seconds: task_timeout_s, nanos: 0 }),
        request_id: format!("start {id}"),
        ..StartWorkflowExecutionRequest::default()
    }
}

pub fn queue(id: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: id.into(), kind: 1, ..TaskQueue::default() })
}

pub fn count(history: &[HistoryEvent], kind: EventType) -> usize {
    history.iter().filter(|event| event.event_type == kind as i32).count()
}

pub fn has(history: &[HistoryEvent], kind: EventType) -> bool {
    count(history, kind) > 0
}

pub fn kinds(history: &[HistoryEvent]) -> Vec<&'static str> {
    history
        .iter()
        .filter_map(|event| Some(EventType::try_from(event.event_type).ok()?.as_str_name()))
        .collect()
}

fn command(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

pub fn start_timer(ms: i64) -> Command {
    let start_to_fire_timeout = Some(Span::from_ms(ms));
    command(CommandAttributes::StartTimer(timer::Start { timer_id: "pause".into(), start_to_fire_timeout }))
}

pub fn end() -> Command {
    command(CommandAttributes::CompleteWorkflow(close::Complete { result: None }))
}

/// An activity on the task queue of the workflow.
pub fn schedule_activity(id: &str) -> Command {
    command(CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(CommandQueue::normal(id)),
        start_to_close_timeout: Some(Span::from_ms(HOUR_MS)),
        heartbeat_timeout: Some(Span::from_ms(HOUR_MS)),
        ..activity::Schedule::default()
    })))
}

pub fn start_child(id: &str) -> Command {
    start_child_on(id, id, PATIENT_S)
}

/// A signal to another workflow.
pub fn signal_other(id: &str, name: &str) -> Command {
    command(CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        execution: Some(Execution { workflow_id: id.into(), ..Execution::default() }),
        signal_name: name.into(),
        ..external_workflow::SignalOther::default()
    })))
}

/// A child on a task queue, of which a worker may keep a task for so long.
pub fn start_child_on(id: &str, queue: &str, task_timeout_s: i64) -> Command {
    command(CommandAttributes::StartChild(Box::new(child::Start {
        workflow_id: id.into(),
        workflow_type: Some(CommandType { name: "child".into() }),
        task_queue: Some(CommandQueue::normal(queue)),
        workflow_task_timeout: Some(Span::from_ms(task_timeout_s * 1_000)),
        ..child::Start::default()
    })))
}
