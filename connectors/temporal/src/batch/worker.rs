//! The node as the worker of jobs: polls a queue of jobs while something waits there, and does the tasks.
//!
//! The dispatcher names a queue where something waits and nobody polls, at the node where the queue's tasks and polls meet. So a
//! job is taken up after a start, a restart, a move or a change of the nodes, and idle namespaces are not polled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_engine::event::{History, HistoryEvent};
use everlog_partition::{Delivery, Poll, QueueKey, TaskKind};
use everlog_temporal_api::enums::QueryResultType;
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, PollActivityTaskQueueResponse, PollWorkflowTaskQueueResponse,
    RespondActivityTaskCanceledRequest, RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest, RespondQueryTaskCompletedRequest, RespondWorkflowTaskCompletedRequest,
};
use prost::Message;
use tokio::task::{Id, JoinSet};
use tonic::Status;

use crate::batch::job::{self, QUEUE};
use crate::batch::operation::{IDENTITY, JobCalls};
use crate::batch::pace;
use crate::batch::progress::BatchProgress;
use crate::batch::work::{WorkEnd, is_transient, work};
use crate::batch::workflow::{HEARTBEAT_WITHIN, decide};
use crate::codec::{failure, random_ids, status};
use crate::routing::forward::Calls;
use crate::routing::in_process::{ApiClient, answer, client, within};
use crate::tasks::response::{self, ResponseContext};
use crate::{CallFuture, Gateway};

/// How long a poll waits before the queue is left alone again.
const IDLE: Duration = Duration::from_secs(10);
/// How long it takes until a call is sent again that must not get lost.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// What a query is answered with.
const NO_QUERIES: &str = "a batch job answers no queries; DescribeBatchOperation says how far it is";

/// Does the work of jobs until the gateway stops.
pub(crate) async fn run(gateway: Arc<Gateway>, calls: Calls) {
    let worker = BatchWorker { calls, gateway: Arc::clone(&gateway) };
    let mut loops = JoinSet::new();
    // The queues that are polled: whether something was noted there since.
    let mut polled: HashMap<Id, (QueueKey, bool)> = HashMap::new();
    loop {
        let key = tokio::select! {
            () = gateway.stopped() => break,
            key = gateway.router.unpolled_server_queue() => key,
            Some(ended) = loops.join_next_with_id() => {
                let id = ended.map_or_else(|panicked| panicked.id(), |(id, ())| id);
                match polled.remove(&id) {
                    Some((key, true)) => key,
                    Some((_, false)) | None => continue,
                }
            }
        };
        if let Some((_, again)) = polled.values_mut().find(|(other, _)| *other == key) {
            *again = true;
        } else if key.name == QUEUE {
            let id = loops.spawn(worker.clone().poll_until_idle(key.clone())).id();
            polled.insert(id, (key, false));
        } else {
            tracing::error!(queue = key.name, "this task queue of the server has no worker");
        }
    }
    // Each gives its task back.
    while loops.join_next().await.is_some() {}
}

/// Polls for jobs.
#[derive(Clone)]
struct BatchWorker {
    gateway: Arc<Gateway>,
    calls: Calls,
}

/// Does one task, with the rights of a writer in its namespace.
struct TaskWorker {
    gateway: Arc<Gateway>,
    client: ApiClient,
}

/// What a poll has brought.
enum BatchTask {
    Workflow(Box<PollWorkflowTaskQueueResponse>),
    Activity(Box<PollActivityTaskQueueResponse>),
}

impl BatchWorker {
    /// Takes tasks until there is none for a while and all are done, or the gateway stops.
    async fn poll_until_idle(self, key: QueueKey) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = self.gateway.stopped() => break,
                task = self.poll(&key) => match task {
                    Some(task) => drop(tasks.spawn(self.clone().perform(task))),
                    None if tasks.is_empty() => break,
                    None => {}
                },
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the task of a batch job ended without an answer");
                    }
                }
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// A task, and the name of its namespace; none after a while without one.
    async fn poll(&self, key: &QueueKey) -> Option<(Arc<str>, BatchTask)> {
        let poll = Poll {
            namespace_id: key.namespace_id.clone(),
            queue: key.name.clone(),
            kind: key.kind,
            sticky: false,
            normal_queue: None,
            identity: IDENTITY.into(),
            poll_id: random_ids::id(),
            rate_per_second: None,
            version: None,
        };
        let delivery = tokio::select! {
            delivery = self.gateway.router.poll(poll) => delivery.map_err(status::of_failure),
            () = tokio::time::sleep(IDLE) => return None,
        };
        match delivery.and_then(|delivery| self.read(key, delivery)) {
            Ok(Some(task)) => return Some(task),
            Ok(None) => {}
            Err(status) => tracing::warn!(%status, "a poll for batch jobs has failed"),
        }
        // It was refused at once.
        tokio::time::sleep(AGAIN_AFTER).await;
        None
    }

    fn read(&self, key: &QueueKey, delivery: Delivery) -> Result<Option<(Arc<str>, BatchTask)>, Status> {
        let namespace = self.gateway.namespaces.find_id(&key.namespace_id)?;
        let context = ResponseContext { token_signer: &self.gateway.token_signer, namespace: &namespace };
        let (task, receipt) = match delivery {
            Delivery::Workflow(task) => {
                let (task, receipt) = response::of_workflow_task(context, *task)?;
                (BatchTask::Workflow(task.into()), receipt)
            }
            Delivery::Query(mut task) => {
                let receipt = task.receipt.take();
                (BatchTask::Workflow(response::of_query(context, *task)?.into()), receipt)
            }
            Delivery::Activity(task) => {
                let (task, receipt) = response::of_activity(context, *task);
                (BatchTask::Activity(task.into()), receipt)
            }
            Delivery::Remote(told) if key.kind == TaskKind::Activity => {
                let (task, receipt) = response::read(told)?;
                (BatchTask::Activity(Box::new(task)), receipt)
            }
            Delivery::Remote(told) => {
                let (task, receipt) = response::read(told)?;
                (BatchTask::Workflow(Box::new(task)), receipt)
            }
            Delivery::Nothing => return Ok(None),
        };
        if let Some(receipt) = receipt {
            receipt.accept();
        }
        Ok(Some((namespace.record.name.as_str().into(), task)))
    }

    async fn perform(self, (namespace, task): (Arc<str>, BatchTask)) {
        let client = client(self.calls, IDENTITY, &namespace);
        let worker = TaskWorker { gateway: self.gateway, client };
        let done = match task {
            BatchTask::Workflow(task) if task.query.is_some() => worker.refuse_query(*task).await,
            BatchTask::Workflow(task) => worker.answer_workflow_task(&namespace, *task).await,
            BatchTask::Activity(task) => worker.do_activity(*task).await,
        };
        // The engine gives the task to somebody again, if the run is still there.
        if let Err(status) = done {
            tracing::debug!(%status, "the answer of a batch job was refused");
        }
    }
}

impl TaskWorker {
    async fn refuse_query(&self, task: PollWorkflowTaskQueueResponse) -> Result<(), Status> {
        let request = RespondQueryTaskCompletedRequest {
            task_token: task.task_token,
            completed_type: QueryResultType::Failed.into(),
            error_message: NO_QUERIES.into(),
            ..Default::default()
        };
        answer(self.client.clone().respond_query_task_completed(request)).await.map(drop)
    }

    async fn answer_workflow_task(
        &self,
        namespace: &str,
        task: PollWorkflowTaskQueueResponse,
    ) -> Result<(), Status> {
        let events = self.events(namespace, &task).await?;
        let failed = |id: &String| {
            let error_message = NO_QUERIES.to_owned();
            let result_type = QueryResultType::Failed.into();
            (id.clone(), WorkflowQueryResult { result_type, error_message, ..Default::default() })
        };
        let request = RespondWorkflowTaskCompletedRequest {
            query_results: task.queries.keys().map(failed).collect(),
            task_token: task.task_token,
            commands: decide(&events),
            identity: IDENTITY.into(),
            ..Default::default()
        };
        answer(self.client.clone().respond_workflow_task_completed(request)).await.map(drop)
    }

    /// The whole history that the task has.
    async fn events(
        &self,
        namespace: &str,
        task: &PollWorkflowTaskQueueResponse,
    ) -> Result<Vec<HistoryEvent>, Status> {
        let read = |history: Option<Bytes>| {
            let history = History::decode(history.unwrap_or_default());
            history
                .map(|history| history.events)
                .map_err(|_error| Status::internal("the history cannot be read"))
        };
        let mut events = read(task.history.clone())?;
        let mut next_page_token = task.next_page_token.clone();
        while !next_page_token.is_empty() {
            let request = GetWorkflowExecutionHistoryRequest {
                namespace: namespace.into(),
                execution: task.workflow_execution.clone(),
                next_page_token,
                ..Default::default()
            };
            let page = answer(self.client.clone().get_workflow_execution_history(request)).await?;
            events.extend(read(page.history)?);
            next_page_token = page.next_page_token;
        }
        Ok(events)
    }

    async fn do_activity(&self, task: PollActivityTaskQueueResponse) -> Result<(), Status> {
        let request = job::read(task.input.as_ref());
        let asked = request.as_ref().map_or(0.0, |request| request.max_operations_per_second);
        let run_id =
            task.workflow_execution.as_ref().map(|execution| execution.run_id.clone()).unwrap_or_default();
        let (namespace, token) = (task.workflow_namespace, task.task_token);
        let job = request.and_then(|request| {
            JobCalls::new(self.client.clone(), namespace.clone(), run_id, token.clone(), request)
        });
        let Some(job) = job else {
            return self.fail(&token, "the input is not that of a batch job", true).await;
        };
        let rate = pace::rate(asked, f64::from(self.gateway.limits.batch_operations_per_second));
        let progress = BatchProgress::read(task.heartbeat_details.as_ref());
        let end = tokio::select! {
            end = work(Arc::new(job), progress, rate) => end,
            // Another node, or this one after its restart, goes on at once.
            () = self.gateway.stopped() => return self.fail(&token, "the node stops", false).await,
        };
        match end {
            WorkEnd::Done(progress) => {
                let request = RespondActivityTaskCompletedRequest {
                    task_token: token,
                    result: Some(progress.report.result()),
                    identity: IDENTITY.into(),
                    ..Default::default()
                };
                self.surely(request, |mut client, request| {
                    Box::pin(async move { client.respond_activity_task_completed(request).await.map(drop) })
                })
                .await
            }
            WorkEnd::Stopped(progress) => {
                let request = RespondActivityTaskCanceledRequest {
                    task_token: token,
                    details: Some(progress.report.result()),
                    identity: IDENTITY.into(),
                    ..Default::default()
                };
                self.surely(request, |mut client, request| {
                    Box::pin(async move { client.respond_activity_task_canceled(request).await.map(drop) })
                })
                .await
            }
            WorkEnd::Failed(status) => self.fail(&token, status.message(), true).await,
            WorkEnd::Abandoned => Ok(()),
        }
    }

    async fn fail(&self, token: &Bytes, message: &str, is_final: bool) -> Result<(), Status> {
        let request = RespondActivityTaskFailedRequest {
            task_token: token.clone(),
            failure: Some(failure::application(message, "BatchFailed", is_final)),
            identity: IDENTITY.into(),
            ..Default::default()
        };
        self.surely(request, |mut client, request| {
            Box::pin(async move { client.respond_activity_task_failed(request).await.map(drop) })
        })
        .await
    }

    /// Sends it until it is answered, or another node has taken the activity over.
    async fn surely<R: Clone>(
        &self,
        request: R,
        send: fn(ApiClient, R) -> CallFuture<Result<(), Status>>,
    ) -> Result<(), Status> {
        let until = Instant::now() + HEARTBEAT_WITHIN;
        loop {
            match within(send(self.client.clone(), request.clone())).await {
                Err(status) if is_transient(&status) && Instant::now() < until => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                answered => return answered,
            }
        }
    }
}
