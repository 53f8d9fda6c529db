//! A client and worker that logs each request and each reply.

use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse, PollActivityTaskQueueRequest, PollActivityTaskQueueResponse,
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse, QueryWorkflowRequest, QueryWorkflowResponse,
    RecordActivityTaskHeartbeatRequest, RequestCancelWorkflowExecutionRequest,
    RespondActivityTaskCompletedRequest, RespondActivityTaskFailedRequest, RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest, RespondWorkflowTaskFailedRequest,
    SignalWithStartWorkflowExecutionRequest, SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use everlog_tests::fate::Fate;
use everlog_tests::{patience, raw};
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::client_log::{Attempt, Call, Note, Query, Shared, Task};
use crate::workflows::{self, Answer, LOST_MS, QUEUE, payloads, text_of};

const NAMESPACE: &str = "default";

/// Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub channel: Channel,
    pub client_log: Shared,
}

/// What the client or its worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Start(&'static str),
    Signal(&'static str, &'static str),
    SignalWithStart(&'static str, &'static str),
    Cancel(&'static str),
    Terminate(&'static str),
    Query(&'static str),
    Read(&'static str),
    /// One workflow task.
    Work,
    /// One attempt of an activity.
    Labour,
}

impl Client {
    /// # Errors
    /// It was not answered with success, or no task came.
    pub async fn act(&self, act: Act) -> Result<(), Status> {
        match act {
            Act::Start(id) => self.start(id).await,
            Act::Signal(id, name) => self.signal(id, name).await,
            Act::SignalWithStart(id, name) => self.signal_with_start(id, name).await,
            Act::Cancel(id) => self.cancel(id).await,
            Act::Terminate(id) => self.terminate(id).await,
            Act::Query(id) => self.query(id).await,
            Act::Read(id) => self.read(id, "").await.map(drop),
            Act::Work => several(async || self.work().await).await,
            Act::Labour => several(async || self.labour().await).await,
        }
    }

    /// A query, with a worker beside it that answers it.
    pub async fn query_and_work(&self, id: &str) -> Result<(), Status> {
        tokio::try_join!(self.query(id), several(async || self.work().await)).map(drop)
    }

    /// Sends a request as it was sent before, which may have been applied.
    pub async fn repeat(&self, number: usize) -> Result<(), Status> {
        let (path, request) = {
            let client_log = self.client_log.open();
            let call = &client_log.calls[number];
            (call.path.clone(), call.request.clone())
        };
        let answer = send(&self.channel, &path, request).await;
        self.client_log.open().answered(number, &answer, false);
        answer.map(drop)
    }

    /// Sends a request with an identity of its own.
    async fn call<M: Message + Name>(
        &self,
        (effect, side_effect): (Option<EventType>, Option<EventType>),
        note: Note,
        make: impl FnOnce(String) -> M,
    ) -> Result<Bytes, Status> {
        let (number, path, request) = {
            let mut client_log = self.client_log.open();
            let identity = client_log.identity();
            let (path, request) = (raw::path_of::<M>(), Bytes::from(make(identity.clone()).encode_to_vec()));
            let call = Call {
                identity,
                path: path.clone(),
                request: request.clone(),
                fate: Fate::Unknown,
                effect,
                side_effect,
                answer: Bytes::new(),
                note,
            };
            (client_log.sent(call), path, request)
        };
        let answer = send(&self.channel, &path, request).await;
        self.client_log.open().answered(number, &answer, true);
        answer
    }

    async fn start(&self, id: &str) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowExecutionStarted), None);
        let make = |identity: String| StartWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_id: id.into(),
            workflow_type: Some(WorkflowType { name: id.into() }),
            task_queue: queue(),
            workflow_task_timeout: Some(millis(LOST_MS)),
            request_id: identity.clone(),
            identity,
            ..StartWorkflowExecutionRequest::default()
        };
        self.call(effects, Note::Nothing, make).await.map(drop)
    }

    async fn signal(&self, id: &str, name: &str) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowExecutionSignaled), None);
        let make = |identity: String| SignalWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: execution(id, ""),
            signal_name: name.into(),
            request_id: identity.clone(),
            identity,
            ..SignalWorkflowExecutionRequest::default()
        };
        self.call(effects, Note::Signal(id.into(), name.into()), make).await.map(drop)
    }

    async fn signal_with_start(&self, id: &str, name: &str) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowExecutionSignaled), Some(EventType::WorkflowExecutionStarted));
        let make = |identity: String| SignalWithStartWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_id: id.into(),
            workflow_type: Some(WorkflowType { name: id.into() }),
            task_queue: queue(),
            workflow_task_timeout: Some(millis(LOST_MS)),
            signal_name: name.into(),
            request_id: identity.clone(),
            identity,
            ..SignalWithStartWorkflowExecutionRequest::default()
        };
        self.call(effects, Note::Signal(id.into(), name.into()), make).await.map(drop)
    }

    async fn cancel(&self, id: &str) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowExecutionCancelRequested), None);
        let make = |identity: String| RequestCancelWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: execution(id, ""),
            request_id: identity.clone(),
            identity,
            ..RequestCancelWorkflowExecutionRequest::default()
        };
        self.call(effects, Note::Nothing, make).await.map(drop)
    }

    async fn terminate(&self, id: &str) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowExecutionTerminated), None);
        let make = |identity: String| TerminateWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: execution(id, ""),
            identity,
            ..TerminateWorkflowExecutionRequest::default()
        };
        self.call(effects, Note::Nothing, make).await.map(drop)
    }

    async fn query(&self, id: &str) -> Result<(), Status> {
        let before = self.client_log.open().notes();
        let acked = before.into_iter().filter_map(|(note, fate)| match (note, fate) {
            (Note::Signal(of, name), Fate::Acked) if of == id => Some(name),
            _ => None,
        });
        let acked = acked.collect();
        let request = QueryWorkflowRequest {
            namespace: NAMESPACE.into(),
            execution: execution(id, ""),
            query: Some(WorkflowQuery { query_type: "signals".into(), ..WorkflowQuery::default() }),
            ..QueryWorkflowRequest::default()
        };
        let answer: QueryWorkflowResponse = self.ask(request).await?;
        let seen = text_of(answer.query_result.as_deref());
        self.client_log.open().queries.push(Query { workflow_id: id.into(), seen, acked });
        Ok(())
    }

    /// The events of a run, of the latest one where `run_id` is empty.
    pub async fn read(&self, id: &str, run_id: &str) -> Result<Vec<HistoryEvent>, Status> {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: execution(id, run_id),
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let page: GetWorkflowExecutionHistoryResponse = self.ask(request).await?;
        let events = events_of(page.history)?;
        self.client_log.open().reads.push((id.into(), events.clone()));
        Ok(events)
    }

    /// The id of the latest run.
    pub async fn latest(&self, id: &str) -> Result<String, Status> {
        let execution = execution(id, "");
        let request = DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution };
        let answer: DescribeWorkflowExecutionResponse = self.ask(request).await?;
        Ok(ids(answer.workflow_execution_info.and_then(|info| info.execution).as_ref()).1)
    }

    /// One poll for a workflow task, and the answer to it; false if none came.
    pub async fn work(&self) -> Result<bool, Status> {
        let mut own = String::new();
        let make = |identity: String| {
            own.clone_from(&identity);
            PollWorkflowTaskQueueRequest {
                namespace: NAMESPACE.into(),
                task_queue: queue(),
                identity,
                ..PollWorkflowTaskQueueRequest::default()
            }
        };
        let effects = (None, Some(EventType::WorkflowTaskStarted));
        let task = decode::<PollWorkflowTaskQueueResponse>(self.call(effects, Note::Nothing, make).await?)?;
        if task.task_token.is_empty() {
            return Ok(false);
        }
        let (id, run_id) = ids(task.workflow_execution.as_ref());
        let events = events_of(task.history)?;
        if task.query.is_some() {
            self.answer_query(task.task_token, &events).await?;
            return Ok(true);
        }
        self.client_log.open().tasks.push(Task {
            identity: own,
            run_id,
            started_event_id: task.started_event_id,
            attempt: task.attempt,
            events: events.clone(),
        });
        match workflows::next(&id, task.attempt, &events) {
            Answer::Commands(commands) => self.complete_task(task.task_token, commands).await?,
            Answer::Failure => self.fail_task(task.task_token).await?,
        }
        Ok(true)
    }

    async fn complete_task(
        &self,
        task_token: Bytes,
        commands: Vec<everlog_engine::command::Command>,
    ) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowTaskCompleted), Some(EventType::WorkflowTaskFailed));
        let left = commands.iter().map(workflows::event_of).collect();
        let make = |identity: String| RespondWorkflowTaskCompletedRequest {
            task_token,
            commands,
            identity,
            namespace: NAMESPACE.into(),
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        self.call(effects, Note::Commands(left), make).await.map(drop)
    }

    async fn fail_task(&self, task_token: Bytes) -> Result<(), Status> {
        let effects = (Some(EventType::WorkflowTaskFailed), None);
        let make = |identity: String| RespondWorkflowTaskFailedRequest {
            task_token,
            identity,
            namespace: NAMESPACE.into(),
            failure: Some(workflows::activity_failure("not today").into()),
            ..RespondWorkflowTaskFailedRequest::default()
        };
        self.call(effects, Note::Nothing, make).await.map(drop)
    }

    /// Answers with the names of the signals in the history.
    async fn answer_query(&self, task_token: Bytes, events: &[HistoryEvent]) -> Result<(), Status> {
        let names: Vec<_> = events.iter().filter_map(crate::checker::signal_name).collect();
        let request = RespondQueryTaskCompletedRequest {
            task_token,
            completed_type: 1,
            query_result: Some(payloads(&names.join(" ")).into()),
            namespace: NAMESPACE.into(),
            ..RespondQueryTaskCompletedRequest::default()
        };
        raw_send(&self.channel, request).await.map(drop)
    }

    /// One poll for an activity task, and the work on it; false if none came. The first attempt fails.
    pub async fn labour(&self) -> Result<bool, Status> {
        let make = |identity: String| PollActivityTaskQueueRequest {
            namespace: NAMESPACE.into(),
            task_queue: queue(),
            identity,
            ..PollActivityTaskQueueRequest::default()
        };
        let effects = (None, Some(EventType::ActivityTaskStarted));
        let answer = self.call(effects, Note::Nothing, make).await?;
        let task: PollActivityTaskQueueResponse = decode(answer)?;
        if task.task_token.is_empty() {
            return Ok(false);
        }
        let details = text_of(task.heartbeat_details.as_deref());
        let beat = {
            let mut client_log = self.client_log.open();
            let before = client_log.notes();
            let beat =
                1 + before.iter().filter(|(note, _)| matches!(note, Note::Heartbeat(_))).count() as u64;
            let (_, run_id) = ids(task.workflow_execution.as_ref());
            let (activity_id, attempt) = (task.activity_id, task.attempt);
            client_log.attempts.push(Attempt { run_id, activity_id, attempt, details, before });
            beat
        };
        self.heartbeat(task.task_token.clone(), beat).await?;
        if task.attempt == 1 {
            self.fail_attempt(task.task_token).await?;
        } else {
            self.complete_attempt(task.task_token).await?;
        }
        Ok(true)
    }

    async fn heartbeat(&self, task_token: Bytes, number: u64) -> Result<(), Status> {
        let make = |identity: String| RecordActivityTaskHeartbeatRequest {
            task_token,
            details: Some(payloads(&number.to_string()).into()),
            identity,
            namespace: NAMESPACE.into(),
            ..RecordActivityTaskHeartbeatRequest::default()
        };
        self.call((None, None), Note::Heartbeat(number), make).await.map(drop)
    }

    async fn fail_attempt(&self, task_token: Bytes) -> Result<(), Status> {
        let make = |identity: String| RespondActivityTaskFailedRequest {
            task_token,
            failure: Some(workflows::activity_failure("declined").into()),
            identity,
            namespace: NAMESPACE.into(),
            ..RespondActivityTaskFailedRequest::default()
        };
        self.call((None, None), Note::Failure(1), make).await.map(drop)
    }

    async fn complete_attempt(&self, task_token: Bytes) -> Result<(), Status> {
        let make = |identity: String| RespondActivityTaskCompletedRequest {
            task_token,
            result: Some(payloads("charged").into()),
            identity,
            namespace: NAMESPACE.into(),
            ..RespondActivityTaskCompletedRequest::default()
        };
        let effects = (Some(EventType::ActivityTaskCompleted), None);
        self.call(effects, Note::Nothing, make).await.map(drop)
    }

    async fn ask<A: Message + Default>(&self, request: impl Name) -> Result<A, Status> {
        decode(raw_send(&self.channel, request).await?)
    }
}

/// Polls until a task came.
async fn several(poll: impl AsyncFn() -> Result<bool, Status>) -> Result<(), Status> {
    let deadline = patience::deadline();
    while !poll().await? {
        if deadline.is_over() {
            return Err(Status::deadline_exceeded("no task came"));
        }
    }
    Ok(())
}

async fn raw_send<M: Message + Name>(channel: &Channel, request: M) -> Result<Bytes, Status> {
    send(channel, &raw::path_of::<M>(), request.encode_to_vec().into()).await
}

async fn send(channel: &Channel, path: &str, request: Bytes) -> Result<Bytes, Status> {
    let answer = patience::answer(path, raw::call(channel, path, Request::new(request))).await;
    Ok(answer.map_err(|late| Status::deadline_exceeded(late.to_string()))??.into_inner())
}

fn decode<A: Message + Default>(answer: Bytes) -> Result<A, Status> {
    A::decode(answer).map_err(|error| Status::data_loss(error.to_string()))
}

fn events_of(history: Option<Bytes>) -> Result<Vec<HistoryEvent>, Status> {
    Ok(decode::<History>(history.unwrap_or_default())?.events)
}

fn ids(execution: Option<&WorkflowExecution>) -> (String, String) {
    execution.map(|execution| (execution.workflow_id.clone(), execution.run_id.clone())).unwrap_or_default()
}

fn execution(id: &str, run_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: id.into(), run_id: run_id.into() })
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: QUEUE.into(), kind: 1, ..TaskQueue::default() })
}

fn millis(ms: i64) -> prost_types::Duration {
    prost_types::Duration { seconds: ms / 1_000, nanos: i32::try_from(ms % 1_000 * 1_000_000).unwrap_or(0) }
}
